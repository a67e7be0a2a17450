"""Workloads over columns against brute force: tables, reduction, answers, and the census over them."""

from fractions import Fraction
from itertools import combinations, product

import naive
import numpy as np
import pytest
from calling import way
from hypothesis import given, settings
from hypothesis import strategies as st
from test_columns import domain_of, ruled

import smalldb
from queries import (
    Column,
    Conjunctions,
    Disjunctions,
    Domain,
    Halfspaces,
    Intervals,
    Linear,
    Marginals,
    Parities,
    Predicates,
    Rows,
    Thresholds,
    Workload,
)
from smalldb.counting.level_counts import count_candidates


def reduced(functions):
    """Equal up to sign and an added constant is one; constants drop."""
    kept, seen = [], set()
    for f in functions:
        up, down = tuple(v - f[0] for v in f), tuple(f[0] - v for v in f)
        if any(up) and up not in seen:
            seen |= {up, down}
            kept.append(up)
    return kept


def shapes(workload):
    """What each query kept is, up to sign and constant."""
    return {max(tuple(f - f[0]), tuple(f[0] - f)) for f in workload.matrix()}


def indicators(domain, width, exactly=False):
    """All cells of all tables of up to so many columns, as their values on the universe."""
    cells = [tuple(row) for row in domain.table().tolist()]
    for w in range(width if exactly else 0, width + 1):
        for columns in combinations(range(len(domain.sizes)), w):
            for setting in product(*(range(domain.sizes[c]) for c in columns)):
                yield [int(all(row[c] == p for c, p in zip(columns, setting, strict=True))) for row in cells]


@pytest.mark.slow
@settings(max_examples=80)
@given(ruled(), st.integers(1, 3), st.booleans())
def test_marginals_are_all_cells_of_tables_of_columns(drawn, width, exactly):
    sizes, texts, kept = drawn
    width = min(width, len(sizes))
    if not kept:
        return
    domain = domain_of(sizes, texts)
    workload = Marginals(width, exactly=exactly).workload(domain)
    stated = list(indicators(domain, width, exactly))
    expected = reduced(stated)
    assert workload.stated == len(stated) == Marginals(width, exactly=exactly).stated(domain)
    assert workload.size == len(expected) == len(workload.labels) == len(set(workload.labels))
    assert shapes(workload) == {max(f, tuple(-v for v in f)) for f in expected}
    assert [workload.label(j) for j in range(workload.size)] == list(workload.labels)
    listed = Workload(domain, "", 0, workload.queries)
    assert listed.matrix().tolist() == workload.matrix().tolist()
    assert listed.labels == workload.labels
    assert set(workload.tables) == {query.columns(domain) for query in workload.queries}


@pytest.mark.slow
@settings(max_examples=25)
@given(ruled(), st.data())
def test_answers_are_the_sums_over_the_rows(drawn, data):
    sizes, texts, kept = drawn
    if not kept:
        return
    domain = domain_of(sizes, texts)
    weights = st.lists(st.fractions(0, 1, max_denominator=6), min_size=len(kept), max_size=len(kept))
    width = min(2, len(sizes))
    classes = (
        Marginals(width)
        + Conjunctions(width, negations=True)
        + Disjunctions(width)
        + Parities(width)
        + Thresholds()
        + Linear(data.draw(st.lists(weights, min_size=1, max_size=2)))
    )
    workload = classes.workload(domain)
    rows = np.array(data.draw(st.lists(st.sampled_from(kept), max_size=20)), dtype=int).reshape(
        -1, len(sizes)
    )
    counted = Rows.from_codes(domain, rows)
    histogram = [rows.tolist().count(list(cell)) for cell in kept]
    assert counted.histogram().tolist() == histogram
    assert workload.answers(counted).tolist() == (workload.matrix() @ histogram).tolist()


