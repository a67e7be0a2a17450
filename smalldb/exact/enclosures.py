"""
Real numbers enclosed by decimals: arithmetic that rounds outwards, for bounds and ceilings.

A float that is shown is the least one not below the upper end, so never below the true number; a whole
number gets more digits until the enclosure decides it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil, comb, factorial
from typing import TypeAlias

from smalldb.exact.numbers import float_above

_DIGITS = 50


@dataclass(frozen=True, slots=True)
class Real:
    """A real number in [low, high]; what is computed from it is rounded outwards at `digits` digits."""

    # low, high: the ends of the interval; infinite where nothing is known
    low: Decimal
    high: Decimal
    digits: int  # to which results are rounded

    @classmethod
    def of(cls, value: "Operand", digits: int) -> "Real":
        """Enclose a rational number."""
        if isinstance(value, Real):
            return value
        above, below = Decimal(value.numerator), Decimal(value.denominator)
        down, up = contexts(digits)
        return cls(down.divide(above, below), up.divide(above, below), digits)

    def __add__(self, other: "Operand") -> "Real":
        other = Real.of(other, self.digits)
        down, up = contexts(self.digits)
        return Real(down.add(self.low, other.low), up.add(self.high, other.high), self.digits)

    __radd__ = __add__

    def __sub__(self, other: "Operand") -> "Real":
        other = Real.of(other, self.digits)
        down, up = contexts(self.digits)
        return Real(down.subtract(self.low, other.high), up.subtract(self.high, other.low), self.digits)

    def __rsub__(self, other: Fraction | int) -> "Real":
        return Real.of(other, self.digits) - self

    def __mul__(self, other: "Operand") -> "Real":
        return self._corners(Context.multiply, other)

    __rmul__ = __mul__

    def __truediv__(self, other: "Operand") -> "Real":
        other = Real.of(other, self.digits)
        if other.low <= 0 <= other.high:
            return Real(Decimal("-Infinity"), Decimal("Infinity"), self.digits)
        return self._corners(Context.divide, other)

    def pick(self, extreme: Callable[[Decimal, Decimal], Decimal], other: Fraction | int) -> "Real":
        """Return the `min` or `max` of two numbers."""
        bound = Real.of(other, self.digits)
        return Real(extreme(self.low, bound.low), extreme(self.high, bound.high), self.digits)

    def sqrt(self) -> "Real":
        """Return the square root."""
        return self.rising(Context.sqrt)

    def cbrt(self) -> "Real":
        """Return the cube root of a number above 0."""
        return (self.ln() / 3).exp()

    def ln(self) -> "Real":
        """Return the natural logarithm of a number above 0."""
        return self - 1 if self.low == self.high == 1 else self.rising(Context.ln)

    def exp(self) -> "Real":
        """Return the exponential."""
        return self + 1 if self.low == self.high == 0 else self.rising(Context.exp)

    def rising(self, function: Callable[[Context, Decimal], Decimal]) -> "Real":
        """Apply a rising function; decimal rounds it to nearest in any context, hence one step further."""
        down, up = contexts(self.digits)
        low = function(down, self.low)
        high = low if self.low == self.high else function(up, self.high)
        return Real(down.next_minus(low), up.next_plus(high), self.digits)

    def _corners(self, operation: Callable[[Context, Decimal, Decimal], Decimal], other: "Operand") -> "Real":
        other = Real.of(other, self.digits)
        down, up = contexts(self.digits)
        corners = [(a, b) for a in {self.low, self.high} for b in {other.low, other.high}]
        low = min(operation(down, a, b) for a, b in corners)
        high = max(operation(up, a, b) for a, b in corners)
        return Real(low, high, self.digits)


Operand: TypeAlias = Real | Fraction | int


@dataclass(frozen=True, slots=True)
class Log:
    """The natural logarithm, enclosed at `digits` digits."""

    digits: int = _DIGITS

    def __call__(self, x: Fraction | int) -> Real:
        """Enclose ln x."""
        return _ln(x, self.digits)


@lru_cache(maxsize=1024)
def _ln(x: Fraction | int, digits: int) -> Real:
    return Real.of(x, digits).ln()


@cache
def contexts(digits: int) -> tuple[Context, Context]:
    """Return the decimal contexts that round down and up, at so many digits and any exponent."""
    down = Context(prec=digits, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return down, Context(prec=digits, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)


def ln_choose(a: int, b: int, digits: int) -> Real:
    """Enclose ln C(a + b, a)."""
    a, b = sorted((a, b))
    if b > a * a * 10**digits:  # between b^a / a! and (a + b)^a / a!, which differ by less than a^2 / b
        ln = Log(digits)
        low, high = (a * ln(base) - _ln_factorial(a, digits) for base in (b, a + b))
        return Real(low.low, high.high, digits)
    wide = digits + (a + b).bit_length() // 3  # the factorials cancel
    return _ln_factorial(a + b, wide) - _ln_factorial(a, wide) - _ln_factorial(b, wide)


@lru_cache(maxsize=1024)
def _ln_factorial(x: int, digits: int) -> "Real":
    if x <= 2 * digits:
        return Log(digits)(factorial(x))
    known = 2 * digits
    half_ln_2pi = Log(digits)(factorial(known)) - _stirling(known, digits)
    return _stirling(x, digits) + half_ln_2pi


@lru_cache(maxsize=1024)
def _stirling(x: int, digits: int) -> "Real":
    """Enclose ln x! - ln(2 pi) / 2, x >= 2 digits: the error is less than the first term left out."""
    unit, total, term, k, power = 10 ** (digits + 5), 0, 2, 0, x
    while abs(term) > 1:
        k += 1
        weight = _bernoulli(2 * k) / (2 * k * (2 * k - 1))
        term = weight.numerator * unit // (weight.denominator * power)
        total, power = total + term, power * x * x
    # each of the k terms was rounded down, and what is left out is below 2 units
    low, high = (Real.of(Fraction(end, unit), digits) for end in (total - 2, total + k + 2))
    return Log(digits)(x) * Fraction(2 * x + 1, 2) - x + Real(low.low, high.high, digits)


@cache
def _bernoulli(i: int) -> Fraction:
    return Fraction(i == 0) - sum((comb(i, j) * _bernoulli(j) / (i - j + 1) for j in range(i)), Fraction(0))


def ceiling(formula: Callable[["Log"], "Real"]) -> int:
    """Return max(1, ceil(x)), with more digits until the enclosure of x decides it."""
    digits = _DIGITS
    while True:
        x = formula(Log(digits))
        if x.high.is_finite() and max(1, ceil(x.low)) == max(1, ceil(x.high)):
            return max(1, ceil(x.high))
        digits *= 2


def is_positive(formula: Callable[["Log"], "Real"]) -> bool:
    """Return whether x > 0, with more digits until the enclosure of x, which is not 0, decides it."""
    digits = _DIGITS
    while True:
        x = formula(Log(digits))
        if x.low > 0 or x.high < 0:
            return x.low > 0
        digits *= 2


def root(rising: Callable[["Real"], "Real"], low: "Real", high: "Real") -> "Real":
    """Enclose the zero of a rising function between two numbers, by bisection from either side of it."""
    digits = low.digits
    down, up = contexts(digits)

    def at(x: Decimal) -> Real:
        return rising(Real(x, x, digits))

    def side(certain: Callable[["Real"], bool], below: Decimal, above: Decimal) -> tuple[Decimal, Decimal]:
        while True:
            middle = down.add(below, down.divide(down.subtract(above, below), Decimal(2)))
            if middle in (below, above):
                return below, above
            if certain(at(middle)):
                below = middle
            else:
                above = middle

    below, above = side(lambda value: value.high < 0, low.low, high.high)
    step = up.subtract(above, below)
    while above < high.high and at(above).low <= 0:  # where the other side ends is near
        step = up.add(step, step)
        above = min(high.high, up.add(below, step))
    return Real(below, side(lambda value: value.low <= 0, below, above)[1], digits)


def round_up(x: "Real") -> float:
    """Return the least float that is not below the upper end; infinity beyond the largest."""
    return float_above(x.high)


def round_up_text(x: "Real") -> float:
    """Return the least float that is not below the upper end, and whose shortest text is not either."""
    return max(float_above(x.high), float_above(x.high, repr))
