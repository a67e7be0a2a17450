"""A tree of small tables in which a log-linear model is exact: columns at the levels where they meet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from smalldb.rounds.grouping import Grouping

Scope: TypeAlias = tuple[tuple[int, int], ...]  # columns, ascending, each with the level of its groups


@dataclass(frozen=True, slots=True)
class Bucket:
    """
    One table of the tree: here a column goes from coarse groups to finer ones, given some other columns.

    Attributes
    ----------
    column
        The column that is refined.
    scope
        Columns and levels of the table.
    passed
        What the table shares with the next one on the way to the root: the scope, the column at a coarser
        level or not at all.
    parent
        The place of that next table among the buckets, after this one; -1 for a root.
    """

    column: int
    scope: Scope
    passed: Scope
    parent: int


def cells(scope: Iterable[tuple[int, int]], groupings: Sequence[Grouping]) -> int:
    """Return the number of cells of a table."""
    return prod(groupings[column].groups(level) for column, level in scope)


def union(scopes: Iterable[Scope]) -> dict[int, int]:
    """Return each column at the finest of its levels."""
    found: dict[int, int] = {}
    for scope in scopes:
        for column, level in scope:
            found[column] = max(level, found.get(column, 0))
    return found


def junction_tree(scopes: Iterable[Scope], groupings: Sequence[Grouping]) -> tuple[Bucket, ...]:
    """
    Eliminate columns, level by level from the finest, so that tables stay small.

    A column at its finest level is taken with all tables that have it there; their union is a bucket. What is
    passed on has the column at the next coarser level at which another table has it, so that groups of a
    level are never looked at where only coarser ones matter. Greedy: the smallest bucket is next.

    Parameters
    ----------
    scopes
        The tables of the model; each column is in one of them.

    Returns
    -------
    tuple of Bucket
        Children before parents; each scope lies within the first bucket that refines one of its columns.
    """
    # Tables (a, b) and (b, c): a goes with the bucket (a, b), and passes on what it says of b; then b goes.
    left = set(scopes)
    holding: dict[int, set[Scope]] = {}
    for scope in left:
        for column, _ in scope:
            holding.setdefault(column, set()).add(scope)
    costs: dict[int, tuple[int, dict[int, int], int]] = {}
    done: list[tuple[int, Scope, Scope]] = []
    while holding:
        for column, those in holding.items():
            if column not in costs:
                finest = max(dict(scope)[column] for scope in those)
                whole = union(scope for scope in those if dict(scope)[column] == finest)
                costs[column] = cells(whole.items(), groupings), whole, finest
        column = min(costs, key=lambda c: (costs[c][0], c))
        _, whole, finest = costs[column]
        gone = {scope for scope in holding[column] if dict(scope)[column] == finest}
        coarser = max((dict(scope)[column] for scope in holding[column] - gone), default=0)
        passed = tuple(
            sorted(
                (c, coarser if c == column else level) for c, level in whole.items() if c != column or coarser
            )
        )
        done.append((column, tuple(sorted(whole.items())), passed))
        for c in whole:
            holding[c] -= gone
            if passed and any(c == other for other, _ in passed):
                holding[c].add(passed)
            if not holding[c]:
                del holding[c]
            costs.pop(c, None)
    return tuple(
        Bucket(column, scope, passed, _parent(place, passed, done))
        for place, (column, scope, passed) in enumerate(done)
    )


def home(scope: Scope, buckets: Sequence[Bucket]) -> int:
    """Return the place of the first bucket that refines a column of a scope: it holds the scope."""
    levels = dict(scope)
    for place, bucket in enumerate(buckets):
        if levels.get(bucket.column, 0) > dict(bucket.passed).get(bucket.column, 0):
            return place
    raise ValueError("no bucket holds the scope")


def _parent(place: int, passed: Scope, done: Sequence[tuple[int, Scope, Scope]]) -> int:
    levels = dict(passed)
    for later in range(place + 1, len(done)):
        column, _, coarser = done[later]
        if levels.get(column, 0) > dict(coarser).get(column, 0):
            return later
    return -1
