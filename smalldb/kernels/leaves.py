"""The columns of one state of a leaf, counted by the values of its forms: all of them, or those that fit."""

from typing import NamedTuple

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.kernels.bitwise import unpack
from smalldb.kernels.compiling import inlined, kernel
from smalldb.kernels.nodes import (
    BINOMIALS,
    MOST_CELLS,
    MOST_ROWS,
    Nodes,
    Scan,
    advance,
    begin,
    columns_above,
    scan_for,
    within_boxes,
)
from smalldb.kernels.states import States

MOST_ROWS_OF_LEAVES = 52  # of broad leaves: doubles count their columns exactly
MOST_POSITIONS = 1 << 18  # that the columns of one state are counted in: 2 MB
WHOLE = np.int64((1 << 63) - 1)
POSITIONS, LINES = 8, 16  # of counts of columns, that are added to in a step, and steps in the time of a way


class Columns(NamedTuple):
    """Columns of one state, counted by the values of the forms of a leaf, all of zeros and ones."""

    size: Integers  # shape (forms,): only values below are counted
    # shape (forms + 1,): the positions from one value of a form to the next, and the number of all
    # positions
    stride: Integers
    # extent, top, at: shape (forms,): values so far are below; the last position of those looked at,
    # and the present one
    extent: Integers
    top: Integers
    at: Integers


@kernel
def columns_for(forms: int) -> Columns:
    """Return the scratch space of a count by so many forms."""
    ones = np.ones(forms, np.int64)
    return Columns(ones, np.ones(forms + 1, np.int64), ones.copy(), ones.copy(), ones.copy())


# Proof: docs/proofs/rejection.md, lemma 10.
@kernel
def count_columns(nodes: Nodes, leaf: int, h: Integers, space: Columns, counts: Floats) -> int:
    """Count the columns of a state by the values of the leaf's forms: a factor 1 + z for each row."""
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
            for r in range(rows):  # positions that move beyond a size are no box's
                top[r] = extent[r] - 1
                if nodes.forms[first_row + r, x]:
                    top[r] = min(top[r], size[r] - 2)
                    extent[r] = min(extent[r] + 1, size[r])
                at[r] = top[r]
                inside = inside and top[r] >= 0
            position = np.int64(0)
            for r in range(1, rows):
                position += top[r] * stride[r]
            while inside:  # from the last position down: none is read after it was added to
                if shift:  # to another line, so that the processor adds several at once
                    line = counts[position : position + top[0] + 1]
                    other = counts[position + shift + step : position + shift + step + top[0] + 1]
                    for v in range(len(line)):
                        other[v] += line[v]
                else:
                    for v in range(top[0], -1, -1):
                        counts[position + v + step] += counts[position + v]
                cost += 1 + top[0] // POSITIONS
                inside = False
                for r in range(1, rows):
                    if at[r] > 0:
                        at[r] -= 1
                        position -= stride[r]
                        inside = True
                        break
                    position += top[r] * stride[r]
                    at[r] = top[r]
    return cost


