"""Noise for all tables of one and two columns at once: a cone, two draws, one subtraction.

A row adds u u^T to a matrix, where u is 1 at its category of each column and 0 elsewhere. The entries of the
sum are the counts of all tables of one and two columns. It lies in the cone of semidefinite matrices that are
made like such tables: those of one column on the diagonal, those of two beside it, with one total a, and the
same margins in all of them. The noise is the difference of two matrices drawn from that cone with density
exp(-rate a): moving it by u u^T changes its law by at most exp(rate) (`docs/proofs/pairs.md`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, islice
from math import ceil, comb, isqrt, prod, sqrt
from operator import mul
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from queries.arrays import Floats, Objects
from queries.domain import Integers
from smalldb.exact.bits import BitSource, SeededBits
from smalldb.exact.integers import clipped
from smalldb.exact.normals import Normal, normals
from smalldb.noise.noise_protocol import Moved, Noise, Weights, check_count, rounded_quantile
from smalldb.noise.simulating import State, Uniforms
from smalldb.noise.tails import log_odds, moment_quantile

_BITS = 64  # of each normal number that are looked at first, and two more for each category of a column
Pairs: TypeAlias = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ConeDifference(Noise):
    """Tables of the difference of two matrices from the cone, rounded to nearest."""

    name: ClassVar[str] = "cone"
    word: ClassVar[str] = name
    refitted: ClassVar[bool] = False
    repeating: ClassVar[bool] = True

    # the categories of each column. Values are first the counts of all columns, one after another.
    sizes: tuple[int, ...]
    rate: Fraction  # of the total
    pairs: tuple[tuple[int, int], ...]  # of columns, whose tables follow, row by row

    @property
    def count(self) -> int:
        """Of all values."""
        return len(self._kinds)

    # Proof: docs/proofs/pairs.md, lemma 4.
    def draw(self, count: int, source: BitSource) -> Integers:
        """Draw all values, rounded to nearest, exactly: int64."""
        check_count(self.count, count)
        sizes, each = self.sizes, width(self.sizes)
        needed = sum(size * (each + squares(sizes, size)) for size in sizes) + 2 * dimensions(sizes)
        drawn = iter(normals(2 * needed, source))

        def some(many: int, lists: int) -> list[list[Normal]]:
            return [list(islice(drawn, many)) for _ in range(lists)]

        both = [
            Drawn(
                [some(each, size) for size in sizes],
                [some(squares(sizes, size), size) for size in sizes],
                *some(2 * dimensions(sizes), 1),
            )
            for _ in range(2)
        ]
        return rounded_tables(both, 1 / (2 * self.rate), self.pairs)

    # Proof: docs/proofs/noise.md, lemma 4.
    def variance(self, weights: Weights = None) -> float:
        """Return the exact variance of a linear combination."""
        if weights is None:
            units = (np.eye(1, self.count, self._kinds.index(kind))[0] for kind in set(self._kinds))
            return max(map(self.variance, units))
        check_count(self.count, len(weights))
        return float((self._features(np.asarray(weights, dtype=np.float64)) ** 2).sum())

    # Proof: docs/proofs/pairs.md, lemma 7.
    @property
    def variances(self) -> tuple[list[float], dict[tuple[int, int], float]]:
        """The variance of a category's count for each column; for each pair, of a cell beyond its margins."""
        sizes, shape = self.sizes, dimensions(self.sizes)
        # of two totals: each is a gamma number of that shape
        second = float(2 * shape * (shape + 1) / self.rate**2)
        first = float(2 * (shape / self.rate) ** 2)
        halves = [squares(sizes, size) / 2 for size in sizes]
        sums = [size * half + 1 for size, half in zip(sizes, halves, strict=True)]
        columns = [
            second * (half + 1) / (size * whole) - first / size**2
            for size, half, whole in zip(sizes, halves, sums, strict=True)
        ]
        return columns, {
            (a, b): second
            * (halves[a] * halves[b] / width(sizes) + 1 / (sizes[a] * sizes[b]))
            / (sums[a] * sums[b])
            for a, b in self.pairs
        }

    def covariance(self, weights: Floats) -> Floats:
        """Return the covariance of linear combinations, from what they are made of."""
        features = np.stack([self._features(one) for one in weights.T])
        return np.asarray(features @ features.T)

    def _features(self, weights: Floats) -> Floats:
        """Return a vector whose square is the variance: of parts of the noise that are not correlated."""
        # the total times a constant, deviations of shares in columns, and in pairs what is beyond both
        sizes = self.sizes
        halves = [squares(sizes, size) / 2 for size in sizes]
        wholes = [size * half + 1 for size, half in zip(sizes, halves, strict=True)]
        counts = [*sizes, *(sizes[a] * sizes[b] for a, b in self.pairs)]
        tables = np.split(weights.copy(), np.cumsum(counts)[:-1])
        parts = [np.array([sum(float(table.mean()) for table in tables)])]
        shape = dimensions(sizes)
        for (a, b), table in zip(self.pairs, tables[len(sizes) :], strict=True):
            cells = table.reshape(sizes[a], sizes[b])
            along, across = cells.mean(axis=1), cells.mean(axis=0)
            tables[a] += along
            tables[b] += across
            beyond = cells - along[:, None] - across + cells.mean()
            white = halves[a] * halves[b] / width(sizes) + 1 / table.size
            parts.append(sqrt((shape + 1) * white / (wholes[a] * wholes[b])) * beyond.ravel())
        for size, whole, column in zip(sizes, wholes, tables, strict=False):
            parts.append(sqrt((shape + 1) / (size * whole)) * (column - column.mean()))
        return sqrt(2 * shape) / float(self.rate) * np.concatenate(parts)

    # Proof: docs/proofs/pairs.md, lemma 4.
    def simulated(self, weights: Floats, kinds: Integers, uniforms: Uniforms) -> Floats:
        """Return linear combinations of the rounded entries, simulated, from the columns they look at."""
        scopes = [*((c,) for c in range(len(self.sizes))), *self.pairs]
        counts = [prod(self.sizes[c] for c in scope) for scope in scopes]
        parts = np.split(kinds, np.cumsum(counts)[:-1])
        used = {scope: part for scope, part in zip(scopes, parts, strict=True) if (part >= 0).any()}
        columns = sorted({c for scope in used for c in scope})
        entries = sum(self.sizes[c] for c in columns) ** 2
        rows = np.vstack([weights, np.zeros(weights.shape[1])])
        totals = []
        for part in uniforms.in_parts(1 << max(0, entries.bit_length() - 9)):
            tables, after = _simulated_tables(self, tuple(used), part.draws, part.state)
            part.go_on(after)
            total = np.zeros((part.draws, weights.shape[1]))
            for table, chosen in zip(tables, used.values(), strict=True):
                total += table @ rows[chosen]
            totals.append(total)
        return np.concatenate(totals)

    def of_columns(
        self, columns: Sequence[int], uniforms: Uniforms, pairs: bool
    ) -> Callable[[tuple[int, ...]], Floats]:
        """Return what gives tables of a matrix from the cone, simulated, by a column, or also by `pairs`."""
        sizes = self.sizes
        total = uniforms.gammas(dimensions(sizes)) / float(self.rate)
        shares, turned = dict[int, Floats](), dict[int, Floats]()
        rows, ends = sum(sizes[c] for c in columns), np.cumsum([sizes[c] for c in columns])[:-1]
        if pairs:
            vectors = np.split(uniforms.triangle(rows, width(sizes)), ends, axis=1)
        else:
            uniforms.pass_triangle(rows, width(sizes))
            vectors = [np.zeros(0)] * len(columns)
        for c, frame in zip(columns, vectors, strict=True):
            squared = uniforms.gammas(squares(sizes, sizes[c]) / 2, sizes[c])
            shares[c] = squared / squared.sum(axis=1, keepdims=True)
            if not pairs:
                continue
            roots = np.sqrt(shares[c])[:, :, None]
            frame = np.linalg.solve(np.linalg.cholesky(frame @ frame.transpose(0, 2, 1)), frame)
            turned[c] = roots * (frame - roots * (roots * frame).sum(axis=1, keepdims=True))

        def table(scope: tuple[int, ...]) -> Floats:
            if len(scope) == 1:
                return total * shares[scope[0]]
            a, b = scope
            beyond = turned[a] @ turned[b].transpose(0, 2, 1)
            return total[:, :, None] * (shares[a][:, :, None] * shares[b][:, None, :] + beyond)

        return table

    def quantile(self, weights: Weights, failure: Fraction) -> float:
        """Return the best of the sum of the entries' quantiles, and what any log-concave noise stays in."""
        entry = partial(quantile, self.sizes, self.rate)
        return rounded_quantile(self, weights, self._kinds, entry, failure)

    def cell_quantile(self, shape: tuple[int, ...], failure: Fraction) -> float:
        """Return that of a cell of a column or pair of such categories."""
        return float(quantile(self.sizes, self.rate, tuple(sorted(shape)), failure))

    # Proof: docs/proofs/pairs.md, lemma 8.
    def sum_quantile(self, count: int, failure: Fraction) -> float:
        """Return that of the sum of a table's rounded counts: one total, and all that rounding adds."""
        return quantile(self.sizes, self.rate, (), failure) + count / 2

    # Proof: docs/proofs/pairs.md, lemma 3.
    def lost(self, moved: Moved) -> Fraction:
        """Return the rate for each row that is added or removed."""
        return self.rate * moved.rows

    def fits(self, of: Sequence[Any]) -> bool:
        """Tell whether these are the tables of all its columns and pairs, at all categories."""
        tables = [*((c,) for c in range(len(self.sizes))), *self.pairs]
        shapes = [tuple(self.sizes[c] for c in table) for table in tables]
        return [part.columns for part in of] == tables and [part.shape for part in of] == shapes

    @property
    def _kinds(self) -> list[tuple[int, ...]]:
        """The categories of the table of each value, ascending."""
        pairs = ((self.sizes[a], self.sizes[b]) for a, b in self.pairs)
        tables = [*((size,) for size in self.sizes), *(tuple(sorted(pair)) for pair in pairs)]
        return [table for table in tables for _ in range(prod(table))]


