"""What released parities are believed to be: a log-linear distribution over the cells, and a public prior."""

from collections.abc import Sequence
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from queries import Domain
from queries.arrays import STEP, Floats, splitmix64
from queries.domain import Bits, Integers
from smalldb.marginals.contrasts.spectrum import Positions, mask
from smalldb.marginals.estimate.cell_estimates import Contrasts, maximum_entropy

ITERATIONS = 500
SURPRISE = 3.0  # deviations that a guard's parity is from what was predicted, to count
SURPRISING = 1.0  # deviation of its coefficient then, whatever its order
FIRST_DEVIATION, FACTOR = 0.6, 1 / 3  # what a parity of order o is expected to be: 0.6 / 3^(o - 1)
_LEAST = 1e-200
_SLOPE = 1e-6  # of a mean: what is left there does not matter
Signs: TypeAlias = npt.NDArray[np.int8]
THRESHOLDS = (0.5, 0.25, 0.12, 0.06, 0.03, 0.0, 0.0, 0.0)  # of a sweep: see `kernels.nearby_rows`
_CERTAIN = 1e-9  # a deviation below which noise does not count


class Plan(Protocol):
    """What is known of what was measured."""

    @property
    def spectrum(self) -> Any:
        """Parities: `sets` of attributes, and `orders`, how many each has."""

    @property
    def domain(self) -> Domain:
        """The attributes."""


class Means(NamedTuple):
    """The means of the parities of a spectrum as they were released, and their noise: infinite, if not."""

    chi: Floats
    deviations: Floats


class Fitted(NamedTuple):
    """A log-linear distribution: over the cells, and the means of all parities."""

    q: Floats
    chi: Floats


def prior(orders: Integers) -> Floats:
    """Return how large parities of these orders are expected to be, as a standard deviation."""
    return np.asarray(FIRST_DEVIATION * np.power(FACTOR, orders - 1.0))


PAIRS = tuple(float(prior(np.array([2]))[0]) / 2**halvings for halvings in range(6))


def masks(plan: Plan, sets: tuple[Positions, ...] | None = None) -> Integers:
    """Return the mask of each set of the spectrum, or of some sets."""
    d, sets = len(plan.domain.attributes), plan.spectrum.sets if sets is None else sets
    return np.array([mask(some, d) for some in sets], dtype=np.int64)


# Proof: docs/proofs/safeguard.md, lemma 5.
def guarded_fit(plan: Plan, parities: Means, guard: Means, both: Means) -> Fitted:
    """Fit to parities; what a guard measured counts only if all else predicts it badly."""
    fitted = fit(plan, parities)
    surprising = np.abs(guard.chi - fitted.chi[masks(plan)]) > SURPRISE * guard.deviations
    if not surprising.any():
        return fitted
    return fit(plan, both, np.where(surprising, SURPRISING, sizes_of(plan, both)))


def sizes_of(plan: Plan, released: Means) -> Floats:
    """Return how large coefficients seem to be, as standard deviations, shape (K,).

    The prior; of order 2 the likeliest of its halvings. The parity of a pair that does not interact is the
    product of its means, and a small coefficient moves it by that times the variances of both signs.
    """
    orders, known = plan.spectrum.orders, np.isfinite(released.deviations)
    means = np.full(len(plan.domain.attributes), nan)
    for position in np.flatnonzero((orders == 1) & known):
        means[plan.spectrum.sets[position][0]] = released.chi[position]
    positions = np.flatnonzero((orders == 2) & known)
    pairs = np.array([plan.spectrum.sets[position] for position in positions]).reshape(-1, 2)
    singles = means[pairs.astype(int)]
    sure = ~np.isnan(singles).any(axis=1)
    positions, singles = positions[sure], singles[sure]
    apart, moved = released.chi[positions] - singles.prod(axis=1), (1 - singles**2).prod(axis=1)

    def likelihood(size: float) -> float:
        variances = np.maximum(released.deviations[positions] ** 2 + (size * moved) ** 2, _LEAST)
        return -float((np.log(variances) + apart**2 / variances).sum())

    sizes = prior(orders)
    sizes[orders == 2] = max(PAIRS, key=likelihood)
    return sizes


