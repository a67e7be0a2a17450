"""Local search on rows of yes/no columns: signs are turned where that brings sums of products nearer."""

import numpy as np
import numpy.typing as npt

from queries.arrays import Floats
from smalldb.kernels.compiling import kernel

Signs = npt.NDArray[np.int8]

_FULL = 1 << 21  # of a pull: 512 of them, each with a sign, fit 32 bits


@kernel
def turn(signs: Signs, beyond: Floats, weights: Floats, threshold: float, first: int) -> int:
    """
    Offer each row the turning of each of its signs; return how many were turned.

    With s the row, a turn of column c changes the sum over q of weight_cq beyond_cq^2 by
    -4 times the sum of weight_cq (beyond_cq s_c s_q - 1). It is made where that lowers the sum by more than
    `threshold` times the most that any row could. Pulls are rounded to 21 bits of twice the largest, so that
    sums are exact. Cost: rows times the square of the columns.

    Parameters
    ----------
    signs
        Shape (rows, C), 1 or -1, C at most 512; written. Column 0 is all 1 and stays.
    beyond
        Shape (C, C), symmetric, 0 on the diagonal: sums over the rows of products of two signs, less what
        they are to be; written.
    weights
        Of the same shape, symmetric, at least 0, and 0 on the diagonal.
    threshold
        From 0 to 1.
    first
        The row that is looked at first; 0 to rows - 1.
    """
    rows, columns = signs.shape
    pulls, made = np.zeros(columns, dtype=np.int32), 0
    for c in range(1, columns):
        own, most, largest = 0.0, 0.0, 0.0
        for q in range(columns):
            pull = weights[c, q] * abs(beyond[c, q])
            own, most, largest = own + weights[c, q], most + pull, max(largest, pull)
        if largest == 0.0:
            continue
        unit = 2.0 * largest / _FULL
        least = (own + threshold * most) / unit
        for q in range(columns):
            pulls[q] = round(weights[c, q] * beyond[c, q] / unit)
        for k in range(rows):
            i = k + first if k + first < rows else k + first - rows
            total = np.int32(0)
            for q in range(columns):
                total += pulls[q] * np.int32(signs[i, q])
            if total * signs[i, c] > least:
                made += 1
                for q in range(columns):
                    if q != c:
                        beyond[c, q] -= 2.0 * signs[i, c] * signs[i, q]
                        beyond[q, c] = beyond[c, q]
                        pulls[q] = round(min(max(weights[c, q] * beyond[c, q] / unit, -_FULL), _FULL))
                signs[i, c] = -signs[i, c]
    return made
