"""Exact coins whose probability is an exponential, and real numbers that are known only as far as needed."""

from fractions import Fraction
from typing import Protocol, final

from smalldb.exact import exp_enclosure
from smalldb.randomness import BitSource

_BITS = 64


class Lazy(Protocol):
    """A real number that can be enclosed more and more narrowly."""

    def enclosure(self, precision: int) -> tuple[Fraction, Fraction]:
        """Return low <= x <= high whose difference falls towards 0 as the precision grows."""


@final
class Uniform:
    """A uniform number of [0, 1), of which more bits are drawn whenever they are asked for."""

    def __init__(self, source: BitSource) -> None:
        self._source, self._bits, self._drawn = source, 0, 0

    def enclosure(self, precision: int) -> tuple[Fraction, Fraction]:
        """Return the interval of the bits drawn, at least `precision` of them."""
        if missing := max(0, precision - self._drawn):
            self._bits = self._bits << missing | self._source.bits(missing)
            self._drawn += missing
        return Fraction(self._bits, 1 << self._drawn), Fraction(self._bits + 1, 1 << self._drawn)


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


def bernoulli_exp(r: Fraction | Lazy, source: BitSource, doublings: int = 0) -> bool:
    """
    Return True with probability 2^doublings exp(-r), exactly.

    A uniform number is compared with it; bits and precision grow until the comparison is certain.

    Parameters
    ----------
    r
        At least doublings ln 2 (the caller's promise, so that the probability is at most 1).
    source
        Where bits come from.
    doublings
        At least 0.
    """
    exponent = Known(r) if isinstance(r, Fraction) else r
    uniform, precision = Uniform(source), _BITS
    while True:
        low, high = exponent.enclosure(precision)
        unit = 1 << precision
        least = exp_enclosure(max(high, Fraction(0)), precision + doublings)[0]
        most = exp_enclosure(max(low, Fraction(0)), precision + doublings)[1]
        below, above = uniform.enclosure(precision)
        if above * unit <= least:
            return True
        if below * unit >= most:
            return False
        precision *= 2


def halved(count: int, times: int, source: BitSource) -> int:
    """Return how many of `count` things survive `times` fair coins each: Binomial(count, 2^-times)."""
    while count and times:
        count, times = source.bits(count).bit_count(), times - 1
    return count
