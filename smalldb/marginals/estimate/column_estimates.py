"""Reading of released columns: smoothed where they are ordered, shrunk, and reconciled with wider tables."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.measuring import NoisyTable

WIDTHS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # of the kernel that smooths
MOST_ROWS = 1 << 40  # that a total is read as: no table has more, where their number is private
FEW = 8  # categories that are not smoothed
POWERS = (0.5, 1.0, 1.5, 2.0)
_LEAST_SIGNAL = 0.02  # of the noise, what a table is taken to tell at least
_FAR = 3.0  # deviations beyond which a category stands on its own
_PASSES = 4
_LEAST = 1e-200  # a variance
_PRICE = 8.0  # variances that such a category costs, for having been picked
_NO_NOISE = 1e-9  # a variance that stands for none
_RARE = 1e-3  # of the variance of noise, what a category that was read as 0 is taken to have
_FLOOR = 1e-6  # of an equal share, what a category is expected to hold at least


def pooled(values: ArrayLike, variances: ArrayLike) -> tuple[Floats, Floats]:
    """Average independent measurements, by their precisions."""
    weights = 1 / np.maximum(np.asarray(variances, dtype=np.float64), _LEAST)
    precision = weights.sum(axis=0)
    divisor = np.where(precision > 0, precision, 1.0)
    means = np.asarray((weights * np.asarray(values, dtype=np.float64)).sum(axis=0) / divisor)
    return means, np.where(precision > 0, 1 / divisor, np.inf)


def read_margins(tables: Sequence[NoisyTable], column: int) -> NoisyTable:
    """Return what released tables tell of a column's counts: means by their precisions, rounded."""
    sums, variances = list[Floats](), list[float]()
    having = [table for table in tables if any(c == column for c, _ in table.scope)]
    for table in having:
        axis = [c for c, _ in table.scope].index(column)
        others = tuple(a for a in range(table.counts.ndim) if a != axis)
        sums.append(table.counts.sum(axis=others, dtype=np.float64))
        variances.append(table.variance * table.counts.size / table.counts.shape[axis])
    counts, variance = pooled(sums, np.array(variances)[:, None])
    rounded = np.rint(counts).astype(np.int64)
    return NoisyTable(((column, 0),), rounded, Fraction(0), having[0].noise, float(variance[0]))


def pairs_within(table: NoisyTable) -> list[NoisyTable]:
    """Return what a table tells of each pair of its columns: itself, if it is of two."""
    pairs = []
    for pair in combinations(range(table.counts.ndim), 2):
        counts = table.counts.sum(axis=tuple(a for a in range(table.counts.ndim) if a not in pair))
        variance = table.variance * table.counts.size / counts.size
        scope = tuple(table.scope[a] for a in pair)
        pairs.append(replace(table, scope=scope, counts=counts, variance=variance))
    return pairs


def pooled_total(columns: Sequence[NoisyTable]) -> int:
    """Return the number of rows that all measured columns together tell: from 1 to `MOST_ROWS`."""
    sums = [part.counts.sum(dtype=float) for part in columns]
    return bounded_total(float(pooled(sums, [part.variance * part.counts.size for part in columns])[0]))


def bounded_total(rows: float) -> int:
    """Return a number of rows that was read from released counts, at least 1 and at most `MOST_ROWS`."""
    return max(1, min(MOST_ROWS, round(rows)))


