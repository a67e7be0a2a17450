"""Trials of k-trees: columns are drawn node by node until a check fails or a candidate survives.

Each call of a kernel that takes a tuple counts references to all its arrays. What a trial calls for each
column and each check is inlined, therefore, and takes what it needs.
"""

from typing import NamedTuple

import numpy as np

from queries.arrays import Booleans, Integers, Words
from smalldb.kernels.bitwise import CELL_BITS, CELL_MASK, HALF, ONE, ones, pack, unpack
from smalldb.kernels.checks import Checks, Queries, answer
from smalldb.kernels.compiling import inlined, kernel
from smalldb.kernels.leaves import WHOLE, among, fitting
from smalldb.kernels.nodes import BINOMIALS, MOST_CELLS, MOST_PARENTS, MOST_ROWS, Nodes, scan_for
from smalldb.kernels.states import States
from smalldb.kernels.ways import ONE_WORD, ShareTables, choose, looked_up, slot_of, tabulate_leaf

OUT_OF_WORDS, PAUSED, SURVIVED, IMPOSSIBLE = range(4)
CERTAIN = np.uint64(1 << 63)  # the share of what is certain
COLUMN_COST = 1  # of a column of a trial, so that a unit of work takes as long as one of counting

# SUBSETS[size, taken, rank]: the positions, as bits, that the subset of this rank takes (see `subset`)
FEW = 8
SUBSETS = np.zeros((FEW + 1, FEW + 1, int(BINOMIALS[FEW].max())), dtype=np.uint64)
for _n in range(1, FEW + 1):
    for _taken in range(_n + 1):
        _without = BINOMIALS[_n - 1, _taken]
        SUBSETS[_n, _taken, :_without] = SUBSETS[_n - 1, _taken, :_without] << ONE
        _with = BINOMIALS[_n, _taken] - _without
        SUBSETS[_n, _taken, _without : _without + _with] = SUBSETS[_n - 1, _taken - 1, :_with] << ONE | ONE


class Leaves(NamedTuple):
    """How trials draw columns of broad leaves: all that a narrower leaf has, until the checks hold."""

    # shape (nodes,): whether this is how the node is drawn. What else there is, is read of these alone.
    broad: Booleans
    # nodes, states: the same nodes with fewer parents
    nodes: Nodes
    states: States
    tables: ShareTables  # of their ways; sums are those of columns
    checks: Checks  # queries that the clique of the broad leaf holds and that of the narrow one does not


# Proof: docs/proofs/rejection.md, lemma 7.
@inlined
def usable(words: Words, here: int, modulus: np.uint64) -> int:
    """Return the position of the next word whose residue is uniform, or the end."""
    if here < len(words) and words[here] < modulus:
        excess = (~modulus + ONE) % modulus  # 2^64 modulo the modulus: as many words are refused
        while here < len(words) and words[here] < excess:
            here += 1
    return here


# Proof: docs/proofs/rejection.md, lemma 7.
@inlined
def subset(rank: np.int64, rows: np.uint64, size: np.int64, taken: np.int64) -> np.uint64:
    """Return the subset at a position among those of `taken` of the `size` given rows."""
    chosen = np.uint64(0)
    if size <= FEW:
        positions = SUBSETS[size, taken, rank]
        for _ in range(FEW):
            lowest = rows & (~rows + ONE)
            rows ^= lowest
            chosen |= lowest & (~(positions & ONE) + ONE)
            positions >>= ONE
        return chosen
    while taken:
        lowest = rows & (~rows + ONE)
        rows ^= lowest
        size -= 1
        without = BINOMIALS[size, taken]
        if rank >= without:
            rank -= without
            chosen |= lowest
            taken -= 1
    return chosen


@inlined
def split(
    parents: Integers, i: int, cells: int, columns: Words, everyone: np.uint64, masks: Words, h: Integers
) -> tuple[np.uint64, np.uint64]:
    """Write the rows of each cell of a node, and how many; return the packed state."""
    masks[0] = everyone
    bit = 1
    for q in range(MOST_PARENTS):
        if bit == cells:
            break
        column = columns[parents[i, q]]
        for x in range(bit):
            masks[x + bit] = masks[x] & column
            masks[x] &= ~column
        bit *= 2
    for x in range(cells):
        h[x] = ones(masks[x])
    return pack(h, 0, cells)


# Proof: docs/proofs/rejection.md, lemma 7.
@inlined
def spread(masks: Words, h: Integers, u: Integers, cells: int, rank: np.uint64) -> np.uint64:
    """Return the column at a position among those with u ones among the h rows of each cell."""
    column = np.uint64(0)
    for x in range(cells):
        if u[x] == h[x]:
            column |= masks[x]
        elif u[x]:
            choices = np.uint64(BINOMIALS[h[x], u[x]])
            column |= subset(np.int64(rank % choices), masks[x], h[x], u[x])
            rank //= choices
    return column


