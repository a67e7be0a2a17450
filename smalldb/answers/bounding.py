"""What is proved of the error of a release, from public and released numbers alone."""

from fractions import Fraction
from math import ceil

import numpy as np

from queries import Rows
from queries.domain import Bits, Integers
from smalldb.answers.parities import Floats
from smalldb.answers.parts import Measurement
from smalldb.answers.released import Measured, masks, pieces, released_counts, released_sums, transformed
from smalldb.answers.shares import AnswersPlan
from smalldb.answers.tails import (
    entry_quantile,
    gaussian_quantile,
    laplace_sum_quantile,
    noise_quantile,
    radius_quantile,
)
from smalldb.answers.wishart import degrees, rates
from smalldb.exact.numbers import between_0_and_1

_UNIT = 2.0**-52


def bound(plan: AnswersPlan, measured: Measured, bits: Bits, beta: object) -> float:
    """
    Return an error that max_f |f(x) - f(y)| does not exceed with probability 1 - beta over the noise.

    Parts share the failure evenly. The noise of a cube or a safeguard lies within the exact quantile of
    its radius, that of a Wishart difference within what its moments say of each entry, that of a Gaussian
    within its tail, and of cells what adds up to a parity or a query within a Chernoff bound. So the true sum
    of each parity lies that near to the released one, and between -n and n; one that was not measured,
    between -n and n. A query lies between the sums of the ends, and between 0 and 1. Under add-remove n is
    private: it lies near to the released n, and if it could be 0, the bound is 1. Rounded up.

    Parameters
    ----------
    bits
        The synthetic rows, shape (m, d), m at least 1; any rows, however they were made.
    beta
        Strictly between 0 and 1.
    """
    failure = between_0_and_1(beta, "beta")
    domain, series = plan.workload.domain, plan.spectrum
    table = Rows.from_bits(domain, bits)
    answers = plan.workload.answers(table) / (plan.workload.denominator * len(bits))
    n = _count_interval(plan, measured, failure)
    if n[0] <= 0:
        return 1.0
    below, above = _parity_intervals(plan, measured, failure, n[1])
    c, chosen = series.coefficients, series.members
    ends = c * below[chosen], c * above[chosen]
    low = series.over_queries(np.minimum(*ends)) + np.minimum(*(series.constants * end for end in n))
    high = series.over_queries(np.maximum(*ends)) + np.maximum(*(series.constants * end for end in n))
    size = series.over_queries(np.maximum(*np.abs(ends))) + np.abs(series.constants) * n[1]
    if plan.parts[-1].law == "cells":
        least, most, terms = _from_cells(plan, pieces(plan, measured.values)[-1], failure)
        low, high, size = np.maximum(low, least), np.minimum(high, most), np.maximum(size, terms)
    # low, high and answers stand for sums of so many rounded terms
    slack = (np.diff(series.starts) + 16) * _UNIT * (size + n[1])
    gap = np.maximum(high - answers * n[0], answers * n[1] - low) + slack
    gap = np.minimum(gap / n[0], np.maximum(answers, 1 - answers))
    return min(1.0, float(gap.max(initial=0.0)) * (1 + 8 * _UNIT))


def _count_interval(plan: AnswersPlan, measured: Measured, failure: Fraction) -> tuple[int, int]:
    """Return between which numbers n lies, with the probability that all else is stated with."""
    if plan.replaced:
        return plan.n, plan.n
    ends = []
    for part, released in released_counts(plan, measured):
        if part.law == "cells":
            margin = ceil(_cells_margin(plan, plan.workload.domain.size, failure))
        else:
            margin = int(_margins(plan, part, failure)[0])
        ends.append((released - margin, released + margin))
    return max(low for low, _ in ends), min(high for _, high in ends)


def _parity_intervals(
    plan: AnswersPlan, measured: Measured, failure: Fraction, most: int
) -> tuple[Floats, Floats]:
    """Return between which sums each parity of the spectrum lies."""
    low, high = (np.full(len(plan.spectrum.sets), side * most) for side in (-1.0, 1.0))
    places = {chosen: place for place, chosen in enumerate(plan.spectrum.sets)}
    for part, values in zip(plan.parts, pieces(plan, measured.values), strict=True):
        sets, sums = released_sums(plan, part, values)
        members = [places[chosen] for chosen in sets]
        if part.law == "cells":
            margins = np.full(len(sets), ceil(_cells_margin(plan, plan.workload.domain.size, failure)))
        else:
            margins = (2 if plan.replaced else 1) * _margins(plan, part, failure)[-len(sets) :]
        low[members] = np.maximum(low[members], sums - margins)
        high[members] = np.minimum(high[members], sums + margins)
    return low, high


def _margins(plan: AnswersPlan, part: Measurement, failure: Fraction) -> Integers:
    """Return what the noise of each entry of a part does not exceed, all at once."""
    rate, each = plan.rate(part), failure / len(plan.parts)
    if part.law == "safeguard":
        return np.array([radius_quantile(1, rate, each)])
    if part.law == "cube":
        return np.full(len(part.sets), radius_quantile(len(part.sets), rate, each))
    d, each = len(part.attributes), each / len(part.sets)
    margins = {}
    for order in {len(places) for places in part.sets}:
        if part.law == "gaussian":
            margins[order] = gaussian_quantile(part.variances[order], each)
        elif order:
            margins[order] = entry_quantile(d, order, *rates(rate, part.tilt), each)
        else:
            # a difference of gammas: a whole shape above theirs spreads further (a symmetric unimodal
            # number was added)
            shape = -(-degrees(d)[0] // 2)
            margins[0] = laplace_sum_quantile(shape, 1 / rates(rate, part.tilt)[0], each)
    return np.array([margins[len(places)] for places in part.sets])


def _from_cells(plan: AnswersPlan, counts: Integers, failure: Fraction) -> tuple[Floats, Floats, Floats]:
    """Return between which sums each query lies, and the size of the terms they were added up from."""
    domain, series, places = plan.workload.domain, plan.spectrum, masks(plan)

    def over_cells(values: Integers) -> Floats:
        """Add up each query over the cells, weighted."""
        return series.over_queries(
            series.coefficients * transformed(domain, values)[places][series.members]
        ) + series.constants * float(values.sum())

    # a query that is heavier than its complement is read off that one
    middle = over_cells(counts)
    weights = over_cells(np.ones(domain.size, dtype=np.int64))
    if plan.replaced:
        heavy = weights > domain.size / 2
        middle += heavy * float(plan.n - int(counts.sum()))
        weights = np.where(heavy, domain.size - weights, weights)
    whole, inverse = np.unique(np.ceil(weights + 1).astype(np.int64), return_inverse=True)
    margin = np.array([_cells_margin(plan, weight, failure) for weight in whole.tolist()])[inverse]
    size = float(np.abs(counts).sum()) * (1 + series.over_queries(np.abs(series.coefficients)))
    return middle - margin, middle + margin, size


def _cells_margin(plan: AnswersPlan, weight: int, failure: Fraction) -> float:
    """Return what the noise of a query does not exceed; all queries, parities and n share the failure."""
    each = failure / len(plan.parts) / (plan.workload.size + len(plan.spectrum.sets) + 1)
    return noise_quantile(plan.rate(plan.parts[-1]), weight, each)
