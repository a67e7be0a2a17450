"""What follows from released numbers alone: totals, groups, candidates, models, predictions and rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from queries.arrays import Codes, Floats, splitmix64
from queries.domain import Integers
from smalldb.marginals.counted_rows import CountedRows, count
from smalldb.marginals.estimate.column_estimates import (
    pooled,
    pooled_total,
    read_column,
    reconciled,
    signal,
    without_margins,
)
from smalldb.marginals.estimate.grouping import Grouping, halved
from smalldb.marginals.estimate.junction import Scope, cells
from smalldb.marginals.estimate.modelling import Fixed, Model, cells_of, fitted, zeros_of
from smalldb.marginals.estimate.packed_pairs import Candidates, PackedPairs, candidates, laid_out
from smalldb.marginals.estimate.proportional_fitting import CLOSE
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.strategies.strategy import TableStrategy

PREDICTING = 1 << 15  # rows of a model from which predictions are made; their seeds are public numbers
SAMPLE = 1 << 19  # rows of a model from which the last tables are read, at most
ENTRIES = 1 << 25  # of these rows, at most
PASSES = 5  # over the margins of a table
SWEEPS = 8  # of a fit between rounds, from the coefficients of the one before
LAST_SWEEPS = 300
LARGE = 1 << 16  # cells of a table that rows are not searched for

EXCHANGES = 24
WORK = 1 << 32  # cells that are looked at, at most
QUIET = 1 / 500  # of all offers: sweeps end when fewer exchanges are made
NEAR = 1 << 12  # rows behind a row, one of which it is offered an exchange with: they stay in the cache


# Proof: docs/proofs/rounds.md, lemma 7.
def moved(expected: Floats, tables: Sequence[NoisyTable], groups: Sequence[Sequence[Integers]]) -> Floats:
    """Move a table towards what was released of it; rows and columns keep their sums, about."""
    for table, (first, second) in zip(tables, groups, strict=True):
        shape = table.counts.shape
        coarse = np.zeros(shape)
        np.add.at(coarse, (first[:, None], second[None, :]), expected)
        wanted = np.maximum(shrunken(table, coarse), 0.0)
        ratio = np.divide(wanted, coarse, out=np.zeros(shape), where=coarse > 0)
        spread = expected * ratio[first[:, None], second[None, :]]
        # where nothing was expected, categories of a group share by their columns
        empty = np.where(coarse > 0, 0.0, wanted)
        if empty.any():
            rows, columns = expected.sum(axis=1), expected.sum(axis=0)
            row_shares = rows / np.maximum(np.bincount(first, rows, shape[0])[first], 1e-300)
            column_shares = columns / np.maximum(np.bincount(second, columns, shape[1])[second], 1e-300)
            spread += empty[first[:, None], second[None, :]] * np.outer(row_shares, column_shares)
        expected = fitted_margins(spread, expected.sum(axis=1), expected.sum(axis=0))
    return expected


def shrunken(table: NoisyTable, expected: Floats) -> Floats:
    """Return what a table holds beyond what was expected, less what of it is noise, and what was expected."""
    beyond, noise = without_margins(table.counts - expected), max(table.variance, 1e-9)
    prior = signal(beyond, np.maximum(expected, 1.0), noise)
    return np.asarray(expected + beyond * prior / (prior + noise))


def fitted_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale the rows and columns of a table in turn to given sums (iterative proportional fitting)."""
    for _ in range(PASSES):
        table = table * _ratio(rows, table.sum(axis=1))[:, None]
        table = table * _ratio(columns, table.sum(axis=0))
    return table


def _ratio(wanted: Floats, there: Floats) -> Floats:
    """Return what sums are to be multiplied by; 1 where nothing is there that could be."""
    return np.divide(wanted, there, out=np.ones_like(wanted), where=there > 1e-200)


