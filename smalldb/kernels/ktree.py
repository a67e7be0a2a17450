"""Kernels of the rejection sampler: counting a k-tree relaxation, and trials of trees (`stars`: of stars).

The m ordered rows of a candidate are kept column by column: a column is a word of m bits. The attributes come
in an order in which each node has at most `MOST_PARENTS` parents among the attributes before it; a state of a
node is the histogram of the m rows over the cells of its parents, 8 bits a cell in two words. From a state h,
a column is chosen in two steps: u, how many rows of each cell have a one, then which rows.

Each call of a kernel that takes a tuple counts references to all its arrays. What a trial calls for each
column and each check is inlined, therefore, and takes what it needs.

The file is long because a trial walks the states that the counting left, by the same kernels, and a cached
kernel does not notice a change in a callee of another file.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MOST_ROWS = 64
MOST_PARENTS = 4
MOST_ROWS_OF_LEAVES = 52  # of broad leaves: doubles count their columns exactly
MOST_CELLS = 1 << MOST_PARENTS
MOST_TERMS = 1 << 22  # ways u of one state: the rounding of their sum stays below 2^-30
SHARE = 2.0**63 * (1 - 2.0**-20)  # integers that a draw divides among the ways of a state
ONE_WORD = 1 << 20  # columns of one way, up to which the word that chose the way also says which column it is

MOST_PLACES = 1 << 18  # that the columns of one state are counted in: 2 MB
CERTAIN = np.uint64(1 << 63)  # the share of what is certain
WHOLE = np.int64((1 << 63) - 1)

ONE = np.uint64(1)
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing
MORE_SPREAD = np.uint64(0xBF58476D1CE4E5B9)
CELL_BITS = np.uint64(8)
CELL_MASK = np.uint64(255)
HALF = np.uint64(32)
LOW_HALF = np.uint64((1 << 32) - 1)

CONJUNCTION, PARITY, TABLE = range(3)
OUT_OF_WORDS, PAUSED, SURVIVED, IMPOSSIBLE = range(4)
EMPTY = -1

STATE_COST = 8  # of a state in ways, so that a budget bounds the memory too
PLACES, LINES = 8, 16  # of counts of columns, that are added to in a step, and steps in the time of a way
MANY_LEVELS = 16  # thresholds that are counted in the time of a way
COLUMN_COST = 1  # of a column of a trial, so that a unit of work takes as long as one of counting

BINOMIALS = np.zeros((MOST_ROWS + 1, MOST_ROWS + 1), dtype=np.int64)
BINOMIALS[:, 0] = 1
for _n in range(1, MOST_ROWS + 1):
    BINOMIALS[_n, 1:] = BINOMIALS[_n - 1, 1:] + BINOMIALS[_n - 1, :-1]
WEIGHTS = BINOMIALS.astype(np.float64)

# SUBSETS[size, taken, rank]: the places, as bits, that the subset of this rank takes (see `subset`)
FEW = 8
SUBSETS = np.zeros((FEW + 1, FEW + 1, int(BINOMIALS[FEW].max())), dtype=np.uint64)
for _n in range(1, FEW + 1):
    for _taken in range(_n + 1):
        _without = BINOMIALS[_n - 1, _taken]
        SUBSETS[_n, _taken, :_without] = SUBSETS[_n - 1, _taken, :_without] << ONE
        _with = BINOMIALS[_n, _taken] - _without
        SUBSETS[_n, _taken, _without : _without + _with] = SUBSETS[_n - 1, _taken - 1, :_with] << ONE | ONE


class Nodes(NamedTuple):
    """The nodes of one or several k-trees, one after the other; parents come before their children.

    Attributes
    ----------
    attributes
        Shape (nodes,): the attribute of each node.
    parents
        Shape (nodes, `MOST_PARENTS`): the attributes of its parents, -1 where there are fewer. Parent q is
        bit q of a cell.
    cells
        Shape (nodes,): 2^(number of parents).
    row_start
        Shape (nodes + 1,): the linear forms in u of node i are the rows ``row_start[i]`` onwards of
    forms
        shape (rows, `MOST_CELLS`).
    box_start
        Shape (rows + 1,): the bounds on form r are the boxes ``box_start[r]`` onwards, each of which says
        ``low <= scale (form u) + constant h <= high``.
    scales, lows, highs
        Shape (boxes,).
    constants
        Shape (boxes, `MOST_CELLS`).
    child_start
        Shape (nodes + 1,): the children of node i are those from ``child_start[i]`` on, in
    children
        shape (number of children,).
    bases, steps
        Shape (children, `MOST_CELLS`, 2): the child's packed state is
        ``sum_x h_x bases[x] + u_x steps[x]``, word by word, modulo 2^64.
    centres
        Shape (boxes,): m b of each box's query.
    n
        Rows of the data.
    shrink
        2^-floor(m/2): each node's count is multiplied by it, so that no product leaves the doubles.
    """

    attributes: Integers
    parents: Integers
    cells: Integers
    row_start: Integers
    forms: Integers
    box_start: Integers
    scales: Integers
    lows: Integers
    highs: Integers
    constants: Integers
    child_start: Integers
    children: Integers
    bases: Words
    steps: Words
    centres: Integers
    n: int
    shrink: float


class States(NamedTuple):
    """The states of each node that are reached, or that have a value, found again by open addressing.

    Attributes
    ----------
    start
        Shape (nodes + 1,): where the states of a node start, in
    keys
        shape (states, 2), packed, and
    values
        shape (states,): at least the scaled number of ways to complete the subtree, as computed;
        0: none.
    slot_start
        Shape (nodes + 1,): where the table of a node starts (its length is a power of two), in
    slots
        shape (slots,): states counted from the node's first, or `EMPTY`.
    """

    start: Integers
    keys: Words
    values: Floats
    slot_start: Integers
    slots: Integers


class Queries(NamedTuple):
    """Answers on columns: ``offset + factor count`` of the rows that a query counts; tables add weights.

    Attributes
    ----------
    kinds
        Shape (k,): `CONJUNCTION` counts the rows on which all literals hold, `PARITY` those with an odd
        number of ones, `TABLE` adds the weight of each row's setting.
    place_start
        Shape (k + 1,): where a query's attributes start, in
    places
        shape (literals,), ascending; and
    flips
        shape (literals,), all bits set where the literal is negated.
    weight_start
        Shape (k + 1,): where its table starts, in
    weights
        shape (entries,), product order.
    offsets, factors
        Shape (k,).
    """

    kinds: Integers
    place_start: Integers
    places: Integers
    flips: Words
    weight_start: Integers
    weights: Integers
    offsets: Integers
    factors: Integers


class Checks(NamedTuple):
    """What is looked up after each column: queries that no clique holds, with the bounds of each layer.

    Attributes
    ----------
    start
        Shape (nodes + 1,): where the queries to check after a node start, in
    queries
        shape (checks,).
    lows, highs
        Shape (checks,): the bounds on each answer.
    """

    start: Integers
    queries: Integers
    lows: Integers
    highs: Integers


class ShareTables(NamedTuple):
    """The ways of states that were visited, so that a draw is a binary search.

    A trial waits for memory more than for anything else: what it reads of a state lies side by side.

    Attributes
    ----------
    slots
        Shape (slots, 4), a row for each slot of `States`: the packed state (0, 0: no state), its place among
        all states, and its table: the entry after its last one, shifted by 32, plus the number of entries.
        0: no table.
    sums
        Shape (capacity,): running sums of the integer shares.
    ways
        Shape (capacity, 2): u, packed.
    used
        Shape (1,): entries used.
    """

    slots: Words
    sums: Integers
    ways: Words
    used: Integers


class Leaves(NamedTuple):
    """How trials draw columns of broad leaves: all that a narrower leaf has, until the checks hold.

    Attributes
    ----------
    broad
        Shape (nodes,): whether this is how the node is drawn. What else there is, is read of these alone.
    nodes, states
        The same nodes with fewer parents.
    tables
        Of their ways; sums are those of columns.
    checks
        Queries that the clique of the broad leaf holds and that of the narrow one does not.
    """

    broad: Flags
    nodes: Nodes
    states: States
    tables: ShareTables
    checks: Checks


class Scan(NamedTuple):
    """Where an enumeration of the ways u of one state stands; cells are fixed from the last to the first.

    Attributes
    ----------
    h, u, top
        Shape (cells,): the state, the present way, the largest value of each cell.
    lows, highs
        Shape (rows,): bounds on each form.
    least, most
        Shape (rows, cells + 1): what the cells below can add to each form.
    sums
        Shape (cells + 1, rows): each form over the cells from x on.
    weights
        Shape (cells + 1,): the product of the binomials from cell x on.
    keys
        Shape (children, cells + 1, 2): the children's states, so far as they are known.
    """

    h: Integers
    u: Integers
    top: Integers
    lows: Integers
    highs: Integers
    least: Integers
    most: Integers
    sums: Integers
    weights: Floats
    keys: Words


@njit(nogil=True, cache=True)
def scan_for(nodes: Nodes) -> Scan:
    """Return the scratch space of a scan, large enough for every node."""
    rows, children = 1, 1
    for i in range(len(nodes.cells)):
        rows = max(rows, nodes.row_start[i + 1] - nodes.row_start[i])
        children = max(children, nodes.child_start[i + 1] - nodes.child_start[i])
    return Scan(
        np.zeros(MOST_CELLS, np.int64),
        np.zeros(MOST_CELLS, np.int64),
        np.zeros(MOST_CELLS, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros((rows, MOST_CELLS + 1), np.int64),
        np.zeros((rows, MOST_CELLS + 1), np.int64),
        np.zeros((MOST_CELLS + 1, rows), np.int64),
        np.zeros(MOST_CELLS + 1, np.float64),
        np.zeros((children, MOST_CELLS + 1, 2), np.uint64),
    )


@njit(nogil=True, cache=True, inline="always")
def unpack(first: np.uint64, second: np.uint64, h: Integers) -> None:
    """Write the cells of a packed state."""
    for x in range(8):
        h[x] = np.int64(first & CELL_MASK)
        h[8 + x] = np.int64(second & CELL_MASK)
        first >>= CELL_BITS
        second >>= CELL_BITS


@njit(nogil=True, cache=True, inline="always")
def within_boxes(
    nodes: Nodes, row: int, cells: int, h: Integers, low: np.int64, high: np.int64
) -> tuple[np.int64, np.int64]:
    """Return what the boxes of a form leave of a range of its values at a state."""
    for box in range(nodes.box_start[row], nodes.box_start[row + 1]):
        constant = np.int64(0)
        for x in range(cells):
            constant += nodes.constants[box, x] * h[x]
        scale = nodes.scales[box]
        below, above = nodes.lows[box] - constant, nodes.highs[box] - constant
        if scale < 0:
            scale, below, above = -scale, -above, -below
        low = max(low, -((-below) // scale))
        high = min(high, above // scale)
    return low, high


@njit(nogil=True, cache=True)
def begin(nodes: Nodes, i: int, scan: Scan) -> bool:
    """Start at the state ``scan.h`` of node i; False: some form cannot be within its bounds."""
    cells = nodes.cells[i]
    first, last = nodes.row_start[i], nodes.row_start[i + 1]
    for row in range(first, last):
        r = row - first
        low, high = within_boxes(nodes, row, cells, scan.h, np.int64(-(1 << 62)), np.int64(1 << 62))
        least = most = np.int64(0)
        for x in range(cells):
            scan.least[r, x], scan.most[r, x] = least, most
            change = nodes.forms[row, x] * scan.h[x]
            if change < 0:
                least += change
            else:
                most += change
        if least > high or most < low:
            return False
        scan.lows[r], scan.highs[r] = low, high
        scan.sums[cells, r] = 0
    scan.weights[cells] = 1.0
    for k in range(nodes.child_start[i], nodes.child_start[i + 1]):
        c = k - nodes.child_start[i]
        for half in range(2):
            key = np.uint64(0)
            for x in range(cells):
                key += np.uint64(scan.h[x]) * nodes.bases[k, x, half]
            scan.keys[c, cells, half] = key
    return True


@njit(nogil=True, cache=True)
def advance(nodes: Nodes, i: int, scan: Scan, fresh: bool) -> bool:
    """Go to the first (`fresh`) or next choice of the cells above 0 and the range that it leaves to cell 0.

    The range is ``scan.u[0] .. scan.top[0]``. False: there is no further choice.
    """
    cells = nodes.cells[i]
    first, last = nodes.row_start[i], nodes.row_start[i + 1]
    first_child, last_child = nodes.child_start[i], nodes.child_start[i + 1]
    x = cells - 1 if fresh else 1
    opening = fresh
    while x < cells:
        if opening:
            low, high = np.int64(0), scan.h[x]
            for row in range(first, last):
                form = nodes.forms[row, x]
                if form == 0:
                    continue
                r = row - first
                below = scan.lows[r] - scan.sums[x + 1, r] - scan.most[r, x]
                above = scan.highs[r] - scan.sums[x + 1, r] - scan.least[r, x]
                if form == 1:
                    low, high = max(low, below), min(high, above)
                elif form == -1:
                    low, high = max(low, -above), min(high, -below)
                elif form > 0:
                    low, high = max(low, -((-below) // form)), min(high, above // form)
                else:
                    low, high = max(low, -((-above) // form)), min(high, below // form)
            scan.u[x], scan.top[x] = low, high
            if x == 0:
                if low <= high:
                    return True
                opening = False
            else:
                opening = low <= high
        else:
            scan.u[x] += 1
            opening = scan.u[x] <= scan.top[x]
        if not opening:
            x += 1
            continue
        a = scan.u[x]
        for row in range(first, last):
            scan.sums[x, row - first] = scan.sums[x + 1, row - first] + nodes.forms[row, x] * a
        scan.weights[x] = scan.weights[x + 1] * WEIGHTS[scan.h[x], a]
        for k in range(first_child, last_child):
            for half in range(2):
                key = scan.keys[k - first_child, x + 1, half] + np.uint64(a) * nodes.steps[k, x, half]
                scan.keys[k - first_child, x, half] = key
        x -= 1
    return False


@njit(nogil=True, cache=True, inline="always")
def mixed(first: np.uint64, second: np.uint64) -> np.uint64:
    """Return a hash of a packed state, its low bits well mixed."""
    found = (first ^ (first >> HALF)) * SPREAD ^ (second + SPREAD) * MORE_SPREAD
    found = (found ^ (found >> HALF)) * SPREAD
    return found ^ (found >> HALF)


@njit(nogil=True, cache=True, inline="always")
def find(
    slots: Integers, start: int, mask: np.uint64, keys: Words, base: int, first: np.uint64, second: np.uint64
) -> tuple[np.int64, np.int64]:
    """Return the slot of a state in the table from `start` on, and the state found there or `EMPTY`.

    States are counted from `base`.
    """
    slot = mixed(first, second) & mask
    while True:
        state = slots[start + np.int64(slot)]
        if state == EMPTY or (keys[base + state, 0] == first and keys[base + state, 1] == second):
            return np.int64(slot), state
        slot = (slot + ONE) & mask


@njit(nogil=True, cache=True)
def reach(nodes: Nodes, i: int, which: int, states: Words, budget: int) -> tuple[Words, Integers, int]:
    """Return the states of one child that are reachable from the states of node i, their slots, the cost.

    `which` counts the children of i. The cost is the number of ways visited; above the budget: cut short.
    """
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


@njit(nogil=True, cache=True)
def slots_for(keys: Words, length: int) -> Integers:
    """Return the slots of these states: so many, a power of two above the number of states."""
    slots = np.full(length, EMPTY, np.int64)
    for state in range(len(keys)):
        slot, _ = find(slots, 0, np.uint64(length - 1), keys, 0, keys[state, 0], keys[state, 1])
        slots[slot] = state
    return slots


@njit(nogil=True, cache=True)
def widened(keys: Words) -> tuple[Words, Integers]:
    """Return room for twice as many states, those given kept, and their slots."""
    size = len(keys)
    wider = np.empty((2 * size, 2), np.uint64)
    wider[:size] = keys
    return wider, slots_for(keys, 4 * size)


# Proof: docs/proofs/rejection.md, lemma 3.
@njit(nogil=True, cache=True)
def weights_of(nodes: Nodes, i: int, scan: Scan, states: States, found: Floats) -> int:
    """Write the weight of each way in the present range: binomials times the children's values.

    Returns
    -------
    int
        How many.
    """
    low, size = scan.u[0], scan.top[0] - scan.u[0] + 1
    for a in range(size):
        found[a] = scan.weights[1] * WEIGHTS[scan.h[0], low + a]
    for k in range(nodes.child_start[i], nodes.child_start[i + 1]):
        c = k - nodes.child_start[i]
        child = nodes.children[k]
        base, start = states.start[child], states.slot_start[child]
        mask = np.uint64(states.slot_start[child + 1] - start - 1)
        step_first, step_second = nodes.steps[k, 0, 0], nodes.steps[k, 0, 1]
        first = scan.keys[c, 1, 0] + np.uint64(low) * step_first
        second = scan.keys[c, 1, 1] + np.uint64(low) * step_second
        for a in range(size):
            if found[a] > 0.0:
                _, state = find(states.slots, start, mask, states.keys, base, first, second)
                found[a] *= states.values[base + state] if state != EMPTY else 0.0
            first += step_first
            second += step_second
    return int(size)


# Proof: docs/proofs/rejection.md, lemmas 2 and 3.
@njit(nogil=True, cache=True)
def weigh(
    nodes: Nodes, i: int, states: States, thresholds: Integers, values: Floats, first: Integers, budget: int
) -> int:
    """Write the values of all states of node i at each threshold, those of its children given.

    Parameters
    ----------
    nodes
        With the boxes of the last threshold.
    states
        Its own values are not read.
    thresholds
        Ascending.
    values, first
        Shape (states, thresholds) and (states,), written: each value (0 before), and the first threshold at
        which there is one.

    Returns
    -------
    int
        The cost: ways visited, those with children once more for every `MANY_LEVELS` thresholds.
    """
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
                    found = constants[box - first_box] + nodes.scales[box] * form
                    gap = nodes.centres[box] - nodes.n * found
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


class Columns(NamedTuple):
    """Columns of one state, counted by the values of the forms of a leaf, all of zeros and ones.

    Attributes
    ----------
    size
        Shape (forms,): only values below are counted.
    stride
        Shape (forms + 1,): the places from one value of a form to the next, and the number of all places.
    extent, top, at
        Shape (forms,): values so far are below; the last place of those looked at, and the present one.
    """

    size: Integers
    stride: Integers
    extent: Integers
    top: Integers
    at: Integers


@njit(nogil=True, cache=True)
def columns_for(forms: int) -> Columns:
    """Return the scratch space of a count by so many forms."""
    ones = np.ones(forms, np.int64)
    return Columns(ones, np.ones(forms + 1, np.int64), ones.copy(), ones.copy(), ones.copy())


# Proof: docs/proofs/rejection.md, lemma 10.
@njit(nogil=True, cache=True)
def count_columns(nodes: Nodes, leaf: int, h: Integers, space: Columns, counts: Floats) -> int:
    """Count the columns of a state by the values of the leaf's forms: a factor 1 + z for each row.

    Returns
    -------
    int
        The cost.
    """
    size, stride, extent, top, at = space
    rows, first_row, cost = len(size), nodes.row_start[leaf], 0
    counts[: stride[rows]] = 0.0
    counts[0] = 1.0
    extent[:] = 1
    for x in range(nodes.cells[leaf]):
        step, shift = nodes.forms[first_row, x], np.int64(0)
        for r in range(1, rows):
            shift += nodes.forms[first_row + r, x] * stride[r]
        for _ in range(h[x]):
            inside = True
            for r in range(rows):  # places that move beyond a size are no box's
                top[r] = extent[r] - 1
                if nodes.forms[first_row + r, x]:
                    top[r] = min(top[r], size[r] - 2)
                    extent[r] = min(extent[r] + 1, size[r])
                at[r] = top[r]
                inside = inside and top[r] >= 0
            place = np.int64(0)
            for r in range(1, rows):
                place += top[r] * stride[r]
            while inside:  # from the last place down: none is read after it was added to
                if shift:  # to another line, so that the processor adds several at once
                    line = counts[place : place + top[0] + 1]
                    other = counts[place + shift + step : place + shift + step + top[0] + 1]
                    for v in range(len(line)):
                        other[v] += line[v]
                else:
                    for v in range(top[0], -1, -1):
                        counts[place + v + step] += counts[place + v]
                cost += 1 + top[0] // PLACES
                inside = False
                for r in range(1, rows):
                    if at[r] > 0:
                        at[r] -= 1
                        place -= stride[r]
                        inside = True
                        break
                    place += top[r] * stride[r]
                    at[r] = top[r]
    return cost


@njit(nogil=True, cache=True)
def add_within(
    counts: Floats, space: Columns, lows: Integers, highs: Integers, levels: Integers, value: Floats
) -> int:
    """Add the columns whose forms have values within these to `value`, at the largest of their levels.

    `levels` has shape (forms, at least highs - lows + 1). Returns the cost.
    """
    rows, at, cost = len(lows), space.at, 0
    at[:] = lows
    inside = True
    while inside:
        place, level = np.int64(0), np.int64(0)
        for r in range(1, rows):
            place += at[r] * space.stride[r]
            level = max(level, levels[r, at[r] - lows[r]])
        for v in range(lows[0], highs[0] + 1):
            value[max(level, levels[0, v - lows[0]])] += counts[place + v]
        cost += 1
        inside = False
        for r in range(1, rows):
            if at[r] < highs[r]:
                at[r] += 1
                inside = True
                break
            at[r] = lows[r]
    return cost


# Proof: docs/proofs/rejection.md, lemma 10.
@njit(nogil=True, cache=True)
def weigh_leaves(
    nodes: Nodes,
    leaves: Integers,
    states: States,
    thresholds: Integers,
    values: Floats,
    first: Integers,
    budget: int,
    begin: int,
    step: int,
) -> int:
    """Write the product of what `weigh` writes for each of some leaves: at the states of the first of them.

    The leaves have the same parents and forms, all of zeros and ones. The columns of a state are counted
    once, by the values of the forms, and each leaf adds up those that its boxes hold.

    Parameters
    ----------
    begin, step
        The first state looked at, counted from 0, and how far it is to the next: so that several threads can
        share the states.

    Returns
    -------
    int
        The cost; -1: some state needs more than `MOST_PLACES` places.
    """
    own, last = leaves[0], len(thresholds)
    rows = nodes.row_start[own + 1] - nodes.row_start[own]
    space, counts = columns_for(rows), np.empty(0, np.float64)
    size, stride = space.size, space.stride
    h, value = np.zeros(MOST_CELLS, np.int64), np.empty(last, np.float64)
    lows, highs = np.empty((len(leaves), rows), np.int64), np.empty((len(leaves), rows), np.int64)
    levels = np.empty((rows, MOST_ROWS + 1), np.int64)
    cost = 0
    for state in range(states.start[own] + begin, states.start[own + 1], step):
        unpack(states.keys[state, 0], states.keys[state, 1], h)
        inside = True
        for r in range(rows):
            size[r] = 1
            for k in range(len(leaves)):
                lows[k, r], highs[k, r] = values_within(nodes, nodes.row_start[leaves[k]] + r, leaves[k], h)
                size[r] = max(size[r], highs[k, r] + 1)
                inside = inside and lows[k, r] <= highs[k, r]
            stride[r + 1] = min(stride[r] * size[r], MOST_PLACES + 1)  # many forms would pass 2^63
        first[state] = last
        if not inside:
            cost += len(leaves) * rows
            continue
        if stride[rows] > MOST_PLACES:
            return -1
        if stride[rows] > len(counts):
            counts = np.empty(stride[rows], np.float64)
        cost += count_columns(nodes, own, h, space, counts)
        values[state] = 1.0
        for k in range(len(leaves)):
            value[:] = 0.0
            for r in range(rows):
                row = nodes.row_start[leaves[k]] + r
                for v in range(lows[k, r], highs[k, r] + 1):
                    gap = gap_of(nodes, row, nodes.cells[own], h, v)
                    levels[r, v - lows[k, r]] = np.searchsorted(thresholds, gap)
            cost += add_within(counts, space, lows[k], highs[k], levels, value)
            total = 0.0
            for t in range(last):
                total += value[t]
                values[state, t] *= total * nodes.shrink
            if total == 0.0:
                break
        for t in range(last - 1, -1, -1):
            if values[state, t] > 0.0:
                first[state] = t
        if cost // LINES > budget:
            break
    return cost // LINES


@njit(nogil=True, cache=True, inline="always")
def values_within(nodes: Nodes, row: int, leaf: int, h: Integers) -> tuple[np.int64, np.int64]:
    """Return the first and last value of a form of zeros and ones that its boxes hold at a state."""
    high = np.int64(0)
    for x in range(nodes.cells[leaf]):
        high += nodes.forms[row, x] * h[x]
    return within_boxes(nodes, row, nodes.cells[leaf], h, np.int64(0), high)


# Proof: docs/proofs/rejection.md, lemma 10.
@njit(nogil=True, cache=True)
def fitting(nodes: Nodes, leaf: int, scan: Scan) -> np.int64:
    """Return how many columns all boxes of a leaf hold at the state ``scan.h``, exactly."""
    first_row, rows = nodes.row_start[leaf], nodes.row_start[leaf + 1] - nodes.row_start[leaf]
    plain = rows > 0
    for row in range(first_row, first_row + rows):
        for x in range(nodes.cells[leaf]):
            plain = plain and 0 <= nodes.forms[row, x] <= 1
    space, lows, highs = columns_for(rows), np.empty(rows, np.int64), np.empty(rows, np.int64)
    for r in range(rows if plain else 0):
        lows[r], highs[r] = values_within(nodes, first_row + r, leaf, scan.h)
        if lows[r] > highs[r]:
            return np.int64(0)
        space.size[r] = highs[r] + 1
        space.stride[r + 1] = min(space.stride[r] * space.size[r], MOST_PLACES + 1)
    if not plain or space.stride[rows] > MOST_PLACES:
        total, _ = among(nodes, leaf, scan, WHOLE)
        return total
    counts, value = np.empty(space.stride[rows], np.float64), np.zeros(1, np.float64)
    count_columns(nodes, leaf, scan.h, space, counts)
    add_within(counts, space, lows, highs, np.zeros((rows, MOST_ROWS + 1), np.int64), value)
    return np.int64(value[0])


@njit(nogil=True, cache=True)
def fitting_each(nodes: Nodes, first: int, h: Integers) -> Integers:
    """Return what `fitting` does for each node from `first` on, at one state of all."""
    scan = scan_for(nodes)
    scan.h[: len(h)] = h
    found = np.empty(len(nodes.cells) - first, np.int64)
    for place in range(len(found)):
        found[place] = fitting(nodes, first + place, scan)
    return found


@njit(nogil=True, cache=True, inline="always")
def gap_of(nodes: Nodes, row: int, cells: int, h: Integers, value: int) -> np.int64:
    """Return the largest gap of the boxes of a form at a state, where it has this value."""
    gap = np.int64(0)
    for box in range(nodes.box_start[row], nodes.box_start[row + 1]):
        answer = nodes.scales[box] * value
        for x in range(cells):
            answer += nodes.constants[box, x] * h[x]
        gap = max(gap, abs(nodes.centres[box] - nodes.n * answer))
    return gap


@njit(nogil=True, cache=True, inline="always")
def ones(word: np.uint64) -> np.int64:
    """Return the number of ones (the compiler knows this idiom)."""
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(nogil=True, cache=True, inline="always")
def answer(queries: Queries, j: int, columns: Words, everyone: np.uint64) -> int:
    """Return the answer of query j on the columns."""
    first, last = queries.place_start[j], queries.place_start[j + 1]
    if queries.kinds[j] == CONJUNCTION:
        chosen = everyone
        for literal in range(first, last):
            chosen &= columns[queries.places[literal]] ^ queries.flips[literal]
        return int(queries.offsets[j] + queries.factors[j] * ones(chosen))
    if queries.kinds[j] == PARITY:
        chosen = np.uint64(0)
        for literal in range(first, last):
            chosen ^= columns[queries.places[literal]]
        return int(queries.offsets[j] + queries.factors[j] * ones(chosen))
    total = queries.offsets[j]
    row = everyone
    shift = np.uint64(0)
    while row:
        setting = np.uint64(0)
        for literal in range(first, last):
            setting = setting << ONE | (columns[queries.places[literal]] >> shift) & ONE
        total += queries.weights[queries.weight_start[j] + np.int64(setting)]
        row >>= ONE
        shift += ONE
    return int(total)


@njit(nogil=True, cache=True)
def answers(queries: Queries, columns: Words, everyone: np.uint64) -> Integers:
    """Return all answers, shape (k,)."""
    found = np.empty(len(queries.kinds), np.int64)
    for j in range(len(found)):
        found[j] = answer(queries, j, columns, everyone)
    return found


# Proof: docs/proofs/rejection.md, lemma 4.
@njit(nogil=True, cache=True)
def share(weight: float, value: float, columns: float) -> np.int64:
    """Return the integers that a way gets of those divided among the ways of a state: rounded up.

    If a way has few columns, each of them gets the same whole number: the integer that chose the way also
    says which column it is.
    """
    part = weight / value * SHARE  # may underflow
    if columns > ONE_WORD:
        return np.int64(max(1.0, np.ceil(part)))
    return np.int64(max(1.0, np.ceil(part / columns))) * np.int64(columns)


@njit(nogil=True, cache=True)
def share_tables(states: States, drawn: Flags, room: int) -> ShareTables:
    """Return tables with room for so many entries, none of them used, for the nodes that are `drawn`."""
    slots = np.zeros((len(states.slots), 4), np.uint64)
    for i in np.flatnonzero(drawn):
        for slot in range(states.slot_start[i], states.slot_start[i + 1]):
            if states.slots[slot] != EMPTY:
                state = states.start[i] + states.slots[slot]
                slots[slot, 0], slots[slot, 1] = states.keys[state, 0], states.keys[state, 1]
                slots[slot, 2] = np.uint64(state)
    return ShareTables(slots, np.empty(room, np.int64), np.empty((room, 2), np.uint64), np.zeros(1, np.int64))


@njit(nogil=True, cache=True, inline="always")
def slot_of(slots: Words, start: int, mask: np.uint64, first: np.uint64, second: np.uint64) -> np.int64:
    """Return the row of a state in the slots of `ShareTables`, from `start` on; -1: there is none."""
    slot = mixed(first, second) & mask
    while True:
        here = np.uint64(start) + slot
        if slots[here, 0] == first and slots[here, 1] == second:
            return np.int64(here)
        if slots[here, 0] == 0 and slots[here, 1] == 0:
            return np.int64(-1)
        slot = (slot + ONE) & mask


# Proof: docs/proofs/rejection.md, lemma 5.
@njit(nogil=True, cache=True)
def tabulate(
    nodes: Nodes, i: int, slot: np.int64, states: States, scan: Scan, found: Floats, tables: ShareTables
) -> int:
    """Write the table of a slot's state, if there is room; return the ways visited; -1: shares pass 2^63."""
    value = states.values[np.int64(tables.slots[slot, 2])] / nodes.shrink
    first = end = tables.used[0]
    total, cost = np.int64(0), 1
    going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
    while going:
        upper, lower = np.uint64(0), np.uint64(0)
        for x in range(nodes.cells[i] - 1, 0, -1):
            if x < 8:
                lower |= np.uint64(scan.u[x]) << np.uint64(8 * x)
            else:
                upper |= np.uint64(scan.u[x]) << np.uint64(8 * x - 64)
        size = weights_of(nodes, i, scan, states, found)
        cost += size
        for a in range(size):
            if found[a] == 0.0:
                continue
            if end == len(tables.sums):
                tables.used[0] = end  # full: no more tables
                return cost
            u = scan.u[0] + a
            total += share(found[a], value, scan.weights[1] * WEIGHTS[scan.h[0], u])
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


