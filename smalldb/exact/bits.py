"""The one door to entropy: every random bit of the package comes through a `BitSource`."""

import os
from hashlib import shake_256
from typing import Protocol, final, runtime_checkable

_BLOCK_BYTES = 128


@runtime_checkable
class BitSource(Protocol):
    """A source of random bits; its author promises that the bits are independent and fair."""

    @property
    def private(self) -> bool:
        """Whether what is drawn from these bits may be called private."""

    def bits(self, count: int) -> int:
        """Draw a uniform integer of `count` bits, count >= 0; the first bit drawn is the highest."""


@final
class SystemBits:
    """The operating system's entropy, without a buffer: a forked process cannot share unused bits."""

    # A failure of the operating system propagates; there is no second source to fall back on

    private = True

    def bits(self, count: int) -> int:
        """Draw `count` bits from `os.urandom`."""
        _check(count)
        return int.from_bytes(os.urandom(-(-count // 8)), "big") >> (-count % 8)


@final
class SeededBits:
    """The stream of bits that belongs to a seed, for tests and experiments; never private."""

    # Block i of the stream is the first 128 bytes of SHAKE-256 (FIPS 202) of the seed, as the shortest
    # big-endian two's complement that has a sign bit, followed by i in 8 bytes. The stream is the same on
    # every version and platform, and does not depend on how many bits are drawn at a time.

    private = False

    def __init__(self, seed: int) -> None:
        self._seed = seed.to_bytes(seed.bit_length() // 8 + 1, "big", signed=True)
        self._block = 0
        self._pool = 0
        self._pool_bits = 0

    def bits(self, count: int) -> int:
        """Draw the next `count` bits of the stream."""
        _check(count)
        if count > self._pool_bits:
            missing = -(-(count - self._pool_bits) // (8 * _BLOCK_BYTES))
            blocks = range(self._block, self._block + missing)
            fresh = b"".join(
                shake_256(self._seed + i.to_bytes(8, "big")).digest(_BLOCK_BYTES) for i in blocks
            )
            self._block += missing
            self._pool = self._pool << (8 * len(fresh)) | int.from_bytes(fresh, "big")
            self._pool_bits += 8 * len(fresh)
        self._pool_bits -= count
        drawn = self._pool >> self._pool_bits
        self._pool &= (1 << self._pool_bits) - 1
        return drawn


@final
class _CheckedBits:
    """A user's source, each answer checked: a numpy integer, say, would wrap silently in exact arithmetic."""

    def __init__(self, source: BitSource) -> None:
        self._source = source

    @property
    def private(self) -> bool:
        return self._source.private is True

    def bits(self, count: int) -> int:
        _check(count)
        drawn = self._source.bits(count)
        if type(drawn) is not int:
            raise TypeError(f"a BitSource must draw Python ints, not {type(drawn).__name__}")
        if not 0 <= drawn < 1 << count:
            raise ValueError("a BitSource drew a number of more bits than it was asked for")
        return drawn


def bit_source(rng: object, seed: int | None = None) -> BitSource:
    """Turn the public arguments `rng` and `seed` into a source of bits."""
    if seed is not None:
        if rng is not None:
            raise ValueError("pass seed or rng, not both")
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(f"seed must be a whole number, not {type(seed).__name__}")
        return SeededBits(seed)
    if rng is None:
        return SystemBits()
    if isinstance(rng, int) and not isinstance(rng, bool):
        return SeededBits(rng)
    if isinstance(rng, SystemBits | SeededBits | _CheckedBits):
        return rng
    if isinstance(rng, BitSource) and not isinstance(rng, type):
        return _CheckedBits(rng)
    raise TypeError(
        "rng must be None (the operating system's entropy), an int seed (not private) or a BitSource, "
        f"not {type(rng).__name__}; generators of numpy and Python are refused: they are not secure sources"
    )


def _check(count: int) -> None:
    if count < 0:
        raise ValueError("count must be 0 or more bits")
