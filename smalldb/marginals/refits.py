"""
Several tables from one payment: the model is fitted again and again to what was released, with fresh noise.

Each table is drawn from a fit to the released numbers with noise of the same distribution added once more.
So tables differ from the first fit as that one differs from the data: what is linear in the measured counts
has the spread of its least-squares estimate. Where counts are far above 0, that is the distribution of the
data given what was released, by a flat prior. All of it is post-processing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import prod, sqrt
from typing import Self, TypeAlias

import numpy as np

from queries import Domain
from queries.arrays import Codes, Floats, Integers
from smalldb.exact.bits import bit_source
from smalldb.marginals.estimate.column_estimates import least_variance, pooled, shifts_to, without_margins
from smalldb.marginals.estimate.grouping import Grouping, nested
from smalldb.marginals.estimate.junction import Scope, Tree, build
from smalldb.marginals.estimate.modelling import (
    Fixed,
    Model,
    cells_of,
    factor_of_column,
    fitted_to,
    scopes_of,
    zeros_of,
)
from smalldb.marginals.estimate.proportional_fitting import Factor
from smalldb.marginals.strategies.strategy import MEMORY
from smalldb.marginals.universe import Rule
from smalldb.mechanisms import Dependence, Marginal, Measurement

FIRST_SWEEPS = 100
SWEEPS = 25  # of a fit, from the coefficients of the first
CLOSE = 0.01  # of the deviation of noise: sweeps end when they change counts by less
RIDGE = 0.01  # the same: what the ridge of a cell is; only where noise contradicts itself does it decide
LOW = 0.5  # deviations of noise: released counts below may be of cells that hold next to nothing
WIDER = 1.25  # times the noise that is added to these: being cut at 0 takes a part of it away again
RARE = 3.0  # deviations of noise: of categories with fewer rows, intervals are too narrow
_NO_NOISE = 1e-9  # a variance that stands for none
_FLOOR = 1e-6  # of an equal share, what a category is expected to hold at least
_ColumnSums: TypeAlias = list[list[tuple[int, Floats, float]]]
"""Of each column what tables tell of it: levels, counts by groups, and their variance."""

PASSES = 30
EMPTY = "three or more columns were measured together, and most of their cells hold fewer rows than noise"
NO_ROWS = 0.01  # rows: a change of all cells of a slice that is of no account


# Proof: docs/proofs/refits.md, lemma 1.
def nearest_table(table: Floats, margins: Sequence[Floats]) -> Floats:
    """Return the nearest table by the sum of squares whose cells are at least 0 and which has given margins.

    Cells are shifted, all of a slice alike, and cut at 0: what the cut adds is taken from all cells of the
    slice, small ones too. (Scaling slices to their sums would take it from the large ones, and so make what
    columns tell of each other seem less than it is.)

    `margins` are for each axis the sums of its slices, at least 0, with one total.

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
        if moved < NO_ROWS:
            break
    return np.asarray(np.maximum(table, 0.0))


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
    adjusted = list(tables)
    for pair in combinations(range(len(adjusted)), 2):
        common = [min(levels) for levels in zip(*([k for _, k in scopes[i]] for i in pair), strict=True)]
        sums, sizes = [], []
        for i in pair:
            counts, cells = adjusted[i], np.ones(adjusted[i].shape)
            for axis, ((c, fine), coarse) in enumerate(zip(scopes[i], common, strict=True)):
                starts = groupings[c].inside(coarse, fine)
                counts, cells = (np.add.reduceat(each, starts, axis=axis) for each in (counts, cells))
            sums.append(counts)
            sizes.append(cells)
        both, _ = pooled(sums, [variances[i] * cells for i, cells in zip(pair, sizes, strict=True)])
        for i, counts, cells in zip(pair, sums, sizes, strict=True):
            parents = [groupings[c].parents(k, fine) for (c, fine), k in zip(scopes[i], common, strict=True)]
            adjusted[i] = adjusted[i] + ((both - counts) / cells)[np.ix_(*parents)]
    return adjusted


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """One published table."""

    # which one, and where its values begin
    measurement: int
    start: int
    shape: tuple[int, ...]  # as they are published
    takes: tuple[Integers, ...]  # of each axis, the published group of each group of the grouping
    scope: Scope  # its columns and levels
    variance: float  # of the noise of a cell

    def counts(self, values: Sequence[Floats]) -> Floats:
        """Return its counts, of the values of all measurements."""
        numbers = values[self.measurement][self.start : self.start + prod(self.shape)].reshape(self.shape)
        return numbers[np.ix_(*self.takes)]

    def sums(self, counts: Floats, axis: int) -> tuple[int, Floats, float]:
        """Return the level of a column, its counts by groups, and their variance."""
        sums = counts.sum(axis=tuple(a for a in range(counts.ndim) if a != axis))
        return self.scope[axis][1], sums, self.variance * counts.size / len(sums)


