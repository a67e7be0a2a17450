"""K-norm noise: exact noise on the counts of several columns at once."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import isqrt, lgamma, log, prod, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.exact.integers import clipped, uniform_below
from smalldb.exact.levels import LogConcave, draw_level
from smalldb.noise.column_polytope import draw_point, log_points, log_squares, log_tails, points
from smalldb.noise.noise_protocol import Moved, Noise, Weights, check_count
from smalldb.noise.simulating import DRAWS, Uniforms
from smalldb.noise.tails import SLACK, level_quantile

_PROPOSED = 18  # times the dimensions: levels that are proposed in the mean until one is accepted, at most
_WORK = 1 << 22  # numbers that are added up for a law
_MOST_LEVELS = 1 << 14
_WIDE = 1 << 20  # a level at which the law of the pairs is that of all high levels
_UNLIKELY = 1e-20  # as probable as the likeliest pair: left out
_LEFT_OUT = 1e-14  # at least what is left out
_ROUNDED = 2.0**-47  # of the logarithm of a factorial: at least what rounding takes of a column
_SHARES = np.linspace(0, 1, 4097)


@dataclass(frozen=True, slots=True)
class KNorm(Noise):
    """Noise on the counts of whole columns with P(v) proportional to exp(-rate |v|)."""

    # Hardt and Talwar 2010. The unit ball is the convex hull of what a row changes in all columns: a count of
    # each goes up or down by 1; or, if rows are replaced, a count goes up and another one down.

    name: ClassVar[str] = "K-norm"
    word: ClassVar[str] = name
    repeating: ClassVar[bool] = True

    sizes: tuple[int, ...]  # the number of categories of each column, at least 2
    rate: Fraction  # what a row may lose
    # whether rows are replaced: then all columns of noise sum to 0. Otherwise they sum to one number.
    replaced: bool

    # Proof: docs/proofs/k-norm.md, lemma 3.
    def draw(self, count: int, source: BitSource) -> Integers:
        """Draw all values, column by column, exactly: int64, cut off at `exact.integers.CLIP`."""
        check_count(sum(self.sizes), count)
        up, down = self._radii(source)
        return clipped([value for size in self.sizes for value in draw_point(size, up, down, source)])

    def _radii(self, source: BitSource) -> tuple[int, int]:
        """Draw by how much counts may go up, and down: a pair has the weight of its points and its level."""
        # A level is proposed with the weight of the pair that has most points, times the number of pairs;
        # where the law is wide, in blocks that have the weight of their last level.
        width = self._block
        blocks = _blocks(self, width)
        while True:
            first = draw_level(blocks, self.rate * width, source) * width
            level, last = first + uniform_below(width, source), first + width - 1
            up = level if self.replaced else uniform_below(self._pairs(last), source)
            down = level if self.replaced else level - up
            if (
                down >= 0
                and (level == first or bernoulli_exp(self.rate * (level - first), source))
                and uniform_below(self._most(last), source) < self._points(up, down)
            ):
                return up, down

    @property
    def _block(self) -> int:
        """How many levels are taken together: one, or an even number that makes a block narrow in the law."""
        return 2 * (1 / (8 * self.rate)).__floor__() or 1

    def _pairs(self, level: int) -> int:
        """How many pairs a level has."""
        return 1 if self.replaced else level + 1

    # Proof: docs/proofs/k-norm.md, lemma 2.
    def _most(self, level: int) -> int:
        """The points of the pair of a level that has most."""
        return self._points(level, level) if self.replaced else self._points(level // 2, level - level // 2)

    def _points(self, up: int, down: int) -> int:
        """How many points all columns have together."""
        return prod(points(size, up, down) ** many for size, many in Counter(self.sizes).items())

    @property
    def _dimensions(self) -> int:
        """How many entries may be chosen; the last one of each column follows."""
        return sum(self.sizes) - len(self.sizes)

    # Proof: docs/proofs/k-norm.md, lemma 4.
    def variance(self, weights: Weights = None) -> float:
        """Return the variance of a sum; moments are means over simulated radii, to some thousandths."""
        if weights is None:
            return max(_moments(self)[0].values())
        return float(self.covariance(np.asarray(weights, dtype=np.float64)[:, None])[0, 0])

    # Proof: docs/proofs/k-norm.md, lemma 4.
    def covariance(self, weights: Floats) -> Floats:
        """Return the covariance of several linear combinations: weights (values, k), covariances (k, k)."""
        squares, common = _moments(self)
        total, means = np.zeros((weights.shape[1], weights.shape[1])), np.zeros(weights.shape[1])
        for size, column in self._by_column(weights):
            between = (common - size * squares[size]) / (size * (size - 1))
            mean = column.sum(axis=0) / size
            total += (squares[size] - between) * (column.T @ column)
            total += (between * size**2 - common) * np.outer(mean, mean)
            means += mean
        return np.asarray(total + common * np.outer(means, means))

    def simulated(self, weights: Floats, kinds: Integers, uniforms: Uniforms) -> Floats:
        """Return linear combinations, simulated: radii, and given these a point for each column."""
        from smalldb.kernels.polytope_points import draw_points

        up, down = self._simulated_radii(uniforms)
        totals = np.zeros((len(up), weights.shape[1]))
        each = np.vstack([weights, np.zeros(weights.shape[1])])[kinds]
        for size, column in self._by_column(each):
            if (column == column[0]).all():
                totals += (up - down)[:, None] * column[0]
            else:
                state = np.array([uniforms.bits.bits(64)], dtype=np.uint64)
                totals += draw_points(size, up, down, state) @ column
        return totals

    # Proof: docs/proofs/k-norm.md, lemma 5.
    def quantile(self, weights: Weights, failure: Fraction) -> float:
        """Return that of one value, or of a sum: the best of what a ball allows, and values one by one."""
        # A ball allows a sum of the level times the largest weights of the columns; of rows that are
        # replaced, times what is between the largest and the least.
        if weights is None:
            return float(max(_quantile(self, size, failure) for size in set(self.sizes)))
        array = np.asarray(weights, dtype=np.float64)[:, None]
        columns = [(size, column) for size, column in self._by_column(array) if column.any()]
        if not columns:
            return 0.0
        if len(columns) == 1 and np.ptp(columns[0][1]) == 0:
            return _quantile(self, 0, failure) * float(abs(columns[0][1][0, 0])) * SLACK
        ball = sum(float(np.ptp(column) if self.replaced else np.abs(column).max()) for _, column in columns)
        each = failure / int(np.count_nonzero(array))
        apart = sum(float(np.abs(column).sum()) * _quantile(self, size, each) for size, column in columns)
        return min(ball * self._level_quantile(failure), apart) * SLACK

    # Proof: docs/proofs/k-norm.md, lemma 5.
    def sum_quantile(self, count: int, failure: Fraction) -> float:
        """Return that of the sum over a whole column: all columns have the same sum."""
        return _quantile(self, 0, failure) * SLACK

    def entry_quantile(self, order: int, failure: Fraction) -> float:
        """Return that of a number of a parity, as it is read from counts."""
        return max(self.quantile(weights, failure) for weights in weights_of(self)[order])

    # Proof: docs/proofs/k-norm.md, lemma 3.
    def lost(self, moved: Moved) -> Fraction:
        """Return the rate for each row that is added or removed, or for each that is replaced."""
        if self.replaced and not moved.paired:
            raise AssertionError("K-norm noise of replaced rows hides none that is added")
        return self.rate * moved.rows / (2 if self.replaced else 1)

    def fits(self, of: Sequence[Any]) -> bool:
        """Tell whether these are tables of single columns of its sizes."""
        return [part.shape for part in of] == [(size,) for size in self.sizes]

    # Proof: docs/proofs/k-norm.md, lemma 5.
    def _level_quantile(self, failure: Fraction) -> int:
        """Return what the level, up for rows that are replaced and up + down else, exceeds that rarely."""
        if self.replaced:
            return level_quantile(self._most, self.rate, failure)
        rarer = failure / (_PROPOSED * self._dimensions)

        def of_parity(odd: int) -> int:
            def count(half: int) -> int:
                return self._pairs(2 * half + odd) * self._most(2 * half + odd)

            return 2 * level_quantile(count, 2 * self.rate, rarer) + odd

        return max(of_parity(0), of_parity(1))

    def _by_column(self, weights: Floats) -> "list[tuple[int, Floats]]":
        """Return the size of each column, and its weights."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        check_count(ends[-1], len(weights))
        return [(end - start, weights[start:end]) for start, end in pairwise(ends)]

    def _simulated_radii(self, uniforms: Uniforms) -> tuple[Integers, Integers]:
        """Return by how much counts go up and down, simulated: (draws,) each."""
        if _width(self)[1] == 1:
            law = _law(self)
            drawn = np.searchsorted(np.cumsum(np.exp(law.logs))[:-1], uniforms.numbers())
            return law.up[drawn], law.down[drawn]
        # half a level is added to up and to down: levels are so nearly a gamma number that the rest is small
        if self.replaced:
            levels = np.rint(uniforms.gammas(self._dimensions + 1)[:, 0] / float(self.rate) - 0.5)
            level = np.maximum(levels, 0).astype(np.int64)
            return level, level
        levels = uniforms.gammas(self._dimensions + 2)[:, 0] / float(self.rate)
        logs = self._log_points(_WIDE * _SHARES, _WIDE * (1 - _SHARES))
        odds = np.cumsum(np.exp(logs - logs.max()))
        shares = np.interp(uniforms.numbers(), odds / odds[-1], _SHARES)
        up, down = (np.rint(np.maximum(levels * part - 0.5, 0)) for part in (shares, 1 - shares))
        return up.astype(np.int64), down.astype(np.int64)

    def _log_points(self, up: Floats | Integers, down: Floats | Integers) -> Floats:
        """Return the logarithms of how many points all columns have together."""
        logs = np.zeros(len(up))
        for size, many in Counter(self.sizes).items():
            logs += many * log_points(size, up, down)
        return logs


