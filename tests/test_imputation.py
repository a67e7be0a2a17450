"""Draws of the confidential table, against the exact posterior of tiny tables."""

from collections import Counter
from fractions import Fraction
from itertools import islice, pairwise, product
from math import exp, lgamma

import numpy as np
import pandas as pd
import pytest

import smalldb
from queries import Column, Domain
from queries.relations import Relation
from queries.rules import Rule
from smalldb.exact.bits import bit_source
from smalldb.inference import imputation
from smalldb.inference.column_model import ColumnModel
from smalldb.inference.combining import combine, interval
from smalldb.inference.convergence import split_r_hat
from smalldb.inference.imputation import NotMixed, impute, released_total
from smalldb.inference.observed import Observed
from smalldb.inference.tied_columns import Blocks
from smalldb.kernels.imputing import gammas, sweep
from smalldb.mechanisms import Marginal, Measurement, Parity
from smalldb.noise.distributions import ConeDifference, Cube, DiscreteGaussian, Geometric, KNorm

COINS = {
    "geometric": Geometric(Fraction(3, 10)),
    "Gaussian": DiscreteGaussian(Fraction(4)),
}


def table_of(columns, sizes, values, noise):
    """A table at all categories."""
    groups = tuple(tuple(range(sizes[c])) for c in columns)
    return Measurement((Marginal(columns, groups),), np.array(values), noise, Fraction(1))


def columns_of(columns, sizes, values, replaced):
    """Columns at once, at all categories."""
    noise = KNorm(tuple(sizes[c] for c in columns), Fraction(1, 3), replaced)
    parts = tuple(Marginal((c,), (tuple(range(sizes[c])),)) for c in columns)
    return Measurement(parts, np.array(values), noise, Fraction(1))


def log_density(noise, deviations):
    if isinstance(noise, Cube):
        return -float(noise.rate) * max(map(abs, deviations))
    if isinstance(noise, KNorm):
        columns = np.split(np.abs(deviations), np.cumsum(noise.sizes)[:-1])
        return -float(noise.rate) * max(column.sum() for column in columns) / (2 if noise.replaced else 1)
    if isinstance(noise, Geometric):
        return -float(noise.rate) * sum(map(abs, deviations))
    return -sum(d * d for d in deviations) / (2 * float(noise.scale))


def log_likelihood(codes, measurements):
    """The density of the noise that makes the counts of a table those that were released."""
    found = 0.0
    for each in measurements:
        true = []
        for part, values in each.tables():
            if isinstance(part, Marginal):
                cell = np.zeros(len(codes), np.int64)
                for c, own, size in zip(part.columns, part.groups, part.shape, strict=True):
                    cell = cell * size + np.array(own)[codes[:, c]]
                true += np.bincount(cell, minlength=values.size).tolist()
            else:
                odd = int((codes[:, part.columns].sum(axis=1) % 2).sum())
                true.append(len(codes) - 2 * odd if part.signed else odd)
        found += log_density(each.noise, np.subtract(true, each.values).tolist())
    return found


def log_dirichlet(counts, before):
    """The probability of a sequence of categories, the distribution itself integrated out."""
    total, mass = sum(counts), sum(before)
    found = lgamma(mass) - lgamma(mass + total)
    return found + sum(lgamma(b + c) - lgamma(b) for c, b in zip(counts, before, strict=True))


def drawn(domain, measurements, total, near, draws, seed=3):
    _, tables = impute(domain, measurements, total, near, seed)
    return list(islice(tables, draws))


@pytest.mark.slow
@pytest.mark.parametrize("noise", COINS.values(), ids=COINS)
def test_counts_of_one_column_have_their_exact_posterior(noise):
    domain, total, value, draws = Domain([Column("c", ["x", "y", "z"])]), 6, [4, 3, -1], 2000
    near = np.array([[0], [0], [1], [2]])
    shares = (np.array([2, 1, 1]) + 1 / 3) / 5
    logs = {}
    for counts in product(range(total + 1), repeat=3):
        if sum(counts) == total:
            ways = lgamma(total + 1) - sum(lgamma(c + 1) for c in counts)
            beyond = [c - v for c, v in zip(counts, value, strict=True)]
            # a column that no other depends on: its categories are one group, with shares of their own
            logs[counts] = ways + log_dirichlet(counts, [0.5] * 3) + log_density(noise, beyond)
    assert shares.sum() == pytest.approx(1)
    found = drawn(domain, [table_of((0,), (3,), value, noise)], total, near, draws)
    _compare(logs, Counter(tuple(np.bincount(t[:, 0], minlength=3).tolist()) for t in found), draws)


