"""What is proved of the error of a release, from public and released numbers alone."""

from fractions import Fraction
from math import ceil
from typing import final

import numpy as np

from queries import Rows
from queries.domain import Bits, Integers
from smalldb.answers.drawing import radii
from smalldb.answers.fitting import masks, released_sums, released_total, transformed
from smalldb.answers.measuring import Measured
from smalldb.answers.parities import Floats
from smalldb.answers.shares import AnswersPlan, Measurement
from smalldb.arguments import between_0_and_1
from smalldb.enclosures import Log, Real, round_up
from smalldb.exact import draw_level

_UNIT = 2.0**-52
_DIGITS = 50
_GRID = 1024  # rates that Chernoff's bound is tried with


def bound(plan: AnswersPlan, measured: Measured, bits: Bits, beta: object) -> float:
    """
    Return an error that max_f |f(x) - f(y)| does not exceed with probability 1 - beta over the noise.

    With that probability every part's noise lies within the exact quantile of its radius. So the true sum
    of each parity lies that near to the released one, and between -n and n; one that was not measured,
    between -n and n. A query lies between the sums of the ends, and between 0 and 1. From cells, the noise
    of each query lies within a Chernoff bound. Under add-remove n is private: it lies near to the released
    n, and if it could be 0, the bound is 1. Rounded up.

    Parameters
    ----------
    bits
        The synthetic rows, shape (m, d), m at least 1; any rows, however they were made.
    beta
        Strictly between 0 and 1.
    """
    failure = between_0_and_1(beta, "beta")
    domain, series = plan.workload.domain, plan.spectrum
    table = Rows.from_frame(domain, domain.decode(bits))
    answers = plan.workload.answers(table) / (plan.workload.denominator * len(bits))
    n = _count_interval(plan, measured, failure)
    if n[0] <= 0:
        return 1.0
    if plan.method == "cells":
        low, high, size = _from_cells(plan, measured, failure)
    else:
        below, above = _parity_intervals(plan, measured, failure, n[1])
        c, chosen = series.coefficients, series.members
        ends = c * below[chosen], c * above[chosen]
        low = series.over_queries(np.minimum(*ends)) + np.minimum(*(series.constants * end for end in n))
        high = series.over_queries(np.maximum(*ends)) + np.maximum(*(series.constants * end for end in n))
        size = series.over_queries(np.maximum(*np.abs(ends))) + np.abs(series.constants) * n[1]
    # low, high and answers stand for sums of so many rounded terms
    slack = (np.diff(series.starts) + 16) * _UNIT * (size + n[1])
    gap = np.maximum(high - answers * n[0], answers * n[1] - low) + slack
    gap = np.minimum(gap / n[0], np.maximum(answers, 1 - answers))
    return min(1.0, float(gap.max(initial=0.0)) * (1 + 8 * _UNIT))


def radius_quantile(count: int, rate: Fraction, failure: Fraction) -> int:
    """
    Return the least r for which the radius of a cube of `count` counts exceeds r with probability < failure.

    Exact: `draw_level` inverts the distribution function at the number whose bits it reads.
    """
    return draw_level(radii(count), rate, _Digits(1 - failure))


def noise_quantile(rate: Fraction, weight: int, failure: Fraction) -> float:
    """
    Return what |sum of w_c X_c| exceeds with probability at most `failure`, rounded up.

    X_c are independent with P(X = x) proportional to q^|x|, q = exp(-rate); 0 <= w_c <= 1, of sum at most
    `weight`. For 0 < s < rate, ln E exp(s X) = g(s) is convex and 0 at 0, so g(s w) <= w g(s), and by
    Chernoff's bound on either side the probability is at most 2 exp(weight g(s) - s t).
    """
    odds = Log(_DIGITS)(2 / failure)
    grid = np.arange(1, _GRID) / _GRID
    x = float(rate) * np.array([0 * grid, grid, -grid])
    growth = np.array([2, -1, -1]) @ np.log1p(-np.exp(x - float(rate)))
    s = rate * Fraction(int(np.argmin((weight * growth + float(odds.high)) / grid)) + 1, _GRID)
    decay, rise, fall = (Real.of(r, _DIGITS).exp() for r in (-rate, s - rate, -s - rate))
    g = 2 * (1 - decay).ln() - (1 - rise).ln() - (1 - fall).ln()
    return round_up((weight * g + odds) / s)


def _count_interval(plan: AnswersPlan, measured: Measured, failure: Fraction) -> tuple[int, int]:
    """Return between which numbers n lies, with the probability that all else is stated with."""
    released = released_total(plan, measured)
    if plan.replaced:
        return released, released
    if plan.method == "cells":
        margin = ceil(_cells_margin(plan, plan.workload.domain.size, failure))
    else:
        margin = _radius(plan, plan.parts[0], failure)
    return released - margin, released + margin


def _parity_intervals(
    plan: AnswersPlan, measured: Measured, failure: Fraction, most: int
) -> tuple[Floats, Floats]:
    """Return between which sums each parity of the spectrum lies."""
    low, high = (np.full(len(plan.spectrum.sets), side * most) for side in (-1.0, 1.0))
    sums = released_sums(plan, measured)
    factor = 2 if plan.replaced else 1
    margins = np.concatenate(
        [np.full(sum(map(bool, part.sets)), factor * _radius(plan, part, failure)) for part in plan.parts]
    )
    low[: len(sums)] = np.maximum(sums - margins, -most)
    high[: len(sums)] = np.minimum(sums + margins, most)
    return low, high


def _from_cells(plan: AnswersPlan, measured: Measured, failure: Fraction) -> tuple[Floats, Floats, Floats]:
    """Return between which sums each query lies, and the size of the terms they were added up from."""
    domain, series, places = plan.workload.domain, plan.spectrum, masks(plan)

    def over_cells(values: Integers) -> Floats:
        """Add up each query over the cells, weighted."""
        return series.over_queries(
            series.coefficients * transformed(domain, values)[places][series.members]
        ) + series.constants * float(values.sum())

    # a query that is heavier than its complement is read off that one
    middle = over_cells(measured.values)
    weights = over_cells(np.ones(domain.size, dtype=np.int64))
    if plan.replaced:
        heavy = weights > domain.size / 2
        middle += heavy * float(plan.n - int(measured.values.sum()))
        weights = np.where(heavy, domain.size - weights, weights)
    whole, inverse = np.unique(np.ceil(weights + 1).astype(np.int64), return_inverse=True)
    margin = np.array([_cells_margin(plan, weight, failure) for weight in whole.tolist()])[inverse]
    size = float(np.abs(measured.values).sum()) * (1 + series.over_queries(np.abs(series.coefficients)))
    return middle - margin, middle + margin, size


def _cells_margin(plan: AnswersPlan, weight: int, failure: Fraction) -> float:
    """Return what the noise of a query does not exceed, when all queries and n share the failure."""
    return noise_quantile(plan.rate(plan.parts[0]), weight, failure / (plan.workload.size + 1))


def _radius(plan: AnswersPlan, part: Measurement, failure: Fraction) -> int:
    return radius_quantile(len(part.sets), plan.rate(part), failure / len(plan.parts))


@final
class _Digits:
    """The binary digits of a number in [0, 1), in place of random bits."""

    private = False

    def __init__(self, number: Fraction) -> None:
        self._rest = number

    def bits(self, count: int) -> int:
        """Return the next digits."""
        scaled = self._rest * (1 << count)
        whole = scaled.__floor__()
        self._rest = scaled - whole
        return whole
