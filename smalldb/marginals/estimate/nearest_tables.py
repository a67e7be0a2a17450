"""The nearest tables that can be: counts at least 0, with given sums, that agree with each other."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from queries.arrays import Floats
from smalldb.marginals.estimate.column_estimates import pooled, shifts_to
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.estimate.junction import Scope

PASSES = 30
CLOSE = 0.01  # rows: a change of all cells of a slice that is of no account


# Proof: docs/proofs/refits.md, lemma 1.
def nearest_table(table: Floats, margins: Sequence[Floats]) -> Floats:
    """
    Return the nearest table by the sum of squares whose cells are at least 0 and which has given margins.

    Cells are shifted, all of a slice alike, and cut at 0: what the cut adds is taken from all cells of the
    slice, small ones too. (Scaling slices to their sums would take it from the large ones, and so make what
    columns tell of each other seem less than it is.)

    Parameters
    ----------
    table
        Any numbers.
    margins
        For each axis the sums of its slices, at least 0, with one total.

    Examples
    --------
    >>> nearest_table(np.array([[7.0, -1.0], [0.0, 4.0]]), [np.array([6.0, 4.0]), np.array([6.0, 4.0])])
    array([[6., 0.],
           [0., 4.]])
    """
    # The dual is climbed one axis at a time: cells are max(0, table - shifts of their slices).
    for _ in range(PASSES):
        moved = 0.0
        for axis, sums in enumerate(margins):
            slices = np.moveaxis(table, axis, 0).reshape(len(sums), -1)
            shifts = shifts_to(slices, sums)
            table = table - shifts.reshape([-1 if a == axis else 1 for a in range(table.ndim)])
            moved = max(moved, float(np.abs(shifts).max()))
        if moved < CLOSE:
            break
    found: Floats = np.maximum(table, 0.0)
    return found


# Proof: docs/proofs/refits.md, lemma 1.
def agreeing(
    tables: Sequence[Floats],
    scopes: Sequence[Scope],
    variances: Sequence[float],
    groupings: Sequence[Grouping],
) -> list[Floats]:
    """
    Return tables of the same columns that have the same sums over the groups that two of them have in common.

    These sums are the means by their precisions; what they change is shared by the cells of a group alike. Of
    two tables that is the estimate of least variance; of more, it is near to it.
    """
    found = list(tables)
    for pair in combinations(range(len(found)), 2):
        common = [min(levels) for levels in zip(*([k for _, k in scopes[i]] for i in pair), strict=True)]
        sums, sizes = [], []
        for i in pair:
            own, cells = found[i], np.ones(found[i].shape)
            for axis, ((c, fine), coarse) in enumerate(zip(scopes[i], common, strict=True)):
                starts = groupings[c].inside(coarse, fine)
                own, cells = (np.add.reduceat(each, starts, axis=axis) for each in (own, cells))
            sums.append(own)
            sizes.append(cells)
        both, _ = pooled(sums, [variances[i] * cells for i, cells in zip(pair, sizes, strict=True)])
        for i, own, cells in zip(pair, sums, sizes, strict=True):
            parents = [groupings[c].parents(k, fine) for (c, fine), k in zip(scopes[i], common, strict=True)]
            found[i] = found[i] + ((both - own) / cells)[np.ix_(*parents)]
    return found