@pytest.mark.slow
@settings(max_examples=50)
@given(ruled())
def test_classes_of_attributes_are_their_definitions_and_reduce_on_cells_that_exist(drawn):
    sizes, texts, kept = drawn
    if not kept:
        return
    domain = domain_of(sizes, texts)
    bits = domain.bits(domain.table()).tolist()
    d, width = len(domain.attributes), min(2, len(domain.attributes))
    found = {Conjunctions: all, Disjunctions: any, Parities: lambda values: sum(values) % 2}
    functions = list(indicators(domain, 1))
    for truth in found.values():
        for w in range(width + 1):
            for chosen in combinations(range(d), w):
                functions.append([int(truth([row[i] for i in chosen])) for row in bits])
    union = Marginals(1) + Conjunctions(width) + Disjunctions(width) + Parities(width)
    workload = union.workload(domain)
    expected = reduced(functions)
    assert workload.stated == len(functions)
    assert workload.size == len(expected)
    assert shapes(workload) == {max(f, tuple(-v for v in f)) for f in expected}


def test_two_attributes_of_a_one_hot_column_make_no_query():
    domain = Domain([Column("job", ["none", "part", "full"]), "smoker"])
    assert Conjunctions(2).workload(domain).labels == (
        *("`job=none`", "`job=part`", "`job=full`", "smoker"),
        *("`job=none` & smoker", "`job=part` & smoker", "`job=full` & smoker"),
    )


def test_a_predicate_that_is_a_cell_of_a_table_drops():
    domain = Domain([Column("age", cuts=[18, 65]), "smoker"])
    texts = ["age>=65 & smoker", "~(age<18 & ~smoker)", "age>=18", "age>=18 & smoker", "~smoker"]
    workload = (Marginals(2) + Predicates(texts)).workload(domain)
    assert workload.size == 3 + 1 + 6 + 1
    assert workload.labels[-1] == "age>=18 & smoker"
    assert workload.labels[:4] == ("`age<18`", "`18<=age<65`", "`age>=65`", "smoker")


def test_mixed_marginals_put_yes_first_and_name_categories():
    domain = Domain(["smoker", Column("job", ["none", "part"])])
    assert Marginals(2).workload(domain).labels == (
        *("smoker", "`job=none`", "smoker & `job=none`", "smoker & `job=part`"),
        *("~smoker & `job=none`", "~smoker & `job=part`"),
    )


@pytest.mark.parametrize("width", [1, 2, 3])
def test_tables_of_yes_no_columns_are_the_queries_that_were_listed(width):
    domain = Domain(list("abcd"))
    listed = Marginals(width).workload(domain)
    tables = Workload.reduced(domain, listed.text, (), Marginals(width).tables(domain))
    assert listed.cells == ()
    assert tables.listed == ()
    assert tables.queries == listed.queries
    assert tables.labels == listed.labels
    assert (tables.size, tables.stated) == (listed.size, listed.stated)
    rows = Rows.from_codes(domain, np.random.default_rng(3).integers(0, 2, (50, 4)))
    assert tables.answers(rows).tolist() == listed.answers(rows).tolist()
    assert tables.matrix().tolist() == listed.matrix().tolist()
    assert tables.mean_squares == listed.mean_squares == Fraction(1, 2)


@pytest.mark.slow
def test_wide_tables_of_yes_no_columns_are_never_listed():
    domain = Domain([f"x{i}" for i in range(60)])
    workload = Marginals(3).workload(domain)
    assert workload.stated == 1 + 120 + 4 * 1770 + 8 * 34220
    assert workload.size == 60 + 4 * 1770 + 8 * 34220
    assert workload.label(workload.size - 1) == "~x57 & ~x58 & ~x59"
    rows = Rows.from_codes(domain, np.random.default_rng(3).integers(0, 2, (20, 60)))
    assert workload.answers(rows)[-8:].sum() == 20
    with pytest.raises(ValueError, match="too many to list"):
        workload.labels  # noqa: B018
    with pytest.raises(ValueError, match="too many to list"):
        workload.queries  # noqa: B018


