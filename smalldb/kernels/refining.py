"""Conditional systematic rounding: rows in coarse groups get finer ones by their shares."""

import numpy as np
import numpy.typing as npt
from numba import njit

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@njit(nogil=True, cache=True)
def refine(
    context: Integers,
    group: Integers,
    order: Integers,
    table: Floats,
    starts: Integers,
    offsets: Floats,
) -> None:
    """
    Replace each row's coarse group by a finer one inside it: counts are met to within one row.

    Rows that agree in context and coarse group are taken in the given order; of s such rows, row i gets the
    fine group at the share (i + offset) / s of their weights, 0 <= offset < 1. Where all weights are 0, every
    one gets the first.

    Parameters
    ----------
    context, group
        Of each row, shape (rows,); `group` is written.
    order
        A permutation of the rows.
    table
        Weights at least 0, shape (contexts, fine groups).
    starts
        The first fine group of each coarse one, and at the end their number.
    offsets
        Shape (contexts, coarse groups).
    """
    coarse = len(starts) - 1
    sizes = np.zeros((len(table), coarse), np.int64)
    for row in range(len(context)):
        sizes[context[row], group[row]] += 1
    taken = np.zeros((len(table), coarse), np.int64)
    spans = np.zeros((len(table), coarse))
    for c in range(len(table)):
        for g in range(coarse):
            for f in range(starts[g], starts[g + 1]):
                spans[c, g] += table[c, f]
    for i in range(len(order)):
        row = order[i]
        c, g = context[row], group[row]
        wanted = (taken[c, g] + offsets[c, g]) / sizes[c, g] * spans[c, g]
        taken[c, g] += 1
        found, past = starts[g], table[c, starts[g]]
        while past <= wanted and found + 1 < starts[g + 1]:
            found += 1
            past += table[c, found]
        group[row] = found
