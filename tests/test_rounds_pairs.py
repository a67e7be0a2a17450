"""All tables of two columns at once: words of signs, the matrix that rows add to, and what is read of it."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import smalldb
from queries import Column, Domain, Rows
from smalldb.exact.bits import SeededBits
from smalldb.rounds import Universe, checked, plan_rounds, release_rounds
from smalldb.rounds import plan as planning
from smalldb.rounds.counting import PrivateRows, counted
from smalldb.rounds.grouping import halved
from smalldb.rounds.pairs import (
    MOST_PLACES,
    dependence,
    measurable,
    measure_pairs,
    pairs_of,
    read_pairs,
    sums_of_products,
    tables_of_pairs,
    variances,
    words,
)

SIZES = (5, 8, 9, 3, 7, 4, 6, 10)  # more cells than are measured at once
N = 20_000


def universe(sizes, rules=()):
    tables = tuple(combinations(range(len(sizes)), 2))
    return Universe(tuple(sizes), (False,) * len(sizes), tables, (1,) * len(tables), rules)


def rows_of(places):
    return PrivateRows(np.asarray(places), np.ones(len(places), dtype=np.int64))


def dependent(sizes, n=N, seed=0):
    """Every two columns depend on each other, some more, some less."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    found = []
    for size in sizes:
        score = hidden @ rng.normal(size=2) + rng.normal(size=n)
        found.append(np.searchsorted(np.quantile(score, np.arange(1, size) / size), score))
    return np.stack(found, axis=1)


def distance(one, other, sizes):
    """The mean total variation distance of the tables of two columns."""
    found = []
    for a, b in combinations(range(len(sizes)), 2):
        tables = [
            np.bincount(x[:, a] * sizes[b] + x[:, b], minlength=sizes[a] * sizes[b]) for x in (one, other)
        ]
        found.append(np.abs(tables[0] / len(one) - tables[1] / len(other)).sum() / 2)
    return np.mean(found)


def test_words_are_signs_whose_products_are_alike():
    for size in range(2, MOST_PLACES + 1):
        found = words(size)
        order = found.shape[1] + 1
        assert set(np.unique(found)) <= {-1, 1}
        assert (found @ found.T == order * np.eye(size) - 1).all()
        assert order >= size
    orders = [words(size).shape[1] + 1 for size in (2, 3, 4, 5, 8, 9, 12, 13, 17, 20, 21, 33)]
    assert orders == [2, 4, 4, 8, 8, 12, 12, 16, 20, 20, 24, 44]


def summed(where, rows):
    return sums_of_products(where, tables_of_pairs(where, rows))


def test_a_row_adds_the_outer_product_of_its_signs():
    # what docs/proofs/wishart.md asks of a row: entries of u u^T, where every entry of u is 1 or -1
    sizes = (3, 2, 5)
    small = universe(sizes)
    for places in product(*map(range, sizes)):
        signs = [words(size)[place] for size, place in zip(sizes, places, strict=True)]
        added = summed(small, rows_of([places]))
        for (a, b), table in zip(pairs_of(small), added, strict=True):
            assert (table == np.outer(signs[a], signs[b])).all()
    rng = np.random.default_rng(0)
    some = np.stack([rng.integers(0, size, 50) for size in sizes], axis=1)
    each = [summed(small, rows_of([row])) for row in some]
    for number, table in enumerate(summed(small, rows_of(some))):
        assert (table == sum(one[number] for one in each)).all()
    # counted in pieces, and by counts, they are the same
    twice = PrivateRows(some, np.full(50, 2, dtype=np.int64))
    for one, other in zip(
        sums_of_products(small, counted(twice, lambda rows: tables_of_pairs(small, rows))),
        summed(small, twice),
        strict=True,
    ):
        assert (one == other).all()