def read_column(counts: Integers | Floats, variance: float, total: int, ordered: bool) -> Floats:
    """
    Return expected counts of a column's categories, at least 0 and `total` in all, from its released counts.

    Ordered columns are smoothed by the normal kernel of the width that has the least estimated risk (Stein);
    categories that stand out by more than three deviations stay as they were seen. Then all are shifted alike
    and cut at 0 (the nearest point of the simplex), which removes noise where categories are rare.
    """
    from scipy.ndimage import gaussian_filter1d

    seen = counts.astype(np.float64)
    best, least = seen, 2 * variance * len(seen)
    if ordered and len(seen) >= FEW:
        for width in WIDTHS:
            self_weights = _self_weights(len(seen), width)
            smooth, alone = seen, np.zeros(len(seen), dtype=bool)
            for _ in range(_PASSES):
                smooth = gaussian_filter1d(np.where(alone, smooth, seen), width, mode="nearest")
                alone = np.abs(seen - smooth) > _FAR * variance**0.5
            estimate = np.where(alone, seen, smooth)
            freedom = np.where(alone, 1 + _PRICE / 2, self_weights).sum()
            risk = float(((seen - estimate) ** 2).sum() + 2 * variance * freedom)
            if risk < least:
                best, least = estimate, risk
    return on_simplex(best, total)


def _self_weights(size: int, width: float) -> Floats:
    """Return what the kernel gives each of `size` categories of its own count: more at both ends."""
    from scipy.ndimage import gaussian_filter1d

    reach = int(4 * width + 0.5)  # where scipy cuts the kernel off
    weights = gaussian_filter1d(np.eye(1, 2 * reach + 1, reach)[0], width, mode="constant")
    self_weights = np.full(size, weights[reach])
    self_weights[[0, -1]] = weights[reach:].sum()
    return self_weights


def on_simplex(values: Floats, total: float) -> Floats:
    """Return the nearest values that are at least 0 and sum to `total`, above 0."""
    return np.asarray(np.maximum(values - shifts_to(values[None, :], np.array([total]))[0], 0.0))


def shifts_to(slices: Floats, sums: Floats) -> Floats:
    """Return what each row of numbers is lowered by, so that those that stay above 0 have its sum."""
    ranked = np.sort(slices, axis=1)[:, ::-1]
    shifts = (np.cumsum(ranked, axis=1) - sums[:, None]) / np.arange(1, slices.shape[1] + 1)
    # the first is above its shift, but for a sum of 0, or for rounding where values are huge
    last = np.where(ranked > shifts, np.arange(slices.shape[1]), 0).max(axis=1)
    return np.asarray(np.take_along_axis(shifts, last[:, None], axis=1)[:, 0])


def reconciled(
    read: Sequence[Floats],
    columns: Sequence[NoisyTable],
    groupings: Sequence[Grouping],
    tables: Sequence[NoisyTable],
    total: int,
    among: Iterable[int] | None = None,
) -> dict[int, Floats]:
    """
    Return expected counts of columns by category: of least variance, given what wider tables say of groups.

    A category that was read as r, with noise of variance v, is taken to have the variance v r^2 / (r^2 + v):
    a count of at least 0 that is small in what was read is hardly off by more than noise, nor by more than
    itself.
    """
    by_column, having = {}, dict[int, list[NoisyTable]]()
    for table in tables:
        for c, _ in table.scope:
            having.setdefault(c, []).append(table)
    for c in range(len(read)) if among is None else among:
        grouping, values = groupings[c], read[c][groupings[c].order]
        noise = max(columns[c].variance, _NO_NOISE)
        squares = np.maximum(values**2, _RARE * noise)
        sums = [_sums(table, c) for table in having.get(c, [])]
        values = least_variance(values, noise * squares / (squares + noise), grouping, sums, total)
        values = np.maximum(values, _FLOOR * total / len(values))
        expected = np.empty_like(values)
        expected[grouping.order] = values * (total / values.sum())
        by_column[c] = expected
    return by_column


def _sums(table: NoisyTable, column: int) -> tuple[int, Floats, float]:
    """Return the level of a column's groups in a table, what it says of each, and the variance of that."""
    axis = [c for c, _ in table.scope].index(column)
    sums = table.counts.sum(axis=tuple(a for a in range(table.counts.ndim) if a != axis), dtype=np.float64)
    return table.scope[axis][1], sums, max(table.variance, _NO_NOISE) * (table.counts.size / len(sums))


