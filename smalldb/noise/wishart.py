"""Wishart-difference noise: one symmetric matrix for all 1- and 2-way answers at once.

A row with signs u = (1, chi_1, ..., chi_d) adds u u^T to a matrix, p x p, whose entries are the sums of all
parities of order 1 and 2. All these lie in the cone of semidefinite matrices A whose diagonal is
(b, a, ..., a). The noise is the difference of two that are drawn from that cone with density
exp(-x b - y a): moving the matrix by D of the cone changes its law by at most exp(x D_00 + y D_11)
(`docs/proofs/wishart.md`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import comb, isqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from queries.arrays import Floats, Objects
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import clipped
from smalldb.exact.normals import Normal, normals
from smalldb.noise.noise_protocol import Moved, Noise, Weights, check_count, rounded_quantile
from smalldb.noise.simulating import DRAWS, Uniforms
from smalldb.noise.tails import laplace_sum_quantile, moment_quantile

_BITS = 64  # of each normal number that are looked at first


class Drawn(NamedTuple):
    """The normal numbers behind one A: the rows of G, and those whose squares give b and a."""

    rows: Sequence[Sequence[Normal]]  # those of G
    # the numbers whose squares give b, and those whose squares give a
    first: Sequence[Normal]
    rest: Sequence[Normal]


@dataclass(frozen=True, slots=True)
class WishartDifference(Noise):
    """Entries of the difference of two matrices from a cone, rounded to nearest."""

    name: ClassVar[str] = "Wishart difference"
    word: ClassVar[str] = "Wishart"

    attributes: int  # d: the matrix has d + 1 rows
    # rates of the first entry of the diagonal, and of all others
    x: Fraction
    y: Fraction
    pairs: tuple[tuple[int, int], ...]  # of the matrix, one a value: (0, 0), or (i, j) with i < j

    # Proof: docs/proofs/wishart.md, lemma 5.
    def draw(self, count: int, source: BitSource) -> Integers:
        """Draw the entries of V = A - A' at the pairs, rounded to nearest, exactly: int64."""
        # A = R G G^T R: G holds independent standard normal numbers, (p, p + 1), and R is diagonal and gives
        # A its diagonal (b, a, ..., a). 2 x b and 2 y a are sums of squares of as many more.
        check_count(len(self.pairs), count)
        p, (low, high) = self.attributes + 1, degrees(self.attributes)
        drawn = iter(normals(2 * (p * (p + 1) + low + high), source))

        def some(count: int) -> list[Normal]:
            return list(islice(drawn, count))

        both = [Drawn([some(p + 1) for _ in range(p)], some(low), some(high)) for _ in range(2)]
        return rounded_entries(both, [1 / (2 * self.x), 1 / (2 * self.y)], self.pairs)

    # Proof: docs/proofs/noise.md, lemma 4.
    def variance(self, weights: Weights = None) -> float:
        """Return the sum of squared weights times variances: no two of the entries are correlated."""
        variances = self._variances
        if weights is None:
            return max(variances)
        squares = np.square(np.asarray(weights, dtype=np.float64))
        return sum(float(square) * variance for square, variance in zip(squares, variances, strict=True))

    def covariance(self, weights: Floats) -> Floats:
        """Return the covariance of linear combinations: no two of the entries are correlated."""
        return np.asarray(weights.T @ (np.array(self._variances)[:, None] * weights))

    @property
    def _variances(self) -> list[float]:
        """That of each entry."""
        of_order = {order: self.entry_variance(order) for order in set(map(_order, self.pairs))}
        return [of_order[_order(pair)] for pair in self.pairs]

    # Proof: docs/proofs/wishart.md, lemma 5.
    def simulated(self, weights: Floats, kinds: Integers, uniforms: Uniforms) -> Floats:
        """Return linear combinations of the rounded entries, simulated, from the rows that they look at."""
        used = [(entry, kind) for entry, kind in enumerate(kinds.tolist()) if kind >= 0]
        rows = sorted({row for entry, _ in used for row in self.pairs[entry]})
        at = {row: rank for rank, row in enumerate(rows)}
        one, other = (self._of_rows(rows, uniforms) for _ in range(2))
        totals = np.zeros((DRAWS, weights.shape[1]))
        for entry, kind in used:
            i, j = (at[row] for row in self.pairs[entry])
            totals += np.rint(one(i, j) - other(i, j))[:, None] * weights[kind]
        return totals

    def _of_rows(self, rows: Sequence[int], uniforms: Uniforms) -> Callable[[int, int], Floats]:
        """Return what gives the entries of A between some of its rows, (DRAWS,) each, by their ranks."""
        vectors = uniforms.triangle(len(rows), self.attributes + 2)
        vectors /= np.sqrt((vectors**2).sum(axis=2))[:, :, None]
        low, high = degrees(self.attributes)
        first = np.sqrt(uniforms.gammas(low / 2)[:, 0] / float(self.x))
        rest = np.sqrt(uniforms.gammas(high / 2)[:, 0] / float(self.y))

        def entry(i: int, j: int) -> Floats:
            sizes = (rest if rows[i] else first) * (rest if rows[j] else first)
            return np.asarray(sizes * np.einsum("ij,ij->i", vectors[:, i], vectors[:, j]))

        return entry

    def quantile(self, weights: Weights, failure: Fraction) -> float:
        """Return the best of the sum of the entries' quantiles, and what any log-concave noise stays in."""
        return rounded_quantile(self, weights, list(map(_order, self.pairs)), self.entry_quantile, failure)

    # Proof: docs/proofs/wishart.md, lemma 4.
    def lost(self, moved: Moved) -> Fraction:
        """Return the rates for each row that signs are summed of; of replaced ones half of them are."""
        return (self.x + self.y) * moved.rows / (2 if moved.paired else 1)

    def fits(self, of: Sequence[Any]) -> bool:
        """Tell whether its entries are these parities, their attributes being numbered in order."""
        sets = [[*zip(part.columns, part.yes, strict=True)] for part in of]
        ranks = {one: rank for rank, one in enumerate(sorted({one for some in sets for one in some}), 1)}
        return self.pairs == tuple((0, 0, *(ranks[one] for one in some))[-2:] for some in sets)

    def entry_variance(self, order: int) -> float:
        """Return the variance of an entry that belongs to parities of an order."""
        if not order:  # a difference of gammas
            return degrees(self.attributes)[0] / float(self.x) ** 2
        return float(even_moments(self.attributes, order, self.x, self.y, 2)[1])

    # Proof: docs/proofs/wishart.md, lemmas 8 and 9.
    def entry_quantile(self, order: int, failure: Fraction) -> int:
        """Return what such an entry, rounded, exceeds with probability at most `failure`."""
        if order:
            return entry_quantile(self.attributes, order, self.x, self.y, failure)
        # a difference of gammas: a whole shape above theirs spreads further (a symmetric unimodal number
        # was added)
        return laplace_sum_quantile(-(-degrees(self.attributes)[0] // 2), 1 / self.x, failure)


# Proof: docs/proofs/wishart.md, lemma 5.
def degrees(attributes: int) -> tuple[int, int]:
    """Return twice the gamma shapes of b and of a: the cone has d (d + 1) / 2 + 2 dimensions."""
    return attributes + 2, attributes**2 + 2


# Proof: docs/proofs/wishart.md, lemma 4.
def rates(epsilon: Fraction, tilt: Fraction) -> tuple[Fraction, Fraction]:
    """Return x and y, which add up to epsilon: noise that is epsilon-DP, under either relation."""
    return tilt * epsilon, (1 - tilt) * epsilon


# Proof: docs/proofs/wishart.md, lemma 8.
def even_moments(attributes: int, order: int, x: Fraction, y: Fraction, count: int) -> list[Fraction]:
    """Return E V^0, E V^2, ..., `count` of them, of an entry V that belongs to parities of order 1 or 2."""
    # V is a difference of two sqrt(a_i a_j) cos, independent, cos between two directions in d + 2 dimensions
    low, high = (Fraction(degree, 2) for degree in degrees(attributes))
    parts = [Fraction(1)]
    for m in range(1, count):
        cosine = Fraction(2 * m - 1, attributes + 2 * m)
        if order == 1:
            size = (low + m - 1) * (high + m - 1) / (x * y)
        else:
            size = (high + 2 * m - 2) * (high + 2 * m - 1) / y**2
        parts.append(parts[-1] * cosine * size)
    return [
        sum((comb(2 * m, 2 * i) * parts[i] * parts[m - i] for i in range(m + 1)), Fraction(0))
        for m in range(count)
    ]


# Proof: docs/proofs/wishart.md, lemma 8.
@lru_cache(maxsize=256)
def entry_quantile(attributes: int, order: int, x: Fraction, y: Fraction, failure: Fraction) -> int:
    """Return an r that a rounded entry exceeds in absolute value that rarely, by the best of many moments."""
    count = max(8, 2 * (1 / failure).__ceil__().bit_length())
    moments = even_moments(attributes, order, x, y, count)
    return moment_quantile(dict(enumerate(moments[1:], start=1)), failure)


# Proof: docs/proofs/wishart.md, lemma 6.
def rounded_entries(
    both: Sequence[Drawn], factors: Sequence[Fraction], pairs: Sequence[tuple[int, int]]
) -> Integers:
    """Return the entries of A - A' at the pairs, rounded to nearest: exact; int64."""
    bits = _BITS
    while True:
        one, other = (_enclosed(drawn, factors, bits) for drawn in both)
        if one is not None and other is not None:
            shift = 4 * (bits + 1)
            ends = [
                [
                    int(end[pair]) + (1 << (shift - 1)) >> shift
                    for end in (one[0] - other[1], one[1] - other[0])
                ]
                for pair in pairs
            ]
            if all(below == above for below, above in ends):
                return clipped([value for value, _ in ends])
        bits *= 2


# Proof: docs/proofs/wishart.md, lemma 6.
def _enclosed(drawn: Drawn, factors: Sequence[Fraction], bits: int) -> tuple[Objects, Objects] | None:
    """Enclose A in units of 16^-(bits + 1), or return None where a row of G may still be 0."""
    g = _middles(drawn.rows, bits)
    sizes, count = np.abs(g).sum(axis=1), g.shape[1]
    # a number lies within 1 of the middle m, so a product of two within |m| + |m'| + 1
    squares, margins = (g * g).sum(axis=1), 2 * sizes + count
    if min(squares - margins) <= 0:
        return None
    ends = []
    for numbers, factor in zip((drawn.first, drawn.rest), factors, strict=True):
        m = _middles([numbers], bits)[0]
        total, margin = int((m * m).sum()), int(2 * np.abs(m).sum()) + len(m)
        ends.append((factor * (total - margin), factor * (total + margin)))
    ends += [ends[1]] * (len(g) - 2)
    unit = 4 ** (bits + 1)
    low = [_root(end * unit / square) for (end, _), square in zip(ends, squares + margins, strict=True)]
    high = [_root(end * unit / square) + 1 for (_, end), square in zip(ends, squares - margins, strict=True)]
    dots, margins = g @ g.T, sizes[:, None] + sizes + count
    # numpy would take a list with numbers from 2^63 on for floats
    low_roots, high_roots = np.array(low, dtype=object), np.array(high, dtype=object)
    least, most = np.outer(low_roots, low_roots), np.outer(high_roots, high_roots)
    below, above = dots - margins, dots + margins
    return below * np.where(below < 0, most, least), above * np.where(above < 0, least, most)


def _middles(numbers: Sequence[Sequence[Normal]], bits: int) -> Objects:
    """Return the numbers as odd multiples of 2^-(bits + 1), within one of these units."""
    return np.array([[2 * x.floor(bits) + 1 for x in row] for row in numbers], dtype=object)


def _root(square: Fraction) -> int:
    """Return the floor of the square root, 0 where that is not real."""
    return isqrt(max(0, square.__floor__()))


def _order(pair: tuple[int, int]) -> int:
    """Return of which order the parities are that an entry belongs to."""
    return sum(1 for row in pair if row)