def test_structural_zeros_drop_cells_at_any_width():
    names = [f"x{i}" for i in range(40)]
    domain = Domain([Column("sex", ["m", "f", "d"]), "pregnant", *names], "~(sex=m & pregnant)")
    workload = Marginals(2, exactly=True).workload(domain)
    assert "pregnant & `sex=m`" not in workload.labels
    assert "`sex=m` & pregnant" not in workload.labels
    assert workload.size == 5 + 40 * (6 + 4) + 4 * 780


def test_ordered_classes_count_by_the_number_of_the_cell():
    domain = Domain([Column("age", cuts=[18, 65])])
    assert Thresholds().workload(domain).labels == ("value < 1", "value < 2")
    assert Intervals().workload(domain).labels == ("value == 0", "value <= 1", "value == 1")
    assert Halfspaces().workload(domain).matrix().shape == (3, 3)
    assert Linear([[0, "1/2", 1]]).workload(domain).matrix().tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Marginals(3).workload(domain_of([3, 2])), "width 3 is more than the 2 columns"),
        (
            lambda: Marginals(3).workload(Domain([Column(f"c{i}", 1000) for i in range(3)])),
            "states 1003003001 queries over 3 columns, more than 134217728",
        ),
        (lambda: (Marginals(1) + Conjunctions(4)).workload(Domain([Column("c", 100)])), "more than 16384"),
        (lambda: Linear([[0, 1]]).workload(domain_of([3])), "2 weights for 3 cells"),
        (lambda: Intervals().workload(Domain([Column("c", 1000)])), "states 500501 queries"),
        (lambda: Predicates(["a>=3 & b>=3 & c>=3"]).workload(Domain([Column(n, 200) for n in "abc"])), None),
        (
            lambda: Predicates(["a=3 & b<3 & c>7"]).workload(Domain([Column(n, 200) for n in "abc"])),
            "3 columns, which have 8000000 cells together",
        ),
    ],
)
def test_what_is_too_large_is_refused_in_one_line(build, message):
    if message is None:
        assert build().size == 1
        return
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


# The census


@pytest.mark.parametrize("engine", ["enumeration", "dynamic"])
@pytest.mark.parametrize(
    ("sizes", "valid", "rows"),
    [((3, 2), None, 4), ((5,), None, 5), ((3, 3), "~(`c0=x` & `c1=y`)", 3), ((2, 5), "~c0 | c1>=2", 3)],
)
def test_a_census_over_columns_is_the_naive_one(engine, sizes, valid, rows):
    domain = domain_of(sizes, valid)
    codes = domain.table()[np.random.default_rng(8).integers(0, domain.size, 30)]
    data = Rows.from_codes(domain, codes)
    workload = (Marginals(min(2, len(sizes))) + Conjunctions(1)).workload(domain)
    census = count_candidates(workload, data, rows, "multisets", engine)
    expected = naive.census(workload.matrix(), workload.answers(data), data.n, domain.size, rows)
    assert dict(zip(census.levels.tolist(), census.counts, strict=True)) == dict(sorted(expected.items()))


@pytest.mark.parametrize(
    ("mechanism", "columns", "message"),
    [
        (
            "rejection",
            ["a", Column("job", ["x", "y", "z"])],
            "rejection needs columns of two categories: column 'job' has 3",
        ),
        ("census", [Column(f"c{i}", 100) for i in range(4)], "at most 2\\^20 cells: use fewer columns"),
    ],
)
def test_mechanisms_refuse_columns_that_they_do_not_know(mechanism, columns, message):
    with pytest.raises(ValueError, match=message) as caught:
        smalldb.plan(Domain(columns), n=100, epsilon=1, rows=3, **way(mechanism))
    assert "\n" not in str(caught.value)
