"""Moves of many rows at once, against their definition: each density of a whole table."""

from fractions import Fraction
from math import exp, lgamma, log

import numpy as np
import pytest
from test_imputation import columns_of, log_dirichlet, log_likelihood, numbers_of, table_of

from queries import Column, Domain
from smalldb.inference.column_model import ColumnModel
from smalldb.inference.cuts import cuts
from smalldb.inference.observed import Observed
from smalldb.inference.tied_columns import Blocks
from smalldb.kernels.matching import below, deal, matching, move, patterns
from smalldb.mechanisms import Marginal, Measurement, Parity
from smalldb.noise.distributions import Cube, DiscreteGaussian, Geometric

COLUMNS = [Column("a", list("pqrs")), "b", "c", Column("d", list("xyz")), "e"]
SIZES = (4, 2, 2, 3, 2)


def setting(case):
    """A table with all kinds of measurements, beside its deviations, and the cuts of its model."""
    chance = np.random.default_rng(case)
    domain = Domain(COLUMNS, valid=["~(b & c)"] if case % 2 else None)
    grouped = Marginal((0, 3), ((0, 0, 1, 1), (0, 1, 2)))
    coarse = Marginal((0, 4), ((0, 0, 1, 1), (0, 1)))
    parities = tuple(Parity(c, False) for c in ((1,), (2,), (1, 2)))
    measurements = [
        table_of((0,), SIZES, chance.integers(0, 9, 4), Geometric(Fraction(1, 4))),
        Measurement((grouped,), chance.integers(-3, 9, 6), DiscreteGaussian(Fraction(8)), Fraction(1)),
        table_of((3, 4), SIZES, chance.integers(0, 9, 6), Geometric(Fraction(1, 3))),
        Measurement((coarse,), chance.integers(0, 9, 4), Geometric(Fraction(1, 5)), Fraction(1)),
        Measurement(parities, chance.integers(0, 9, 3), Cube(3, Fraction(1, 2)), Fraction(1)),
        Measurement(
            (Parity((1, 4), True),), chance.integers(-9, 9, 1), Geometric(Fraction(1, 8)), Fraction(1)
        ),
        columns_of((0, 2, 3), SIZES, chance.integers(0, 9, 9), case < 3),
    ]
    blocks = Blocks.of(domain)
    sizes = blocks.sizes.tolist()
    observed = Observed.of(measurements, blocks)
    model = ColumnModel.of(sizes, observed.together, [np.full(size, 1 / size) for size in sizes], 5.0)
    rows = np.stack([chance.integers(0, size, 40) for size in sizes], axis=1).astype(np.int16)
    return blocks, measurements, model, observed, rows


def log_posterior(rows, blocks, measurements, model):
    """Of a sequence of rows: the model is integrated out, the noise taken as it is published."""
    counts = [int(own.max()) + 1 for own in model.groups]
    found = 0.0
    for (column, *given), before in zip(model.cliques, model.before, strict=True):
        cells = np.zeros(len(before), np.int64)
        for row in rows:
            cell = 0
            for c in (*given, column):
                cell = cell * counts[c] + int(model.groups[c][row[c]])
            cells[cell] += 1
        for own, mass in zip(
            cells.reshape(-1, counts[column]), before.reshape(-1, counts[column]), strict=True
        ):
            found += log_dirichlet(own.tolist(), mass.tolist())
    for c, groups in enumerate(model.groups):
        own = np.bincount(rows[:, c], minlength=len(groups))
        for group in range(counts[c]):
            some = own[groups == group].tolist()
            found += log_dirichlet(some, [0.5] * len(some))
    return found + log_likelihood(blocks.split(rows), measurements)


def dealt(rows, matched, first, second, cut):
    """Some table of the rows with so many of each pair of patterns."""
    left, made = matched.copy(), rows.copy()
    parts = {a: rows[first == a][:, cut.columns].tolist() for a in range(len(matched))}
    for i, b in enumerate(second):
        a = int(np.flatnonzero(left[:, b])[0])
        left[a, b] -= 1
        made[i, cut.columns] = a if cut.alone else parts[a].pop()
    return made


