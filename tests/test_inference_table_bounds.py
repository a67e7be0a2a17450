"""Bounds of measured tables from the noise alone: all at once, and no certificate where nothing is left."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from records import check_record

import smalldb
from queries import Column, Domain, Rows
from smalldb.exact.bits import bit_source
from smalldb.marginals.noise_bounds import _margins, _tables, table_bounds
from smalldb.mechanisms import Marginal, Measurement, Measurements
from smalldb.noise.distributions import DiscreteGaussian, Geometric, KNorm
from smalldb.noise.simulating import Uniforms
from smalldb.planning.plans import tables_reached

DOMAIN = Domain([Column("age", ["a", "b", "c", "d"]), "ill", Column("job", ["x", "y", "z"]), "sex"])
FORBIDDEN = Domain(DOMAIN.columns, valid="~(ill & `age=a`)")


def rows_of(domain=DOMAIN, n=1500, seed=4):
    coins = np.random.default_rng(seed)
    age = coins.integers(0, 4, n)
    ill = (coins.random(n) < 0.1 + 0.2 * age) & ((age > 0) | (domain is DOMAIN))
    job = (age + (coins.random(n) < 0.3)) % 3
    return Rows.from_codes(domain, np.array([age, ill, job, coins.integers(0, 2, n)]).T)


def shares(part, rows):
    """The shares of a table's cells, row by row."""
    found = {}
    for row, count in zip(rows.codes().tolist(), rows.counts.tolist(), strict=True):
        cell = tuple(own[row[c]] for c, own in zip(part.columns, part.groups, strict=True))
        found[cell] = found.get(cell, 0) + count
    return {cell: found.get(cell, 0) / rows.n for cell in np.ndindex(*part.shape)}


def errors(made, real):
    """How far the synthetic table is off in each measured table."""
    parts = [part for each in made.measurements for part in each.of if isinstance(part, Marginal)]
    return [
        max(abs(share - shares(part, made.rows)[cell]) for cell, share in shares(part, real).items())
        for part in parts
    ]


PRIVATE = {"neighbours": "add-remove", "n_max": 2000}
SETTINGS = {
    "pairs": {"queries": "marginals:2", "strategy": "adaptive"},
    "private n": {"queries": "marginals:2", "strategy": "adaptive", **PRIVATE},
    "Gaussian": {"queries": "marginals:2", "strategy": "adaptive", "delta": "1e-6"},
    "at once": {"queries": "marginals:2", "strategy": "pairs"},
    "columns": {"queries": "marginals:1", "strategy": "adaptive"},
    "columns, private n": {"queries": "marginals:1", "strategy": "adaptive", **PRIVATE},
}


def exceeded(setting, releases, beta):
    """How many of the releases exceed a bound of theirs, and the mean of error over bound."""
    real, wrong, close = rows_of(), 0, []
    for seed in range(releases):
        made = smalldb.release(
            real, epsilon=1, beta=beta, mechanism="marginals", seed=seed, **SETTINGS[setting]
        )
        bounds = [one["released"] for one in made.record["bounds"]["tables"]]
        found = errors(made, real)
        wrong += any(error > bound for error, bound in zip(found, bounds, strict=True))
        wrong += setting == "columns" and max(found) > made.record["bounds"]["released"]
        close.append(np.mean(np.array(found) / np.array(bounds)))
    return wrong, float(np.mean(close))


@pytest.mark.parametrize(
    ("releases", "beta", "most"),
    [
        pytest.param(8, "0.2", 8 * 0.2 + 3 * (8 * 0.2 * 0.8) ** 0.5, marks=pytest.mark.slow),
        pytest.param(500, "0.05", 500 * 0.05, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("setting", SETTINGS)
def test_bounds_are_exceeded_as_seldom_as_they_say(setting, releases, beta, most):
    wrong, close = exceeded(setting, releases, beta)
    assert wrong <= most
    assert 0.02 < close < 1  # they say something


def of_noise(noises, n):
    """Measurements of every column and two tables, which are given these noises in turn."""
    groups = [tuple(range(size)) for size in DOMAIN.sizes]
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
    return Measurements(DOMAIN, items, n)


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
@pytest.mark.parametrize("domain", [DOMAIN, FORBIDDEN], ids=["all", "rules"])
@pytest.mark.parametrize("setting", ["pairs", "private n"])
def test_bounds_are_those_of_the_definition(setting, domain):
    real, named = rows_of(domain), {"measure_first": ["age x ill"]}
    made = smalldb.release(real, epsilon=1, mechanism="marginals", seed=4, **named, **SETTINGS[setting])
    check_record(made.record)
    stated = made.record["bounds"]["tables"]
    tables = _tables(made.measurements)
    assert [one["measurement"] for one in stated] == [table.number for table in tables]
    assert [tuple(one["columns"]) for one in stated] == [
        tuple(domain.names[c] for c in table.part.columns) for table in tables
    ]
    most, private = tables_reached(made.plan), setting == "private n"
    margins = [_margins(table, made.plan.beta / most, private) for table in tables]
    ends = [(real.n, real.n)]
    if private:
        totals = [table.values[table.possible].sum() for table in tables]
        ends = [(total - reach, total + reach) for total, (_, reach) in zip(totals, margins, strict=True)]
    low, high = max(one for one, _ in ends), min(other for _, other in ends)
    for one, table, (margin, _) in zip(stated, tables, margins, strict=True):
        worst = 0.0
        for cell, share in shares(table.part, made.rows).items():
            if table.possible[cell]:
                value = table.values[cell]
                off = max(value + margin - share * low, share * high - value + margin) / low
                worst = max(worst, min(off, max(share, 1 - share)))
        assert one["released"] == pytest.approx(min(1.0, worst), rel=1e-9)
    if domain is FORBIDDEN:
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
    rows = rows_of()
    assert {one.bound for one in table_bounds(measured, rows, Fraction(1, 20), 6)} == {1.0}
    assert table_bounds(Measurements(DOMAIN, (), 5), rows, Fraction(1, 20), 6) == ()
    with pytest.raises(ValueError, match="more tables were measured"):
        table_bounds(measured, rows, Fraction(1, 20), 5)


@pytest.mark.parametrize(
    "more",
    [{}, {"neighbours": "add-remove", "n_max": 2000}, {"delta": "1e-6"}],
    ids=["n", "private n", "delta"],
)
def test_columns_alone_buy_no_certificate(more):
    real = rows_of()
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


def test_tables_beside_columns_keep_the_certificate():
    made = smalldb.plan(DOMAIN, "marginals:2", n=1500, epsilon=1, mechanism="marginals", strategy="adaptive")
    assert made.chosen.strategy.certifying == Fraction(1, 20)
    named = {"measure_first": ["age x ill"], "strategy": "adaptive", "mechanism": "marginals"}
    first = smalldb.plan(DOMAIN, "marginals:1", n=1500, epsilon=1, **named)
    assert first.chosen.strategy.certifying == Fraction(1, 20)  # columns are read from a table
