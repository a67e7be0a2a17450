"""The shares of the ways of a state out of 2^63, their tables, and the way whose share holds a position."""

from typing import NamedTuple

import numpy as np

from queries.arrays import Booleans, Floats, Integers, Words
from smalldb.kernels.bitwise import HALF, LOW_HALF, ONE, first_above, hashed, pack, unpack
from smalldb.kernels.compiling import inlined, kernel
from smalldb.kernels.nodes import BINOMIALS, WEIGHTS, Nodes, Scan, advance, begin, columns_above
from smalldb.kernels.states import EMPTY, States, weights_of

SHARE = 2.0**63 * (1 - 2.0**-20)  # integers that a draw divides among the ways of a state
ONE_WORD = 1 << 20  # columns of one way, up to which the word that chose the way also says which column it is


class ShareTables(NamedTuple):
    """The ways of states that were visited, so that a draw is a binary search."""

    # A trial waits for memory more than for anything else: what it reads of a state lies side by side

    # shape (slots, 4), a row for each slot of `States`: the packed state (0, 0: no state), its position
    # among all states, and its table: the entry after its last one, shifted by 32, plus the number of
    # entries. 0: no table.
    slots: Words
    sums: Integers  # shape (capacity,): running sums of the integer shares
    ways: Words  # shape (capacity, 2): u, packed
    used: Integers  # shape (1,): entries used


# Proof: docs/proofs/rejection.md, lemma 4.
@kernel
def share_of(weight: float, value: float, columns: float) -> np.int64:
    """Return the integers that a way gets of those divided among the ways of a state: rounded up."""
    # if a way has few columns, each of them gets the same whole number: the integer that chose the way
    # also says which column it is
    part = weight / value * SHARE  # may underflow
    if columns > ONE_WORD:
        return np.int64(max(1.0, np.ceil(part)))
    return np.int64(max(1.0, np.ceil(part / columns))) * np.int64(columns)


@kernel
def share_tables(states: States, drawn: Booleans, room: int) -> ShareTables:
    """Return tables with room for so many entries, none of them used, for the nodes that are `drawn`."""
    slots = np.zeros((len(states.slots), 4), np.uint64)
    for i in np.flatnonzero(drawn):
        for slot in range(states.slot_start[i], states.slot_start[i + 1]):
            if states.slots[slot] != EMPTY:
                state = states.start[i] + states.slots[slot]
                slots[slot, 0], slots[slot, 1] = states.keys[state, 0], states.keys[state, 1]
                slots[slot, 2] = np.uint64(state)
    return ShareTables(slots, np.empty(room, np.int64), np.empty((room, 2), np.uint64), np.zeros(1, np.int64))


@inlined
def slot_of(slots: Words, start: int, mask: np.uint64, first: np.uint64, second: np.uint64) -> np.int64:
    """Return the row of a state in the slots of `ShareTables`, from `start` on; -1: there is none."""
    slot = hashed(first, second) & mask
    while True:
        here = np.uint64(start) + slot
        if slots[here, 0] == first and slots[here, 1] == second:
            return np.int64(here)
        if slots[here, 0] == 0 and slots[here, 1] == 0:
            return np.int64(-1)
        slot = (slot + ONE) & mask


# Proof: docs/proofs/rejection.md, lemma 5.
@kernel
def tabulate(
    nodes: Nodes, i: int, slot: np.int64, states: States, scan: Scan, weights: Floats, tables: ShareTables
) -> int:
    """Write the table of a slot's state, if there is room; return the ways visited; -1: shares pass 2^63."""
    value = states.values[np.int64(tables.slots[slot, 2])] / nodes.shrink
    first = end = tables.used[0]
    total, cost = np.int64(0), 1
    going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
    while going:
        lower, upper = pack(scan.u, 1, nodes.cells[i])
        size = weights_of(nodes, i, scan, states, weights)
        cost += size
        for a in range(size):
            if weights[a] == 0.0:
                continue
            if end == len(tables.sums):
                tables.used[0] = end  # full: no more tables
                return cost
            u = scan.u[0] + a
            total += share_of(weights[a], value, scan.weights[1] * WEIGHTS[scan.h[0], u])
            if total < 0:
                return -1
            tables.sums[end] = total
            tables.ways[end, 0] = lower | np.uint64(u)
            tables.ways[end, 1] = upper
            end += 1
        going = advance(nodes, i, scan, False)
    tables.slots[slot, 3] = np.uint64(end) << HALF | np.uint64(end - first)
    tables.used[0] = end
    return cost


@inlined
def looked_up(table: np.uint64, sums: Integers, position: np.int64) -> tuple[np.int64, np.int64, np.int64]:
    """Return the entry of a table whose share holds `position`, its share (0: none), the position in it."""
    end = table >> HALF
    first = end - (table & LOW_HALF)
    if first == end or position >= sums[end - ONE]:
        return np.int64(0), np.int64(0), np.int64(0)
    entry = first_above(sums, first, end, position)
    before = sums[entry - ONE] if entry > first else np.int64(0)
    return np.int64(entry), sums[entry] - before, position - before


# Proof: docs/proofs/rejection.md, lemma 5.
@kernel
def choose(
    nodes: Nodes,
    i: int,
    slot: np.int64,
    states: States,
    scan: Scan,
    weights: Floats,
    tables: ShareTables,
    position: np.int64,
) -> tuple[np.int64, np.int64, int]:
    """Choose the way whose share holds `position`: write ``scan.u``."""
    cost = 1
    if tables.slots[slot, 3] == 0 and tables.used[0] < len(tables.sums):
        cost += tabulate(nodes, i, slot, states, scan, weights, tables)
        if cost == 0:
            return np.int64(-1), np.int64(0), 1
    if tables.slots[slot, 3]:
        entry, part, within = looked_up(tables.slots[slot, 3], tables.sums, position)
        if part:
            unpack(tables.ways[entry, 0], tables.ways[entry, 1], scan.u)
        return part, within, cost
    value = states.values[np.int64(tables.slots[slot, 2])] / nodes.shrink
    total = np.int64(0)
    going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
    while going:
        size = weights_of(nodes, i, scan, states, weights)
        for a in range(size):
            if weights[a] > 0.0:
                part = share_of(weights[a], value, scan.weights[1] * WEIGHTS[scan.h[0], scan.u[0] + a])
                total += part
                if total < 0:
                    return np.int64(-1), np.int64(0), cost
                if total > position:
                    scan.u[0] += a
                    return part, position - (total - part), cost
        cost += size
        going = advance(nodes, i, scan, False)
    return np.int64(0), np.int64(0), cost


# Proof: docs/proofs/rejection.md, lemma 10.
@kernel
def tabulate_leaf(nodes: Nodes, i: int, slot: np.int64, scan: Scan, tables: ShareTables) -> int:
    """Write the table of a leaf's state ``scan.h``, if there is room; return the ways visited."""
    first = end = tables.used[0]
    total = np.int64(0)
    going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
    while going:
        lower, upper = pack(scan.u, 1, nodes.cells[i])
        columns = columns_above(nodes, i, scan)
        for u in range(scan.u[0], scan.top[0] + 1):
            if end == len(tables.sums):
                return int(end - first)
            total += columns * BINOMIALS[scan.h[0], u]
            tables.sums[end] = total
            tables.ways[end, 0] = lower | np.uint64(u)
            tables.ways[end, 1] = upper
            end += 1
        going = advance(nodes, i, scan, False)
    tables.slots[slot, 3] = np.uint64(end) << HALF | np.uint64(end - first)
    tables.used[0] = end
    return int(end - first)
