"""What noise distributions say of themselves: variances, quantiles and losses, by the definition."""

import json
from fractions import Fraction
from itertools import accumulate, product
from math import log, sqrt

import naive
import numpy as np
import pytest
from margins import law_of
from scipy import stats

from smalldb.exact.bits import SeededBits
from smalldb.noise.cone import dimensions
from smalldb.noise.distributions import (
    ConeDifference,
    DiscreteGaussian,
    Geometric,
    KNorm,
    WishartDifference,
    read,
)
from smalldb.noise.noise_protocol import Moved
from smalldb.noise.privacy_loss import Loss
from smalldb.noise.tails import level_quantile, log_concave_quantile

EVERY = [
    Geometric(Fraction(1, 3)),
    DiscreteGaussian(Fraction(7, 2)),
    WishartDifference(2, Fraction(1, 40), Fraction(1, 10), ((0, 0), (0, 2), (1, 2))),
    ConeDifference((2, 3), Fraction(1, 5), ((0, 1),)),
    KNorm((2, 3), Fraction(1, 5), False),
]
COUNTS = [3, 3, 3, 11, 5]
WEIGHTS = [None, [1], [-2], [0, 1, 0], [1, 1, 1, 1], [1, -1], [0.5, 0.25, -0.25, 1], [3, 0.125, 0.125], [0.0]]
FAILURES = [Fraction(1, 5), Fraction(1, 20), Fraction(1, 1000)]


@pytest.mark.parametrize("noise", EVERY, ids=lambda noise: noise.name)
def test_records_hold_noise(noise):
    written = json.loads(json.dumps(noise.parameters))
    assert read(noise.name, written) == noise and len({noise, read(noise.name, written)}) == 1


def test_records_of_other_noise_are_refused():
    with pytest.raises(ValueError, match="no noise is called 'white': use one of"):
        read("white", {})
    with pytest.raises(ValueError, match="K-norm noise has other parameters"):
        read("K-norm", {"rate": "1/2"})
    with pytest.raises(ValueError, match=r"before version 0\.3: read the record with the version it names"):
        read("cube", {"count": 3, "rate": "1/2"})


@pytest.mark.parametrize(("noise", "count"), [*zip(EVERY, COUNTS, strict=True)], ids=str)
def test_values_are_whole_and_as_many_as_asked_for(noise, count):
    drawn = noise.draw(count, SeededBits(1))
    assert drawn.dtype == np.int64 and drawn.shape == (count,)
    if noise not in EVERY[:2]:
        with pytest.raises(ValueError, match=f"of {count} values at once, not of 2"):
            noise.draw(2, SeededBits(1))


def law_of_sum(noise, weights):
    """The law of eight times a combination whose weights are eighths: by convolution."""
    one = law_of(noise, 400)
    found = np.ones(1)
    for weight in map(int, 8 * np.array([1] if weights is None else weights)):
        spaced = np.zeros(800 * abs(weight) + 1)
        spaced[:: max(1, abs(weight))] += one if weight else one.sum()
        found = np.convolve(found, spaced if weight else np.ones(1))
    return np.arange(len(found)) - len(found) // 2, found


INDEPENDENT = [
    *EVERY[:2],
    Geometric(Fraction(3)),
    DiscreteGaussian(Fraction(1, 3)),
    DiscreteGaussian(Fraction(80)),
]


@pytest.mark.parametrize("noise", INDEPENDENT, ids=lambda noise: str(noise.parameters))
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_sums_of_independent_noise(noise, weights):
    eighths, probabilities = law_of_sum(noise, weights)
    assert noise.variance(weights) == pytest.approx(float(eighths**2 @ probabilities) / 64, rel=1e-9)

    def rare(r, failure):
        return probabilities[abs(eighths) > 8 * r].sum() <= failure * (1 + 1e-9)

    for failure in FAILURES:
        found = noise.quantile(weights, failure)
        assert rare(found, failure)
        if weights is None:
            assert isinstance(noise, DiscreteGaussian) or not found or not rare(found - 1, failure)
        # bounds of sums are not exact: but for the steps of a sum, they are no more than twice as large
        assert not found or not rare(found / 2 - 2 * max(map(abs, weights or [1])), failure)


