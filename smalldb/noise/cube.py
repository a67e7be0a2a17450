"""Cube noise: exact noise of integers that is as likely as its largest entry is small."""

from fractions import Fraction

from queries.domain import Integers
from smalldb.exact import integers
from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.exact.integers import clipped, uniform_below, uniform_integers
from smalldb.exact.levels import LogConcave, draw_level


def radii(count: int) -> LogConcave:
    """Return how many integer vectors of `count` coordinates have each radius: (2R + 1)^count in the cube.

    Drawn at a rate epsilon, the law is C (2R + 1)^count exp(-epsilon R): log-concave.
    """
    return LogConcave(_side, power=count)


# Proof: docs/proofs/answers.md, lemma 4.
def cube_noise(count: int, rate: Fraction, source: BitSource) -> Integers:
    """
    Draw V of Z^count with probability proportional to exp(-rate max |V_i|), exactly: int64.

    It is cut off at `exact.integers.CLIP`.

    R is drawn with weight (2R + 1)^count exp(-rate R), and V is uniform on {-R..R}^count: P(V = v) is the
    sum over R >= max |v_i| of C exp(-rate R), a geometric series. R is not returned, and must not be.
    """
    radius = _radius(count, rate, source)
    if radius >= integers.CLIP:
        return clipped([uniform_below(_side(radius), source) - radius for _ in range(count)])
    return uniform_integers(_side(radius), count, source) - radius


def _radius(count: int, rate: Fraction, source: BitSource) -> int:
    """
    Draw R >= 0 with weight (2R + 1)^count exp(-rate R), exactly; the cost does not grow with 1 / rate.

    Where the law is wide, a block of levels is drawn first, by what none of them exceeds: the count of its
    last level and the exponential of its first. A level of it is drawn uniformly and kept with what its own
    weight is of that; about four in five are.
    """
    width = max(1, (1 / (4 * rate)).__floor__())
    if width == 1:
        return draw_level(radii(count), rate, source)
    blocks = LogConcave(lambda block: _side(block * width + width - 1), power=count)
    while True:
        first = draw_level(blocks, rate * width, source) * width
        inside, largest = uniform_below(width, source), _side(first + width - 1)
        side = _side(first + inside)
        if bernoulli_exp(rate * inside, source) and all(
            uniform_below(largest, source) < side for _ in range(count)
        ):
            return first + inside


def _side(radius: int) -> int:
    return 2 * radius + 1
