"""Tables of all pairs of columns under a model: exact but for rounding, and no rows are drawn."""

from collections.abc import Sequence
from math import prod

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.estimate.belief_propagation import Tree, lift
from smalldb.marginals.estimate.junction import Scope, cells

AT_ONCE = 1 << 19  # cells of a bucket that are looked at together, times the groups of columns below it


# Proof: docs/proofs/rounds.md, lemma 7.
def joint(tree: Tree, tables: Sequence[Floats], levels: Sequence[int]) -> tuple[tuple[int, ...], Floats]:
    """
    Return the probabilities of all pairs of columns, as blocks of one symmetric matrix.

    Given what a bucket passes on, the columns below it are independent of all others. So the table of two
    columns below different children of a bucket is P(one | cell) P(other | cell) P(cell), summed over the
    bucket's cells. What is known of all columns below a bucket, given what it passes on, goes to its parent.

    Cost: for each bucket, its cells times the pairs of groups that first meet there.
    """
    groupings, children = tree.groupings, _children(tree)
    order = _from_leaves(tree, children)
    own = [_finished(tree, position, levels) for position in range(len(tree.buckets))]
    width = sum(cells(scope, groupings) for scope in own if scope)
    found, alone, end = np.zeros((width, width)), np.zeros(width), 0
    given: dict[int, Floats] = {}  # of each bucket: P(group of a column below it | cell that it passes on)
    for position in order:
        passed = tree.buckets[position].passed
        parts = [
            (_cells_of(tree, position, tree.buckets[c].passed), given.pop(c)) for c in children[position]
        ]
        start = end - sum(part.shape[1] for _, part in parts)
        if own[position]:
            groups = cells(own[position], groupings)
            parts.append((_cells_of(tree, position, own[position]), np.eye(groups)))
            end += groups
        both = np.zeros((cells(passed, groupings), end - start))
        to = _cells_of(tree, position, passed)
        _meet(tables[position].ravel(), parts, to, both, found[start:end, start:end])
        if passed:
            sums = np.bincount(to, tables[position].ravel(), len(both))[:, None]
            given[position] = np.divide(both, sums, out=np.zeros_like(both), where=sums > 0)
        else:
            alone[start:end] = both[0]
            found[:start, start:end] = np.outer(alone[:start], both[0])
    found = found + found.T
    np.fill_diagonal(found, alone)
    return tuple(scope[0][0] for position in order if (scope := own[position])), found


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
    numbers = np.arange(prod(shape), dtype=np.float64).reshape(shape)
    spread = lift(scope, tree.buckets[position].scope, tree.groupings)(numbers)
    return np.broadcast_to(spread, tree.shape(position)).ravel().astype(np.int64)


def _children(tree: Tree) -> list[list[int]]:
    """Return the children of each bucket."""
    found: list[list[int]] = [[] for _ in tree.buckets]
    for position, bucket in enumerate(tree.buckets):
        if bucket.parent >= 0:
            found[bucket.parent].append(position)
    return found


def _from_leaves(tree: Tree, children: Sequence[Sequence[int]]) -> list[int]:
    """Return all buckets, each right after the trees of its children, which are in order."""
    found, left = list[int](), [position for position, bucket in enumerate(tree.buckets) if bucket.parent < 0]
    while left:  # each before its children, which come last first: then from the end
        position = left.pop()
        found.append(position)
        left += children[position]
    return found[::-1]