@lru_cache(maxsize=4)  # questions about the same columns, such as groups, take the same tables
def _simulated_tables(
    noise: ConeDifference, scopes: tuple[tuple[int, ...], ...], draws: int, state: State
) -> tuple[list[Floats], State]:
    """Return tables of rounded noise, (draws, cells) each, and the state of uniform numbers after them."""
    uniforms = Uniforms(SeededBits(0), draws)
    uniforms.go_on(state)
    columns, pairs = sorted({c for scope in scopes for c in scope}), any(len(scope) > 1 for scope in scopes)
    one, other = (noise.of_columns(columns, uniforms, pairs) for _ in range(2))
    tables = [np.rint(one(scope) - other(scope)).reshape(draws, -1) for scope in scopes]
    return tables, uniforms.state


# Proof: docs/proofs/pairs.md, lemma 4.
def width(sizes: Sequence[int]) -> int:
    """Return of how many numbers a row of a frame is: one more than the sum over columns of k - 1."""
    return sum(sizes) - len(sizes) + 1


# Proof: docs/proofs/pairs.md, lemma 4.
def dimensions(sizes: Sequence[int]) -> int:
    """Return the dimensions of the cone: (k - 1) (k' - 1) for a pair, k - 1 for a column, and 1."""
    free = [size - 1 for size in sizes]
    return 1 + sum(free) + (sum(free) ** 2 - sum(part * part for part in free)) // 2


