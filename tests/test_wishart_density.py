"""The joint density of a Wishart difference of two attributes, integrated: no ratio exceeds e^epsilon."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from smalldb.noise.wishart import even_moments

STEP, HALF, REACH = 0.5, 24, 5  # of the grid, its points on either side, where ratios are looked at
SIGNS = [
    (one, other, one * other) for one, other in product((-1, 1), repeat=2)
]  # of rows: entries 01, 02, 12
MOVES = {
    "replace-one": {tuple((np.array(row) - other) // 2) for row in SIGNS for other in SIGNS if row != other},
    "add-remove": {tuple(sign * np.array(row)) for row in SIGNS for sign in (-1, 1)},
}


def one_sided(x, y):
    """The density of the entries 01, 02, 12 of A on the grid, unnormalised.

    A has the diagonal (b, a, a). It is positive semidefinite from a least a on, which solves a quadratic
    equation, and the integral of exp(-x b - y a) over all larger a is exp(-x b - y least) / y.
    """
    axis = STEP * np.arange(-HALF, HALF)
    v01, v02, v12 = np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)
    u, w = (v01 + v02) / np.sqrt(2), (v01 - v02) / np.sqrt(2)
    s, mixed = u**2 + w**2, (u**2 - w**2) * v12
    found = np.zeros((2 * HALF,) * 3)
    for b in np.exp(np.linspace(np.log(1e-4 / x), np.log(40 / x), 60)):
        least = (s + np.sqrt(np.maximum(s**2 + 4 * b * (b * v12**2 - mixed), 0))) / (2 * b)
        found += b * np.exp(-x * b - y * least)  # b: the nodes are even in its logarithm
    return found / found.sum()


def difference(x, y):
    """The density of A - A', by autocorrelation; 0 stands in the middle of the grid."""
    size = (4 * HALF,) * 3
    spectrum = np.abs(np.fft.rfftn(one_sided(x, y), size, axes=(0, 1, 2))) ** 2
    return np.fft.fftshift(np.fft.irfftn(spectrum, size, axes=(0, 1, 2)))


def worst(density, moves):
    """The largest log ratio between two points that one move apart."""
    unit, middle = round(1 / STEP), 2 * HALF
    reach = round(REACH / STEP)
    near = slice(middle - reach - unit, middle + reach + unit + 1)
    logs = np.log(density[near, near, near])
    inner = logs[(slice(unit, -unit),) * 3]
    moved = (
        logs[tuple(slice(unit * (1 + d), unit * (1 + d) + 2 * reach + 1) for d in move)] for move in moves
    )
    return max(float((inner - other).max()) for other in moved)


@pytest.mark.parametrize(("x", "y"), [(0.5, 0.5), (0.25, 0.75)])
def test_no_ratio_of_the_joint_density_exceeds_epsilon(x, y):
    """For x + y = epsilon = 1; with .8 of the scale there are larger ones."""
    density, narrow = difference(x, y), difference(x / 0.8, y / 0.8)
    for moves in MOVES.values():
        assert 0.7 < worst(density, moves) <= 1
        assert worst(narrow, moves) > 1.05


@pytest.mark.parametrize(("x", "y"), [(0.5, 0.5), (0.25, 0.75)])
def test_the_density_has_the_variances_that_plans_count_on(x, y):
    density, axis = difference(x, y), STEP * np.arange(-2 * HALF, 2 * HALF)
    for order, kept in ((1, 0), (2, 2)):
        marginal = density.sum(axis=tuple({0, 1, 2} - {kept}))
        wanted = float(even_moments(2, order, Fraction(x), Fraction(y), 2)[1])
        assert marginal @ axis**2 == pytest.approx(wanted, rel=0.1)  # the grid cuts off tails
