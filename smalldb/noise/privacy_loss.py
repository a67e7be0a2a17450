"""What a step of a release loses: its epsilon, its rho, and the law of its loss where that is known."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context
from fractions import Fraction
from operator import add, le
from typing import Any, ClassVar, NamedTuple

import numpy as np

from queries.arrays import Floats
from smalldb.exact.enclosures import Real
from smalldb.exact.numbers import float_above, plain, positive, whole

_DIGITS = 50
_SHOWN = Context(prec=12, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
_LEAST = Fraction(1, 10**1000)  # a rho; of less, Python writes no text
_SMALL, _LARGE = Fraction(1, 10**9), Fraction(500)  # between them the exact forms are enclosed
_CELLS = 256  # of the orders, when the best of them are cut anew
_MARGIN = 1e-9  # relative: more than what rounding adds up to
_TINY = Fraction(1, 10**6)  # an epsilon
_FARTHEST = 1e6  # an order times epsilon: beyond, no divergence is above epsilon
_MOST_EXPONENT = 300.0  # of a loss times an order above 1, whose exponential is a float
_WIDTH = 1e-9  # relative, of the orders where the search ends


@dataclass(frozen=True, slots=True)
class LossLaw(ABC):
    """A pair of distributions that no pair of neighbours is easier to tell apart than."""

    # so composition with any other steps, chosen adaptively, loses no more than with this pair in its place
    # (Zhu, Dong and Wang 2022, Theorem 10)

    law: ClassVar[str]  # what records call it, and its fields
    keys: ClassVar[tuple[str, ...]] = ("epsilon",)

    @property
    @abstractmethod
    def epsilon(self) -> Fraction:
        """The largest loss."""

    @property
    @abstractmethod
    def rho(self) -> Fraction:
        """The least rho of its zero-concentrated privacy, rounded up to 12 digits."""

    @abstractmethod
    def of_group(self, rows: int) -> "LossLaw":
        """Return a law for tables that differ in so many rows."""


@dataclass(frozen=True, slots=True)
class LawOfOne(LossLaw):
    """A law that one number tells: the largest loss, which is so many times as large for so many rows."""

    parameter: Fraction

    @property
    def epsilon(self) -> Fraction:
        """The parameter."""
        return self.parameter

    def of_group(self, rows: int) -> LossLaw:
        """Return that of so many times the parameter."""
        return replace(self, parameter=self.parameter * rows)


@dataclass(frozen=True, slots=True)
class RandomisedResponse(LawOfOne):
    """What loses most of all that is epsilon-DP: epsilon and -epsilon (Kairouz, Oh, Viswanath 2015)."""

    law: ClassVar[str] = "randomised response"

    # Proof: docs/proofs/losses.md, lemma 2.
    @property
    def rho(self) -> Fraction:
        """Return epsilon tanh(epsilon / 2)."""
        x = self.parameter
        if not _SMALL <= x <= _LARGE:
            return min(_written_up(x * x / 2), x)
        return rounded_up(x * (1 - _real(2) / (_real(x).exp() + 1)))


@dataclass(frozen=True, slots=True)
class BoundedRange(LawOfOne):
    """A draw of the exponential mechanism: log ratios span at most epsilon (Dong, Durfee and Rogers 2020)."""

    law: ClassVar[str] = "bounded range"

    # Proof: docs/proofs/losses.md, lemma 6.
    @property
    def rho(self) -> Fraction:
        """Return r - 1 - ln r for r = epsilon / (e^epsilon - 1); epsilon^2 / 8 is hardly more where small."""
        x = self.parameter
        if x < Fraction(1, 100) or x > _LARGE:
            return min(_written_up(x * x / 8), x)
        ratio = _real(x) / (_real(x).exp() - 1)
        return min(rounded_up(ratio - 1 - ratio.ln()), rounded_up(x * x / 8))


@dataclass(frozen=True, slots=True)
class LaplaceNoise(LawOfOne):
    """Laplace noise of scale 1 / epsilon on a number that moves by 1; permute-and-flip loses no more."""

    law: ClassVar[str] = "Laplace noise"

    # Proof: docs/proofs/losses.md, lemma 4.
    @property
    def rho(self) -> Fraction:
        """Return epsilon + e^-epsilon - 1."""
        x = self.parameter
        if not _SMALL <= x <= _LARGE:
            return min(_written_up(x * x / 2), x)
        return rounded_up(x - 1 + _real(-x).exp())


@dataclass(frozen=True, slots=True)
class GeometricNoise(LossLaw):
    """Two-sided geometric noise, the discrete Laplace law, on a whole number that moves."""

    law: ClassVar[str] = "geometric noise"
    keys: ClassVar[tuple[str, ...]] = ("rate", "moved")

    rate: Fraction  # a value that is off by one more is e^rate times less probable
    moved: int  # by how much, at most; an integer

    @property
    def epsilon(self) -> Fraction:
        """The rate, for each unit of the move."""
        return self.rate * self.moved

    # Proof: docs/proofs/losses.md, lemma 3.
    @property
    def rho(self) -> Fraction:
        """Return rate (moved - (1 - e^-epsilon) / sinh(rate))."""
        x = self.epsilon
        if not _SMALL <= self.rate <= x <= _LARGE:
            return min(_written_up(x * x / 2), x)
        up, down = _real(self.rate).exp(), _real(-self.rate).exp()
        return rounded_up(self.rate * (self.moved - 2 * (1 - _real(-x).exp()) / (up - down)))

    def of_group(self, rows: int) -> "GeometricNoise":
        """Return that of so many times the move."""
        return GeometricNoise(self.rate, self.moved * rows)


LAWS: tuple[type[LossLaw], ...] = (RandomisedResponse, BoundedRange, LaplaceNoise, GeometricNoise)


class Amount(NamedTuple):
    """An amount of privacy: an epsilon for pure answers, a rho for the others; and the delta of a failure."""

    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def plus(self, other: "Amount") -> "Amount":
        """Return both together."""
        return Amount(*map(add, self, other))

    def within(self, other: "Amount") -> bool:
        """Tell whether it is no more, of anything."""
        return all(map(le, self, other))


class Loss(NamedTuple):
    """What a step or a release loses; steps that may be chosen adaptively add up.

    Parameters
    ----------
    epsilon
        Of pure differential privacy, exact; None: there is none.
    rho
        Of zero-concentrated differential privacy, exact; None: none is known.
    laws
        Of steps that were fixed in advance, and how many there are of each: all of them together lose no less
        than it does. None: they are not known, or follow from what is released.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    laws: tuple[tuple[LossLaw, int], ...] | None = None

    @classmethod
    def of(cls, laws: Mapping[LossLaw, int]) -> "Loss":
        """Return the loss of so many steps of each law."""
        steps = tuple(sorted(((law, times) for law, times in laws.items() if times), key=repr))
        return cls(
            sum((law.epsilon * times for law, times in steps), Fraction(0)),
            sum((law.rho * times for law, times in steps), Fraction(0)),
            steps,
        )

    @classmethod
    def none(cls) -> "Loss":
        """Return the loss of nothing."""
        return cls.of({})

    @classmethod
    def pure(cls, epsilon: Fraction) -> "Loss":
        """Return the loss of what is known to be epsilon-DP."""
        return cls.of({RandomisedResponse(epsilon): 1})

    @classmethod
    def ranged(cls, epsilon: Fraction) -> "Loss":
        """Return the loss of what is epsilon-bounded-range."""
        return cls.of({BoundedRange(epsilon): 1})

    @classmethod
    def laplace(cls, epsilon: Fraction) -> "Loss":
        """Return the loss of Laplace noise, or of permute-and-flip."""
        return cls.of({LaplaceNoise(epsilon): 1})

    @classmethod
    def geometric(cls, rate: Fraction, moved: int, numbers: int = 1) -> "Loss":
        """Return the loss of geometric noise on so many numbers, each of which moves by that much at most."""
        law = RandomisedResponse(rate) if moved == 1 else GeometricNoise(rate, moved)
        return cls.of({law: numbers})

    @classmethod
    def concentrated(cls, rho: Fraction) -> "Loss":
        """Return the loss of what is rho-zCDP."""
        return cls(None, rho)

    def together(self, other: "Loss") -> "Loss":
        """Return the loss of both; `other` may be chosen after this one was seen."""
        epsilon = None if self.epsilon is None or other.epsilon is None else self.epsilon + other.epsilon
        rho = None if self.rho is None or other.rho is None else self.rho + other.rho
        if self.laws is None or other.laws is None:
            return Loss(epsilon, rho)
        return Loss.of(Counter(dict(self.laws)) + Counter(dict(other.laws)))

    def either(self, other: "Loss") -> "Loss":
        """Return the loss where one of both is taken, and what was released before may decide which."""
        epsilon = None if self.epsilon is None or other.epsilon is None else max(self.epsilon, other.epsilon)
        rho = None if self.rho is None or other.rho is None else max(self.rho, other.rho)
        return Loss(epsilon, rho)

    # Proof: docs/proofs/losses.md, lemma 7.
    def of_group(self, rows: int) -> "Loss":
        """Return the loss between tables that differ in so many rows."""
        if rows == 1:
            return self
        match self.laws:
            case ((law, 1),):
                return Loss.of({law.of_group(rows): 1})
        return Loss(
            None if self.epsilon is None else rows * self.epsilon,
            None if self.rho is None else rows * rows * self.rho,
        )

    @property
    def least_rho(self) -> Fraction | None:
        """The rho that is stated, or that of epsilon, whichever is less; None: there is neither."""
        if self.epsilon is None:
            return self.rho
        pure = RandomisedResponse(self.epsilon).rho if self.epsilon else Fraction(0)
        return pure if self.rho is None else min(pure, self.rho)

    @property
    def amount(self) -> Amount:
        """What it is counted as: its epsilon, or its rho where there is none."""
        return Amount(rho=self.rho or Fraction(0)) if self.epsilon is None else Amount(self.epsilon)

    @property
    def bounded_range(self) -> Fraction | None:
        """Its parameter, if it is one step of bounded range."""
        match self.laws:
            case ((BoundedRange(parameter), 1),):
                return parameter
        return None

    def laws_as_json(self) -> list[dict[str, Any]] | None:
        """Return the laws as a record holds them."""
        if self.laws is None:
            return None
        return [
            {"law": law.law, **dict(zip(law.keys, map(plain, astuple(law)), strict=True)), "times": times}
            for law, times in self.laws
        ]


