"""Search on rows: exchanges of categories between rows, until tables of two columns are as wanted."""

from collections.abc import Mapping, Sequence

import numpy as np

from queries.arrays import Codes, Floats
from queries.mixing import splitmix64
from smalldb.marginals.counted_rows import CountedRows

SWEEPS = 24
WORK = 1 << 32  # cells that are looked at, at most
QUIET = 1 / 500  # of all offers: sweeps end when fewer exchanges are made
NEAR = 1 << 12  # rows behind a row, one of which it is offered an exchange with: they stay in the cache


def affordable(rows: int, tables: int) -> int:
    """Return how many sweeps over all rows there is time for."""
    return min(SWEEPS, WORK // max(1, 8 * rows * tables))


# Proof: docs/proofs/rounds.md, lemma 7.
def exchanged(
    rows: Codes,
    sizes: Sequence[int],
    targets: Mapping[tuple[int, int], Floats],
    fixed: frozenset[int],
    sweeps: int,
    seed: int,
) -> Codes:
    """
    Return rows in which pairs of rows have exchanged categories of a column: columns keep their counts.

    Each exchange lowers the sum, over the cells of all tables, of (count - target)^2 / (target + 1).
    """
    from smalldb.kernels.nearby_rows import swap

    rows, count = np.array(rows, dtype=np.int32, order="C"), rows.shape[1]
    counted = CountedRows(rows.T, np.ones(count, dtype=np.int64))
    beyond, weights, origin = [], [], 0
    beside: list[list[tuple[int, int, int, int]]] = [[] for _ in sizes]
    for (a, b), target in targets.items():
        beyond.append((counted.table((a, b), (sizes[a], sizes[b])) - target).ravel())
        weights.append(1 / (target.ravel() + 1))
        beside[a].append((b, origin, sizes[b], 1))
        beside[b].append((a, origin, 1, sizes[b]))
        origin += target.size
    if not beyond:
        return rows
    cells, importance = np.concatenate(beyond), np.concatenate(weights)
    tables = [np.array(some, dtype=np.int64).reshape(-1, 4) for some in beside]
    for sweep in range(sweeps):
        made = offered = 0
        for column, some in enumerate(tables):
            if len(some) and column not in fixed:
                own = (seed + (sweep * len(tables) + column) * 0x1_0000_0001) % (1 << 64)
                behind = splitmix64(count, own) % np.uint64(max(1, min(count - 1, NEAR)))
                partners = (np.arange(1, count + 1) + behind.astype(np.int64)) % count
                others, origins, strides = some[:, 0].copy(), some[:, 1].copy(), some[:, 2:].copy()
                made += swap(rows, column, others, origins, strides, cells, importance, partners)
                offered += count
        if made < QUIET * offered:
            break
    return rows
