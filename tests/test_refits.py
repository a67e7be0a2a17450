"""Tables drawn from a model that is fitted anew to noisier counts: least squares, coverage, what is kept."""

from fractions import Fraction
from itertools import combinations, islice

import naive
import numpy as np
import pytest

import smalldb
from queries import Column, Domain, Rows
from smalldb.exact.bits import bit_source
from smalldb.inference import combine
from smalldb.marginals.contrasts.coding import coding
from smalldb.marginals.estimate.grouping import nested
from smalldb.marginals.parity_refits import ParityRefits
from smalldb.marginals.refits import Refits, agreeing, nearest_table
from smalldb.mechanisms import Dependence, Marginal, Measurement, Measurements, Parity
from smalldb.noise.distributions import DiscreteGaussian, Geometric
from smalldb.releasing.imputed_tables import streamed

DOMAIN = Domain([Column("a", list("pqrs")), Column("b", list("xyz")), "c"])
ALL = tuple(tuple(range(size)) for size in DOMAIN.sizes)


def measured(codes, columns, noise, coins, groups=None):
    """A published table of some rows, with noise."""
    own = tuple(ALL[c] for c in columns) if groups is None else groups
    part = Marginal(columns, own)
    values = naive.part_values(part, codes).ravel() + noise.draw(part.size, bit_source(coins))
    return Measurement((part,), values, noise, Fraction(1))


