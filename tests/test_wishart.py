"""Wishart-difference noise: exact normal numbers, exact rounding, privacy by another method, tails."""

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margins import ScriptedBits
from scipy import stats

from smalldb.exact import integers as drawing_module
from smalldb.exact.bits import SeededBits
from smalldb.exact.coins import Uniform
from smalldb.exact.normals import Normal, normals
from smalldb.marginals.strategies.choosing_parities import TILTS
from smalldb.noise import wishart as wishart_module
from smalldb.noise.tails import laplace_sum_quantile, laplace_sum_tail, moment_quantile
from smalldb.noise.wishart import (
    Drawn,
    WishartDifference,
    degrees,
    entry_quantile,
    even_moments,
    rates,
    rounded_entries,
)

PAIRS3 = tuple((i, j) for i in range(3) for j in range(i, 3))


def test_normal_numbers_have_their_law():
    drawn = np.array([x.floor(50) for x in normals(12_000, SeededBits(1))]) / 2.0**50
    assert stats.kstest(drawn, "norm").pvalue > 1e-6
    assert stats.kstest(drawn * 1.1, "norm").pvalue < 1e-6
    assert stats.kstest(drawn + 0.08, "norm").pvalue < 1e-6
    for moment, wanted, deviation in ((1, 0, 1), (2, 1, 2**0.5), (4, 3, 96**0.5)):
        assert abs((drawn**moment).mean() - wanted) < 4 * deviation / len(drawn) ** 0.5


def test_the_digits_of_a_normal_number_are_those_of_one_number():
    for x in normals(50, SeededBits(2)):
        deep = x.floor(200)
        assert [x.floor(bits) for bits in (1, 30, 64, 150)] == [deep >> (200 - b) for b in (1, 30, 64, 150)]


def fresh(d, seed):
    """Two times the numbers behind A; each with digits of its own, so that their order does not matter."""
    generator = np.random.default_rng(seed)

    def some(count):
        signs, wholes = 1 - 2 * generator.integers(0, 2, count), generator.integers(0, 3, count)
        return [
            Normal(int(sign), int(whole), Uniform(SeededBits(int(generator.integers(2**40))), 32))
            for sign, whole in zip(signs, wholes, strict=True)
        ]

    low, high = degrees(d)
    return [Drawn([some(d + 2) for _ in range(d + 1)], some(low), some(high)) for _ in range(2)]


def by_definition(drawn, factors):
    """A from its numbers, to about 40 digits."""
    exact = [[Fraction(x.floor(400), 2**400) for x in row] for row in (*drawn.rows, *drawn[1:])]
    g = exact[:-2]
    sums = [factor * sum(x * x for x in row) for factor, row in zip(factors, exact[-2:], strict=True)]
    diagonal = [sums[0]] + [sums[1]] * (len(g) - 1)

    def dot(one, other):
        return sum(a * b for a, b in zip(one, other, strict=True))

    with localcontext(prec=60):
        roots = [Decimal(r.numerator) / r.denominator for r in diagonal]
        norms = [Decimal(r.numerator) / r.denominator for r in (dot(row, row) for row in g)]
        dots = [[dot(one, other) for other in g] for one in g]
        return [
            [
                Decimal(dots[i][j].numerator)
                / dots[i][j].denominator
                * (roots[i] * roots[j] / (norms[i] * norms[j])).sqrt()
                for j in range(len(g))
            ]
            for i in range(len(g))
        ]


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(0, 2**30), st.integers(1, 400), st.sampled_from([1, 5, 64]))
def test_entries_are_rounded_as_by_definition(d, seed, size, bits):
    """With a first look that is too short, more digits are asked for."""
    pairs = [(i, j) for i in range(d + 1) for j in range(i, d + 1)]
    factors = [Fraction(size, 7), Fraction(size + 3, 5)]
    one, other = (by_definition(drawn, factors) for drawn in fresh(d, seed))
    wanted = [int((one[i][j] - other[i][j]).to_integral_value(ROUND_HALF_EVEN)) for i, j in pairs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wishart_module, "_BITS", bits)
        assert rounded_entries(fresh(d, seed), factors, pairs).tolist() == wanted