KINDS = {
    "table": lambda: [table_of((0, 1), (2, 2), [2, 0, 1, 1], Geometric(Fraction(1, 2)))],
    "cube": lambda: [
        Measurement(
            (Parity((0,), False), Parity((0, 1), False)),
            np.array([1, 2]),
            Cube(2, Fraction(1, 2)),
            Fraction(1),
        )
    ],
    "columns": lambda: [
        columns_of((0, 1), (2, 2), [2, 1, 0, 3], replaced=False),
        table_of((0, 1), (2, 2), [2, 0, 1, 1], Geometric(Fraction(1, 2))),
    ],
    "signed": lambda: [
        Measurement(
            (Parity((0,), True), Parity((0, 1), True)),
            np.array([1, -1]),
            Geometric(Fraction(1, 3)),
            Fraction(1),
        )
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_columns_have_the_exact_posterior_of_their_tables(kind):
    """All tables of three rows: the model is integrated out by hand, the noise taken as it is published."""
    measurements, total, draws = KINDS[kind](), 3, 2000
    near = np.array([[0, 0], [0, 1], [1, 1]])
    columns = [np.bincount(near[:, c], minlength=2) + 0.5 for c in (0, 1)]
    shares = [own / own.sum() for own in columns]
    logs = {}
    for rows in product(product(range(2), repeat=2), repeat=total):
        cells = np.bincount([2 * a + b for a, b in rows], minlength=4).reshape(2, 2)
        prior = log_dirichlet(cells.sum(axis=0).tolist(), (5 * shares[1]).tolist())
        for b in range(2):  # the column that is eliminated first, given the other
            prior += log_dirichlet(cells[:, b].tolist(), (5 * shares[0]).tolist())
        noise = 0.0
        for each in measurements:
            true = []
            for part, _ in each.tables():
                if isinstance(part, Marginal):
                    other = tuple({0, 1} - set(part.columns))
                    true += cells.sum(axis=other).ravel().tolist()
                else:
                    odd = sum(sum(row[c] for c in part.columns) % 2 for row in rows)
                    true.append(total - 2 * odd if part.signed else odd)
            noise += log_density(each.noise, [t - v for t, v in zip(true, each.values.tolist(), strict=True)])
        key = tuple(cells.ravel().tolist())
        logs[key] = np.logaddexp(logs.get(key, -np.inf), prior + noise)
    found = drawn(Domain(["a", "b"]), measurements, total, near, draws)
    seen = Counter(tuple(np.bincount(t @ np.array([2, 1]), minlength=4).tolist()) for t in found)
    _compare(logs, seen, draws)


def _compare(logs, seen, draws):
    """A chi-squared test; draws are nearly independent, so it may be off by half as much again."""
    top = max(logs.values())
    weights = {key: exp(value - top) for key, value in logs.items()}
    whole = sum(weights.values())
    expected = {key: draws * weight / whole for key, weight in weights.items()}
    assert set(seen) <= set(expected)
    often = [key for key in expected if expected[key] >= 8]
    rest = draws - sum(expected[key] for key in often)
    squares = sum((seen[key] - expected[key]) ** 2 / expected[key] for key in often)
    if rest > 8:
        squares += (draws - sum(seen[key] for key in often) - rest) ** 2 / rest
    freedom = len(often)
    assert squares < 1.5 * (freedom + 4 * (2 * freedom) ** 0.5)


def numbers_of(state):
    """The stream of the kernel, by the definition of splitmix64."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        yield (((mixed ^ mixed >> 31) >> 12) + 0.5) * 2.0**-52


def twin(rows, model, probabilities, shares, measurements, blocks, stream):
    """One sweep by the definition: each probability of a whole row, each likelihood of a whole table."""
    counts = [int(own.max()) + 1 for own in model.groups]

    def weight(row):
        found = 1.0
        for (column, *given), table in zip(model.cliques, probabilities, strict=True):
            cell = 0
            for c in (*given, column):
                cell = cell * counts[c] + int(model.groups[c][row[c]])
            found *= table[cell]
        return found

    moved = 0
    for i in range(len(rows)):
        for b, size in enumerate(blocks.sizes):
            tried = [rows[i].copy() for _ in range(size)]
            for v, row in enumerate(tried):
                row[b] = v
            odds = np.cumsum([weight(row) * shares[b][v] for v, row in enumerate(tried)])
            new = int(np.searchsorted(odds, next(stream) * odds[-1], side="right"))
            if new != rows[i, b]:
                other = rows.copy()
                other[i] = tried[new]
                cost = log_likelihood(blocks.split(rows), measurements) - log_likelihood(
                    blocks.split(other), measurements
                )
                if cost <= 1e-9 or next(stream) < exp(-cost):
                    rows[:] = other
                    moved += 1
    return moved


@pytest.mark.parametrize("case", range(6))
def test_a_sweep_is_that_of_its_slow_twin(case):
    """Tables by groups, rules, each noise that has a density, signs: the same rows, entry by entry."""
    chance = np.random.default_rng(case)
    columns = [Column("a", list("pqrs")), "b", "c", Column("d", list("xyz"))]
    domain = Domain(columns, valid=["~(b & c)"] if case % 2 else None)
    grouped = Marginal((0, 3), ((0, 0, 1, 1), (0, 1, 2)))
    parities = tuple(Parity(c, False) for c in ((1,), (2,), (1, 2)))
    measurements = [
        table_of((0,), (4, 2, 2, 3), chance.integers(0, 9, 4), Geometric(Fraction(1, 4))),
        Measurement((grouped,), chance.integers(-3, 9, 6), DiscreteGaussian(Fraction(8)), Fraction(1)),
        Measurement(parities, chance.integers(0, 9, 3), Cube(3, Fraction(1, 2)), Fraction(1)),
        Measurement((Parity((1,), True),), chance.integers(-9, 9, 1), Geometric(Fraction(1, 8)), Fraction(1)),
        columns_of((0, 2, 3), (4, 2, 2, 3), chance.integers(0, 9, 9), case < 3),
        columns_of((1, 2), (4, 2, 2, 3), chance.integers(0, 9, 4), case > 3),
    ]
    blocks = Blocks.of(domain)
    sizes = blocks.sizes.tolist()
    observed = Observed.of(measurements, blocks)
    model = ColumnModel.of(sizes, observed.together, [np.full(size, 1 / size) for size in sizes], 5.0)
    rows = np.stack([chance.integers(0, size, 12) for size in sizes], axis=1).astype(np.int16)
    layout, state = model.layout(), np.array([case], dtype=np.uint64)
    model.draw(rows, state, layout)
    beside, slow = observed.beside(rows), rows.copy()
    stream = numbers_of(int(state[0]))
    ends = [*layout.origins.tolist(), len(layout.probabilities)]
    probabilities = [layout.probabilities[start:end] for start, end in pairwise(ends)]
    shares = [layout.shares[start:end] for start, end in pairwise(layout.starts.tolist())]
    moves = 0
    for _ in range(8):
        made = sweep(rows, state, layout, beside.counted, beside.signed)
        assert made == twin(slow, model, probabilities, shares, measurements, blocks, stream)
        assert (rows == slow).all()
        moves += made
    assert moves > 20
    assert (beside.deviations == observed.beside(rows).deviations).all()


def test_gammas_have_their_moments():
    state = np.array([7], dtype=np.uint64)
    for shape in (0.05, 0.7, 1.0, 30.0):
        found = gammas(np.full(40_000, shape), state)
        assert found.mean() == pytest.approx(shape, abs=5 * (shape / 40_000) ** 0.5)
        assert found.var() == pytest.approx(shape, rel=0.2)


def test_columns_that_a_rule_ties_are_one_block_of_what_can_exist():
    domain = Domain([Column("a", ["x", "y", "z"]), "b", "c", "d"], valid=["~(`a=x` & b)", "c | ~d"])
    blocks = Blocks.of(domain)
    assert blocks.columns == ((0, 1), (2, 3))
    assert blocks.sizes.tolist() == [5, 3]
    rows = (
        domain.table().astype(np.int64)
        if domain.binary
        else np.array(
            [
                [a, b, c, d]
                for a in range(3)
                for b in range(2)
                for c in range(2)
                for d in range(2)
                if not (a == 0 and b) and (c or not d)
            ]
        )
    )
    assert (blocks.split(blocks.merged(rows)) == rows).all()

    measurements = [table_of((0, 1), (3, 2), [9, 0, 5, 5, 5, 5], Geometric(Fraction(1)))]
    for table in drawn(domain, measurements, 29, rows, 5):
        assert (table[table[:, 0] == 0, 1] == 0).all()
        assert (table[table[:, 2] == 0, 3] == 0).all()


def test_blocks_take_room_for_the_cells_that_can_exist_and_no_others():
    same = np.eye(60, dtype=bool)
    names = [f"c{i}" for i in range(8)]
    chain = [Relation(f"r{i}", [Rule((i, i + 1), same)]) for i in range(7)]
    columns = [Column(name, [*map(str, range(60))]) for name in names]
    blocks = Blocks.of(Domain(columns, [relation.text for relation in chain], chain))  # 60 of 60^8 cells
    rows = np.repeat(np.array([[7], [0], [59]]), 8, axis=1)
    assert blocks.merged(rows).tolist() == [[7], [0], [59]]
    with pytest.raises(ValueError, match="can exist"):
        blocks.merged(np.arange(8)[None, :])


def test_groups_are_told_apart_only_where_they_were_measured():
    domain = Domain([Column("a", list("pqrs")), "b"])
    grouped = Measurement(
        (Marginal((0, 1), ((0, 0, 1, 1), (0, 1))),),
        np.array([4, 4, 4, 4]),
        Geometric(Fraction(1)),
        Fraction(1),
    )
    observed = Observed.of([grouped], Blocks.of(domain))
    model = ColumnModel.of([4, 2], observed.together, [np.full(4, 0.25), np.full(2, 0.5)], 5.0)
    assert [own.tolist() for own in model.groups] == [[0, 0, 1, 1], [0, 1]]


def test_what_cannot_be_drawn_is_refused(monkeypatch):
    domain = Domain(["a", "b"])
    cone = ConeDifference((2, 2), Fraction(1), ((0, 1),))
    parts = tuple(Marginal(c, ((0, 1),) * len(c)) for c in ((0,), (1,), (0, 1)))
    near = np.array([[0, 1]])
    with pytest.raises(ValueError, match="cone noise"):
        impute(domain, [Measurement(parts, np.zeros(8, np.int64), cone, Fraction(1))], 5, near, 1)
    many = Domain(12)
    pairs = tuple(Parity((i, j), False) for i in range(12) for j in range(i))
    all_pairs = Measurement(pairs, np.zeros(66, np.int64), Geometric(Fraction(1)), Fraction(1))
    with pytest.raises(ValueError, match="depend on 11 others"):
        impute(many, [all_pairs], 5, np.zeros((1, 12), np.int64), 1)
    monkeypatch.setattr(imputation, "AGREEING", 1 + 1e-6)
    with pytest.raises(NotMixed, match="differ"):
        loud = table_of((0, 1), (2, 2), [500, 0, 0, 500], Geometric(Fraction(1, 100)))
        impute(domain, [loud], 1000, near, 1, most_sweeps=1)


def test_cube_noise_of_counts_is_refused():
    part, noise = Marginal((0,), ((0, 1),)), Cube(2, Fraction(1))
    measured = [Measurement((part,), np.array([50, 50]), noise, Fraction(1))]
    with pytest.raises(ValueError, match="counts with cube noise"):
        impute(Domain(["a", "b"]), measured, 100, np.zeros((5, 2), dtype=np.uint8), 1)


def test_chains_that_differ_or_drift_do_not_agree():
    coins = np.array([bit_source(1).bits(8) % 21 for _ in range(4000)])
    same = coins.reshape(4, 1000, 1)
    assert split_r_hat(same).max() < 1.01
    assert split_r_hat(same + 10 * np.arange(4)[:, None, None]).min() > 1.3
    assert split_r_hat(same + np.arange(1000)[None, :, None] // 50).min() > 1.1
    assert split_r_hat(np.zeros((4, 100, 2), np.int64)).max() <= 1


def test_rubins_rule():
    pooled = combine([1.0, 2.0, 3.0], [0.5, 0.5, 0.5])
    assert (pooled.estimate, pooled.within, pooled.between) == (2.0, 0.5, 1.0)
    assert pooled.variance == pytest.approx(0.5 + 4 / 3)
    assert pooled.degrees == pytest.approx(2 * (1 + 0.5 / (4 / 3)) ** 2)
    low, high = combine([1.0, 2.0, 3.0]).interval()
    assert (low + high) / 2 == pytest.approx(2)
    assert (high - low) / 2 == pytest.approx(4.302653 * (4 / 3) ** 0.5, rel=1e-5)  # t of two degrees
    assert combine([1.0, 1.0], [4.0, 4.0]).interval()[1] == pytest.approx(1 + 1.959964 * 2, rel=1e-5)
    assert interval(lambda x: (x, 0.5), [1.0, 2.0, 3.0]) == pooled.interval()
    for wrong in (([1.0],), ([1.0, 2.0], [1.0]), ([1.0, 2.0], [1.0, -1.0])):
        with pytest.raises(ValueError):
            combine(*wrong)


def test_the_number_of_rows_is_read_from_all_tables():
    near = table_of((0,), (2,), [40, 61], DiscreteGaussian(Fraction(1)))
    far = table_of((0,), (2,), [400, 601], DiscreteGaussian(Fraction(10**6)))
    assert released_total([near, far]) == 101
    signs = Measurement((Parity((), True),), np.array([77]), Geometric(Fraction(1)), Fraction(1))
    assert released_total([signs]) == 77


@pytest.fixture(scope="module")
def release():
    people = pd.DataFrame(
        {"smoker": [True, False, False, False] * 50, "ill": [True, True, False, False] * 50}
    )
    return smalldb.release(people, "marginals:2", epsilon=5, mechanism="marginals", seed=1)


def test_tables_of_a_release(release):
    tables = release.tables(6, rng=1, method="chains")
    assert len(tables) == 6 and len(tables[:2]) == 2
    assert "R-hat" in repr(tables) and tables.made_by.r_hat < 1.05
    for table in tables:
        assert table.shape == (200, 2) and list(table.columns) == ["smoker", "ill"]
        assert (table.dtypes == release.data.dtypes).all()
    again = release.tables(6, rng=1, method="chains")
    assert all(a.equals(b) for a, b in zip(tables, again, strict=True))
    low, high = interval(lambda table: table.ill.mean(), tables)
    assert low <= 0.5 <= high and high - low < 0.2


@pytest.fixture(scope="module")
def apart():
    """Tables of four columns, of which two pairs were measured together."""
    coins = np.random.default_rng(4)
    old = coins.random(300) < 0.5
    people = pd.DataFrame(
        {
            "old": old,
            "ill": coins.random(300) < 0.2 + 0.5 * old,
            "town": coins.random(300) < 0.5,
            "tax": coins.random(300) < 0.4,
        }
    )
    release = smalldb.release(
        people,
        "marginals:1",
        epsilon=3,
        mechanism="marginals",
        strategy="adaptive",
        measure_first=["old x ill", "town x tax"],
        seed=1,
    )
    return release.tables(4, rng=1)


def test_tables_tell_which_pairs_were_not_measured(apart):
    assert {*apart.unmeasured} == {("old", "town"), ("old", "tax"), ("ill", "town"), ("ill", "tax")}
    assert "4 of 6 pairs of columns not measured together" in repr(apart)
    assert apart[1:].unmeasured == apart.unmeasured


QUIET = {
    "a share": lambda table: table.ill.mean(),
    "of a pair that was measured": lambda table: table.ill[table.old].mean(),
    "two shares": lambda table: table.ill.mean() - table.tax.mean(),
    "with a variance": lambda table: (table.old.mean(), 0.001),
    "random": lambda table: table.ill[table.tax].mean() + np.random.default_rng().random(),
}
ACROSS = {
    "a conditional share": (lambda table: table.ill[table.tax].mean(), "(ill x tax)"),
    "a correlation": (lambda table: table.corr().loc["old", "town"], "(old x town)"),
    "with a variance": (lambda table: (table.ill[table.town].mean(), 0.001), "(ill x town)"),
    "three columns": (lambda table: (table.ill & table.old & table.tax).mean(), "(old x tax, ill x tax)"),
    "all": (
        lambda table: table.to_numpy().all(axis=1).mean(),
        "old x town, old x tax, ill x town and 1 more",
    ),
}


@pytest.mark.parametrize("statistic", QUIET.values(), ids=QUIET)
def test_what_was_measured_together_has_its_interval_without_a_word(apart, statistic):
    interval(statistic, apart)  # a warning is an error here


@pytest.mark.parametrize(("statistic", "named"), ACROSS.values(), ids=ACROSS)
def test_a_statistic_across_columns_that_were_not_measured_together_warns(apart, statistic, named):
    with pytest.warns(UserWarning, match="never measured together") as told:
        interval(statistic, apart)
    assert named in str(told[0].message)
    interval(statistic, list(apart))  # of tables alone nothing is known


@pytest.mark.parametrize(
    ("statistic", "error", "said"),
    [
        (lambda table: table.mean(), TypeError, "not Series: take one value of it"),
        (lambda table: "much", TypeError, "not str"),
        (lambda table: None, TypeError, "not NoneType"),
        (lambda table: (1.0, 2.0, 3.0), TypeError, "not 3 numbers"),
        (lambda table: float("nan"), ValueError, "mean over no rows"),
    ],
)
def test_what_is_no_number_is_refused_in_one_line(apart, statistic, error, said):
    with pytest.raises(error, match=said) as raised:
        interval(statistic, apart)
    assert "\n" not in str(raised.value)
    with pytest.raises(error):
        combine([statistic(table) for table in apart])


def test_a_release_without_measurements_has_one_table():
    people = pd.DataFrame({"a": [0, 1, 1], "b": [0, 0, 1]})
    small = smalldb.release(people, "marginals:2", epsilon=1, rows=3, mechanism="census", seed=1)
    with pytest.raises(ValueError, match="has no measurements"):
        small.tables(2)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5])
def test_a_number_of_tables_is_a_whole_number(release, wrong):
    with pytest.raises(ValueError, match="whole number"):
        release.tables(wrong)
    with pytest.raises(ValueError, match="pseudo_rows"):
        release.tables(2, pseudo_rows=0)
    with pytest.raises(ValueError, match="pseudo_rows"):  # for which no gamma number is found
        release.tables(2, pseudo_rows=float("inf"))
    with pytest.raises(ValueError, match="method must be one of refits, chains"):
        release.tables(2, method="walks")


def squares_of(rate, runs=24, tables=8):
    """The squared errors of four cells, in the variances of tables that were drawn with a rate."""
    cells, errors, spread = np.array([150, 60, 40, 50]), 0.0, 0.0
    rows = np.repeat(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), cells, axis=0)
    for seed in range(runs):
        values = cells + Geometric(Fraction(1, 12)).draw(4, bit_source(seed))
        measured = [table_of((0, 1), (2, 2), values, Geometric(rate))]
        made = drawn(Domain(["a", "b"]), measured, 300, rows, tables, seed)
        counts = np.array([np.bincount(table @ np.array([2, 1]), minlength=4) for table in made])
        errors += ((counts.mean(axis=0) - cells) ** 2).sum()
        spread += (1 + 1 / tables) * counts.var(axis=0, ddof=1).sum()
    return errors / spread


@pytest.mark.slow
def test_tables_differ_as_much_as_noise_leaves_open():
    """With half the variance of the noise, tables would be twice as sure as they may be."""
    right, half = squares_of(Fraction(1, 12)), squares_of(Fraction(17, 144))
    assert 0.6 < right < 1.5 and half > 1.3 * right
