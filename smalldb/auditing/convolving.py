"""Sums of independent whole numbers whose laws are enclosed: exact integers, rounded outwards."""

from collections.abc import Sequence
from typing import TypeAlias

BITS = 256  # a mass is in units of 2^-BITS
Masses: TypeAlias = list[int]


def power(low: Sequence[int], high: Sequence[int], times: int) -> tuple[Masses, Masses]:
    """Return (low, high) of the law of a sum of `times` independent numbers, each of which has the law given.

    Equivalent to `times - 1` convolutions of sum over i of masses[i] x^i, in units of 2^-256, each
    rounded down (low) or up (high).

    >>> half = 1 << 255
    >>> [mass >> 254 for mass in power([half, half], [half, half], 2)[0]]  # quarters: 1, 2, 1
    [1, 2, 1]
    """
    ends = []
    for masses, up in ((list(low), 0), (list(high), (1 << BITS) - 1)):
        total = [1 << BITS]
        for bit in f"{times:b}":
            total = _product(total, total, up)
            if bit == "1":
                total = _product(total, masses, up)
        ends.append(total)
    return ends[0], ends[1]


def _product(a: Masses, b: Masses, up: int) -> Masses:
    """Multiply polynomials as integers, each coefficient in a slot of its own (Kronecker)."""
    slot = (2 * BITS + 2 + min(len(a), len(b)).bit_length() + 7) // 8 + 1
    packed = [int.from_bytes(b"".join(x.to_bytes(slot, "little") for x in p), "little") for p in (a, b)]
    size = len(a) + len(b) - 1
    digits = (packed[0] * packed[1]).to_bytes(slot * (size + 1), "little")
    return [(int.from_bytes(digits[slot * i : slot * (i + 1)], "little") + up) >> BITS for i in range(size)]