def people(n, seed):
    """Rows of three columns that hang on each other in a row."""
    coins = np.random.default_rng(seed)
    a = coins.integers(0, 4, n)
    b = np.where(coins.random(n) < 0.6, a % 3, coins.integers(0, 3, n))
    return np.column_stack([a, b, coins.random(n) < 0.2 + 0.3 * b])


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_table_is_that_of_a_general_solver(seed):
    from scipy.optimize import minimize

    coins = np.random.default_rng(seed)
    true, shape = coins.integers(0, 20, (3, 4)).astype(float), (3, 4)
    margins = [true.sum(axis=1), true.sum(axis=0)]
    table = true + coins.normal(0, 15, shape)
    found = nearest_table(table, margins)
    assert (found >= 0).all()
    for axis, sums in enumerate(margins):
        assert found.sum(axis=1 - axis) == pytest.approx(sums, abs=0.1)
    kept = [
        {"type": "eq", "fun": lambda x, a=axis, s=sums: (x.reshape(shape).sum(axis=1 - a) - s)[a:]}
        for axis, sums in enumerate(margins)
    ]
    solved = minimize(
        lambda x: ((x - table.ravel()) ** 2).sum() / 100,
        true.ravel(),
        jac=lambda x: (x - table.ravel()) / 50,
        bounds=[(0, None)] * 12,
        constraints=kept,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert ((found - table) ** 2).sum() == pytest.approx(((solved.x - table.ravel()) ** 2).sum(), rel=2e-3)


def test_tables_of_the_same_columns_agree_by_their_precisions():
    groupings = [nested(4, [[0, 0, 1, 1]]), nested(4, [[0, 0, 1, 1]])]
    coins = np.random.default_rng(2)
    one, other = coins.normal(9, 3, (4, 2)), coins.normal(9, 3, (2, 4))
    scopes, variances = [((0, 2), (1, 1)), ((0, 1), (1, 2))], [4.0, 1.0]
    found = agreeing([one, other], scopes, variances, groupings)
    # least squares, by hand: both are linear in twelve numbers, those of the first and what the second adds
    lift, rows = np.kron(np.eye(2), np.ones((1, 2))), np.kron(np.eye(2), np.ones((2, 1)))
    assert lift @ found[0] == pytest.approx(found[1] @ rows)
    design = np.block([[np.eye(8), np.zeros((8, 4))], [np.zeros((8, 12))]])
    for r in range(2):
        for group in range(2):
            here = 8 + 4 * r + 2 * group
            for i in (2 * r, 2 * r + 1):
                design[here : here + 2, 2 * i + group] = 0.5
            design[here, 8 + 2 * r + group], design[here + 1, 8 + 2 * r + group] = 1, -1
    weights = np.sqrt(1 / np.repeat(variances, 8))
    seen = np.concatenate([one.ravel(), other.ravel()])
    solved = np.linalg.lstsq(design * weights[:, None], seen * weights, rcond=None)[0]
    assert np.concatenate([each.ravel() for each in found]) == pytest.approx(design @ solved)


def test_groups_that_are_not_nested_have_no_grouping():
    assert nested(4, [[0, 0, 1, 1], [0, 1, 1, 0]]) is None
    found = nested(4, [[1, 1, 0, 0], [2, 1, 0, 0], [0, 0, 0, 0]])
    assert [len(starts) for starts in found.starts] == [1, 2, 3, 4]
    assert found.of_categories(1).tolist() in ([1, 1, 0, 0], [0, 0, 1, 1])


@pytest.mark.slow
def test_far_above_zero_tables_spread_as_least_squares():
    """Cells that columns tell of, too: means and deviations are those of the least-squares estimate."""
    codes, noise = people(20_000, 1), DiscreteGaussian(Fraction(400))
    sources = [measured(codes, (0,), noise, 1), measured(codes, (0, 1), noise, 2)]
    refits = Refits.of(DOMAIN, [*sources, measured(codes, (2,), noise, 3)], len(codes))
    tables = list(islice(refits.draws(5), 200))
    cells = np.array([counted_quickly(table, (0, 1)) for table in tables])
    design = np.vstack([np.kron(np.eye(4), np.ones((1, 3))), np.eye(12)])
    seen = np.concatenate([each.values for each in sources])
    # the number of rows is public: the estimate and its covariance, given the sum of all cells
    covariance = np.linalg.inv(design.T @ design)
    means = covariance @ design.T @ seen
    gain = covariance.sum(axis=1) / covariance.sum()
    means = means + gain * (len(codes) - means.sum())
    covariance = 400 * (covariance - np.outer(gain, covariance.sum(axis=1)))
    both = np.vstack([np.eye(12), design[:4]])  # cells, and categories of the first column
    deviations = np.sqrt((both @ covariance @ both.T).diagonal())
    assert np.abs((cells.mean(axis=0) - means) @ both.T / deviations).max() < 5 / 200**0.5 + 0.05
    assert (cells @ both.T).std(axis=0) == pytest.approx(deviations, rel=0.25)


def counted_quickly(table, columns):
    sizes = [DOMAIN.sizes[c] for c in columns]
    return np.bincount(np.ravel_multi_index(table[:, columns].T, sizes), minlength=np.prod(sizes))


STATISTICS = (
    lambda t: t[t[:, 1] == 2, 2].mean() - t[t[:, 1] == 0, 2].mean(),
    lambda t: (t[t[:, 0] == 1, 1] == 1).mean(),
    lambda t: (t[:, 0] == 3).mean(),
)


def held(codes, draws, tables=12):
    """Which intervals of shares and differences, from some tables, hold those of the data."""
    drawn = list(islice(draws, tables))
    for statistic in STATISTICS:
        low, high = combine([statistic(table) for table in drawn]).interval()
        yield low <= statistic(codes) <= high


def covered(of, scale, runs):
    """How often intervals cover, if noise is drawn with `scale` times its rate, or less of its variance."""
    hits = []
    for seed in range(runs):
        codes = people(1500, seed)
        if of == "tables":
            noise, taken = Geometric(Fraction(1, 10)), Geometric(Fraction(1, 10) * scale)
            sources = [measured(codes, pair, noise, 10 * seed + pair[1]) for pair in ((0, 1), (1, 2))]
        else:
            noise, taken = DiscreteGaussian(Fraction(200)), DiscreteGaussian(Fraction(200) * scale)
            sources = [contrasts_of(codes, DOMAIN, of == "signs", noise, seed)]
        total = int(sources[0].values[0]) if of == "signs" else len(codes)
        sources = [Measurement(each.of, each.values, taken, each.cost) for each in sources]
        hits += held(
            codes, (Refits if of == "tables" else ParityRefits).of(DOMAIN, sources, total).draws(seed)
        )
    return np.mean(hits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "runs", "half", "most"),
    [
        ("tables", 100, Fraction(141, 100), 0.905),
        ("odd rows", 60, Fraction(1, 2), 0.89),
        pytest.param("signs", 60, Fraction(1, 2), 0.89, marks=pytest.mark.long),
    ],
)
def test_intervals_cover_and_with_half_the_variance_they_do_not(of, runs, half, most):
    """Three intervals of each run."""
    assert covered(of, 1, runs) > (0.92 if of == "tables" else 0.91)
    assert covered(of, half, runs) < most


