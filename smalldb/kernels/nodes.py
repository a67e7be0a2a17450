"""The nodes of k-trees, and the ways of their states, one after the other.

The m ordered rows of a candidate are kept column by column: a column is a word of m bits. The attributes come
in an order in which each node has at most `MOST_PARENTS` parents among the attributes before it; a state of a
node is the histogram of the m rows over the cells of its parents, 8 bits a cell in two words. From a state h,
a column is chosen in two steps: u, how many rows of each cell have a one, then which rows.
"""

from typing import NamedTuple

import numpy as np

from queries.arrays import Floats, Integers, Words
from smalldb.kernels.compiling import inlined, kernel

MOST_ROWS = 64
MOST_PARENTS = 4
MOST_CELLS = 1 << MOST_PARENTS
MOST_TERMS = 1 << 22  # ways u of one state: the rounding of their sum stays below 2^-30

BINOMIALS = np.zeros((MOST_ROWS + 1, MOST_ROWS + 1), dtype=np.int64)
BINOMIALS[:, 0] = 1
for _n in range(1, MOST_ROWS + 1):
    BINOMIALS[_n, 1:] = BINOMIALS[_n - 1, 1:] + BINOMIALS[_n - 1, :-1]
WEIGHTS = BINOMIALS.astype(np.float64)


class Nodes(NamedTuple):
    """The nodes of one or several k-trees, one after the other; parents come before their children."""

    attributes: Integers  # shape (nodes,): the attribute of each node
    # shape (nodes, `MOST_PARENTS`): the attributes of its parents, -1 where there are fewer. Parent q
    # is bit q of a cell.
    parents: Integers
    cells: Integers  # shape (nodes,): 2^(number of parents)
    # shape (nodes + 1,): the linear forms in u of node i are the rows ``row_start[i]`` onwards of
    row_start: Integers
    forms: Integers  # shape (rows, `MOST_CELLS`)
    # shape (rows + 1,): the bounds on form r are the boxes ``box_start[r]`` onwards, each of which says
    # ``low <= scale (form u) + constant h <= high``
    box_start: Integers
    # scales, lows, highs: shape (boxes,)
    scales: Integers
    lows: Integers
    highs: Integers
    constants: Integers  # shape (boxes, `MOST_CELLS`)
    # shape (nodes + 1,): the children of node i are those from ``child_start[i]`` on, in
    child_start: Integers
    children: Integers  # shape (number of children,)
    # bases, steps: shape (children, `MOST_CELLS`, 2): the child's packed state is ``sum_x h_x bases[x]
    # + u_x steps[x]``, word by word, modulo 2^64
    bases: Words
    steps: Words
    centres: Integers  # shape (boxes,): m b of each box's query
    n: int  # rows of the data
    # 2^-floor(m/2): each node's count is multiplied by it, so that no product leaves the doubles
    shrink: float


class Scan(NamedTuple):
    """Where an enumeration of the ways u of one state stands; cells are fixed from the last to the first."""

    # h, u, top: shape (cells,): the state, the present way, the largest value of each cell
    h: Integers
    u: Integers
    top: Integers
    # lows, highs: shape (rows,): bounds on each form
    lows: Integers
    highs: Integers
    # least, most: shape (rows, cells + 1): what the cells below can add to each form
    least: Integers
    most: Integers
    sums: Integers  # shape (cells + 1, rows): each form over the cells from x on
    weights: Floats  # shape (cells + 1,): the product of the binomials from cell x on
    keys: Words  # shape (children, cells + 1, 2): the children's states, so far as they are known


@kernel
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


@inlined
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


@kernel
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


@kernel
def advance(nodes: Nodes, i: int, scan: Scan, fresh: bool) -> bool:
    """Go to the first (`fresh`) or next choice of the cells above 0, and the range left to cell 0."""
    # The range is ``scan.u[0] .. scan.top[0]``. False: there is no further choice.
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


@inlined
def columns_above(nodes: Nodes, i: int, scan: Scan) -> np.int64:
    """Return how many choices of rows the cells above 0 leave to the present way, exactly."""
    columns = np.int64(1)
    for x in range(1, nodes.cells[i]):
        columns *= BINOMIALS[scan.h[x], scan.u[x]]
    return columns
