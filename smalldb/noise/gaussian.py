"""The discrete Gaussian: exact noise of integers, and how many parities move between neighbours.

Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020), CKS below. Integers
that move by Delta_j between neighbours, each with noise of its own sigma_j^2, are released under rho-zCDP,
where rho is the largest sum of Delta_j^2 / (2 sigma_j^2) (CKS, Theorem 14).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import comb, isqrt, pi, sqrt
from operator import mul
from typing import ClassVar

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.exact.integers import clipped, whole_geometric
from smalldb.exact.numbers import float_above
from smalldb.noise.noise_protocol import Moved, Noise, Weights, combined, magnitudes, sum_of_squares
from smalldb.noise.simulating import Uniforms
from smalldb.noise.tails import SLACK, gaussian_quantile, log_odds

BITS = 24  # of a weight
_NORMAL = 64  # squared scale from which a discrete Gaussian has it as its variance, to the last digit


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Noise):
    """Independent discrete Gaussian noise: P(x) is proportional to exp(-x^2 / (2 scale))."""

    name: ClassVar[str] = "discrete Gaussian"
    word: ClassVar[str] = "Gaussian"
    concentrated: ClassVar[bool] = True

    scale: Fraction  # sigma^2: the variance is no larger, and hardly smaller from 1 on

    # Proof: docs/proofs/delta.md, lemma 1.
    def draw(self, count: int, source: BitSource) -> Integers:
        """Draw independent values, exactly; int64, cut off at `CLIP`."""
        # a two-sided geometric number of scale t = floor(sigma) + 1 is kept with probability
        # exp(-(|x| - scale / t)^2 / (2 scale)), about three in four (CKS, Algorithm 3)
        t = isqrt(self.scale.__floor__()) + 1
        middle = self.scale / t
        drawn, pending = np.zeros(count, dtype=object), np.arange(count)
        while len(pending):
            proposals = whole_geometric(Fraction(1, t), len(pending), source).tolist()
            accepted = [bernoulli_exp((abs(x) - middle) ** 2 / (2 * self.scale), source) for x in proposals]
            drawn[pending] = proposals
            pending = pending[np.logical_not(accepted)]
        return clipped(drawn.tolist())

    def variance(self, weights: Weights = None) -> float:
        """Return the variance of one value times the sum of squared weights."""
        one = float(self.scale)
        if self.scale < _NORMAL:
            squares = np.arange(-128, 129, dtype=np.float64) ** 2
            odds = np.exp(-squares / (2 * max(one, 1e-3)))
            one = float(squares @ (odds / odds.sum()))
        return one * sum_of_squares(weights)

    def simulated(self, weights: Floats, kinds: Integers, uniforms: Uniforms) -> Floats:
        """Return linear combinations, simulated: values of the same weights are summed first."""
        return combined(weights, kinds, partial(uniforms.gaussian_sums, float(self.scale)))

    @property
    def mean_size(self) -> float:
        """About the mean absolute value of one: that of a normal number."""
        return sqrt(2 * float(self.scale) / pi)

    # Proof: docs/proofs/noise.md, lemma 2.
    def quantile(self, weights: Weights, failure: Fraction) -> float:
        """Return that of one value by its tail; of a combination by its being sub-Gaussian."""
        sizes = [size for size in magnitudes(weights) if size]
        if len(sizes) == 1:
            return float_above(sizes[0] * gaussian_quantile(self.scale, failure))
        squared = float(self.scale * sum(size**2 for size in sizes))
        return sqrt(2 * squared * log_odds(failure / 2)) * SLACK

    def lost(self, moved: Moved) -> Fraction:
        """Return the rho of values that move so far."""
        return Fraction(moved.squares) / (2 * self.scale)


# Proof: docs/proofs/delta.md, lemma 3.
def moving(attributes: int, order: int, distance: int) -> int:
    """Return how many parities of an order differ between rows that differ in so many attributes."""
    # those of sets with an odd number of these: of ab, ac and bc, at distance 1 in a, two
    return sum(comb(distance, j) * comb(attributes - distance, order - j) for j in range(1, order + 1, 2))


# Proof: docs/proofs/delta.md, lemma 3.
def moves(attributes: int, sizes: Mapping[int, int], replaced: bool) -> list[dict[int, int]]:
    """Return how many counts of each order move, by 1 each, for each way in which neighbours can differ."""
    if not replaced:
        return [dict(sizes)]
    ways = range(1, attributes + 1)
    return [{o: min(size, moving(attributes, o, h)) for o, size in sizes.items()} for h in ways]


# Proof: docs/proofs/delta.md, lemmas 3 and 4.
def least_variances(
    attributes: int, sizes: Mapping[int, int], needs: Mapping[int, float], rho: Fraction, replaced: bool
) -> dict[int, Fraction]:
    """Return sigma^2 for the counts of each order: rho-zCDP together, for any two neighbours."""
    # Weights w = 1 / (2 sigma^2), scaled so that no way moves more than rho. For each way in turn they are
    # proportional to sqrt(needs / moved), where the sum of needs / w is least; the best are taken.
    orders = sorted(sizes)
    ways = [[moved[o] for o in orders] for moved in moves(attributes, sizes, replaced)]
    needed = np.array([needs[o] for o in orders])
    best: tuple[float, list[Fraction]] | None = None
    for moved in ways:
        floats = np.sqrt(needed / np.maximum(moved, 0.5))
        weights = [max(1, round(w)) for w in (floats / floats.max() * (1 << BITS)).tolist()]
        most = max(sum(map(mul, some, weights)) for some in ways)
        variances = [most / (2 * rho * w) for w in weights]
        noise = float(needed @ np.array([float(v) for v in variances]))
        if best is None or noise < best[0]:
            best = noise, variances
    assert best is not None
    return dict(zip(orders, best[1], strict=True))