def test_an_entry_depends_on_no_first_look_and_both_matrices_may_change_sides(monkeypatch):
    for seed in range(8):
        factors = [Fraction(seed + 1, 7), Fraction(seed + 3, 5)]
        wanted = rounded_entries(fresh(2, seed), factors, PAIRS3)
        assert (rounded_entries(fresh(2, seed)[::-1], factors, PAIRS3) == -wanted).all()
        with monkeypatch.context() as patch:
            patch.setattr(wishart_module, "_BITS", 1)
            assert (rounded_entries(fresh(2, seed), factors, PAIRS3) == wanted).all()


@pytest.mark.parametrize("leaning", [1, -1])
def test_few_digits_enclose_what_many_tell(leaning):
    """Numbers of one bit at either end of what it says, beside a row or sums that are known well."""

    def some(kinds):
        return [Normal(sign, size, Uniform(ScriptedBits("0" + end * 99), 1)) for sign, size, end in kinds]

    well, close = [(1, 1 << 60, "0")] * 3, [(1, 0, "1"), (1, 2, "0"), (1, 2, "1"), (-1, 0, "0")]
    lone, factors = [(leaning, 1 << 60, "0"), *[(1, 0, "0")] * 2], [Fraction(2**200, 7), Fraction(2**200, 5)]
    cases = [([each, lone], well) for each in product(close, repeat=3)]
    cases += [([each, [(-1, 0, "1")] * 3], well) for each in product(close[:2], repeat=3)]
    cases += [([well, [(leaning, *one[1:]) for one in well]], [each] * 3) for each in close]
    for rows, sums in cases:
        drawn = Drawn([some(row) for row in rows], some(sums), some(sums))
        few, many = (wishart_module._enclosed(drawn, factors, bits) for bits in (1, 80))
        if few is not None:
            assert (few[0] * 16**79 <= many[0]).all() and (many[1] <= few[1] * 16**79).all()


def test_noise_that_does_not_fit_is_cut_off(monkeypatch):
    monkeypatch.setattr(drawing_module, "CLIP", 5)
    drawn = WishartDifference(2, Fraction(1, 1000), Fraction(1, 1000), tuple(PAIRS3)).draw(
        len(PAIRS3), SeededBits(1)
    )
    assert set(np.abs(drawn)) <= set(range(6))
    assert 5 in np.abs(drawn)


def float_noise(trials, x, y, generator):
    """A - A' for d = 2: gammas, and correlation matrices by rejection from a cube, not from normals."""

    def one():
        r = np.empty((0, 3))
        while len(r) < trials:
            some = generator.uniform(-1, 1, (3 * trials, 3))
            determinant = 1 + 2 * some.prod(axis=1) - (some**2).sum(axis=1)
            r = np.concatenate([r, some[determinant > 0]])
        b, a = generator.gamma(2, 1 / x, trials), generator.gamma(3, 1 / y, trials)
        both = np.sqrt(a * b)
        entries = b, both * r[:trials, 0], both * r[:trials, 1], a, a * r[:trials, 2], a
        return np.array(entries).T

    return one() - one()


@pytest.mark.slow
def test_noise_has_its_law():
    """Each entry, and a product of two, against noise of floats; at twice the scale it is refused."""
    x, y, trials, source = Fraction(1, 40), Fraction(1, 10), 200, SeededBits(3)
    drawn = np.array(
        [WishartDifference(2, x, y, tuple(PAIRS3)).draw(len(PAIRS3), source) for _ in range(trials)]
    )
    model = float_noise(20_000, 1 / 40, 1 / 10, np.random.default_rng(1))
    for column in range(6):
        assert stats.ks_2samp(drawn[:, column], model[:, column]).pvalue > 1e-6
        assert stats.ks_2samp(drawn[:, column], 3 * model[:, column]).pvalue < 1e-6
    assert (drawn[:, 3] == drawn[:, 5]).all()
    both = model[:, 1] * model[:, 4]
    assert stats.ks_2samp(drawn[:, 1] * drawn[:, 4], both).pvalue > 1e-6