@pytest.mark.parametrize("tables", [((0, 1), (0, 2), (1, 2)), ((0,), (0, 2))])
def test_each_sum_gets_the_noise_of_its_own_entry(tables, monkeypatch):
    sizes, cost = (3, 2, 5), Fraction(3, 7)
    some = Universe(sizes, (False,) * 3, tables, (1,) * len(tables))
    asked = []

    def noise(d, x, y, entries, source):
        asked.append((d, x, y, entries))
        return np.zeros(len(entries), dtype=np.int64)

    monkeypatch.setattr("smalldb.rounds.pairs.wishart_noise", noise)
    # a column that no pair has brings no signs, hence no noise
    inside = sorted({c for table in tables if len(table) == 2 for c in table})
    rng = np.random.default_rng(0)
    matrix, rows = 0, np.stack([rng.integers(0, size, 40) for size in sizes], axis=1)
    for row in rows:
        u = np.concatenate([[1], *(words(sizes[c])[row[c]] for c in inside)])
        matrix = matrix + np.outer(u, u)
    sums = measure_pairs(some, summed(some, rows_of(rows)), None, cost, SeededBits(0))
    odd = measure_pairs(some, summed(some, rows_of(rows)), 40, cost, SeededBits(0))
    for d, x, y, entries in asked:
        assert d == len(matrix) - 1 and x + y == cost and x > 0 and y > 0
        assert len(set(entries)) == len(entries)
        assert [matrix[entry] for entry in entries] == sums.tolist()
        assert [(40 - matrix[entry]) // 2 for entry in entries] == odd.tolist()


@pytest.mark.parametrize("replaced", [True, False])
def test_without_noise_tables_are_read_as_they_are(replaced, monkeypatch):
    monkeypatch.setattr(
        "smalldb.rounds.pairs.wishart_noise",
        lambda d, x, y, pairs, source: np.zeros(len(pairs), dtype=np.int64),
    )
    places, all_pairs = dependent(SIZES), universe(SIZES)
    rows, n = rows_of(places), N if replaced else None
    columns = [np.bincount(places[:, c], minlength=size).astype(float) for c, size in enumerate(SIZES)]
    groupings = [halved(mass, False) for mass in columns]
    values = measure_pairs(all_pairs, summed(all_pairs, rows), n, Fraction(1), SeededBits(0))
    read = read_pairs(all_pairs, values, n, Fraction(1), columns, groupings, N)
    for (a, b), table in zip(pairs_of(all_pairs), read, strict=True):
        there = rows.table((a, b), (SIZES[a], SIZES[b]))
        assert table.scope == ((a, groupings[a].finest), (b, groupings[b].finest))
        assert (table.counts == there[np.ix_(groupings[a].order, groupings[b].order)]).all()
    found = [dependence(table) for table in read]
    assert min(found) < 0 < max(found)


@pytest.mark.parametrize("replaced", [True, False])
def test_noise_of_cells_is_as_large_as_stated(replaced):
    sizes, cost, draws = (2, 3, 4), Fraction(1, 4), 150
    small, n = universe(sizes), 0 if replaced else None
    none = rows_of(np.zeros((0, 3), dtype=np.int64))
    columns = [np.full(size, 1.0 / size) for size in sizes]
    groupings = [halved(mass, True) for mass in columns]
    squares, noise = [[] for _ in pairs_of(small)], variances(small, cost, replaced)
    for seed in range(draws):
        values = measure_pairs(small, summed(small, none), n, cost, SeededBits(seed))
        for some, table in zip(
            squares, read_pairs(small, values, n, cost, columns, groupings, 1), strict=True
        ):
            some.append((table.counts.astype(float) ** 2).mean())
    for (a, b), some in zip(pairs_of(small), squares, strict=True):
        # white noise, less its means along both axes
        stated = noise[a, b] * (1 - 1 / sizes[a]) * (1 - 1 / sizes[b])
        assert abs(np.mean(some) - stated) < 5 * np.std(some) / draws**0.5
        assert np.std(some) / draws**0.5 < 0.2 * stated


def test_what_can_be_measured_at_once():
    assert measurable(universe(SIZES))
    assert not measurable(universe((2, MOST_PLACES + 1)))
    assert not measurable(universe((12,) * 24))  # 264 signs
    wide = Universe((2, 3, 4), (False,) * 3, ((0, 1, 2),), (1,))
    assert not measurable(wide)
    assert not measurable(Universe((2, 3), (False,) * 2, ((0,),), (1,)))


@pytest.mark.parametrize("replaced", [True, False])
def test_costs_add_up_to_epsilon_and_a_small_one_goes_in_rounds(replaced):
    for epsilon in (Fraction(7), Fraction(20, 3)):
        plan = plan_rounds(universe(SIZES), epsilon, None, replaced, N)
        assert plan.pairs > 0 and plan.rounds == 0
        assert plan.cost == plan.budget == epsilon
        assert plan_rounds(universe(SIZES), epsilon, Fraction(1, 10**9), replaced, N).cost <= epsilon
    for epsilon, n in (
        (Fraction(1, 10), N),
        (Fraction(1, 100), N),
        (Fraction(1, 10), 1000),
        (Fraction(10), 20),
    ):
        plan = plan_rounds(universe(SIZES), epsilon, None, replaced, n)
        assert plan.pairs == 0 and plan.rounds > 0


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [True, False])
def test_tables_are_nearer_than_in_rounds_or_of_independent_columns(replaced, monkeypatch):
    places, all_pairs = dependent(SIZES), universe(SIZES)
    rows = checked(places, np.ones(N, dtype=np.int64), SIZES)
    plan = plan_rounds(all_pairs, Fraction(8), None, replaced, N)
    assert plan.pairs
    monkeypatch.setattr(planning, "measurable", lambda _: False)
    others = plan_rounds(all_pairs, Fraction(8), None, replaced, N)
    assert others.rounds
    made = release_rounds(plan, rows, SeededBits(1), count=N)
    assert made.spent == plan.cost - plan.certifying
    at_once = distance(places, made.places, SIZES)
    in_rounds = distance(places, release_rounds(others, rows, SeededBits(1), count=N).places, SIZES)
    rng = np.random.default_rng(0)
    independent = np.stack([rng.permutation(column) for column in places.T], axis=1)
    assert at_once < 0.8 * in_rounds < 0.8 * distance(places, independent, SIZES)
    assert plan.expected / 2 < at_once < 2 * plan.expected


def test_a_release_states_what_was_measured_and_keeps_the_rules():
    domain = Domain([Column(f"c{i}", list("abcdefgh")) for i in range(7)], ["`c0=a` | `c1=b` | `c1=c`"])
    places = dependent((8,) * 7)
    places[(places[:, 0] != 0) & (places[:, 1] != 2), 1] = 1
    given = {"epsilon": 20, "mechanism": "rounds", "rng": 1}
    found = smalldb.release(Rows.from_places(domain, places), "marginals:2", **given)
    assert "all tables of two columns at once with Wishart noise" in found.plan.chosen.summary
    assert domain.contains(found.places).all()
    assert distance(places, found.places, (8,) * 7) < 2 * found.plan.chosen.promise.expected_error
