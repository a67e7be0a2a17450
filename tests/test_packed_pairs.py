"""Very many columns: all pairs at once are counted, scored and predicted as they are one by one."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from asking import measure

from smalldb.exact.bits import SeededBits
from smalldb.kernels.cell_sums import count_pairs
from smalldb.marginals import counted_rows
from smalldb.marginals.counted_rows import CountedRows, checked, count
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.estimate.junction import beliefs, build, cells, homes, junction_tree, union
from smalldb.marginals.estimate.packed_pairs import (
    Candidates,
    PackedPairs,
    association_weights,
    candidates,
    laid_out,
)
from smalldb.marginals.estimate.refitting import ModelInParts, at_first, joint
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.universe import Universe
from smalldb.noise.distributions import Geometric

SIZES = (4, 2, 40, 7, 3, 12, 33, 5)


def universe_of(sizes, share=1.0, seed=0, rules=()):
    """Some of the pairs of columns."""
    rng = np.random.default_rng(seed)
    tables = tuple(pair for pair in combinations(range(len(sizes)), 2) if rng.random() < share)
    return Universe(sizes, tuple(c % 2 == 0 for c in range(len(sizes))), tables, rules)


def looked_at(share, seed):
    """Candidates, their strips, and random rows, some of which are there several times."""
    rng = np.random.default_rng(seed)
    groupings = [halved(rng.random(size) + 0.01, bool(rng.integers(2))) for size in SIZES]
    found = candidates(universe_of(SIZES, share, seed), groupings)
    weights = np.random.default_rng(seed).integers(1, 101, len(found.tables)).tolist()
    found = replace(found, weights=tuple(weights))
    codes = np.stack([rng.integers(0, size, 500) for size in SIZES], axis=1)
    return found, PackedPairs.of(found), CountedRows(codes, rng.integers(0, 4, 500)), rng


def unlaid(found, strips, flat):
    return [strips.table(flat, table) for table in found.tables]


def test_pairs_are_counted_as_in_the_definition():
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 3, (4, 60)).astype(np.uint8)
    counts, pairs = rng.integers(0, 5, 60), np.array([[0, 1], [1, 3], [2, 3]])
    found = np.ones(40, dtype=np.int64)
    count_pairs(groups, counts, pairs, np.array([0, 10, 25]), np.array([3, 4, 3]), found)
    expected = np.ones(40, dtype=np.int64)
    for (a, b), origin, stride in zip(pairs, (0, 10, 25), (3, 4, 3), strict=True):
        for row in range(60):
            expected[origin + stride * groups[a, row] + groups[b, row]] += counts[row]
    assert (found == expected).all()


@pytest.mark.parametrize(("share", "seed"), [(1.0, 0), (0.5, 1), (0.2, 2)])
def test_strips_count_and_score_as_candidates_do(share, seed, monkeypatch):
    monkeypatch.setattr(counted_rows, "BLOCK", 64)  # more than one block
    found, strips, rows, rng = looked_at(share, seed)
    one_by_one, at_once = count(found.linear(), rows), count(strips.linear(), rows)
    assert at_once[0].size == sum(table.size for table in one_by_one)
    for one, other in zip(one_by_one, unlaid(found, strips, at_once), strict=True):
        assert (one == other).all()
    scopes = found.scopes()
    for scope in scopes[:: max(1, len(scopes) // 40)]:
        assert (found.chosen(one_by_one, scope) == strips.chosen(at_once, scope)).all()
    predicted = [rng.integers(0, 50, strips.cells)]
    foretold = unlaid(found, strips, predicted)
    weights = rng.integers(1, 101, len(found.tables)).tolist()
    slow = found.scores(one_by_one, foretold, weights, lambda size: 300 / size**0.5)
    fast = strips.scores(at_once, predicted, weights, lambda size: 300 / size**0.5)
    assert fast.dtype == slow.dtype == np.int64
    assert (slow == fast).all()
    assert len(slow) == len(scopes)


@pytest.mark.parametrize(("share", "seed"), [(1.0, 0), (0.5, 1)])
def test_weights_at_once_are_those_one_by_one(share, seed):
    found, strips, rows, rng = looked_at(share, seed)
    at_once = [count(strips.linear(), rows)[0].astype(float)]
    at_once[0][rng.random(strips.cells) < 0.2] = 0.0
    strips.table(at_once, found.tables[1])[:] = 0.0  # all in one row: V is 0
    strips.table(at_once, found.tables[1])[0] = 5.0
    one_by_one, tables = unlaid(found, strips, at_once), []
    for pair in [found.tables[i] for i in (3, 0, 5)]:
        tables.append(
            NoisyTable(tuple((c, 1) for c in pair), np.ones((2, 2)), Fraction(1), Geometric(Fraction(1)), 1.0)
        )
        slow, fast = (
            association_weights(found, one_by_one, tables),
            association_weights(strips, at_once, tables),
        )
        assert slow == fast
        assert len(set(slow)) > 2


def test_only_many_columns_with_tables_of_two_are_laid_out():
    def laid(columns, size, tables=None):
        pairs = tables or tuple(combinations(range(columns), 2))
        universe = Universe((size,) * columns, (False,) * columns, pairs)
        return laid_out(candidates(universe, [halved(np.ones(size), True)] * columns))

    assert isinstance(laid(28, 4), Candidates)
    assert isinstance(laid(29, 4), PackedPairs)
    assert isinstance(laid(29, 4, ((0, 1, 2),)), Candidates)
    assert isinstance(laid(200, 32, ((0, 1),)), Candidates)  # a matrix of 6,400 x 6,400


def model_of(seed, columns=None):
    """Random factors of random columns, at random levels; the last may have a structural zero."""
    rng = np.random.default_rng(seed)
    columns = columns or int(rng.integers(1, 6))
    groupings = [halved(rng.random(rng.integers(2, 6)) + 0.01, bool(rng.integers(2))) for _ in range(columns)]
    scopes = [((c, grouping.finest),) for c, grouping in enumerate(groupings)]
    for _ in range(rng.integers(0, 2 * columns)):
        some = sorted(rng.choice(columns, size=min(columns, int(rng.integers(2, 4))), replace=False).tolist())
        scopes.append(tuple((c, int(rng.integers(1, groupings[c].finest + 1))) for c in some))
    factors = [2 * rng.normal(size=[groupings[c].groups(level) for c, level in scope]) for scope in scopes]
    if factors[-1].size > 4:
        factors[-1].flat[0] = -np.inf
    return groupings, scopes, factors, rng


def all_cells(groupings, scopes, factors):
    """The probabilities of all cells, at the positions of the groupings."""
    shape = [len(grouping.order) for grouping in groupings]
    weights = np.zeros(shape)
    for cell in product(*map(range, shape)):
        for scope, factor in zip(scopes, factors, strict=True):
            at = tuple(groupings[c].parents(level, groupings[c].finest)[cell[c]] for c, level in scope)
            weights[cell] += factor[at]
    return np.exp(weights) / np.exp(weights).sum()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("at_once", [1, 1 << 19])
def test_tables_of_all_pairs_are_those_of_all_cells(seed, at_once, monkeypatch):
    monkeypatch.setattr("smalldb.marginals.estimate.refitting.AT_ONCE", at_once)
    groupings, scopes, factors, rng = model_of(seed)
    tree = build(scopes, groupings)
    tables, _ = beliefs(tree, factors)
    levels = [int(rng.integers(1, grouping.finest + 1)) for grouping in groupings]
    columns, matrix = joint(tree, tables, levels)
    assert sorted(columns) == list(range(len(groupings)))
    whole = all_cells(groupings, scopes, factors)
    starts = np.cumsum([0, *(groupings[c].groups(levels[c]) for c in columns)])
    blocks = dict(zip(columns, map(slice, starts, starts[1:]), strict=False))
    for a, b in product(columns, repeat=2):
        rest = tuple(c for c in range(len(groupings)) if c not in (a, b))
        table = whole.sum(axis=rest)
        if a == b:
            table = np.diag(table)
        table = table.T if a > b else table
        for axis, c in enumerate((a, b)):
            table = np.add.reduceat(table, groupings[c].starts[levels[c]], axis=axis)
        assert np.abs(matrix[blocks[a], blocks[b]] - table).max() < 1e-12


def greedy(scopes, groupings):
    """The buckets as they are defined: again and again the column with the smallest bucket is refined."""
    left, done = set(scopes), []
    while left:
        plans = []
        for column in {c for scope in left for c, _ in scope}:
            finest = max(dict(scope).get(column, 0) for scope in left)
            gone = {scope for scope in left if dict(scope).get(column) == finest}
            plans.append((cells(union(gone).items(), groupings), column, gone))
        _, column, gone = min(plans, key=lambda plan: plan[:2])
        whole, left = union(gone), left - gone
        coarser = max((dict(scope).get(column, 0) for scope in left), default=0)
        passed = {c: coarser if c == column else level for c, level in whole.items()}
        passed = tuple(sorted((c, level) for c, level in passed.items() if level))
        if passed:
            left.add(passed)
        done.append((column, tuple(sorted(whole.items())), passed))
    return done


def refines(scope, column, passed):
    return dict(scope).get(column, 0) > dict(passed).get(column, 0)


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_is_the_greedy_one(seed):
    groupings, scopes, _, _ = model_of(seed, columns=2 + seed % 10)
    found, expected = junction_tree(scopes, groupings), greedy(scopes, groupings)
    assert [(b.column, b.scope, b.passed) for b in found] == expected
    for position, bucket in enumerate(found):
        later = [
            after
            for after in range(position + 1, len(found))
            if refines(bucket.passed, found[after].column, found[after].passed)
        ]
        assert bucket.parent == min(later, default=-1)
    first = [min(p for p, b in enumerate(found) if refines(scope, b.column, b.passed)) for scope in scopes]
    assert homes(scopes, found) == tuple(first)
    with pytest.raises(ValueError, match="no bucket holds the scope"):
        homes([((len(groupings), 1),)], found)


@pytest.mark.slow
@pytest.mark.parametrize("seldom", [64, 2])
def test_parts_expect_what_the_whole_model_does(seldom, monkeypatch):
    """Tables one after another: some join parts, some are of columns of one part; rules join, too."""
    monkeypatch.setattr("smalldb.marginals.estimate.refitting.TABLES_PER_REFIT", seldom)
    rng, columns = np.random.default_rng(5), 30
    allowed = np.ones((3, 3), dtype=bool)
    allowed[0, 2] = False
    universe = universe_of((3,) * columns, rules=(((4, 9), allowed),))
    z = rng.integers(0, 3, 3_000)
    codes = np.stack(
        [np.where(rng.random(3_000) < 0.5, z, rng.integers(0, 3, 3_000)) for _ in range(columns)]
    )
    codes[9][(codes[4] == 0) & (codes[9] == 2)] = 1
    rows = checked(codes.T, np.ones(3_000, dtype=np.int64), universe.sizes)
    plan = plan_tables(universe, Fraction(200), None, False, 3_000, strategy="adaptive")
    bits = SeededBits(2)
    alone = [
        measure(rows.table((c,), (3,)), ((c, 0),), plan.law, cost, bits)
        for c, cost in enumerate(plan.columns)
    ]
    estimator = Estimator.of(plan, tuple(alone))
    learned = at_first(estimator)
    assert isinstance(learned, ModelInParts)
    for number, pair in enumerate([(0, 1), (2, 3), (1, 2), (0, 3), (5, 9), (7, 8), (7, 10)], start=1):
        scope = tuple(zip(pair, estimator.candidates.levels(pair), strict=True))
        counts = estimator.layout.chosen(count(estimator.layout.linear(), rows), scope)
        table = measure(counts, scope, PrivacyMeasure(False, False), Fraction(1), bits)
        before = estimator.layout.table(learned.predicted(), pair)
        learned = learned.after(table)
        if learned.fitted < number:  # it waits, and its own prediction is nearer to it already
            nearer = estimator.layout.table(learned.predicted(), pair)
            assert np.abs(nearer - counts).sum() < 0.5 * np.abs(before - counts).sum()
    assert learned.fitted == number
    assert {part.columns for part in learned.parts.values() if len(part.columns) > 1} == {
        (0, 1, 2, 3), (4, 5, 9), (7, 8, 10)
    }  # fmt: skip
    fast, model = learned.predicted(), estimator.fit(learned.tables, (), last=True)
    order, matrix = joint(model.tree, model.tables, estimator.candidates.finest[2])
    starts = np.cumsum(
        [0, *(estimator.groupings[c].groups(estimator.candidates.finest[2][c]) for c in order)]
    )
    blocks = dict(zip(order, map(slice, starts, starts[1:]), strict=False))
    for a, b in estimator.candidates.tables:
        expected = estimator.total * matrix[blocks[a], blocks[b]]
        assert np.abs(estimator.layout.table(fast, (a, b)) - expected).max() < 1.0
    assert estimator.layout.table(fast, (4, 9)).min() == 0.0
    for one, same in zip(learned.last(estimator).tables, model.tables, strict=True):
        assert np.abs(one - same).max() < 1e-5
