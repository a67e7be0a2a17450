"""Workloads against their definitions: query classes, tables of columns, reduction, and exact answers."""

from fractions import Fraction
from itertools import combinations, product
from math import comb

import naive
import numpy as np
import pandas as pd
import pytest
from builders import flags, letters
from calling import way
from hypothesis import given, settings
from hypothesis import strategies as st
from test_columns import domain_of, ruled

import smalldb
from queries import (
    Column,
    Conjunctions,
    DecisionLists,
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
from queries.workload import Query
from smalldb.counting.level_counts import count_candidates

TRUTHS = {Conjunctions: all, Disjunctions: any, Parities: lambda values: sum(values) % 2}


def functions(kind, width, domain, exactly=False):
    """Every function of a class on the cells that exist, by its definition, in the stated order."""
    cells, bits = domain.table().tolist(), domain.bits(domain.table()).tolist()
    for size in range(width if exactly else 0, width + 1):
        if kind is Marginals:
            for columns in combinations(range(len(domain.sizes)), size):
                # of yes/no columns yes comes first
                places = [(1, 0) if domain.sizes[c] == 2 else range(domain.sizes[c]) for c in columns]
                for setting in product(*places):
                    yield [int([cell[c] for c in columns] == [*setting]) for cell in cells]
        else:
            for chosen in combinations(range(len(domain.attributes)), size):
                yield [int(TRUTHS[kind]([row[i] for i in chosen])) for row in bits]


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


@pytest.mark.parametrize("kind", [*TRUTHS, Marginals])
@pytest.mark.parametrize(
    ("d", "width", "exactly"), [(1, 1, False), (3, 2, False), (4, 3, True), (4, 4, False)]
)
def test_classes_are_their_definitions(kind, d, width, exactly):
    expected = list(functions(kind, width, letters(d), exactly))
    workload = kind(width, exactly=exactly).workload(letters(d))
    assert workload.stated == len(expected)
    assert [tuple(row - row[0]) for row in workload.matrix()] == reduced(expected)
    assert workload.denominator == 1
    assert len(set(workload.labels)) == workload.size


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
    stated = list(functions(Marginals, width, domain, exactly))
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
@settings(max_examples=50)
@given(ruled())
def test_classes_of_attributes_are_their_definitions_and_reduce_on_cells_that_exist(drawn):
    sizes, texts, kept = drawn
    if not kept:
        return
    domain = domain_of(sizes, texts)
    width = min(2, len(domain.attributes))
    stated = [*functions(Marginals, 1, domain)]
    stated += [function for kind in TRUTHS for function in functions(kind, width, domain)]
    union = Marginals(1) + Conjunctions(width) + Disjunctions(width) + Parities(width)
    workload = union.workload(domain)
    expected = reduced(stated)
    assert (workload.stated, workload.size) == (len(stated), len(expected))
    assert shapes(workload) == {max(f, tuple(-v for v in f)) for f in expected}


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


def test_answers_need_no_table_of_cells():
    domain = flags(100)
    bits = np.random.default_rng(1).integers(0, 2, size=(200, 100))
    rows = Rows.from_frame(domain, pd.DataFrame(bits, columns=domain.attributes))
    workload = (Conjunctions(2) + Parities(100, exactly=True)).workload(domain)
    answers = dict(zip(workload.labels, workload.answers(rows).tolist(), strict=True))
    assert answers["x7"] == bits[:, 7].sum()
    assert answers["x3 & x98"] == (bits[:, 3] & bits[:, 98]).sum()
    assert answers[workload.labels[-1]] == (bits.sum(axis=1) % 2).sum()
    with pytest.raises(ValueError, match="too large"):
        workload.matrix()


def test_sizes_of_two_way_conjunctions():
    for d in (6, 14, 100):
        workload = Conjunctions(2).workload(flags(d))
        assert (workload.stated, workload.size) == (1 + d + comb(d, 2), d + comb(d, 2))


def test_marginals_are_conjunctions_with_negations():
    assert Marginals(3).workload(letters(4)).queries == (
        Conjunctions(3, negations=True).workload(letters(4)).queries
    )


LABELS = [  # what is kept of queries that say the same, under which name and in which order
    (["a", "b", "c"], None, Conjunctions(1) + Predicates(["(a & b) | (a & ~b)", "a | ~a"]), ["a", "b", "c"]),
    (["a", "b"], "~a | b", Conjunctions(2), ["a", "b"]),  # a implies b
    (
        [Column("job", ["none", "part", "full"]), "smoker"],
        None,
        Conjunctions(2),  # no row has two attributes of one column
        [
            *("`job=none`", "`job=part`", "`job=full`", "smoker"),
            *("`job=none` & smoker", "`job=part` & smoker", "`job=full` & smoker"),
        ],
    ),
    (
        ["smoker", Column("job", ["none", "part"])],
        None,
        Marginals(2),
        [
            *("smoker", "`job=none`", "smoker & `job=none`", "smoker & `job=part`"),
            *("~smoker & `job=none`", "~smoker & `job=part`"),
        ],
    ),
    ([Column("age", cuts=[18, 65])], None, Thresholds(), ["value < 1", "value < 2"]),
    ([Column("age", cuts=[18, 65])], None, Intervals(), ["value == 0", "value <= 1", "value == 1"]),
]


@pytest.mark.parametrize(("columns", "valid", "queries", "labels"), LABELS)
def test_of_queries_that_say_the_same_one_is_kept(columns, valid, queries, labels):
    assert queries.workload(Domain(columns, valid)).labels == (*labels,)


def test_a_constant_is_no_query():
    lone = Conjunctions(1).workload(Domain(["a"], valid="a"))
    assert (lone.stated, lone.size, lone.denominator) == (2, 0, 1)


def test_union_keeps_each_function_once():
    union = Conjunctions(2) + Parities(2) + Predicates(["a ^ b", "~(c & d)", "a & (b | c)"])
    workload = union.workload(letters(4))
    assert workload.text == "conjunctions:2 + parities:2 + predicates:a ^ b; ~(c & d); a & (b | c)"
    assert workload.stated == 11 + 11 + 3
    assert workload.size == 10 + 6 + 1
    assert workload.labels[-1] == "a & (b | c)"


def test_a_predicate_that_is_a_cell_of_a_table_drops():
    domain = Domain([Column("age", cuts=[18, 65]), "smoker"])
    texts = ["age>=65 & smoker", "~(age<18 & ~smoker)", "age>=18", "age>=18 & smoker", "~smoker"]
    workload = (Marginals(2) + Predicates(texts)).workload(domain)
    assert workload.size == 3 + 1 + 6 + 1
    assert workload.labels[-1] == "age>=18 & smoker"
    assert workload.labels[:4] == ("`age<18`", "`18<=age<65`", "`age>=65`", "smoker")


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


def test_linear_reads_rational_weights_exactly():
    queries = Linear([[0.1, "1/3", Fraction(1, 6), 1], [1, 1, 1, 1], [0, 0, 1, 1]], ["f", "one", "a"])
    workload = queries.workload(letters(2))
    assert workload.labels == ("f", "a")
    assert workload.denominator == 30
    assert workload.matrix().tolist() == [[3, 10, 5, 30], [0, 0, 30, 30]]
    assert (queries + Conjunctions(1)).workload(letters(2)).labels == ("f", "a", "b")
    assert Linear([[0, "1/2", 1]]).workload(domain_of([3])).matrix().tolist() == [[0, 1, 2]]
    assert Halfspaces().workload(Domain([Column("age", cuts=[18, 65])])).matrix().shape == (3, 3)


def test_answers_are_guarded():
    domain = Domain(["a"])
    workload = Linear([[0, f"1/{2**40}"]]).workload(domain)
    rows = Rows.from_counts(domain, pd.DataFrame({"a": [1]}), [2**22])
    with pytest.raises(ValueError, match="2\\^62"):
        workload.answers(rows)
    with pytest.raises(ValueError, match="different domains"):
        workload.answers(Rows.from_frame(Domain(["z"]), pd.DataFrame({"z": [1]})))
    with pytest.raises(ValueError, match="denominator of 2\\^62"):
        Linear([[0, f"1/{2**62}"]]).workload(domain)
    with pytest.raises(ValueError, match="common denominator of 2\\^62"):
        (Linear([[0, f"1/{2**31}"]]) + Linear([[0, f"1/{3**20}"]])).workload(domain)


def test_sign_and_constant_make_no_difference():
    flipped = Query("not a", (0,), (1, 0))
    shifted = Query("half a", (0,), (1, 2), 4)
    halved = Query("a / 4", (0, 1), (0, 0, 1, 1), 4)
    plain = Query("a", (0,), (0, 1))
    kept = Workload.reduced(letters(2), "", [flipped, plain, shifted, halved])
    assert kept.labels == ("not a", "half a")
    assert kept.stated == 4


@pytest.mark.parametrize("valid", [None, {0, 1, 2, 3}])
@pytest.mark.parametrize("reverse", [False, True])
def test_of_equal_queries_the_least_denominator_is_kept_in_the_first_place(reverse, valid):
    parts = [Linear([[0, 0, "1/2", "1/2"]], ["half"]), Linear([["1/3", "1/3", "5/6", "5/6"]], ["sixths"])]
    first, second = reversed(parts) if reverse else parts
    workload = (first + Conjunctions(2) + second).workload(letters(2, valid))
    assert workload.labels == ("half", "a", "b", "a & b")
    assert workload.denominator == 2
    assert workload.matrix()[0].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("reverse", [False, True])
def test_equal_queries_of_one_denominator_keep_the_first(reverse):
    parts = [Linear([[0, "1/2"]], ["up"]), Linear([[1, "1/2"]], ["down"])]
    first, second = reversed(parts) if reverse else parts
    assert (first + second).workload(letters(1)).labels == first.labels


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(((two, (0, 0, 0, 1)), "positions, ascending") for two in ((1, 0), (0, 0))),
        *((((one,), (0, 1)), "positions, ascending") for one in (-1, True, 0.0)),
        (((1, 0), None), "positions, ascending"),
        *((((0,), (0, 1), d), "denominator must be a whole number of at least 1") for d in (0, True, 1.0)),
        (((0, 1), None, 2), "a parity has denominator 1"),
        (((0,), (0, 1, 1)), r"expected 2\^1 whole weights from 0 to 1"),
        (((0, 1), (0, 1)), r"expected 2\^2 whole weights from 0 to 1"),
        (((), ()), r"expected 2\^0 whole weights from 0 to 1"),
        (((0,), (0, 4), 3), r"expected 2\^1 whole weights from 0 to 3"),
        *(
            (((0,), weights), r"expected 2\^1 whole weights from 0 to 1")
            for weights in ((-1, 1), (0, 1.0), (False, True), (0, Fraction(1, 2)))
        ),
    ],
)
def test_bad_queries_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^query 'f': .*{message}"):
        Query("f", *arguments)


