"""All tables of one and two columns at once: the noise that each gets, and what is read of them."""

from fractions import Fraction
from functools import partial
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from asking import measure_at_once, release_tables
from builders import each_once, tied, universe

import smalldb
from queries import Column, Domain, Rows
from smalldb.exact.bits import SeededBits
from smalldb.exact.integers import CLIP
from smalldb.marginals.counted_rows import CountedRows, count, counted
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.measuring import LIMIT
from smalldb.marginals.strategies.all_pairs import (
    MOST_CATEGORIES,
    dependence,
    halves_of,
    measurable,
    noise_at_once,
    pairs_of,
    read_columns,
    read_halves,
    read_pairs,
    tables_at_once,
    tables_measured,
)
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.noise import cone

SIZES = (5, 8, 9, 3, 7, 4, 6, 10)  # more cells than are measured at once
N = 20_000


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("asked_for", [((0, 1), (0, 2), (1, 2)), ((0,), (0, 2))])
def test_each_table_gets_its_own_noise_at_its_rate(asked_for, replaced, monkeypatch):
    """A row that is replaced is removed and added: each may lose half."""
    sizes, cost = (3, 2, 5), Fraction(3, 7)
    some = universe(sizes, asked_for)
    pairs = [table for table in asked_for if len(table) == 2]
    asked, noise = [], np.arange(10 + sum(sizes[a] * sizes[b] for a, b in pairs)) ** 2 - 50

    def drawn(distribution, count, source):
        asked.append((distribution, count, source))
        return noise

    monkeypatch.setattr(cone.ConeDifference, "draw", drawn)
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, size, 40) for size in sizes], axis=1)
    counts, source = count(tables_measured(some), each_once(rows, sizes)), SeededBits(0)
    values = measure_at_once(some, counts, replaced, cost, source)
    rate = Fraction(3, 14) if replaced else Fraction(3, 7)
    assert asked == [(cone.ConeDifference(sizes, rate, tuple(pairs)), len(noise), source)]
    # columns first, in order, then pairs: each count with the noise of its category
    exact = [(rows[:, c] == code).sum() for c in range(3) for code in range(sizes[c])]
    for a, b in pairs:
        for one, other in product(range(sizes[a]), range(sizes[b])):
            exact.append(((rows[:, a] == one) & (rows[:, b] == other)).sum())
    assert (values == exact + noise).all()
    tables = tables_at_once(some, values)
    assert list(tables) == [(0,), (1,), (2,), *pairs]
    assert [table.shape for table in tables.values()] == [tuple(sizes[c] for c in cs) for cs in tables]
    assert (np.concatenate([table.ravel() for table in tables.values()]) == values).all()
    columns = read_columns(tables, asked[0][0])
    assert [part.scope for part in columns] == [((c, 0),) for c in range(3)]
    assert np.concatenate([part.counts for part in columns]).tolist() == values[:10].tolist()
    assert {part.cost for part in columns} == {0}
    assert {part.noise for part in columns} == {asked[0][0]}
    assert [part.variance for part in columns] == asked[0][0].variances[0]
    # counted in pieces, and by counts, they are the same
    twice = CountedRows(rows, np.full(40, 2, dtype=np.int64))
    whole = counted(twice, partial(count, tables_measured(some)))
    assert all((2 * one == other).all() for one, other in zip(counts, whole, strict=True))


def test_counts_with_noise_are_cut_off_at_2_60(monkeypatch):
    monkeypatch.setattr(cone.ConeDifference, "draw", lambda *_: np.array([-CLIP, CLIP] * 4, dtype=np.int64))
    small = universe((2, 2))
    counts = count(tables_measured(small), each_once(np.array([[0, 0]]), (2, 2)))
    found = measure_at_once(small, counts, True, Fraction(1), SeededBits(0))
    assert set(found.tolist()) == {-LIMIT, LIMIT}


@pytest.mark.parametrize("replaced", [True, False])
def test_without_noise_tables_are_read_as_they_are(replaced, monkeypatch):
    monkeypatch.setattr(cone.ConeDifference, "draw", lambda _, many, coins: np.zeros(many, dtype=np.int64))
    codes, all_pairs = tied(SIZES, N), universe(SIZES)
    codes[:, 7] = np.random.default_rng(0).permutation(codes[:, 7])
    rows = each_once(codes, SIZES)
    columns = [np.bincount(codes[:, c], minlength=size).astype(float) for c, size in enumerate(SIZES)]
    groupings = [halved(mass, False) for mass in columns]
    counts = count(tables_measured(all_pairs), rows)
    values = measure_at_once(all_pairs, counts, replaced, Fraction(1), SeededBits(0))
    tables = tables_at_once(all_pairs, values)
    noise = noise_at_once(all_pairs, Fraction(1), replaced)
    for table, wanted in zip(read_columns(tables, noise), columns, strict=True):
        assert (table.counts == wanted).all()
    read = read_pairs(tables, noise, columns, groupings, N)
    for (a, b), table in zip(pairs_of(all_pairs), read, strict=True):
        there = rows.table((a, b), (SIZES[a], SIZES[b]))
        assert table.scope == ((a, groupings[a].finest), (b, groupings[b].finest))
        assert (table.counts == there[np.ix_(groupings[a].order, groupings[b].order)]).all()
    found = [dependence(table) for table in read]
    assert min(found) < 0 < max(found)


