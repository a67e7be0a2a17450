"""Many columns: rounds for each of them, and weights that make measured tables a tree with hubs."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from builders import each_once, universe

from smalldb.marginals.counted_rows import count
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.estimate.packed_pairs import MOST_WEIGHT, association_weights, candidates, cramers_v
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.budgets import MOST_NOISE, SMALL, put_off
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.strategies.strategy import Setting
from smalldb.noise.distributions import Geometric


def wide(columns, size=8):
    return universe((size,) * columns)


def test_wide_tables_get_rounds_for_every_column():
    given = Fraction(1), None, False, 100_000
    rounds = [plan_tables(wide(c), *given, strategy="adaptive").rounds for c in (14, 28, 56, 100)]
    assert rounds[0] >= 26
    assert rounds[2] > 50
    assert rounds[3] > 90
    assert plan_tables(wide(100), Fraction(10), None, False, 100_000).rounds == 200
    for columns in (28, 100):
        plan = plan_tables(wide(columns), Fraction(1), None, False, 100_000)
        assert plan.cost <= plan.budget


def test_columns_get_all_where_noise_leaves_nothing_to_be_found():
    """Of many columns, noise on a table that a round would measure decides; of up to 28 there are rounds."""
    for rows, rounds in ((2_000, False), (100_000, True)):
        plan = plan_tables(wide(100), Fraction(1), None, False, rows, strategy="adaptive")
        assert bool(plan.rounds) == rounds
        if rounds:
            assert put_off(plan, [SMALL], Fraction(1))[0] < MOST_NOISE
        else:
            assert plan.selecting == plan.measuring == 0
        assert 0 <= plan.budget - plan.cost <= Fraction(1, 10**6)
        assert rounds or sum(plan.columns) == Fraction(19, 20)
    assert plan_tables(wide(28), Fraction(1, 10), None, False, 10_000, strategy="adaptive").rounds


@pytest.mark.slow
@pytest.mark.parametrize("delta", [None, Fraction(1, 10**9)])
def test_rounds_are_dropped_one_by_one_where_noise_gets_louder(delta):
    """No number of rows is there at which all rounds go at once; columns get what each would have cost."""
    sizes = [round(200_000 / 1.03**step) for step in range(0, 200, 2)]
    law = PrivacyMeasure(concentrated=delta is not None, replaced=False)
    setting = Setting(universe=wide(40), law=law, epsilon=Fraction(1), delta=delta, rows=1)
    plans = [Adaptive.shared(replace(setting, rows=rows)) for rows in sizes]
    rounds = [plan.rounds for plan in plans]
    assert rounds[0] > 40 and rounds[-1] == 0
    assert all(-1 <= a - b <= 12 for a, b in pairwise(rounds))
    shares = [float(sum(plan.columns) / (plan.cost - plan.certifying)) for plan in plans]
    assert max(b - a for a, b in pairwise(shares)) < 0.12 and shares[-1] == 1


def measured(a, b):
    return NoisyTable(
        ((a, 1), (b, 1)), np.ones((2, 2), dtype=np.int64), Fraction(1), Geometric(Fraction(1)), 1.0
    )


def test_weights_are_products_of_reaches():
    found = candidates(wide(5, size=2), [halved(np.ones(2), ordered=True) for _ in range(5)])
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, 400)
    codes = np.stack([np.where(rng.random(400) < 0.1 * c, 1 - z, z) for c in range(5)], axis=1)
    predicted = [t.astype(float) for t in count(found.linear(), each_once(codes, (2,) * 5))]
    assert association_weights(found, predicted, []) == (MOST_WEIGHT,) * 10
    told = association_weights(found, predicted, [measured(0, 1), measured(1, 2)])
    weights = dict(zip(found.tables, told, strict=True))
    v = {t: cramers_v(p) for t, p in zip(found.tables, predicted, strict=True)}
    reach = {0: 1 + v[0, 1] + v[0, 2], 1: 1 + v[0, 1] + v[1, 2], 2: 1 + v[0, 2] + v[1, 2], 3: 1.0, 4: 1.0}
    most = max(reach.values())
    assert weights[0, 1] == weights[3, 4] == round(100 / most)
    for a in range(3):
        for b in (3, 4):
            assert weights[a, b] == round(100 * reach[a] / most)
    # whatever is measured of the same columns again, and in whichever order
    assert tuple(weights.values()) == association_weights(
        found, predicted, [measured(1, 2), measured(0, 1), measured(0, 2)]
    )


def test_cramers_v():
    assert cramers_v(np.outer([1.0, 2.0, 0.0], [3.0, 1.0])) == pytest.approx(0, abs=1e-9)
    assert cramers_v(np.diag([1.0, 5.0, 2.0])) == pytest.approx(1)
    assert cramers_v(np.zeros((3, 2))) == cramers_v(np.array([[1.0, 2.0]])) == 0.0
    # chi-squared of [[30, 10], [10, 30]] is 20, of 80 rows: V is 1/2
    assert cramers_v(np.array([[30.0, 10.0], [10.0, 30.0]])) == pytest.approx(0.5)