def twin(matched, stream, cut, density):
    """One move by the definition; whether it was taken."""
    some = np.arange(len(matched)) if cut.alone else np.flatnonzero(matched.sum(axis=1))
    others = np.flatnonzero(matched.sum(axis=0))
    a, c = (some[int(next(stream) * len(some))] for _ in range(2))
    b, d = (others[int(next(stream) * len(others))] for _ in range(2))
    k = int(exp(next(stream) * log(matched.sum() + 1.0)))
    shift = cut.alone and next(stream) < 0.5
    changed = matched.copy()
    changed[a, b] -= k
    changed[c, b] += k
    if not shift:
        changed[c, d] -= k
        changed[a, d] += k
    if a == c or cut.within[a] != cut.within[c] or (not shift and b == d) or changed.min() < 0:
        return False
    gain = density(changed) - density(matched)
    if gain < -1e-9 and next(stream) >= exp(gain):
        return False
    matched[:] = changed
    return True


@pytest.mark.parametrize("case", range(4))
def test_a_move_is_that_of_its_slow_twin(case):
    """Each cut of tables by groups, rules, and every noise that has a density: the same moves, one by one."""
    blocks, measurements, model, observed, rows = setting(case)
    starts = np.cumsum([0, *blocks.sizes.tolist()])
    found = cuts(model, observed)
    assert {cut.alone for cut in found} == {True, False} and any(cut.within.any() for cut in found)
    taken = 0
    for number, cut in enumerate(found):
        own, beside = rows.copy(), observed.beside(rows)
        first, second = (patterns(own, starts, codes) for codes in (cut.first, cut.second))
        matched = matching(first, second, (cut.prior_first.shape[1], cut.prior_second.shape[1]))
        slow, state = matched.copy(), np.array([100 * case + number], dtype=np.uint64)
        stream = numbers_of(int(state[0]))

        def density(table, cut=cut, first=first, second=second):
            made = dealt(rows, table, first, second, cut)
            ways = sum(lgamma(count + 1.0) for count in table.ravel().tolist())
            return log_posterior(made, blocks, measurements, model) - ways

        for _ in range(40):
            assert move(matched, state, 1, cut, beside.counted, beside.signed) == twin(
                slow, stream, cut, density
            )
            assert (matched == slow).all()
        taken += int((matched != matching(first, second, matched.shape)).any())
        deal(own, state, matched, first, second, cut)
        assert (observed.beside(own).deviations == beside.deviations).all()
        assert (observed.beside(own).counted.away == beside.counted.away).all()
        now = [patterns(own, starts, codes) for codes in (cut.first, cut.second)]
        assert (matching(*now, matched.shape) == matched).all()
        others = [c for c in range(rows.shape[1]) if c not in cut.columns]
        assert (own[:, others] == rows[:, others]).all()
        if not cut.alone:
            parts = [sorted(map(tuple, table[:, cut.columns].tolist())) for table in (own, rows)]
            assert parts[0] == parts[1]
    assert taken > len(found) / 2


def test_parts_are_dealt_uniformly():
    """Of a chain of four columns that is cut in the middle: all ways to match its ends are alike."""
    domain = Domain(["a", "b", "c", "d"])
    measured = [table_of((c, c + 1), (2,) * 4, [1] * 4, Geometric(Fraction(1))) for c in range(3)]
    observed = Observed.of(measured, Blocks.of(domain))
    model = ColumnModel.of([2] * 4, observed.together, [np.full(2, 0.5)] * 4, 5.0)
    (cut,) = [cut for cut in cuts(model, observed) if not cut.alone]
    rows = np.array([[0, 0, 0, 0], [1, 0, 0, 1], [1, 0, 1, 0], [0, 1, 1, 1]], dtype=np.int16)
    starts, state, seen = np.arange(0, 10, 2), np.array([5], dtype=np.uint64), {}
    first, second = (patterns(rows, starts, codes) for codes in (cut.first, cut.second))
    matched = matching(first, second, (2, 2))
    draws = 6000
    for _ in range(draws):
        own = rows.copy()
        deal(own, state, matched, first, second, cut)
        key = own.tobytes()
        seen[key] = seen.get(key, 0) + 1
    expected = draws / len(seen)
    squares = sum((count - expected) ** 2 / expected for count in seen.values())
    assert len(seen) == 6 and squares < len(seen) + 5 * (2 * len(seen)) ** 0.5


def test_numbers_below_another_are_uniform():
    state = np.array([3], dtype=np.uint64)
    seen = np.bincount([below(5, state) for _ in range(5000)], minlength=5)
    assert len(seen) == 5 and abs(seen - 1000).max() < 5 * 800**0.5