def test_what_can_be_measured_at_once():
    assert measurable(universe(SIZES))
    assert not measurable(universe((2, MOST_CATEGORIES + 1)))
    assert measurable(universe((11,) * 25 + (6,)))  # 256 numbers in a row of a frame
    assert not measurable(universe((11,) * 25 + (7,)))
    assert not measurable(universe((2,) * 9))  # they have parities
    assert not measurable(universe((2, 3, 4), 3))
    assert not measurable(universe((2, 3), ((0,),)))


@pytest.mark.parametrize("replaced", [True, False])
def test_costs_add_up_to_epsilon_and_a_small_one_goes_in_rounds(replaced):
    for epsilon in (Fraction(7), Fraction(20, 3)):
        plan = plan_tables(universe(SIZES), epsilon, None, replaced, N)
        assert plan.name == "pairs" and plan.measuring > 0
        assert plan.cost == plan.budget == epsilon
        assert plan_tables(universe(SIZES), epsilon, Fraction(1, 10**9), replaced, N).cost <= epsilon
    cases = [(Fraction(1, 10), N), (Fraction(1, 100), N), (Fraction(1, 10), 1000), (Fraction(10), 20)]
    for epsilon, n in cases:
        plan = plan_tables(universe(SIZES), epsilon, None, replaced, n)
        assert plan.name == "adaptive"


@pytest.mark.parametrize("replaced", [True, False])
def test_halves_are_counted_and_read_as_they_are(replaced):
    """Without noise the tables of halves are those of the rows, and margins those of the columns."""
    codes, all_pairs = tied(SIZES, N), universe(SIZES)
    columns = tuple(np.bincount(codes[:, c], minlength=size).astype(float) for c, size in enumerate(SIZES))
    groupings = tuple(halved(mass, False) for mass in columns)
    of, noise = halves_of(all_pairs, Fraction(2, 3), replaced, groupings)
    rate = Fraction(1, 3) if replaced else Fraction(2, 3)
    assert noise == cone.ConeDifference((2,) * len(SIZES), rate, tuple(pairs_of(all_pairs)))
    assert noise.count == sum(table.size for table in of)
    halves = np.stack([groupings[c].of_categories(1)[codes[:, c]] for c in range(len(SIZES))], axis=1)
    values = np.concatenate([table.ravel() for table in count(of, each_once(codes, SIZES))])
    estimator = SimpleNamespace(groupings=groupings, read=columns, total=N)
    read = read_halves(values, noise, estimator)
    for (a, b), table in zip(pairs_of(all_pairs), read, strict=True):
        there = [[((halves[:, a] == i) & (halves[:, b] == j)).sum() for j in (0, 1)] for i in (0, 1)]
        assert table.scope == ((a, 1), (b, 1)) and (table.counts == there).all()


def test_loud_rounds_are_given_up_for_halves():
    """By public numbers alone; the budget is the same, and all pairs are measured."""
    quiet, loud = (
        plan_tables(universe(SIZES), Fraction(epsilon), None, True, N, strategy="adaptive")
        for epsilon in ("2", "1/25")
    )
    assert not quiet.halved and loud.halved and loud.rounds
    assert loud.cost == loud.budget and loud.most_pairs == loud.expected_pairs == 28
    assert loud.loss.epsilon == loud.budget
    assert "all pairs of columns" in loud.described and "cone noise" in loud.described
    assert loud.undrawable(N) and not quiet.undrawable(N)
    with_delta = plan_tables(
        universe(SIZES), Fraction(1, 10), Fraction(1, 10**6), True, N, strategy="adaptive"
    )
    assert with_delta.halved == (with_delta.delta is None)
    assert not loud.refining(()).halved
    codes = tied(SIZES, N)
    made = release_tables(loud, each_once(codes, SIZES), SeededBits(1), count=N)
    assert made.spent == loud.cost - loud.certifying
    measured = [part for each in made.measurements for part in each.of]
    assert sum(len(part.columns) == 2 for part in measured) == 28
    assert {part.shape for part in measured if len(part.columns) == 2} == {(2, 2)}


def test_a_panel_tells_of_its_strongest_pairs_where_adaptive_is_named():
    """Seven rows a person at epsilon 4: rounds alone showed one or none of these."""
    rng = np.random.default_rng(3)
    persons = rng.normal(size=(600, 1)) + 0.3 * rng.normal(size=(600, 4))
    wages = np.repeat(persons, 7, axis=0) + 0.2 * rng.normal(size=(4200, 4))
    codes = np.column_stack([np.digitize(wages, [-0.8, 0.0, 0.8]), rng.integers(0, 4, (4200, 6))])
    domain = Domain([Column(f"c{i}", cuts=[1, 2, 3]) for i in range(10)])
    made = smalldb.release(
        Rows.from_codes(domain, codes),
        "marginals:2",
        epsilon=4,
        rows_per_person=7,
        rng=1,
        strategy="adaptive",
    )
    known = {pair.columns: pair.known for pair in made.measurements.pairs()}
    strong = [known[f"c{a}", f"c{b}"] for a, b in combinations(range(4), 2)]
    assert len(known) == 45 and strong.count("learned") == 6
    assert smalldb.inference.ask(made.measurements, "c0>=2 | c1>=2").known == "measured"
