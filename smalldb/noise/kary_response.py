"""Randomised response among several categories: the truth, or with equal chances any other category."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from queries.arrays import Floats
from smalldb.exact.enclosures import Real
from smalldb.exact.numbers import float_above
from smalldb.noise.privacy_loss import LawOfOne, RandomisedResponse, rounded_up

_DIGITS = 50
_CELLS = 256  # of the orders, when the best of them are cut anew
_MARGIN = 1e-9  # relative: more than what rounding adds up to
_SMALL = Fraction(1, 10**6)  # an epsilon
_FARTHEST = 1e6  # an order times epsilon: beyond, no divergence is above epsilon
_LARGE = 300.0  # of a loss times an order above 1, whose exponential is a float
_WIDTH = 1e-9  # relative, of the orders where the search ends


@dataclass(frozen=True, slots=True)
class KaryResponse(LawOfOne):
    """The truth e^epsilon times as likely as each other of k categories; epsilon is the parameter."""

    law: ClassVar[str] = "k-ary randomised response"

    categories: int  # k, from 2

    # Proof: docs/proofs/losses.md, lemma 5.
    @property
    def rho(self) -> Fraction:
        """
        Return the largest Renyi divergence over its order, rounded up; above the least by 1e-8 at most.

        Where k - 2 <= 4 e^(epsilon / 2), so always up to k = 6, it is that of order 1:
        epsilon (e^epsilon - 1) / (e^epsilon + k - 1) (Harrison and Manurangsi 2025). Else it is searched.
        Below 1e-6 and above 300 it is that of two categories, which is no less.
        """
        x, others = self.parameter, self.categories - 2
        if x > _LARGE:
            return RandomisedResponse(x).rho
        grown = Real.of(x, _DIGITS).exp()
        if others <= 4 * Real.of(x / 2, _DIGITS).exp().low:
            return rounded_up(x * (grown - 1) / (grown + (others + 1)))
        if x < _SMALL:  # floats would lose too many digits
            return RandomisedResponse(x).rho
        return Fraction(self._searched(float_above(x)))

    def of_group(self, rows: int) -> RandomisedResponse:
        """Return what loses most: another answer for each row."""
        return RandomisedResponse(self.parameter * rows)

    def _searched(self, eps: float) -> float:
        """Divergences rise with the order: on [a, b], over it, they are at most that of b over a."""
        ends = 1 + np.geomspace(1e-9, _FARTHEST / eps, 20 * _CELLS)
        low, high = np.concatenate([[1.0], ends[:-1]]), ends
        while True:
            least = (self._divergence(high, eps) / high).max()
            bounds = self._divergence(high, eps) / low
            likely = bounds > least
            if (high / low)[likely].max(initial=1) - 1 < _WIDTH:
                return float(max(bounds.max(), eps * eps / _FARTHEST) * (1 + _MARGIN))
            cuts = np.linspace(low[likely], high[likely], _CELLS // 64 + 1)
            low, high = cuts[:-1].ravel(), cuts[1:].ravel()

    def _divergence(self, order: Floats, eps: float) -> Floats:
        """Return that of each order: the sum of p (p / q)^(order - 1) exceeds 1 by `lifted`."""
        above, whole = order - 1, np.exp(eps) + self.categories - 1
        near = np.minimum(above, _LARGE / eps)
        lifted = (np.expm1(near * eps) * np.exp(eps) + np.expm1(-near * eps)) / whole
        far = order * eps + np.log1p(self.categories * np.exp(-order * eps)) - np.log(whole)
        return np.asarray(np.where(near == above, np.log1p(lifted), far) / above)
