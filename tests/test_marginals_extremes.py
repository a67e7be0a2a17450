"""Rounds at the ends of what can be asked for: nothing wraps around, or runs away."""

from contextlib import suppress
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import smalldb
from queries import Column, Domain, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals.asks import Noisy
from smalldb.marginals.estimate.column_estimates import WIDTHS, bounded_total, on_simplex, read_column, whole
from smalldb.marginals.estimate.estimation import fitted_margins
from smalldb.marginals.measuring import LIMIT, PrivacyMeasure

DROWNED = (
    r"^(contrasts are measured with an epsilon of 2\^-40 to 2\^20, the certificate left out; )?"
    r"noise of more than 2\^40 would be added to every count: epsilon is too small$"
)
WHOLE = 1 - Fraction(1, 10**200)
DOMAIN = Domain([Column("job", ["none", "part", "full"]), Column("region", 5), "smoker"])


def drawn(domain, n):
    rng = np.random.default_rng(n)
    return Rows.from_codes(domain, np.stack([rng.integers(0, k, n) for k in domain.sizes], axis=1))


@pytest.mark.parametrize("concentrated", [False, True])
def test_noise_that_is_cut_off_does_not_tell_the_count(concentrated):
    law, cost = PrivacyMeasure(concentrated, False), Fraction(1, 2 ** (140 if concentrated else 63))
    for count in (0, 1, 2**52):
        ask = Noisy((), ((law.noise(cost), 400),))
        found = ask.draw(np.full(400, count), SeededBits(count))
        assert np.abs(found).max() <= LIMIT
        assert {LIMIT, -LIMIT} <= {*found.tolist()}  # the case occurs


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("epsilon", ["1e-10", "1e-6", "1/1000", "1000"])
def test_tiny_tables_and_budgets_are_released(n, epsilon):
    release = smalldb.release(
        drawn(DOMAIN, n), epsilon=epsilon, neighbours="add-remove", n_max=1, mechanism="marginals", rng=1
    )
    assert 1 <= len(release.data) <= 10**6
    assert 0 <= release.record["bounds"]["released"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("domain", [DOMAIN, Domain(25), Domain(40)])
@pytest.mark.parametrize("delta", [None, "1e-9", "1e-300"])
@pytest.mark.parametrize(
    ("epsilon", "share"), [("1e-20", 0), ("1e-160", None), ("1e-300", "1e-300"), (1, WHOLE)]
)
def test_an_epsilon_that_tells_nothing_is_refused(domain, delta, epsilon, share):
    with pytest.raises(ValueError, match=DROWNED):
        smalldb.plan(domain, n=100, epsilon=epsilon, delta=delta, mechanism="marginals", certificate=share)


@pytest.mark.parametrize("delta", [None, "1e-300"])
def test_an_epsilon_that_tells_nothing_of_a_column_is_refused(delta):
    """The whole of it would leave noise below 2^40; its share for a column does not."""
    options = {"n": 100, "epsilon": Fraction(1, 2**38), "mechanism": "marginals", "strategy": "adaptive"}
    assert not PrivacyMeasure(False, True).drowns(options["epsilon"] * Fraction(19, 20))
    with pytest.raises(ValueError, match=DROWNED):
        smalldb.plan(Domain([Column(f"c{i}", 3) for i in range(30)]), delta=delta, **options)


@pytest.mark.parametrize("delta", [None, "1e-300"])
def test_what_is_planned_has_no_noise_above_two_to_the_forty_on_any_column(delta):
    domain, heard = Domain([Column(f"c{i}", 3) for i in range(30)]), []
    for bits in range(28, 42):
        options = {"n": 100, "epsilon": Fraction(1, 2**bits), "mechanism": "marginals", "delta": delta}
        with suppress(ValueError):
            strategy = smalldb.plan(domain, strategy="adaptive", certificate=0, **options).chosen.strategy
            heard.append(bits)
            assert all(strategy.law.noise(cost).mean_size <= 2**40 for cost in strategy.columns)
    assert 0 < len(heard) < 14


@pytest.mark.parametrize("concentrated", [False, True])
@pytest.mark.parametrize("replaced", [False, True])
def test_noise_drowns_counts_from_a_mean_of_two_to_the_forty_on(concentrated, replaced):
    law = PrivacyMeasure(concentrated, replaced)
    costs = [Fraction(2) ** -k * many for k in range(30, 90) for many in (3, 4, 5)]
    assert [law.drowns(cost) for cost in costs] == [law.noise(cost).mean_size > 2**40 for cost in costs]
    assert law.drowns(Fraction(1, 10**400))
    assert not law.drowns(Fraction(10**300))


@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("share", ["1e-30", "1e-300"])
def test_a_certificate_that_tells_nothing_is_refused(delta, share):
    options = {"n": 100, "epsilon": 1, "delta": delta, "mechanism": "marginals"}
    with pytest.raises(ValueError, match=r"^the certificate would add noise of more than 2\^40: give it"):
        smalldb.plan(
            Domain([Column(c, 40) for c in "abcdef"]), certificate=share, strategy="adaptive", **options
        )
    # where all cells are measured their noise alone leaves a bound
    assert (
        smalldb.plan(DOMAIN, certificate=share, strategy="cells", **options).chosen.strategy.certifying == 0
    )


def test_totals_are_bounded_as_rows_are():
    assert [bounded_total(rows) for rows in (-1e30, 0.2, 7.4, 1e30)] == [1, 1, 7, 1 << 40]
    assert (on_simplex(np.array([1e17, 3e17, -1e18]), 1) >= 0).all()


def test_predictions_are_whole_whatever_floats_say():
    found = whole(np.array([np.nan, np.inf, -np.inf, -1.0, 2.6, 1e30]), 9)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 9, 0, 0, 3, 9]


