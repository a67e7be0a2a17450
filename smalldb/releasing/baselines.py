"""What simple ways would have done at the same epsilon; for the curator."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from queries import Rows
from queries.arrays import Codes, Integers
from smalldb.exact.bits import BitSource, SeededBits
from smalldb.exact.integers import uniform_permutation
from smalldb.marginals.estimate.column_estimates import on_simplex
from smalldb.mechanisms import Neighbours
from smalldb.noise.distributions import Geometric

MOST_ROWS = 1 << 18  # of a table that is taken apart row by row
INDEPENDENT, CELLS = "independent columns", "noise on all cells"


def baselines(real: Rows, epsilon: Fraction, neighbours: Neighbours) -> dict[str, Rows]:
    """Return tables that simple ways release at an epsilon, by name. Confidential: they are not private.

    "independent columns": each column's counts with geometric noise at its share of epsilon, and rows whose
    columns are drawn independently; rows that cannot exist are left out. "noise on all cells": geometric
    noise on the count of every cell, where there are at most 2^20. The first has at most 2^18 rows. Noisy
    counts become the nearest ones that are at least 0 and add up to n.

    The noise comes from a fixed seed: the same data give the same tables, which are for comparison alone.
    """
    domain, n, source = real.domain, real.n, SeededBits(0)
    rate = epsilon / (2 if neighbours is Neighbours.REPLACE_ONE else 1)
    rows = min(n, MOST_ROWS)
    made = np.empty((rows, len(domain.sizes)), dtype=np.int64)
    for c, size in enumerate(domain.sizes):
        noisy = real.table((c,)) + Geometric(rate / len(domain.sizes)).draw(size, source)
        counts = on_simplex(noisy.astype(np.float64), n) * (rows / n)
        column = np.repeat(np.arange(size), whole(counts, rows))
        made[:, c] = column[uniform_permutation(rows, source)]
    kept = made[domain.contains(made)]
    found = {INDEPENDENT: Rows.from_codes(domain, kept)} if len(kept) else {}
    if domain.listable:
        cells = domain.table()
        noisy = real.histogram() + Geometric(rate).draw(len(cells), source)
        each = whole(on_simplex(noisy.astype(np.float64), n), n)
        found[CELLS] = Rows.from_codes(domain, cells[each > 0], each[each > 0])
    return found


def apart(rows: Rows, source: BitSource) -> Codes:
    """Return the rows one by one in a random order, shape (m, C); of more than 2^18 about so many."""
    counts = rows.counts
    if rows.n > MOST_ROWS:
        counts = whole(counts * (MOST_ROWS / rows.n), MOST_ROWS)
    codes = np.repeat(rows.codes(), counts, axis=0)
    return codes[uniform_permutation(len(codes), source)]


def whole(values: npt.NDArray[np.floating], total: int) -> Integers:
    """Round values that sum to `total` to whole numbers that do: what stands before each is rounded.

    >>> whole(np.array([0.4, 0.4, 0.4, 1.8]), 3).tolist()
    [0, 1, 0, 2]
    """
    ends = np.minimum(np.floor(np.cumsum(values) + 0.5).astype(np.int64), total)
    ends[-1] = total
    return np.diff(ends, prepend=0)
