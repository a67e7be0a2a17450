"""Walk all small databases in the order of `smalldb.counting.multisets`.

Over the first cells (the head) the walk carries incremental answers and a running maximum of ranks;
for the last cells (the tail) the ranks of every way to spread the remaining rows are tabulated once,
so that the walk ends in maxima over table rows. A head together with all its tails is a leaf.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queries.arrays import Integers
from smalldb.kernels.compiling import inlined, kernel

Ranks = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


class Walk(NamedTuple):
    """What a walk reads: m rows over N cells, of which D are the head; k queries, of which n are live."""

    # Answers are kept as positions in ``ranks``. A query is settled once all cells that follow give it
    # the same weight; it is live if that happens in the tail only.

    rows: int  # m
    floor: int  # the largest rank of the queries that are settled from the start
    origins: Integers  # shape (k,): the position of answer 0 of each query
    # touch_starts, touch_queries, touch_weights: ``touch_starts[i]:touch_starts[i + 1]`` are the
    # entries of head cell i: the unsettled queries that a row there adds to, and what it adds
    touch_starts: Integers
    touch_queries: Integers
    touch_weights: Integers
    # settle_starts, settle_queries, settle_weights: the same for the queries that settle with head cell
    # i, and their weight on all later cells
    settle_starts: Integers
    settle_queries: Integers
    settle_weights: Integers
    ranks: Ranks  # the ranks of all answers
    live: Integers  # shape (n,): the live queries
    ways: Integers  # shape (m + 1,): in how many ways a number of rows can be spread over the tail
    # shape (m + 1, n): with r rows left and live query q at position a, the table row begins at
    # ``starts[r, q] + a * ways[r]``
    starts: Integers
    table: Ranks  # the table rows: the rank of one query for each of ``ways[r]`` tails

    def __repr__(self) -> str:
        return "<Walk: confidential>"


@kernel
def fill(
    tail: Integers,
    lows: Integers,
    highs: Integers,
    ways: Integers,
    starts: Integers,
    ranks: Ranks,
    table: Ranks,
) -> None:
    """Write the table rows: the rank of each live query for each way to spread the rows over the tail."""
    last, live = len(tail) - 1, tail.shape[1]
    counts = np.empty(len(tail), np.int64)
    sums = np.empty(live, np.int64)
    added = np.empty((live, ways.max()), np.uint32)
    for rows in range(len(ways)):
        if lows[rows, 0] > highs[rows, 0]:
            continue
        counts[:] = 0
        counts[0] = rows
        for q in range(live):
            sums[q] = rows * tail[0, q]
        for way in range(ways[rows]):
            for q in range(live):
                added[q, way] = sums[q]
            moved = counts[last]
            cell = last - 1
            while cell >= 0 and counts[cell] == 0:
                cell -= 1
            if cell >= 0:
                counts[last] = 0
                counts[cell] -= 1
                counts[cell + 1] = moved + 1
                for q in range(live):
                    sums[q] += (moved + 1) * tail[cell + 1, q] - tail[cell, q] - moved * tail[last, q]
        for q in range(live):
            for position in range(lows[rows, q], highs[rows, q] + 1):
                start = starts[rows, q] + position * ways[rows]
                reached = ranks[position:]
                for way in range(ways[rows]):
                    table[start + way] = reached[added[q, way]]


# A call that takes the tuple counts references to each of its arrays, hence the inlining.
@inlined
def put(walk: Walk, cell: int, rows: int, counts: Integers, positions: Integers) -> None:
    """Put rows into a head cell (or take them out)."""
    counts[cell] += rows
    for t in range(walk.touch_starts[cell], walk.touch_starts[cell + 1]):
        positions[walk.touch_queries[t]] += rows * walk.touch_weights[t]


@inlined
def settle(
    walk: Walk, cell: int, counts: Integers, positions: Integers, left: Integers, tops: Integers
) -> None:
    """Update the rows left and the running maximum before each cell, from a head cell on."""
    for i in range(cell, len(counts)):
        rows = left[i] - counts[i]
        top = tops[i]
        for s in range(walk.settle_starts[i], walk.settle_starts[i + 1]):
            position = positions[walk.settle_queries[s]] + rows * walk.settle_weights[s]
            top = max(top, np.int64(walk.ranks[position]))
        left[i + 1] = rows
        tops[i + 1] = top


@inlined
def advance(walk: Walk, counts: Integers, positions: Integers, left: Integers, tops: Integers) -> None:
    """Move to the next leaf, which must exist."""
    cell = len(counts) - 1
    while counts[cell] == 0:
        cell -= 1
    put(walk, cell, -1, counts, positions)
    if cell + 1 < len(counts):
        put(walk, cell + 1, left[cell + 1] + 1, counts, positions)
    settle(walk, cell, counts, positions, left, tops)


@inlined
def score(walk: Walk, positions: Integers, rows: int, top: int, out: Ranks) -> None:
    """Write the ranks of a leaf's candidates, given at least one live query."""
    ways = walk.ways[rows]
    least = out.dtype.type(top)
    for p in range(ways):
        out[p] = least
    last = len(walk.live) - 1
    for q in range(0, last + 1, 3):  # three rows at a time: short rows cost mostly their loops
        r, s = min(q + 1, last), min(q + 2, last)
        start = walk.starts[rows, q] + positions[walk.live[q]] * ways
        first = walk.table[start : start + ways]
        start = walk.starts[rows, r] + positions[walk.live[r]] * ways
        second = walk.table[start : start + ways]
        start = walk.starts[rows, s] + positions[walk.live[s]] * ways
        third = walk.table[start : start + ways]
        for p in range(ways):
            out[p] = max(max(out[p], first[p]), max(second[p], third[p]))


# Proof: docs/proofs/census.md, lemma 7.
@kernel
def visit(walk: Walk, head: Integers, goal: int, rank: int, index: int, banks: Integers) -> int:
    """Walk the leaves of ``goal`` candidates from the leaf with the counts ``head`` on."""
    # all candidates are counted by rank; or the walk stops at one of a rank that is looked for
    counts = np.zeros(len(head), np.int64)
    positions = walk.origins.copy()
    left = np.full(len(head) + 1, walk.rows)
    tops = np.full(len(head) + 1, walk.floor)
    for cell in range(len(head)):
        put(walk, cell, head[cell], counts, positions)
    settle(walk, 0, counts, positions, left, tops)
    live = len(walk.live) > 0
    ranks = np.empty(walk.ways.max() if live else 0, walk.table.dtype)
    # four banks: an increment waits for the one before it if both are of the same entry
    a, b, c, d = banks[0], banks[1 % len(banks)], banks[2 % len(banks)], banks[3 % len(banks)]
    passed = 0
    while True:
        ways, top = int(walk.ways[left[-1]]), tops[-1]
        if live:
            score(walk, positions, left[-1], top, ranks)
        if rank < 0:
            if live:
                for p in range(0, ways - 3, 4):
                    a[ranks[p]] += 1
                    b[ranks[p + 1]] += 1
                    c[ranks[p + 2]] += 1
                    d[ranks[p + 3]] += 1
                for p in range(ways - ways % 4, ways):
                    a[ranks[p]] += 1
            else:
                a[top] += ways
        elif live:
            for p in range(ways):
                if ranks[p] == rank:
                    if index == 0:
                        return passed + p
                    index -= 1
        elif top == rank:
            if index < ways:
                return passed + index
            index -= ways
        passed += ways
        if passed >= goal:
            return passed
        advance(walk, counts, positions, left, tops)
