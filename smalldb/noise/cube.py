"""Cube noise: exact noise of integers that is as likely as its largest entry is small."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact import integers
from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.exact.integers import clipped, uniform_below, uniform_integers
from smalldb.exact.levels import LogConcave, draw_level
from smalldb.exact.numbers import float_above
from smalldb.noise.noise_protocol import (
    Noise,
    Weights,
    check_count,
    magnitudes,
    sum_of_squares,
    times_of,
)
from smalldb.noise.privacy_loss import Loss
from smalldb.noise.simulating import DRAWS, Uniforms
from smalldb.noise.tails import SLACK, log_odds, radius_quantile

_LEVELS = 1 << 16  # of a cube that are added up one by one
_SUMMED = 64  # values of one weight; a sum of more is taken for a normal number, given the radius


@dataclass(frozen=True, slots=True)
class Cube(Noise):
    """
    Noise V of `count` values with P(v) proportional to exp(-rate max |v|).

    It speaks of the largest move of a value. V is uniform on a cube whose radius is drawn first.
    """

    name: ClassVar[str] = "cube"

    count: int  # how many values are drawn at once
    rate: Fraction  # above 0: what a move of all values by 1 may lose

    # Proof: docs/proofs/answers.md, lemma 4.
    def draw(self, count: int, source: BitSource) -> Integers:
        """
        Draw all values, exactly: int64, cut off at `exact.integers.CLIP`.

        R is drawn with weight (2R + 1)^count exp(-rate R), and V is uniform on {-R..R}^count: P(V = v) is the
        sum over R >= max |v_i| of C exp(-rate R), a geometric series. R is not returned, and must not be.
        """
        check_count(self.count, count)
        radius = _radius(count, self.rate, source)
        if radius >= integers.CLIP:
            return clipped([uniform_below(_side(radius), source) - radius for _ in range(count)])
        return uniform_integers(_side(radius), count, source) - radius

    # Proof: docs/proofs/noise.md, lemma 3.
    def variance(self, weights: Weights = None) -> float:
        """Return E R (R + 1) / 3 times the sum of squared weights: given R, values are independent."""
        rate, shape, odds = float(self.rate), self.count + 1, self._odds
        if odds is not None:
            radii = np.arange(len(odds))
            one = float(radii * (radii + 1) @ odds) / 3
        else:  # R + 1/2 is so nearly a gamma number that the rest is below rate^2 of it
            one = (shape * (shape + 1) / rate**2 - 0.25) / 3
        return one * sum_of_squares(weights)

    @property
    def _odds(self) -> Floats | None:
        """The probabilities of radii 0, 1, ...; None: they are too many."""
        rate, shape = float(self.rate), self.count + 1
        levels = (shape + 12 * sqrt(shape) + 60) / rate
        if levels >= _LEVELS:
            return None
        radii = np.arange(int(levels) + 2, dtype=np.float64)
        logs = self.count * np.log(2 * radii + 1) - rate * radii
        odds = np.exp(logs - logs.max())
        found: Floats = odds / odds.sum()
        return found

    def simulated(self, weights: Floats, kinds: Integers, uniforms: Uniforms) -> Floats:
        """Return linear combinations, simulated: a radius, and given it independent values."""
        odds = self._odds
        if odds is None:
            radii = uniforms.gammas(self.count + 1)[:, 0] / float(self.rate) - 0.5
        else:
            radii = np.searchsorted(np.cumsum(odds)[:-1], uniforms.numbers()).astype(np.float64)
        found = np.zeros((DRAWS, weights.shape[1]))
        for row, times in zip(weights, times_of(weights, kinds).tolist(), strict=True):
            if not times or not row.any():
                continue
            if times <= _SUMMED:
                values = np.floor(uniforms.numbers(times) * (2 * radii[:, None] + 1)) - radii[:, None]
                drawn = values.sum(axis=1)
            else:
                drawn = uniforms.normals() * np.sqrt(times * radii * (radii + 1) / 3)
            found += drawn[:, None] * row
        return found

    # Proof: docs/proofs/noise.md, lemma 3.
    def quantile(self, weights: Weights, failure: Fraction) -> float:
        """Return the best of two: the radius times the sum of |weights|, or sub-Gaussian given the radius."""
        sizes = magnitudes(weights)
        radius = radius_quantile(self.count, self.rate, failure / 2)
        squared = float(sum(size**2 for size in sizes) * radius * (radius + 1) / 3)
        at_once = float_above(sum(sizes, Fraction(0)) * radius_quantile(self.count, self.rate, failure))
        return min(at_once, sqrt(2 * squared * log_odds(failure / 4)) * SLACK)

    def loss(self, moved: Fraction | int) -> Loss:
        """Return the loss of values that move by no more than that each."""
        return Loss.pure(self.rate * moved)


def radii(count: int) -> LogConcave:
    """Return how many integer vectors of `count` coordinates have each radius: (2R + 1)^count in the cube.

    Drawn at a rate epsilon, the law is C (2R + 1)^count exp(-epsilon R): log-concave.
    """
    return LogConcave(_side, power=count)


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