@njit(nogil=True, cache=True, inline="always")
def looked_up(table: np.uint64, sums: Integers, place: np.int64) -> tuple[np.int64, np.int64, np.int64]:
    """Return the entry of a table whose share holds `place`, its share (0: none) and the place within."""
    end, left = np.int64(table >> HALF), np.int64(table & LOW_HALF)
    if left == 0 or place >= sums[end - 1]:
        return np.int64(0), np.int64(0), np.int64(0)
    first = end - left
    low = first
    while left > 1:  # without a branch in it that the processor would have to guess
        half = left >> 1
        low += half * (sums[low + half - 1] <= place)
        left -= half
    before = sums[low - 1] if low > first else np.int64(0)
    return low, sums[low] - before, place - before


# Proof: docs/proofs/rejection.md, lemma 5.
@njit(nogil=True, cache=True)
def choose(
    nodes: Nodes,
    i: int,
    slot: np.int64,
    states: States,
    scan: Scan,
    found: Floats,
    tables: ShareTables,
    place: np.int64,
) -> tuple[np.int64, np.int64, int]:
    """
    Choose the way whose share holds `place`: write ``scan.u``.

    Returns
    -------
    share, within
        Of the way chosen, and the place within it; 0 where no share holds the place; -1 where shares pass
        2^63.
    cost
        Ways visited.
    """
    cost = 1
    if tables.slots[slot, 3] == 0 and tables.used[0] < len(tables.sums):
        cost += tabulate(nodes, i, slot, states, scan, found, tables)
        if cost == 0:
            return np.int64(-1), np.int64(0), 1
    if tables.slots[slot, 3]:
        entry, part, within = looked_up(tables.slots[slot, 3], tables.sums, place)
        if part:
            unpack(tables.ways[entry, 0], tables.ways[entry, 1], scan.u)
        return part, within, cost
    value = states.values[np.int64(tables.slots[slot, 2])] / nodes.shrink
    total = np.int64(0)
    going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
    while going:
        size = weights_of(nodes, i, scan, states, found)
        for a in range(size):
            if found[a] > 0.0:
                part = share(found[a], value, scan.weights[1] * WEIGHTS[scan.h[0], scan.u[0] + a])
                total += part
                if total < 0:
                    return np.int64(-1), np.int64(0), cost
                if total > place:
                    scan.u[0] += a
                    return part, place - (total - part), cost
        cost += size
        going = advance(nodes, i, scan, False)
    return np.int64(0), np.int64(0), cost


