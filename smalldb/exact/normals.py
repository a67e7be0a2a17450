"""Normal numbers whose digits are drawn as they are needed: exact, and no transcendental function anywhere.

Algorithm N of Karney, "Sampling exactly from the normal distribution" (2016, doi:10.1145/2710016).
"""

from fractions import Fraction
from typing import final

import numpy as np

from smalldb.exact.bits import BitSource
from smalldb.exact.coins import Uniform
from smalldb.exact.integers import coins, decay

_BITS = 32  # of a uniform number that are drawn first


@final
class Normal:
    """A standard normal number: sign (whole + fraction)."""

    __slots__ = ("_fraction", "_sign", "_whole")

    def __init__(self, sign: int, whole: int, fraction: Uniform) -> None:
        self._sign, self._whole, self._fraction = sign, whole, fraction

    def floor(self, bits: int) -> int:
        """Return v so that the number lies in [v, v + 1] 2^-bits."""
        self._fraction.reveal(bits)
        size = (self._whole << bits) + (self._fraction.value >> (self._fraction.drawn - bits))
        return size if self._sign > 0 else -size - 1


# Proof: docs/proofs/draw.md, lemma 8.
def normals(count: int, source: BitSource) -> list[Normal]:
    """Draw independent standard normal numbers, exactly."""
    # k is drawn with weight exp(-k^2 / 2), x is uniform, and both are kept with probability exp(-x (2 k
    # + x) / 2): together k + x has the density exp(-(k + x)^2 / 2)
    accepted: list[Normal] = []
    while len(accepted) < count:
        for k in _wholes(count - len(accepted), source):
            x = Uniform(source, _BITS)
            if all(_exp_part(k, x, source) for _ in range(k + 1)):
                accepted.append(Normal(2 * source.bits(1) - 1, k, x))
    return accepted


def _wholes(count: int, source: BitSource) -> list[int]:
    """Draw k with weight exp(-k / 2), and keep it with probability exp(-k (k - 1) / 2): at most `count`."""
    wholes, running = np.zeros(count, dtype=np.int64), np.arange(count)
    while len(running):
        running = running[coins(decay(Fraction(1, 2)), len(running), source)]
        wholes[running] += 1
    kept = wholes < 2
    for k in range(2, int(wholes.max()) + 1):
        same = np.flatnonzero(wholes == k)
        kept[same] = coins(decay(Fraction(k * (k - 1), 2)), len(same), source)
    some: list[int] = wholes[kept].tolist()
    return some


# Proof: docs/proofs/draw.md, lemma 8.
def _exp_part(k: int, x: Uniform, source: BitSource) -> bool:
    """Return True with probability exp(-x (2 k + x) / (2 k + 2)): Karney's algorithm B."""
    last, even = x, True
    while True:
        following = Uniform(source, _BITS)
        if not _less(following, last) or not _below_line(Uniform(source, _BITS), x, k):
            return even
        last, even = following, not even


# Proof: docs/proofs/draw.md, lemma 8.
def _less(one: Uniform, other: Uniform) -> bool:
    """Compare two different uniform numbers."""
    bits = max(one.drawn, other.drawn)
    while True:
        one.reveal(bits)
        other.reveal(bits)
        if one.value != other.value:
            return one.value < other.value
        bits += _BITS


# Proof: docs/proofs/draw.md, lemma 8.
def _below_line(r: Uniform, x: Uniform, k: int) -> bool:
    """Return whether r < (2 k + x) / (2 k + 2)."""
    bits = max(r.drawn, x.drawn)
    while True:
        r.reveal(bits)
        x.reveal(bits)
        left, right = (2 * k + 2) * r.value, (2 * k << bits) + x.value
        if left + 2 * k + 2 <= right:
            return True
        if left >= right + 1:
            return False
        bits += _BITS