def fit(plan: Plan, released: Means, sizes: Floats | None = None) -> Fitted:
    """Fit a distribution over all 2^d cells (0 on those that cannot exist), up to 20 attributes.

    Maximum entropy with a normal prior on the log-linear coefficients: q is proportional to
    exp(sum of theta_S chi_S) on the cells, and theta minimises ::

        ln Z(theta) - sum of theta_S z_S + sum of (sd_S / prior_S)^2 theta_S^2 / 2,

    over the parities that were measured as z_S with noise sd_S; prior_S is `sizes`, (K,), or `sizes_of`.
    """
    contrasts, known = Contrasts.of(plan.domain), np.isfinite(released.deviations)
    codes, z, noise = masks(plan)[known], released.chi[known], released.deviations[known]
    sizes = sizes_of(plan, released) if sizes is None else sizes
    # The less a parity is known, beside how large it may be, the less it is followed. One yes/no column, seen
    # at 0.5 with noise 0.1 under a prior of 0.25: the ridge is 0.16, tanh(theta) + 0.16 theta = 0.5, and the
    # fitted mean is 0.427, nearer to 0 by 0.16 theta = 0.073.
    ridge = (noise / sizes[known]) ** 2
    enough = max(_SLOPE, float(noise.min(initial=1.0)) / 100)
    _, probabilities = maximum_entropy(contrasts, codes, z, ridge, enough, ITERATIONS)
    q = np.zeros(1 << len(plan.domain.attributes))
    q[contrasts.cells] = probabilities
    return Fitted(q, contrasts.sums(probabilities))


def rows_with_means(means: Floats, rows: int, seed: int, starts: Sequence[int] | None = None) -> Signs:
    """Return signs, shape (rows, d), of these means to within one row, and as good as independent columns."""
    signs = np.empty((rows, len(means)), dtype=np.int8)
    for column, (low, high) in enumerate(pairwise(range(len(means) + 1) if starts is None else starts)):
        ranks = np.argsort(np.argsort(splitmix64(rows, (seed + column * rows * STEP) % (1 << 64))))
        yes = (1 - means[low:high]) / 2
        ends = np.cumsum(yes) / max(1.0, yes.sum()) * rows
        held = np.searchsorted(ends, ranks + 0.5, side="right")
        signs[:, low:high] = np.where(held[:, None] == np.arange(high - low), -1, 1)
    return signs


def flipped_towards(plan: Any, released: Means, near: Floats, start: Signs) -> Signs:
    """Return rows whose signs are turned until parities of order 1 and 2 are what they are believed to be."""
    from smalldb.kernels.nearby_rows import turn

    rows, d = start.shape
    targets, weights = np.zeros((d + 1, d + 1)), np.zeros((d + 1, d + 1))
    precisions = np.maximum(released.deviations, _CERTAIN) ** -2.0 + sizes_of(plan, released) ** -2
    for positions, value, precision in zip(plan.spectrum.sets, near, precisions, strict=True):
        if len(positions) <= 2:
            a, b = (0, positions[0] + 1) if len(positions) == 1 else (positions[0] + 1, positions[1] + 1)
            targets[a, b] = targets[b, a] = rows * value
            weights[a, b] = weights[b, a] = precision
    signs = np.ones((rows, d + 1), dtype=np.int8)
    signs[:, 1:] = start
    starts = np.array(plan.coding.starts, dtype=np.int64) + 1
    beyond = _products(signs) - targets
    np.fill_diagonal(beyond, 0.0)
    weights /= weights.max(initial=_CERTAIN)
    for sweep, threshold in enumerate(THRESHOLDS):
        turned = turn(signs, beyond, weights, threshold, sweep * rows // len(THRESHOLDS), starts)
        if not turned and not threshold:
            break
    return signs[:, 1:]


def _products(signs: Signs) -> Floats:
    """Return the sums over the rows of products of two signs: exact, whatever their order."""
    products = np.zeros((signs.shape[1],) * 2)
    for start in range(0, len(signs), 1 << 16):
        some = signs[start : start + (1 << 16)].astype(np.float64)
        products += some.T @ some
    return products


def rounded(domain: Domain, distribution: Floats, rows: int) -> Bits:
    """Return rows whose histogram is the distribution, rounded: 0/1, shape (rows, d)."""
    # systematic rounding, in Gray code order: any run of cells, in which neighbours differ in one attribute,
    # gets its share of the rows to within one row
    d = len(domain.attributes)
    cells = np.arange(1 << d)
    cells ^= cells >> 1
    ends = np.cumsum(distribution[cells])
    positions = (np.arange(rows) + 0.5) / rows * ends[-1]
    taken = cells[np.searchsorted(ends, positions, side="right")]
    return np.asarray((taken[:, None] >> np.arange(d - 1, -1, -1) & 1).astype(np.uint8))
