"""Local search on the rows of a wide table: two rows exchange categories of a column where that helps."""

from queries.arrays import Codes, Floats, Integers
from smalldb.kernels.compiling import kernel


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
    mine, made = rows[column], 0
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
