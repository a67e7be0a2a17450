"""Columns of any number of categories as yes/no attributes: rows, queries, releases and what they tell."""

import numpy as np
import pytest

import smalldb
from queries import Column, Domain, Marginals, Rows
from smalldb.inference import Measurements, ask
from smalldb.marginals.contrasts.coding import coded_spectrum, coding, unlike_coded
from smalldb.marginals.counted_rows import odd_counts
from smalldb.marginals.strategies.contrasts import Contrasts

DOMAIN = Domain(["a", Column("job", ["none", "part", "full"]), Column("sex", ["F", "M"]), Column("e", 4)])


def attributes_of_rows(coded, rows):
    """Rows by their attributes: each row is one row."""
    bits = rows.codes()[:, list(coded.columns)] == np.array(coded.categories)
    return Rows.from_codes(coded.domain, bits.astype(np.uint8), rows.counts)


def table(rng, domain, n):
    return Rows.from_codes(domain, rng.integers(0, domain.sizes, (n, len(domain.sizes))))


def latent(n, seed, columns=24):
    """Yes/no columns that depend on a class, and a column of three categories that does, too."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    rates = rng.beta(1, 1, (3, columns))[group]
    job = np.where(rng.random(n) < 0.7, group, rng.integers(0, 3, n))
    return np.column_stack([rng.random((n, columns)) < rates, job]).astype(np.int64)


def of_latent(columns=24):
    return Domain([*(f"a{i}" for i in range(columns)), Column("job", ["none", "part", "full"])])


def test_rows_are_coded_and_read_back():
    coded, rng = coding(DOMAIN), np.random.default_rng(1)
    codes = rng.integers(0, DOMAIN.sizes, (50, 4))
    rows = attributes_of_rows(coded, Rows.from_codes(DOMAIN, codes))
    assert rows.n == 50 and len(coded.domain.attributes) == 1 + 2 + 1 + 3
    bits = np.repeat(rows.codes(), rows.counts, axis=0)
    back = coded.codes(bits)
    assert sorted(map(tuple, back.tolist())) == sorted(map(tuple, codes.tolist()))
    assert coded.domain.size == DOMAIN.size  # what no row has cannot exist
    plain = Domain(["a", "b"], valid="a | b")
    assert coding(plain).domain is plain and coding(plain).plain
    wide = coding(Domain([Column("x", 15), Column("y", 15)])).domain
    assert wide.valid is None and wide.product == 2**28  # a wide table has no rules


@pytest.mark.parametrize("domain", [DOMAIN, Domain([Column("x", 5), Column("y", 3)])])
@pytest.mark.parametrize("width", [1, 2])
def test_cells_of_tables_are_sums_of_parities(domain, width):
    """Exactly: coefficients are multiples of 1/4, and so are their sums."""
    workload, coded = Marginals(width).workload(domain), coding(domain)
    series = coded_spectrum(workload, coded)
    rows = table(np.random.default_rng(2), domain, 200)
    signs = rows.n - 2 * odd_counts(attributes_of_rows(coded, rows), series.sets)
    answers = rows.n * series.constants + series.over_queries(series.coefficients * signs[series.members])
    assert answers.tolist() == workload.answers(rows).tolist()
    columns = [[coded.columns[a] for a in some] for some in series.sets]
    assert all(len({*some}) == len(some) == order for some, order in zip(columns, series.orders, strict=True))
    weights = np.array([0.0, 3.0, 7.0])
    each = series.over_queries(series.coefficients**2 * weights[series.orders][series.members])
    assert series.kinds.worst(weights) == each.max()


def test_what_cannot_be_coded_is_refused():
    ruled = Domain(DOMAIN.columns, valid="~(a & `job=full`)")
    assert "all rows to exist" in unlike_coded(Marginals(2).workload(ruled))
    assert "at most two columns" in unlike_coded(Marginals(3).workload(DOMAIN))
    assert unlike_coded(Marginals(3).workload(Domain(4))) is None
    with pytest.raises(ValueError, match="at most two columns"):
        smalldb.plan(DOMAIN, "marginals:3", epsilon=1, n=50, strategy="contrasts", mechanism="marginals")


@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("columns", [9, 24])
def test_one_wide_column_does_not_change_the_strategy_of_the_others(delta, columns):
    """By other strategies they come out two to four times worse."""
    given = {"epsilon": 2, "delta": delta, "neighbours": "add-remove", "n_max": 6_000, "rows": 6_000}
    for kept in (of_latent(columns).columns, of_latent(columns).columns[:-1]):
        plan = smalldb.plan(Domain(kept), mechanism="marginals", **given)
        assert isinstance(plan.chosen.strategy, Contrasts)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_releases_say_what_was_measured_of_categories(relation):
    real, domain = latent(4_000, 2), of_latent()
    rows = Rows.from_codes(domain, real)
    public = {"n_max": 4_000} if relation == "add-remove" else {}
    made = smalldb.release(rows, epsilon=10, neighbours=relation, rng=1, certificate=0, **public)
    known = made.measurements
    assert {part.categories for each in known for part in each.of} >= {(1,), (2,), (1, 2)}
    record = made.record | {"measurements": known.as_json()}
    again = Measurements.from_record(record)
    assert [each.of for each in again] == [each.of for each in known]
    assert "job=full" in again.to_frame()["cell"].str.cat()
    pairs = {pair.columns: pair for pair in known.pairs()}
    assert pairs["a0", "job"].groups == (((0, 1), (0, 1, 2)),)
    for job, label in enumerate(("none", "part", "full")):  # also of the one without an attribute
        asked = ask(again, f"a3 | job={label}")
        true = real[real[:, -1] == job, 3].mean()
        assert asked.known == "measured" and asked.low - 0.02 <= true <= asked.high + 0.02
    assert made.confidential.max_error <= made.record["bounds"]["released"] < 0.2


@pytest.mark.parametrize("columns", [5, 21])
def test_columns_of_two_labels_are_released_as_yes_no_columns(columns):
    """With as many attributes as columns, which are no yes/no attributes all the same."""
    domain = Domain([Column(f"c{i}", ["F", "M"]) for i in range(columns)])
    assert not coding(domain).plain
    codes = np.random.default_rng(4).integers(0, 2, (2_000, columns))
    codes[:, 1] = codes[:, 0]
    given = {"mechanism": "marginals", "strategy": "contrasts", "neighbours": "replace-one"}
    made = smalldb.release(Rows.from_codes(domain, codes), epsilon=5, rng=2, **given)
    assert isinstance(made.plan.chosen.strategy, Contrasts)
    assert (made.codes[:, 0] == made.codes[:, 1]).mean() > 0.9
    assert made.confidential.max_error <= made.record["bounds"]["released"]
