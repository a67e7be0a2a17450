"""
OPT(m) of one workload, as narrowly as it takes: how far the worst table is from all tables of m rows.

A table matters by its answers alone, so this is the covering radius of the answers of m rows in those of all
tables, in the largest difference. Everything is exact: answers are whole numbers and dyadic fractions.
"""

from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np

from queries import Workload
from queries.arrays import Floats
from smalldb.exact.numbers import Number, positive, whole

MOST_TABLES = 1 << 20  # of m rows, and of n rows
MOST_GAPS = 1 << 33  # tables x small databases x queries
MOST_PARTS = 1 << 17
BLOCK = 1 << 22
MOST_HALVINGS = 30  # of a coordinate: then m D times it is still an exact float


def covering_radius(
    workload: Workload, *, rows: int, n: int | None = None, tolerance: Number = "1/100"
) -> tuple[Fraction, Fraction]:
    """
    Return (low, high) of the error of the best small database of `rows` rows, for the worst table.

    The true OPT(m), which equation (7) of `docs/theory.md` bounds.

    Parameters
    ----------
    workload
        Of at most some five cells that the queries tell apart, unless n is small.
    rows
        m.
    n
        Only tables of n rows; low = high then, by enumeration. By default tables of any size: the simplex of
        their shares is halved until the largest error at a corner (low) and the least of all errors that some
        one small database has on a whole part (high) differ by `tolerance`, relatively. Where 2^17 parts are
        not enough, what is known then is returned.
    tolerance
        An exact number above 0; looked at where no n is given.

    Examples
    --------
    >>> from queries import Domain, Thresholds
    >>> covering_radius(Thresholds().workload(Domain(["a", "b"])), rows=3, n=8)  # at most 1 / (2 m)
    (Fraction(1, 6), Fraction(1, 6))
    """
    rows, slack = whole(rows, "rows"), positive(tolerance, "tolerance")
    columns = np.unique(workload.matrix(), axis=1).astype(np.float64)
    queries, cells = columns.shape
    if cells == 1 or not queries:
        return Fraction(0), Fraction(0)
    small = _answers(columns, rows, "rows")
    unit = rows * workload.denominator
    if n is not None:
        tables = _answers(columns, whole(n, "n"), "n")
        if n * unit >= 1 << 50 or tables.size * len(small) > MOST_GAPS:
            raise ValueError("n is too large for the small databases of these tables to be compared")
        points, step = tables * rows, BLOCK // small.size + 1
        parts = (points[first : first + step] for first in range(0, len(points), step))
        worst = Fraction(int(max(_distances(part, small * n).min(axis=1).max() for part in parts)), n * unit)
        return worst, worst
    low, high = _halved(columns.T[None] * rows, small, slack)
    return Fraction(low) / unit, Fraction(high) / unit


def _answers(columns: Floats, rows: int, name: str) -> Floats:
    """Return the distinct answers of all tables of so many rows, shape (tables, queries), times D rows."""
    cells = columns.shape[1]
    if min(rows, cells) > 64 or comb(cells + rows - 1, rows) > MOST_TABLES:
        raise ValueError(f"{name} must be fewer: there are more than 2^20 tables of so many rows")
    chosen = np.array(list(combinations_with_replacement(range(cells), rows)), dtype=np.int64)
    totals = np.zeros((len(chosen), len(columns)))
    for position in chosen.T:
        totals += columns[:, position].T
    return np.unique(totals, axis=0)


def _distances(points: Floats, small: Floats) -> Floats:
    """Return largest differences of answers, shape (points, small databases)."""
    distances = np.zeros((len(points), len(small)))
    for query in range(points.shape[1]):
        np.maximum(distances, np.abs(points[:, query, None] - small[None, :, query]), out=distances)
    return distances


def _halved(live: Floats, small: Floats, slack: Fraction) -> tuple[float, float]:
    """Bracket the largest distance over a simplex of answers, shape (1, corners, queries)."""
    pairs = list(combinations(range(live.shape[1]), 2))
    low = high = 0.0
    parts = 0
    for _ in range(MOST_HALVINGS):
        bounds = []
        for part in np.array_split(live, len(live) * live.shape[1] * len(small) // BLOCK + 1):
            gaps = _distances(part.reshape(-1, part.shape[2]), small).reshape(*part.shape[:2], -1)
            low = max(low, float(gaps.min(axis=2).max()))
            bounds.append(gaps.max(axis=1).min(axis=1))
        above = np.concatenate(bounds)
        settled = above <= low * (1 + float(slack))
        high = max(high, *above[settled].tolist(), 0.0)
        live, above = live[~settled], above[~settled]
        parts += len(live)
        if not len(live) or parts > MOST_PARTS:
            break
        lengths = np.stack([np.abs(live[:, a] - live[:, b]).max(axis=1) for a, b in pairs])
        longest = np.array(pairs)[lengths.argmax(axis=0)]
        each = np.arange(len(live))
        middle = (live[each, longest[:, 0]] + live[each, longest[:, 1]]) / 2
        halves = np.repeat(live[None], 2, axis=0)
        for half in (0, 1):
            halves[half, each, longest[:, half]] = middle
        live = np.concatenate(halves)
    return low, max(high, low, *above.tolist())