# Proof: docs/proofs/pairs.md, lemma 4.
def squares(sizes: Sequence[int], size: int) -> int:
    """Return of how many squares the share of a category is, in a column of `size` categories."""
    return width(sizes) - size + 2


# Proof: docs/proofs/pairs.md, lemma 8.
@lru_cache(maxsize=1024)
def quantile(sizes: tuple[int, ...], rate: Fraction, shape: tuple[int, ...], failure: Fraction) -> int:
    """Return an r that rounded noise exceeds in absolute value that rarely, by the best of three moments."""
    near = log_odds(failure)  # of a normal number, about the best m
    orders = sorted({max(1, ceil(near * part / 4)) for part in (2, 3, 4)})
    at_rate_1 = _even_moments(sizes, shape, orders)
    return moment_quantile({m: moment / rate ** (2 * m) for m, moment in at_rate_1.items()}, failure)


# Proof: docs/proofs/pairs.md, lemma 8.
def _even_moments(sizes: Sequence[int], shape: Sequence[int], orders: Sequence[int]) -> dict[int, Fraction]:
    """Return E V^2m of each m, at rate 1: V is the difference of two independent entries of A."""
    count = 2 * max(orders) + 1
    totals = _rising(2 * dimensions(sizes), count)
    columns = [(squares(sizes, size), size) for size in shape]
    shares = [(_rising(h, count), _rising((size - 1) * h, count)) for h, size in columns]
    wholes = [_rising(size * h, count) for h, size in columns]
    odd, beside = _rising(1, count), _rising(width(sizes), count)

    def moment(j: int) -> Fraction:
        """E A^j: of the part z^2 z'^2 some power, and of y . y' an even one."""
        last = j // 2 if len(shape) == 2 else 0
        total = 0
        for i in range(last + 1):
            part = comb(j, 2 * i) * odd[i] * (beside[last] // beside[i])
            for share, others in shares:
                part *= share[j - i] * others[i]
            total += part
        # a factor 2 for each of j of the total; those of shares and of cos cancel
        return Fraction(total * totals[j], prod(whole[j] for whole in wholes) * beside[last] << j)

    of_one = [moment(j) for j in range(count)]
    return {
        m: sum(
            ((-1) ** i * comb(2 * m, i) * of_one[i] * of_one[2 * m - i] for i in range(2 * m + 1)),
            Fraction(0),
        )
        for m in orders
    }


def _rising(twice: int, count: int) -> list[int]:
    """Return 2^i times the products x (x + 1) ... of i = 0, 1, ..., `count` - 1 factors, for 2 x."""
    return list(accumulate((twice + 2 * i for i in range(count - 1)), mul, initial=1))


class Drawn(NamedTuple):
    """The normal numbers behind one matrix of the cone."""

    frames: Sequence[Sequence[Sequence[Normal]]]  # for each column its k rows of `width` numbers
    # for each column and category those whose squares, summed, share the total among the categories
    shares: Sequence[Sequence[Sequence[Normal]]]
    total: Sequence[Normal]  # those whose squares give the total


class Balls(NamedTuple):
    """Vectors that are known up to an error, in units of 2^-bits."""

    middles: Objects  # integers, one vector a row
    errors: Objects  # how far each may be off, as Euclidean length


# Proof: docs/proofs/pairs.md, lemma 5.
def rounded_tables(both: Sequence[Drawn], factor: Fraction, pairs: Pairs) -> Integers:
    """Return the entries of A - A' in the tables of all columns, then of pairs, rounded to nearest: int64."""
    bits = _BITS + 2 * max(map(len, both[0].frames))
    while True:
        one, other = (_enclosed(drawn, factor, pairs, bits) for drawn in both)
        if one is not None and other is not None:
            half = 1 << (2 * bits - 1)
            below = one[0] - other[1] + half >> 2 * bits
            above = one[1] - other[0] + half >> 2 * bits
            if (below == above).all():
                return clipped(below.tolist())
        bits *= 2


# Proof: docs/proofs/pairs.md, lemma 5.
def _enclosed(drawn: Drawn, factor: Fraction, pairs: Pairs, bits: int) -> tuple[Objects, Objects] | None:
    """Enclose the entries of A in units of 4^-bits, or return None where more digits are needed."""
    least, most = _sum_of_squares(drawn.total, bits)
    low, high = (factor * least).__floor__(), (factor * most).__ceil__()  # the total, in units of 2^-bits
    shares, vectors = list[tuple[Objects, Objects]](), list[Balls]()
    for frame, numbers in zip(drawn.frames, drawn.shares, strict=True):
        sums = [_sum_of_squares(some, bits) for some in numbers]
        share = _shares(sums, bits)
        axes = _frame(frame, bits)
        if share is None or axes is None:
            return None
        shares.append(share)
        vectors.append(_without_total(*share, axes, bits))
    parts = [share for share, _ in shares]
    margins = [error for _, error in shares]
    for a, b in pairs:
        one, other = vectors[a], vectors[b]
        parts.append((one.middles @ other.middles.T + np.outer(parts[a], parts[b]) >> bits).ravel())
        # no vector is longer than 1, no share larger
        of_vectors = _outer_sum(one.errors, other.errors, bits)
        margins.append((of_vectors + _outer_sum(margins[a], margins[b], bits) + 1).ravel())
    part, margin = np.concatenate(parts), np.concatenate(margins)
    below, above = part - margin, part + margin
    ends = np.array([low, high], dtype=object)  # numpy would take numbers from 2^63 on for floats
    return ends[(below < 0).astype(int)] * below, ends[(above >= 0).astype(int)] * above


def _outer_sum(one: Objects, other: Objects, bits: int) -> Objects:
    """Return by how much products of numbers up to 1 are off: e + e' + e e'."""
    both: Objects = one[:, None] + other + (np.outer(one, other) >> bits) + 1
    return both


def _sum_of_squares(numbers: Sequence[Normal], bits: int) -> tuple[int, int]:
    """Enclose a sum of squares, in units of 2^-bits."""
    low, high = 0, 0
    for number in numbers:
        floor = number.floor(bits)
        near, far = sorted((abs(floor), abs(floor + 1)))
        low, high = low + near * near, high + far * far
    return low >> bits, (high >> bits) + 1


# Proof: docs/proofs/pairs.md, lemma 5.
def _shares(sums: Sequence[tuple[int, int]], bits: int) -> tuple[Objects, Objects] | None:
    """Return the shares of enclosed numbers in their sum, and how far each may be off; units of 2^-bits."""
    fewest, most = (sum(ends) for ends in zip(*sums, strict=True))
    if fewest <= 0:
        return None
    below = np.array([(low << bits) // most for low, _ in sums], dtype=object)
    above = np.array([(high << bits) // fewest + 1 for _, high in sums], dtype=object)
    return below + above >> 1, (above - below >> 1) + 1


# Proof: docs/proofs/pairs.md, lemma 5.
def _frame(rows: Sequence[Sequence[Normal]], bits: int) -> Balls | None:
    """Make rows orthonormal one after another (Gram and Schmidt); None where they may depend."""
    one, each = 1 << bits, len(rows[0])
    slack = isqrt(each) + 1  # of a vector whose entries are each off by up to 1 unit
    vectors = np.array([[number.floor(bits) for number in row] for row in rows], dtype=object)
    axes, errors = np.zeros((0, each), dtype=object), np.zeros(0, dtype=object)
    for row in vectors:
        along = axes @ row >> bits
        rest = row - (along @ axes >> bits)
        # |c' q' - c q| <= |c'| |q' - q| + |c' - c|, and c' is off by |q' - q| |row|, the row, and rounding
        each_off = (errors * (isqrt(int(row @ row)) + 1 + np.abs(along)) >> bits) + slack + 2
        error = int(each_off.sum()) + 2 * slack
        size = isqrt(int(rest @ rest))
        if size <= 2 * error:
            return None
        # |v / |v| - w / |w|| <= 2 |v - w| / |v|; the root is rounded down, and so are the entries
        axes = np.vstack([axes, [(rest << bits) // size]])
        errors = np.append(errors, (2 * error + 1) * one // size + slack + 1)
    return Balls(axes, errors)


# Proof: docs/proofs/pairs.md, lemma 5.
def _without_total(shares: Objects, margins: Objects, axes: Balls, bits: int) -> Balls:
    """Return the vectors z (q - z w), with w the sum of z q and z the roots of shares: their sum is 0."""
    roots = np.array([isqrt(max(0, int(low)) << bits) for low in shares - margins], dtype=object)
    tops = np.array([isqrt(int(high) << bits) + 1 for high in shares + margins], dtype=object)
    of_roots, slack = tops - roots, isqrt(axes.middles.shape[1]) + 1
    whole = roots @ axes.middles >> bits
    middles = (roots[:, None] * axes.middles >> bits) - (shares[:, None] * whole >> bits)
    # no root or share, and no |q| or |w|, is above 1
    of_products = of_roots + axes.errors
    of_whole = int(of_products.sum()) + slack
    errors = of_products + margins + of_whole + (margins * of_whole >> bits) + 1 + 2 * slack
    return Balls(middles, errors)
