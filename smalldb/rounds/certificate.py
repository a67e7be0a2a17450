"""The certificate: how far any query of the workload is off in the finished table, measured or not."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, log, log1p, sqrt

import numpy as np

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level
from smalldb.rounds.counting import PrivateRows
from smalldb.rounds.measuring import Law
from smalldb.rounds.plan import RoundsPlan


@dataclass(frozen=True, slots=True)
class Certificate:
    """
    What was released on the distance between the counts of the data and those of the finished rows.

    Attributes
    ----------
    table, cell
        The columns of the selected query, and their places; (), () is the number of all rows.
    distance
        Its count in the data less its count in the finished rows, with noise.
    queries
        How many queries were candidates: all cells of the workload's tables, and the number of rows.
    selecting
        The epsilon of the selection.
    law, cost
        Of the noise on the distance.
    """

    table: tuple[int, ...]
    cell: tuple[int, ...]
    distance: int
    queries: int
    selecting: Fraction
    law: Law
    cost: Fraction

    def bound(self, beta: float) -> int:
        """
        Return a number of rows that no query is off by more than, with probability 1 - beta or more.

        Half of beta is for the selection: a query is selected that is less off than the worst one by more
        than t with probability at most queries exp(-epsilon t / 2). The other half is for the noise.
        """
        if not 0 < beta < 1:
            raise ValueError("beta must be between 0 and 1")
        missed = 2 / float(self.selecting) * (log(self.queries) + log(2 / beta))
        return abs(self.distance) + ceil(missed) + noise_bound(self.law, self.cost, beta / 2)


def noise_bound(law: Law, cost: Fraction, beta: float) -> int:
    """Return what the absolute noise of one cell that moves by 1 exceeds with probability at most beta."""
    spread = float(_alone(law).spread(cost))
    if law.concentrated:  # sub-Gaussian with that variance (CKS 2020, Proposition 3 and Corollary 17)
        return ceil(sqrt(2 * spread * log(2 / beta)))
    # P(|X| > t) = 2 exp(-rate (t + 1)) / (1 + exp(-rate))
    return max(0, ceil((log(2 / beta) - log1p(exp(-spread))) / spread) - 1)


def expected_bound(plan: RoundsPlan, beta: float) -> int:
    """Return what a bound is above the largest distance, about: a public number."""
    half, queries = plan.certifying / 2, plan.universe.queries + 1
    missed = 2 / float(plan.law.selecting(half)) * (log(queries) + log(2 / beta))
    return ceil(missed) + noise_bound(plan.law, half, beta / 2)


def certify(plan: RoundsPlan, rows: PrivateRows, finished: Integers, source: BitSource) -> Certificate:
    """
    Select the worst query by the exact exponential mechanism, and release how far it is off.

    Between neighbours the count of a cell, and the number of rows, move by at most 1 (the finished rows are
    released): so do the scores, absolute distances. Half of the cost is for the selection, half for noise.

    Parameters
    ----------
    finished
        The finished rows as places, shape (C, rows).
    """
    synthetic = PrivateRows(finished.T, np.ones(finished.shape[1], dtype=np.int64))
    half = plan.certifying / 2
    epsilon = plan.law.selecting(half)
    sizes: dict[int, int] = {}
    for _, distances in _distances(plan, rows, synthetic):
        levels, counts = np.unique(np.abs(distances), return_counts=True)
        for level, number in zip(levels.tolist(), counts.tolist(), strict=True):
            sizes[level] = sizes.get(level, 0) + number
    worst = max(sizes)
    level = worst - draw_level({worst - level: n for level, n in sizes.items()}, epsilon / 2, source)
    index = uniform_below(sizes[level], source)
    for table, distances in _distances(plan, rows, synthetic):
        places = np.nonzero(np.abs(distances).ravel() == level)[0]
        if index < len(places):
            flat = int(places[index])
            noise = int(_alone(plan.law).noise(half, 1, source)[0])
            cell = tuple(int(i) for i in np.unravel_index(flat, distances.shape))
            return Certificate(
                table,
                cell,
                int(distances.ravel()[flat]) + noise,
                plan.universe.queries + 1,
                epsilon,
                plan.law,
                half,
            )
        index -= len(places)
    raise ArithmeticError("the drawn level has a query")


def _alone(law: Law) -> Law:
    """Return the law of one count, which moves by at most 1 under either relation."""
    return Law(law.concentrated, replaced=False)


def _distances(
    plan: RoundsPlan, rows: PrivateRows, synthetic: PrivateRows
) -> Iterator[tuple[tuple[int, ...], Integers]]:
    """Yield each table of the workload with the distances of its cells; first the number of rows."""
    yield (), rows.table((), ()) - synthetic.table((), ())
    for table in plan.universe.tables:
        sizes = [plan.universe.sizes[c] for c in table]
        yield table, rows.table(table, sizes) - synthetic.table(table, sizes)
