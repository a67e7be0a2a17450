"""Conditional systematic rounding: rows in coarse groups get finer ones by their shares."""

import numpy as np
import numpy.typing as npt
from numba import njit

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_STEP = np.uint64(0x9E3779B97F4A7C15)  # constants of splitmix64 (Steele, Lea and Flood 2014)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(nogil=True, cache=True)
def word(seed: np.uint64, place: int) -> np.uint64:
    """Return the word at a place of the stream of splitmix64 that belongs to a seed."""
    x = seed + np.uint64(place + 1) * _STEP
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


@njit(nogil=True, cache=True)
def mixed(count: int, seed: np.uint64) -> Integers:
    """Return an order of 0..count-1, by the exchanges of Fisher and Yates."""
    order = np.arange(count)
    for i in range(count - 1, 0, -1):
        j = np.int64(word(seed, i) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    return order


# Proof: docs/proofs/rounds.md, lemma 9.
@njit(nogil=True, cache=True)
def refine(context: Integers, group: Integers, table: Floats, starts: Integers, seed: np.uint64) -> None:
    """
    Replace each row's coarse group by a finer one inside it: counts are met to within one row.

    Rows are taken in the order `mixed(rows, seed)`. Of the s rows that agree in context and coarse group, row
    i, from 0, gets the fine group at the share (i + offset) / s of their weights; the offset is a word of the
    stream of seed + 1, as a fraction. Where all weights are 0, every row gets the last.

    Parameters
    ----------
    context, group
        Of each row, shape (rows,); `group` is written.
    table
        Weights at least 0, shape (contexts, fine groups).
    starts
        The first fine group of each coarse one, and at the end their number.
    """
    coarse = len(starts) - 1
    sizes = np.zeros((len(table), coarse), np.int64)
    for row in range(len(context)):
        sizes[context[row], group[row]] += 1
    taken = np.zeros((len(table), coarse), np.int64)
    for row in mixed(len(context), seed):
        c, g = context[row], group[row]
        span = 0.0
        for f in range(starts[g], starts[g + 1]):
            span += table[c, f]
        offset = np.float64(word(seed + np.uint64(1), c * coarse + g) >> np.uint64(11)) * 2.0**-53
        wanted = (taken[c, g] + offset) / sizes[c, g] * span
        taken[c, g] += 1
        found, past = starts[g], table[c, starts[g]]
        while past <= wanted and found + 1 < starts[g + 1]:
            found += 1
            past += table[c, found]
        while span > 0.0 and table[c, found] == 0.0:  # the share was rounded up to 1: past all weights
            found -= 1
        group[row] = found
