"""All cells of a small universe: posterior means, and the prior that is likeliest for what was released."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from asking import release_tables
from builders import each_once, universe

import smalldb
from queries import Column, Domain
from smalldb.exact.bits import SeededBits
from smalldb.marginals.estimate.cell_estimates import SCALES, prior_spread, read_cells
from smalldb.marginals.estimate.column_estimates import on_simplex
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.noise.distributions import Geometric

SIZES = (8, 6, 5, 4)
N = 20_000
RATE = 0.25


def table(seed, sharpness):
    """Counts of a log-linear model of pairs, sparse where it is sharp."""
    rng = np.random.default_rng(seed)
    weights = np.zeros(SIZES)
    for pair in combinations(range(4), 2):
        shape = [size if c in pair else 1 for c, size in enumerate(SIZES)]
        weights = weights + sharpness * rng.normal(size=shape)
    weights = np.exp(weights)
    return rng.multinomial(N, (weights / weights.sum()).ravel()).reshape(SIZES)


def noise(seed):
    return Geometric(Fraction(RATE)).draw(int(np.prod(SIZES)), SeededBits(seed)).reshape(SIZES)


def probabilities(model):
    """The table of all cells, whose groups are categories in their own order."""
    scope = max((bucket.scope for bucket in model.tree.buckets), key=len)
    found = max(model.tables, key=np.size)
    return np.transpose(found, np.argsort([c for c, _ in scope]))


def sums(cells, columns):
    return cells.sum(axis=tuple(a for a in range(cells.ndim) if a not in columns))


def distance(one, other, width):
    """The mean total variation distance of the tables of so many columns."""
    tables = list(combinations(range(4), width))
    return np.mean([np.abs(sums(one, t) - sums(other, t)).sum() / 2 / N for t in tables])


def read(released, rules=()):
    noise = PrivacyMeasure(concentrated=False, replaced=True).noise(Fraction(1, 2))
    scope = tuple((c, 0) for c in range(4))
    measured = NoisyTable(scope, released, Fraction(1, 2), noise, noise.variance())
    return probabilities(read_cells(universe(SIZES, rules=rules), measured, RATE, N, True)) * N


@pytest.mark.slow
def test_tables_of_a_sparse_table_are_nearer_than_the_released_sums():
    ratios = []
    for seed in range(3):
        counts = table(seed, 1.2)
        released = counts + noise(seed)
        found = read(released)
        raw = on_simplex(released.ravel().astype(float), N).reshape(SIZES)
        known = [min(distance(raw, counts, k), distance(released, counts, k)) for k in (1, 2, 3)]
        ratios.append([distance(found, counts, k) / known[k - 1] for k in (1, 2, 3)])
    assert (np.mean(ratios, axis=0) < [0.84, 0.7, 0.69]).all()


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


def forbidding(share, seed):
    """Rules that forbid about such a share of three tables of two columns; and which cells they leave."""
    rng, rules = np.random.default_rng(seed), []
    for pair in ((0, 1), (1, 2), (2, 3)):
        allowed = rng.random([SIZES[c] for c in pair]) > share
        allowed[0], allowed[:, 0] = True, True
        rules.append((pair, allowed))
    return tuple(rules), universe(SIZES, rules=tuple(rules)).possible()


@pytest.mark.slow
def test_cells_that_rules_forbid_bring_no_noise():
    errors = []
    for seed in range(6):
        rules, possible = forbidding(0.8, seed)
        shares = table(seed, 0.4) * possible
        counts = np.random.default_rng(seed).multinomial(N, (shares / shares.sum()).ravel()).reshape(SIZES)
        found = read(counts + noise(seed + 50), rules)
        assert not found[~possible].any()
        errors.append([distance(found, counts, width) for width in (1, 2)])
    assert (np.mean(errors, axis=0) < [0.0027, 0.00626]).all()


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
