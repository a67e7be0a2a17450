"""How far apart the laws of a step's outcome are on two neighbours: exact losses, for `replay`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import chain
from math import exp, log, log1p
from typing import ClassVar

import numpy as np

DIGITS = Context(prec=60)
SLACK = Fraction(1, 10**40)  # more than what rounding takes from the logarithm of a sum of exponentials


class Loss(AssertionError):
    """A step, or all of them together, loses more than it states."""


@dataclass(frozen=True)
class Change:
    """
    The rows in which two neighbours differ: +1 for those that only the second has, -1 for the first's.

    And the sizes of the columns, if some are no yes/no columns.
    """

    signs: tuple[int, ...]
    codes: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...] | None = None


class Law:
    """A law of what is released, given private values."""

    concentrated: ClassVar[bool] = False  # whether what it loses is stated as a rho; else as an epsilon

    def worst(self, one: Sequence[int], other: Sequence[int], change: Change) -> Fraction:
        """Return the largest log ratio of the probabilities of an outcome, or the rho of these two laws."""
        raise NotImplementedError

    def proved(self, one: Sequence[int], other: Sequence[int], change: Change) -> Fraction:
        """Return at least that: what the proof of the step says of values that moved so far."""
        return self.worst(one, other, change)


@dataclass(frozen=True)
class Geometric(Law):
    """Probability proportional to exp(-rate sum |z - x|)."""

    rate: Fraction

    def worst(self, one, other, change):
        return self.rate * sum(abs(a - b) for a, b in zip(one, other, strict=True))


@dataclass(frozen=True)
class KNorm(Law):
    """Probability proportional to exp(-rate |z - x|): the hull of what rows do to all columns is the ball."""

    sizes: tuple[int, ...]
    rate: Fraction
    replaced: bool

    def norm(self, moved):
        """The least number of rows, of any shares, whose counts make up the numbers."""
        ends = np.cumsum(self.sizes)[:-1]
        columns = np.split(np.array(moved, dtype=object), ends)
        sums = {sum(column) for column in columns}
        if len(sums) > 1 or (self.replaced and sums != {0}):
            raise Loss("counts of K-norm noise do not move as rows do")
        return max(Fraction(sum(map(abs, column)), 2 if self.replaced else 1) for column in columns)

    def worst(self, one, other, change):
        return self.rate * self.norm([a - b for a, b in zip(one, other, strict=True)])


@dataclass(frozen=True)
class Gaussian(Law):
    """Probability proportional to exp(-sum (z - x)^2 / (2 variance)): a cost is a rho."""

    variance: Fraction
    concentrated: ClassVar[bool] = True

    def worst(self, one, other, change):
        return sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / (2 * self.variance)


@dataclass(frozen=True)
class Proved(Law):
    """A law of which it is proved what one row of a given shape loses; `one` and `other` are its counts."""

    rate: Fraction

    def row(self, codes, sizes):
        """Return what a row adds to the counts."""
        raise NotImplementedError

    def worst(self, one, other, change):
        """Each row that is added or removed, times what its counts are multiplied by, loses the rate."""
        moved = np.array(other, dtype=object) - np.array(one, dtype=object)
        if not moved.any():
            return Fraction(0)
        rows = sum(
            s * np.array(self.row(p, change.sizes), dtype=object)
            for s, p in zip(change.signs, change.codes, strict=True)
        )
        for factor in (Fraction(1), Fraction(-1, 2)):  # signs of rows, or half of them: how many are odd
            if (moved == factor * rows).all():
                return self.rate * abs(factor) * len(change.signs)
        raise Loss(f"counts of {type(self).__name__} noise do not move as one row does")


@dataclass(frozen=True)
class Wishart(Proved):
    """
    The entries of a matrix to which a row adds u u^T, u = (1, signs): docs/proofs/wishart.md.

    A column has a sign for each category but the first, which is -1 where a row has it.
    """

    pairs: tuple[tuple[int, int], ...]

    def row(self, codes, sizes):
        columns = zip(codes, sizes or (2,) * len(codes), strict=True)
        signs = [1, *(1 - 2 * (code == category) for code, size in columns for category in range(1, size))]
        return [signs[a] * signs[b] for a, b in self.pairs]


@dataclass(frozen=True)
class Cone(Proved):
    """The tables of one and two columns, to which a row adds 1 in a cell each: docs/proofs/pairs.md."""

    sizes: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    groups: tuple[tuple[int, ...], ...] = ()  # by column, of each category; none: categories by themselves

    def row(self, codes, sizes):
        if self.groups:
            codes = [own[code] for own, code in zip(self.groups, codes, strict=True)]
        marks = [
            [int(at == code) for at in range(size)] for size, code in zip(self.sizes, codes, strict=True)
        ]
        pairs = ([a * b for a in marks[c] for b in marks[d]] for c, d in self.pairs)
        return list(chain(*marks, *pairs))


@dataclass(frozen=True)
class Exponential(Law):
    """Candidate i is drawn with probability proportional to exp(rate score_i): `one`, `other` are scores."""

    rate: Fraction
    concentrated: bool

    def worst(self, one, other, change):
        moves = self._moves(one, other)
        if self.concentrated:  # no candidate's loss is farther from another's than the range: range^2 / 8
            return (self.rate * (max(moves, default=0) - min(moves, default=0))) ** 2 / 8
        shift = self._log_sum(other) - self._log_sum(one)
        return max((abs(self.rate * move + shift) for move in moves), default=Fraction(0))

    def proved(self, one, other, change):
        """Return what the largest move of a score allows, whatever the other candidates are."""
        furthest = 2 * self.rate * max(map(abs, self._moves(one, other)), default=0)
        return furthest**2 / 8 if self.concentrated else furthest

    def _moves(self, one, other):
        return [a - b for a, b in zip(one, other, strict=True)]

    def _log_sum(self, scores):
        """The logarithm of the sum of weights, to within a part of `SLACK`."""
        best = max(scores)
        total = Decimal(0)
        for score, times in Counter(scores).items():
            exponent = self.rate * (score - best)
            if exponent > -(10**4):
                rounded = DIGITS.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
                total = DIGITS.add(total, DIGITS.multiply(times, DIGITS.exp(rounded)))
        return self.rate * best + Fraction(DIGITS.ln(total))


def holds(pure: Fraction, rho: Fraction, epsilon: Fraction, delta: Fraction | None) -> bool:
    """
    Tell whether a pure loss and a rho together are (epsilon, delta)-private.

    By Canonne, Kamath and Steinke 2020, Proposition 12, at orders that are 1/64 apart in their logarithm: the
    best of them is off by less than a thousandth in the logarithm of delta.
    """
    if not rho or delta is None:
        return not rho and pure <= epsilon
    left = float(epsilon - pure)
    if left <= 0:
        return False

    def log_delta(gap):  # of an order 1 + gap
        return gap * ((1 + gap) * float(rho) - left) + gap * (log(gap) - log1p(gap)) - log1p(gap)

    return min(log_delta(exp(step / 64)) for step in range(-20 * 64, 20 * 64)) <= log(delta) + 1e-3
