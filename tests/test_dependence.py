"""The number that tells how far pairs of columns depend, and the plans among which it decides."""

from fractions import Fraction

import naive
import numpy as np
import pytest
from asking import ask as ask_of
from asking import release_tables
from builders import each_once, tied, universe

from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import SeededBits
from smalldb.marginals.counted_rows import checked, count
from smalldb.marginals.measuring import LIMIT, PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.choosing_tables import CLEARLY, plan_tables
from smalldb.marginals.strategies.dependence import (
    GROUPS,
    LEVELS,
    MOST_PAIRS,
    MOVED,
    DependenceTested,
    ask,
    dependence_tables,
    distance,
    level_of,
    summed,
)
from smalldb.marginals.strategies.strategy import Setting
from smalldb.marginals.universe import pairs_of

SIZES = (5, 8, 9, 3, 7, 4, 6, 10)
N = 30_000
EPSILON = Fraction(1)
UNIVERSE = universe(SIZES)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (4, 5)])
def test_a_distance_is_that_of_fractions_rounded_down(shape):
    rng = np.random.default_rng(0)
    for most in (2, 10, 1 << 20, 1 << 32):
        for _ in range(20):
            counts = rng.integers(0, most, shape)
            assert distance(counts) == naive.distance(counts.tolist()) // 1
    assert distance(np.zeros(shape, dtype=np.int64)) == 0
    huge = np.zeros(shape, dtype=np.int64)
    huge[0, 0] = huge[-1, -1] = (1 << 52) - 1
    assert distance(huge) == naive.distance(huge.tolist())


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "most"), [((2, 2), 6), ((2, 3), 3)])
def test_a_row_moves_a_distance_by_at_most_4(shape, most):
    # docs/proofs/rounds.md, lemma 13, over all small tables; the same of real numbers, not rounded
    moved = Fraction(0)
    for flat in np.ndindex(*[most] * (shape[0] * shape[1])):
        table = np.array(flat).reshape(shape)
        here, whole = naive.distance(table.tolist()), distance(table)
        for cell in np.ndindex(*shape):
            more = table.copy()
            more[cell] += 1
            moved = max(moved, abs(naive.distance(more.tolist()) - here))
            assert abs(distance(more) - whole) <= MOVED[False]
    assert 2 < moved < MOVED[False]


def test_far_tables_move_by_less_than_4_too():
    for n in (10, 1000, 10**6, 10**9):
        for table in (np.diag([n, n, n]), np.array([[n, 1, 0], [0, 0, 1], [1, 0, 0]]), np.full((3, 3), n)):
            for cell in np.ndindex(3, 3):
                more = table.copy()
                more[cell] += 1
                assert abs(naive.distance(more.tolist()) - naive.distance(table.tolist())) < MOVED[False]


def test_a_row_that_is_replaced_moves_a_distance_by_at_most_6():
    # a row of a cell that has too few gives way to one of a cell that has too many: it moves nearly so far
    for times in (1, 10, 1000):
        table = times * np.array([[0, 40, 20_000], [40, 300, 20_000], [20_000, 20_000, 10**7]])
        before, after = table.copy(), table.copy()
        before[0, 0] += 1
        after[1, 1] += 1
        moved = naive.distance(after.tolist()) - naive.distance(before.tolist())
        assert 5.9 < moved <= 2 * MOVED[True]
    moved = [0]
    for flat in np.ndindex(*[3] * 6):
        table = np.array(flat).reshape(2, 3)
        one_more = [table + np.eye(1, 6, cell, dtype=np.int64).reshape(2, 3) for cell in range(6)]
        exact = [naive.distance(more.tolist()) for more in one_more]
        whole = [distance(more) for more in one_more]
        moved += [max(exact) - min(exact), max(whole) - min(whole)]
    assert 3 < max(moved) <= 2 * MOVED[True]


