"""An empirical-Bayes reading of released cells: between what was counted and what low orders say."""

from functools import cache
from math import inf

import numpy as np

from queries.domain import Integers
from smalldb.answers.fitting import Estimates, combined, estimates, fit, masks, released_total
from smalldb.answers.measuring import Measured, pieces
from smalldb.answers.parities import Floats
from smalldb.answers.shares import AnswersPlan

ROUNDS = 3
INFLATION = 2.0  # of the deviation of a parity of posterior means, for what the prior gets wrong
SHAPES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0)  # of the negative binomial
_CLEAR = 40.0  # a rate beyond which there is no noise to speak of
_LEAST = 1e-9  # rows that a cell is expected to hold


def read(plan: AnswersPlan, measured: Measured) -> Floats:
    """
    Return a distribution over all 2^d cells, from a plan that measured cells, alone or beside low orders.

    A cell's count is taken for negative binomial around n times a distribution fitted to the released
    parities, and was seen with two-sided geometric noise. The posterior means are a better histogram. Its
    parities, and those measured beside it, weighted by their precision, give the next fit, three times; at
    last they tilt the posterior means themselves. The shape of the negative binomial is the likeliest.
    """
    from smalldb.kernels.walsh import walsh

    cells, places, total = plan.workload.domain.cells(), masks(plan), released_total(plan, measured)
    counts, rate = pieces(plan, measured.values)[-1], min(float(plan.rate(plan.parts[-1])), _CLEAR)
    found, beside = estimates(plan, measured), estimates(plan, measured, plan.parts[:-1])
    shape = len(SHAPES) // 2
    for _ in range(ROUNDS):
        expected = np.maximum(fit(plan, found)[cells] * total, _LEAST)
        shape, means, variances = _likeliest(counts, expected, rate, shape)
        means = np.maximum(means, _LEAST)
        table = np.zeros(1 << len(plan.workload.domain.attributes))
        table[cells] = means / means.sum()
        chi = table.copy()
        walsh(chi)
        deviation = INFLATION * np.sqrt(variances.sum()) / means.sum()
        found = combined([beside, Estimates(chi[places], np.full(len(places), deviation))])
    return fit(plan, found, table)


def _likeliest(counts: Integers, expected: Floats, rate: float, start: int) -> tuple[int, Floats, Floats]:
    """Climb from a shape to the likeliest one: its place, and the posterior means and variances."""
    from smalldb.kernels.posterior import posterior

    means, variances = np.empty_like(expected), np.empty_like(expected)

    @cache
    def likelihood(place: int) -> float:
        if not 0 <= place < len(SHAPES):
            return -inf
        return posterior(counts, expected, SHAPES[place], rate, means, variances)

    while (best := max(start - 1, start, start + 1, key=likelihood)) != start:
        start = best
    posterior(counts, expected, SHAPES[start], rate, means, variances)
    return start, means, variances