def test_queries_at_the_ends_of_what_is_allowed():
    for arguments in [((), (0,)), ((), None), ((3, 70), (0, 3, 3, 0), 3), ((0,), (0, 2**61), 2**61)]:
        assert Query("f", *arguments).label == "f"


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: Conjunctions(0), ValueError, "width must be at least 1"),
        (lambda: Marginals(True), TypeError, "width must be a whole number"),
        (lambda: Parities(2.0), TypeError, "width must be a whole number"),
        (lambda: Predicates([]), ValueError, "at least one"),
        (lambda: Predicates(["a & "]), ValueError, "expected an attribute name"),
        (lambda: Linear([]), ValueError, "at least one row"),
        (lambda: Linear([[0, 2]]), ValueError, r"lie in \[0, 1\]"),
        (lambda: Linear([[0, float("nan")]]), ValueError, "rational"),
        (lambda: Linear([[0, "x"]]), ValueError, "rational"),
        (lambda: Linear([[0, 1]], ["f", "g"]), ValueError, "expected 1 labels"),
        (lambda: Conjunctions(1) + 1, TypeError, "unsupported operand"),
    ],
)
def test_bad_classes_are_refused(build, kind, message):
    with pytest.raises(kind, match=message):
        build()


TABLE = Domain([Column(name, 200) for name in "abc"])
REFUSED = [
    (Conjunctions(3), letters(2), "more than the 2 attributes"),
    (Parities(3), letters(2), "more than the 2 attributes"),
    (Marginals(3), domain_of([3, 2]), "width 3 is more than the 2 columns"),
    (Marginals(9), flags(60), "states"),
    (
        Marginals(3),
        Domain([Column(f"c{i}", 1000) for i in range(3)]),
        "1003003001 queries over 3 columns, more than 134217728",
    ),
    (Marginals(1) + Conjunctions(4), Domain([Column("c", 100)]), "more than 16384"),
    (Conjunctions(25, exactly=True), flags(26), "at most 20"),
    (Predicates(["a & bb"]), letters(2), "'bb'; did you mean 'b'"),
    (Predicates(["a=3 & b<3 & c>7"]), TABLE, "3 columns, which have 8000000 cells together"),
    (Linear([[0, 1]]), letters(2), "2 weights for 4 cells"),
    (Linear([[0, 1]]), domain_of([3]), "2 weights for 3 cells"),
    (Thresholds(), flags(13), "thresholds: 8193 tables over 13 attributes are too large"),
    (Thresholds(), flags(11), "thresholds: 2049 tables over 11 attributes are too large"),
    (Thresholds(), flags(20), "thresholds states 1048577 queries over 20 attributes"),
    (Intervals(), flags(8), "intervals: 32897 tables over 8 attributes are too large"),
    (Intervals(), flags(9), "intervals: 131329 tables over 9 attributes are too large"),
    (Intervals(), flags(40), "intervals states"),
    (Intervals(), Domain([Column("c", 1000)]), "states 500501 queries"),
    (Halfspaces(), flags(5), "^halfspaces: at most 4 attributes, not 5$"),
    (DecisionLists(), flags(6), "^decision-lists: at most 5 attributes, not 6$"),
    (Thresholds() + Intervals(), flags(9), "intervals: "),
]


@pytest.mark.parametrize(("queries", "domain", "message"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_line_before_it_is_built(queries, domain, message):
    with pytest.raises(ValueError, match=message) as caught:
        queries.workload(domain)
    assert "\n" not in str(caught.value)


def test_a_predicate_of_wide_columns_is_a_query():
    assert Predicates(["a>=3 & b>=3 & c>=3"]).workload(TABLE).size == 1


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
            ["a", Column("job", [*"xyz"])],
            "rejection needs columns of two categories: column 'job' has 3",
        ),
        ("census", [Column(f"c{i}", 100) for i in range(4)], "at most 2\\^20 cells: use fewer columns"),
    ],
)
def test_mechanisms_refuse_columns_that_they_do_not_know(mechanism, columns, message):
    with pytest.raises(ValueError, match=message) as caught:
        smalldb.plan(Domain(columns), n=100, epsilon=1, rows=3, **way(mechanism))
    assert "\n" not in str(caught.value)
