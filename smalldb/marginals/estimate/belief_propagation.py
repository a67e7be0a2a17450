"""Message passing on a junction tree: probabilities of a log-linear model, exactly but for rounding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.estimate.junction import Bucket, Scope, homes, junction_tree

Step = tuple[int, Integers | None]  # an axis and where its groups start, or None: summed over


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
    found: list[Step] = []
    for axis, (c, level) in reversed(list(enumerate(fine))):
        if c not in levels:
            found.append((axis, None))
        elif levels[c] != level:
            found.append((axis, groupings[c].inside(levels[c], level)))
    return tuple(sorted(found, key=lambda step: step[1] is not None))


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
        parent = tree.buckets[position].parent
        if parent >= 0:
            tables[position] *= tree.falls[position](summed(tables[parent], steps_between(tree, position)))
    return tables, total


def steps_between(tree: Tree, position: int) -> tuple[Step, ...]:
    """Return how the parent's cells are summed to what a bucket passes on to it."""
    bucket = tree.buckets[position]
    return steps(tree.buckets[bucket.parent].scope, bucket.passed, tree.groupings)
