"""Candidates of a round: tables at some coarseness, scored by how badly the model predicts them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import TypeAlias

import numpy as np

from queries.arrays import Numbers
from queries.domain import Integers
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Marginal

Noise: TypeAlias = Callable[[int], float]

MOST_CELLS = 1 << 24  # of all counted tables
WHOLE = 32  # categories of a column that is looked at category by category
FINEST = {2: 5, 3: 3}  # the finest level of other columns, by the number of columns of the table
MOST_WEIGHT = 100
MOST_PENALTY = 2.0**54  # so that scores fit int64


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
        """
        Return the integer score of every candidate: weight times (L1 distance less the noise it would get).

        Between neighbours under add-remove one count moves by 1, and so does its group's at every level: the
        distance moves by at most 1; under replace-one two counts do: by at most 2.
        """
        found = []
        for table, weight, here, expected in zip(self.tables, weights, counts, predicted, strict=True):
            for level in self._coarser(table, here - expected, 0):
                penalty = round(min(noise(level.size) * level.size, MOST_PENALTY))
                found.append(weight * (int(np.abs(level).sum()) - penalty))
        return np.array(found, dtype=np.int64)

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
    """Return the candidates for a workload: the pairs of columns in its tables, and its tables of three.

    The finest levels are coarser where all tables together would be too large to count.
    """
    weights: dict[tuple[int, ...], int] = {}
    for table, weight in zip(universe.tables, universe.weights, strict=True):
        for width in FINEST:
            for part in combinations(table, width):
                weights[part] = weights.get(part, 0) + weight
    heaviest = max(weights.values(), default=1)
    tables = sorted(weights, key=lambda table: (len(table), table))
    for cap in range(max(FINEST.values()), 0, -1):
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
