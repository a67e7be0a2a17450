"""All cells measured: a bound from their noise alone, and no share of epsilon for a certificate."""

from fractions import Fraction

import numpy as np
import pytest

import smalldb
from queries import Column, Domain, Marginals, Predicates, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals.certificate import beyond
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.noise_bounds import cells_of_tables, margins, sums_of_cells, sums_of_tables
from smalldb.noise.cone import ConeDifference, quantile
from smalldb.noise.distributions import Geometric

COLUMNS = [Column("job", ["none", "part", "full"]), Column("region", 5), "smoker"]
DOMAIN = Domain(COLUMNS, "~(`job=none` & smoker)")


def rows_of(seed, n=1_000):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, k, n) for k in DOMAIN.sizes], axis=1)
    codes[codes[:, 0] == 0, 2] = 0
    return Rows.from_codes(DOMAIN, codes)


def histogram(rows):
    counts = np.zeros(DOMAIN.sizes, dtype=np.int64)
    np.add.at(counts, tuple(rows.codes().T), rows.counts)
    return counts


def worst(workload, real, finished):
    one, other = workload.answers(real) / real.n, workload.answers(finished) / finished.n
    return np.abs(one - other).max() / workload.denominator


@pytest.mark.parametrize("public", [True, False])
def test_the_bound_holds_as_often_as_it_says(public):
    workload = (Marginals(2) + Predicates(["smoker | `job=full`"])).workload(DOMAIN)
    real, finished, rate, beta = rows_of(1), rows_of(2, 300), Fraction(1, 4), Fraction(1, 5)
    exact, apart = histogram(real), worst(workload, real, finished)
    margin = max(margins(workload, Geometric(rate), beta)) / real.n
    bounds = []
    for seed in range(100):
        noisy = exact + Geometric(rate).draw(exact.size, SeededBits(seed)).reshape(exact.shape)
        n = real.n if public else None
        sums = sums_of_cells(workload, noisy, Geometric(rate), n, beta)
        bounds.append(sums.bound(workload, finished))
    assert (np.array(bounds) >= apart).mean() >= 0.8
    assert apart < np.mean(bounds) < apart + 3 * margin


def test_margins_are_exceeded_as_seldom_as_they_say_and_no_sooner():
    workload, rate, beta = Marginals(2).workload(DOMAIN), Fraction(1, 3), Fraction(1, 5)
    of_query, of_rows = margins(workload, Geometric(rate), beta)
    cells = DOMAIN.table()
    beyond = beyond_half = 0
    for seed in range(200):
        noise = Geometric(rate).draw(len(cells), SeededBits(seed))
        sums = np.zeros(workload.size)
        for sign in (1, -1):
            some = np.maximum(sign * noise, 0)
            sums += sign * workload.answers(Rows.from_codes(DOMAIN, cells, some))
        sizes = np.append(np.abs(sums) / workload.denominator / of_query, abs(noise.sum()) / of_rows)
        beyond, beyond_half = beyond + (sizes.max() > 1), beyond_half + (sizes.max() > 0.45)
    assert beyond <= 40
    assert beyond_half > 40  # less than half of them would not do


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_nothing_is_spent_on_a_certificate_where_all_cells_are_measured(relation):
    real = rows_of(3, 3_000)
    given = {"n_max": 3_000} if relation == "add-remove" else {}
    for seed in range(4):
        made = smalldb.release(real, "marginals:2", epsilon=1, neighbours=relation, rng=seed, **given)
        strategy = made.plan.chosen.strategy
        assert (strategy.name, strategy.certifying, strategy.measuring) == ("cells", 0, 1)
        assert made.confidential.max_error <= made.record["bounds"]["released"] < 0.2
        assert made.record["bounds"]["covers"] == ["every query of marginals:2"]


def test_the_smaller_margin_is_taken_from_public_numbers():
    """A share of few categories is a sum of many cells' noise: there a certificate says more."""
    domain = Domain([Column("a", 90), Column("b", 90), "c", "d"])
    chosen = smalldb.plan(domain, "marginals:1", n=10**7, epsilon=1, strategy="cells").chosen
    workload, beta = Marginals(1).workload(domain), Fraction(1, 20)
    law = PrivacyMeasure(False, True)
    least = beyond(workload, law, Fraction(1, 40), beta) / workload.denominator
    direct = max(margins(workload, law.noise(Fraction(1)), beta))
    assert direct > least
    assert chosen.strategy.certifying


def test_numbers_that_say_nothing_are_bounded_by_1():
    workload, finished = Marginals(1).workload(DOMAIN), rows_of(2)
    huge = np.full(DOMAIN.sizes, 1 << 60)
    given = Geometric(Fraction(1, 2)), 100, Fraction(1, 20)
    assert sums_of_cells(workload, huge, *given).bound(workload, finished) == 1
    none = np.zeros(DOMAIN.sizes, dtype=np.int64)
    given = Geometric(Fraction(1, 2)), None, Fraction(1, 20)
    assert sums_of_cells(workload, none, *given).bound(workload, finished) == 1