def test_linear_combinations_have_the_variance_and_the_quantiles_that_are_stated():
    noise = WishartDifference(2, Fraction(1, 40), Fraction(1, 10), ((0, 0), (0, 1), (1, 2), (0, 2)))
    entries = float_noise(100_000, 1 / 40, 1 / 10, np.random.default_rng(2))[:, [0, 1, 4, 2]]
    for weights in (*np.eye(4), [1, 1, 1, 1], [0, 2, -1, 0.5], [0.5, 3, 0, -3]):
        sums, stated = entries @ weights, noise.variance(weights)
        squared = sums**2
        assert abs(squared.mean() - stated) < 4.5 * squared.std() / 100_000**0.5 < 0.1 * stated
        for failure in (Fraction(1, 10), Fraction(1, 1000)):
            within = noise.quantile(weights, failure)
            assert (abs(sums) > within).mean() <= failure * 1.3
            assert (abs(sums) > within / 2).mean() > failure
    # of the one that varies most: the first
    assert noise.variance() == noise.variance([1, 0, 0, 0])
    assert noise.quantile(None, failure) == noise.quantile([1, 0, 0, 0], failure)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_cone_holds_every_row_and_costs_epsilon(d):
    """u u^T is semidefinite with the diagonal (1, 1, ..., 1); both halves of a replacement cost epsilon."""
    epsilon = Fraction(3, 7)
    for tilt in TILTS:
        x, y = rates(epsilon, tilt)
        assert min(x, y) > 0
        for u in product((1, -1), repeat=d + 1):
            moved = np.outer(u, u)
            assert np.linalg.eigvalsh(moved).min() > -1e-9
            assert x * int(moved[0, 0]) + y * int(moved[1, 1]) == epsilon
            assert (np.diag(moved)[1:] == moved[1, 1]).all()
    assert sum(degrees(d)) == 2 * (d * (d + 1) // 2 + 2)  # the dimensions of the cone


def test_the_cone_is_split_into_gammas_and_correlations():
    """Uniform points of the cone for d = 2, with b + a at most 1, found by rejection from a box."""
    b, a, one, two, three = (
        np.random.default_rng(3).uniform([0, 0, -0.5, -0.5, -1], [1, 1, 0.5, 0.5, 1], (600_000, 5)).T
    )
    determinant = b * a * a + 2 * one * two * three - b * three**2 - a * (one**2 + two**2)
    kept = (b + a <= 1) & (b * a > one**2) & (a > np.abs(three)) & (determinant > 0)
    share, correlation = a[kept] / (a + b)[kept], (three / a)[kept]
    low, high = degrees(2)
    assert stats.kstest(share, stats.beta(high / 2, low / 2).cdf).pvalue > 1e-6
    assert stats.kstest(share, stats.beta(high / 2 - 0.25, low / 2).cdf).pvalue < 1e-6
    assert stats.kstest((correlation + 1) / 2, stats.beta(1.5, 1.5).cdf).pvalue > 1e-6
    assert abs(np.corrcoef(share, correlation**2)[0, 1]) < 0.02


def test_one_attribute_has_the_wishart_law():
    """Then V_01 is a sum of three Laplace numbers over 2 sqrt(x y): moments 6 and 144."""
    x, y = Fraction(1, 3), Fraction(2, 5)
    assert even_moments(1, 1, x, y, 3) == [1, 6 / (4 * x * y), 144 / (4 * x * y) ** 2]


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_moments_of_entries(d, order):
    generator, trials = np.random.default_rng(d), 400_000
    low, high = degrees(d)

    def one():
        b, a = generator.gamma(low / 2, 1 / 0.25, trials), generator.gamma(high / 2, 1 / 0.75, trials)
        g = generator.standard_normal((2, trials, d + 2))
        cosine = (g[0] * g[1]).sum(axis=1) / np.sqrt((g**2).sum(axis=2).prod(axis=0))
        return np.sqrt(a * (b if order == 1 else a)) * cosine

    drawn = one() - one()
    exact = even_moments(d, order, Fraction(1, 4), Fraction(3, 4), 4)
    for m in (1, 2, 3):
        powers = drawn ** (2 * m)
        assert abs(powers.mean() - float(exact[m])) < 5 * powers.std() / trials**0.5
    assert exact[0] == 1


@pytest.mark.parametrize("tilt", [Fraction(1, 4), Fraction(5, 8)])
@pytest.mark.parametrize("d", [2, 6])
def test_the_privacy_loss_of_one_count(d, tilt):
    """A second method for more attributes: the law of one entry of order 2 from its characteristic function.

    Given the angle, a cos is a gamma number times a constant. One row moves an odd count by 1 at most.
    """
    epsilon, size, step = 0.8, 1 << 12, 1 / 8
    y = float(rates(Fraction(4, 5), tilt)[1])
    angles = (np.arange(800) + 0.5) / 800 * np.pi
    weights = np.sin(angles) ** d  # a direction in d + 2 dimensions against a given one
    frequencies = 2 * np.pi * np.fft.fftfreq(size, step)
    each = (1 - 1j * frequencies[:, None] * np.cos(angles) / y) ** (-degrees(d)[1] / 2)
    law = np.fft.fftshift(np.fft.ifft((each.real @ weights / weights.sum()) ** 2).real)
    shift = round(1 / step)
    here, moved = law[shift:], law[:-shift]
    kept = np.minimum(here, moved) > 1e-6 * law.max()
    worst = np.abs(np.log(here[kept] / moved[kept])).max()
    assert 0.15 * epsilon < worst <= epsilon
    variance = (law * ((np.arange(size) - size // 2) * step) ** 2).sum() / law.sum()
    assert abs(variance / float(even_moments(d, 2, *rates(Fraction(4, 5), tilt), 2)[1]) - 1) < 0.01


@pytest.mark.parametrize("count", [1, 2, 7])
def test_tails_of_laplace_sums(count):
    drawn = np.random.default_rng(count).laplace(size=(200_000, count)).sum(axis=1)
    for x in (Fraction(0), Fraction(3, 2), Fraction(5)):
        tail = laplace_sum_tail(count, x)
        assert tail.low <= tail.high
        wanted = float(tail.high)
        assert abs((drawn >= float(x)).mean() - wanted) < 5 * (wanted / len(drawn)) ** 0.5
    assert abs(float(laplace_sum_tail(1, Fraction(5)).high) - np.exp(-5.0) / 2) < 1e-15
    unit, failure = Fraction(9, 2), Fraction(1, 20)
    least = laplace_sum_quantile(count, unit, failure)
    fail = [2 * laplace_sum_tail(count, (end + Fraction(1, 2)) / unit).high for end in (least, least - 1)]
    assert fail[0] <= failure < fail[1]


@pytest.mark.parametrize("order", [1, 2])
def test_quantiles_of_entries_of_a_wishart_difference(order):
    """They hold, and are at most a quarter too wide where noise is as rare as this."""
    drawn = float_noise(200_000, 0.05, 0.2, np.random.default_rng(5))[:, {1: 1, 2: 4}[order]]
    for failure in (Fraction(1, 20), Fraction(1, 400)):
        found = entry_quantile(2, order, Fraction(1, 20), Fraction(1, 5), failure)
        assert (np.abs(np.round(drawn)) > found).mean() <= float(failure)
        assert (np.abs(np.round(drawn)) > found / 1.25).mean() > float(failure) / 2


@pytest.mark.parametrize("d", [1, 3])
def test_the_diagonal_spreads_less_than_what_stands_for_it(d):
    """n's noise is a difference of gammas of shape (d + 2) / 2 over x; the bound rounds that up."""
    one, other = (stats.chi2(degrees(d)[0]).rvs(200_000, random_state=seed) / 2 for seed in (1, 2))
    noise = WishartDifference(d, Fraction(1, 100), Fraction(1, 100), ((0, 0),))
    for failure in (Fraction(1, 20), Fraction(1, 1000)):
        assert (100 * abs(one - other) > noise.entry_quantile(0, failure)).mean() < failure


def test_a_bound_by_moments_is_of_the_rounded_number():
    """One that is always 2.6 or -2.6 is always 3 or -3."""
    assert moment_quantile({m: Fraction(26, 10) ** (2 * m) for m in (1, 2)}, Fraction(99, 100)) == 3


def test_no_end_of_an_entry_is_a_float():
    """With roots on both sides of 2^63, numpy would make a list of whole numbers into floats."""
    factors = [Fraction(1, 10), Fraction(1, 40)]
    sides = set()
    for seed in range(60):
        source = SeededBits(seed)
        drawn = Drawn([normals(4, source) for _ in range(3)], normals(4, source), normals(6, source))
        found = wishart_module._enclosed(drawn, factors, 64)
        assert found is not None
        assert {type(end) for table in found for end in table.ravel()} == {int}
        roots = [
            (factor * sum(x.floor(64) ** 2 for x in numbers) / sum(x.floor(64) ** 2 for x in row))
            for row, numbers, factor in zip(
                drawn.rows, (drawn.first, drawn.rest, drawn.rest), factors + factors[1:], strict=True
            )
        ]
        sides.add(min(roots) < Fraction(1, 4) <= max(roots) < 1)
    assert True in sides
