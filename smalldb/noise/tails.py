"""What the noise of a release does not exceed: quantiles, exact or rounded up."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, exp, lgamma, log, sqrt
from typing import final

import numpy as np

from smalldb.exact.enclosures import Log, Real, round_up
from smalldb.exact.integers import CLIP
from smalldb.exact.levels import LogConcave, draw_level

SLACK = 1 + 1e-9  # more than what rounding takes from a few floats
_DIGITS = 50
_GRID = 1024  # rates that Chernoff's bound is tried with


# Proof: docs/proofs/answers.md, lemma 4.
def level_quantile(count: Callable[[int], int], rate: Fraction, failure: Fraction, *, power: int = 1) -> int:
    """Return an r that a level of a log-concave family exceeds with probability < failure."""
    # `draw_level` inverts the distribution function at the number whose bits it reads. Where the rate is
    # at most 1/32 levels are taken in blocks, which errs upwards.
    width = max(1, (1 / (16 * rate)).__floor__())
    blocks = LogConcave(lambda block: count(block * width), power=power)
    return (draw_level(blocks, rate * width, _Digits(1 - failure)) + 1) * width - 1


# Proof: docs/proofs/answers.md, lemma 3.
@lru_cache(maxsize=256)
def noise_quantile(rate: Fraction, weight: int, failure: Fraction) -> float:
    """Return what a sum of geometric noise exceeds that rarely, weights up to 1 and `weight` in all."""
    # Chernoff's bound, 2 exp(weight g(s) - s t) with g(s) = ln E exp(s X), at the best s of a grid
    odds = Log(_DIGITS)(2 / failure)
    grid = np.arange(1, _GRID) / _GRID
    x = float(rate) * np.array([0 * grid, grid, -grid])
    growth = np.array([2, -1, -1]) @ np.log1p(-np.exp(x - float(rate)))
    s = rate * Fraction(int(np.argmin((weight * growth + float(odds.high)) / grid)) + 1, _GRID)
    decay, rise, fall = (Real.of(r, _DIGITS).exp() for r in (-rate, s - rate, -s - rate))
    g = 2 * (1 - decay).ln() - (1 - rise).ln() - (1 - fall).ln()
    return round_up((weight * g + odds) / s)


# Proof: docs/proofs/wishart.md, lemma 9.
@lru_cache(maxsize=256)
def laplace_sum_quantile(count: int, factor: Fraction, failure: Fraction) -> int:
    """Return an r that |factor times the sum of `count` Laplace numbers|, rounded, exceeds that rarely."""
    limit = Real.of(failure / 2, _DIGITS).low

    return _least(lambda r: laplace_sum_tail(count, Fraction(2 * r + 1, 2) / factor).high <= limit)


def _least(rare: Callable[[int], bool]) -> int:
    """Return the least whole number from 0 on that is exceeded rarely; noise is cut off at `CLIP`."""
    reach = 1
    while reach < CLIP and not rare(reach):
        reach *= 2
    return bisect_left(range(reach), True, key=rare)


# Proof: docs/proofs/wishart.md, lemma 8; docs/proofs/pairs.md, lemma 8.
def moment_quantile(moments: Mapping[int, Fraction], failure: Fraction) -> int:
    """Return an r that a rounded |V| exceeds with probability at most `failure`, by some E V^2m."""

    def least(m: int) -> int:
        return _least(lambda r: moments[m] <= failure * Fraction(2 * r + 1, 2) ** (2 * m))

    return min(map(least, moments))


# Proof: docs/proofs/noise.md, lemma 3.
def log_concave_quantile(variance: float, failure: Fraction) -> float:
    """Return what |X| exceeds with probability at most `failure`, X symmetric with a log-concave density."""
    odds = log_odds(failure)
    orders = range(2, 2 * ceil(odds) + 5, 2)
    return sqrt(variance / 2) * exp(min((lgamma(o + 1) + odds) / o for o in orders)) * SLACK


def log_odds(failure: Fraction) -> float:
    """Return ln(1 / failure), of any size."""
    return log(failure.denominator) - log(failure.numerator)


# Proof: docs/proofs/delta.md, lemma 7.
@lru_cache(maxsize=256)
def gaussian_quantile(variance: Fraction, failure: Fraction) -> int:
    """Return an r that a discrete Gaussian number of that sigma^2 exceeds that rarely, either way."""
    # by the better of two bounds: X is subgaussian, and no likelier beyond r than a normal number
    odds = Log(_DIGITS)(2 / failure)

    def rare(r: int) -> bool:
        squares = [Fraction(end * end) / (2 * variance) for end in (r + 1, r)]
        bounds = [squares[0] - odds]
        if r:  # sqrt(2 pi) > 5/2
            bounds.append(squares[1] + Log(_DIGITS)(squares[1] * Fraction(25, 2)) / 2 - odds)
        return max(bound.low for bound in bounds) >= 0

    return _least(rare)


# Proof: docs/proofs/wishart.md, lemma 9.
def laplace_sum_tail(count: int, x: Fraction) -> Real:
    """Enclose P(X >= x), x >= 0, where X is the sum of `count` standard Laplace numbers."""
    # X is the time of the last of `count` arrivals of a Poisson process, less that of another one. If j of
    # the first fall before x, the other's must all come before its last count - j: tosses of a fair coin.
    arrivals = Real.of(1, _DIGITS)
    total = Real.of(0, _DIGITS)
    for j in range(count):
        tosses = 2 * count - 1 - j
        heads = sum(comb(tosses, k) for k in range(count, tosses + 1))
        total = total + arrivals * Fraction(heads, 1 << tosses)
        arrivals = arrivals * (x / (j + 1))
    return total * Real.of(-x, _DIGITS).exp()


@final
class _Digits:
    """The binary digits of a number in [0, 1), in place of random bits."""

    private = False

    def __init__(self, number: Fraction) -> None:
        self._rest = number

    def bits(self, count: int) -> int:
        """Return the next digits."""
        scaled = self._rest * (1 << count)
        whole = scaled.__floor__()
        self._rest = scaled - whole
        return whole
