"""A tree of small tables in which a log-linear model is exact: columns at the levels where they meet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import prod
from typing import TypeAlias

from smalldb.marginals.estimate.grouping import Grouping

Scope: TypeAlias = tuple[tuple[int, int], ...]  # columns, ascending, each with the level of its groups


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
    found: dict[int, int] = {}
    for scope in scopes:
        for column, level in scope:
            found[column] = max(level, found.get(column, 0))
    return found


# Proof: docs/proofs/related.md, lemma 5.
def junction_tree(
    scopes: Iterable[Scope], groupings: Sequence[Grouping], last: int = 0
) -> tuple[Bucket, ...]:
    """
    Eliminate columns, level by level from the finest, so that tables stay small.

    A column at its finest level is taken with all tables that have it there; their union is a bucket. What is
    passed on has the column at the next coarser level at which another table has it, so that groups of a
    level are never looked at where only coarser ones matter. Greedy: the smallest bucket is next.
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
    found = tuple(_first(scope, refining, 0) for scope in scopes)
    if -1 in found:
        raise ValueError("no bucket holds the scope")
    return found


def _refining(steps: Iterable[tuple[int, Scope]]) -> dict[int, list[tuple[int, int]]]:
    """Return where each column is refined, in order: positions of buckets, and the levels they pass on."""
    found: dict[int, list[tuple[int, int]]] = {}
    for position, (column, passed) in enumerate(steps):
        found.setdefault(column, []).append((position, dict(passed).get(column, 0)))
    return found


def _first(scope: Scope, refining: dict[int, list[tuple[int, int]]], start: int) -> int:
    """Return the first position from `start` on at which a column of a scope gets its level; or -1."""
    positions = (
        position
        for column, level in scope
        for position, coarser in refining.get(column, [])
        if position >= start and level > coarser
    )
    return min(positions, default=-1)