@pytest.mark.slow
@pytest.mark.parametrize("concentrated", [True, False])
@pytest.mark.parametrize("replaced", [True, False])
def test_the_number_is_the_sum_of_distances_with_noise_for_all_pairs(replaced, concentrated):
    law, cost = PrivacyMeasure(concentrated=concentrated, replaced=replaced), Fraction(1, 50)
    where, codes = UNIVERSE, tied(SIZES, 300, loose=3)
    asks = ask(where, law, cost)
    counts = count(asks.of, each_once(codes, SIZES))
    exact = naive.dependence(codes.tolist(), SIZES, asks.part.pairs, asks.part.groups)
    assert 0 < exact == summed(counts)
    lost = asks.lost(replaced, 1)
    assert cost == (lost.rho if concentrated else lost.epsilon)
    assert asks.moved == MOVED[replaced] * len(pairs_of(where))
    drawn = np.array([asks.draw(np.array([exact]), SeededBits(seed)) for seed in range(400)]) - exact
    assert abs(np.abs(drawn).mean() / asks.noise.mean_size - 1) < 0.2


def test_many_pairs_are_asked_about_evenly():
    where = universe((3, 20) * 40)
    of = dependence_tables(where)
    assert MOST_PAIRS / 2 < len(of) <= MOST_PAIRS
    assert {c for table in of for c in table.columns} >= set(range(70))
    assert {table.shape for table in of} == {(3, 3), (3, GROUPS), (GROUPS, 3), (GROUPS, GROUPS)}
    assert all(list(own) == sorted(own) for table in of for own in table.groups)


def test_a_row_that_weighs_more_moves_the_number_as_much_more():
    law = PrivacyMeasure(concentrated=False, replaced=False, unit=60)
    pairs = len(pairs_of(UNIVERSE))
    assert ask(UNIVERSE, law, Fraction(1)).lost(False, 60).epsilon == 1
    assert ask(UNIVERSE, law, Fraction(1)).moved == MOVED[False] * pairs
    table, more = np.array([[600, 0], [0, 0]]), np.array([[600, 0], [0, 60]])
    assert 2 * 60 < distance(more) - distance(table) <= 60 * MOVED[False]


@pytest.mark.parametrize("replaced", [False, True])
def test_noise_hides_a_row_that_weighs_more(replaced):
    """It moves all columns at once; the law of the noise says what that loses."""
    asks = ask(UNIVERSE, PrivacyMeasure(concentrated=False, replaced=replaced, unit=60), Fraction(1))
    codes = np.array([[0] * len(SIZES), [k - 1 for k in SIZES]])
    before, after = (
        summed(count(asks.of, checked(codes, np.array(counts), SIZES)))
        for counts in ([660 if replaced else 600, 0], [600, 60])
    )
    assert 1 / 2 < asks.noise.rate * (after - before) <= 1


def test_a_distance_grows_as_the_number_of_rows():
    for seed in range(20):
        counts = np.random.default_rng(seed).integers(0, 8, (2, 3))
        assert {distance(counts << more) >> more for more in range(50)} == {distance(counts)}


def test_a_sum_beyond_2_60_is_cut_before_noise_is_added():
    # else noise that was cut off itself would show where the sum was
    where, law = UNIVERSE, PrivacyMeasure(concentrated=False, replaced=True)
    tables = [np.zeros((2, 2), dtype=np.int64) for _ in pairs_of(where)]
    tables[0] = np.kron((1 << 52) * np.eye(2, dtype=np.int64), np.ones((1, 300), dtype=np.int64))
    fewer = [table.copy() for table in tables]
    fewer[0][0, 0] -= 1
    assert LIMIT < distance(fewer[0]) < distance(tables[0]) < 3 * LIMIT
    for seed in range(20):
        drawn = {ask_of(where, each, law, Fraction(1, 1 << 70), SeededBits(seed)) for each in (tables, fewer)}
        assert len(drawn) == 1


