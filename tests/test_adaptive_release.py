"""Releases in rounds: sensitivities by enumeration, exact costs, replays and rules."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from asking import measure, release_tables
from builders import each_once, universe
from measures import pairs_off

from smalldb.exact.bits import SeededBits
from smalldb.marginals.counted_rows import CountedRows, checked, count
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.estimate.packed_pairs import candidates
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive, ModelCapacity, as_fine
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.strategies.strategy import Setting
from smalldb.marginals.universe import Universe
from smalldb.noise.distributions import DiscreteGaussian, Geometric

TINY = (2, 3, 5)
PAIRS = tuple(combinations(range(3), 2))
TABLES = (*PAIRS, (0, 1, 2))


def tiny(rules=()):
    return Universe(TINY, (False, False, True), TABLES, (1,) * len(TABLES), rules)


def rows_of(cells):
    codes = np.array(list(product(*map(range, TINY))))
    return CountedRows(codes, np.asarray(cells, dtype=np.int64))


def neighbours(replaced):
    """A few databases over all 30 cells, each with every neighbour of it."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        cells = rng.integers(0, 4, size=30)
        for a in range(30):
            more = cells.copy()
            more[a] += 1
            if not replaced:
                yield cells, more
                continue
            for b in range(0, 30, 7):
                if a != b:
                    other = cells.copy()
                    other[b] += 1
                    yield more, other


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


def latent(rows=3_000, sizes=(6, 12, 3, 40, 2), seed=1):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, rows)
    columns = []
    for k in sizes:
        centre = rng.random(4) * k
        columns.append(np.clip(np.round(centre[kind] + rng.normal(size=rows) * k / 8), 0, k - 1))
    return np.stack(columns, axis=1).astype(np.int64), sizes


def wide(sizes, rules=()):
    return universe(sizes, ordered=True, rules=rules)


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("delta", [None, Fraction(1, 10**9)])
def test_costs_add_up_to_the_budget(replaced, delta):
    codes, sizes = latent()
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
    codes, sizes = latent(sizes=(6, 4, 3, 5, 2) if small else (6, 12, 3, 40, 2))
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
        ({"weights": (0,) * 4}, "weights"),
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
    given = {"sizes": TINY, "ordered": (True,) * 3, "tables": TABLES, "weights": (1,) * 4, "rules": ()}
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
    codes, sizes = latent()
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
    codes, sizes = latent(1_000, (30, 40, 50, 60))
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
