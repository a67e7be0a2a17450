"""Local search on rows of yes/no columns: signs are turned where that brings sums of products nearer."""

import numpy as np
import numpy.typing as npt

from queries.arrays import Floats, Integers
from smalldb.kernels.compiling import kernel

Signs = npt.NDArray[np.int8]

_FULL = 1 << 21  # of a pull: 512 of them, each with a sign, fit 32 bits


@kernel
def turn(
    signs: Signs, beyond: Floats, weights: Floats, threshold: float, first: int, starts: Integers
) -> int:
    """
    Offer each row the turning of each of its signs; return how many were turned.

    With s the row, a turn of sign c changes the sum over q of weight_cq beyond_cq^2 by
    -4 times the sum of weight_cq (beyond_cq s_c s_q - 1). It is made where that lowers the sum by more than
    `threshold` times the most that any row could. Of the signs of one column at most one is -1: that one is
    turned, or another one, or both, whichever lowers the sum most. Pulls are rounded to 21 bits of twice the
    largest, so that sums are exact. Cost: rows times the square of the signs.
    """
    rows, columns = signs.shape
    widest = 0
    for column in range(len(starts) - 1):
        widest = max(widest, starts[column + 1] - starts[column])
    pulls, made = np.zeros((widest, columns), dtype=np.int32), 0
    least, gains = np.zeros(widest), np.zeros(widest)
    for column in range(len(starts) - 1):
        low, many = starts[column], starts[column + 1] - starts[column]
        largest = 0.0
        for j in range(many):
            own, most = 0.0, 0.0
            for q in range(columns):
                pull = weights[low + j, q] * abs(beyond[low + j, q])
                own, most, largest = own + weights[low + j, q], most + pull, max(largest, pull)
            least[j] = own + threshold * most
        if largest == 0.0:
            continue
        unit = 2.0 * largest / _FULL
        for j in range(many):
            least[j] /= unit
            for q in range(columns):
                pulls[j, q] = round(weights[low + j, q] * beyond[low + j, q] / unit)
        for k in range(rows):
            i = k + first if k + first < rows else k + first - rows
            held, best, other = -1, 0.0, -1
            for j in range(many):
                total = np.int32(0)
                for q in range(columns):
                    total += pulls[j, q] * np.int32(signs[i, q])
                gains[j] = total * signs[i, low + j] - least[j]
                if signs[i, low + j] < 0:
                    held = j
            given = gains[held] if held >= 0 else 0.0
            best = max(0.0, given)
            for j in range(many):
                if j != held and given + gains[j] > best:
                    best, other = given + gains[j], j
            if best == 0.0:
                continue
            for j in (held, other):
                if j < 0:
                    continue
                made += 1
                c = low + j
                for q in range(columns):
                    if q != c:
                        beyond[c, q] -= 2.0 * signs[i, c] * signs[i, q]
                        beyond[q, c] = beyond[c, q]
                        pulls[j, q] = round(min(max(weights[c, q] * beyond[c, q] / unit, -_FULL), _FULL))
                signs[i, c] = -signs[i, c]
    return made