def test_tables_keep_the_rules_the_rows_and_the_seed():
    domain = Domain([Column("a", list("pqrs")), "b", "c"], valid=["~(`a=p` & b)", "c | ~b"])
    coins = np.random.default_rng(3)
    codes = coins.integers(0, (4, 2, 2), (800, 3))
    codes = codes[[all(rule.allowed[tuple(row[[*rule.columns]])] for rule in domain.rules) for row in codes]]
    release = smalldb.release(
        Rows.from_codes(domain, codes), "marginals:2", epsilon=3, strategy="adaptive", seed=1
    )
    tables, again, other = release.tables(3, rng=1), release.tables(3, rng=1), release.tables(3, rng=2)
    assert tables.made_by.model_tables > 0 and "fitted anew" in repr(tables)
    for k in range(3):
        table = tables.codes(k)
        assert table.shape == codes.shape
        assert all(rule.allowed[tuple(table[:, c] for c in rule.columns)].all() for rule in domain.rules)
        assert (table == again.codes(k)).all() and (table != other.codes(k)).any()


def test_categories_that_noise_drowns_are_named():
    codes, noise = people(4000, 1), DiscreteGaussian(Fraction(400))
    codes = codes[codes[:, 0] != 3]
    tables = [measured(codes, (0, 1), Geometric(Fraction(1, 20)), 1), measured(codes, (2,), noise, 2)]
    assert Refits.of(DOMAIN, tables, len(codes)).rare() == ((3,), (), ())
    for some, rare in ((codes, (3,)), (codes[codes[:, 0] != 0], (0, 3))):
        contrasts = contrasts_of(some, DOMAIN, False, noise, 1)
        assert ParityRefits.of(DOMAIN, [contrasts], len(some)).rare() == (rare, (), ())


def test_what_the_model_has_no_room_for_is_not_taken_as_measured(monkeypatch):
    monkeypatch.setattr("smalldb.marginals.refits.MEMORY", 8)
    frame = DOMAIN.decode(people(300, 1))
    release = smalldb.release(
        frame,
        "marginals:1",
        epsilon=5,
        domain=DOMAIN,
        strategy="adaptive",
        measure_first=["a x b", "b x c"],
        seed=1,
    )
    tables = release.tables(2, rng=1)
    assert tables.made_by.left_out == (("b", "c"),) and tables.made_by.model_tables == 1
    assert {*tables.unmeasured} == {("a", "c"), ("b", "c")}


def test_pairs_of_a_wider_table_without_room_are_left_out_but_where_another_table_has_them(monkeypatch):
    monkeypatch.setattr("smalldb.marginals.refits.MEMORY", 8)
    codes, noise = people(300, 1), Geometric(Fraction(1))
    every, pair = (measured(codes, columns, noise, 1) for columns in ((0, 1, 2), (0, 1)))
    assert Refits.of(DOMAIN, [pair, every], 300).left_out == ((0, 2), (1, 2))
    assert Refits.of(DOMAIN, [every], 300).left_out == ((0, 1), (0, 2), (1, 2))