# Proof: docs/proofs/rejection.md, lemma 10.
@njit(nogil=True, cache=True)
def tabulate_leaf(nodes: Nodes, i: int, slot: np.int64, scan: Scan, tables: ShareTables) -> int:
    """Write the table of a leaf's state ``scan.h``, if there is room; return the ways visited."""
    first = end = tables.used[0]
    total = np.int64(0)
    going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
    while going:
        upper, lower = np.uint64(0), np.uint64(0)
        columns = np.int64(1)
        for x in range(nodes.cells[i] - 1, 0, -1):
            columns *= BINOMIALS[scan.h[x], scan.u[x]]
            if x < 8:
                lower |= np.uint64(scan.u[x]) << np.uint64(8 * x)
            else:
                upper |= np.uint64(scan.u[x]) << np.uint64(8 * x - 64)
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


# Proof: docs/proofs/rejection.md, lemma 10.
@njit(nogil=True, cache=True)
def among(nodes: Nodes, i: int, scan: Scan, place: np.int64) -> tuple[np.int64, np.int64]:
    """
    Go to the way of a leaf that holds a place among all columns: write ``scan.u``.

    Returns
    -------
    total, within
        The columns of the ways visited, and the place within its way; -1 where there are not so many.
    """
    total = np.int64(0)
    going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
    while going:
        columns = np.int64(1)
        for x in range(1, nodes.cells[i]):
            columns *= BINOMIALS[scan.h[x], scan.u[x]]
        for u in range(scan.u[0], scan.top[0] + 1):
            part = columns * BINOMIALS[scan.h[0], u]
            if place - total < part:
                scan.u[0] = u
                return total + part, place - total
            total += part
        going = advance(nodes, i, scan, False)
    return total, np.int64(-1)


