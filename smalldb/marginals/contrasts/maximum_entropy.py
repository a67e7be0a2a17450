"""From parities and cells with public noise to a distribution over the cells."""

from math import nan
from typing import NamedTuple

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.contrasts.parity_means import (
    Estimates,
    NoisyParities,
    estimates,
    masks,
    pieces,
    released_counts,
    released_total,
)
from smalldb.marginals.contrasts.parity_plan import ParityPlan
from smalldb.marginals.contrasts.priors import prior
from smalldb.marginals.contrasts.spectrum import Positions, mask
from smalldb.marginals.estimate.cell_estimates import CLEAR, EXACTLY, CellCounts
from smalldb.marginals.estimate.cell_fitting import Contrasts, maximum_entropy

ITERATIONS = 500
SURPRISE = 3.0  # deviations that a safeguard's parity is from what was predicted, to count
SURPRISING = 1.0  # deviation of its coefficient then, whatever its order
PAIRS = tuple(float(prior(np.array([2]))[0]) / 2**halvings for halvings in range(6))
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
def guarded_fit(plan: ParityPlan, measured: NoisyParities) -> Fitted:
    """Fit to what was measured; what a safeguard measured counts only if all else predicts it badly."""
    fitted = fit(plan, estimates(plan, measured, plan.unguarded))
    if plan.safeguard is None:
        return fitted
    found, everything = estimates(plan, measured, (plan.safeguard,)), estimates(plan, measured)
    surprising = np.abs(found.chi - fitted.chi[masks(plan)]) > SURPRISE * found.deviations
    if not surprising.any():
        return fitted
    return fit(plan, everything, np.where(surprising, SURPRISING, sizes_of(plan, everything)))


def predicted(plan: ParityPlan, measured: NoisyParities, sets: tuple[Positions, ...]) -> Integers:
    """Predict the counts of some sets from all parts but a safeguard, rounded: int64, a set each.

    Parameters
    ----------
    plan, measured
        What was planned, and what the parts before a safeguard released.
    sets
        Parities of any order, of up to 20 attributes in all.

    Returns
    -------
    array of int64
        Under replace-one the rows with an odd number of ones on the set; under add-remove the sum of chi_S
        over the rows.
    """
    fitted, total = fit(plan, estimates(plan, measured, plan.unguarded)), released_total(plan, measured)
    d = len(plan.domain.attributes)
    chi = fitted.chi[[mask(positions, d) for positions in sets]]
    counts: Integers = np.rint(total * ((1 - chi) / 2 if plan.replaced else chi)).astype(np.int64)
    return counts


def sizes_of(plan: ParityPlan, found: Estimates) -> Floats:
    """
    Return how large coefficients seem to be, as standard deviations, shape (K,).

    The prior; of order 2 the likeliest of its halvings. The parity of a pair that does not interact is the
    product of its means, and a small coefficient moves it by that times the variances of both signs.

    Parameters
    ----------
    plan
        Which attributes and parities there are.
    found
        The means of the parities as they were released, with their noise.
    """
    orders, known = plan.spectrum.orders, np.isfinite(found.deviations)
    means = np.full(len(plan.domain.attributes), nan)
    for (i, *more), position in zip(plan.spectrum.sets, range(len(orders)), strict=True):
        if not more and known[position]:
            means[i] = found.chi[position]
    positions = np.flatnonzero((orders == 2) & known)
    singles = means[
        np.array([plan.spectrum.sets[position] for position in positions]).reshape(-1, 2).astype(int)
    ]
    sure = ~np.isnan(singles).any(axis=1)
    positions, singles = positions[sure], singles[sure]
    apart, moved = found.chi[positions] - singles.prod(axis=1), (1 - singles**2).prod(axis=1)

    def likelihood(size: float) -> float:
        variances = np.maximum(found.deviations[positions] ** 2 + (size * moved) ** 2, _LEAST)
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
    What is left of each answer is z_S - chi_S(q) = (sd_S / prior_S)^2 theta_S. Cost: some dozens of
    Walsh-Hadamard transforms.

    Parameters
    ----------
    plan
        Which attributes and parities there are.
    found
        The means of the parities as they were released; of those with an infinite deviation nothing is known.
    sizes
        Shape (K,): the standard deviation of each coefficient's prior; None: `sizes_of`.
    """
    contrasts, known = Contrasts.of(plan.domain), np.isfinite(found.deviations)
    codes, z, noise = masks(plan)[known], found.chi[known], found.deviations[known]
    sizes = sizes_of(plan, found) if sizes is None else sizes
    # The less a parity is known, beside how large it may be, the less it is followed. One yes/no column, seen
    # at 0.5 with noise 0.1 under a prior of 0.25: the ridge is 0.16, tanh(theta) + 0.16 theta = 0.5, and the
    # fitted mean is 0.427, nearer to 0 by 0.16 theta = 0.073.
    ridge = (noise / sizes[known]) ** 2
    enough = max(_SLOPE, float(noise.min(initial=1.0)) / 100)
    theta, probabilities = maximum_entropy(contrasts, codes, z, ridge, enough, ITERATIONS)
    q = np.zeros(1 << len(plan.domain.attributes))
    q[contrasts.cells] = probabilities
    return Fitted(theta, q, contrasts.sums(probabilities))


def read_all_cells(plan: ParityPlan, measured: NoisyParities) -> Floats:
    """
    Return a distribution over all 2^d cells, from a plan that measured cells, alone or beside low orders.

    Expected counts are log-linear in the parities of the spectrum: see `CellCounts.read`.
    """
    contrasts, total = Contrasts.of(plan.domain), max(1, released_total(plan, measured))
    found = estimates(plan, measured)
    sizes = sizes_of(plan, found)
    released = CellCounts(
        contrasts,
        pieces(plan, measured.values)[-1],
        min(float(plan.rate(plan.parts[-1])), CLEAR),
        *_beside(plan, measured, total),
    )
    table = np.zeros(1 << len(plan.domain.attributes))
    table[contrasts.cells] = released.read(total, masks(plan), fit(plan, found, sizes).theta, sizes)
    return table


def _beside(plan: ParityPlan, measured: NoisyParities, total: int) -> tuple[Integers, Floats, Floats]:
    """Return the sets that were measured beside the cells, the empty one among them, as in `CellCounts`."""
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