def test_tables_of_mostly_empty_cells_and_groups_that_cross_are_refused():
    codes = people(200, 1)
    for rate, suits in ((Fraction(1), True), (Fraction(1, 20), False)):
        whole = measured(codes, (0, 1, 2), Geometric(rate), 1)
        assert Refits.of(DOMAIN, [whole], len(codes)).suitable == suits
    with pytest.raises(ValueError, match=r"cells hold fewer rows than noise: .* ask for shares"):
        streamed(Measurements(DOMAIN, [whole], len(codes)), len(codes), count=2)
    crossed = [
        measured(codes, (0, 2), Geometric(Fraction(1)), 1, ((0, 0, 1, 1), (0, 1))),
        measured(codes, (0, 1), Geometric(Fraction(1)), 2, ((0, 1, 1, 0), (0, 1, 2))),
    ]
    assert Refits.of(DOMAIN, crossed, len(codes)) is None
    dependence = Dependence(((0, 1),), (9,))
    told = Measurement((dependence,), np.array([3]), Geometric(Fraction(1)), Fraction(1))
    pair = measured(codes, (0, 1), Geometric(Fraction(1)), 1)
    assert Refits.of(DOMAIN, [told, pair], len(codes)).inside == (0,)
    parity = Measurement((Parity((2,), False),), np.array([3]), Geometric(Fraction(1)), Fraction(1))
    for mixed in (crossed, [whole, parity]):
        with pytest.raises(ValueError, match="nested groups, or from contrasts alone"):
            streamed(Measurements(DOMAIN, mixed, len(codes)), len(codes), count=2)


def contrasts_of(codes, domain, signed, noise, coins, orders=2):
    """All parities of up to so many attributes, by the definition, with noise."""
    coded, parts = coding(domain), []
    for order in range(0 if signed else 1, orders + 1):
        for some in combinations(range(len(coded.columns)), order):
            columns = tuple(coded.columns[a] for a in some)
            if len({*columns}) == order:
                parts.append(Parity(columns, signed, tuple(coded.categories[a] for a in some)))
    values = np.concatenate([naive.part_values(part, codes) for part in parts])
    return Measurement(tuple(parts), values + noise.draw(len(parts), bit_source(coins)), noise, Fraction(1))


def parities(table, parts):
    """Shares of rows that are odd, each part by the definition."""
    odd = [sum(table[:, c] == yes for c, yes in zip(p.columns, p.yes, strict=True)) % 2 for p in parts]
    return np.array([each.mean() for each in odd])


@pytest.mark.parametrize("most", [20, 0])
@pytest.mark.parametrize("signed", [False, True])
def test_parities_of_tables_spread_as_the_noise_around_what_was_released(monkeypatch, signed, most):
    """By a table of all cells, and by rows whose signs are turned; columns have two to four categories."""
    monkeypatch.setattr("smalldb.marginals.parity_refits.MAX_TABLE_ATTRIBUTES", most)
    codes, noise = people(8_000, 1), DiscreteGaussian(Fraction(900))
    released = contrasts_of(codes, DOMAIN, signed, noise, 2)
    total = int(released.values[0]) if signed else len(codes)
    refits = ParityRefits.of(DOMAIN, [released], total)
    tables = list(islice(refits.draws(5), 120))
    assert all(table.shape == (total, 3) for table in tables)
    parts, values = released.of[signed:], released.values[signed:]
    found = np.array([parities(table, parts) for table in tables])
    wanted = (1 - values / total) / 2 if signed else values / total
    deviation = noise.variance() ** 0.5 / total / (2 if signed else 1)
    # with signs the number of rows is noisy, too: of both together shares have a little more
    assert found.mean(axis=0) == pytest.approx(wanted, abs=5 * deviation / 120**0.5 + 2 / total)
    assert found.std(axis=0).mean() == pytest.approx(deviation, rel=0.2 if signed else 0.1)


@pytest.mark.parametrize("columns", [6, 21])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_releases_of_contrasts_have_tables(columns, neighbours):
    codes = (np.random.default_rng(1).random((1_000, columns)) < 0.4).astype(np.int64)
    codes[:, 1] = codes[:, 0]
    known = {} if neighbours == "replace-one" else {"n_max": 1_000}
    asked = {"mechanism": "marginals", "strategy": "contrasts", "neighbours": neighbours, "seed": 1, **known}
    release = smalldb.release(Rows.from_codes(Domain(columns), codes), "marginals:2", epsilon=8, **asked)
    tables, again = release.tables(5, rng=1), release.tables(5, rng=1)
    assert all((tables.codes(k) == again.codes(k)).all() for k in range(5))
    assert not tables.unmeasured and f"{columns * (columns + 1) // 2} contrasts" in repr(tables)
    low, high = combine(
        [(tables.codes(k)[:, 0] == tables.codes(k)[:, 1]).mean() for k in range(5)]
    ).interval()
    assert low - 0.02 < 1 and high > 0.9 and high - low < 0.3
