"""The number that tells whether most pairs of columns depend, and the plans between which it decides."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from asking import ask, release_tables

from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import SeededBits
from smalldb.marginals.counted_rows import checked, count
from smalldb.marginals.measuring import LIMIT, PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_pairs import noise_at_once, pairs_of, tables_measured
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.strategies.dependence import (
    DEPENDENT_SHARE,
    MOVED,
    DependenceTested,
    answerable,
    distance,
    mostly,
    tops,
)
from smalldb.marginals.universe import Universe

SIZES = (5, 8, 9, 3, 7, 4, 6, 10)
N = 30_000
EPSILON = Fraction(1)


def universe(sizes=SIZES):
    tables = tuple(combinations(range(len(sizes)), 2))
    return Universe(tuple(sizes), (False,) * len(sizes), tables, (1,) * len(tables))


def rows_of(codes):
    return checked(codes, np.ones(len(codes), dtype=np.int64), SIZES)


def tied(weight, seed=0):
    """Columns that depend on a hidden number, all of them alike."""
    rng = np.random.default_rng(seed)
    hidden, found = rng.normal(size=N), []
    for size in SIZES:
        score = weight * hidden + rng.normal(size=N)
        found.append(np.searchsorted(np.quantile(score, np.arange(1, size) / size), score))
    return np.stack(found, axis=1)


def slow_distance(counts):
    n = sum(map(sum, counts))
    if n == 0:
        return Fraction(0)
    sums = [sum(row) for row in counts], [sum(column) for column in zip(*counts, strict=True)]
    return sum(
        abs(Fraction(cell) - Fraction(a * b, n))
        for row, a in zip(counts, sums[0], strict=True)
        for cell, b in zip(row, sums[1], strict=True)
    )


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (4, 5)])
def test_a_distance_is_that_of_fractions_rounded_down(shape):
    rng = np.random.default_rng(0)
    for most in (2, 10, 1 << 20, 1 << 32):
        for _ in range(20):
            counts = rng.integers(0, most, shape)
            assert distance(counts) == slow_distance(counts.tolist()) // 1
    assert distance(np.zeros(shape, dtype=np.int64)) == 0
    huge = np.zeros(shape, dtype=np.int64)
    huge[0, 0] = huge[-1, -1] = (1 << 52) - 1
    assert distance(huge) == slow_distance(huge.tolist())


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "most"), [((2, 2), 6), ((2, 3), 3)])
def test_a_row_moves_a_distance_by_at_most_4(shape, most):
    # docs/proofs/rounds.md, lemma 13, over all small tables; the same of real numbers, not rounded
    moved = Fraction(0)
    for flat in np.ndindex(*[most] * (shape[0] * shape[1])):
        table = np.array(flat).reshape(shape)
        here, whole = slow_distance(table.tolist()), distance(table)
        for cell in np.ndindex(*shape):
            more = table.copy()
            more[cell] += 1
            moved = max(moved, abs(slow_distance(more.tolist()) - here))
            assert abs(distance(more) - whole) <= MOVED
    assert 2 < moved < MOVED


def test_far_tables_move_by_less_than_4_too():
    for n in (10, 1000, 10**6, 10**9):
        for table in (np.diag([n, n, n]), np.array([[n, 1, 0], [0, 0, 1], [1, 0, 0]]), np.full((3, 3), n)):
            for cell in np.ndindex(3, 3):
                more = table.copy()
                more[cell] += 1
                assert abs(slow_distance(more.tolist()) - slow_distance(table.tolist())) < MOVED


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [True, False])
def test_the_number_is_the_sum_up_to_the_tops_with_noise_for_all_pairs(replaced):
    where, law, cost = universe(), PrivacyMeasure(concentrated=False, replaced=replaced), Fraction(1, 50)
    _, noise = noise_at_once(where, EPSILON, replaced).variances
    counts = count(tables_measured(where), rows_of(tied(0.3)))[len(SIZES) :]
    exact = sum(min(tops(where, noise)[pair], distance(t)) for pair, t in zip(noise, counts, strict=True))
    assert 0 < exact < sum(tops(where, noise).values())
    drawn = np.array([ask(where, counts, noise, law, cost, SeededBits(seed)) for seed in range(400)]) - exact
    size = law.noise(cost / (MOVED * len(counts))).mean_size  # of geometric noise of all pairs' sensitivity
    assert abs(np.abs(drawn).mean() / size - 1) < 0.2
    assert mostly(round(DEPENDENT_SHARE * sum(tops(where, noise).values())) + 1, where, noise)
    assert not mostly(0, where, noise)
    assert answerable(where, noise, law, cost)
    assert not answerable(where, noise, law, cost / 100)


def test_a_sum_beyond_2_60_is_cut_before_noise_is_added():
    # else noise that was cut off itself would show where the sum was
    where, law = universe(), PrivacyMeasure(concentrated=False, replaced=True)
    noise = dict.fromkeys(pairs_of(where), 2.0**122)
    tables = [np.zeros((2, 2), dtype=np.int64) for _ in noise]
    tables[0] = np.kron((1 << 52) * np.eye(2, dtype=np.int64), np.ones((1, 300), dtype=np.int64))
    fewer = [table.copy() for table in tables]
    fewer[0][0, 0] -= 1
    assert LIMIT < distance(fewer[0]) < distance(tables[0]) < 3 * LIMIT < sum(tops(where, noise).values())
    cost = Fraction(1, 1 << 70)
    for seed in range(20):
        drawn = {ask(where, each, noise, law, cost, SeededBits(seed)) for each in (tables, fewer)}
        assert len(drawn) == 1


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_answer_decides_between_pairs_at_once_and_rounds(replaced):
    plan = plan_tables(universe(), EPSILON, None, replaced, N)
    assert isinstance(plan, DependenceTested) and plan.asking > 0
    adaptive, at_once = plan.adaptive, plan.at_once
    assert adaptive.rounds and plan.epsilon == EPSILON
    assert adaptive.cost <= adaptive.budget == EPSILON - plan.asking == at_once.cost == at_once.budget
    told = release_tables(plan, rows_of(tied(2.0)), SeededBits(0))
    assert {part.cost for part in told.tables} == {0}  # paid for all at once
    assert {part.cost for part in told.columns} == {0}
    assert told.spent == plan.asking + at_once.cost - at_once.certifying
    silent = release_tables(plan, rows_of(tied(0.0)), SeededBits(0))
    assert all(part.cost > 0 for part in silent.tables)
    assert silent.spent <= plan.asking + adaptive.cost - adaptive.certifying
    assert silent.dependence < told.dependence
    assert [part.cost for part in silent.columns] == list(adaptive.columns)


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("n", [500, N, 10**6])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1), Fraction(10)])
def test_a_delta_is_used_only_where_less_is_expected_than_of_the_best_pure_strategy(epsilon, n, replaced):
    delta = Fraction(1, 10**9)
    plan, pure = (plan_tables(universe(), epsilon, allowed, replaced, n) for allowed in (delta, None))
    rounds = plan_tables(universe(), epsilon, delta, replaced, n, strategy="adaptive")
    assert pure.delta is None
    if plan.delta is None:
        assert plan.public == pure.public
        assert rounds.delta is None or rounds.expected >= pure.expected
    else:
        assert plan.public == rounds.public and plan.cost <= rho_of(epsilon, delta)
        assert plan.expected < pure.expected


@pytest.mark.parametrize(
    "sizes, n, epsilon, rounds",
    [((4,) * 20, 2000, Fraction(3, 10), True), ((5,) * 86, 9822, Fraction(1), False)],
    ids=["less by 3 %", "more, and pure noise measures columns alone"],
)
def test_rounds_with_a_delta_come_before_a_pure_plan_of_more_error_or_without_rounds(
    sizes, n, epsilon, rounds
):
    plan, pure = (
        plan_tables(universe(sizes), epsilon, delta, True, n) for delta in (Fraction(1, 10**9), None)
    )
    assert plan.delta is not None and plan.rounds
    assert bool(pure.rounds) == rounds == (0.96 * pure.expected < plan.expected < pure.expected)


def test_nothing_is_asked_where_the_answer_would_be_noise():
    for delta in (None, Fraction(1, 10**9)):
        assert isinstance(plan_tables(universe(), Fraction(1, 50), delta, True, N), Adaptive)
