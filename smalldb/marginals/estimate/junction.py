"""A tree of small tables in which a log-linear model is exact: columns at the levels where they meet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import prod
from typing import TypeAlias

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.estimate.grouping import Grouping

Scope: TypeAlias = tuple[tuple[int, int], ...]  # columns, ascending, each with the level of its groups
Step = tuple[int, Integers | None]  # an axis and where its groups start, or None: summed over


@dataclass(frozen=True, slots=True)
class Bucket:
    """One table of the tree: a column goes from coarse groups to finer ones, given some other columns."""

    column: int  # the column that is refined
    scope: Scope  # columns and levels of the table
    # what the table shares with the next one on the way to the root: the scope, the column at a coarser level
    # or not at all
    passed: Scope
    parent: int  # the position of that next table among the buckets, after this one; -1 for a root


def cells(scope: Iterable[tuple[int, int]], groupings: Sequence[Grouping]) -> int:
    """Return the number of cells of a table."""
    return prod(groupings[column].groups(level) for column, level in scope)


def union(scopes: Iterable[Scope]) -> dict[int, int]:
    """Return each column at the finest of its levels."""
    finest: dict[int, int] = {}
    for scope in scopes:
        for column, level in scope:
            finest[column] = max(level, finest.get(column, 0))
    return finest


# Proof: docs/proofs/related.md, lemma 5.
def junction_tree(
    scopes: Iterable[Scope], groupings: Sequence[Grouping], last: int = 0
) -> tuple[Bucket, ...]:
    """Eliminate columns, level by level from the finest; the smallest bucket is next.

    A column at its finest level is taken with all tables that have it there; their union is a bucket. What is
    passed on has the column at the next coarser level at which another table has it.
    """
    # Tables (a, b) and (b, c): a goes with the bucket (a, b), and passes on what it says of b; then b goes.
    holding: dict[int, dict[Scope, int]] = {}  # of each column, the tables that have it, and at which level
    for scope in scopes:
        for column, level in scope:
            holding.setdefault(column, {})[scope] = level
    plans: dict[int, tuple[int, dict[int, int], int]] = {}
    heap: list[tuple[bool, int, int]] = []
    done: list[tuple[int, Scope, Scope]] = []
    changed = set(holding)
    while holding:
        for column in changed & holding.keys():
            finest = max(holding[column].values())
            whole = union(scope for scope, level in holding[column].items() if level == finest)
            plans[column] = cells(whole.items(), groupings), whole, finest
            heappush(heap, (column < last, plans[column][0], column))
        _, cost, column = heappop(heap)
        while column not in holding or plans[column][0] != cost:  # a later entry took its place
            _, cost, column = heappop(heap)
        _, whole, finest = plans[column]
        gone = [scope for scope, level in holding[column].items() if level == finest]
        coarser = max((level for level in holding[column].values() if level != finest), default=0)
        passed = tuple(
            sorted(
                (c, coarser if c == column else level) for c, level in whole.items() if c != column or coarser
            )
        )
        done.append((column, tuple(sorted(whole.items())), passed))
        for scope in gone:
            for c, _ in scope:
                del holding[c][scope]
        for c, level in passed:
            holding[c][passed] = level
        for c in whole:
            if not holding[c]:
                del holding[c]
        changed = set(whole)
    refining = _refining((column, passed) for column, _, passed in done)
    return tuple(
        Bucket(column, scope, passed, _first(passed, refining, position + 1))
        for position, (column, scope, passed) in enumerate(done)
    )


def homes(scopes: Iterable[Scope], buckets: Sequence[Bucket]) -> tuple[int, ...]:
    """Return of each scope the position of the first bucket that refines a column of it, and so holds it."""
    refining = _refining((bucket.column, bucket.passed) for bucket in buckets)
    positions = tuple(_first(scope, refining, 0) for scope in scopes)
    if -1 in positions:
        raise ValueError("no bucket holds the scope")
    return positions


def _refining(steps: Iterable[tuple[int, Scope]]) -> dict[int, list[tuple[int, int]]]:
    """Return where each column is refined, in order: positions of buckets, and the levels they pass on."""
    refined: dict[int, list[tuple[int, int]]] = {}
    for position, (column, passed) in enumerate(steps):
        refined.setdefault(column, []).append((position, dict(passed).get(column, 0)))
    return refined


def _first(scope: Scope, refining: dict[int, list[tuple[int, int]]], start: int) -> int:
    """Return the first position from `start` on at which a column of a scope gets its level; or -1."""
    positions = (
        position
        for column, level in scope
        for position, coarser in refining.get(column, [])
        if position >= start and level > coarser
    )
    return min(positions, default=-1)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A junction tree, with what leads from the cells of one table to those of another."""

    groupings: tuple[Grouping, ...]  # of all columns
    buckets: tuple[Bucket, ...]  # children before parents
    homes: tuple[int, ...]  # of each factor, the bucket that it is part of
    lifts: tuple["Lift", ...]  # of each factor, how it is spread over the cells of its bucket
    # of what each bucket passes on: how it is spread over the cells of its parent, and over its own, and how
    # these are summed to it
    rises: tuple["Lift | None", ...]
    falls: tuple["Lift", ...]
    gathered: tuple[tuple[Step, ...], ...]

    def shape(self, position: int) -> tuple[int, ...]:
        """Return the shape of a bucket's table."""
        return tuple(self.groupings[c].groups(level) for c, level in self.buckets[position].scope)

    @property
    def children(self) -> list[list[int]]:
        """The children of each bucket."""
        below: list[list[int]] = [[] for _ in self.buckets]
        for position, bucket in enumerate(self.buckets):
            if bucket.parent >= 0:
                below[bucket.parent].append(position)
        return below


