"""The exact law of the error: what a census says about the mechanism, for any epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from itertools import accumulate
from operator import itemgetter, mul

import numpy as np

from queries.arrays import Floats, Integers
from queries.late import pd
from smalldb.exact.levels import exp_enclosure
from smalldb.exact.numbers import Number, as_fraction

_FIRST_PRECISION = 192
_DIGITS = Context(prec=60)
_LARGE = 1 << 1000  # a float still holds it; only a first, rough enclosure passes it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Law:
    """The distribution of the error of a release; confidential, because it is computed from the data.

    Level s has probability ``N_s exp(-rate s) / sum_t N_t exp(-rate t)``. Every float is the nearest one
    to the true number: integer enclosures are refined until they leave no doubt.

    Attributes
    ----------
    levels
        Ascending int64: the scores that occur.
    counts
        How many candidates stand at each; Python ints.
    rate
        epsilon / (2 m D), exact.
    unit
        n m D: the error of a level is ``level / unit``.
    """

    levels: Integers
    counts: tuple[int, ...]
    rate: Fraction
    unit: int
    _enclosed: dict[int, tuple[list[int], list[int], int, int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Law of the error over {sum(self.counts)} candidates: confidential>"

    @property
    def errors(self) -> Floats:
        """The error of each level, max_f |f(x) - f(y)|: float64, ascending."""
        return np.array([float(Fraction(int(s), self.unit)) for s in self.levels])

    @property
    def probabilities(self) -> Floats:
        """The probability of each level: float64."""
        return np.array([self._nearest(itemgetter(i)) for i in range(len(self.levels))])

    @property
    def log_normaliser(self) -> float:
        """The natural logarithm of ``sum_s N_s exp(-rate s)``, to the nearest float but one."""
        total_low = self._weights(_FIRST_PRECISION)[2]
        total = Decimal(total_low).ln(_DIGITS) - _FIRST_PRECISION * Decimal(2).ln(_DIGITS)
        shift = self.rate * int(self.levels[0])
        return float(_DIGITS.subtract(total, _DIGITS.divide(Decimal(shift.numerator), shift.denominator)))

    def enclosures(self, precision: int = _FIRST_PRECISION) -> list[tuple[Fraction, Fraction]]:
        """Return fractions below and above the probability of each level, some 2^-precision apart."""
        low, high, total_low, total_high = self._weights(precision)
        return [
            (Fraction(lo, total_high - hi + lo), Fraction(hi, total_low - lo + hi))
            for lo, hi in zip(low, high, strict=True)
        ]

    def mean(self) -> float:
        """Return the expected error."""
        return self._nearest(
            lambda w: sum(int(s) * v for s, v in zip(self.levels, w, strict=True)), self.unit
        )

    def variance(self) -> float:
        """Return the variance of the error."""
        if len(self.levels) == 1:
            return 0.0
        gaps = [int(s - self.levels[0]) for s in self.levels]
        squares, precision = [gap * gap for gap in gaps], _FIRST_PRECISION

        def mean(of: list[int], weights: list[int], total: int) -> Fraction:
            return Fraction(sum(map(mul, of, weights)), total * self.unit)

        while True:
            low, high, total_low, total_high = self._weights(precision)
            least = mean(squares, low, total_high) / self.unit - mean(gaps, high, total_low) ** 2
            most = mean(squares, high, total_low) / self.unit - mean(gaps, low, total_high) ** 2
            if least >= 0 and float(least) == float(min(most, Fraction(_LARGE))):
                return float(least)
            precision *= 2

    def exceedance(self, error: Number) -> float:
        """Return P(err > error): strictly above, the comparison exact.

        Parameters
        ----------
        error
            An exact number: int, Fraction, Decimal, text such as "1/3", or a float through its shortest
            decimal text.
        """
        above = as_fraction(error, "error") * self.unit
        start = next((i for i, s in enumerate(self.levels) if int(s) > above), len(self.levels))
        return self._nearest(lambda w: sum(w[start:]))

    def quantile(self, probability: Number) -> float:
        """Return the least error e with P(err <= e) >= probability, which lies in (0, 1]."""
        wanted = as_fraction(probability, "probability")
        if not 0 < wanted <= 1:
            raise ValueError("probability must lie in (0, 1]")
        return float(Fraction(int(self.levels[self._position(wanted)]), self.unit))

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each level, confidential as the law is.

        Columns: level; error; candidates (Python ints); probability; cdf, which is P(err <= error).
        """
        columns = {
            "level": self.levels,
            "error": self.errors,
            "candidates": np.array(self.counts, dtype=object),
            "probability": self.probabilities,
            "cdf": self._distribution(),
        }
        return pd.DataFrame(columns)

    def _distribution(self) -> Floats:
        """Return the probability of each level and all below it: float64, the nearest."""
        low, high, total_low, total_high = self._weights(_FIRST_PRECISION)
        found = []
        for end, (least, most) in enumerate(zip(accumulate(low), accumulate(high), strict=True), 1):
            ends = least / total_high, most / total_low  # quotients of integers are rounded to nearest
            doubt = ends[0] != ends[1]
            found.append(self._nearest(partial(_sum_to, end)) if doubt else ends[0])
        return np.array(found)

    def _position(self, wanted: Fraction) -> int:
        """Return the first position at which the distribution function is at least `wanted`."""
        # below the last level the function is irrational, so some precision decides; but none is
        # needed where all of the probability is wanted
        last, precision = len(self.levels) - 1, _FIRST_PRECISION
        if wanted == 1:
            return last
        while True:
            low, high, _, _ = self._weights(precision)
            below = list(accumulate(low))
            above = list(accumulate(high))
            sure = next(
                (i for i in range(last) if below[i] >= wanted * (below[i] + above[-1] - above[i])), last
            )
            may = next(
                (i for i in range(last) if above[i] >= wanted * (above[i] + below[-1] - below[i])), last
            )
            if sure == may:
                return sure
            precision *= 2

    def _weights(self, precision: int) -> tuple[list[int], list[int], int, int]:
        """Enclose ``N_s exp(-rate (s - least level))`` in units of 2^-precision; and their sums."""
        if precision not in self._enclosed:
            pairs = [self._enclosure(int(s - self.levels[0]), precision) for s in self.levels]
            low = [count * lo for count, (lo, _) in zip(self.counts, pairs, strict=True)]
            high = [count * hi for count, (_, hi) in zip(self.counts, pairs, strict=True)]
            self._enclosed[precision] = low, high, sum(low), sum(high)
        return self._enclosed[precision]

    def _enclosure(self, gap: int, precision: int) -> tuple[int, int]:
        if self.rate * gap > precision:  # then exp(-rate gap) < 2^-precision
            return 0, 1
        return exp_enclosure(self.rate * gap, precision)

    def _nearest(self, part: Callable[[list[int]], int], unit: int = 1) -> float:
        """Return the float nearest to ``part(weights) / sum(weights) / unit``."""
        precision = _FIRST_PRECISION
        while True:
            low, high, total_low, total_high = self._weights(precision)
            least = float(Fraction(part(low), unit * total_high))
            most = float(min(Fraction(part(high), unit * total_low), Fraction(_LARGE)))
            if least == most:
                return least
            precision *= 2


def _sum_to(end: int, weights: list[int]) -> int:
    return sum(weights[:end])
