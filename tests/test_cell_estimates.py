"""Cells read by empirical Bayes: the posterior by its definition, the shape, and what is gained."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from asking import release_tables
from builders import each_once, universe
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

import smalldb
from queries import Column, Domain, Marginals
from smalldb.exact.bits import SeededBits
from smalldb.kernels import cell_sums as kernel
from smalldb.kernels.cell_sums import posterior
from smalldb.marginals.estimate.cell_estimates import (
    EXACTLY,
    ITERATIONS,
    SCALES,
    CellCounts,
    Contrasts,
    maximum_entropy,
    minimised,
    prior_spread,
    read_cells,
)
from smalldb.marginals.estimate.column_estimates import pooled
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.noise.distributions import Geometric


@pytest.mark.parametrize("rate", [0.05, 0.7, 40.0])
@pytest.mark.parametrize("shape", [0.1, 1.0, 30.0])
def test_the_posterior_is_the_definition(rate, shape):
    observed = np.array([-200, -3, 0, 1, 2, 40, 333, 2500, 12])
    expected = np.array([0.3, 1e-9, 4.0, 1e-9, 7.5, 30.0, 2.0, 2480.0])
    # the last is tilted so far that without the noise there were no sum
    log_decays = np.append(np.log(expected / (expected + shape)), rate / 2)
    means, variances = np.empty(9), np.empty(9)
    found = posterior(observed, log_decays, shape, rate, means, variances)
    h, total = np.arange(6000), 0.0
    ways = gammaln(h + shape) - gammaln(shape) - gammaln(h + 1)
    for y, log_decay, first, second in zip(observed, log_decays, means, variances, strict=True):
        log_weights = ways + h * log_decay - rate * np.abs(y - h)
        top = log_weights.max()
        weights = np.exp(log_weights - top)
        total += top + np.log(weights.sum())
        weights /= weights.sum()
        wanted = weights @ h
        assert abs(first - wanted) <= 1e-6 * (1 + wanted)
        assert abs(second - weights @ (h - wanted) ** 2) <= 1e-5 * (1 + second)
    assert abs(found - total) < 1e-6 * abs(total)


@pytest.mark.parametrize("shape", [0.1, 2.0])
def test_a_large_count_is_as_clear_as_its_noise(shape):
    """Around 10^8 the prior is flat: what is left is the noise; 10^15 steps from 0 would not end."""
    observed, rate = np.array([10**8, 10**15]), 0.4
    means, variances = np.empty(2), np.empty(2)
    posterior(observed, np.log(observed / (observed + shape)), shape, rate, means, variances)
    np.testing.assert_allclose(means - observed, 0, atol=0.2)
    np.testing.assert_allclose(variances, 2 * np.exp(-rate) / np.expm1(-rate) ** 2, rtol=1e-6)


def test_a_posterior_without_a_sum_is_infinite():
    one = np.empty(1)
    assert posterior(np.array([3]), np.array([0.5]), 1.0, 0.5, one, one.copy()) == np.inf
    assert posterior(np.array([3]), np.array([np.nan]), 1.0, 0.5, one, one.copy()) == np.inf


def test_the_likeliest_shape_is_climbed_to():
    generator = np.random.default_rng(1)
    expected = generator.gamma(1, 20, 3000)
    for shape in (0.2, 2.0, 100.0):
        counts = generator.poisson(expected * generator.gamma(shape, 1 / shape, 3000))
        counts += generator.geometric(0.4, 3000) - generator.geometric(0.4, 3000)
        contrasts = Contrasts((3000,), np.arange(3000))
        released = CellCounts(contrasts, counts, -np.log(0.6))
        assert released.likeliest_shape(np.log(expected)) == shape


def contrast(sizes, code):
    """A contrast by its definition: a product of one cosine a column, over all cells."""
    found = np.ones(1)
    for k, j in zip(sizes, np.unravel_index(code, sizes), strict=True):
        cosine = np.sqrt(2) * np.cos(np.pi * j * (2 * np.arange(k) + 1) / (2 * k))
        found = np.multiply.outer(found, cosine if j else np.ones(k)).ravel()
    return found


SIZES = ((2, 2, 2), (4, 2, 3), (7,))


@pytest.mark.parametrize("sizes", SIZES)
def test_contrasts_are_products_of_cosines(sizes):
    """Of mean 0 and mean square 1; those of yes/no columns are parities. Sums are over possible cells."""
    generator, size = np.random.default_rng(5), int(np.prod(sizes))
    every = np.array([contrast(sizes, code) for code in range(size)])
    np.testing.assert_allclose(every @ every.T / size, np.eye(size), atol=1e-12)
    if set(sizes) == {2}:
        signs = [[(-1) ** (x & code).bit_count() for x in range(8)] for code in range(8)]
        np.testing.assert_allclose(every, signs, atol=1e-12)
    cells = np.flatnonzero(generator.random(size) < 0.7)
    contrasts = Contrasts(sizes, cells)
    weights = generator.normal(size=len(cells))
    np.testing.assert_allclose(contrasts.sums(weights), every[:, cells] @ weights, atol=1e-12)
    codes = generator.permutation(size)[:4]
    theta = generator.normal(size=4)
    np.testing.assert_allclose(contrasts.over_cells(codes, theta), theta @ every[codes][:, cells], atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_maximum_entropy_is_the_least_of_its_objective(sizes):
    """Against another method, with sums over all cells that are written out."""
    generator, size = np.random.default_rng(6), int(np.prod(sizes))
    cells = np.flatnonzero(generator.random(size) < 0.8)
    codes = np.arange(1, size)[:5]
    chi = np.array([contrast(sizes, code)[cells] for code in codes])
    means, ridge = generator.normal(0, 0.3, len(codes)), generator.uniform(0.01, 0.5, len(codes))

    def objective(theta):
        return logsumexp(theta @ chi) - theta @ means + ridge @ theta**2 / 2

    wanted = minimize(objective, np.zeros(len(codes)), method="BFGS", options={"gtol": 1e-8}).x
    theta, q = maximum_entropy(Contrasts(sizes, cells), codes, means, ridge, 1e-8, 500)
    np.testing.assert_allclose(theta, wanted, atol=1e-5)
    np.testing.assert_allclose(q, np.exp(theta @ chi - logsumexp(theta @ chi)), atol=1e-12)


def small_counts():
    """Three attributes, cells and a public number of rows; and the model that they are read by."""
    domain = Domain(["a", "b", "c"], "a | b | c")
    released = CellCounts(Contrasts.of(domain), counts=np.array([5, -2, 9, 0, 1, 14, 3]), rate=0.4, rows=25.0)
    return released, np.array([0, 1, 2, 4, 3]), np.array([10.0, 0.6, 0.6, 0.6, 0.2])


def signs(released, codes):
    """chi_S of each cell that can exist, shape (N, K)."""
    cells = released.contrasts.cells.tolist()
    return np.array([[(-1) ** (x & code).bit_count() for code in codes.tolist()] for x in cells])


def defined(released, logs, shape):
    """The logarithm of the likelihood, and posterior means and variances: sums over h."""
    h, value, means, variances = np.arange(300), 0.0, [], []
    for y, size in zip(released.counts, np.exp(logs), strict=True):
        ways = gammaln(h + shape) - gammaln(shape) - gammaln(h + 1)
        ways += h * np.log(size / (size + shape)) + shape * np.log(shape / (size + shape))
        ways -= released.rate * np.abs(y - h)
        weights = np.exp(ways - logsumexp(ways))
        value += logsumexp(ways)
        means.append(weights @ h)
        variances.append(weights @ (h - weights @ h) ** 2)
    return value, np.array(means), np.array(variances)


def density(released, codes, spread, precision, theta, shape):
    """Minus the logarithm of prior times what was seen, the counts integrated out, by definition."""
    value, means, _ = defined(released, signs(released, codes) @ theta, shape)
    apart = released.rows - means.sum()
    return -value + (apart**2 * precision + ((theta / spread) ** 2).sum()) / 2


def test_the_objective_is_its_definition_and_slopes_are_those_of_its_values():
    (released, codes, spread), step = small_counts(), 1e-4
    theta = np.random.default_rng(4).normal(0, 0.3, 5)
    _, _, variances = defined(released, signs(released, codes) @ theta, 2.0)
    precision = 1 / (variances.sum() + EXACTLY**2)
    value, slopes = released.objective(codes, theta, spread, 2.0, precision)
    assert abs(value - density(released, codes, spread, precision, theta, 2.0)) < 1e-6
    for position, move in enumerate(np.eye(5) * step):
        rise = [density(released, codes, spread, precision, theta + s * move, 2.0) for s in (1, -1)]
        assert abs((rise[0] - rise[1]) / (2 * step) - slopes[position]) < 1e-3


@pytest.mark.slow
def test_a_reading_is_the_likeliest_and_moves_to_the_number_of_rows():
    """By another method, with the sums written out: from the start to the posterior means."""
    released, codes, spread = small_counts()
    start, chi = np.array([0.1, -0.2, 0.3, 0.05]), signs(released, codes)
    total = 25
    logs = chi[:, 1:] @ start
    logs += np.log(total) - logsumexp(logs)
    shape = released.likeliest_shape(logs)
    precision = 1 / (defined(released, logs, shape)[2].sum() + EXACTLY**2)
    theta = minimize(
        lambda theta: density(released, codes, spread, precision, theta, shape), np.zeros(5), tol=1e-8
    ).x
    _, means, variances = defined(released, chi @ theta, shape)
    wanted = means + variances / (variances.sum() + EXACTLY**2) * (total - means.sum())
    found = released.read(total, codes[1:], start, spread[1:])
    np.testing.assert_allclose(found, wanted / wanted.sum(), atol=2e-3)


def test_estimates_are_averaged_by_their_precision():
    chi, variances = pooled(
        [[0.2, 0.5, 0.0], [0.6, 0.0, 0.0]], [[0.01, 0.09, np.inf], [0.04, np.inf, np.inf]]
    )
    np.testing.assert_allclose(chi, [0.28, 0.5, 0])
    np.testing.assert_allclose(variances, [1 / 125, 0.09, np.inf])


def test_a_table_without_rows_is_read():
    """Under add-remove, and with noise that hides nothing: every posterior mean is 0."""
    frame = pd.DataFrame(np.zeros((0, 4), dtype=np.int64), columns=[*"abcd"])
    given = {
        "epsilon": 32,
        "rows": 16,
        "neighbours": "add-remove",
        "n_max": 256_611,
        "mechanism": "marginals",
        "strategy": "cells",
    }
    made = smalldb.release(frame, Marginals(3), rng=1, **given)
    assert len(made.data.drop_duplicates()) == 16


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["largest", "heavy", "alternating"])
def test_hostile_integers_are_read_in_bounded_work(monkeypatch, kind):
    """Whatever integers were released, a reading looks at so many positions, a public number."""
    size, seen = 64, []
    monkeypatch.setattr(kernel, "posterior", lambda *given: seen.append(1) or posterior(*given))
    values = {
        "largest": np.full(size, 1 << 60),
        "heavy": (np.random.default_rng(1).pareto(0.3, size) * 1000).clip(0, 1 << 60),
        "alternating": (1 << 60) * (-1) ** np.arange(size),
    }[kind]
    noise, scope = Geometric(Fraction(1)), tuple((c, 0) for c in range(6))
    numbers = values.astype(np.int64).reshape((2,) * 6)
    counts = NoisyTable(scope, numbers, Fraction(1), noise, noise.variance())
    model = read_cells(universe((2,) * 6), counts, 1.0, 1000, False)
    assert all(np.isfinite(table).all() for table in model.tables)
    assert 0 < len(seen) <= ITERATIONS + 60


@pytest.mark.parametrize("seed", [123, 213])
def test_a_search_whose_memory_misleads_it_goes_on_without(seed):
    """Counts seen through noise with linear tails: curvature turns negative far from the answer."""
    rng = np.random.default_rng(seed)
    contrasts = rng.choice([-1.0, 1.0], (40, 4))
    counts = np.exp(contrasts @ rng.normal(0, 1.5, 4))

    def function(theta):
        expected = np.exp(np.minimum(contrasts @ theta, 50))
        distance = np.sqrt((expected - counts) ** 2 + 1)
        return float((distance - 1).sum()), ((expected - counts) / distance * expected) @ contrasts

    found = minimised(function, rng.normal(0, 3, 4), np.full(4, 0.1), 1e-6, 3000)
    assert function(found)[0] < 1e-3


def test_the_prior_is_the_likeliest_for_released_means():
    """Twin: every scale, with contrasts and variances that are written out."""
    sizes, noise = (9, 2, 4), 0.02
    rng = np.random.default_rng(8)
    shares = rng.dirichlet(np.ones(72)).reshape(sizes)
    shares = shares.cumsum(axis=0)  # smooth
    shares /= shares.sum()
    cosines = [
        np.array(
            [np.sqrt(2 if j else 1) * np.cos(np.pi * j * (2 * np.arange(k) + 1) / (2 * k)) for j in range(k)]
        )
        for k in sizes
    ]
    means = np.einsum("abc,ia,jb,kc->ijk", shares, *cosines) + rng.normal(0, noise, sizes)
    codes, spread = prior_spread(sizes, means.ravel(), noise)
    found = np.zeros(sizes)
    found.flat[codes] = spread
    assert (found == 0).sum() == 1 + 8 * 1 * 3  # neither the empty set nor all three columns

    alone = [means[:, 0, 0], means[0, :, 0], means[0, 0, :]]
    squares = [[means_of_square(k, j, m) for j in range(k)] for k, m in zip(sizes, alone, strict=True)]
    for width, scales in SCALES.items():
        scores = dict.fromkeys(scales, 0.0)
        for columns, scale in product(combinations(range(3), width), scales):
            for position in product(*(range(1, sizes[c]) for c in columns)):
                full = [0, 0, 0]
                apart, size = 1.0, 1.0
                for c, j in zip(columns, position, strict=True):
                    full[c] = j
                    if width == 2:
                        apart *= alone[c][j]
                        size *= max(0.02, squares[c][j] - alone[c][j] ** 2)
                apart = means[tuple(full)] - (apart if width == 2 else 0.0)
                variance = noise**2 + (scale * size) ** 2
                scores[scale] -= np.log(variance) + apart**2 / variance
        likeliest = max(scores, key=scores.get)
        for chosen in combinations(range(3), width):
            first = tuple(1 if c in chosen else 0 for c in range(3))
            assert found[first] == pytest.approx(likeliest)
            if 0 in chosen:
                assert found[(8, *first[1:])] == pytest.approx(likeliest)


def means_of_square(k, j, means):
    """The mean of the square of a contrast, from the means of all: (sqrt(2) cos x)^2 = 1 + cos 2x."""
    cosine = np.sqrt(2) * np.cos(np.pi * j * (2 * np.arange(k) + 1) / (2 * k))
    basis = [np.sqrt(2) * np.cos(np.pi * i * (2 * np.arange(k) + 1) / (2 * k)) for i in range(1, k)]
    return 1 + sum(m * np.mean(cosine**2 * b) for m, b in zip(means[1:], basis, strict=True))


def test_cells_that_noise_hides_are_not_measured():
    """Of 3,000 rows tables of three columns came out .49 off, where .14 was expected."""
    sizes = (9, 3, 9, 5, 2, 2, 4, 6, 3, 2)
    few, more = (
        plan_tables(universe(sizes, 3), Fraction(1), None, True, rows, strategy="cells").expected
        for rows in (300, 3000)
    )
    assert 0.3 < more < few
    assert not isinstance(plan_tables(universe(sizes, 3), Fraction(1), None, True, 3000), AllCells)


def test_cells_that_are_little_nearer_are_not_measured():
    """Columns of 10,000 people came out three times as far off as alone, and pairs .05 for .035."""
    few, many = (
        Domain([*"abc", Column("d", 3)]),
        Domain([*"abcde", Column("f", 8), Column("g", 5)]),
    )
    plans = [smalldb.plan(domain, "marginals:2", n=10_000, epsilon="0.1") for domain in (few, many)]
    assert [plan.strategy for plan in plans] == ["cells", "adaptive"]


def test_the_number_of_rows_is_read_where_rows_can_be():
    allowed = np.zeros((40, 40), dtype=bool)
    allowed[0] = True
    plan = plan_tables(universe((40, 40), rules=(((0, 1), allowed),)), Fraction(1, 2), None, False, 2000)
    assert isinstance(plan, AllCells)
    codes = np.stack([np.zeros(2000, dtype=np.int64), np.arange(2000) % 40], axis=1)
    rows = each_once(codes, (40, 40))
    totals = [release_tables(plan, rows, SeededBits(seed), count=1).total for seed in range(8)]
    # the noise of 40 cells has a standard deviation of 19; of all 1,600 it would be 119
    assert np.std(totals) < 50
    assert max(abs(total - 2000) for total in totals) < 80
