"""Bounds from the noise alone: of all cells, of all tables at once, of each measured table."""

from fractions import Fraction
from functools import cache, reduce

import naive
import numpy as np
import pytest
from margins import law_of
from records import check_record

import smalldb
from queries import Column, Domain, Marginals, Predicates, Rows
from smalldb.exact.bits import SeededBits, bit_source
from smalldb.marginals.certificate import beyond
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.noise_bounds import (
    _margins,
    _tables,
    cells_of_tables,
    margins,
    sums_of_cells,
    sums_of_tables,
    table_bounds,
)
from smalldb.mechanisms import Marginal, Measurement, Measurements
from smalldb.noise.cone import ConeDifference, quantile
from smalldb.noise.distributions import DiscreteGaussian, Geometric, KNorm
from smalldb.noise.simulating import Uniforms
from smalldb.planning.plans import tables_reached

DOMAIN = Domain(
    [Column("job", ["none", "part", "full"]), Column("region", 5), "smoker"], "~(`job=none` & smoker)"
)


def rows_of(seed, n=1_000):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, k, n) for k in DOMAIN.sizes], axis=1)
    codes[codes[:, 0] == 0, 2] = 0
    return Rows.from_codes(DOMAIN, codes)


def table_of(rows, columns=(0, 1, 2)):
    counts = np.zeros([rows.domain.sizes[c] for c in columns], dtype=np.int64)
    np.add.at(counts, tuple(rows.codes().T[list(columns)]), rows.counts)
    return counts


def worst(workload, real, finished):
    one, other = workload.answers(real) / real.n, workload.answers(finished) / finished.n
    return np.abs(one - other).max() / workload.denominator


@pytest.mark.parametrize("public", [True, False])
def test_the_bound_holds_as_often_as_it_says(public):
    workload = (Marginals(2) + Predicates(["smoker | `job=full`"])).workload(DOMAIN)
    real, finished, rate, beta = rows_of(1), rows_of(2, 300), Fraction(1, 4), Fraction(1, 5)
    exact, apart = table_of(real), worst(workload, real, finished)
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