def affordable(rows: int, tables: int) -> int:
    """Return how many sweeps over all rows there is time for."""
    return min(EXCHANGES, WORK // max(1, 8 * rows * tables))


def beyond_targets(
    rows: Codes, sizes: Sequence[int], targets: Mapping[tuple[int, int], Floats]
) -> tuple[Floats, Floats, dict[tuple[int, int], int]]:
    """Return what rows hold beyond targets in all cells, what each cell counts, and where tables start."""
    counted = CountedRows(rows.T, np.ones(rows.shape[1], dtype=np.int64))
    beyond = [counted.table((a, b), (sizes[a], sizes[b])) - target for (a, b), target in targets.items()]
    starts = accumulate((target.size for target in targets.values()), initial=0)
    return (
        np.concatenate([table.ravel() for table in beyond]),
        np.concatenate([1 / (target.ravel() + 1) for target in targets.values()]),
        dict(zip(targets, starts, strict=False)),
    )


# Proof: docs/proofs/rounds.md, lemma 7.
def exchanged(
    rows: Codes,
    sizes: Sequence[int],
    targets: Mapping[tuple[int, int], Floats],
    fixed: frozenset[int],
    sweeps: int,
    seed: int,
) -> Codes:
    """Return rows in which pairs of rows have exchanged categories of a column: columns keep their counts.

    Each exchange lowers the sum, over the cells of all tables, of (count - target)^2 / (target + 1).
    """
    from smalldb.kernels.nearby_rows import swap

    rows, count = np.array(rows, dtype=np.int32, order="C"), rows.shape[1]
    if not targets:
        return rows
    beyond, importance, origins = beyond_targets(rows, sizes, targets)
    beside: list[list[tuple[int, int, int, int]]] = [[] for _ in sizes]
    for (a, b), origin in origins.items():
        beside[a].append((b, origin, sizes[b], 1))
        beside[b].append((a, origin, 1, sizes[b]))
    tables = [np.array(some, dtype=np.int64).reshape(-1, 4) for some in beside]
    for sweep in range(sweeps):
        accepted = offered = 0
        for column, some in enumerate(tables):
            if len(some) and column not in fixed:
                sweep_seed = (seed + (sweep * len(tables) + column) * 0x1_0000_0001) % (1 << 64)
                behind = splitmix64(count, sweep_seed) % np.uint64(max(1, min(count - 1, NEAR)))
                partners = (np.arange(1, count + 1) + behind.astype(np.int64)) % count
                others, starts, strides = some[:, 0].copy(), some[:, 1].copy(), some[:, 2:].copy()
                accepted += swap(rows, column, others, starts, strides, beyond, importance, partners)
                offered += count
        if accepted < QUIET * offered:
            break
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What was released of the first columns of a universe, and of how many rows: public."""

    # codes of these columns by the law of the walk, shape (K, some): predictions are made from them
    walks: Integers
    rows: Integers  # those of the rows that are to be made, shape (K, rows)
    tables: tuple[NoisyTable, ...]  # of each of these columns, and then of pairs of them, at all categories
    total: int  # what all rows weigh together

    @property
    def columns(self) -> int:
        """How many columns are known."""
        return len(self.walks)

    @property
    def pairs(self) -> list[NoisyTable]:
        """The tables of two of them."""
        return [table for table in self.tables if len(table.scope) == 2]


@dataclass(frozen=True, slots=True, eq=False)
class Estimator:
    """What follows from the released columns: the total, the groupings and the candidates."""

    plan: TableStrategy  # the strategy: its universe, its memory and its public rows
    columns: tuple[NoisyTable, ...]  # what was released of each column, with all its categories
    total: int  # the number of rows, public or read from what was released
    read: tuple[Floats, ...]  # of each column, the expected counts of its categories
    groupings: tuple[Grouping, ...]  # of each column, by these counts
    fixed: tuple[Fixed, ...]  # the factors of the rules
    candidates: Candidates  # the tables that may be selected, and at which levels
    # of all candidates at all their levels, in the order of their scores: scopes, and how many cells
    names: tuple[Scope, ...]
    sizes: tuple[int, ...]
    least: int  # the cells of the model of columns and rules alone
    layout: Candidates | PackedPairs  # how the tables of the candidates are counted and scored
    # tables that the columns were read from: what their margins say is in `read`
    read_from: frozenset[NoisyTable] = frozenset()
    known: Known | None = None  # what is known of the first columns, and of how many rows; None: nothing

    # Proof: docs/proofs/rounds.md, lemma 7.
    @staticmethod
    def of(plan: TableStrategy, columns: tuple[NoisyTable, ...], known: Known | None = None) -> "Estimator":
        """Read the released columns."""
        if known is not None:
            total = known.total
        else:
            total = plan.rows if plan.law.replaced else pooled_total(columns)
        read = tuple(
            read_column(part.counts, part.variance, total, ordered)
            for part, ordered in zip(columns, plan.universe.ordered, strict=True)
        )
        groupings = tuple(
            halved(np.maximum(mass, 1e-6 * total), ordered)
            for mass, ordered in zip(read, plan.universe.ordered, strict=True)
        )
        fixed, chosen = zeros_of(plan.universe.rules, groupings), candidates(plan.universe, groupings)
        names = tuple(chosen.scopes())
        sizes = tuple(cells(name, groupings) for name in names)
        least = cells_of([], groupings, fixed)
        layout = laid_out(chosen)
        return Estimator(
            plan, columns, total, read, groupings, fixed, chosen, names, sizes, least, layout, known=known
        )

    @property
    def last(self) -> int:
        """How many columns are known: the model is of the others given these."""
        return 0 if self.known is None else self.known.columns

    def again(self, more: Sequence[NoisyTable]) -> "Estimator":
        """Return what follows from every column measured once more, too; groups and total stay."""
        both = [
            pooled([one.counts, other.counts], [[one.variance], [other.variance]])
            for one, other in zip(self.columns, more, strict=True)
        ]
        read = tuple(
            read_column(counts, variance.item(), self.total, ordered)
            for (counts, variance), ordered in zip(both, self.plan.universe.ordered, strict=True)
        )
        columns = tuple(
            replace(one, counts=np.rint(counts).astype(np.int64), variance=v.item())
            for one, (counts, v) in zip(self.columns, both, strict=True)
        )
        return replace(self, read=read, columns=columns)

    def fit(
        self,
        tables: list[NoisyTable],
        start: tuple[Floats, ...],
        last: bool = False,
        among: Sequence[int] | None = None,
        near: float = 0.0,
    ) -> Model:
        """Fit the model to all that was released; the last one of a release to the end."""
        informative = [table for table in tables if table not in self.read_from]
        masses = reconciled(self.read, self.columns, self.groupings, informative, self.total, among)
        fixed = [rule for rule in self.fixed if all(c in masses for c, _ in rule[0])]
        sweeps = LAST_SWEEPS if last else SWEEPS
        noise = min((table.variance for table in tables), default=0.0) ** 0.5
        close = max(CLOSE, near * noise / self.total)
        return fitted(self.groupings, masses, tables, fixed, self.total, start, sweeps, close, self.last)

    # Proof: docs/proofs/rounds.md, lemma 3.
    def predicted(self, model: Model, number: int) -> list[Floats]:
        """Return what a model expects of every candidate table at its finest levels, from rows of it."""
        walks = None if self.known is None else self.known.walks
        rows = CountedRows(model.rows(PREDICTING, number << 32, walks).T, np.ones(PREDICTING, dtype=np.int64))
        share = self.total / PREDICTING
        return [table.astype(np.float64) * share for table in count(self.layout.linear(), rows)]

    def ranked(self, table: NoisyTable) -> NoisyTable:
        """Return a table that was released at all categories, in the order of the groupings."""
        columns = [c for c, _ in table.scope]
        counts = table.counts[np.ix_(*[self.groupings[c].order for c in columns])]
        return replace(table, scope=tuple((c, self.groupings[c].finest) for c in columns), counts=counts)

    # Proof: docs/proofs/rounds.md, lemma 3.
    def moved(self, predicted: list[Floats], beside: list[NoisyTable]) -> list[Floats]:
        """Return the same, moved towards the tables that the model has no room for."""
        if not beside:
            return predicted
        shifted = [tables.copy() for tables in predicted]
        pairs = set(self.candidates.tables)
        for pair, those in by_pair(beside).items():
            if pair not in pairs:
                continue
            tops = self.candidates.levels(pair)
            those = [self._coarser(table, tops) for table in those]
            groups = [
                (self.groupings[a].parents(first, tops[0]), self.groupings[b].parents(second, tops[1]))
                for (a, first), (b, second) in (table.scope for table in those)
            ]
            table = self.layout.table(shifted, pair)
            table[:] = moved(table, those, groups)
        return shifted

    def _coarser(self, table: NoisyTable, tops: Sequence[int]) -> NoisyTable:
        """Return a table at no finer levels than these; what is finer is added up."""
        levels = [min(level, top) for (_, level), top in zip(table.scope, tops, strict=True)]
        counts = table.counts
        for axis, ((c, fine), level) in enumerate(zip(table.scope, levels, strict=True)):
            counts = np.add.reduceat(counts, self.groupings[c].inside(level, fine), axis=axis)
        scope = tuple((c, level) for (c, _), level in zip(table.scope, levels, strict=True))
        return replace(
            table, scope=scope, counts=counts, variance=table.variance * table.counts.size / counts.size
        )

    # Proof: docs/proofs/rounds.md, lemma 9.
    def rows(self, model: Model, beside: list[NoisyTable], count: int, seed: int) -> Codes:
        """Return rows of the model, moved to the tables of two columns that it expects or has no room for."""
        universe, tables = self.plan.universe, self.candidates.tables
        known_rows = None if self.known is None else self.known.rows
        codes = model.rows(count, seed, known_rows)
        outside = by_pair(beside)
        pairs = [table for table in tables if len(table) == 2 and universe.size(table) <= LARGE]
        if affordable(count, len(pairs)) < 2:
            pairs = [table for table in pairs if table in outside]
        sweeps = affordable(count, len(pairs))
        if not pairs or not sweeps:
            return codes
        size = max(1, min(8 * count, SAMPLE, ENTRIES // len(universe.sizes)))
        some = None if known_rows is None else known_rows[:, np.arange(size) * count // size]
        sample = CountedRows(model.rows(size, seed ^ 1, some).T, np.ones(size, dtype=np.int64))
        walks = sample
        if self.known is not None and outside:  # tables have the law of walks, and rows their own
            codes = model.rows(PREDICTING, seed ^ 2, self.known.walks)
            walks = CountedRows(codes.T, np.ones(PREDICTING, dtype=np.int64))
        targets = {}
        for a, b in pairs:
            sizes = (universe.sizes[a], universe.sizes[b])
            expected = walks.table((a, b), sizes).astype(np.float64) * (self.total / len(walks.counts))
            those = outside.get((a, b), [])
            target = moved(expected, those, [self.groups_of(table) for table in those])
            if walks is not sample:
                factors = np.divide(target, expected, out=np.ones_like(target), where=expected > 0)
                target = factors * sample.table((a, b), sizes)
                target *= self.total / max(target.sum(), 1.0)
            targets[a, b] = target * (count / self.total)
        fixed = frozenset(c for columns, _ in universe.rules for c in columns) | {*range(self.last)}
        return exchanged(codes, universe.sizes, targets, fixed, sweeps, seed)

    def groups_of(self, table: NoisyTable) -> list[Integers]:
        """Return the group of each category of each column of a released table."""
        return [self.groupings[c].of_categories(level) for c, level in table.scope]

    def fits(self, tables: list[NoisyTable], scope: Scope) -> bool:
        """Whether the model stays within its memory with one more table."""
        scopes = [*(t.scope for t in tables), scope]
        return cells_of(scopes, self.groupings, self.fixed, self.last) <= self.plan.memory + self.least


def by_pair(tables: Sequence[NoisyTable]) -> dict[tuple[int, int], list[NoisyTable]]:
    """Return measured tables of two columns by these, in the order of measuring."""
    by_columns: dict[tuple[int, int], list[NoisyTable]] = {}
    for table in tables:
        (a, _), (b, _) = table.scope
        by_columns.setdefault((a, b), []).append(table)
    return by_columns
