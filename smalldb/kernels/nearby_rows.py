"""Rows near to a distribution: rounding in groups, exchanged categories, replaced rows, turned signs."""

import numpy as np
import numpy.typing as npt

from queries.arrays import Codes, Floats, Integers, Words
from smalldb.kernels.compiling import kernel

Signs = npt.NDArray[np.int8]

_FULL = 1 << 21  # of a pull: 512 of them, each with a sign, fit 32 bits


# Proof: docs/proofs/rounds.md, lemma 9.
@kernel
def refine(
    context: Codes, group: Codes, table: Floats, starts: Integers, words: Words, offsets: Floats
) -> None:
    """Replace each row's coarse group by a finer one inside it: counts are met to within one row."""
    # Of the s rows that agree in context and coarse group, one gets the fine group at each of the
    # shares (i + offset) / s of their weights, i from 0 to s - 1, in an order that the words make
    # uniformly random. Where all weights are 0, every row gets the last.
    coarse = len(starts) - 1
    sizes = np.zeros((len(table), coarse), np.int64)
    for row in range(len(context)):
        sizes[context[row], group[row]] += 1
    chosen, next_one, at = np.empty(len(context), np.int32), np.zeros(sizes.shape, np.int64), 0
    for c in range(len(table)):
        for g in range(coarse):
            size, first, last = sizes[c, g], starts[g], starts[g + 1] - 1
            span = 0.0
            for f in range(first, last + 1):
                span += table[c, f]
            fine, past = first, table[c, first]
            for i in range(size):
                wanted = (i + offsets[c, g]) / size * span
                while past <= wanted and fine < last:
                    fine += 1
                    past += table[c, fine]
                # a share that was rounded up to 1 is past all weights
                while span > 0.0 and table[c, fine] == 0.0:
                    fine -= 1
                chosen[at + i] = fine
            for i in range(size - 1, 0, -1):
                j = np.int64(words[at + i] % np.uint64(i + 1))
                chosen[at + i], chosen[at + j] = chosen[at + j], chosen[at + i]
            next_one[c, g] = at
            at += size
    for row in range(len(context)):
        c, g = context[row], group[row]
        group[row] = chosen[next_one[c, g]]
        next_one[c, g] += 1


@kernel
def swap(
    rows: Codes,
    column: int,
    others: Integers,
    origins: Integers,
    strides: Integers,
    beyond: Floats,
    weights: Floats,
    partners: Integers,
) -> int:
    """Offer each row an exchange of its category with another row's; return how many were made."""
    # An exchange is made where it lowers the sum over the cells of all tables of weight times (count -
    # target) squared. The table of the column, at code p, and another one, at code q, has its cell at
    # ``origin + p stride_p + q stride_q``. Cost: rows times tables of the column.
    count = rows.shape[1]
    mine, swaps = rows[column], 0
    for i in range(count):
        j = partners[i]
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
            swaps += 1
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
    return swaps


@kernel
def replace_rows(
    rows: Codes, pool: Codes, picks: Integers, tables: Integers, beyond: Floats, weights: Floats
) -> int:
    """Offer each row the place to another one of a pool; return how many were replaced."""
    # A replacement is made where it lowers the sum over the cells of all tables of weight times (count -
    # target) squared. Of a table: its two columns, where its cells begin, and how long its rows are.
    replaced = 0
    for i in range(rows.shape[1]):
        change, pick = 0.0, picks[i]
        for t in range(len(tables)):
            a, b, origin, stride = tables[t]
            old, new = (
                origin + rows[a, i] * stride + rows[b, i],
                origin + pool[a, pick] * stride + pool[b, pick],
            )
            if old != new:
                change += weights[old] * (0.5 - beyond[old]) + weights[new] * (0.5 + beyond[new])
        if change < -1e-9:
            replaced += 1
            for t in range(len(tables)):
                a, b, origin, stride = tables[t]
                beyond[origin + rows[a, i] * stride + rows[b, i]] -= 1.0
                beyond[origin + pool[a, pick] * stride + pool[b, pick]] += 1.0
            for c in range(len(rows)):
                rows[c, i] = pool[c, pick]
    return replaced


@kernel
def turn(
    signs: Signs, beyond: Floats, weights: Floats, threshold: float, first: int, starts: Integers
) -> int:
    """Offer each row the turning of each of its signs; return how many were turned."""
    # With s the row, a turn of sign c changes the sum over q of weight_cq beyond_cq^2 by -4 times the sum
    # of weight_cq (beyond_cq s_c s_q - 1). It is made where that lowers the sum by more than `threshold`
    # times the most that any row could. Of the signs of one column at most one is -1: that one is turned,
    # or another one, or both. Pulls are rounded to 21 bits of twice the largest, so that sums are exact.
    rows, columns = signs.shape
    widest = 0
    for column in range(len(starts) - 1):
        widest = max(widest, starts[column + 1] - starts[column])
    pulls, turned = np.zeros((widest, columns), dtype=np.int32), 0
    least, gains = np.zeros(widest), np.zeros(widest)
    for column in range(len(starts) - 1):
        low, many = starts[column], starts[column + 1] - starts[column]
        largest = 0.0
        for j in range(many):
            weight, most = 0.0, 0.0
            for q in range(columns):
                pull = weights[low + j, q] * abs(beyond[low + j, q])
                weight, most, largest = weight + weights[low + j, q], most + pull, max(largest, pull)
            least[j] = weight + threshold * most
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
            gain = gains[held] if held >= 0 else 0.0
            best = max(0.0, gain)
            for j in range(many):
                if j != held and gain + gains[j] > best:
                    best, other = gain + gains[j], j
            if best == 0.0:
                continue
            for j in (held, other):
                if j < 0:
                    continue
                turned += 1
                c = low + j
                for q in range(columns):
                    if q != c:
                        beyond[c, q] -= 2.0 * signs[i, c] * signs[i, q]
                        beyond[q, c] = beyond[c, q]
                        pulls[j, q] = round(min(max(weights[c, q] * beyond[c, q] / unit, -_FULL), _FULL))
                signs[i, c] = -signs[i, c]
    return turned