# Proof: docs/proofs/refits.md, lemma 1.
@dataclass(frozen=True, slots=True, eq=False)
class Refits:
    """A model of published tables, and how it is fitted anew."""

    measurements: tuple[Measurement, ...]  # as published
    total: int  # the number of rows
    # of all columns: each level is a set of groups in which some table was measured
    groupings: tuple[Grouping, ...]
    tables: tuple[_Table, ...]  # all that were measured
    inside: tuple[int, ...]  # the numbers of the tables of two and more columns that are in the model
    # pairs of columns of the others, for which the model has no room, unless one that it has is of both: of
    # these nothing but single columns is told
    left_out: tuple[tuple[int, int], ...]
    fixed: tuple[Fixed, ...]  # the factors of the rules
    tree: Tree  # the junction tree of the model

    @classmethod
    def of(
        cls,
        domain: Domain,
        measurements: Sequence[Measurement],
        total: int,
        rules: Sequence[Rule] | None = None,
        known: int = 0,
    ) -> Self | None:
        """Lay out the model; tables come into it in the order of measuring, as long as there is room.

        `rules` are those of the domain, if they are not given; so many first columns are `known`.
        None: something else than tables was measured, or in groups that are not nested.
        """
        parts = [
            (number, part)
            for number, each in enumerate(measurements)
            for part in each.of
            if not isinstance(part, Dependence)  # one number, of all pairs together
        ]
        marginals = [(number, part) for number, part in parts if isinstance(part, Marginal)]
        groupings = _groupings(domain, [part for _, part in marginals])
        if groupings is None or len(marginals) < len(parts):
            return None
        tables, starts = list[_Table](), [0] * len(measurements)
        for number, part in marginals:
            variance = max(measurements[number].noise.variance(), _NO_NOISE)
            tables.append(_table(number, starts[number], part, groupings, variance))
            starts[number] += part.size
        if rules is None:
            rules = [(rule.columns, rule.allowed) for rule in domain.rules]
        fixed = zeros_of(rules, groupings)
        least = cells_of([], groupings, fixed, known)
        scopes, inside = list[Scope](), list[int]()
        for number, table in enumerate(tables):
            if (
                len(table.scope) > 1
                and cells_of([*scopes, table.scope], groupings, fixed, known) <= MEMORY + least
            ):
                scopes.append(table.scope)
                inside.append(number)
        modelled = _pairs(scopes)
        left_out = [pair for pair in _pairs(table.scope for table in tables) if pair not in modelled]
        tree = build(scopes_of(range(len(groupings)), groupings, scopes, fixed), groupings, known)
        published = tuple(measurements), total, tuple(groupings), tuple(tables)
        return cls(*published, tuple(inside), tuple(left_out), fixed, tree)

    @property
    def suitable(self) -> bool:
        """Whether all tables of more than two columns fill their cells."""
        return all(
            len(table.scope) < 3 or fills_cells(self.total, prod(table.shape), table.variance)
            for table in self.tables
        )

    def draws(self, seed: int) -> Iterator[Integers]:
        """Yield tables without end: categories, shape (total, C)."""
        first = self.fitted(self._released(), (), FIRST_SWEEPS)
        coins = bit_source(seed)
        while True:
            values = [noisier(each, each.noise.draw(len(each.values), coins)) for each in self.measurements]
            model = self.fitted(values, first.coefficients, SWEEPS)
            rows: Codes = model.rows(self.total, coins.bits(64))
            yield rows.T.astype(np.int64)

    def rare(self) -> tuple[tuple[int, ...], ...]:
        """Return of each column the categories whose rows are hardly more than noise, or fewer."""
        of_columns, by_column = [], self._column_sums(self._released())
        for grouping, counts, sums in zip(self.groupings, self._columns(by_column), by_column, strict=True):
            variances = (variance for level, _, variance in sums if level == grouping.finest)
            least = RARE * min(variances, default=float(self.total) ** 2) ** 0.5
            of_columns.append(tuple(sorted(grouping.order[counts < least].tolist())))
        return tuple(of_columns)

    def _released(self) -> list[Floats]:
        """Return the values of all measurements, as they are published."""
        return [each.values.astype(np.float64) for each in self.measurements]

    def _column_sums(self, values: Sequence[Floats]) -> _ColumnSums:
        """Return what all tables tell of each column."""
        by_column: _ColumnSums = [[] for _ in self.groupings]
        for table in self.tables:
            counts = table.counts(values)
            for axis, (c, _) in enumerate(table.scope):
                by_column[c].append(table.sums(counts, axis))
        return by_column

    def _columns(self, by_column: _ColumnSums) -> list[Floats]:
        """Return expected counts of the categories of each column, in the order of its grouping."""
        expected = []
        for grouping, of_column in zip(self.groupings, by_column, strict=True):
            size, finest = len(grouping.order), grouping.finest
            unknown = np.full(size, self.total / size), np.full(size, float(self.total) ** 2)
            whole = [unknown, *((sums, np.full(size, v)) for level, sums, v in of_column if level == finest)]
            means, variances = pooled(*zip(*whole, strict=True))
            coarser = [sums for sums in of_column if sums[0] < finest]
            counts = least_variance(means, variances, grouping, coarser, self.total, exactly=True)
            counts = np.maximum(counts, _FLOOR * self.total / size)
            expected.append(counts * (self.total / counts.sum()))
        return expected

    def fitted(self, values: Sequence[Floats], start: Sequence[Floats], sweeps: int) -> Model:
        """Fit the model to released numbers: columns first, then tables that have these margins."""
        columns, total = self._columns(self._column_sums(values)), self.total
        factors = [factor_of_column(counts, total) for counts in columns]
        beside = defaultdict[tuple[int, ...], list[int]](list)
        for number, table in enumerate(self.tables):
            beside[tuple(c for c, _ in table.scope)].append(number)
        wanted = dict[int, Floats]()
        for numbers in beside.values():
            same = [self.tables[number] for number in numbers]
            seen = [self._seen(table, values, columns) for table in same]
            scopes, variances = [table.scope for table in same], [table.variance for table in same]
            wanted |= zip(numbers, agreeing(seen, scopes, variances, self.groupings), strict=True)
        least = float(total)
        for number in self.inside:
            table, deviation = self.tables[number], self.tables[number].variance ** 0.5
            held = nearest_table(wanted[number], self._margins(table, columns))
            factors.append(Factor(np.zeros(held.shape), (held, np.full(held.shape, RIDGE * deviation))))
            least = min(least, deviation)
        factors += [Factor(weights, None) for _, weights in self.fixed]
        return fitted_to(self.tree, factors, total, start, sweeps, CLOSE * least / total)

    def _margins(self, table: _Table, columns: Sequence[Floats]) -> list[Floats]:
        """Return what columns say of the groups of a table."""
        return [np.add.reduceat(columns[c], self.groupings[c].starts[level]) for c, level in table.scope]

    def _seen(self, table: _Table, values: Sequence[Floats], columns: Sequence[Floats]) -> Floats:
        """Return the counts of a table with the margins of columns."""
        margins = [sums / self.total for sums in self._margins(table, columns)]
        independent = self.total * reduce(np.multiply.outer, margins)
        return independent + without_margins(table.counts(values) - independent)