@pytest.mark.parametrize(("count", "rate"), [(1, Fraction(1, 3)), (10, Fraction(1)), (40, Fraction(7, 2))])
def test_quantiles_of_levels_are_exact(count, rate):
    """Of radii R with (2 R + 1)^count points each, by their definition; of a wide law, a bit above."""
    unit, levels, powers = 1 << 400, range(600), [1 << 400]
    for _ in levels:
        powers.append(powers[-1] * int(naive.exp_minus(rate) * unit) // unit)
    law = list(accumulate((2 * r + 1) ** count * powers[r] for r in levels))
    for failure in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**6)):
        found = level_quantile(lambda r: 2 * r + 1, rate, failure, power=count)
        assert found == next(r for r in levels if law[r] >= (1 - failure) * law[-1])
        wide = level_quantile(lambda r: 2 * r + 1, rate / 10**7, failure, power=count)
        limit = stats.gamma(count + 1).isf(float(failure)) / float(rate) * 10**7
        assert -1e-3 < (wide - limit) * float(rate) / 10**7 < 0.25


def test_log_concave_numbers_stay_within():
    """Laplace numbers are the widest of them: for these it is not far off."""
    for failure in [Fraction(1, 2), *FAILURES, Fraction(1, 10**9), Fraction(1, 10**400)]:
        found = log_concave_quantile(2.0, failure)
        odds = log(failure.denominator) - log(failure.numerator)
        assert odds < found < odds + 1.5 + log(odds + 2)
        if failure > 1e-300:
            for law in (stats.laplace(), stats.norm(scale=sqrt(2)), stats.uniform(-sqrt(6), 2 * sqrt(6))):
                assert law.var() == pytest.approx(2) and 2 * law.sf(found) <= failure


def worst_ratio(law, other):
    return max(abs(log(a / b)) for a, b in zip(law, other, strict=True) if min(a, b) > 1e-250)


def test_losses_of_independent_noise():
    """Two values that move by 1 and by 2: the loss and the divergences of their laws."""
    geometric, gaussian = Geometric(Fraction(1, 3)), DiscreteGaussian(Fraction(7, 2))
    lost, proved = 0.0, {order: 0.0 for order in (1.001, 2, 8, 64)}
    for move in (1, 2):
        law = law_of(geometric, 400)
        law, other = law[300:500], np.roll(law, move)[300:500]
        lost += worst_ratio(law, other)
        for order in proved:
            proved[order] += log(law @ (law / other) ** (order - 1)) / (order - 1)
    assert geometric.lost(Moved(3)) == Fraction(1) and lost == pytest.approx(1)
    found = Loss.pure(Fraction(1))
    assert found.rho < Fraction(1, 2) and all(value <= order * found.rho for order, value in proved.items())
    assert gaussian.lost(Moved(3, 1 + 4)) == Fraction(5, 7)
    x = np.arange(-400, 401)
    divergence = sum(
        log(sum(np.exp(-(2 * x**2 - (x - move) ** 2) / 7.0) / np.exp(-(x**2) / 7.0).sum())) for move in (1, 2)
    )  # of order 2: it is 2 rho
    assert divergence == pytest.approx(10 / 7)


def test_losses_of_joint_noise():
    """Two yes/no columns whose rows are replaced: as likely as the larger of two moves is small."""
    reach = np.abs(np.arange(-30, 31))
    table = np.exp(-np.maximum(reach[:, None], reach) / 2)
    table /= table.sum()
    moved = np.roll(table, (1, 1), axis=(0, 1))
    inner = slice(5, 55)
    lost = worst_ratio(table[inner, inner].ravel(), moved[inner, inner].ravel())
    replaced = Moved(0, rows=2, paired=True)
    assert KNorm((2, 2), Fraction(1, 2), True).lost(replaced) == Fraction(1, 2)
    assert KNorm((2, 2), Fraction(1, 2), False).lost(replaced) == 1
    assert lost == pytest.approx(0.5)
    assert EVERY[2].lost(Moved(0)) == Fraction(1, 8)
    assert EVERY[2].lost(replaced) == Fraction(1, 8)
    assert (EVERY[3].lost(Moved(0)), EVERY[3].lost(replaced)) == (Fraction(1, 5), Fraction(2, 5))
    with pytest.raises(AssertionError, match="hides none that is added"):
        KNorm((2, 2), Fraction(1, 2), True).lost(Moved(0))


def test_weights_must_fit():
    for noise in EVERY[3:]:
        with pytest.raises(ValueError):
            noise.variance([1.0, 2.0])
        with pytest.raises(ValueError):
            noise.quantile([1.0, 2.0], Fraction(1, 2))


def test_quantiles_of_a_tiny_rate_are_whole():
    noise = Geometric(Fraction(1, 10**12))
    assert noise.quantile(None, Fraction(1, 10)) == pytest.approx(1e12 * log(10), rel=1e-6)
    assert (
        Geometric(Fraction(600)).variance() == 0.0 == Geometric(Fraction(600)).quantile(None, Fraction(1, 10))
    )


# Joint densities, integrated on grids: no ratio of neighbours exceeds e^epsilon

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
