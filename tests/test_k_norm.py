"""K-norm noise on columns at once: points, levels, the law, moments and quantiles, each by the definition."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import exp, sqrt

import numpy as np
import pytest
from margins import outcomes, p_value
from scipy import stats

import smalldb
from queries import Column, Domain
from smalldb.exact.bits import SeededBits
from smalldb.exact.levels import LogConcave, draw_level, exp_enclosure
from smalldb.marginals.strategies import budgets as grouping
from smalldb.marginals.strategies.budgets import column_groups, shares_of_columns
from smalldb.noise import k_norm
from smalldb.noise.column_polytope import draw_point, points
from smalldb.noise.distributions import KNorm


def vectors(size, up, down):
    """By the definition."""
    every = np.array(list(product(range(-down, up + 1), repeat=size)), dtype=int)
    rises, falls = np.maximum(every, 0).sum(axis=1), -np.minimum(every, 0).sum(axis=1)
    return every[(rises <= up) & (falls <= down) & (rises - falls == up - down)]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_points_are_counted(size):
    for up, down in product(range(5), repeat=2):
        assert points(size, up, down) == len(vectors(size, up, down)) == points(size, down, up)


@pytest.mark.parametrize(("size", "up", "down"), [(2, 2, 1), (3, 1, 2), (4, 2, 1), (3, 0, 2)])
def test_points_are_drawn_uniformly(size, up, down):
    wanted, trials, source = vectors(size, up, down), 3000, SeededBits(size)
    found = Counter(tuple(draw_point(size, up, down, source)) for _ in range(trials))
    assert set(found) <= set(map(tuple, wanted.tolist()))
    assert p_value(found, {tuple(one): 1 / len(wanted) for one in wanted.tolist()}) > 1e-6


def test_levels_are_log_concave():
    """Even ones, and odd ones; and no pair of a level has more points than that in the middle."""
    for size in (*range(1, 14), 40):
        for level in range(40):
            every = [points(size, up, level - up) for up in range(level + 1)]
            assert max(every) == points(size, level // 2, level - level // 2)
        for odd in (0, 1):
            counts = [points(size, half + odd, half) for half in range(60)]
            assert all(b * b >= a * c for a, b, c in zip(counts, counts[1:], counts[2:], strict=False))


def test_families_of_two_parities():
    """Levels that are log-concave by parity only: the tails of both are closed."""
    counts = {s: (s + 1) * (5 if s % 2 else 1) for s in range(200)}
    rate, trials = Fraction(1, 2), 4000
    weights = {s: count * exp(-s / 2) for s, count in counts.items()}
    source, family = SeededBits(1), LogConcave(counts.__getitem__, period=2)
    found = Counter(draw_level(family, rate, source) for _ in range(trials))
    assert p_value(found, {s: weight / sum(weights.values()) for s, weight in weights.items()}) > 1e-6
    with pytest.raises(ValueError, match="period must be at least 1"):
        LogConcave(counts.__getitem__, period=0)


def law_of(noise, reach):
    """Every vector of noise of that norm, and its probability: exp(-rate norm)."""
    found = {}
    for shift in range(-reach, reach + 1):
        columns = []
        for size in noise.sizes:
            every = np.array(list(product(range(-reach, reach + 1), repeat=size)), dtype=int)
            columns.append(
                every[(every.sum(axis=1) == shift) & (abs(every).sum(axis=1) <= 2 * reach)].tolist()
            )
        if noise.replaced and shift:
            continue
        for parts in product(*columns):
            norm = max(sum(map(abs, part)) for part in parts)
            norm = norm / 2 if noise.replaced else norm
            if norm <= reach:
                found[tuple(value for part in parts for value in part)] = exp(-float(noise.rate) * norm)
    total = sum(found.values())
    return {vector: weight / total for vector, weight in found.items()}


SMALL = [
    (KNorm((2, 2), Fraction(2), True), 16),
    (KNorm((2, 3), Fraction(3), True), 9),
    (KNorm((2, 2), Fraction(2), False), 14),
    (KNorm((3, 2), Fraction(3), False), 8),
]


def test_one_column_has_independent_noise_where_rows_come_and_go():
    """Its norm is the sum of absolute values: Laplace's law of whole numbers, which has a closed form."""
    noise, q, trials, source = KNorm((8,), Fraction(1), False), exp(-1), 3000, SeededBits(2)
    values = np.array([noise.draw(8, source) for _ in range(trials)])
    assert noise.variance() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.02)
    assert (values[:, 1] == 0).mean() == pytest.approx((1 - q) / (1 + q), abs=4 * sqrt(0.25 / trials))
    assert abs(np.corrcoef(values.T)[0, 1]) < 4 / sqrt(trials)
    law = q ** abs(np.arange(-30, 31)) * (1 - q) / (1 + q)
    sums = np.ones(1)
    for _ in range(8):
        sums = np.convolve(sums, law)
    sums = dict(enumerate(sums, start=-(len(sums) // 2)))
    assert p_value(Counter(values.sum(axis=1).tolist()), sums) > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "reach"), SMALL, ids=str)
def test_noise_by_its_decision_tree(noise, reach):
    count = sum(noise.sizes)
    found, law = outcomes(lambda source: tuple(noise.draw(count, source).tolist()), 14), law_of(noise, reach)
    assert sum(found.values()) > 0.45
    assert all(decided <= law[vector] + 1e-9 for vector, decided in found.items())


@pytest.mark.parametrize("block", [pytest.param(None, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize(
    ("noise", "reach"),
    [pytest.param(*case, id=str(case[0]), marks=[pytest.mark.slow] * (3 in case[0].sizes)) for case in SMALL],
)
def test_noise_has_its_law(noise, reach, block, monkeypatch):
    """Blocks of two are far too wide for these rates: most of what is proposed is refused."""
    if block:
        monkeypatch.setattr(KNorm, "_block", block)
    count, trials, source = sum(noise.sizes), 2500, SeededBits(6)
    found = Counter(tuple(noise.draw(count, source).tolist()) for _ in range(trials))
    assert p_value(found, law_of(noise, reach)) > 1e-6
    other = KNorm(noise.sizes, noise.rate * Fraction(7, 10), noise.replaced)
    assert p_value(found, law_of(other, reach)) < 1e-6


@pytest.mark.parametrize("replaced", [True, False])
def test_wide_laws_are_drawn_in_blocks(replaced):
    """Of two rates the noise differs by their ratio: one is drawn level by level."""
    narrow, wide = (KNorm((2, 3), Fraction(1, part), replaced) for part in (7, 700))
    draws = [np.array([noise.draw(5, SeededBits(i)) for i in range(300)]) for noise in (narrow, wide)]
    sizes = [np.sort(abs(values).max(axis=1)) for values in draws]
    assert stats.ks_2samp(sizes[0] * 100, sizes[1]).pvalue > 1e-6
    assert stats.ks_2samp(sizes[0] * 150, sizes[1]).pvalue < 1e-6


@pytest.mark.parametrize(("noise", "reach"), SMALL, ids=str)
def test_moments_are_those_of_the_law(noise, reach):
    law = law_of(noise, reach)
    every, odds = np.array(list(law)), np.array(list(law.values()))
    weights = np.random.default_rng(3).normal(size=(sum(noise.sizes), 3))
    wanted = (every @ weights).T @ ((every @ weights) * odds[:, None])
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert noise.covariance(weights) / scale == pytest.approx(wanted / scale, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "reach"), SMALL, ids=str)
def test_quantiles_are_not_exceeded(noise, reach):
    law = law_of(noise, reach)
    every, odds = np.array(list(law)), np.array(list(law.values()))
    for failure in (Fraction(1, 5), Fraction(1, 50), Fraction(1, 2000)):
        found = noise.quantile(None, failure)
        beyond = [float(odds @ (abs(every) > most).any(axis=1)) for most in (found, found - 1)]
        alone = max(float(odds @ (abs(column) > found)) for column in every.T)
        assert alone <= failure <= beyond[1]
        for weights in ([1, 0, 0, 0, 0], [1, 1, -1, 0.5, 2]):
            own = np.array(weights[: every.shape[1]])
            assert odds @ (abs(every @ own) > noise.quantile(own, failure)) <= failure
    first = np.arange(sum(noise.sizes)) < noise.sizes[0]
    sums = abs(every @ first)
    for failure in (Fraction(1, 5), Fraction(1, 50)):
        found = noise.quantile(first, failure)
        assert odds @ (sums > found) <= failure and (not found or odds @ (sums > found - 1) > failure)


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [True, False])
def test_quantiles_by_blocks_err_upwards_and_not_by_much(replaced, monkeypatch):
    noise = KNorm((2, 3, 4), Fraction(1, 8), replaced)
    first = np.arange(9) < 2
    exact = [noise.quantile(weights, Fraction(1, 100)) for weights in (None, first)]
    monkeypatch.setattr(k_norm, "_WORK", 4 * (100 if replaced else 200**2))
    for cached in (k_norm._law, k_norm._quantile):
        cached.cache_clear()
    assert k_norm._law(noise).width > 1
    for weights, least in zip((None, first), exact, strict=True):
        assert least <= noise.quantile(weights, Fraction(1, 100)) <= 2 * least + 2
    for cached in (k_norm._law, k_norm._quantile):
        cached.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("digits", [13, 15, 30, 120])
def test_quantiles_of_tiny_probabilities_are_not_exceeded(replaced, digits):
    """Of two yes/no columns: given the radii, a value is uniform from -down to up."""
    noise, failure = KNorm((2, 2), Fraction(1), replaced), Fraction(1, 10**digits)
    base = exp_enclosure(Fraction(1), 600)
    most = 400 if replaced else 300
    pairs = [(r, r) for r in range(most)]
    if not replaced:
        pairs = [(a, level - a) for level in range(most) for a in range(level + 1)]
    powers = [1 << 600]
    while len(powers) <= most:
        powers.append(powers[-1] * base[0] >> 600)
    for weights in (None, [1, 1, 0, 0]):
        found = noise.quantile(weights, failure)
        every = beyond = 0
        for up, down in pairs:
            odds = (up + down + 1) * powers[up if replaced else up + down]
            every += (up + down + 1) * odds
            if weights is None:
                beyond += odds * sum(max(0, radius - int(found)) for radius in (up, down))
            else:
                beyond += (up + down + 1) * odds * (abs(up - down) > found)
        assert Fraction(beyond, every) <= failure


def errors_of(sizes, groups):
    return sum(sqrt(grouping._error(sizes, group)) for group in groups)


@pytest.mark.parametrize(
    "sizes", [(2, 2, 2, 3), (8, 8, 8), (2, 30, 2, 29), (100, 2, 9, 2), (5,), (16, 4, 4, 9, 2)]
)
def test_groups_of_columns_are_the_best_of_neighbours_in_size(sizes):
    groups = column_groups(sizes, range(len(sizes)), False)
    assert sorted(c for group in groups for c in group) == list(range(len(sizes)))
    ranked = sorted(range(len(sizes)), key=lambda c: (sizes[c], c))
    least = min(
        errors_of(sizes, [ranked[a:b] for a, b in zip((0, *cuts), (*cuts, len(sizes)), strict=True)])
        for many in range(len(sizes))
        for cuts in combinations(range(1, len(sizes)), many)
    )
    assert errors_of(sizes, groups) == pytest.approx(least)
    shares = shares_of_columns(sizes, groups, False)
    assert sum(shares) == 1 and all(share > 0 for share in shares)


def test_columns_alone():
    """Under a rho; wide ones; those of one category."""
    assert column_groups((2, 2, 3), (0, 2), True) == ((0,), (2,))
    assert column_groups((200, 200), (0, 1), False) == ((0,), (1,))
    assert column_groups((1, 1), (0, 1), False) == ((0,), (1,))
    many = column_groups((16,) * 100, range(100), False)
    assert len(many) == 2 and max(map(len, many)) * 15 <= grouping.MOST_FREE
    assert shares_of_columns((4, 9), ((0,), (1,)), False) == [Fraction(2, 5), Fraction(3, 5)]


DOMAIN = Domain([*(Column(f"q{i}", 2 + i % 2) for i in range(8)), Column("wide", 6)])


@pytest.mark.parametrize(
    "public", [{"n": 500}, {"n_max": 500, "neighbours": "add-remove"}], ids=["replace", "add"]
)
def test_a_plan_of_columns_expects_the_noise_of_columns_at_once(public):
    """It had counted a noise for each column alone."""
    given = {"epsilon": 1, "rows": 500, "mechanism": "marginals", "strategy": "adaptive"}
    plan = smalldb.plan(DOMAIN, "marginals:1", **given, **public)
    strategy, found = plan.chosen.strategy, []
    assert strategy.together == column_groups(DOMAIN.sizes, range(9), False) != tuple((c,) for c in range(9))
    for seed in range(40):
        source, distances = SeededBits(seed), []
        for group in strategy.together:
            own = [DOMAIN.sizes[c] for c in group]
            cost = sum(strategy.columns[c] for c in group)
            noise = (
                KNorm(tuple(own), cost, strategy.law.replaced) if len(own) > 1 else strategy.law.noise(cost)
            )
            drawn = np.split(noise.draw(sum(own), source), np.cumsum(own)[:-1])
            distances += [np.abs(one).sum() / (2 * 500) for one in drawn]
        found.append(np.mean(distances))
    assert plan.expected_error == pytest.approx(np.mean(found), rel=0.1)
    low, high = plan.expected_range
    assert low < plan.expected_error < high


@pytest.mark.parametrize(("replaced", "read"), [(True, {1: [3, 1]}), (False, {0: [7, 7], 1: [1, 5]})])
def test_parities_are_read_from_counts_of_columns(replaced, read):
    """Of 7 rows, 3 and 1 of which have the first category: so many odd ones, or 7 less twice these."""
    found = k_norm.weights_of(KNorm((2, 3), Fraction(1), replaced))
    assert {order: [one @ [3, 4, 1, 1, 5] for one in some] for order, some in found.items()} == read