def read_laws(entries: Any) -> dict[LossLaw, int]:
    """Return laws as `Loss.laws_as_json` wrote them."""
    laws = Counter[LossLaw]()
    try:
        for entry in map(dict, entries):
            kind = next((kind for kind in LAWS if kind.law == entry.get("law")), None)
            if kind is None:
                raise ValueError(f"laws: no law is called {entry.get('law')!r}")
            times = whole(entry["times"], "times")
            keys = zip(fields(kind), kind.keys, strict=True)
            laws[kind(*((whole if of.type is int else positive)(entry[key], key) for of, key in keys))] += (
                times
            )
    except (KeyError, AttributeError) as error:
        raise ValueError("laws: each needs its law, its parameters and times") from error
    return dict(laws)


def _real(x: Fraction | int) -> Real:
    return Real.of(x, _DIGITS)


def _written_up(rho: Fraction) -> Fraction:
    """Return a number of 12 digits that is not below, and that a text can hold."""
    return max(rounded_up(rho), _LEAST)


def rounded_up(x: Real | Fraction) -> Fraction:
    """Return the least number of 12 digits that is not below an enclosed or an exact one."""
    return Fraction(_SHOWN.plus(Real.of(x, _DIGITS).high))


@dataclass(frozen=True, slots=True)
class KaryResponse(LawOfOne):
    """The truth e^epsilon times as likely as each other of k categories; epsilon is the parameter."""

    law: ClassVar[str] = "k-ary randomised response"

    categories: int  # k, from 2

    # Proof: docs/proofs/losses.md, lemma 5.
    @property
    def rho(self) -> Fraction:
        """Return the largest Renyi divergence over its order, rounded up; above the least by 1e-8 at most.

        Where k - 2 <= 4 e^(epsilon / 2), so always up to k = 6, it is that of order 1:
        epsilon (e^epsilon - 1) / (e^epsilon + k - 1) (Harrison and Manurangsi 2025). Else it is searched.
        Below 1e-6 and above 300 it is that of two categories, which is no less.
        """
        x, others = self.parameter, self.categories - 2
        if x > _MOST_EXPONENT:
            return RandomisedResponse(x).rho
        grown = Real.of(x, _DIGITS).exp()
        if others <= 4 * Real.of(x / 2, _DIGITS).exp().low:
            return rounded_up(x * (grown - 1) / (grown + (others + 1)))
        if x < _TINY:  # floats would lose too many digits
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
        near = np.minimum(above, _MOST_EXPONENT / eps)
        lifted = (np.expm1(near * eps) * np.exp(eps) + np.expm1(-near * eps)) / whole
        far = order * eps + np.log1p(self.categories * np.exp(-order * eps)) - np.log(whole)
        return np.asarray(np.where(near == above, np.log1p(lifted), far) / above)
