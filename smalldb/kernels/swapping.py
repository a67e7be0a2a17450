"""Local search on the rows of a wide table: two rows exchange their places of a column where that helps."""

import numpy as np
import numpy.typing as npt
from numba import njit

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_STEP = np.uint64(0x9E3779B97F4A7C15)  # constants of splitmix64 (Steele, Lea and Flood 2014)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(nogil=True, cache=True)
def swap(
    rows: Integers,
    column: int,
    others: Integers,
    origins: Integers,
    strides: Integers,
    beyond: Floats,
    weights: Floats,
    seed: np.uint64,
) -> int:
    """
    Offer each row an exchange of its place of a column with another row's; return how many were made.

    An exchange is made where it lowers the sum over the cells of all tables of weight times (count - target)
    squared. The table of the column, at place p, and another one, at place q, has its cell at
    ``origin + p stride_p + q stride_q``. Cost: rows times tables of the column.

    Parameters
    ----------
    rows
        Places, shape (C, rows); written.
    others
        Of each table of the column, its other column.
    origins, strides
        Shapes (tables,) and (tables, 2): where its cells are.
    beyond, weights
        Of all cells: counts less targets, written; and weights, at least 0.
    """
    count = rows.shape[1]
    mine, made = rows[column], 0
    for i in range(count):
        x = seed + np.uint64(i + 1) * _STEP
        x = (x ^ (x >> np.uint64(30))) * _FIRST
        x = (x ^ (x >> np.uint64(27))) * _SECOND
        j = np.int64((x ^ (x >> np.uint64(31))) % np.uint64(count))
        p, r = mine[i], mine[j]
        if p == r:
            continue
        change = 0.0
        for t in range(len(others)):
            q, s = rows[others[t], i], rows[others[t], j]
            if q != s:
                at_p, at_r = origins[t] + p * strides[t, 0], origins[t] + r * strides[t, 0]
                at_q, at_s = q * strides[t, 1], s * strides[t, 1]
                change += weights[at_p + at_q] * (0.5 - beyond[at_p + at_q])
                change += weights[at_r + at_s] * (0.5 - beyond[at_r + at_s])
                change += weights[at_r + at_q] * (0.5 + beyond[at_r + at_q])
                change += weights[at_p + at_s] * (0.5 + beyond[at_p + at_s])
        if change < -1e-9:
            made += 1
            mine[i], mine[j] = r, p
            for t in range(len(others)):
                q, s = rows[others[t], i], rows[others[t], j]
                if q != s:
                    at_p, at_r = origins[t] + p * strides[t, 0], origins[t] + r * strides[t, 0]
                    at_q, at_s = q * strides[t, 1], s * strides[t, 1]
                    beyond[at_p + at_q] -= 1.0
                    beyond[at_r + at_s] -= 1.0
                    beyond[at_r + at_q] += 1.0
                    beyond[at_p + at_s] += 1.0
    return made