def test_margins_without_cells_leave_numbers():
    table = np.array([[0.0, 0.0], [0.0, 4e8], [5e8, 5e8]])
    assert np.isfinite(fitted_margins(table, np.array([3e8, 5e8, 1e9]), np.array([9e8, 9e8]))).all()


def test_a_long_ordered_column_is_smoothed_in_little_memory():
    counts = np.zeros(300_000, dtype=np.int64)
    counts[1_000:1_100] = 50
    found = read_column(counts, 4.0, 5_000, True)
    assert found.sum() == pytest.approx(5_000)
    assert len(WIDTHS) > 1


def test_rules_that_meet_in_a_large_table_are_refused_before_anything_is_paid():
    columns = [Column(f"c{i}", ["a", "b", "c", "d"]) for i in range(12)]
    rules = [f"~(`c{i}=a` & `c{j}=b`)" for i, j in combinations(range(12), 2)]
    with pytest.raises(ValueError, match=r"the rules of valid meet in tables of [0-9]+ cells"):
        smalldb.plan(Domain(columns, rules), n=100, epsilon=1, mechanism="marginals")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "Int8", "UInt8", "int16", "Int64"])
def test_a_narrow_dtype_of_the_data_does_not_change_what_is_released(dtype):
    domain = Domain([Column("x", 300), Column("y", ["1", "2", "other"]), Column("z", ["True", "False", "?"])])
    like = pd.DataFrame({"x": [1, 2], "y": [1, 2]}).astype(dtype).assign(z=[True, False])
    codes = np.array([[299, 2, 2], [130, 0, 1]])
    found = domain.decode(codes, like=like)
    assert found["x"].tolist() == [299, 130]
    assert found["y"].tolist() == ["other", "1"]
    assert found["z"].tolist() == ["?", "False"]


@pytest.mark.parametrize("epsilon", [1000, 10**6])
def test_where_there_is_no_noise_the_table_is_that_of_the_data(epsilon):
    real = drawn(DOMAIN, 1000)
    found = smalldb.release(real, epsilon=epsilon, mechanism="marginals", rng=1).rows
    assert (found.words == real.words).all()
    assert (found.counts == real.counts).all()


def test_a_beta_that_floats_do_not_hold_is_refused_before_anything_is_paid():
    for strategy in ("adaptive", "cells", "contrasts"):
        with pytest.raises(ValueError, match="beta must be at least 1e-300"):
            smalldb.plan(Domain(3), n=200, epsilon=1, strategy=strategy, beta="1e-400")


def test_selections_whose_epsilon_would_be_rounded_to_0_are_refused():
    many = Domain([Column(f"c{i}", 4) for i in range(24)])
    given = {"n": 1 << 52, "epsilon": Fraction(1, 1 << 37), "delta": "1e-12", "rows": 10}
    with pytest.raises(ValueError, match="epsilon is too small"):
        smalldb.plan(many, strategy="adaptive", **given)
