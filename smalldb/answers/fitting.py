"""From released integers to parities with public noise, and to a distribution over the cells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeVar

import numpy as np

from queries import Domain
from queries.domain import Integers
from smalldb.answers.measuring import Measured, pieces
from smalldb.answers.newton import Point, newton
from smalldb.answers.parities import Floats, Places, mask
from smalldb.answers.parts import Measurement
from smalldb.answers.priors import prior
from smalldb.answers.shares import AnswersPlan

NEWTON = 2048  # parities up to which second derivatives are formed
Values = TypeVar("Values", Floats, Integers)
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


class Fitted(NamedTuple):
    """A distribution q over all 2^d cells, and the log-linear coefficients theta of the parities measured."""

    theta: Floats
    q: Floats


def estimates(
    plan: AnswersPlan, measured: Measured, parts: tuple[Measurement, ...] | None = None
) -> Estimates:
    """Read released integers of all parts, or some, as means of parities; post-processing."""
    total = float(max(1, released_total(plan, measured)))
    places = {chosen: place for place, chosen in enumerate(plan.spectrum.sets)}
    some = [Estimates(np.zeros(len(places)), np.full(len(places), inf))]
    for part, values in zip(plan.parts, pieces(plan, measured.values), strict=True):
        if parts is None or part in parts:
            sets, sums = released_sums(plan, part, values)
            members = [places[chosen] for chosen in sets]
            chi, deviations = np.zeros(len(places)), np.full(len(places), inf)
            chi[members] = np.clip(sums / total, -1.0, 1.0)
            deviations[members] = [part.deviations[len(chosen)] / total for chosen in sets]
            some.append(Estimates(chi, deviations))
    return combined(some)


def combined(some: Sequence[Estimates]) -> Estimates:
    """Average independent estimates, weighted by their precision."""
    weights = np.array([np.maximum(found.deviations, 1e-100) ** -2.0 for found in some])
    precision = weights.sum(axis=0)
    known = precision > 0
    divisor = np.where(known, precision, 1.0)
    chi = (weights * np.array([found.chi for found in some])).sum(axis=0) / divisor
    return Estimates(chi, np.where(known, 1 / np.sqrt(divisor), inf))


def released_total(plan: AnswersPlan, measured: Measured) -> int:
    """Return n under replace-one; under add-remove, the number of rows as the best part released it."""
    if plan.replaced:
        return plan.n
    return min(released_counts(plan, measured), key=lambda counted: counted[0].deviations[0])[1]


def released_counts(plan: AnswersPlan, measured: Measured) -> list[tuple[Measurement, int]]:
    """Return the parts that count rows, under add-remove, and how many each released."""
    pairs = zip(plan.parts, pieces(plan, measured.values), strict=True)
    return [
        (part, int(values.sum() if part.law == "cells" else values[0]))
        for part, values in pairs
        if 0 in part.deviations
    ]


def released_sums(
    plan: AnswersPlan, part: Measurement, values: Integers
) -> tuple[tuple[Places, ...], Integers]:
    """Return the parities that a part measures, and their released sums of chi_S over the rows."""
    if part.law == "cells":
        return plan.spectrum.sets, transformed(plan.workload.domain, values)[masks(plan)]
    if plan.replaced:
        return part.sets, plan.n - 2 * values
    counted = int(not part.sets[0])
    return part.sets[counted:], values[counted:]


def transformed(domain: Domain, values: Values) -> Values:
    """Return the sum of chi_S over the cells, weighted, for all 2^d sets."""
    from smalldb.kernels.walsh import walsh

    sums = np.zeros(1 << len(domain.attributes), dtype=values.dtype)
    sums[domain.cells()] = values
    walsh(sums)
    return sums


def masks(plan: AnswersPlan) -> Integers:
    """Return the cell code of each parity's set, up to 20 attributes."""
    d = len(plan.workload.domain.attributes)
    return np.array([mask(places, d) for places in plan.spectrum.sets], dtype=np.int64)


def fit(plan: AnswersPlan, found: Estimates) -> Fitted:
    """
    Fit a distribution over all 2^d cells (0 on those that cannot exist), up to 20 attributes.

    Maximum entropy with a normal prior on the log-linear coefficients: q is proportional to
    exp(sum of theta_S chi_S) on the cells, and theta minimises ::

        ln Z(theta) - sum of theta_S z_S + sum of (sd_S / prior_S)^2 theta_S^2 / 2,

    over the parities that were measured as z_S with noise sd_S. What is left of each answer is
    z_S - chi_S(q) = (sd_S / prior_S)^2 theta_S. Cost: some
    ten Walsh-Hadamard transforms and systems of equations, or some hundred transforms if they are many.
    """
    from smalldb.kernels.walsh import walsh

    domain = plan.workload.domain
    known = np.isfinite(found.deviations)
    codes, z, noise = masks(plan)[known], found.chi[known], found.deviations[known]
    ridge = (noise / prior(plan.spectrum.orders[known])) ** 2
    exists = np.zeros(1 << len(domain.attributes), dtype=bool)
    exists[domain.cells()] = True

    def model(theta: Floats) -> Point[Floats]:
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
        return Point(theta, value, means - z + ridge * theta, curvature, q / total)

    enough = max(_SLOPE, float(noise.min()) / 100)
    start = np.zeros(len(codes))
    if len(codes) <= NEWTON:
        best = newton(model, model(start), enough)
    else:
        best = _quasi_newton(model, start, enough)
    return Fitted(best.place, best.found)


def _quasi_newton(model: Callable[[Floats], Point[Floats]], start: Floats, enough: float) -> Point[Floats]:
    """Minimise without second derivatives."""
    from scipy.optimize import minimize

    def value_and_slope(theta: Floats) -> tuple[float, Floats]:
        now = model(theta)
        return now.value, now.slope

    options = {"maxiter": 500, "ftol": 1e-13, "gtol": enough}
    return model(minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options).x)