# Proof: docs/proofs/rejection.md, lemmas 7 and 10.
@kernel
def tree_trials(
    nodes: Nodes,
    states: States,
    queries: Queries,
    checks: Checks,
    tables: ShareTables,
    leaves: Leaves,
    last: int,
    layers: Integers,
    order: Integers,
    turn: int,
    end: int,
    words: Words,
    start: int,
    everyone: np.uint64,
    columns: Words,
    shares: Words,
    ways: Integers,
    budget: int,
) -> tuple[int, int, int, int]:
    """Make trials until a candidate survives all checks (`docs/proofs/rejection.md`, lemma 7)."""
    # A trial reads its words in order, one for each column. That word says u and which rows, unless
    # more than `ONE_WORD` columns have this u: then one or more further words say which. If its words
    # do not reach, it is given up, and the caller must make it again from its first word: which words a
    # trial has read depends on them.
    d = len(columns)
    scan = scan_for(nodes)
    masks, weights = np.empty(MOST_CELLS, np.uint64), np.empty(MOST_ROWS + 1, np.float64)
    cost = 0
    while turn < len(order) and cost <= budget:
        layer, here = layers[order[turn]], start
        if order[turn] >= end or layer > last:  # the slack of the shares
            turn += 1
            continue
        if here + d > len(words):
            return OUT_OF_WORDS, turn, start, cost
        if layer == last:
            for a in range(d):
                columns[a] = words[here] & everyone
                here += 1
            return SURVIVED, turn, here, cost + d
        alive = True
        for position in range(d):
            i = layer * d + position
            if leaves.broad[i]:
                cells = leaves.nodes.cells[i]
                first, second = split(leaves.nodes.parents, i, cells, columns, everyone, masks, scan.h)
                start_slot = leaves.states.slot_start[i]
                mask = np.uint64(leaves.states.slot_start[i + 1] - start_slot - 1)
                slot = slot_of(leaves.tables.slots, start_slot, mask, first, second)
                if slot < 0:
                    return IMPOSSIBLE, turn, start, cost
                if leaves.tables.slots[slot, 3] == 0:
                    cost += tabulate_leaf(leaves.nodes, i, slot, scan, leaves.tables)
                table = leaves.tables.slots[slot, 3]
                if table:
                    total = leaves.tables.sums[np.int64(table >> HALF) - 1]
                else:
                    total, _ = among(leaves.nodes, i, scan, WHOLE)
                fits = False
                while not fits:
                    here = usable(words, here, np.uint64(total))
                    if here == len(words):
                        return OUT_OF_WORDS, turn, start, cost
                    drawn = np.int64(words[here] % np.uint64(total))
                    here += 1
                    if table:
                        entry, part, within = looked_up(table, leaves.tables.sums, drawn)
                        unpack(leaves.tables.ways[entry, 0], leaves.tables.ways[entry, 1], scan.u)
                    else:
                        _, within = among(leaves.nodes, i, scan, drawn)
                    columns[nodes.attributes[i]] = spread(masks, scan.h, scan.u, cells, np.uint64(within))
                    cost += 1 + COLUMN_COST
                    fits = True
                    for check in range(leaves.checks.start[i], leaves.checks.start[i + 1]):
                        seen = answer(queries, leaves.checks.queries[check], columns, everyone)
                        cost += 1
                        if seen < leaves.checks.lows[check] or seen > leaves.checks.highs[check]:
                            fits = False
                            break
            else:
                cells = nodes.cells[i]
                first, second = split(nodes.parents, i, cells, columns, everyone, masks, scan.h)
                start_slot = states.slot_start[i]
                mask = np.uint64(states.slot_start[i + 1] - start_slot - 1)
                slot = slot_of(tables.slots, start_slot, mask, first, second)
                if slot < 0:
                    return IMPOSSIBLE, turn, start, cost
                table = tables.slots[slot, 3]
                if here == len(words):
                    return OUT_OF_WORDS, turn, start, cost
                drawn = np.int64(words[here] >> ONE)
                here += 1
                if table == 0:
                    part, within, work = choose(nodes, i, slot, states, scan, weights, tables, drawn)
                else:
                    entry, part, within = looked_up(table, tables.sums, drawn)
                    work = 1
                    first, second = tables.ways[entry, 0], tables.ways[entry, 1]
                    for x in range(min(cells, 8)):
                        scan.u[x] = np.int64(first & CELL_MASK)
                        first >>= CELL_BITS
                    for x in range(8, cells):
                        scan.u[x] = np.int64(second & CELL_MASK)
                        second >>= CELL_BITS
                cost += work + COLUMN_COST
                if part < 0:
                    return IMPOSSIBLE, turn, start, cost
                if part == 0:
                    alive = False
                    break
                count = np.int64(1)
                for x in range(cells):
                    count *= BINOMIALS[scan.h[x], scan.u[x]]
                shares[position], ways[position] = np.uint64(part), count
                modulus = np.uint64(count)
                if count <= ONE_WORD:
                    rank = np.uint64(within) % modulus  # the share is a multiple of the count
                else:
                    here = usable(words, here, modulus)
                    if here == len(words):
                        return OUT_OF_WORDS, turn, start, cost
                    rank = words[here] % modulus
                    here += 1
                columns[nodes.attributes[i]] = spread(masks, scan.h, scan.u, cells, rank)
            for check in range(checks.start[i], checks.start[i + 1]):
                seen = answer(queries, checks.queries[check], columns, everyone)
                cost += 1
                if seen < checks.lows[check] or seen > checks.highs[check]:
                    alive = False
                    break
            if not alive:
                break
        start = here
        if alive:
            for position in range(d):
                i = layer * d + position
                if leaves.broad[i]:
                    cells = nodes.cells[i]
                    split(nodes.parents, i, cells, columns, everyone, masks, scan.h)
                    shares[position], ways[position] = CERTAIN, fitting(nodes, i, scan)
                    if ways[position] == 0:
                        return IMPOSSIBLE, turn, start, cost
            return SURVIVED, turn, start, cost
        turn += 1
    return PAUSED, turn, start, cost
