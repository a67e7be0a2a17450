"""Wishart-difference noise: one symmetric matrix for all 1- and 2-way answers at once.

A row with signs u = (1, chi_1, ..., chi_d) adds u u^T to a matrix, p x p, whose entries are the sums of all
parities of order 1 and 2. The noise is V = W - W', two Wishart matrices of p + 1 degrees of freedom. Their
density is exp(-tr(S^-1 W) / (2 scale)) on a cone, so moving the matrix by a semidefinite D changes the law of
V by at most exp(tr(S^-1 D) / (2 scale)): the decision record has the proof.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from queries.domain import Integers
from smalldb.answers.drawing import clipped
from smalldb.answers.normals import Normal, normals
from smalldb.randomness import BitSource

_BITS = 64  # of each normal number that are looked at first


def trace(attributes: int, root: Fraction) -> Fraction:
    """Return tr(S^-1 u u^T), the same for all rows; S = diag(root^2, 1, ..., 1)."""
    return 1 / root**2 + attributes


def scale(attributes: int, root: Fraction, epsilon: Fraction) -> Fraction:
    """
    Return the scale s of noise that is epsilon-DP: trace / (2 epsilon), under either relation.

    Replace-one, where odd rows are counted (half of a sum of signs): the matrix moves by u u^T / 2 up and
    v v^T / 2 down. Add-remove, where signs are summed: by u u^T. The traces come to the same.
    """
    return trace(attributes, root) / (2 * epsilon)


def wishart_noise(
    scale: Fraction, roots: Sequence[Fraction], pairs: Sequence[tuple[int, int]], source: BitSource
) -> Integers:
    """
    Draw the entries of V at the pairs, rounded to nearest, exactly; int64, shape (len(pairs),).

    V = scale R (G G^T - H H^T) R with R = diag(roots), and G and H of independent standard normal numbers,
    shape (p, p + 1). As many digits of these are drawn as it takes to know every rounded entry, so what
    is returned is a function of the ideal V. Cost: 2 p (p + 1) normal numbers, 2 p^2 (p + 1) products.
    """
    p = len(roots)
    drawn, width = normals(2 * p * (p + 1), source), 2 * (p + 1)
    numbers = [drawn[row * width : (row + 1) * width] for row in range(p)]
    return rounded_entries(numbers, [scale * roots[i] * roots[j] for i, j in pairs], pairs)


def rounded_entries(
    numbers: Sequence[Sequence[Normal]], factors: Sequence[Fraction], pairs: Sequence[tuple[int, int]]
) -> Integers:
    """
    Return the entries of G G^T - H H^T at the pairs, times factors, rounded to nearest: exact; int64.

    Parameters
    ----------
    numbers
        The rows of G, each continued by the same row of H.
    """
    bits = _BITS
    while True:
        low, high = _products(numbers, bits)
        ends = [
            [_nearest(int(end[pair]), factor, 2 * bits + 2) for end in (low, high)]
            for pair, factor in zip(pairs, factors, strict=True)
        ]
        if all(below == above for below, above in ends):
            return clipped([value for value, _ in ends])
        bits *= 2


def _products(
    numbers: Sequence[Sequence[Normal]], bits: int
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Enclose G G^T - H H^T, in units of 4^-(bits + 1).

    A number lies within 1 of an odd whole number of half units a, so a product of two within
    |a| + |b| + 1 of a b.
    """
    middles = np.array([[2 * x.floor(bits) + 1 for x in row] for row in numbers], dtype=object)
    half = middles.shape[1] // 2
    products = middles[:, :half] @ middles[:, :half].T - middles[:, half:] @ middles[:, half:].T
    sizes = np.abs(middles).sum(axis=1)
    margins = sizes[:, None] + sizes + 2 * half
    return products - margins, products + margins


def _nearest(value: int, factor: Fraction, shift: int) -> int:
    """Return floor(value factor / 2^shift + 1/2)."""
    below = factor.denominator << (shift + 1)
    return ((value * factor.numerator << 1) + (factor.denominator << shift)) // below