@dataclass(frozen=True, slots=True, eq=False)
class Lift:
    """How the cells of a coarse table are repeated over the cells of a finer one with more columns."""

    takes: tuple[tuple[int, Integers], ...]
    shape: tuple[int, ...]

    def __call__(self, table: Floats) -> Floats:
        """Return the table in a shape that broadcasts over the finer one."""
        for axis, parents in self.takes:
            table = table.take(parents, axis=axis)
        return table.reshape(self.shape)

    def inside(self, coarse: tuple[int, ...], fine: tuple[int, ...]) -> Integers:
        """Return of each cell of a fine table the coarse one that it is in, shape (cells,)."""
        numbers = np.arange(prod(coarse), dtype=np.float64).reshape(coarse)
        return np.broadcast_to(self(numbers), fine).ravel().astype(np.int32)


def lift(coarse: Scope, fine: Scope, groupings: Sequence[Grouping]) -> Lift:
    """Prepare the repeating of a table's cells over those of a finer one."""
    levels = dict(fine)
    takes = tuple(
        (axis, groupings[c].parents(level, levels[c]))
        for axis, (c, level) in enumerate(coarse)
        if level != levels[c]
    )
    inside = dict(coarse)
    return Lift(takes, tuple(groupings[c].groups(level) if c in inside else 1 for c, level in fine))


def steps(fine: Scope, coarse: Scope, groupings: Sequence[Grouping]) -> tuple[Step, ...]:
    """Prepare the summing of a table's cells to those of a coarser one; the last axis goes first."""
    levels = dict(coarse)
    path: list[Step] = []
    for axis, (c, level) in reversed(list(enumerate(fine))):
        if c not in levels:
            path.append((axis, None))
        elif levels[c] != level:
            path.append((axis, groupings[c].inside(levels[c], level)))
    return tuple(sorted(path, key=lambda step: step[1] is not None))


def summed(table: Floats, path: Sequence[Step], how: np.ufunc = np.add) -> Floats:
    """Sum a table's cells along prepared steps, or take their maxima."""
    gone = tuple(axis for axis, starts in path if starts is None)
    groups = [(axis, starts) for axis, starts in path if starts is not None]
    for axis, starts in groups:
        table = how.reduceat(table, starts, axis=axis)
    return how.reduce(table, axis=gone) if gone else table


def build(scopes: Sequence[Scope], groupings: Sequence[Grouping], last: int = 0) -> Tree:
    """Build the tree of some factors, as `junction_tree`; every column must be in one of them."""
    buckets = junction_tree(scopes, groupings, last)
    positions = homes(scopes, buckets)
    return Tree(
        tuple(groupings),
        buckets,
        positions,
        tuple(lift(s, buckets[h].scope, groupings) for s, h in zip(scopes, positions, strict=True)),
        tuple(lift(b.passed, buckets[b.parent].scope, groupings) if b.parent >= 0 else None for b in buckets),
        tuple(lift(b.passed, b.scope, groupings) for b in buckets),
        tuple(steps(b.scope, b.passed, groupings) for b in buckets),
    )


def beliefs(tree: Tree, factors: Sequence[Floats]) -> tuple[list[Floats], float]:
    """Return the probabilities of each bucket's table, and the logarithm of the sum of all weights."""
    tables = [np.zeros(tree.shape(position)) for position in range(len(tree.buckets))]
    for position, spread, factor in zip(tree.homes, tree.lifts, factors, strict=True):
        tables[position] += spread(factor)
    total = 0.0
    for position, bucket in enumerate(tree.buckets):
        # each sum by its own largest term: none is lost, however far below the others of its table
        top = np.asarray(summed(tables[position], tree.gathered[position], np.maximum))
        top = np.where(np.isneginf(top), 0.0, top)
        tables[position] -= tree.falls[position](top)
        np.exp(tables[position], out=tables[position])
        message = np.asarray(summed(tables[position], tree.gathered[position]))
        tables[position] /= tree.falls[position](np.where(message > 0, message, 1.0))
        with np.errstate(divide="ignore"):  # the logarithm of 0 is minus infinity
            logarithms = np.log(message) + top
        rise = tree.rises[position]
        if rise is None:
            total += float(logarithms)
        else:
            tables[bucket.parent] += rise(logarithms)
    for position in reversed(range(len(tables))):
        bucket = tree.buckets[position]
        if bucket.parent >= 0:
            path = steps(tree.buckets[bucket.parent].scope, bucket.passed, tree.groupings)
            tables[position] *= tree.falls[position](summed(tables[bucket.parent], path))
    return tables, total
