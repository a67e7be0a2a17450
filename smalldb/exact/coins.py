"""Exact coins whose probability is an exponential, and real numbers that are known only as far as needed."""

from fractions import Fraction
from typing import Protocol, final

from smalldb.exact.bits import BitSource
from smalldb.exact.levels import exp_enclosure

_BITS = 64


class Lazy(Protocol):
    """A real number that can be enclosed more and more narrowly."""

    def enclosure(self, precision: int) -> tuple[Fraction, Fraction]:
        """Return low <= x <= high whose difference falls towards 0 as the precision grows."""


@final
class Uniform:
    """A uniform number of (0, 1), of which more bits are drawn whenever they are asked for."""

    # so far it is known to lie in [value, value + 1] 2^-drawn

    __slots__ = ("_source", "drawn", "value")

    def __init__(self, source: BitSource, drawn: int = 0) -> None:
        self._source, self.drawn, self.value = source, drawn, source.bits(drawn) if drawn else 0

    def reveal(self, bits: int) -> None:
        """Draw bits until at least so many are known."""
        if missing := max(0, bits - self.drawn):
            self.value = self.value << missing | self._source.bits(missing)
            self.drawn += missing

    # Proof: docs/proofs/draw.md, lemma 2.
    def enclosure(self, precision: int) -> tuple[Fraction, Fraction]:
        """Return the interval of the bits drawn, at least `precision` of them."""
        self.reveal(precision)
        return Fraction(self.value, 1 << self.drawn), Fraction(self.value + 1, 1 << self.drawn)


@final
class Shifted:
    """The real number start + factor x."""

    def __init__(self, start: Fraction, factor: Fraction, x: Lazy) -> None:
        self._start, self._factor, self._x = start, factor, x

    def enclosure(self, precision: int) -> tuple[Fraction, Fraction]:
        """Enclose it by the enclosure of x."""
        ends = sorted(self._start + self._factor * end for end in self._x.enclosure(precision))
        return ends[0], ends[1]


@final
class Known:
    """A rational number."""

    def __init__(self, value: Fraction) -> None:
        self._value = value

    def enclosure(self, precision: int) -> tuple[Fraction, Fraction]:
        """Return it twice."""
        return self._value, self._value


# Proof: docs/proofs/draw.md, lemmas 2 and 9.
def bernoulli_exp(r: Fraction | Lazy, source: BitSource, factor: Fraction = Fraction(1)) -> bool:
    """Return True with probability factor exp(-r), exactly."""
    # A uniform number is compared with it; bits and precision grow until the comparison is certain
    # (`docs/proofs/draw.md`, lemma 2)
    if isinstance(r, Fraction) and r < 0:
        raise ValueError("the exponent of a coin must be at least 0")
    exponent = Known(r) if isinstance(r, Fraction) else r
    uniform, precision = Uniform(source), _BITS
    more = max(0, factor.numerator.bit_length() - factor.denominator.bit_length())
    while True:
        low, high = exponent.enclosure(precision)
        if high < 0:
            raise ArithmeticError("the exponent of a coin is below 0: this must not happen")
        unit = factor / (1 << precision + more)
        least = exp_enclosure(max(high, Fraction(0)), precision + more)[0] * unit
        most = exp_enclosure(max(low, Fraction(0)), precision + more)[1] * unit
        if least > 1:
            raise ArithmeticError("the probability of a coin is above 1: this must not happen")
        below, above = uniform.enclosure(precision)
        # Four bits: U from 4/16 to 5/16 = 0.3125 is surely below e^-1 = 0.3679. From 5/16 to 6/16 = 0.375
        # it may lie on either side, so more bits are drawn.
        if above <= least:
            return True
        if below >= most:
            return False
        precision *= 2


def halved(count: int, times: int, source: BitSource) -> int:
    """Return how many of `count` things survive `times` fair coins each: Binomial(count, 2^-times)."""
    # the ones among the bits of one number are the heads: about 500, 250 and 125 of 1000 are left in turn
    while count and times:
        count, times = source.bits(count).bit_count(), times - 1
    return count