def fills_cells(rows: int, cells: int, variance: float) -> bool:
    """Tell whether a table has, in the mean, at least as many rows in a cell as noise."""
    # where most cells of three columns are empty, being cut at 0 would hide what a table tells of pairs
    return rows >= cells * sqrt(variance)


def _pairs(scopes: Iterable[Scope]) -> dict[tuple[int, int], None]:
    """Return the pairs of columns of tables, each once, in order."""
    return dict.fromkeys(pair for scope in scopes for pair in combinations([c for c, _ in scope], 2))


def _groupings(domain: Domain, parts: Sequence[Marginal]) -> list[Grouping] | None:
    """Return groupings whose levels are all groups in which columns were measured; None: there are none."""
    partitions: list[list[tuple[int, ...]]] = [[] for _ in domain.sizes]
    for part in parts:
        for c, groups in zip(part.columns, part.groups, strict=True):
            partitions[c].append(groups)
    levels = [nested(size, of_column) for size, of_column in zip(domain.sizes, partitions, strict=True)]
    groupings = [each for each in levels if each is not None]
    return groupings if len(groupings) == len(levels) else None


def _table(number: int, start: int, part: Marginal, groupings: Sequence[Grouping], variance: float) -> _Table:
    """Lay out a published table; its groups may be numbered in any order."""
    scope, takes = list[tuple[int, int]](), list[Integers]()
    for c, groups, size in zip(part.columns, part.groups, part.shape, strict=True):
        grouping = groupings[c]
        level = next(k for k in range(grouping.finest + 1) if grouping.groups(k) == size)
        scope.append((c, level))
        takes.append(np.array(groups)[grouping.order[grouping.starts[level]]])
    return _Table(number, start, part.shape, tuple(takes), tuple(scope), variance)


def noisier(measurement: Measurement, noise: Integers) -> Floats:
    """Return the released values with noise added; that of low ones is wider."""
    low = measurement.values < LOW * measurement.noise.variance() ** 0.5
    return np.asarray(measurement.values + np.where(low, WIDER, 1.0) * noise)
