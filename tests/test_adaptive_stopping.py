"""Rounds end where released tables are no more than noise, and the columns get what is left."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from asking import measure, release_tables
from builders import each_once, universe

from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import SeededBits
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import (
    LEAST_UNINFORMATIVE,
    MOST_RAISED,
    RAISED,
    StoppingRule,
    beyond_noise,
)
from smalldb.marginals.strategies.choosing_tables import plan_tables

N = 4_000
SIZES = (6, 4, 5, 6, 8, 4, 6, 5)


@pytest.mark.parametrize("concentrated", [False, True])
def test_noise_tells_nothing_and_a_difference_does(concentrated):
    law = PrivacyMeasure(concentrated=concentrated, replaced=False)
    scope, counts = ((0, 1), (1, 1)), np.arange(48).reshape(6, 8)
    tables = [measure(counts, scope, law, Fraction(1, 20), SeededBits(seed)) for seed in range(40)]
    assert sum(beyond_noise(table, counts.astype(float), concentrated) for table in tables) <= 4
    far = counts + 2 * law.noise(Fraction(1, 20)).variance() ** 0.5 * (-1) ** np.arange(48).reshape(6, 8)
    assert sum(beyond_noise(table, far, concentrated) for table in tables) >= 36


def test_what_is_enough():
    stopping = StoppingRule()
    for informative in (True, False, True, False, False, False, False, False):
        stopping = stopping.after(informative)
        assert not stopping.met
    assert stopping == StoppingRule(informative=2, uninformative=5, cost_factor=RAISED**6, rounds=8)
    assert stopping.after(False).met
    assert not StoppingRule(0, 3).met
    assert StoppingRule(0, 4).met


def test_rounds_cost_more_once_tables_told_something_and_one_does_not():
    stopping = StoppingRule()
    cases = [(False, 1), (True, 1), (True, 1), (False, RAISED), (True, RAISED), (False, RAISED**2)]
    for informative, times in cases:
        stopping = stopping.after(informative)
        assert stopping.cost_factor == times
    for _ in range(20):
        stopping = stopping.after(False)
    assert stopping.cost_factor == MOST_RAISED


def planned(epsilon, delta=None):
    return plan_tables(universe(SIZES), epsilon, delta, True, N, strategy="adaptive")


def released(plan, codes, seed=1):
    return release_tables(plan, each_once(codes, SIZES), SeededBits(seed))


def pairs_of_equal_columns():
    """Two pairs, and four columns that depend on nothing: most tables tell nothing."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, N) for k in SIZES], axis=1)
    codes[:, 3], codes[:, 5] = codes[:, 0], codes[:, 1]
    return codes


def test_raised_rounds_stay_within_the_budget():
    for delta in (None, Fraction(1, 10**6)):
        plan = replace(planned(Fraction(1, 2), delta), halved=False)  # rounds go on in their noise
        made = released(plan, pairs_of_equal_columns())
        tables = (*made.tables, *made.beside)
        raised = [part.cost / plan.cost_of(part.counts.size) for part in tables]
        assert max(raised) > 1 == raised[0]
        paid = sum(part.cost for part in (*made.columns, *tables, *made.again))
        assert made.spent == paid + sum(raised) * plan.selecting
        assert made.spent <= plan.cost - plan.certifying
        assert all(part.variance == plan.law.noise(part.cost).variance() for part in tables)


def test_under_rho_no_round_takes_more_than_an_equal_share_of_what_is_left():
    plan = planned(Fraction(1, 2), Fraction(1, 10**6))
    assert plan.law.concentrated
    made = released(plan, pairs_of_equal_columns())
    left, raised = plan.for_rounds, []
    for number, one in enumerate(one for one in made.measurements if one.selecting is not None):
        raised.append(one.selecting / plan.selecting)
        ahead = max(1, plan.rounds - number)
        assert raised[-1] <= max(1, left / (ahead * (plan.selecting + plan.measuring)))
        left -= one.selecting + one.cost
    assert left >= 0 and max(raised) > 1


@pytest.mark.parametrize(("epsilon", "delta"), [(Fraction(2), None), (Fraction(1, 4), Fraction(1, 10**6))])
def test_columns_get_what_is_left_where_nothing_depends_on_anything(epsilon, delta):
    rng = np.random.default_rng(0)
    codes = np.stack([rng.choice(k, size=N, p=rng.dirichlet(np.ones(k))) for k in SIZES], axis=1)
    plan = planned(epsilon, delta)
    assert plan.delta == delta and plan.rounds
    made = released(plan, codes, 3 if delta else 4)
    assert LEAST_UNINFORMATIVE <= len(made.tables) <= 2 * LEAST_UNINFORMATIVE
    assert [table.scope for table in made.again] == [table.scope for table in made.columns]
    assert made.spent == (rho_of(epsilon, delta) if delta else epsilon) - plan.certifying
    shares = {a.cost / b.cost for a, b in zip(made.again, made.columns, strict=True)}
    assert len(shares) == 1


def test_rounds_go_on_where_columns_depend_on_each_other():
    z = np.random.default_rng(0).integers(0, 3, N)
    plan = planned(Fraction(1))
    made = released(plan, np.stack([z] * 8, axis=1), 3)
    assert plan.rounds and made.tables and not made.again
