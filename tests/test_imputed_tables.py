"""Several tables of a release: how they are pooled, what they assume, and which releases have none."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import smalldb
from queries import Column, Domain
from smalldb.inference.assumptions import combine, interval
from smalldb.marginals.strategies.dependence import DependenceTested
from smalldb.mechanisms import Marginal, Measurement, Parity
from smalldb.noise.distributions import DiscreteGaussian, Geometric
from smalldb.releasing.imputed_tables import check_drawable, released_total


def table_of(columns, sizes, values, noise):
    """A table at all categories."""
    groups = tuple(tuple(range(sizes[c])) for c in columns)
    return Measurement((Marginal(columns, groups),), np.array(values), noise, Fraction(1))


def test_rubins_rule():
    pooled = combine([1.0, 2.0, 3.0], [0.5, 0.5, 0.5])
    assert (pooled.estimate, pooled.within, pooled.between) == (2.0, 0.5, 1.0)
    assert pooled.variance == pytest.approx(0.5 + 4 / 3)
    assert pooled.degrees == pytest.approx(2 * (1 + 0.5 / (4 / 3)) ** 2)
    low, high = combine([1.0, 2.0, 3.0]).interval()
    assert (low + high) / 2 == pytest.approx(2)
    assert (high - low) / 2 == pytest.approx(4.302653 * (4 / 3) ** 0.5, rel=1e-5)  # t of two degrees
    assert combine([1.0, 1.0], [4.0, 4.0]).interval()[1] == pytest.approx(1 + 1.959964 * 2, rel=1e-5)
    assert interval(lambda x: (x, 0.5), [1.0, 2.0, 3.0]) == pooled.interval()
    for wrong in (([1.0],), ([1.0, 2.0], [1.0]), ([1.0, 2.0], [1.0, -1.0])):
        with pytest.raises(ValueError):
            combine(*wrong)


def test_the_number_of_rows_is_read_from_all_tables():
    near = table_of((0,), (2,), [40, 61], DiscreteGaussian(Fraction(1)))
    far = table_of((0,), (2,), [400, 601], DiscreteGaussian(Fraction(10**6)))
    assert released_total([near, far]) == 101
    signs = Measurement((Parity((), True),), np.array([77]), Geometric(Fraction(1)), Fraction(1))
    assert released_total([signs]) == 77


@pytest.fixture(scope="module")
def release():
    people = pd.DataFrame(
        {"smoker": [True, False, False, False] * 50, "ill": [True, True, False, False] * 50}
    )
    return smalldb.release(people, "marginals:2", epsilon=5, mechanism="marginals", seed=1)


@pytest.mark.slow
def test_tables_of_a_release(release):
    tables = release.tables(6, rng=1)
    assert len(tables) == 6 and len(tables[:2]) == 2
    assert "from a model of 1 measured tables, fitted anew for each" in repr(tables)
    for table in tables:
        assert table.shape == (200, 2) and list(table.columns) == ["smoker", "ill"]
        assert (table.dtypes == release.data.dtypes).all()
    again = release.tables(6, rng=1)
    assert all(a.equals(b) for a, b in zip(tables, again, strict=True))
    low, high = interval(lambda table: table.ill.mean(), tables)
    assert low <= 0.5 <= high and high - low < 0.2


@pytest.fixture(scope="module")
def apart():
    """Tables of four columns, of which two pairs were measured together."""
    coins = np.random.default_rng(4)
    old = coins.random(300) < 0.5
    people = pd.DataFrame(
        {
            "old": old,
            "ill": coins.random(300) < 0.2 + 0.5 * old,
            "town": coins.random(300) < 0.5,
            "tax": coins.random(300) < 0.4,
        }
    )
    release = smalldb.release(
        people,
        "marginals:1",
        epsilon=3,
        strategy="adaptive",
        measure_first=["old x ill", "town x tax"],
        seed=1,
    )
    return release.tables(4, rng=1)


STATISTICS = {  # and the pairs that it is about and were never measured together
    "a share": (lambda table: table.ill.mean(), ""),
    "of a pair that was measured": (lambda table: table.ill[table.old].mean(), ""),
    "two shares": (lambda table: table.ill.mean() - table.tax.mean(), ""),
    "with a variance": (lambda table: (table.old.mean(), 0.001), ""),
    "random": (lambda table: table.ill[table.tax].mean() + np.random.default_rng().random(), ""),
    "a conditional share": (lambda table: table.ill[table.tax].mean(), "(ill x tax)"),
    "a correlation": (lambda table: table.corr().loc["old", "town"], "(old x town)"),
    "conditional, with a variance": (lambda table: (table.ill[table.town].mean(), 0.001), "(ill x town)"),
    "three columns": (lambda table: (table.ill & table.old & table.tax).mean(), "(old x tax, ill x tax)"),
    "all": (lambda table: table.to_numpy().all(axis=1).mean(), "old x tax, ill x town and 1 more"),
}


@pytest.mark.parametrize(("statistic", "named"), STATISTICS.values(), ids=STATISTICS)
def test_a_statistic_across_columns_that_were_not_measured_together_warns(apart, statistic, named):
    if named:
        with pytest.warns(UserWarning, match="never measured together") as told:
            interval(statistic, apart)
        assert named in str(told[0].message)
    else:
        interval(statistic, apart)  # a warning is an error here
    interval(statistic, list(apart))  # of tables alone nothing is known


def test_what_is_combined_warns_of_columns_that_were_not_measured_together(apart):
    assert {*apart.unmeasured} == {("old", "town"), ("old", "tax"), ("ill", "town"), ("ill", "tax")}
    assert "4 of 6 pairs of columns not measured together" in repr(apart)
    assert apart[1:].unmeasured == apart.unmeasured
    with pytest.warns(UserWarning, match=r"about columns that were never measured together \(ill x tax\)"):
        assert combine([1.0, 3.0], tables=apart, columns=["ill", "tax"]).estimate == 2
    with pytest.warns(UserWarning, match="unless `columns` says otherwise, .*and 1 more"):
        combine([1.0, 3.0], tables=apart)
    combine([1.0, 3.0], tables=apart, columns=["ill", "old"])  # a warning is an error here
    for wrong in ({"tables": apart, "columns": ["il"]}, {"columns": ["ill"]}):
        with pytest.raises(ValueError, match=r"no column 'il'|give the tables"):
            combine([1.0, 3.0], **wrong)


@pytest.mark.parametrize(
    ("statistic", "error", "said"),
    [
        (lambda table: table.mean(), TypeError, "not Series: take one value of it"),
        (lambda table: "much", TypeError, "not str"),
        (lambda table: None, TypeError, "not NoneType"),
        (lambda table: (1.0, 2.0, 3.0), TypeError, "not 3 numbers"),
        (lambda table: float("nan"), ValueError, "mean over no rows"),
    ],
)
def test_what_is_no_number_is_refused_in_one_line(apart, statistic, error, said):
    with pytest.raises(error, match=said) as raised:
        interval(statistic, apart)
    assert "\n" not in str(raised.value)
    with pytest.raises(error):
        combine([statistic(table) for table in apart])


def test_what_has_no_several_tables_is_refused(release):
    for wrong in (0, -1, True, 1.5):
        with pytest.raises((ValueError, TypeError), match="whole number"):
            release.tables(wrong)
    people = pd.DataFrame({"a": [0, 1, 1], "b": [0, 0, 1]})
    small = smalldb.release(people, "marginals:2", epsilon=1, rows=3, mechanism="census", seed=1)
    with pytest.raises(ValueError, match="has no measurements"):
        small.tables(2)


MIXED, SIGNS = Domain([Column("a", 9), Column("b", 9), Column("c", 9)]), Domain(12)


@pytest.mark.parametrize(
    ("domain", "strategy", "n", "why"),
    [
        (MIXED, "pairs", 10_000, "all pairs of columns may be measured at once"),
        (MIXED, "cells", 100, "most of their cells hold fewer rows than noise"),
        (MIXED, "cells", 10_000, None),
        (SIGNS, "contrasts", 800, "contrasts have so much noise"),
        (SIGNS, "contrasts", 10_000, None),
        (MIXED, "adaptive", 10_000, None),
    ],
)
def test_what_several_tables_are_not_drawn_of_is_refused_by_the_plan(domain, strategy, n, why):
    plan = smalldb.plan(domain, n=n, epsilon=1, strategy=strategy)
    if why is None:
        check_drawable(plan)
    else:
        with pytest.raises(ValueError, match=why):
            check_drawable(plan)


def test_a_strategy_that_may_go_another_way_is_refused_for_that():
    ways = [smalldb.plan(MIXED, n=9000, epsilon=1, strategy=name).chosen for name in ("adaptive", "pairs")]
    choices = [way.strategy for way in ways] * 4
    tested = DependenceTested.before(choices[0], choices, Fraction(1, 30))
    assert "all pairs of columns" in tested.undrawable(9000)
    assert ways[0].strategy.undrawable(9000) is None
