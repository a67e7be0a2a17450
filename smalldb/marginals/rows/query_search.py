"""Local search for rows whose answers are near to wanted ones; deterministic, on public numbers alone."""

from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from queries import Workload
from queries.arrays import Floats
from queries.domain import Bits, Integers
from queries.rows import MAX_TOTAL
from smalldb.files.progress_bar import progress_bar

if TYPE_CHECKING:
    from smalldb.kernels.flipping import Tables

# the attributes that are flipped, the queries that see it, and how their codes change
Move: TypeAlias = tuple[Integers, Integers, Integers]

BUDGET = 3 * 10**8  # of queries looked at
SQUARINGS = (0, 1, 2, 3)  # error^2, ^4, ^8, ^16: towards the largest error
SWEEPS = 6  # of each
FEWEST = 1000  # rows that are moved
CHEAP = 10**7  # queries looked at in a sweep over pairs that is always made


def search(
    workload: Workload,
    start: Bits,
    wanted: Floats,
    *,
    enough: float = 0.0,
    budget: int = BUDGET,
    progress: bool = False,
) -> Bits:
    """
    Flip attributes of rows as long as that brings the workload's answers nearer to the wanted ones.

    Attributes are flipped one at a time; where that is cheap, or some cells cannot exist, in pairs too. The
    sum of squared errors falls first, then that of higher powers; the best table seen is returned. Rows that
    cannot exist are never made. Of a large table some rows are moved, evenly spread: few suffice.

    Parameters
    ----------
    workload
        The queries, over yes/no attributes.
    start
        Rows that can exist: 0/1, shape (m, d).
    wanted
        Shape (J,): an answer for each query.
    enough
        An error at which the search may end.
    budget
        How many times a query may be looked at; beyond, no new sweep begins.
    progress
        Whether a bar is shown.

    Cost
    ----
    One sweep takes the rows that are moved times, for each attribute, the queries that look at it; as many
    sweeps as a budget allows, at least one, and as many rows as one sweep in `SWEEPS` budgets does.
    """
    from smalldb.kernels.flipping import add_up, flip

    domain, rows, made = workload.domain, len(start), start.astype(np.uint8)
    if rows * max(query.denominator for query in workload.queries) >= MAX_TOTAL:
        raise ValueError("rows times the common denominator of the queries reach 2^62: use fewer rows")
    tables = _tables(workload, rows, wanted)
    moves = _moves(tables, len(domain.attributes), rows, domain.valid is not None)
    totals = add_up(made, tables)
    some = min(rows, max(FEWEST, budget // SWEEPS // sum(len(queries) for _, queries, _ in moves)))
    moving = np.arange(some) * rows // some
    bits = made[moving]

    def error() -> float:
        return float(np.abs(totals * tables.scales - wanted).max())

    best, least, left = bits.copy(), error(), budget
    most = len(SQUARINGS) * SWEEPS * len(moves)
    bar = progress_bar(progress, total=most, desc="search", delay=1)
    for squarings in SQUARINGS:
        for _ in range(SWEEPS):
            unit, flipped = error(), 0
            if left < 0 or unit <= enough:
                break
            for flips, queries, toggles in moves:
                if domain.valid is None:
                    allowed = np.ones(some, dtype=bool)
                else:
                    moved = bits.copy()
                    moved[:, flips] ^= 1
                    allowed = domain.contains(moved)
                flipped += flip(bits, flips, allowed, queries, toggles, tables, totals, unit, squarings)
                left -= some * len(queries)
                bar.update()
            if error() < least:
                best, least = bits.copy(), error()
            if not flipped:
                break
    bar.close()
    made[moving] = best
    return made


def _tables(workload: Workload, rows: int, wanted: Floats) -> "Tables":
    """Write the queries as the kernel reads them; a parity is the table (0, 1) of a code of one bit."""
    from smalldb.kernels.flipping import Tables

    positions: dict[tuple[int, ...], int] = {}
    values: list[Integers] = []
    attributes: list[int] = []
    origins, groups, masks, lengths, size = [], [], [], [], 0
    last: tuple[tuple[int, ...], bool] | None = None
    for query in workload.queries:
        table, width, parity = query.weights, len(query.attributes), query.weights is None
        if (query.attributes, parity) != last:
            last = query.attributes, parity
            lengths.append(width)
            attributes += query.attributes
            masks += [1] * width if parity else [1 << i for i in range(width - 1, -1, -1)]
        groups.append(len(lengths) - 1)
        if table is None:
            table = (0, 1)
        if table not in positions:
            positions[table] = size
            values.append(np.array(table, dtype=np.int64))
            size += len(table)
        origins.append(positions[table])
    return Tables(
        groups=np.array(groups, dtype=np.int64),
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        attributes=np.array(attributes, dtype=np.int64),
        masks=np.array(masks, dtype=np.int64),
        origins=np.array(origins, dtype=np.int64),
        values=np.concatenate(values),
        scales=np.array([1 / (query.denominator * rows) for query in workload.queries]),
        targets=wanted,
    )


def _moves(tables: "Tables", attributes: int, rows: int, paired: bool) -> list[Move]:
    """Return what is tried on each row: the attributes to flip, the queries that see it, and how."""
    owners = np.repeat(np.arange(len(tables.starts) - 1), np.diff(tables.starts))
    seen = []
    for attribute in range(attributes):
        toggles = np.zeros(len(tables.starts) - 1, dtype=np.int64)
        entries = tables.attributes == attribute
        toggles[owners[entries]] = tables.masks[entries]
        queries = np.flatnonzero(toggles[tables.groups])
        seen.append((queries, toggles[tables.groups[queries]]))
    single = [(np.array([i]), *seen[i]) for i in range(attributes)]
    touched = sum(len(queries) for queries, _ in seen)
    if not paired and rows * touched * (attributes - 1) > CHEAP:
        return single
    pairs = combinations(range(attributes), 2)
    return single + [(np.array([i, j]), *_both(*seen[i], *seen[j])) for i, j in pairs]


def _both(one: Integers, toggles: Integers, other: Integers, others: Integers) -> tuple[Integers, Integers]:
    """Return the queries that see one of two moves, and how they see both together."""
    queries, inverse = np.unique(np.concatenate([one, other]), return_inverse=True)
    together = np.zeros(len(queries), dtype=np.int64)
    np.bitwise_xor.at(together, inverse, np.concatenate([toggles, others]))
    return queries, together
