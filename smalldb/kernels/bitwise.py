"""Words of bits: how many are set, their hash, and where a number stands among running sums."""

from typing import Any

import numpy as np
import numpy.typing as npt

from queries.arrays import Integers
from smalldb.kernels.compiling import inlined

ONE = np.uint64(1)
HALF = np.uint64(32)
LOW_HALF = np.uint64((1 << 32) - 1)
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing
MORE_SPREAD = np.uint64(0xBF58476D1CE4E5B9)
CELL_BITS = np.uint64(8)
CELL_MASK = np.uint64(255)


@inlined
def ones(word: np.uint64) -> np.uint64:
    """Return the number of ones (the compiler knows this idiom)."""
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@inlined
def hashed(first: np.uint64, second: np.uint64) -> np.uint64:
    """Return a hash of a packed state, its low bits well mixed."""
    mixed = (first ^ (first >> HALF)) * SPREAD ^ (second + SPREAD) * MORE_SPREAD
    mixed = (mixed ^ (mixed >> HALF)) * SPREAD
    return mixed ^ (mixed >> HALF)


@inlined
def pack(counts: Integers, first: int, cells: int) -> tuple[np.uint64, np.uint64]:
    """Return counts from a cell on, at most 255 each, in two words, 8 bits a cell."""
    lower = upper = np.uint64(0)
    for x in range(first, cells):
        if x < 8:
            lower |= np.uint64(counts[x]) << np.uint64(8 * x)
        else:
            upper |= np.uint64(counts[x]) << np.uint64(8 * x - 64)
    return lower, upper


@inlined
def unpack(first: np.uint64, second: np.uint64, h: Integers) -> None:
    """Write the cells of a packed state."""
    for x in range(8):
        h[x] = np.int64(first & CELL_MASK)
        h[8 + x] = np.int64(second & CELL_MASK)
        first >>= CELL_BITS
        second >>= CELL_BITS


@inlined
def first_above(sums: npt.NDArray[Any], first: np.uint64, last: np.uint64, position: Any) -> np.uint64:
    """Return the index of the first running sum above `position`; the caller makes sure that there is one."""
    # indices are unsigned: Numba checks a signed one for being negative
    left = last - first
    while left > ONE:  # without a branch in it that the processor would have to guess
        half = left >> ONE
        first += half * np.uint64(sums[first + half - ONE] <= position)
        left -= half
    return first
