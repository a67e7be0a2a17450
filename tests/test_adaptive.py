"""Releases in rounds: sensitivities by enumeration, exact costs, rules, when rounds end, and many columns."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from asking import measure, release_tables
from builders import each_once, tied, universe
from measures import pairs_off

from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import SeededBits
from smalldb.marginals.asks import Worst
from smalldb.marginals.counted_rows import CountedRows, checked, count
from smalldb.marginals.counts import InMemory
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.estimate.packed_pairs import MOST_WEIGHT, association_weights, candidates, cramers_v
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.budgets import MOST_NOISE, SMALL, put_off
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.strategies.rounds import (
    LEAST_UNINFORMATIVE,
    MOST_RAISED,
    RAISED,
    ModelCapacity,
    StoppingRule,
    as_fine,
    beyond_noise,
)
from smalldb.marginals.strategies.strategy import Setting
from smalldb.marginals.universe import Universe
from smalldb.noise.distributions import DiscreteGaussian, Geometric

TINY = (2, 3, 5)
PAIRS = tuple(combinations(range(3), 2))
TABLES = (*PAIRS, (0, 1, 2))


def tiny(rules=()):
    return Universe(TINY, (False, False, True), TABLES, rules)


def rows_of(cells):
    codes = np.array(list(product(*map(range, TINY))))
    return CountedRows(codes, np.asarray(cells, dtype=np.int64))


def neighbours(replaced):
    """A few databases over all 30 cells, each with every neighbour of it."""
    one = np.eye(30, dtype=np.int64)
    for cells in np.random.default_rng(0).integers(0, 4, (3, 30)):
        for a, b in product(range(30), range(0, 30, 7) if replaced else [None]):
            if a != b:
                yield cells + one[a], cells if b is None else cells + one[b]


@pytest.mark.parametrize("replaced", [False, True])
def test_counts_and_scores_move_as_stated(replaced):
    law = PrivacyMeasure(concentrated=False, replaced=replaced)
    groupings = [halved(np.arange(1.0, k + 1), ordered=k == 5) for k in TINY]
    found = candidates(tiny(), groupings)
    model = np.array([[0, 1, 1, 0], [2, 0, 1, 1], [0, 4, 3, 2]])
    expected = [12 * table for table in count(found.linear(), each_once(model.T, TINY))]
    largest = np.zeros(3)
    for one, other in neighbours(replaced):
        counted = [count(found.linear(), rows_of(cells)) for cells in (one, other)]
        for a, b in zip(*counted, strict=True):
            largest[0] = max(largest[0], np.abs(a - b).sum())
            largest[1] = max(largest[1], ((a - b) ** 2).sum())
        scores = [found.scores(tables, expected, found.weights, lambda cells: 1.5) for tables in counted]
        largest[2] = max(largest[2], np.abs(scores[0] - scores[1]).max() / max(found.weights))
    assert largest.tolist() == [law.moved] * 3


@pytest.mark.parametrize("delta", [None, Fraction(1, 1000)])
@pytest.mark.parametrize("replaced", [False, True])
def test_scores_of_neighbours_are_as_far_apart_as_a_selection_says(replaced, delta):
    """Of the first selection of a release, whose columns have no noise."""
    steps = plan_tables(tiny(), Fraction(50), delta, replaced, 60, strategy="adaptive").release(60)
    asked, data = next(steps), InMemory(rows_of([2] * 30))
    while not isinstance(asked, Worst):
        asked = steps.send(asked.exact(data))
    scores = (
        [asked.exact(InMemory(rows_of(cells))) for cells in both] for both in list(neighbours(replaced))[::3]
    )
    assert max(abs(one - other).max() for one, other in scores) == asked.moved


def test_scores_are_those_of_the_definition():
    groupings = [halved(np.ones(k), ordered=True) for k in TINY]
    found = candidates(tiny(), groupings)
    rng = np.random.default_rng(2)
    rows, model = rows_of(rng.integers(0, 9, 30)), np.array([rng.integers(0, k, 40) for k in TINY])
    expected = count(found.linear(), each_once(model.T, TINY))
    scores = found.scores(count(found.linear(), rows), expected, found.weights, lambda cells: 2.25)
    names = found.scopes()
    assert len(scores) == len(names) == len(set(names))
    for name, score in zip(names, scores.tolist(), strict=True):
        table = tuple(c for c, _ in name)
        where = found.tables.index(table)
        groups = [groupings[c].of_categories(level) for c, level in name]
        there, fine = {}, dict(np.ndenumerate(expected[where]))
        for row, times in zip(rows.codes, rows.counts, strict=True):
            cell = tuple(int(g[row[c]]) for g, c in zip(groups, table, strict=True))
            there[cell] = there.get(cell, 0) + int(times)
        for cell, times in fine.items():
            coarse = tuple(
                int(groupings[c].parents(level, top)[i])
                for i, (c, level), top in zip(cell, name, found.levels(table), strict=True)
            )
            there[coarse] = there.get(coarse, 0) - int(times)
        size = int(np.prod([groupings[c].groups(level) for c, level in name]))
        distance = sum(map(abs, there.values()))
        assert score == found.weights[where] * (distance - round(2.25 * size))


def test_the_law_of_a_step_is_what_its_cost_says():
    pure, replaced = PrivacyMeasure(False, False), PrivacyMeasure(False, True)
    assert pure.noise(Fraction(1, 3)) == Geometric(Fraction(1, 3))
    assert replaced.noise(Fraction(1, 3)) == Geometric(Fraction(1, 6))
    gaussian = PrivacyMeasure(True, True)
    assert gaussian.noise(Fraction(1, 8)) == DiscreteGaussian(Fraction(8))
    assert PrivacyMeasure(True, False).noise(Fraction(1, 8)) == DiscreteGaussian(Fraction(4))
    assert gaussian.selecting(Fraction(1, 8)) == 1
    for cost in (Fraction(1, 7), Fraction(3, 1000)):
        assert cost * (1 - Fraction(1, 10**9)) < gaussian.selecting(cost) ** 2 / 8 <= cost
    assert pure.selecting(Fraction(2, 7)) == Fraction(2, 7)


SIZES_OF_FIVE = (6, 12, 3, 40, 2)


def wide(sizes, rules=()):
    return universe(sizes, ordered=True, rules=rules)


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("delta", [None, Fraction(1, 10**9)])
def test_costs_add_up_to_the_budget(replaced, delta):
    sizes = SIZES_OF_FIVE
    codes = tied(sizes, 3_000)
    law = PrivacyMeasure(concentrated=delta is not None, replaced=replaced)
    plan = Adaptive.shared(
        Setting(universe=wide(sizes), law=law, epsilon=Fraction(3, 2), delta=delta, rows=3_000)
    )
    assert plan.cost == plan.budget
    outcome = release_tables(plan, each_once(codes, sizes), SeededBits(1))
    assert outcome.spent <= plan.budget
    tables = (*outcome.tables, *outcome.beside)
    paid = sum(part.cost for part in (*outcome.columns, *tables, *outcome.again))
    selected = sum(part.selecting or 0 for part in outcome.measurements)
    assert selected >= len(tables) * plan.selecting  # more where costs were raised
    assert outcome.spent == paid + selected
    assert all(
        table.cost >= plan.cost_of(table.counts.size) for table in tables
    )  # more where they were raised
    assert tables
    assert outcome.codes.shape == (outcome.total, 5)
    assert not replaced or outcome.total == 3_000
    assert pairs_off(codes, outcome.codes, sizes) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(1000)])
@pytest.mark.parametrize("small", [False, True])
def test_no_row_breaks_a_rule(epsilon, small):
    sizes = (6, 4, 3, 5, 2) if small else SIZES_OF_FIVE
    codes = tied(sizes, 3_000)
    rng = np.random.default_rng(0)
    rules = tuple((c, rng.random([sizes[i] for i in c]) < 0.5) for c in ((0, 1), (1, 2, 4)))
    for columns, allowed in rules:
        allowed[(0,) * len(columns)] = True
        codes = codes[allowed[tuple(codes[:, c] for c in columns)]]
    plan = plan_tables(wide(sizes, rules), epsilon, None, False, 1_000)
    outcome = release_tables(plan, each_once(codes, sizes), SeededBits(1), count=2_000)
    assert len(outcome.codes) == 2_000
    for columns, allowed in rules:
        assert allowed[tuple(outcome.codes[:, c] for c in columns)].all()


def test_a_small_universe_is_measured_cell_by_cell_where_that_is_better():
    assert plan_tables(tiny(), Fraction(1), None, True, 50_000).name == "cells"
    assert plan_tables(wide((6, 12, 3, 40, 2)), Fraction(1), None, True, 3_000).name != "cells"
    cells = np.random.default_rng(1).integers(0, 2_000, 30)
    plan = plan_tables(tiny(), Fraction(1), Fraction(1, 10**6), True, int(cells.sum()))
    assert plan.delta is None
    assert plan.cost == plan.budget == 1
    outcome = release_tables(plan, rows_of(cells), SeededBits(3))
    found = np.bincount(outcome.codes @ [15, 5, 1], minlength=30)
    assert np.abs(found - cells).max() < 40
    assert found.sum() == cells.sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": (1, 3, 5)}, "categories"),
        ({"ordered": (True,)}, "ordered"),
        ({"tables": ((1, 0),)}, "ascending"),
        ({"tables": ((0, 1), (0, 1))}, "distinct"),
        ({"rules": (((0, 1), np.ones((3, 2), dtype=bool)),)}, "shape"),
        ({"rules": (((0, 1), np.zeros((2, 3), dtype=bool)),)}, "everything"),
        ({"targets": (-1,)}, "ascending"),
        ({"targets": (3,)}, "ascending"),
        ({"targets": (2, 2)}, "ascending"),
        ({"named": ((1, 0),)}, "ascending"),
        ({"named": ((0,),)}, "at least two columns"),
        ({"named": ((0, 1), (0, 1))}, "distinct"),
    ],
)
def test_a_universe_is_checked(change, message):
    given = {"sizes": TINY, "ordered": (True,) * 3, "tables": TABLES, "rules": ()}
    with pytest.raises(ValueError, match=message):
        Universe(**(given | change))


@pytest.mark.parametrize(
    ("codes", "counts"),
    [([[0, 0]], [1]), ([[0, 3, 0]], [1]), ([[0, -1, 0]], [1]), ([[0, 0, 0]], [-1]), ([[0, 0, 0]], [1 << 53])],
)
def test_rows_are_checked(codes, counts):
    with pytest.raises(ValueError, match=r"must|outside"):
        checked(np.array(codes), np.array(counts, dtype=np.int64), TINY)


@pytest.mark.slow
def test_room_does_not_depend_on_what_was_looked_at():
    sizes = SIZES_OF_FIVE
    codes = tied(sizes, 3_000)
    plan = plan_tables(universe(sizes, 3), Fraction(1), None, True, 3_000, memory=300)
    rows = each_once(codes, sizes)
    columns = tuple(
        measure(rows.table((c,), (k,)), ((c, 0),), plan.law, Fraction(1, 10), SeededBits(c))
        for c, k in enumerate(sizes)
    )
    estimator = Estimator.of(plan, columns)
    names = estimator.candidates.scopes()
    alone = [ModelCapacity(estimator, []).lacking(name) is None for name in names]
    assert 0 < sum(alone) < len(names)
    for seed in range(3):
        capacity, order = ModelCapacity(estimator, []), np.random.default_rng(seed).permutation(len(names))
        assert all((capacity.lacking(names[i]) is None) == alone[i] for i in order)
    # and nothing that is finer than what has no room has room
    for name, fits in zip(names, alone, strict=True):
        finer = [here for other, here in zip(names, alone, strict=True) if as_fine(other, name)]
        assert fits or not any(finer)


@pytest.mark.slow
def test_counts_cost_no_work(monkeypatch):
    """10^8 rows by counts are counted as 10^4 are: the same distinct rows, as often."""
    looked = []
    sums = CountedRows.sums

    def counting(self, cells, size):
        looked.append(len(cells))
        return sums(self, cells, size)

    monkeypatch.setattr(CountedRows, "sums", counting)
    sizes = (30, 40, 50, 60)
    codes = tied(sizes, 1_000)
    work, plans = [], []
    for times in (10, 100_000):
        plan = plan_tables(wide(sizes), Fraction(10, times), None, True, 1_000 * times, strategy="adaptive")
        counts = np.full(1_000, times, dtype=np.int64)
        made = release_tables(plan, checked(codes, counts, sizes), SeededBits(1), count=500)
        plans.append((plan.name, plan.rounds))
        assert 4 + 6 < looked.count(1_000) <= 4 + 6 + plan.most_rounds  # columns, candidates, and rounds
        work.append({*looked})
        looked.clear()
        assert made.codes.shape == (500, 4)
    assert plans[0] == plans[1] and work[0] == work[1]
    assert plans[0][1] > 1


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


def test_what_is_enough_and_what_a_round_costs_once_tables_told_something():
    stopping = StoppingRule()
    costs = [1, 1, 1, RAISED, RAISED, RAISED**2, RAISED**3, RAISED**4]
    for informative, factor in zip((False, True, True, False, True, False, False, False), costs, strict=True):
        stopping = stopping.after(informative)
        assert stopping.cost_factor == factor and not stopping.met
    assert stopping == StoppingRule(informative=3, uninformative=3, cost_factor=RAISED**4, rounds=8)
    for _ in range(20):
        stopping = stopping.after(False)
    assert stopping.met and stopping.cost_factor == MOST_RAISED
    assert not StoppingRule(2, 5).met and StoppingRule(2, 6).met
    assert not StoppingRule(0, 3).met and StoppingRule(0, 4).met


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


@pytest.mark.parametrize("columns", [3, pytest.param(300, marks=pytest.mark.long)])
def test_few_and_many_columns(columns):
    """300 columns: some minutes."""
    sizes = (3,) * columns
    z = np.random.default_rng(1).integers(0, 3, (1_000, columns))
    z[:, 1::2] = z[:, ::2][:, : columns // 2]
    plan = plan_tables(wide(sizes), Fraction(4), None, True, 1_000)
    made = release_tables(plan, each_once(z, sizes), SeededBits(1))
    assert made.codes.shape == (1_000, columns)
    assert made.spent <= plan.cost - plan.certifying


def columns_alike(columns, size=8):
    return universe((size,) * columns)


def test_wide_tables_get_rounds_for_every_column():
    given = Fraction(1), None, False, 100_000
    rounds = [plan_tables(columns_alike(c), *given, strategy="adaptive").rounds for c in (14, 28, 56, 100)]
    assert rounds[0] >= 26
    assert rounds[2] > 50
    assert rounds[3] > 90
    assert plan_tables(columns_alike(100), Fraction(10), None, False, 100_000).rounds == 200
    for columns in (28, 100):
        plan = plan_tables(columns_alike(columns), Fraction(1), None, False, 100_000)
        assert plan.cost <= plan.budget


def test_columns_get_all_where_noise_leaves_nothing_to_be_found():
    """Of many columns, noise on a table that a round would measure decides; of up to 28 there are rounds."""
    for rows, rounds in ((2_000, False), (100_000, True)):
        plan = plan_tables(columns_alike(100), Fraction(1), None, False, rows, strategy="adaptive")
        assert bool(plan.rounds) == rounds
        if rounds:
            assert put_off(plan, [SMALL], Fraction(1))[0] < MOST_NOISE
        else:
            assert plan.selecting == plan.measuring == 0
        assert 0 <= plan.budget - plan.cost <= Fraction(1, 10**6)
        assert rounds or sum(plan.columns) == Fraction(19, 20)
    assert plan_tables(columns_alike(28), Fraction(1, 10), None, False, 10_000, strategy="adaptive").rounds


@pytest.mark.slow
@pytest.mark.parametrize("delta", [None, Fraction(1, 10**9)])
def test_rounds_are_dropped_one_by_one_where_noise_gets_louder(delta):
    """No number of rows is there at which all rounds go at once; columns get what each would have cost."""
    sizes = [round(200_000 / 1.03**step) for step in range(0, 200, 2)]
    law = PrivacyMeasure(concentrated=delta is not None, replaced=False)
    setting = Setting(universe=columns_alike(40), law=law, epsilon=Fraction(1), delta=delta, rows=1)
    plans = [Adaptive.shared(replace(setting, rows=rows)) for rows in sizes]
    rounds = [plan.rounds for plan in plans]
    assert rounds[0] > 40 and rounds[-1] == 0
    assert all(-1 <= a - b <= 12 for a, b in pairwise(rounds))
    shares = [float(sum(plan.columns) / (plan.cost - plan.certifying)) for plan in plans]
    assert max(b - a for a, b in pairwise(shares)) < 0.12 and shares[-1] == 1


def a_table(a, b):
    return NoisyTable(
        ((a, 1), (b, 1)), np.ones((2, 2), dtype=np.int64), Fraction(1), Geometric(Fraction(1)), 1.0
    )


def test_weights_are_products_of_reaches():
    found = candidates(columns_alike(5, size=2), [halved(np.ones(2), ordered=True) for _ in range(5)])
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, 400)
    codes = np.stack([np.where(rng.random(400) < 0.1 * c, 1 - z, z) for c in range(5)], axis=1)
    predicted = [t.astype(float) for t in count(found.linear(), each_once(codes, (2,) * 5))]
    assert association_weights(found, predicted, []) == (MOST_WEIGHT,) * 10
    told = association_weights(found, predicted, [a_table(0, 1), a_table(1, 2)])
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
        found, predicted, [a_table(1, 2), a_table(0, 1), a_table(0, 2)]
    )


def test_cramers_v():
    assert cramers_v(np.outer([1.0, 2.0, 0.0], [3.0, 1.0])) == pytest.approx(0, abs=1e-9)
    assert cramers_v(np.diag([1.0, 5.0, 2.0])) == pytest.approx(1)
    assert cramers_v(np.zeros((3, 2))) == cramers_v(np.array([[1.0, 2.0]])) == 0.0
    # chi-squared of [[30, 10], [10, 30]] is 20, of 80 rows: V is 1/2
    assert cramers_v(np.array([[30.0, 10.0], [10.0, 30.0]])) == pytest.approx(0.5)