def weights_of(noise: KNorm) -> dict[int, list[Floats]]:
    """Return how numbers of parities are read from counts of columns at once: by order, one a size."""
    rows: dict[int, list[Floats]] = {1: []} if noise.replaced else {0: [], 1: []}
    for size in sorted({*noise.sizes}):
        start, weights = sum(noise.sizes[: noise.sizes.index(size)]), np.zeros(sum(noise.sizes))
        if not noise.replaced:
            weights[start : start + size] = 1
            rows[0].append(weights.copy())
        weights[start] = 1 if noise.replaced else -1  # a sum of signs: all rows, less twice the odd ones
        rows[1].append(weights)
    return rows


@lru_cache(maxsize=16)  # a family is enclosed once, for all draws
def _blocks(noise: KNorm, width: int) -> LogConcave:
    """Return the blocks of so many levels, each with what its last level has."""

    def count(block: int) -> int:
        last = block * width + width - 1
        return noise._pairs(last) * noise._most(last)

    return LogConcave(count, period=1 if noise.replaced or width > 1 else 2)


def _width(noise: KNorm) -> tuple[int, int]:
    """Return how many levels matter, and in how wide blocks they are added up."""
    shape = noise._dimensions + 2
    most = int((shape + 12 * sqrt(shape) + 60) / float(noise.rate)) + 2
    work = _WORK // max(noise.sizes)
    levels = min(_MOST_LEVELS, work if noise.replaced else isqrt(work))
    return most, 1 if most <= levels else -(-most // (levels // 2))


class _Law(NamedTuple):
    """Blocks of pairs of radii, by their last pair, and logarithms of what is at least their probability."""

    up: Integers
    down: Integers
    logs: Floats
    width: int  # of a block, up and down; 1: the probabilities are exact


# Proof: docs/proofs/k-norm.md, lemma 5.
@lru_cache(maxsize=64)
def _law(noise: KNorm) -> _Law:
    """Return all blocks that matter."""
    most, width = _width(noise)
    first = np.arange(0, most, width)
    if noise.replaced:
        up = down = first
        levels = first
    else:
        up, down = (each.ravel() for each in np.meshgrid(first, first))
        inside = up + down < most
        up, down = up[inside], down[inside]
        levels = up + down
    rate, last = float(noise.rate), width - 1
    rising = last if noise.replaced else 2 * last
    logs = noise._log_points(up + last, down + last) - rate * levels
    least = logs if width == 1 else noise._log_points(up, down) - rate * (levels + rising)
    logs -= least.max() + np.log(np.exp(least - least.max()).sum())
    likely = logs > logs.max() + log(_UNLIKELY)
    return _Law(up[likely] + last, down[likely] + last, logs[likely], width)


@lru_cache(maxsize=64)
def _moments(noise: KNorm) -> tuple[dict[int, float], float]:
    """Return the mean square of a value of each size of column, and of the sum of a column."""
    # radii spread by about one part in the root of the dimensions: of many, few are simulated
    up, down = noise._simulated_radii(Uniforms.fixed())
    some = [radii[: 4 * DRAWS // max(4, noise._dimensions)] for radii in (up, down)]
    squares = {
        size: float(np.exp(log_squares(size, *some) - log_points(size, *some)).mean())
        for size in set(noise.sizes)
    }
    return squares, float(((up - down).astype(np.float64) ** 2).mean())


# Proof: docs/proofs/k-norm.md, lemma 5.
@lru_cache(maxsize=256)
def _quantile(noise: KNorm, size: int, failure: Fraction) -> int:
    """Return what a value of a column of that size exceeds that rarely; of size 0: the column's sum."""
    up, down, logs, width = _law(noise)
    # logarithms of factorials are rounded: of large ones by more than SLACK
    rounded = _ROUNDED * len(noise.sizes) * lgamma(float(max(up.max(), down.max())) + max(noise.sizes) + 1)
    below = float(failure) / (SLACK + rounded) - _LEFT_OUT
    if below <= 0:  # no value, and no sum of a column, is beyond the level
        return 0 if noise.replaced and not size else noise._level_quantile(failure)
    step = max(1, width // 2)
    if not size:
        apart, odds = np.abs(up - down) + (0 if noise.replaced else width - 1), np.exp(logs)
        return step * bisect_left(
            range(0, int(apart.max()), step), True, key=lambda r: odds[apart > r].sum() <= below
        )
    others = logs - log_points(size, up, down)

    def rare(r: int) -> bool:
        tails = [log_tails(size, r + 1, *pair) for pair in ((up, down), (down, up))]
        return bool(sum(np.exp(others + tail).sum() for tail in tails) <= below)

    return step * bisect_left(range(0, int(max(up.max(), down.max())), step), True, key=rare)
