"""Candidates of a round, scored by how badly the model predicts them: one by one, or very many pairs."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, product
from math import prod
from typing import TypeAlias

import numpy as np

from queries.arrays import Booleans, Floats, Numbers
from queries.domain import Integers
from smalldb.marginals.counted_rows import PackedTables
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.strategies.budgets import MANY_COLUMNS
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Marginal

Noise: TypeAlias = Callable[[int], float]

MOST_CELLS = 1 << 24  # of all counted tables
WHOLE = 32  # categories of a column that is looked at category by category
FINEST = {2: 5, 3: 3}  # the finest level of other columns, by the number of columns of the table
MOST_WEIGHT = 100
MOST_PENALTY = 2.0**54  # so that scores fit int64
MOST_MATRIX = 1 << 25  # cells of a matrix of all pairs of columns


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The tables that may be selected, and at which levels: from released numbers."""

    groupings: tuple[Grouping, ...]  # of all columns
    tables: tuple[tuple[int, ...], ...]  # sets of columns
    weights: tuple[int, ...]  # of each table, an integer from 1 to `MOST_WEIGHT`
    # for each number of columns of a table: the finest level of every column, shape (C,)
    finest: dict[int, tuple[int, ...]]

    def levels(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """Return the finest levels of a table's columns."""
        return tuple(self.finest[len(table)][c] for c in table)

    def shape(self, scope: Scope) -> tuple[int, ...]:
        """Return how many groups the columns of a scope have."""
        return tuple(self.groupings[c].groups(level) for c, level in scope)

    def scopes(self) -> list[Scope]:
        """Return all candidates, in the order of their scores."""
        return [
            tuple(zip(table, levels, strict=True))
            for table in self.tables
            for levels in product(*[range(finest, 0, -1) for finest in self.levels(table)])
        ]

    def linear(self) -> list[Marginal]:
        """Return every table at its finest levels: what is counted."""
        groups = {
            (width, c): tuple(self.groupings[c].of_categories(level).tolist())
            for width, levels in self.finest.items()
            for c, level in enumerate(levels)
        }
        return [Marginal(table, tuple(groups[len(table), c] for c in table)) for table in self.tables]

    # Proof: docs/proofs/rounds.md, lemma 1.
    def coarse(self, counts: Numbers, scope: Scope) -> Numbers:
        """Return a table, counted at its finest levels, at the levels of a scope."""
        finest = self.levels(tuple(c for c, _ in scope))
        for axis, ((c, level), fine) in enumerate(zip(scope, finest, strict=True)):
            counts = np.add.reduceat(counts, self.groupings[c].inside(level, fine), axis=axis)
        return counts

    def table(self, tables: Sequence[Numbers], columns: tuple[int, ...]) -> Numbers:
        """Return, of all tables at their finest levels, that of some columns."""
        return tables[self.tables.index(columns)]

    def chosen(self, tables: Sequence[Numbers], scope: Scope) -> Numbers:
        """Return, of all tables at their finest levels, that of a scope at its levels."""
        return self.coarse(self.table(tables, tuple(c for c, _ in scope)), scope)

    # Proof: docs/proofs/rounds.md, lemma 3.
    def scores(
        self, counts: Sequence[Integers], predicted: Sequence[Integers], weights: Sequence[int], noise: Noise
    ) -> Integers:
        """Return the integer score of every candidate: weight times (L1 distance less noise it would get)."""
        scores = []
        for table, weight, here, expected in zip(self.tables, weights, counts, predicted, strict=True):
            for level in self._coarser(table, here - expected, 0):
                penalty = round(min(noise(level.size) * level.size, MOST_PENALTY))
                scores.append(weight * (int(np.abs(level).sum()) - penalty))
        return np.array(scores, dtype=np.int64)

    def _coarser(self, table: tuple[int, ...], counts: Integers, axis: int) -> Iterator[Integers]:
        """Yield a table at all levels of the columns from an axis on, the finest first."""
        if axis == len(table):
            yield counts
            return
        grouping, finest = self.groupings[table[axis]], self.finest[len(table)][table[axis]]
        for level in range(finest, 0, -1):
            if level < finest:
                counts = np.add.reduceat(counts, grouping.inside(level, level + 1), axis=axis)
            yield from self._coarser(table, counts, axis + 1)


def candidates(universe: Universe, groupings: Sequence[Grouping]) -> Candidates:
    """Return the candidates for a workload: the pairs of columns in its tables, and its tables of three."""
    parts = (part for table in universe.tables for width in FINEST for part in combinations(table, width))
    weights = Counter(parts)
    heaviest = max(weights.values(), default=1)
    tables = sorted(weights, key=lambda table: (len(table), table))
    for cap in range(max(FINEST.values()), 0, -1):  # coarser where all would be too large to count
        finest = {
            width: tuple(_finest(grouping, min(most, cap), cap) for grouping in groupings)
            for width, most in FINEST.items()
            if any(len(table) == width for table in tables)
        }
        sizes = (prod(groupings[c].groups(finest[len(table)][c]) for c in table) for table in tables)
        if cap == 1 or sum(sizes) <= MOST_CELLS:
            break
    return Candidates(
        tuple(groupings),
        tuple(tables),
        tuple(max(1, round(MOST_WEIGHT * weights[t] / heaviest)) for t in tables),
        finest,
    )


def _finest(grouping: Grouping, most: int, cap: int) -> int:
    few = grouping.groups(grouping.finest) <= min(WHOLE, 1 << cap)
    return grouping.finest if few else max(1, min(most, grouping.finest - 1))


@dataclass(frozen=True, slots=True, eq=False)
class Depth:
    """The other columns of a strip, so many levels above their finest ones."""

    # which cells of a row, at the depth before, belong to columns that have this level; None: all
    having: Booleans | None
    starts: Integers  # where groups of this level start among these
    edges: Integers  # where columns start among the cells of a row at this depth
    tables: Integers  # of each column, the number of its table in the strip


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """The tables of one column with others after it: side by side, a row for each of its groups."""

    column: int  # the first column of its tables
    others: Integers  # the second ones, ascending
    tables: tuple[int, int]  # the numbers of its first table and of the one after its last
    # where its cells are: rows and their length
    start: int
    shape: tuple[int, int]
    # for each level of the column below its finest: where groups start among those of the level before
    coarser: tuple[Integers, ...]
    depths: tuple[Depth, ...]  # from the finest level of the other columns on
    # of each table: the number of its first candidate, and how many levels its second column has
    first: Integers
    levels: Integers

    def of(self, flat: Numbers) -> Numbers:
        """Return its cells, of those of all tables: a view."""
        return flat[self.start : self.start + self.shape[0] * self.shape[1]].reshape(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class PackedPairs:
    """Candidates of which all are tables of two columns: what `Candidates` does, for all tables at once.

    The tables at their finest levels are a list of one array, strip by strip.
    """

    candidates: Candidates  # what is laid out
    strips: tuple[Strip, ...]  # for each column that is the first of some table
    # the numbers of cells that candidates have, and of each candidate the position of its own among them
    sizes: Integers
    size: Integers
    # where the groups of each column start, at their finest levels side by side; and their end
    starts: Integers

    @staticmethod
    def of(candidates: Candidates) -> "PackedPairs":
        """Lay out the tables of candidates, all of two columns."""
        strips, start, table, first = [], 0, 0, 0
        finest = candidates.finest[2]
        for column, those in groupby(candidates.tables, key=lambda pair: pair[0]):
            others = np.array([other for _, other in those])
            fine, levels = finest[column], np.array([finest[c] for c in others])
            grouping, depths = candidates.groupings[column], _depths(candidates, others)
            shape = (grouping.groups(fine), int(depths[0].starts[-1]) + 1)
            firsts = first + np.append(0, np.cumsum(fine * levels))
            coarser = tuple(grouping.inside(level, level + 1) for level in range(fine - 1, 0, -1))
            tables = (table, table + len(others))
            strips.append(Strip(column, others, tables, start, shape, coarser, depths, firsts[:-1], levels))
            start, table, first = start + shape[0] * shape[1], tables[1], int(firsts[-1])
        groups = [[len(starts) for starts in grouping.starts] for grouping in candidates.groupings]
        sizes = [groups[a][m] * groups[b][k] for (a, m), (b, k) in candidates.scopes()]
        widths = [counts[level] for counts, level in zip(groups, finest, strict=True)]
        return PackedPairs(
            candidates, tuple(strips), *np.unique(sizes, return_inverse=True), np.cumsum([0, *widths])
        )

    @property
    def cells(self) -> int:
        """How many cells all tables have at their finest levels."""
        last = self.strips[-1]
        return last.start + last.shape[0] * last.shape[1]

    # Proof: docs/proofs/rounds.md, lemma 1.
    def linear(self) -> PackedTables:
        """Return every table at its finest levels: what is counted."""
        # at most 32 groups: `WHOLE`, or five halvings
        groups = zip(self.candidates.groupings, self.candidates.finest[2], strict=True)
        return PackedTables(
            groups=tuple(g.of_categories(level).astype(np.uint8) for g, level in groups),
            pairs=np.array(self.candidates.tables),
            origins=np.concatenate([strip.start + strip.depths[0].edges for strip in self.strips]),
            strides=np.concatenate([np.full(len(s.others), s.shape[1]) for s in self.strips]),
            cells=self.cells,
        )

    def table(self, tables: Sequence[Numbers], pair: tuple[int, ...]) -> Numbers:
        """Return, of all tables at their finest levels, that of two columns: a view."""
        strip = next(strip for strip in self.strips if strip.column == pair[0])
        position = int(np.searchsorted(strip.others, pair[1]))
        edges = np.append(strip.depths[0].edges, strip.shape[1])
        return strip.of(tables[0])[:, edges[position] : edges[position + 1]]

    def chosen(self, tables: Sequence[Numbers], scope: Scope) -> Numbers:
        """Return, of all tables at their finest levels, that of a scope at its levels."""
        return self.candidates.coarse(self.table(tables, tuple(c for c, _ in scope)), scope)

    # Proof: docs/proofs/rounds.md, lemma 3.
    def scores(
        self, counts: Sequence[Integers], predicted: Sequence[Integers], weights: Sequence[int], noise: Noise
    ) -> Integers:
        """Return the integer score of every candidate, as `Candidates.scores` does."""
        scores = np.empty(len(self.size), dtype=np.int64)
        beyond, heavy = counts[0] - predicted[0], np.asarray(weights)
        for strip in self.strips:
            weight = heavy[slice(*strip.tables)]
            for rise, table in enumerate(_levels(strip.of(beyond), strip.coarser)):
                for fall, depth in enumerate(strip.depths):
                    if fall:
                        cells = table if depth.having is None else table[:, depth.having]
                        table = np.add.reduceat(cells, depth.starts, axis=1)
                    distances = np.add.reduceat(np.abs(table).sum(axis=0), depth.edges)
                    of = depth.tables
                    scores[strip.first[of] + rise * strip.levels[of] + fall] = weight[of] * distances
        penalties = [round(min(noise(size) * size, MOST_PENALTY)) for size in self.sizes.tolist()]
        each = np.concatenate(
            [np.repeat(heavy[slice(*s.tables)], (len(s.coarser) + 1) * s.levels) for s in self.strips]
        )
        scores -= each * np.array(penalties, dtype=np.int64)[self.size]
        return scores

    # Proof: docs/proofs/rounds.md, lemma 3.
    def laid(self, matrix: Floats) -> list[Floats]:
        """Return the tables that are blocks of a matrix, the columns side by side at their finest levels."""
        widths, flat = np.diff(self.starts), np.empty(self.cells)
        for strip in self.strips:
            with_it = np.zeros(len(widths), dtype=bool)
            with_it[strip.others] = True
            rows = matrix[self.starts[strip.column] : self.starts[strip.column + 1]]
            strip.of(flat)[:] = rows[:, np.repeat(with_it, widths)]
        return [flat]

    def associations(self, predicted: Sequence[Floats], wanted: Booleans) -> Floats:
        """Return Cramer's V of the wanted tables, at least, else 0: see `association_weights.cramers_v`."""
        values_of = np.zeros(len(wanted))
        for strip in self.strips:
            if not wanted[slice(*strip.tables)].any():
                continue
            cells, edges = strip.of(predicted[0]), strip.depths[0].edges
            widths = np.diff(np.append(edges, strip.shape[1]))
            rows, columns = np.add.reduceat(cells, edges, axis=1), cells.sum(axis=0)
            used = np.count_nonzero(rows > 0, axis=0), np.add.reduceat((columns > 0).astype(np.int64), edges)
            least, total = np.minimum(*used) - 1, rows.sum(axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                independent = np.repeat(rows / total, widths, axis=1) * columns
                squares = np.where(independent > 0, (cells - independent) ** 2 / independent, 0.0)
                values = np.sqrt(np.add.reduceat(squares.sum(axis=0), edges) / (total * least))
            values_of[slice(*strip.tables)] = np.where(least < 1, 0.0, np.minimum(values, 1.0))
        return values_of


def laid_out(candidates: Candidates) -> Candidates | PackedPairs:
    """Lay out the tables of very many columns as strips, if all are of two and predictions fit a matrix."""
    columns, finest = len(candidates.groupings), candidates.finest.get(2, ())
    if columns <= MANY_COLUMNS or set(candidates.finest) != {2}:
        return candidates
    width = sum(g.groups(level) for g, level in zip(candidates.groupings, finest, strict=True))
    return PackedPairs.of(candidates) if width**2 <= MOST_MATRIX else candidates


def _depths(candidates: Candidates, others: Integers) -> tuple[Depth, ...]:
    """Prepare the levels of the other columns of a strip, the finest first."""
    groupings = [candidates.groupings[c] for c in others]
    levels = np.array([candidates.finest[2][c] for c in others])
    widths = np.array([g.groups(level) for g, level in zip(groupings, levels, strict=True)])
    tables = np.arange(len(others))
    whole = np.arange(widths.sum())
    depths = [Depth(None, whole, np.cumsum(widths) - widths, tables)]
    for depth in range(1, int(levels.max())):
        stays = levels[tables] > depth
        of_stays, tables, before = np.repeat(stays, widths), tables[stays], widths[stays]
        inside = [groupings[t].inside(levels[t] - depth, levels[t] - depth + 1) for t in tables]
        starts = np.concatenate([s + at for s, at in zip(inside, np.cumsum(before) - before, strict=True)])
        widths = np.array([len(s) for s in inside])
        depths.append(Depth(None if stays.all() else of_stays, starts, np.cumsum(widths) - widths, tables))
    return tuple(depths)


def _levels(table: Integers, coarser: Sequence[Integers]) -> Iterator[Integers]:
    """Yield the cells of a strip at each level of its own column, the finest first."""
    yield table
    for starts in coarser:
        table = np.add.reduceat(table, starts, axis=0)
        yield table


# Proof: docs/proofs/rounds.md, lemma 3.
def association_weights(
    layout: Candidates | PackedPairs, predicted: Sequence[Floats], measured: Sequence[NoisyTable]
) -> tuple[int, ...]:
    """Return the weights of all candidate tables, from what was released: integers from 1 to `MOST_WEIGHT`.

    Say that the model has two trees of columns, and that a table joins a column of one with a column of the
    other. Then it tells something of other columns of both trees, too: the more these depend on its own two.
    The reach of a column is 1 plus the sum of Cramer's V, in the model, of all columns of its tree with it.
    The weight of such a table is multiplied by the reach of both columns. Rounds then grow one tree with
    hubs, rather than many pairs and long chains.
    """
    packed, candidates = (layout, layout.candidates) if isinstance(layout, PackedPairs) else (None, layout)
    part = np.arange(len(candidates.groupings))
    for table in measured:
        joined = [part[c] for c, _ in table.scope]
        part[np.isin(part, joined)] = joined[0]
    gains = _one_by_one(candidates, predicted, part) if packed is None else _at_once(packed, predicted, part)
    gains = gains * np.array(candidates.weights)
    return tuple(np.maximum(1, np.rint(MOST_WEIGHT * gains / gains.max())).astype(int).tolist())


def _one_by_one(candidates: Candidates, predicted: Sequence[Floats], part: Integers) -> Floats:
    """Return, for each table, the largest product of reaches of two columns that are not connected, or 1."""
    reach = np.ones(len(part))
    for columns, cells in zip(candidates.tables, predicted, strict=True):
        if len(columns) == 2 and part[columns[0]] == part[columns[1]]:
            reach[list(columns)] += cramers_v(cells)
    return np.array(
        [
            max([1.0, *(reach[a] * reach[b] for a in columns for b in columns if part[a] < part[b])])
            for columns in candidates.tables
        ]
    )


def _at_once(packed: PackedPairs, predicted: Sequence[Floats], part: Integers) -> Floats:
    """Return the same where all tables are of two columns."""
    first, second = np.array(packed.candidates.tables).T
    connected = part[first] == part[second]
    values = np.where(connected, packed.associations(predicted, connected), 0.0)
    reach = 1 + np.bincount(first, values, len(part)) + np.bincount(second, values, len(part))
    return np.where(connected, 1.0, reach[first] * reach[second])


def cramers_v(table: Floats) -> float:
    """Return Cramer's V of a table of two columns: 0 for independent ones, 1 where one tells the other.

    V is the root of chi^2 / (n (k - 1)), where k is the lesser number of categories that occur. If one column
    has one category in use, it is 0.

    >>> cramers_v(np.array([[2.0, 2.0], [1.0, 1.0]])), cramers_v(np.array([[5.0, 0.0], [0.0, 3.0]]))
    (0.0, 1.0)
    """
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    least = min(np.count_nonzero(rows > 0), np.count_nonzero(columns > 0)) - 1
    if least < 1:
        return 0.0
    independent = np.outer(rows, columns) / rows.sum()
    squares = np.divide(
        (table - independent) ** 2, independent, out=np.zeros_like(independent), where=independent > 0
    )
    return min(1.0, float(np.sqrt(squares.sum() / (rows.sum() * least))))
