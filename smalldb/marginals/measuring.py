"""What a step costs and how it is drawn: exact noise on counts, exact selection; pure or concentrated."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, isqrt, pi, sqrt

import numpy as np

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import CLIP, two_sided_geometric
from smalldb.marginals.estimate.junction import Scope
from smalldb.noise.gaussian import DiscreteGaussian, gaussian_noise
from smalldb.noise.geometric import Geometric
from smalldb.selection import select

LIMIT = CLIP // 2  # no count passes it
MOST_NOISE = 1 << 40  # in the mean, on a count
_ROOT_BITS = 40


@dataclass(frozen=True, slots=True)
class Law:
    """
    How privacy is counted: pure epsilon, which adds up; or rho-zCDP, which adds up too.

    Attributes
    ----------
    concentrated
        False: a cost is an epsilon, and noise is two-sided geometric. True: it is a rho, and noise is
        discrete Gaussian (CKS 2020, Theorem 14).
    replaced
        The relation: replace-one, or add-remove.
    """

    concentrated: bool
    replaced: bool

    # Proof: docs/proofs/rounds.md, lemma 1.
    @property
    def moved(self) -> int:
        """How far the counts of one table move between neighbours, in L1 and in squares of L2."""
        return 2 if self.replaced else 1

    # Proof: docs/proofs/rounds.md, lemma 2.
    def spread(self, cost: Fraction) -> Fraction:
        """Return the rate of geometric noise, or the variance of Gaussian noise, on all cells of a table."""
        return self.moved / (2 * cost) if self.concentrated else cost / self.moved

    def variance(self, cost: Fraction) -> float:
        """Return the variance of the noise of a cell."""
        spread = float(self.spread(cost))
        if self.concentrated:
            return spread
        return 2 * exp(-spread) / expm1(-spread) ** 2 if spread < 500 else 0.0

    def distribution(self, cost: Fraction) -> Geometric | DiscreteGaussian:
        """Return the noise of all cells of a table."""
        spread = self.spread(cost)
        return DiscreteGaussian(spread) if self.concentrated else Geometric(spread)

    def size(self, cost: Fraction) -> float:
        """Return the mean absolute noise of a cell."""
        spread = float(self.spread(cost))
        if self.concentrated:
            return sqrt(2 * spread / pi)
        return -2 * exp(-spread) / expm1(-2 * spread) if spread < 500 else 0.0

    def drowns(self, cost: Fraction) -> bool:
        """Tell, exactly, whether noise is above 2^40 in the mean: a count is of no use then."""
        if self.concentrated:
            return self.spread(cost) > pi / 2 * MOST_NOISE**2
        return self.spread(cost) < Fraction(1, MOST_NOISE)  # the mean is 1 / sinh(rate)

    def noise(self, cost: Fraction, count: int, source: BitSource) -> Integers:
        """Draw the noise of `count` cells of one table, exactly."""
        draw = gaussian_noise if self.concentrated else two_sided_geometric
        return draw(self.spread(cost), count, source)

    # Proof: docs/proofs/certificate.md, lemma 2.
    def single(self, cost: Fraction, moved: int, source: BitSource) -> int:
        """Draw the noise of one number that moves by `moved` between neighbours, exactly."""
        if self.concentrated:
            return int(gaussian_noise(Fraction(moved * moved) / (2 * cost), 1, source)[0])
        return int(two_sided_geometric(cost / moved, 1, source)[0])

    # Proof: docs/proofs/rounds.md, lemma 4.
    def selecting(self, cost: Fraction) -> Fraction:
        """
        Return the epsilon of an exponential mechanism of that cost.

        It is bounded-range, and hence epsilon^2 / 8-zCDP (Dong et al. 2020; Cesar and Rogers 2021).
        """
        if not self.concentrated:
            return cost
        scaled = 8 * cost * (1 << (2 * _ROOT_BITS))
        return Fraction(isqrt(scaled.__floor__()), 1 << _ROOT_BITS)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """
    A table that was released: counts with noise.

    Attributes
    ----------
    scope
        Its columns and levels.
    counts
        The released integers, shaped by the groups.
    cost
        What was paid: an epsilon, or a rho.
    variance
        Of the noise of a cell.
    """

    scope: Scope
    counts: Integers
    cost: Fraction
    variance: float


# Proof: docs/proofs/draw.md, lemma 7; docs/proofs/rounds.md, lemma 2.
def measure(counts: Integers, scope: Scope, law: Law, cost: Fraction, source: BitSource) -> Measured:
    """
    Release the counts of a table: pure `cost`-differential privacy, or `cost`-zCDP.

    One row stands in one cell: under add-remove counts move by 1 in one cell, under replace-one by 1 in two.
    """
    noise = law.noise(cost, counts.size, source).reshape(counts.shape)
    # a function of the sum with the whole noise: what was cut off at CLIP is beyond LIMIT with any count
    return Measured(scope, np.clip(counts + noise, -LIMIT, LIMIT), cost, law.variance(cost))


# Proof: docs/proofs/rounds.md, lemma 4.
def choose(scores: Sequence[int] | Integers, law: Law, cost: Fraction, most: int, source: BitSource) -> int:
    """
    Select a candidate of high score, at a cost; each score moves by at most `law.moved` times `most`.

    A score is `most` or less times the sum over cells of abs(count - prediction), less a number that does
    not depend on the data given what was released.
    """
    return select(
        np.asarray(scores), epsilon=law.selecting(cost), sensitivity=law.moved * most, rng=source
    ).index
