"""Two-sided geometric noise: the Laplace law of whole numbers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import exp, expm1
from typing import ClassVar

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.enclosures import Log, Real
from smalldb.exact.integers import clipped, whole_geometric
from smalldb.exact.numbers import float_above
from smalldb.noise.noise_protocol import Moved, Noise, Weights, combined, magnitudes, sum_of_squares
from smalldb.noise.simulating import Uniforms
from smalldb.noise.tails import noise_quantile

_DIGITS = 50


@dataclass(frozen=True, slots=True)
class Geometric(Noise):
    """Independent two-sided geometric noise: P(x) is proportional to exp(-rate |x|)."""

    name: ClassVar[str] = "geometric"
    word: ClassVar[str] = name

    rate: Fraction

    def draw(self, count: int, source: BitSource) -> Integers:
        """Draw independent values, exactly; int64, cut off at `CLIP`."""
        whole = whole_geometric(self.rate, count, source)
        return clipped(whole.tolist()) if whole.dtype == object else whole

    def variance(self, weights: Weights = None) -> float:
        """Return 2 q / (1 - q)^2, q = exp(-rate), times the sum of squared weights."""
        rate = float(self.rate)
        return (2 * exp(-rate) / expm1(-rate) ** 2 if rate < 500 else 0.0) * sum_of_squares(weights)

    @property
    def mean_size(self) -> float:
        """The mean absolute value of one: 1 / sinh(rate)."""
        rate = float(self.rate)
        return -2 * exp(-rate) / expm1(-2 * rate) if rate < 500 else 0.0

    def simulated(self, weights: Floats, kinds: Integers, uniforms: Uniforms) -> Floats:
        """Return linear combinations, simulated: values of the same weights are summed first."""
        return combined(weights, kinds, partial(uniforms.geometric_sums, float(self.rate)))

    # Proof: docs/proofs/noise.md, lemma 1.
    def quantile(self, weights: Weights, failure: Fraction) -> float:
        """Return the best of Chernoff's bound, and each value within its exact quantile; exact for one."""
        sizes = [size for size in magnitudes(weights) if size]
        if not sizes:
            return 0.0
        whole, most = sum(sizes, Fraction(0)), max(sizes)
        decay = Real.of(-self.rate, _DIGITS).exp()
        # P(|X| > r) = 2 q^(r + 1) / (1 + q)
        beyond = (Log(_DIGITS)(2 * len(sizes) / failure) - (1 + decay).ln()) / self.rate
        within = whole * max(0, beyond.high.__ceil__() - 1)
        if len(sizes) > 1:
            chernoff = most * Fraction(noise_quantile(self.rate, (whole / most).__ceil__(), failure))
            within = min(within, chernoff)
        return float_above(within)

    def lost(self, moved: Moved) -> Fraction:
        """Return the rate for each unit that values move by in all."""
        return self.rate * moved.total