@pytest.mark.parametrize("beta", [Fraction(1, 5), Fraction(1, 1000)])
def test_the_chances_that_margins_are_exceeded_add_up_to_beta_at_most(beta):
    """By the law of a sum of so many independent cells: of each query, and of all rows."""
    workload, rate = Marginals(2).workload(DOMAIN), Fraction(1, 3)
    of_query, of_rows = margins(workload, Geometric(rate), beta)
    every = Rows.from_codes(DOMAIN, DOMAIN.table())
    cells = (workload.answers(every) // workload.denominator).tolist()
    exceeded = 0.0
    for many, margin in [*((many, of_query) for many in cells), (every.n, of_rows)]:
        law = reduce(np.convolve, [law_of(Geometric(rate), 100)] * many)
        exceeded += law[abs(np.arange(len(law)) - len(law) // 2) > margin].sum()
    assert 0 < exceeded <= beta


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
    exact = {scope: table_of(real, scope) for scope in [(0,), (1,), (2,), *PAIRS]}
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


def test_only_cells_of_narrow_tables_are_measured_at_once():
    assert cells_of_tables(Marginals(2).workload(ODD), 2)
    assert not cells_of_tables(Marginals(3).workload(ODD), 2)
    assert not cells_of_tables((Marginals(2) + Predicates(["smoker | `job=full`"])).workload(ODD), 2)


PEOPLE = Domain([Column("age", ["a", "b", "c", "d"]), "ill", Column("job", ["x", "y", "z"]), "sex"])
FORBIDDEN = Domain(PEOPLE.columns, valid="~(ill & `age=a`)")


def people(domain=PEOPLE, n=1500, seed=4):
    coins = np.random.default_rng(seed)
    age = coins.integers(0, 4, n)
    ill = (coins.random(n) < 0.1 + 0.2 * age) & ((age > 0) | (domain is PEOPLE))
    job = (age + (coins.random(n) < 0.3)) % 3
    return Rows.from_codes(domain, np.array([age, ill, job, coins.integers(0, 2, n)]).T)


def shares(part, rows):
    """The shares of a table's cells."""
    return naive.part_values(part, rows.codes().repeat(rows.counts, axis=0)) / rows.n


def errors(made, real):
    """How far the synthetic table is off in each measured table."""
    parts = [part for each in made.measurements for part in each.of if isinstance(part, Marginal)]
    return [np.abs(shares(part, made.rows) - shares(part, real)).max() for part in parts]


PRIVATE = {"neighbours": "add-remove", "n_max": 2000}
SETTINGS = {
    "pairs": {"queries": "marginals:2", "strategy": "adaptive"},
    "private n": {"queries": "marginals:2", "strategy": "adaptive", **PRIVATE},
    "Gaussian": {"queries": "marginals:2", "strategy": "adaptive", "delta": "1e-6"},
    "at once": {"queries": "marginals:2", "strategy": "pairs"},
    "columns": {"queries": "marginals:1", "strategy": "adaptive"},
    "columns, private n": {"queries": "marginals:1", "strategy": "adaptive", **PRIVATE},
}


def of_noise(noises, n):
    """Measurements of every column and two tables, which are given these noises in turn."""
    groups = [tuple(range(size)) for size in PEOPLE.sizes]
    grouped = Marginal((0, 2), ((0, 0, 1, 1), (0, 1, 1)))
    parts = [
        *(Marginal((c,), (groups[c],)) for c in range(4)),
        grouped,
        Marginal((0, 1), (groups[0], groups[1])),
    ]
    items = [
        Measurement((part,), np.zeros(part.size, dtype=np.int64), noises[k % len(noises)], Fraction(1))
        for k, part in enumerate(parts)
    ]
    return Measurements(PEOPLE, items, n)


@cache
def drawn_for(noises, draws):
    """Noise of all tables, which is the same whether n is public or not."""
    source, tables = bit_source(7), _tables(of_noise(noises, None))
    return [table.noise.draw(table.values.size * draws, source).reshape(draws, -1) for table in tables]


@pytest.mark.parametrize("n", [1000, None])
@pytest.mark.parametrize(
    "noises",
    [
        pytest.param((Geometric(Fraction(1, 30)), Geometric(Fraction(1, 100))), id="geometric"),
        pytest.param((DiscreteGaussian(Fraction(400)),), id="Gaussian", marks=pytest.mark.slow),
    ],
)
def test_margins_of_all_tables_fail_together_as_seldom_as_they_say(noises, n):
    tables, beta, draws = _tables(of_noise(noises, n)), Fraction(1, 4), 1500
    margins = [_margins(table, beta / len(tables), n is None) for table in tables]
    noise, failed, halved = drawn_for(noises, draws), 0, 0
    for k in range(draws):
        reached = [
            max(np.abs(own[k]).max() / margin, abs(own[k].sum()) / total if total else 0)
            for own, (margin, total) in zip(noise, margins, strict=True)
        ]
        failed += max(reached) > 1
        halved += max(reached) > 0.7
    sd = (draws * 0.25 * 0.75) ** 0.5
    assert failed <= draws * 0.25 + 3 * sd
    assert failed >= draws * 0.12  # union bounds of independent cells are nearly tight
    assert halved > draws * 0.25 + 3 * sd  # a margin that is too small is found out


@pytest.mark.slow
@pytest.mark.parametrize("domain", [PEOPLE, FORBIDDEN], ids=["all", "rules"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_bounds_are_those_of_the_definition(setting, domain):
    real, named = (
        people(domain),
        {"measure_first": ["age x ill"]} if setting in ("pairs", "private n") else {},
    )
    made = smalldb.release(real, epsilon=1, mechanism="marginals", seed=4, **named, **SETTINGS[setting])
    check_record(made.record)
    stated = made.record["bounds"]["tables"]
    tables = _tables(made.measurements)
    assert [one["measurement"] for one in stated] == [table.number for table in tables]
    assert [tuple(one["columns"]) for one in stated] == [
        tuple(domain.names[c] for c in table.part.columns) for table in tables
    ]
    most, private = tables_reached(made.plan), "private n" in setting
    margins = [_margins(table, made.plan.beta / most, private) for table in tables]
    ends = [(real.n, real.n)]
    if private:
        totals = [table.values[table.possible].sum() for table in tables]
        ends = [(total - reach, total + reach) for total, (_, reach) in zip(totals, margins, strict=True)]
    low, high = max(one for one, _ in ends), min(other for _, other in ends)
    for one, table, (margin, _) in zip(stated, tables, margins, strict=True):
        worst = 0.0
        for cell, share in np.ndenumerate(shares(table.part, made.rows)):
            if table.possible[cell]:
                value = table.values[cell]
                off = max(value + margin - share * low, share * high - value + margin) / low
                worst = max(worst, min(off, max(share, 1 - share)))
        assert one["released"] == pytest.approx(min(1.0, worst), rel=1e-9)
    if domain is FORBIDDEN and named:
        assert not all(table.possible.all() for table in tables)


def test_rows_are_told_by_whole_columns_that_were_measured_at_once():
    """Without its impossible category a column sums to more noise than the whole, which all share.

    At this rate levels are added up one by one, so the margin is the exact quantile.
    """
    columns = [Column(f"c{k}", [*"abcdefghij"]) for k in range(20)]
    domain, noise = Domain(columns, valid="~`c0=a`"), KNorm((10,) * 20, Fraction(1), False)
    parts = tuple(Marginal((c,), (tuple(range(10)),)) for c in range(20))
    values = np.zeros(200, dtype=np.int64)
    table = _tables(Measurements(domain, [Measurement(parts, values, noise, Fraction(1))], None))[0]
    assert table.possible.sum() == 9
    _, reach = _margins(table, Fraction(1, 10), True)  # a hundredth for the sum
    each = np.zeros((200, 1))
    each[:10, 0] = table.summed
    off = abs(noise.simulated(each, np.arange(200), Uniforms.fixed())[:, 0])
    assert (off > reach).mean() <= 0.015


def test_what_cannot_be_bounded_is_not():
    measured = of_noise([Geometric(Fraction(1, 10**6))], None)
    rows = people()
    assert {one.bound for one in table_bounds(measured, rows, Fraction(1, 20), 6)} == {1.0}
    assert table_bounds(Measurements(PEOPLE, (), 5), rows, Fraction(1, 20), 6) == ()
    with pytest.raises(ValueError, match="more tables were measured"):
        table_bounds(measured, rows, Fraction(1, 20), 5)


@pytest.mark.parametrize(
    "more",
    [{}, PRIVATE, {"delta": "1e-6"}],
    ids=["n", "private n", "delta"],
)
def test_columns_alone_buy_no_certificate(more):
    real = people()
    made = smalldb.release(real, "marginals:1", epsilon=1, mechanism="marginals", seed=3, **more)
    strategy = made.plan.chosen.strategy
    assert strategy.name == "adaptive" and strategy.certifying == 0
    if "delta" not in more:
        assert sum(strategy.columns) == 1 == sum(each.cost for each in made.measurements)
    bounds = made.record["bounds"]
    assert bounds["covers"] == ["every query of marginals:1"]
    assert max(errors(made, real)) <= bounds["released"] < 0.2
    # the bound of all is about that of the tables, which share beta in another way
    assert bounds["released"] == pytest.approx(max(one["released"] for one in bounds["tables"]), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [{}, PRIVATE], ids=["n", "private n"])
@pytest.mark.parametrize(("strategy", "epsilon"), [("cells", 1), ("pairs", 4)])
def test_all_cells_and_all_pairs_buy_no_certificate(strategy, epsilon, relation):
    made = smalldb.release(people(), "marginals:2", epsilon=epsilon, seed=3, strategy=strategy, **relation)
    assert (made.plan.chosen.strategy.certifying, made.plan.chosen.strategy.measuring) == (0, epsilon)
    assert made.record["bounds"]["covers"] == ["every query of marginals:2"]
    assert made.confidential.max_error <= made.record["bounds"]["released"] < 0.3


def test_tables_beside_columns_keep_the_certificate():
    made = smalldb.plan(PEOPLE, "marginals:2", n=1500, epsilon=1, mechanism="marginals", strategy="adaptive")
    assert made.chosen.strategy.certifying == Fraction(1, 20)
    named = {"measure_first": ["age x ill"], "strategy": "adaptive", "mechanism": "marginals"}
    first = smalldb.plan(PEOPLE, "marginals:1", n=1500, epsilon=1, **named)
    assert first.chosen.strategy.certifying == Fraction(1, 20)  # columns are read from a table
