"""What a step costs and how it is drawn: exact noise on counts, exact selection; pure or concentrated."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, pi

import numpy as np

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import CLIP
from smalldb.marginals.estimate.junction import Scope
from smalldb.noise.distributions import DiscreteGaussian, Geometric, KNorm, Noise
from smalldb.noise.privacy_loss import Loss
from smalldb.selection import select

LIMIT = CLIP // 2  # no count passes it
MOST_NOISE = 1 << 40  # in the mean, on a count
_ROOT_BITS = 40


@dataclass(frozen=True, slots=True)
class PrivacyMeasure:
    """
    How privacy is counted: pure epsilon, which adds up; or rho-zCDP, which adds up too.

    Attributes
    ----------
    concentrated
        False: a cost is an epsilon, and noise is two-sided geometric. True: it is a rho, and noise is
        discrete Gaussian (CKS 2020, Theorem 14).
    replaced
        The relation: replace-one, or add-remove.
    unit
        What whatever is protected weighs in counts at most: 1 for a row; of related tables, in which a parent
        and all its children are protected, the denominator of their weights.
    """

    concentrated: bool
    replaced: bool
    unit: int = 1

    # Proof: docs/proofs/rounds.md, lemma 1.
    @property
    def moved(self) -> int:
        """How far the counts of one table move between neighbours, in units in L1 and in squares of L2."""
        return 2 if self.replaced else 1

    # Proof: docs/proofs/rounds.md, lemma 2; docs/proofs/related.md, lemma 2.
    def noise(self, cost: Fraction) -> Geometric | DiscreteGaussian:
        """Return the noise on all cells of a table."""
        if self.concentrated:
            return DiscreteGaussian(self.moved * self.unit**2 / (2 * cost))
        return Geometric(self.rate(cost))

    def rate(self, cost: Fraction) -> Fraction:
        """Return what a weight of 1 that is added or removed may lose, of a pure cost."""
        return cost / (self.moved * self.unit)

    # Proof: docs/proofs/k-norm.md, lemma 3; docs/proofs/related.md, lemma 2.
    def noise_of_columns(self, sizes: tuple[int, ...], cost: Fraction) -> KNorm:
        """Return the noise on several columns at once, of a pure cost."""
        if self.unit == 1:
            return KNorm(sizes, cost, self.replaced)
        # what replaces a parent may weigh more or less: it is removed, and the other one added
        return KNorm(sizes, self.rate(cost), replaced=False)

    # Proof: docs/proofs/certificate.md, lemma 2.
    def noise_of_number(self, cost: Fraction, moved: int) -> Geometric | DiscreteGaussian:
        """Return the noise on one number that moves by `moved` between neighbours."""
        if self.concentrated:
            return DiscreteGaussian(Fraction(moved * moved) / (2 * cost))
        return Geometric(cost / moved)

    # Proof: docs/proofs/losses.md, lemmas 1 and 3; docs/proofs/related.md, lemma 2.
    def loss_of_table(self, cost: Fraction) -> Loss:
        """Return the loss of measuring a table: one cell moves by 1, or two of them; of weights, any do."""
        if self.concentrated:
            return Loss.concentrated(cost)
        return Loss.geometric(self.rate(cost), 1, self.moved) if self.unit == 1 else Loss.pure(cost)

    def loss_of_number(self, cost: Fraction) -> Loss:
        """Return the loss of measuring one number, by however much it moves."""
        return Loss.concentrated(cost) if self.concentrated else Loss.pure(cost)

    # Proof: docs/proofs/losses.md, lemma 6.
    def loss_of_selection(self, cost: Fraction) -> Loss:
        """Return the loss of an exponential mechanism of that cost."""
        return Loss.concentrated(cost) if self.concentrated else Loss.ranged(cost)

    def loss_of_certificate(self, cost: Fraction) -> Loss:
        """Return the loss of a certificate: half for its selection, half for its number."""
        if not cost:
            return Loss.none()
        return self.loss_of_selection(cost / 2).together(self.loss_of_number(cost / 2))

    def drowns(self, cost: Fraction) -> bool:
        """Tell, exactly, whether noise is above 2^40 in the mean: a count is of no use then."""
        noise = self.noise(cost)
        if isinstance(noise, DiscreteGaussian):
            return noise.scale > pi / 2 * MOST_NOISE**2
        return noise.rate < Fraction(1, MOST_NOISE)  # the mean is 1 / sinh(rate)

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
class NoisyTable:
    """
    A table that was released: counts with noise.

    Attributes
    ----------
    scope
        Its columns and levels.
    counts
        The released integers, shaped by the groups; or what was read from several, rounded.
    cost
        What was paid: an epsilon, or a rho; 0 where it was read from what another measurement released.
    noise
        Of what was released, this table or what it was read from.
    variance
        Of the noise of a cell.
    """

    scope: Scope
    counts: Integers
    cost: Fraction
    noise: Noise
    variance: float


# Proof: docs/proofs/k-norm.md, lemma 3.
def measure_columns(
    counts: Integers, sizes: tuple[int, ...], law: PrivacyMeasure, cost: Fraction, source: BitSource
) -> Integers:
    """
    Release the counts of columns at once: pure `cost`-differential privacy.

    One row stands in one category of each: under add-remove a count of each column moves by 1, all alike.
    """
    return _noisy(counts, law.noise_of_columns(sizes, cost), source)


# Proof: docs/proofs/draw.md, lemma 7; docs/proofs/rounds.md, lemma 2.
def measure(
    counts: Integers, scope: Scope, law: PrivacyMeasure, cost: Fraction, source: BitSource
) -> NoisyTable:
    """
    Release the counts of a table: pure `cost`-differential privacy, or `cost`-zCDP.

    One row stands in one cell: under add-remove counts move by 1 in one cell, under replace-one by 1 in two.
    """
    return released(_noisy(counts, law.noise(cost), source), scope, law, cost)


def _noisy(counts: Integers, noise: Noise, source: BitSource) -> Integers:
    """Return counts with noise, of the same shape."""
    drawn = noise.draw(counts.size, source).reshape(counts.shape)
    # a function of the sum with the whole noise: what was cut off at CLIP is beyond LIMIT with any count
    found: Integers = np.clip(counts + drawn, -LIMIT, LIMIT)
    return found


def released(counts: Integers, scope: Scope, law: PrivacyMeasure, cost: Fraction) -> NoisyTable:
    """Return the measurement that released these counts at that cost."""
    noise = law.noise(cost)
    return NoisyTable(scope, counts, cost, noise, noise.variance())


# Proof: docs/proofs/rounds.md, lemma 4; docs/proofs/related.md, lemma 3.
def choose(
    scores: Sequence[int] | Integers, law: PrivacyMeasure, cost: Fraction, most: int, source: BitSource
) -> int:
    """
    Select a candidate of high score, at a cost; each score moves by at most `law.moved` units times `most`.

    A score is `most` or less times the sum over cells of abs(count - prediction), less a number that does
    not depend on the data given what was released.
    """
    return select(
        np.asarray(scores),
        epsilon=law.selecting(cost),
        sensitivity=law.moved * law.unit * most,
        rng=source,
    ).index