def test_levels_are_those_that_were_told():
    """Less what sampling adds, and drawn towards the usual one where the noise of the number is loud."""
    law, where = PrivacyMeasure(concentrated=False, replaced=False), universe((8,) * 8)
    pairs = pairs_of(where)
    for n, told in ((10**7, [0, 1, 2, 3, 4, 5, 6]), (4_000, [1, 2, 2, 3, 4, 4, 5])):
        setting, cost = Setting(universe=where, law=law, epsilon=EPSILON, rows=n), EPSILON / 100
        answers = [round(2 * n * level * len(pairs)) for level in LEVELS]
        assert [level_of(answer, setting, cost) for answer in answers] == told
        assert level_of(-(10**6), setting, cost) <= told[0]
    independent = np.random.default_rng(0).integers(0, 8, (5_000, 8))
    answer = naive.dependence(independent.tolist(), where.sizes, pairs, GROUPS)
    assert level_of(answer, Setting(universe=where, law=law, epsilon=EPSILON, rows=5_000), EPSILON) == 0


@pytest.mark.slow
@pytest.mark.parametrize("delta", [None, Fraction(1, 10**9)])
def test_the_number_decides_what_is_measured(delta):
    n = 10_000 if delta is None else 2_900
    plan = plan_tables(UNIVERSE, EPSILON, delta, True, n)
    assert isinstance(plan, DependenceTested) and plan.delta == delta
    budget = EPSILON if delta is None else rho_of(EPSILON, delta)
    assert plan.budget == budget and plan.cost <= budget
    assert {way.budget for way in plan.ways} == {budget - plan.asking}
    made = [
        release_tables(plan, each_once(tied(SIZES, n, loose=far), SIZES), SeededBits(0)) for far in (1e9, 0.4)
    ]
    assert not (made[0].tables or made[0].beside) and made[1].tables
    for one in made:
        assert one.strategy in plan.choices and one.spent <= plan.cost - one.strategy.certifying
    assert made[0].dependence < made[1].dependence
    assert plan.spread[0] < plan.expected < plan.spread[1]


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("n", [500, N, 10**6])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1), Fraction(10)])
def test_a_delta_is_used_only_where_less_is_expected_than_of_the_best_pure_strategy(epsilon, n, replaced):
    delta = Fraction(1, 10**9)
    plan, pure = (plan_tables(UNIVERSE, epsilon, allowed, replaced, n) for allowed in (delta, None))
    assert pure.delta is None
    if plan.delta is None:
        assert plan.public == pure.public
    else:
        assert plan.cost <= rho_of(epsilon, delta)
        assert CLEARLY * plan.expected <= 1.5 * pure.expected


@pytest.mark.parametrize("delta", [None, Fraction(1, 10**9)])
def test_columns_alone_are_measured_where_rounds_would_bring_little(delta):
    """Noise on columns of a sixth: rounds measure tables that are off by more than columns depend."""
    plan = plan_tables(universe((7,) * 28), Fraction(3, 10), delta, False, 2_800)
    ways = plan.choices[:3] if isinstance(plan, DependenceTested) else [plan]
    assert all(way.rounds == 0 and way.delta == delta for way in ways)
    assert plan_tables(universe((7,) * 28), Fraction(3, 10), delta, False, 2_800, strategy="adaptive").rounds


def test_nothing_is_asked_where_the_answer_would_be_noise_or_decide_nothing():
    for delta in (None, Fraction(1, 10**9)):
        assert isinstance(plan_tables(UNIVERSE, Fraction(1, 50), delta, True, N), Adaptive)
        assert not isinstance(plan_tables(UNIVERSE, Fraction(20), delta, True, 10**7), DependenceTested)


@pytest.mark.parametrize("delta", [None, Fraction(1, 10**9)])
@pytest.mark.parametrize("share", [Fraction(1, 5), Fraction(4, 5), Fraction(1)])
def test_columns_get_the_share_that_is_asked_for(share, delta):
    """Where there are rounds; more where noise drops some of them, under rho."""
    plan = plan_tables(UNIVERSE, EPSILON, delta, True, N, column_share=share)
    for way in (way for way in plan.ways if way.rounds):
        of_columns = sum(way.columns) / (way.budget - way.certifying)
        assert of_columns == share if delta is None else share <= of_columns < 1
    assert all(way.name == Adaptive.name for way in plan.ways)
    if share == 1:
        assert not plan.rounds
