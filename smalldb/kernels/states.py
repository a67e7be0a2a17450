"""The states of a k-tree that are reached, and the ways to complete each, counted from the leaves up."""

from typing import NamedTuple

import numpy as np

from queries.arrays import Floats, Integers, Words
from smalldb.kernels.bitwise import ONE, hashed, unpack
from smalldb.kernels.compiling import inlined, kernel
from smalldb.kernels.nodes import MOST_ROWS, MOST_TERMS, WEIGHTS, Nodes, Scan, advance, begin, scan_for

EMPTY = -1
STATE_COST = 8  # of a state in ways, so that a budget bounds the memory too
MANY_LEVELS = 16  # thresholds that are counted in the time of a way


class States(NamedTuple):
    """The states of each node that are reached, or that have a value, found again by open addressing."""

    start: Integers  # shape (nodes + 1,): where the states of a node start, in
    keys: Words  # shape (states, 2), packed, and
    # shape (states,): at least the scaled number of ways to complete the subtree, as computed; 0: none
    values: Floats
    # shape (nodes + 1,): where the table of a node starts (its length is a power of two), in
    slot_start: Integers
    slots: Integers  # shape (slots,): states counted from the node's first, or `EMPTY`


@inlined
def find(
    slots: Integers, start: int, mask: np.uint64, keys: Words, base: int, first: np.uint64, second: np.uint64
) -> tuple[np.int64, np.int64]:
    """Return the slot of a state in a table, and the state that is found there, or `EMPTY`."""
    slot = hashed(first, second) & mask
    while True:
        state = slots[start + np.int64(slot)]
        if state == EMPTY or (keys[base + state, 0] == first and keys[base + state, 1] == second):
            return np.int64(slot), state
        slot = (slot + ONE) & mask


@kernel
def reach(nodes: Nodes, i: int, which: int, states: Words, budget: int) -> tuple[Words, Integers, int]:
    """Return the states of one child that are reachable from the states of node i, their slots, the cost."""
    scan = scan_for(nodes)
    slots = np.full(64, EMPTY, np.int64)
    keys = np.empty((32, 2), np.uint64)
    step_first = nodes.steps[nodes.child_start[i] + which, 0, 0]
    step_second = nodes.steps[nodes.child_start[i] + which, 0, 1]
    size, cost = 0, 0
    for s in range(len(states)):
        unpack(states[s, 0], states[s, 1], scan.h)
        terms = 0
        going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
        while going:
            first = scan.keys[which, 1, 0] + np.uint64(scan.u[0]) * step_first
            second = scan.keys[which, 1, 1] + np.uint64(scan.u[0]) * step_second
            for _ in range(scan.u[0], scan.top[0] + 1):
                mask = np.uint64(len(slots) - 1)
                slot, state = find(slots, 0, mask, keys, 0, first, second)
                if state == EMPTY:
                    if size == len(keys):
                        keys, slots = widened(keys)
                        slot, _ = find(slots, 0, np.uint64(len(slots) - 1), keys, 0, first, second)
                    keys[size, 0], keys[size, 1] = first, second
                    slots[slot] = size
                    size += 1
                    cost += STATE_COST
                first += step_first
                second += step_second
            terms += scan.top[0] - scan.u[0] + 1
            going = terms <= MOST_TERMS and advance(nodes, i, scan, False)
        cost += terms + 4
        if terms > MOST_TERMS:
            cost = budget + 1
        if cost > budget:
            break
    return keys[:size].copy(), slots, cost


@kernel
def slots_for(keys: Words, length: int) -> Integers:
    """Return the slots of these states: so many, a power of two above the number of states."""
    slots = np.full(length, EMPTY, np.int64)
    for state in range(len(keys)):
        slot, _ = find(slots, 0, np.uint64(length - 1), keys, 0, keys[state, 0], keys[state, 1])
        slots[slot] = state
    return slots


@kernel
def widened(keys: Words) -> tuple[Words, Integers]:
    """Return room for twice as many states, those given kept, and their slots."""
    size = len(keys)
    wider = np.empty((2 * size, 2), np.uint64)
    for state in range(size):
        wider[state, 0], wider[state, 1] = keys[state, 0], keys[state, 1]
    return wider, slots_for(keys, 4 * size)