# Proof: docs/proofs/rejection.md, lemma 7.
@njit(nogil=True, cache=True, inline="always")
def usable(words: Words, here: int, modulus: np.uint64) -> int:
    """Return the place of the next word whose residue is uniform, or the end."""
    if here < len(words) and words[here] < modulus:
        excess = (~modulus + ONE) % modulus  # 2^64 modulo the modulus: as many words are refused
        while here < len(words) and words[here] < excess:
            here += 1
    return here


# Proof: docs/proofs/rejection.md, lemma 7.
@njit(nogil=True, cache=True, inline="always")
def subset(rank: np.int64, rows: np.uint64, size: np.int64, taken: np.int64) -> np.uint64:
    """Return the subset at a place among those of `taken` of the `size` given rows."""
    chosen = np.uint64(0)
    if size <= FEW:
        places = SUBSETS[size, taken, rank]
        for _ in range(FEW):
            lowest = rows & (~rows + ONE)
            rows ^= lowest
            chosen |= lowest & (~(places & ONE) + ONE)
            places >>= ONE
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


@njit(nogil=True, cache=True, inline="always")
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
    first = second = np.uint64(0)
    for x in range(cells):
        h[x] = ones(masks[x])
        if x < 8:
            first |= np.uint64(h[x]) << np.uint64(8 * x)
        else:
            second |= np.uint64(h[x]) << np.uint64(8 * x - 64)
    return first, second