def least_variance(
    values: Floats,
    variances: Floats,
    grouping: Grouping,
    sums: Sequence[tuple[int, Floats, float]],
    total: float,
    exactly: bool = False,
) -> Floats:
    """Return the values at least 0, `total` in all, that are nearest to all measurements by their precisions.

    Groups are nested. So on the way up, from categories to coarser and coarser groups, what a level says is
    averaged with the sums of what stands below. On the way down, what a group holds beyond the sum of its
    parts is shared by these in proportion to their variances (as in Hay, Rastogi, Miklau and Suciu 2010).
    """
    means, spreads = [values], [variances]  # from the finest level to coarser ones
    for level in range(grouping.finest, 0, -1):
        if level < grouping.finest:
            starts = grouping.inside(level, level + 1)
            means.append(np.add.reduceat(means[-1], starts))
            spreads.append(np.add.reduceat(spreads[-1], starts))
        here = [(groups, np.full(len(groups), variance)) for at, groups, variance in sums if at == level]
        if here:
            counts, of_counts = zip((means[-1], spreads[-1]), *here, strict=True)
            means[-1], spreads[-1] = pooled(counts, of_counts)
    held = np.array([total], dtype=np.float64)
    for level in range(1, grouping.finest + 1):
        mean, spread = means.pop(), spreads.pop()
        starts = grouping.inside(level - 1, level)
        parents = grouping.parents(level - 1, level)
        if exactly:
            held = _parts(mean, spread, held, starts, parents)
        else:
            beyond = (held - np.add.reduceat(mean, starts)) / np.add.reduceat(spread, starts)
            held = np.maximum(mean + spread * beyond[parents], 0.0)
    return held


def _parts(mean: Floats, spread: Floats, held: Floats, starts: Integers, parents: Integers) -> Floats:
    """Return the nearest values at least 0, by their variances, that add up to what each group holds.

    Those that come out below 0 are 0, and the others share anew (Michelot 1986).
    """
    left = np.ones(len(mean), dtype=bool)
    while True:
        weights = np.where(left, spread, 0.0)
        sums = np.add.reduceat(weights, starts)
        beyond = held - np.add.reduceat(np.where(left, mean, 0.0), starts)
        shift = np.divide(beyond, sums, out=np.zeros_like(sums), where=sums > 0)
        values = np.where(left, mean + weights * shift[parents], 0.0)
        if (values >= 0).all():
            return values
        left &= values >= 0


def without_margins(table: Floats) -> Floats:
    """Return a table less what its sums along each axis say of it: of two columns, their interaction."""
    centre, axes = table.mean(), range(table.ndim)
    margins = [table.mean(axis=tuple(a for a in axes if a != axis), keepdims=True) - centre for axis in axes]
    return np.asarray(table - centre - sum(margins))


def signal(beyond: Floats, expected: Floats, noise: float) -> Floats:
    """Return the prior variance of what each cell of a table holds beyond what was expected.

    It is c expected^p: p is the likeliest of `POWERS`, c is estimated by moments. Cells that stand out by
    more than three deviations of the noise stand on their own.
    """
    freedom = beyond.size - 1 - sum(size - 1 for size in beyond.shape)
    above_noise = max(float((beyond**2).sum()) - noise * freedom, _LEAST_SIGNAL * noise * beyond.size)
    best, likeliest = expected, -np.inf
    for power in POWERS:
        heights = expected**power
        variance = heights * (above_noise / float(heights.sum()))
        both = variance + noise
        likelihood = -float((np.log(both) + beyond**2 / both).sum())
        if likelihood > likeliest:
            best, likeliest = variance, likelihood
    return np.maximum(best, beyond**2 - _FAR**2 * noise)


# Proof: docs/proofs/rounds.md, lemma 3.
def whole(predicted: Floats, total: int) -> Integers:
    """Return predictions as integers from 0 to the total: no score overflows, whatever is predicted."""
    return np.rint(np.clip(np.nan_to_num(predicted, nan=0.0), 0.0, total)).astype(np.int64)