# Proof: docs/proofs/rejection.md, lemma 3.
@kernel
def weights_of(nodes: Nodes, i: int, scan: Scan, states: States, weights: Floats) -> int:
    """Write the weight of each way in the present range: binomials times the children's values."""
    low, size = scan.u[0], scan.top[0] - scan.u[0] + 1
    for a in range(size):
        weights[a] = scan.weights[1] * WEIGHTS[scan.h[0], low + a]
    for k in range(nodes.child_start[i], nodes.child_start[i + 1]):
        c = k - nodes.child_start[i]
        child = nodes.children[k]
        base, start = states.start[child], states.slot_start[child]
        mask = np.uint64(states.slot_start[child + 1] - start - 1)
        step_first, step_second = nodes.steps[k, 0, 0], nodes.steps[k, 0, 1]
        first = scan.keys[c, 1, 0] + np.uint64(low) * step_first
        second = scan.keys[c, 1, 1] + np.uint64(low) * step_second
        for a in range(size):
            if weights[a] > 0.0:
                _, state = find(states.slots, start, mask, states.keys, base, first, second)
                weights[a] *= states.values[base + state] if state != EMPTY else 0.0
            first += step_first
            second += step_second
    return int(size)


# Proof: docs/proofs/rejection.md, lemmas 2 and 3.
@kernel
def weigh_states(
    nodes: Nodes, i: int, states: States, thresholds: Integers, values: Floats, first: Integers, budget: int
) -> int:
    """Write the values of all states of node i at each threshold, those of its children given."""
    scan = scan_for(nodes)
    last = len(thresholds)
    first_row, last_row = nodes.row_start[i], nodes.row_start[i + 1]
    first_child, last_child = nodes.child_start[i], nodes.child_start[i + 1]
    gaps, part = np.empty(MOST_ROWS + 1, np.int64), np.empty(last, np.float64)
    first_box, last_box = nodes.box_start[first_row], nodes.box_start[last_row]
    constants = np.empty(last_box - first_box, np.int64)
    below = np.empty(last_child - first_child, np.int64)
    each = 1 + (last_child - first_child) * last // MANY_LEVELS
    cost = 0
    for s in range(states.start[i], states.start[i + 1]):
        unpack(states.keys[s, 0], states.keys[s, 1], scan.h)
        constants[:] = 0
        for box in range(first_box, last_box):
            for x in range(nodes.cells[i]):
                constants[box - first_box] += nodes.constants[box, x] * scan.h[x]
        terms = 0
        going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
        while going:
            low, size = scan.u[0], scan.top[0] - scan.u[0] + 1
            for a in range(size):
                gaps[a] = 0
            for row in range(first_row, last_row if last > 1 else first_row):
                for box in range(nodes.box_start[row], nodes.box_start[row + 1]):
                    form = scan.sums[1, row - first_row] + nodes.forms[row, 0] * low
                    answer = constants[box - first_box] + nodes.scales[box] * form
                    gap = nodes.centres[box] - nodes.n * answer
                    step = nodes.n * nodes.scales[box] * nodes.forms[row, 0]
                    for a in range(size):
                        gaps[a] = max(gaps[a], abs(gap - step * a))
            for a in range(size):
                level = np.searchsorted(thresholds, gaps[a])
                for c in range(last_child - first_child):
                    k = first_child + c
                    child = nodes.children[k]
                    start = states.slot_start[child]
                    _, state = find(
                        states.slots,
                        start,
                        np.uint64(states.slot_start[child + 1] - start - 1),
                        states.keys,
                        states.start[child],
                        scan.keys[c, 1, 0] + np.uint64(low + a) * nodes.steps[k, 0, 0],
                        scan.keys[c, 1, 1] + np.uint64(low + a) * nodes.steps[k, 0, 1],
                    )
                    below[c] = states.start[child] + state
                    level = max(level, first[below[c]])
                if level == last:
                    continue
                weight = scan.weights[1] * WEIGHTS[scan.h[0], low + a]
                if len(below) == 0:
                    values[s, level] += weight
                    continue
                for t in range(level, last):
                    part[t] = weight
                for c in range(len(below)):
                    for t in range(level, last):
                        part[t] *= values[below[c], t]
                for t in range(level, last):
                    values[s, t] += part[t]
            terms += size
            going = terms <= MOST_TERMS and advance(nodes, i, scan, False)
        if len(below) == 0:
            for t in range(1, last):
                values[s, t] += values[s, t - 1]
        first[s] = last
        for t in range(last - 1, -1, -1):
            if values[s, t] > 0.0:
                first[s] = t
        for t in range(last):
            values[s, t] *= nodes.shrink
        cost += terms * each + 4
        if terms > MOST_TERMS:
            cost = budget + 1
        if cost > budget:
            break
    return cost
