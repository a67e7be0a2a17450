"""Joint densities of the noise of matrices, integrated on grids: no ratio of neighbours exceeds e^epsilon."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from smalldb.exact.bits import SeededBits
from smalldb.noise.cone import ConeDifference, dimensions

# of two yes/no columns: a row as signs adds to the entries 01, 02, 12 of a matrix
STEP, HALF, REACH = 0.5, 32, 5  # of the grid, its points on either side, where ratios are looked at
SIGNS = np.array([(one, other, one * other) for one, other in product((-1, 1), repeat=2)])
ADDED = [sign * row for row in SIGNS for sign in (-1, 1)]
REPLACED = [row - other for row in SIGNS for other in SIGNS if (row != other).any()]
AXIS = STEP * np.arange(-HALF, HALF)


def of_cone(rate):
    """Of A with one number on the diagonal, semidefinite from a least one on; larger ones are integrated."""
    matrix = np.zeros((2 * HALF, 2 * HALF, 2 * HALF, 3, 3))
    entries = np.meshgrid(AXIS, AXIS, AXIS, indexing="ij")
    for (i, j), value in zip(((0, 1), (0, 2), (1, 2)), entries, strict=True):
        matrix[..., i, j] = matrix[..., j, i] = value
    return np.exp(rate * np.linalg.eigvalsh(matrix)[..., 0])


def of_wishart(x, y):
    """Of A with the diagonal (b, a, a), in proportion to exp(-x b - y a).

    It is semidefinite from a least a on, which solves a quadratic equation; the integral over all larger a is
    exp(-x b - y least) / y.
    """
    v01, v02, v12 = np.meshgrid(AXIS, AXIS, AXIS, indexing="ij", sparse=True)
    u, w = (v01 + v02) / np.sqrt(2), (v01 - v02) / np.sqrt(2)
    s, mixed = u**2 + w**2, (u**2 - w**2) * v12
    found = np.zeros((2 * HALF,) * 3)
    for b in np.exp(np.linspace(np.log(1e-4 / x), np.log(40 / x), 60)):
        least = (s + np.sqrt(np.maximum(s**2 + 4 * b * (b * v12**2 - mixed), 0))) / (2 * b)
        found += b * np.exp(-x * b - y * least)  # b: the nodes are even in its logarithm
    return found


def difference(density):
    """The density of A - A', by autocorrelation; 0 stands in its middle."""
    size = (4 * HALF,) * 3
    spectrum = np.abs(np.fft.rfftn(density / density.sum(), size, axes=(0, 1, 2))) ** 2
    return np.fft.fftshift(np.fft.irfftn(spectrum, size, axes=(0, 1, 2)))


def worst(density, moves):
    """The largest log ratio between two points that one move apart."""
    first, count = 2 * HALF - round(REACH / STEP), 2 * round(REACH / STEP) + 1
    here = np.log(density[(slice(first, first + count),) * 3])
    starts = [[first + round(d / STEP) for d in move] for move in moves]
    there = (density[tuple(slice(start, start + count) for start in some)] for some in starts)
    return max(float((here - np.log(moved)).max()) for moved in there)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("density", "scales", "moves"),
    [
        pytest.param(of_cone, (1.0,), ADDED, id="cone, added"),
        pytest.param(of_cone, (0.5,), REPLACED, id="cone, replaced"),
        *(
            pytest.param(of_wishart, scales, moves, id=f"Wishart, {scales}, {name}")
            for scales in ((0.5, 0.5), (0.25, 0.75))  # odd rows move by half of what signs do
            for name, moves in (("added", ADDED), ("replaced", [move / 2 for move in REPLACED]))
        ),
    ],
)
def test_no_ratio_of_the_joint_density_exceeds_epsilon(density, scales, moves):
    """For epsilon = 1; with .8 of the scale there are larger ones."""
    assert 0.7 < worst(difference(density(*scales)), moves) <= 1
    assert worst(difference(density(*(scale / 0.8 for scale in scales))), moves) > 1.05


@pytest.mark.slow
def test_the_product_of_two_signs_has_the_law_of_that_density():
    """Each ratio of that law is at most epsilon, and the noise that is drawn has it."""
    density, axis = difference(of_cone(1.0)), STEP * np.arange(-2 * HALF, 2 * HALF)
    law = density.sum(axis=(0, 1))
    (column, _), cells = ConeDifference((2, 2), Fraction(1), ((0, 1),)).variances
    (cell,) = cells.values()
    assert law @ axis**2 == pytest.approx(4 * cell, rel=0.02)
    assert density.sum(axis=(1, 2)) @ axis**2 == pytest.approx(4 * column - 2 * dimensions((2, 2)), rel=0.02)
    noise, source, signs = ConeDifference((2, 2), Fraction(1, 100), ((0, 1),)), SeededBits(6), [1, -1, -1, 1]
    drawn = np.array([noise.draw(8, source)[4:] @ signs for _ in range(600)]) / 100

    def fit(scale):
        return stats.kstest(drawn, lambda x: np.interp(x / scale, axis + STEP / 2, law.cumsum())).pvalue

    assert fit(1.0) > 1e-6
    assert max(fit(0.6), fit(1.6)) < 1e-6
