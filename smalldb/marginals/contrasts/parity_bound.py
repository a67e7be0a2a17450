"""Between which numbers the sums of queries lie, from public and released numbers of parities alone."""

from fractions import Fraction

import numpy as np

from queries.arrays import Floats
from smalldb.exact.numbers import Number, between_0_and_1
from smalldb.marginals.contrasts.parity_means import NoisyParities, pieces, released_counts
from smalldb.marginals.contrasts.parity_plan import ParityPlan
from smalldb.marginals.noise_bound import Sums

_UNIT = 2.0**-52


# Proof: docs/proofs/answers.md, lemma 7.
def parity_sums(plan: ParityPlan, measured: NoisyParities, beta: Number) -> Sums:
    """
    Return between which numbers the sum of each query lies, with probability 1 - beta over the noise.

    Parts share the failure evenly. The noise of a cube lies within the exact quantile of its radius, that of
    a safeguard within its own, that of a Wishart difference within what its moments say of each entry, that
    of a Gaussian within its tail, and of cells what adds up to a parity or a query within a Chernoff bound.
    So the true sum of each parity lies that near to the released one, and between -n and n; one that was not
    measured, between -n and n. A query lies between the sums of the ends. Under add-remove n is private: it
    lies near to the released n.

    Parameters
    ----------
    plan, measured
        What was planned, and what its parts released.
    beta
        Strictly between 0 and 1.
    """
    failure, series = between_0_and_1(beta, "beta"), plan.spectrum
    n = _count_interval(plan, measured, failure)
    below, above = _parity_intervals(plan, measured, failure, n[1])
    c, chosen = series.coefficients, series.members
    ends = c * below[chosen], c * above[chosen]
    low = series.over_queries(np.minimum(*ends)) + np.minimum(*(series.constants * end for end in n))
    high = series.over_queries(np.maximum(*ends)) + np.maximum(*(series.constants * end for end in n))
    size = series.over_queries(np.maximum(*np.abs(ends))) + np.abs(series.constants) * n[1]
    for part, values in zip(plan.parts, pieces(plan, measured.values), strict=True):
        if found := part.direct(plan.setting, values, failure / len(plan.parts)):
            low, high = np.maximum(low, found[0]), np.minimum(high, found[1])
            size = np.maximum(size, found[2])
    # low, high and answers stand for sums of so many rounded terms
    return Sums(low, high, n, (np.diff(series.starts) + 16) * _UNIT * (size + n[1]))


def _count_interval(plan: ParityPlan, measured: NoisyParities, failure: Fraction) -> tuple[int, int]:
    """Return between which numbers n lies, with the probability that all else is stated with."""
    if plan.replaced:
        return plan.n, plan.n
    ends = []
    for part, released in released_counts(plan, measured):
        margin, _ = part.margins(plan.setting, failure / len(plan.parts))
        ends.append((released - margin, released + margin))
    return max(low for low, _ in ends), min(high for _, high in ends)


def _parity_intervals(
    plan: ParityPlan, measured: NoisyParities, failure: Fraction, most: int
) -> tuple[Floats, Floats]:
    """Return between which sums each parity of the spectrum lies."""
    low, high = (np.full(len(plan.spectrum.sets), side * most) for side in (-1.0, 1.0))
    positions = {chosen: position for position, chosen in enumerate(plan.spectrum.sets)}
    for part, values in zip(plan.parts, pieces(plan, measured.values), strict=True):
        sets, sums = part.released(plan.setting, values)
        members = [positions[chosen] for chosen in sets]
        _, margins = part.margins(plan.setting, failure / len(plan.parts))
        low[members] = np.maximum(low[members], sums - margins)
        high[members] = np.minimum(high[members], sums + margins)
    return low, high
