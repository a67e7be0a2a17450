"""The tables of a matrix that was drawn from the cone, from normal numbers: exactly rounded."""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import NamedTuple, TypeAlias

import numpy as np

from queries.arrays import Objects
from queries.domain import Integers
from smalldb.exact.integers import clipped
from smalldb.exact.normals import Normal

_BITS = 64  # of each normal number that are looked at first, and two more for each category of a column

Pairs: TypeAlias = Sequence[tuple[int, int]]


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
    given = np.array([[number.floor(bits) for number in row] for row in rows], dtype=object)
    found, errors = np.zeros((0, each), dtype=object), np.zeros(0, dtype=object)
    for row in given:
        along = found @ row >> bits
        left = row - (along @ found >> bits)
        # |c' q' - c q| <= |c'| |q' - q| + |c' - c|, and c' is off by |q' - q| |row|, the row, and rounding
        each_off = (errors * (isqrt(int(row @ row)) + 1 + np.abs(along)) >> bits) + slack + 2
        error = int(each_off.sum()) + 2 * slack
        size = isqrt(int(left @ left))
        if size <= 2 * error:
            return None
        # |v / |v| - w / |w|| <= 2 |v - w| / |v|; the root is rounded down, and so are the entries
        found = np.vstack([found, [(left << bits) // size]])
        errors = np.append(errors, (2 * error + 1) * one // size + slack + 1)
    return Balls(found, errors)


# Proof: docs/proofs/pairs.md, lemma 5.
def _without_total(shares: Objects, margins: Objects, axes: Balls, bits: int) -> Balls:
    """Return the vectors z (q - z w), with w the sum of z q and z the roots of shares: their sum is 0.

    With a q for each category, their scalar products are z^2 on the diagonal, less z^2 z'^2 everywhere.
    """
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
