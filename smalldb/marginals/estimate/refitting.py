"""What rounds have taught: a model of what was released so far, and what it expects of all candidates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.junction import Scope, Tree, cells, lift
from smalldb.marginals.estimate.modelling import Model
from smalldb.marginals.estimate.packed_pairs import PackedPairs
from smalldb.marginals.measuring import NoisyTable

TABLES_PER_REFIT = 64  # tables for each one that waits before a model is fitted to it
CLOSE_BETWEEN_ROUNDS = 0.05  # of the noise of a table: when models between rounds are near enough
CLOSE_AT_LAST = 0.003  # the same of the last model

AT_ONCE = 1 << 19  # cells of a bucket that are looked at together, times the groups of columns below it


# Proof: docs/proofs/rounds.md, lemma 7.
def joint(tree: Tree, tables: Sequence[Floats], levels: Sequence[int]) -> tuple[tuple[int, ...], Floats]:
    """Return the probabilities of all pairs of columns, as blocks of one symmetric matrix.

    Given what a bucket passes on, the columns below it are independent of all others. So the table of two
    columns below different children of a bucket is P(one | cell) P(other | cell) P(cell), summed over the
    bucket's cells.
    """
    groupings, children = tree.groupings, tree.children
    order = _from_leaves(tree, children)
    finished = [_finished(tree, position, levels) for position in range(len(tree.buckets))]
    width = sum(cells(scope, groupings) for scope in finished if scope)
    probabilities, alone, end = np.zeros((width, width)), np.zeros(width), 0
    # of each bucket: P(group of a column below it | cell that it passes on)
    conditional: dict[int, Floats] = {}
    for position in order:
        passed = tree.buckets[position].passed
        parts = [
            (_cells_of(tree, position, tree.buckets[c].passed), conditional.pop(c))
            for c in children[position]
        ]
        start = end - sum(part.shape[1] for _, part in parts)
        if finished[position]:
            groups = cells(finished[position], groupings)
            parts.append((_cells_of(tree, position, finished[position]), np.eye(groups)))
            end += groups
        both = np.zeros((cells(passed, groupings), end - start))
        to = _cells_of(tree, position, passed)
        _meet(tables[position].ravel(), parts, to, both, probabilities[start:end, start:end])
        if passed:
            sums = np.bincount(to, tables[position].ravel(), len(both))[:, None]
            conditional[position] = np.divide(both, sums, out=np.zeros_like(both), where=sums > 0)
        else:
            alone[start:end] = both[0]
            probabilities[:start, start:end] = np.outer(alone[:start], both[0])
    probabilities = probabilities + probabilities.T
    np.fill_diagonal(probabilities, alone)
    return tuple(scope[0][0] for position in order if (scope := finished[position])), probabilities


def _meet(
    mass: Floats, parts: Sequence[tuple[Integers, Floats]], to: Integers, both: Floats, met: Floats
) -> None:
    """Sum over a bucket's cells: tables of columns of different parts, and of all with what is passed on."""
    pieces = 1 + len(mass) * both.shape[1] // AT_ONCE
    for some in np.array_split(np.argsort(to, kind="stable"), pieces):
        known = np.concatenate([part[at[some]] for at, part in parts], axis=1)
        weighed = known * mass[some, None]
        rows, first = np.unique(to[some], return_index=True)
        both[rows] += np.add.reduceat(weighed, first, axis=0)
        done = 0
        for _, part in parts:
            more = done + part.shape[1]
            met[:done, done:more] += weighed[:, :done].T @ known[:, done:more]
            done = more


def _finished(tree: Tree, position: int, levels: Sequence[int]) -> Scope:
    """Return the column that a bucket refines to its finest level, as it is looked at; empty if none."""
    column = tree.buckets[position].column
    finest = dict(tree.buckets[position].scope)[column] == tree.groupings[column].finest
    return ((column, levels[column]),) if finest else ()


def _cells_of(tree: Tree, position: int, scope: Scope) -> Integers:
    """Return of each cell of a bucket the cell of a coarser table in which it lies."""
    shape = tuple(tree.groupings[c].groups(level) for c, level in scope)
    spread = lift(scope, tree.buckets[position].scope, tree.groupings)
    return spread.inside(shape, tree.shape(position)).astype(np.int64)


def _from_leaves(tree: Tree, children: Sequence[Sequence[int]]) -> list[int]:
    """Return all buckets, each right after the trees of its children, which are in order."""
    order, left = list[int](), [position for position, bucket in enumerate(tree.buckets) if bucket.parent < 0]
    while left:  # each before its children, which come last first: then from the end
        position = left.pop()
        order.append(position)
        left += children[position]
    return order[::-1]


def at_first(estimator: Estimator) -> "WholeModel | ModelInParts":
    """Return what columns alone teach."""
    if isinstance(estimator.layout, PackedPairs):
        return ModelInParts.of(estimator, estimator.layout)
    return WholeModel(estimator, [], estimator.fit([], ()))


class WholeModel:
    """One model of all columns: each table refits all of it, and predictions are read from its rows."""

    def __init__(self, estimator: Estimator, tables: list[NoisyTable], model: Model) -> None:
        self._estimator, self.tables, self._model = estimator, tables, model
        self._predicted: list[Floats] | None = None

    def predicted(self) -> list[Floats]:
        """Return what the model expects of every candidate table."""
        if self._predicted is None:
            self._predicted = self._estimator.predicted(self._model, len(self.tables))
        return self._predicted

    def after(self, table: NoisyTable) -> "WholeModel":
        """Return the same after one more table."""
        tables = [*self.tables, table]
        return WholeModel(self._estimator, tables, self._estimator.fit(tables, self._model.coefficients))

    def last(self, estimator: Estimator) -> Model:
        """Fit the model to the end."""
        return estimator.fit(self.tables, self._model.coefficients, last=True)


