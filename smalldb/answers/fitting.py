"""From released integers to parities with public noise, and to a distribution over the cells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from queries import Domain
from queries.domain import Integers
from smalldb.answers.measuring import Measured
from smalldb.answers.parities import Floats, mask
from smalldb.answers.shares import AnswersPlan, prior

NEWTON = 2048  # parities up to which second derivatives are formed
_STEPS = 100
_SLOPE = 1e-6  # of a mean: what is left there does not matter


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """The means of the parities as they were released.

    Attributes
    ----------
    chi
        Shape (K,), for each parity of the plan's spectrum; 0 where it was not measured.
    deviations
        The public standard deviation of the noise in it; infinite where it was not measured.
    """

    chi: Floats
    deviations: Floats


class Model(NamedTuple):
    """A distribution q over the cells with coefficients theta, the means chi of all parities, and the fit."""

    theta: Floats
    q: Floats
    chi: Floats
    value: float
    slope: Floats


def estimates(plan: AnswersPlan, measured: Measured) -> Estimates:
    """Read released integers as means of parities; post-processing."""
    total = float(released_total(plan, measured))
    sums = released_sums(plan, measured)
    chi = np.zeros(len(plan.spectrum.sets))
    chi[: len(sums)] = np.clip(sums / max(1.0, total), -1.0, 1.0)
    return Estimates(chi, plan.deviations * (plan.n / max(1.0, total)))


def released_total(plan: AnswersPlan, measured: Measured) -> int:
    """Return n under replace-one; under add-remove, the released number of rows."""
    if plan.replaced:
        return plan.n
    return int(measured.values.sum() if plan.method == "cells" else measured.values[0])


def released_sums(plan: AnswersPlan, measured: Measured) -> Integers:
    """Return the released sums of chi_S over the rows, for the parities measured: the spectrum's first."""
    if plan.method == "cells":
        return transformed(plan.workload.domain, measured.values)[masks(plan)]
    return plan.n - 2 * measured.values if plan.replaced else measured.values[1:]


def transformed(domain: Domain, values: Integers) -> Integers:
    """Return the sum of chi_S over the cells, weighted, for all 2^d sets."""
    from smalldb.kernels.walsh import walsh

    sums = np.zeros(1 << len(domain.attributes), dtype=np.int64)
    sums[domain.cells()] = values
    walsh(sums)
    return sums


def masks(plan: AnswersPlan) -> Integers:
    """Return the cell code of each parity's set, up to 20 attributes."""
    d = len(plan.workload.domain.attributes)
    return np.array([mask(places, d) for places in plan.spectrum.sets], dtype=np.int64)


def fit(plan: AnswersPlan, found: Estimates) -> Floats:
    """
    Fit a distribution over all 2^d cells (0 on those that cannot exist), up to 20 attributes.

    Maximum entropy with a normal prior on the log-linear coefficients: q is proportional to
    exp(sum of theta_S chi_S), and theta minimises ::

        ln Z(theta) - sum of theta_S z_S + sum of (sd_S / prior_S)^2 theta_S^2 / 2,

    over the parities that were measured as z_S with noise sd_S. What is left of each answer is
    z_S - chi_S(q) = (sd_S / prior_S)^2 theta_S. Cost: some
    ten Walsh-Hadamard transforms and systems of equations, or some hundred transforms if they are many.
    """
    from smalldb.kernels.walsh import walsh

    domain = plan.workload.domain
    known = np.isfinite(found.deviations)
    places, z, noise = masks(plan)[known], found.chi[known], found.deviations[known]
    ridge = (noise / prior(plan.spectrum.orders[known])) ** 2
    exists = np.zeros(1 << len(domain.attributes), dtype=bool)
    exists[domain.cells()] = True

    def model(theta: Floats) -> Model:
        log_q = np.zeros(len(exists))
        log_q[places] = theta
        walsh(log_q)
        top = log_q[exists].max()
        q = np.where(exists, np.exp(np.minimum(log_q - top, 0.0)), 0.0)
        total = float(q.sum())
        chi = q / total
        walsh(chi)
        value = float(top + np.log(total) - theta @ z + ridge @ theta**2 / 2)
        return Model(theta, q / total, chi, value, chi[places] - z + ridge * theta)

    enough = max(_SLOPE, float(noise.min()) / 100)
    solve = _newton if len(places) <= NEWTON else _quasi_newton
    return solve(model, places, ridge, enough).q


def _newton(model: Callable[[Floats], Model], places: Integers, ridge: Floats, enough: float) -> Model:
    """Minimise by Newton's steps, halved until they help.

    The second derivatives are covariances of parities, and a product of two parities is one:
    chi_S chi_T = chi_(S xor T).
    """
    now = model(np.zeros(len(places)))
    products = places[:, None] ^ places
    for _ in range(_STEPS):
        if np.abs(now.slope).max() <= enough:
            break
        means = now.chi[places]
        curvature = now.chi[products] - np.outer(means, means) + np.diag(ridge + _SLOPE**2)
        step = np.linalg.solve(curvature, now.slope)
        length = 1.0
        while (new := model(now.theta - length * step)).value > now.value and length > _SLOPE:
            length /= 2
        if new.value >= now.value:
            break
        now = new
    return now


def _quasi_newton(model: Callable[[Floats], Model], places: Integers, ridge: Floats, enough: float) -> Model:
    """Minimise without second derivatives."""
    from scipy.optimize import minimize

    def value_and_slope(theta: Floats) -> tuple[float, Floats]:
        now = model(theta)
        return now.value, now.slope

    options = {"maxiter": 500, "ftol": 1e-13, "gtol": enough}
    start = np.zeros(len(places))
    return model(minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options).x)
