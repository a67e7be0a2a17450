"""From parities with public noise to a distribution over the cells."""

from collections.abc import Callable
from math import nan
from typing import NamedTuple, TypeVar

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.contrasts.parity_means import Estimates, Measured, estimates, masks, released_total
from smalldb.marginals.contrasts.parity_plan import ParityPlan
from smalldb.marginals.contrasts.priors import prior
from smalldb.marginals.contrasts.spectrum import Places, mask
from smalldb.marginals.estimate.newton import Point, newton

NEWTON = 2048  # parities up to which second derivatives are formed
SURPRISE = 3.0  # deviations that a safeguard's parity is from what was predicted, to count
SURPRISING = 1.0  # deviation of its coefficient then, whatever its order
PAIRS = tuple(float(prior(np.array([2]))[0]) / 2**halvings for halvings in range(6))
Found = TypeVar("Found")
_LEAST = 1e-200
_SLOPE = 1e-6  # of a mean: what is left there does not matter


class Fitted(NamedTuple):
    """A log-linear distribution.

    Attributes
    ----------
    theta
        The coefficients of the parities that were measured.
    q, chi
        Shape (2^d,): the distribution over the cells, and the means of all parities.
    """

    theta: Floats
    q: Floats
    chi: Floats


# Proof: docs/proofs/safeguard.md, lemma 5.
def guarded_fit(plan: ParityPlan, measured: Measured) -> Fitted:
    """Fit to what was measured; what a safeguard measured counts only if all else predicts it badly."""
    fitted = fit(plan, estimates(plan, measured, plan.unguarded))
    if plan.safeguard is None:
        return fitted
    found, everything = estimates(plan, measured, (plan.safeguard,)), estimates(plan, measured)
    surprising = np.abs(found.chi - fitted.chi[masks(plan)]) > SURPRISE * found.deviations
    if not surprising.any():
        return fitted
    return fit(plan, everything, np.where(surprising, SURPRISING, sizes_of(plan, everything)))


def predicted(plan: ParityPlan, measured: Measured, sets: tuple[Places, ...]) -> Integers:
    """Predict the counts of some sets from all parts but a safeguard, rounded: int64, a set each."""
    fitted, total = fit(plan, estimates(plan, measured, plan.unguarded)), released_total(plan, measured)
    d = len(plan.workload.domain.attributes)
    chi = fitted.chi[[mask(places, d) for places in sets]]
    counts: Integers = np.rint(total * ((1 - chi) / 2 if plan.replaced else chi)).astype(np.int64)
    return counts


def sizes_of(plan: ParityPlan, found: Estimates) -> Floats:
    """
    Return how large coefficients seem to be, as standard deviations, shape (K,).

    The prior; of order 2 the likeliest of its halvings. The parity of a pair that does not interact is the
    product of its means, and a small coefficient moves it by that times the variances of both signs.
    """
    orders, known = plan.spectrum.orders, np.isfinite(found.deviations)
    means = np.full(len(plan.workload.domain.attributes), nan)
    for (i, *more), place in zip(plan.spectrum.sets, range(len(orders)), strict=True):
        if not more and known[place]:
            means[i] = found.chi[place]
    places = np.flatnonzero((orders == 2) & known)
    singles = means[np.array([plan.spectrum.sets[place] for place in places]).reshape(-1, 2).astype(int)]
    sure = ~np.isnan(singles).any(axis=1)
    places, singles = places[sure], singles[sure]
    apart, moved = found.chi[places] - singles.prod(axis=1), (1 - singles**2).prod(axis=1)

    def likelihood(size: float) -> float:
        variances = np.maximum(found.deviations[places] ** 2 + (size * moved) ** 2, _LEAST)
        return -float((np.log(variances) + apart**2 / variances).sum())

    sizes = prior(orders)
    sizes[orders == 2] = max(PAIRS, key=likelihood)
    return sizes


def fit(plan: ParityPlan, found: Estimates, sizes: Floats | None = None) -> Fitted:
    """
    Fit a distribution over all 2^d cells (0 on those that cannot exist), up to 20 attributes.

    Maximum entropy with a normal prior on the log-linear coefficients: q is proportional to
    exp(sum of theta_S chi_S) on the cells, and theta minimises ::

        ln Z(theta) - sum of theta_S z_S + sum of (sd_S / prior_S)^2 theta_S^2 / 2,

    over the parities that were measured as z_S with noise sd_S; prior_S is `sizes`, (K,), or `sizes_of`.
    What is left of each answer is z_S - chi_S(q) = (sd_S / prior_S)^2 theta_S. Cost: some ten
    Walsh-Hadamard transforms and systems of equations, or some hundred transforms if they are many.
    """
    from smalldb.kernels.walsh import walsh

    domain = plan.workload.domain
    known = np.isfinite(found.deviations)
    codes, z, noise = masks(plan)[known], found.chi[known], found.deviations[known]
    sizes = sizes_of(plan, found) if sizes is None else sizes
    # The less a parity is known, beside how large it may be, the less it is followed. One yes/no column, seen
    # at 0.5 with noise 0.1 under a prior of 0.25: the ridge is 0.16, tanh(theta) + 0.16 theta = 0.5, and the
    # fitted mean is 0.427, nearer to 0 by 0.16 theta = 0.073.
    ridge = (noise / sizes[known]) ** 2
    exists = np.zeros(1 << len(domain.attributes), dtype=bool)
    exists[domain.cells()] = True

    def model(theta: Floats) -> Point[tuple[Floats, Floats]]:
        log_q = np.zeros(len(exists))
        log_q[codes] = theta
        walsh(log_q)
        top = log_q[exists].max()
        q = exists * np.exp(np.minimum(log_q - top, 0.0))
        total = float(q.sum())
        chi = q / total
        walsh(chi)
        means = chi[codes]

        def curvature() -> Floats:
            # covariances of parities, and a product of two parities is one: chi_S chi_T = chi_(S xor T)
            products: Floats = chi[codes[:, None] ^ codes]
            return products - np.outer(means, means) + np.diag(ridge + _SLOPE**2)

        value = float(top + np.log(total) - theta @ z + ridge @ theta**2 / 2)
        return Point(theta, value, means - z + ridge * theta, curvature, (q / total, chi))

    enough = max(_SLOPE, float(noise.min()) / 100)
    start = np.zeros(len(codes))
    if len(codes) <= NEWTON:
        best = newton(model, model(start), enough)
    else:
        best = _quasi_newton(model, start, enough)
    return Fitted(best.place, *best.found)


def _quasi_newton(model: Callable[[Floats], Point[Found]], start: Floats, enough: float) -> Point[Found]:
    """Minimise without second derivatives."""
    from scipy.optimize import minimize

    def value_and_slope(theta: Floats) -> tuple[float, Floats]:
        now = model(theta)
        return now.value, now.slope

    options = {"maxiter": 500, "ftol": 1e-13, "gtol": enough}
    return model(minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options).x)