# all tables of one and two columns at once

PAIRS = ((0, 1), (0, 2), (1, 2))


ODD = Domain([Column("job", ["none", "part", "full"]), Column("region", 4), "smoker"])


@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False])
def test_the_bound_at_once_holds_as_often_as_it_says(public):
    workload, beta = Marginals(2).workload(ODD), Fraction(1, 5)
    noise = ConeDifference(ODD.sizes, Fraction(1, 4), PAIRS)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, 1_000) for k in ODD.sizes], axis=1)
    codes[:, 2] &= codes[:, 0] > 0  # fewer yes than no
    real, finished = Rows.from_codes(ODD, codes), Rows.from_codes(ODD, codes[:300])
    exact = {scope: real_table(codes, scope) for scope in [(0,), (1,), (2,), *PAIRS]}
    shapes = [table.shape for table in exact.values()]
    apart, bounds = worst(workload, real, finished), []
    for seed in range(60):
        parts = np.split(
            noise.draw(noise.count, SeededBits(seed)), np.cumsum([np.prod(shape) for shape in shapes])[:-1]
        )
        noisy = {s: t + part.reshape(t.shape) for (s, t), part in zip(exact.items(), parts, strict=True)}
        n = real.n if public else None
        sums = sums_of_tables(workload, {s: (t, noise) for s, t in noisy.items()}, n, beta)
        bounds.append(sums.bound(workload, finished))
    of_queries, of_rows = margins_at_once(workload, noise, beta)
    assert (np.array(bounds) >= apart).mean() >= 0.8
    assert apart < np.mean(bounds) < apart + 3 * max(of_queries.max(), of_rows) / real.n
    chosen = smalldb.plan(ODD, "marginals:2", n=1_000, epsilon="1/2", strategy="pairs", certificate=0).chosen
    assert chosen.strategy.noise == noise
    assert chosen.strategy.off(workload, beta) == max(of_queries.max(), of_rows) * workload.denominator


def margins_at_once(workload, noise, beta):
    """By how much no query is off, and the number of rows, where all that was released is 0."""
    zeros = {
        s: (np.zeros([ODD.sizes[c] for c in s], dtype=np.int64), noise) for s in [(0,), (1,), (2,), *PAIRS]
    }
    sums = sums_of_tables(workload, zeros, None, beta)
    return sums.high, sums.rows[1]


def test_margins_at_once_share_the_failure():
    workload, beta = Marginals(2).workload(ODD), Fraction(1, 5)
    noise = ConeDifference(ODD.sizes, Fraction(1, 4), PAIRS)
    of_queries, of_rows = margins_at_once(workload, noise, beta)
    each = beta / (workload.size + 1)
    wanted = []
    for block in workload.cells:
        codes = tuple(sorted(ODD.sizes[c] for c in block.columns))
        wanted += [quantile(ODD.sizes, noise.rate, codes, each)] * block.size
    assert of_queries.tolist() == wanted
    assert of_rows == quantile(ODD.sizes, noise.rate, (), each) + 1  # two categories, each rounded


def real_table(codes, scope):
    shape = [ODD.sizes[c] for c in scope]
    return np.bincount(np.ravel_multi_index(codes[:, scope].T, shape), minlength=np.prod(shape)).reshape(
        shape
    )


def test_only_cells_of_narrow_tables_are_measured_at_once():
    assert cells_of_tables(Marginals(2).workload(ODD), 2)
    assert not cells_of_tables(Marginals(3).workload(ODD), 2)
    assert not cells_of_tables((Marginals(2) + Predicates(["smoker | `job=full`"])).workload(ODD), 2)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_nothing_is_spent_on_a_certificate_where_all_pairs_are_measured(relation):
    columns = [Column(f"c{c}", k) for c, k in enumerate((6, 8, 5, 9, 7))]
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 5, (20_000, 1)) + rng.integers(0, 2, (20_000, 5))
    real = Rows.from_codes(Domain(columns), np.minimum(codes, [5, 7, 4, 8, 6]))
    given = {"n_max": 20_000} if relation == "add-remove" else {}
    made = smalldb.release(
        real, "marginals:2", epsilon=2, neighbours=relation, rng=1, strategy="pairs", **given
    )
    strategy = made.plan.chosen.strategy
    assert (strategy.name, strategy.certifying, strategy.measuring) == ("pairs", 0, 2)
    assert made.record["bounds"]["covers"] == ["every query of marginals:2"]
    assert made.confidential.max_error <= made.record["bounds"]["released"] < 0.03
