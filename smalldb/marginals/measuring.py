"""What a step costs and how it is drawn: exact noise on counts, exact selection; pure or concentrated."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, pi

from queries.domain import Integers
from smalldb.exact.integers import CLIP
from smalldb.marginals.estimate.junction import Scope
from smalldb.noise.gaussian import DiscreteGaussian
from smalldb.noise.geometric import Geometric
from smalldb.noise.k_norm import KNorm
from smalldb.noise.noise_protocol import Noise
from smalldb.noise.privacy_loss import Loss

LIMIT = CLIP // 2  # no count passes it
MOST_NOISE = 1 << 40  # in the mean, on a count
_ROOT_BITS = 40


@dataclass(frozen=True, slots=True)
class PrivacyMeasure:
    """How privacy is counted: pure epsilon, which adds up; or rho-zCDP, which adds up too."""

    # false: a cost is an epsilon, and noise is two-sided geometric. True: it is a rho, and noise is discrete
    # Gaussian (CKS 2020, Theorem 14).
    concentrated: bool
    replaced: bool  # the relation: replace-one, or add-remove
    # what whatever is protected weighs in counts at most: 1 for a row; of related tables, in which a parent
    # and all its children are protected, the denominator of their weights
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
        """Return the epsilon of an exponential mechanism of that cost.

        It is bounded-range, and hence epsilon^2 / 8-zCDP (Dong et al. 2020; Cesar and Rogers 2021).
        """
        if not self.concentrated:
            return cost
        scaled = 8 * cost * (1 << (2 * _ROOT_BITS))
        return Fraction(isqrt(scaled.__floor__()), 1 << _ROOT_BITS)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """A table that was released: counts with noise."""

    scope: Scope  # its columns and levels
    counts: Integers  # the released integers, shaped by the groups; or what was read from several, rounded
    # what was paid: an epsilon, or a rho; 0 where it was read from what another measurement released
    cost: Fraction
    noise: Noise  # of what was released, this table or what it was read from
    variance: float  # of the noise of a cell
