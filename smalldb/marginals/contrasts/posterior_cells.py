"""An empirical-Bayes reading of released cells: between what was counted and what low orders say."""

from dataclasses import dataclass
from functools import cache, partial
from math import inf, log

import numpy as np

from queries import Domain
from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.contrasts.maximum_entropy import NEWTON, fit, sizes_of
from smalldb.marginals.contrasts.parity_means import (
    Measured,
    estimates,
    masks,
    pieces,
    released_counts,
    released_total,
)
from smalldb.marginals.contrasts.parity_plan import ParityPlan
from smalldb.marginals.contrasts.spectrum import transformed
from smalldb.marginals.estimate.newton import Point, newton

SHAPES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0)  # of the negative binomial
LEVEL = 10.0  # deviation of the logarithm of what all cells are expected to hold
EXACTLY = 0.5  # deviation of a public n
_CLEAR = 40.0  # a rate beyond which there is no noise to speak of
_MOST = 50.0  # logarithm of what a cell is expected to hold
_CLOSE = 1e-3  # to the logarithm of a probability
_TRIED = (
    50  # places of the coefficients, and for each as many of the tilt; a dozen are needed for real counts
)
_HIDDEN = 0.9  # of what counts tell of the coefficients, what noise can hide


def read(plan: ParityPlan, measured: Measured) -> Floats:
    """
    Return a distribution over all 2^d cells, from a plan that measured cells, alone or beside low orders.

    Expected counts are log-linear in the parities of the spectrum, with normal priors. Counts are negative
    binomial around them; they were seen with two-sided geometric noise, and their sums of parities with the
    noise of what was measured beside them. Newton's method finds the likeliest coefficients; the posterior
    means of the counts, divided by their sum, are returned. The shape of the negative binomial is the
    likeliest for what is expected by a fit to the released parities alone.
    """
    domain, total = plan.workload.domain, max(1, released_total(plan, measured))
    counts, rate = pieces(plan, measured.values)[-1], min(float(plan.rate(plan.parts[-1])), _CLEAR)
    codes = np.concatenate([[0], masks(plan)[:NEWTON]])
    found = estimates(plan, measured)
    sizes = sizes_of(plan, found)
    theta = np.concatenate([[0.0], fit(plan, found, sizes).theta[:NEWTON]])
    theta[0] = log(total) - np.logaddexp.reduce(_over_cells(domain, codes, theta))
    model = Model(
        domain,
        counts,
        rate,
        _likeliest(counts, _over_cells(domain, codes, theta), rate),
        codes,
        np.concatenate([[LEVEL], sizes[:NEWTON]]),
        *_beside(plan, measured, total),
    )
    last = np.zeros(len(model.beside))

    def expected(theta: Floats) -> Point[tuple[Floats, Floats]]:
        nonlocal last
        found = model.expected(theta, last)
        last = found.found[1]
        return found

    # a hundredth or so of its own deviation is near enough for a coefficient
    means, _ = newton(expected, expected(theta), close=len(codes) / 10_000, most=_TRIED).found
    table = np.zeros(1 << len(domain.attributes))
    # where cells were seen to be empty, all of them, nothing is known of the distribution
    table[domain.cells()] = means / means.sum() if means.sum() > 0 else 1 / domain.size
    return table


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Expected counts, counts, and what was released of them.

    Attributes
    ----------
    counts, rate
        What was released of each cell, shape (N,), with noise of ratio exp(-rate).
    shape
        Of the negative binomial.
    codes, spread
        The sets of the log-linear coefficients, the empty one first, and their prior deviations, shape (K,).
    beside, sums, noise
        The sets that were measured beside the cells, their sums, and the noise of these as variances.
    """

    domain: Domain
    counts: Integers
    rate: float
    shape: float
    codes: Integers
    spread: Floats
    beside: Integers
    sums: Floats
    noise: Floats

    def expected(self, theta: Floats, near: Floats) -> Point[tuple[Floats, Floats]]:
        """Return minus the log of the posterior density of the coefficients; the mean counts and the tilt.

        `near` is where the tilt is looked for first.
        """
        logs = np.minimum(_over_cells(self.domain, self.codes, theta), _MOST)
        heights = np.logaddexp(logs, log(self.shape))
        tilt = partial(self.tilted, logs - heights)
        start = tilt(near)
        if start.value == inf:
            start = tilt(np.zeros(len(near)))
        best = newton(tilt, start, close=_CLOSE, most=_TRIED)
        means, variances = best.found
        # of a step of a logarithm, what arrives at the counts
        steps, sizes = np.exp(log(self.shape) - heights), np.exp(logs)
        away = theta / self.spread

        def curvature() -> Floats:
            told = steps * sizes
            hidden = np.minimum(steps**2 * variances, _HIDDEN * told)
            across = self._products(steps * variances, self.beside, self.codes)
            known: Floats = across.T @ np.linalg.solve(best.curvature(), across)
            return self._products(told - hidden, self.codes, self.codes) + known + np.diag(self.spread**-2.0)

        value = -best.value - self.shape * float((log(self.shape) - heights).sum()) + away @ away / 2
        slope = away / self.spread - transformed(self.domain, steps * (means - sizes))[self.codes]
        return Point(theta, float(value), slope, curvature, (means, best.place))

    def tilted(self, log_decays: Floats, tilt: Floats) -> Point[tuple[Floats, Floats]]:
        """Tilt the counts towards the sums that were measured beside them; means and variances of counts."""
        from smalldb.kernels.posterior import posterior

        means, variances = np.zeros((2, len(self.counts)))
        tilts = _over_cells(self.domain, self.beside, tilt)
        logarithm = posterior(self.counts, log_decays + tilts, self.shape, self.rate, means, variances)

        def curvature() -> Floats:
            return self._products(variances, self.beside, self.beside) + np.diag(self.noise)

        value = logarithm - tilt @ self.sums + self.noise @ tilt**2 / 2
        slope = transformed(self.domain, means)[self.beside] - self.sums + self.noise * tilt
        return Point(tilt, float(value), slope, curvature, (means, variances))

    def _products(self, weights: Floats, some: Integers, others: Integers) -> Floats:
        """Return the sums over cells of weights times the products of two parities, one of each."""
        products: Floats = transformed(self.domain, weights)[some[:, None] ^ others]
        return products


def _beside(plan: ParityPlan, measured: Measured, total: int) -> tuple[Integers, Floats, Floats]:
    """Return the sets that were measured beside the cells, the empty one among them, as in `Model`."""
    found = estimates(plan, measured, plan.parts[:-1])
    known = np.isfinite(found.deviations)
    if plan.replaced:
        rows = [(plan.n, EXACTLY)]
    else:
        counted = released_counts(plan, measured)
        rows = [(n, part.deviations[0]) for part, n in counted if part is not plan.cells]
    codes = np.concatenate([[0] * len(rows), masks(plan)[known]]).astype(np.int64)
    sums = np.concatenate([[n for n, _ in rows], found.chi[known] * total])
    deviations = np.concatenate([[deviation for _, deviation in rows], found.deviations[known] * total])
    return codes, sums, deviations**2.0


def _likeliest(counts: Integers, logs: Floats, rate: float) -> float:
    """Climb to the likeliest shape for expected counts, given as logarithms."""
    from smalldb.kernels.posterior import posterior

    means, variances = np.empty(len(logs)), np.empty(len(logs))

    @cache
    def likelihood(place: int) -> float:
        if not 0 <= place < len(SHAPES):
            return -inf
        shape = SHAPES[place]
        heights = np.logaddexp(logs, log(shape))
        seen = posterior(counts, logs - heights, shape, rate, means, variances)
        return float(seen + shape * (log(shape) - heights).sum())

    place = len(SHAPES) // 2
    while (best := max(place - 1, place, place + 1, key=likelihood)) != place:
        place = best
    return SHAPES[place]


def _over_cells(domain: Domain, codes: Integers, coefficients: Floats) -> Floats:
    """Return, for each cell, the sum of the coefficients times the parities of their sets."""
    from smalldb.kernels.walsh import walsh

    table = np.zeros(1 << len(domain.attributes))
    np.add.at(table, codes, coefficients)
    walsh(table)
    return table[domain.cells()]