# Proof: docs/proofs/rejection.md, lemma 7.
@njit(nogil=True, cache=True, inline="always")
def spread(masks: Words, h: Integers, u: Integers, cells: int, rank: np.uint64) -> np.uint64:
    """Return the column at a place among those with u ones among the h rows of each cell."""
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
@njit(nogil=True, cache=True)
def trials(
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
    """
    Make trials until a candidate survives all checks (`docs/proofs/rejection.md`, lemma 7).

    A trial reads its words in order, one for each column. That word says u and which rows, unless more than
    `ONE_WORD` columns have this u: then one or more further words say which. If its words do not reach, it is
    given up, and the caller must make it again from its first word: which words a trial has read depends on
    them.

    Parameters
    ----------
    last
        The layer that proposes every candidate alike; those before have as many nodes as there are
        attributes, and what is beyond proposes nothing.
    layers
        Of each trial.
    order, turn
        The trials as they are made, and how many were made.
    end
        Trials from here on are left out.
    words
        Uniform words.
    start
        The first word to use.
    everyone
        The m low bits.
    columns, shares, ways
        Shape (d,), written: the columns by attribute; by node of the layer, the share of u out of 2^63 and
        the number of columns that have this u.
    budget
        Stop after this much work.

    Returns
    -------
    status, turn, start, cost
        `OUT_OF_WORDS`: in the midst of a trial, whose turn it is. `PAUSED`: between trials, after `budget` or
        all trials. `SURVIVED`: the trial whose turn it is. `IMPOSSIBLE`: a state that was not counted, or
        shares beyond 2^63, so a proof or its code is wrong. The first word not used.
    """
    d = len(columns)
    scan = scan_for(nodes)
    masks, found = np.empty(MOST_CELLS, np.uint64), np.empty(MOST_ROWS + 1, np.float64)
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
                    place = np.int64(words[here] % np.uint64(total))
                    here += 1
                    if table:
                        entry, part, within = looked_up(table, leaves.tables.sums, place)
                        unpack(leaves.tables.ways[entry, 0], leaves.tables.ways[entry, 1], scan.u)
                    else:
                        _, within = among(leaves.nodes, i, scan, place)
                    columns[nodes.attributes[i]] = spread(masks, scan.h, scan.u, cells, np.uint64(within))
                    cost += 1 + COLUMN_COST
                    fits = True
                    for check in range(leaves.checks.start[i], leaves.checks.start[i + 1]):
                        seen = answer(queries, leaves.checks.queries[check], columns, everyone)
                        cost += 1
                        if seen < leaves.checks.lows[check] or seen > leaves.checks.highs[check]:
                            fits = False
                            break
                for check in range(checks.start[i], checks.start[i + 1]):
                    seen = answer(queries, checks.queries[check], columns, everyone)
                    cost += 1
                    if seen < checks.lows[check] or seen > checks.highs[check]:
                        alive = False
                        break
                if not alive:
                    break
                continue
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
            place = np.int64(words[here] >> ONE)
            here += 1
            if table == 0:
                part, within, work = choose(nodes, i, slot, states, scan, found, tables, place)
            else:
                entry, part, within = looked_up(table, tables.sums, place)
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