@kernel
def add_within(
    counts: Floats, space: Columns, lows: Integers, highs: Integers, levels: Integers, value: Floats
) -> int:
    """Add the columns whose forms have values within these to `value`, at the largest of their levels."""
    rows, at, cost = len(lows), space.at, 0
    for r in range(rows):
        at[r] = lows[r]
    inside = True
    while inside:
        position, level = np.int64(0), np.int64(0)
        for r in range(1, rows):
            position += at[r] * space.stride[r]
            level = max(level, levels[r, at[r] - lows[r]])
        for v in range(lows[0], highs[0] + 1):
            value[max(level, levels[0, v - lows[0]])] += counts[position + v]
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
@kernel
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
    """Write the product of what `weigh_states` writes for each of some leaves, at the first one's states."""
    # The leaves have the same parents and forms, all of zeros and ones. The columns of a state are
    # counted once, by the values of the forms, and each leaf adds up those that its boxes hold.
    leaf, last = leaves[0], len(thresholds)
    rows = nodes.row_start[leaf + 1] - nodes.row_start[leaf]
    space, counts = columns_for(rows), np.empty(0, np.float64)
    size, stride = space.size, space.stride
    h, value = np.zeros(MOST_CELLS, np.int64), np.empty(last, np.float64)
    lows, highs = np.empty((len(leaves), rows), np.int64), np.empty((len(leaves), rows), np.int64)
    levels = np.empty((rows, MOST_ROWS + 1), np.int64)
    cost = 0
    for state in range(states.start[leaf] + begin, states.start[leaf + 1], step):
        unpack(states.keys[state, 0], states.keys[state, 1], h)
        inside = True
        for r in range(rows):
            size[r] = 1
            for k in range(len(leaves)):
                lows[k, r], highs[k, r] = values_within(nodes, nodes.row_start[leaves[k]] + r, leaves[k], h)
                size[r] = max(size[r], highs[k, r] + 1)
                inside = inside and lows[k, r] <= highs[k, r]
            stride[r + 1] = min(stride[r] * size[r], MOST_POSITIONS + 1)  # many forms would pass 2^63
        first[state] = last
        if not inside:
            cost += len(leaves) * rows
            continue
        if stride[rows] > MOST_POSITIONS:
            return -1
        if stride[rows] > len(counts):
            counts = np.empty(stride[rows], np.float64)
        cost += count_columns(nodes, leaf, h, space, counts)
        values[state] = 1.0
        for k in range(len(leaves)):
            value[:] = 0.0
            for r in range(rows):
                row = nodes.row_start[leaves[k]] + r
                for v in range(lows[k, r], highs[k, r] + 1):
                    gap = gap_of(nodes, row, nodes.cells[leaf], h, v)
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


@inlined
def values_within(nodes: Nodes, row: int, leaf: int, h: Integers) -> tuple[np.int64, np.int64]:
    """Return the first and last value of a form of zeros and ones that its boxes hold at a state."""
    high = np.int64(0)
    for x in range(nodes.cells[leaf]):
        high += nodes.forms[row, x] * h[x]
    return within_boxes(nodes, row, nodes.cells[leaf], h, np.int64(0), high)


@inlined
def gap_of(nodes: Nodes, row: int, cells: int, h: Integers, value: int) -> np.int64:
    """Return the largest gap of the boxes of a form at a state, where it has this value."""
    gap = np.int64(0)
    for box in range(nodes.box_start[row], nodes.box_start[row + 1]):
        answer = nodes.scales[box] * value
        for x in range(cells):
            answer += nodes.constants[box, x] * h[x]
        gap = max(gap, abs(nodes.centres[box] - nodes.n * answer))
    return gap


# Proof: docs/proofs/rejection.md, lemma 10.
@kernel
def among(nodes: Nodes, i: int, scan: Scan, position: np.int64) -> tuple[np.int64, np.int64]:
    """Go to the way of a leaf that holds a position among all columns: write ``scan.u``."""
    total = np.int64(0)
    going = begin(nodes, i, scan) and advance(nodes, i, scan, True)
    while going:
        columns = columns_above(nodes, i, scan)
        for u in range(scan.u[0], scan.top[0] + 1):
            part = columns * BINOMIALS[scan.h[0], u]
            if position - total < part:
                scan.u[0] = u
                return total + part, position - total
            total += part
        going = advance(nodes, i, scan, False)
    return total, np.int64(-1)


# Proof: docs/proofs/rejection.md, lemma 10.
@kernel
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
        space.stride[r + 1] = min(space.stride[r] * space.size[r], MOST_POSITIONS + 1)
    if not plain or space.stride[rows] > MOST_POSITIONS:
        total, _ = among(nodes, leaf, scan, WHOLE)
        return total
    counts, value = np.empty(space.stride[rows], np.float64), np.zeros(1, np.float64)
    count_columns(nodes, leaf, scan.h, space, counts)
    add_within(counts, space, lows, highs, np.zeros((rows, MOST_ROWS + 1), np.int64), value)
    return np.int64(value[0])


@kernel
def fitting_each(nodes: Nodes, first: int, h: Integers) -> Integers:
    """Return what `fitting` does for each node from `first` on, at one state of all."""
    scan = scan_for(nodes)
    for x in range(len(h)):
        scan.h[x] = h[x]
    counts = np.empty(len(nodes.cells) - first, np.int64)
    for position in range(len(counts)):
        counts[position] = fitting(nodes, first + position, scan)
    return counts