@dataclass(frozen=True, slots=True, eq=False)
class ModelPart:
    """Columns that tables and rules connect, which depend on no others in the model."""

    columns: tuple[int, ...]  # ascending
    tables: tuple[int, ...]  # the numbers of their tables, in the order of measuring
    model: Model  # of these columns
    # of all columns of the estimator side by side, those that `matrix` is about, in its order
    groups: Integers
    matrix: Floats  # the probabilities of all pairs of them: see `joint`


@dataclass(frozen=True, slots=True, eq=False)
class ModelInParts:
    """A model for each set of columns that tables connect: tables refit their own, and predictions are exact.

    The more tables there are, the less one more changes. So it waits for some others, and predictions of its
    own columns are moved towards it until all of them are fitted.
    """

    # what follows from columns, and how the candidates lie
    estimator: Estimator
    packed: PackedPairs
    tables: list[NoisyTable]  # those that were measured
    fitted: int  # how many of them the parts have: the others came after
    parts: Mapping[int, ModelPart]  # of each column

    @staticmethod
    def of(estimator: Estimator, packed: PackedPairs) -> "ModelInParts":
        """Return what columns alone teach."""
        first = ModelInParts(estimator, packed, [], 0, {})
        alone = {c: (c,) for c in range(len(estimator.groupings))}
        sets = set(_connected(alone, [scope for scope, _ in estimator.fixed]).values())
        parts = [first._part(columns, ()) for columns in sets]
        return replace(first, parts={c: part for part in parts for c in part.columns})

    # Proof: docs/proofs/rounds.md, lemma 3.
    def predicted(self) -> list[Floats]:
        """Return what the model expects of every candidate table."""
        alone = np.empty(self.packed.starts[-1])
        parts = self._distinct(self.parts)
        for part in parts:
            alone[part.groups] = part.matrix.diagonal()
        matrix = np.outer(alone, alone)
        for part in parts:
            matrix[np.ix_(part.groups, part.groups)] = part.matrix
        expected = [self.estimator.total * flat for flat in self.packed.laid(matrix)]
        return self.estimator.moved(expected, self.tables[self.fitted :])

    def after(self, table: NoisyTable) -> "ModelInParts":
        """Return the same after one more table: once some wait, the parts that they connect become one."""
        grown = replace(self, tables=[*self.tables, table])
        waiting = grown.tables[self.fitted :]
        if len(waiting) * TABLES_PER_REFIT <= len(grown.tables):
            return grown
        parts = dict(self.parts)
        sets = _connected({c: part.columns for c, part in parts.items()}, [some.scope for some in waiting])
        for columns in {sets[c] for some in waiting for c, _ in some.scope}:
            known = [number for part in self._distinct(columns) for number in part.tables]
            more = [
                i for i in range(self.fitted, len(grown.tables)) if grown.tables[i].scope[0][0] in columns
            ]
            parts.update(dict.fromkeys(columns, grown._part(columns, (*sorted(known), *more))))
        return replace(grown, fitted=len(grown.tables), parts=parts)

    def last(self, estimator: Estimator) -> Model:
        """Fit the model to the end."""
        start = self._coefficients(range(len(self.parts)), range(self.fitted))
        return estimator.fit(self.tables, start, last=True, near=CLOSE_AT_LAST)

    def _part(self, columns: tuple[int, ...], tables: tuple[int, ...]) -> ModelPart:
        """Fit some of the columns to some of the tables: all that are of these columns."""
        start = self._coefficients(columns, [number for number in tables if number < self.fitted])
        model = self.estimator.fit(
            [self.tables[i] for i in tables], start, among=columns, near=CLOSE_BETWEEN_ROUNDS
        )
        order, matrix = joint(model.tree, model.tables, self.packed.candidates.finest[2])
        starts = self.packed.starts
        groups = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in order])
        return ModelPart(columns, tables, model, groups, matrix)

    def _coefficients(self, columns: Sequence[int], tables: Sequence[int]) -> tuple[Floats, ...]:
        """Return the coefficients of some columns, then of some tables; none at first."""
        if not self.parts:
            return ()
        of_columns, of_tables = dict[int, Floats](), dict[int, Floats]()
        for part in self._distinct(columns):
            width = len(part.columns)
            of_columns.update(zip(part.columns, part.model.coefficients[:width], strict=True))
            of_tables.update(zip(part.tables, part.model.coefficients[width:], strict=True))
        return (*(of_columns[c] for c in columns), *(of_tables[i] for i in tables))

    def _distinct(self, columns: Iterable[int]) -> list[ModelPart]:
        """Return the parts of some columns, each once."""
        return list({self.parts[c].columns: self.parts[c] for c in columns}.values())


def _connected(sets: Mapping[int, tuple[int, ...]], scopes: Iterable[Scope]) -> dict[int, tuple[int, ...]]:
    """Return of each column the set that it is in, ascending, once sets that share a scope are joined."""
    connected = dict(sets)
    for scope in scopes:
        joined = tuple(sorted({other for c, _ in scope for other in connected[c]}))
        connected.update(dict.fromkeys(joined, joined))
    return connected
