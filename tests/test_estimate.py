"""The model of rounds: groups, trees, fits and rows against what all cells say."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import log

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import wrightomega

from queries.arrays import splitmix64
from smalldb.kernels.cell_sums import added_up, carry, met, unmet
from smalldb.kernels.nearby_rows import refine, swap
from smalldb.marginals.estimate.column_estimates import least_variance, reconciled
from smalldb.marginals.estimate.estimation import EXCHANGES, affordable, exchanged, moved
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.estimate.junction import beliefs, build, steps, summed
from smalldb.marginals.estimate.modelling import model_rows
from smalldb.marginals.estimate.proportional_fitting import Factor, fit
from smalldb.marginals.measuring import NoisyTable
from smalldb.noise.distributions import Geometric

SIZES = (5, 7, 4, 6)
RNG = np.random.default_rng(3)
GROUPINGS = [halved(RNG.random(k), ordered=c % 2 == 0) for c, k in enumerate(SIZES)]
COLUMNS = [((c, g.finest),) for c, g in enumerate(GROUPINGS)]
SCOPES = [
    *COLUMNS,
    ((0, 1), (1, 2)),
    ((1, 1), (2, GROUPINGS[2].finest)),
    ((0, 2), (2, 1)),
    ((2, 1), (3, 2)),
    ((0, 1), (3, 1)),
    ((0, 1), (1, 1), (3, 2)),
]
FACTORS = [RNG.normal(size=tuple(GROUPINGS[c].groups(level) for c, level in scope)) for scope in SCOPES]


def spread(scope, table):
    """A table over groups as an array over all cells."""
    index = np.ix_(*[GROUPINGS[c].of_categories(level) for c, level in scope])
    shape = [1] * len(SIZES)
    for c, _ in scope:
        shape[c] = SIZES[c]
    return table[index].reshape(shape)


def gathered(scope, p):
    """The sums of an array over all cells, cell by cell."""
    found = np.zeros(tuple(GROUPINGS[c].groups(level) for c, level in scope))
    groups = [GROUPINGS[c].of_categories(level) for c, level in scope]
    for cell in product(*map(range, SIZES)):
        found[tuple(g[cell[c]] for g, (c, _) in zip(groups, scope, strict=True))] += p[cell]
    return found


def every_cell(factors):
    weights = np.exp(sum(spread(s, f) for s, f in zip(SCOPES, factors, strict=True)))
    return weights / weights.sum(), log(weights.sum())


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("k", [2, 3, 5, 16, 40])
def test_groups_are_nested_ranges_of_the_order(k, ordered):
    mass = np.random.default_rng(k).random(k) ** 4
    grouping = halved(mass, ordered)
    assert sorted(grouping.order) == list(range(k))
    assert not ordered or list(grouping.order) == list(range(k))
    assert grouping.groups(0) == 1
    assert grouping.groups(grouping.finest) == k
    for coarse in range(grouping.finest + 1):
        for fine in range(coarse, grouping.finest + 1):
            assert set(grouping.starts[coarse]) <= set(grouping.starts[fine])
            inside = grouping.of_categories(fine)
            assert (grouping.parents(coarse, fine)[inside] == grouping.of_categories(coarse)).all()
            assert (grouping.starts[fine][grouping.inside(coarse, fine)] == grouping.starts[coarse]).all()
    # groups of a level have about the same mass
    assert [len(starts) for starts in halved(np.ones(64), ordered).starts] == [1, 2, 4, 8, 16, 32, 64]


def test_messages_give_the_sums_of_all_cells():
    tree = build(SCOPES, GROUPINGS)
    tables, log_sum = beliefs(tree, FACTORS)
    p, expected = every_cell(FACTORS)
    assert log_sum == pytest.approx(expected, abs=1e-12)
    for scope, home in zip(SCOPES, tree.homes, strict=True):
        path = steps(tree.buckets[home].scope, scope, GROUPINGS)
        assert np.abs(summed(tables[home], path) - gathered(scope, p)).max() < 1e-13
    for bucket, table in zip(tree.buckets, tables, strict=True):
        assert np.abs(table - gathered(bucket.scope, p)).max() < 1e-13


def cells_of_a_table(seed, size=60, coarse=7):
    """Probabilities, one of them 0; of each the coarse cell, the last of which holds nothing."""
    rng = np.random.default_rng([13, seed])
    fine, inside = rng.random(size), rng.integers(0, coarse - 1, size).astype(np.int32)
    fine[3] = 0
    inside[4], fine[4] = coarse - 1, 0
    return rng, fine / fine.sum(), inside


@pytest.mark.parametrize("seed", range(4))
def test_a_table_is_brought_up_to_date_as_in_its_definition(seed):
    rng, target, there = cells_of_a_table(seed)
    source, here = rng.random(90), rng.integers(0, 7, 90).astype(np.int32)
    shared, now = (np.bincount(at, cells, 7) for at, cells in ((there, target), (here, source)))
    ratios = np.divide(now, shared, out=np.zeros(7), where=shared > 0)
    expected = target * ratios[there]
    carry(source, here, shared, target, there)
    assert (target == expected).all()
    assert (shared == now).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_step_of_a_fit_is_that_of_its_definition(seed):
    rng, fine, inside = cells_of_a_table(seed)
    total, counts, ridges, theta = 500.0, rng.random(7) * 100, 0.1 + rng.random(7) * 9, rng.normal(size=7)
    here = np.bincount(inside, fine, 7) * total
    wanted = counts - ridges * theta
    with np.errstate(divide="ignore"):
        there = ridges * wrightomega(np.log(here / ridges) + wanted / ridges)
    ratio = np.divide(there, here, out=np.ones(7), where=(here > 0) & (there > 0))
    after, moved_theta = fine * (ratio * (total / (here * ratio).sum()))[inside], theta + np.log(ratio)

    found, logs = unmet(fine, inside, total, counts, ridges, theta)
    most = met(fine, inside, total, found, wrightomega(logs), ridges, theta)
    assert (found == here).all() and here[-1] == 0
    # logarithms of Numba and NumPy may differ in their last bit
    np.testing.assert_allclose(most, np.abs(there - here).max(), rtol=1e-13)
    np.testing.assert_allclose(theta, moved_theta, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(fine, after, rtol=1e-13)
    # where all was moved, expected counts and coefficients add up to what is held
    known = here > 0
    np.testing.assert_allclose((there + ridges * theta)[known], counts[known], rtol=1e-9)
    assert fine.sum() == pytest.approx(1) and (added_up(fine, inside, 7)[~known] == 0).all()


@pytest.mark.slow
def test_a_fit_is_the_fit_over_all_cells():
    """The same objective with the sum over all cells, by another method."""
    rng = np.random.default_rng(5)
    total = 900
    data = rng.multinomial(total, rng.dirichlet(np.full(int(np.prod(SIZES)), 0.5))).reshape(SIZES)
    counts = [gathered(s, data) + rng.normal(size=f.shape) * 3 for s, f in zip(SCOPES, FACTORS, strict=True)]
    ridges = [rng.uniform(0.5, 5, size=f.shape) for f in FACTORS]
    factors = [Factor(np.zeros(f.shape), (y, r)) for f, y, r in zip(FACTORS, counts, ridges, strict=True)]
    tree = build(SCOPES, GROUPINGS)

    ends = np.cumsum([f.size for f in FACTORS])[:-1]

    def split(flat):
        return [part.reshape(f.shape) for part, f in zip(np.split(flat, ends), FACTORS, strict=True)]

    def objective(flat):
        theta = split(flat)
        p, log_sum = every_cell(theta)
        value = total * log_sum
        slopes = []
        for scope, t, y, r in zip(SCOPES, theta, counts, ridges, strict=True):
            value += -(t * y).sum() + (r * t**2).sum() / 2
            slopes.append((total * gathered(scope, p) - y + r * t).ravel())
        return value, np.concatenate(slopes)

    naive = minimize(objective, np.zeros(sum(f.size for f in FACTORS)), jac=True, method="BFGS").x
    q, _ = every_cell(split(naive))
    found = fit(tree, factors, total, [None] * len(factors), 3_000)
    p, _ = every_cell(found)
    assert np.abs(p - q).max() < 1e-6
    assert np.abs(objective(np.concatenate([t.ravel() for t in found]))[1]).max() < 0.01


def naive_refine(context, group, table, starts, words, offsets):
    """The definition, with lists: the groups of rows that agree, which are then put in a random order."""
    result, used = list(group), 0
    for c, g in product(range(len(table)), range(len(starts) - 1)):
        those = [row for row, key in enumerate(zip(context, group, strict=True)) if key == (c, g)]
        span, given = 0.0, []
        for f in range(starts[g], starts[g + 1]):
            span += table[c, f]
        for i in range(len(those)):
            sums = np.cumsum(table[c, starts[g] : starts[g + 1]])
            wanted = (i + offsets[c, g]) / len(those) * span
            position = min(int((sums <= wanted).sum()), len(sums) - 1)
            while span > 0 and table[c, starts[g] + position] == 0:
                position -= 1
            given.append(starts[g] + position)
        for i in range(len(those) - 1, 0, -1):
            j = int(words[used + i]) % (i + 1)
            given[i], given[j] = given[j], given[i]
        used += len(those)
        for row, fine in zip(those, given, strict=True):
            result[row] = fine
    return result


def test_no_row_gets_a_group_without_weight_where_a_share_is_rounded_to_1():
    # (2 + offset) / 3 is 1 in floats, where the offset is the greatest
    words, offsets = splitmix64(3), np.array([[1 - 2.0**-53]])
    context, fine = np.zeros((2, 3), dtype=np.int32)
    refine(context, fine, np.array([[1.0, 0.0]]), np.array([0, 2]), words, offsets)
    assert fine.tolist() == [0, 0, 0]
    assert naive_refine([0] * 3, [0] * 3, np.array([[1.0, 0.0]]), [0, 2], words, offsets) == [0, 0, 0]


def test_rounding_is_what_its_definition_says():
    rng = np.random.default_rng(8)
    context, group = rng.integers(0, 3, 200, np.int32), rng.integers(0, 2, 200, np.int32)
    table, starts = rng.random((3, 5)), np.array([0, 3, 5])
    words, offsets = splitmix64(200, 77), rng.random((3, 2))
    expected = naive_refine(context.tolist(), group.tolist(), table, starts.tolist(), words, offsets)
    fine = group.copy()
    refine(context, fine, table, starts, words, offsets)
    assert fine.tolist() == expected
    for c, g in product(range(3), range(2)):
        those = (context == c) & (group == g)
        shares = table[c, starts[g] : starts[g + 1]] / table[c, starts[g] : starts[g + 1]].sum()
        counts = np.bincount(fine[those] - starts[g], minlength=starts[g + 1] - starts[g])
        assert np.abs(counts - those.sum() * shares).max() < 1 + 1e-9


def test_rows_have_the_tables_of_the_model():
    tree = build(SCOPES, GROUPINGS)
    tables, _ = beliefs(tree, FACTORS)
    p, _ = every_cell(FACTORS)
    rows = model_rows(tree, tables, 20_000, seed=4)
    found = np.zeros(SIZES)
    np.add.at(found, tuple(rows), 1)
    for c in range(len(SIZES)):
        axes = tuple(a for a in range(len(SIZES)) if a != c)
        assert np.abs(found.sum(axis=axes) - 20_000 * p.sum(axis=axes)).max() < 60
    drawn = np.random.default_rng(1).multinomial(20_000, p.ravel()).reshape(SIZES)
    assert np.abs(found - 20_000 * p).sum() < 1.02 * np.abs(drawn - 20_000 * p).sum()
    assert (model_rows(tree, tables, 20_000, seed=4) == rows).all()


def test_exchanges_are_counted_right_and_only_help():
    rng = np.random.default_rng(6)
    sizes, count = (4, 5, 3), 300
    rows = np.array([rng.integers(0, k, count) for k in sizes])
    targets = {
        (a, b): rng.dirichlet(np.ones(sizes[a] * sizes[b])).reshape(sizes[a], sizes[b]) * count
        for a, b in combinations(range(3), 2)
    }

    def off(codes):
        total = 0.0
        for (a, b), target in targets.items():
            counts = np.zeros(target.shape)
            np.add.at(counts, (codes[a], codes[b]), 1)
            total += ((counts - target) ** 2 / (target + 1)).sum()
        return total

    more = exchanged(rows, sizes, targets, frozenset(), 6, seed=3)
    assert off(rows) > off(more)
    for c in range(3):
        assert sorted(more[c]) == sorted(rows[c])
    kept = exchanged(rows, sizes, targets, frozenset({1}), 3, seed=3)
    assert (kept[1] == rows[1]).all()
    assert (exchanged(rows, sizes, targets, frozenset(), 6, seed=3) == more).all()
    quiet = exchanged(rows, sizes, targets, frozenset(), 100, seed=3)
    assert off(more) > off(quiet)
    assert (exchanged(rows, sizes, targets, frozenset(), 200, seed=3) == quiet).all()  # it has ended


def test_exchanges_end_by_the_offers_and_not_by_all_columns():
    """One table among a hundred columns comes as near to its target as without the others."""
    rng = np.random.default_rng(12)
    rows = rng.integers(0, 8, (100, 3_000)).astype(np.int32)
    target = np.diag(np.bincount(rows[0], minlength=8).astype(np.float64))
    rows[1] = rng.permutation(rows[0])
    made = exchanged(rows, (8,) * 100, {(0, 1): target}, frozenset(), 24, seed=3)
    alone = exchanged(rows[:2], (8, 8), {(0, 1): target}, frozenset(), 24, seed=3)
    assert (made[:2] != rows[:2]).any() and (made[2:] == rows[2:]).all()
    for found in (made, alone):
        assert (found[0] != found[1]).mean() < 0.1


@pytest.mark.parametrize(("rows", "tables", "sweeps"), [(10, 3, EXCHANGES), (10**6, 45, 11), (10**9, 45, 0)])
def test_there_is_time_for_so_many_sweeps(rows, tables, sweeps):
    assert affordable(rows, tables) == sweeps


def naive_swap(rows, column, tables, partners):
    """The definition, with whole sums; tables: another column, targets and weights of their cells."""

    def off():
        total = 0.0
        for other, target, weights in tables:
            counts = np.zeros(target.shape)
            np.add.at(counts, (rows[column], rows[other]), 1)
            total += (weights * (counts - target) ** 2).sum()
        return total

    made = 0
    for i in range(rows.shape[1]):
        j, before = partners[i], off()
        rows[column, [i, j]] = rows[column, [j, i]]
        if off() < before:
            made += 1
        else:
            rows[column, [i, j]] = rows[column, [j, i]]
    return made


def test_exchanges_are_what_their_definition_says():
    # targets are in quarters and weights powers of two: no sum is rounded
    rng = np.random.default_rng(11)
    sizes, count = (5, 4, 3), 60
    exchanged_somewhere = 0
    for _ in range(8):
        rows = np.array([rng.integers(0, k, count) for k in sizes], np.int32)
        partners = rng.integers(0, count, count)
        shapes = [(sizes[0], sizes[other]) for other in (1, 2)]
        targets = [rng.integers(0, 60, shape) / 4 for shape in shapes]
        weights = [2.0 ** -rng.integers(0, 6, shape) for shape in shapes]
        expected, beyond = rows.copy(), []
        for other, target in zip((1, 2), targets, strict=True):
            counts = np.zeros(target.shape)
            np.add.at(counts, (rows[0], rows[other]), 1)
            beyond.append((counts - target).ravel())
        cells, importance = np.concatenate(beyond), np.concatenate([w.ravel() for w in weights])
        codes = (np.array([1, 2]), np.array([0, targets[0].size]), np.array([[sizes[1], 1], [sizes[2], 1]]))
        made = swap(rows, 0, *codes, cells, importance, partners)
        tables = list(zip((1, 2), targets, weights, strict=True))
        assert made == naive_swap(expected, 0, tables, partners)
        assert (rows == expected).all()
        for other, target, found in zip((1, 2), targets, np.split(cells, [targets[0].size]), strict=True):
            counts = np.zeros(target.shape)
            np.add.at(counts, (rows[0], rows[other]), 1)
            assert (found == (counts - target).ravel()).all()
        exchanged_somewhere += made
    assert exchanged_somewhere > 50


def test_a_table_beside_the_model_is_believed_by_its_noise():
    expected = np.outer([40.0, 60.0], [30.0, 30.0, 40.0])
    groups = [(np.array([0, 1]), np.array([0, 0, 1]))]
    seen = np.array([[3400, 600], [2600, 3400]])
    scope = ((0, 1), (1, 1))
    sharp, dull = (
        moved(expected, [NoisyTable(scope, seen, Fraction(1), Geometric(Fraction(1)), variance)], groups)
        for variance in (1.0, 1e9)
    )
    assert np.abs(sharp[:, :2].sum(axis=1) - seen[:, 0]).max() < 30
    assert np.abs(dull - expected).max() < 200
    for table in (sharp, dull):
        assert np.abs(table.sum(axis=0) - expected.sum(axis=0)).max() < 1
        assert np.abs(table.sum(axis=1) - expected.sum(axis=1)).max() < 1


def test_columns_are_what_least_squares_say_of_all_that_was_measured():
    """Twin: the normal equations of all measurements, with the total as a condition."""
    rng = np.random.default_rng(5)
    grouping = halved(rng.gamma(1.0, size=23) + 0.1, False)
    size, variances = len(grouping.order), rng.uniform(1, 9, 23)
    values = rng.uniform(300, 400, size)
    sums = []
    for level in (1, 3, 3, grouping.finest):
        starts = grouping.starts[level]
        sums.append((level, np.add.reduceat(values, starts) + rng.normal(0, 5, len(starts)), 7.0 + level))
    total = values.sum() + 11
    rows, said, precisions = [np.eye(size)], [values], [1 / variances]
    for level, of_groups, variance in sums:
        groups = grouping.parents(level, grouping.finest)
        rows.append((np.arange(len(of_groups))[:, None] == groups).astype(float))
        said.append(of_groups)
        precisions.append(np.full(len(of_groups), 1 / variance))
    matrix, weights = np.concatenate(rows), np.concatenate(precisions)
    normal = matrix.T @ (weights[:, None] * matrix)
    bordered = np.block([[normal, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    wanted = np.linalg.solve(bordered, np.append(matrix.T @ (weights * np.concatenate(said)), total))[:-1]
    assert least_variance(values, variances, grouping, sums, total) == pytest.approx(wanted)


def test_tables_tell_of_columns_and_rare_categories_stay_rare():
    grouping = halved(np.array([500.0, 300.0, 200.0, 0.0]), False)
    own = NoisyTable(((0, 0),), np.array([520, 290, 190, -8]), Fraction(1), Geometric(Fraction(1, 10)), 200.0)
    read = (np.array([520.0, 290.0, 190.0, 0.0]),)

    def found(*tables):
        return reconciled(read, (own,), (grouping,), tables, 1000)[0]

    assert found() == pytest.approx(read[0], abs=0.01)
    sure = NoisyTable(((0, 1), (1, 1)), np.array([[250, 240], [250, 260]]), Fraction(1), own.noise, 0.01)
    assert found(sure)[0] == pytest.approx(490, abs=0.1)
    assert found(sure)[1:] == pytest.approx([305, 205, 0], abs=1)
    assert found(replace(sure, variance=1e6))[0] == pytest.approx(520, abs=0.1)
