"""Thresholds, intervals, lists and halfspaces by definition; VC dimensions and texts of all classes."""

import re
import subprocess
import sys
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations, product
from math import comb

import numpy as np
import pandas as pd
import pytest
from builders import flags, leaving, letters
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from queries import (
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
    Union,
    VCDimension,
    expressions,
    spec,
)
from queries.query_class import search

ORDERED = (Thresholds(), Intervals())
PLAIN = (*ORDERED, Halfspaces())


# The definitions


def naive_ordered(queries, values):
    """Every threshold, or interval, as its values on the given integers; each function once."""
    ends = range(min(values), max(values) + 2)
    if queries == Thresholds():
        found = [tuple(int(v < cut) for v in values) for cut in ends]
    else:
        found = [tuple(int(a <= v < b) for v in values) for a in ends for b in ends]
    return set(found)


def naive_decision_lists(d):
    """Every list that asks all attributes in some order, as its values on the cube."""
    found = set()
    for order, asked in product(permutations(range(d)), product((0, 1), repeat=d)):
        first = [  # which question decides; d: none
            next((k for k, (i, answer) in enumerate(zip(order, asked, strict=True)) if cell[i] == answer), d)
            for cell in cells_of(d)
        ]
        found |= {tuple(decided[k] for k in first) for decided in product((0, 1), repeat=d + 1)}
    return found


def naive_halfspaces(d, largest):
    """Every function w x >= t with whole |w_i| <= largest -> the least sum of |w_i|."""
    found = {}
    for weights in product(range(-largest, largest + 1), repeat=d):
        sums = [sum(w for w, bit in zip(weights, cell, strict=True) if bit) for cell in cells_of(d)]
        for threshold in {*sums, max(sums) + 1}:
            table = tuple(int(s >= threshold) for s in sums)
            total = sum(map(abs, weights))
            found[table] = min(total, found.get(table, total))
    return found


def naive_vc(table):
    """The largest number of columns on which the rows of a 0/1 table take every pattern."""
    columns = list(zip(*table, strict=True))
    largest = 0
    for size in range(1, len(columns) + 1):
        if not any(len(set(zip(*chosen, strict=True))) == 2**size for chosen in combinations(columns, size)):
            break
        largest = size
    return largest


def cells_of(d):
    return list(product((0, 1), repeat=d))


def stated_table(queries, domain):
    """The queries stated, before reduction, on the cells that can exist."""
    return [query.values(domain.table()).tolist() for query in queries.queries(domain)]


# Thresholds and intervals

restricted = st.integers(1, 4).flatmap(
    lambda d: st.tuples(st.just(d), st.sets(st.integers(0, 2**d - 1), min_size=1))
)


@pytest.mark.slow
@pytest.mark.parametrize("queries", ORDERED, ids=lambda queries: queries.text)
@given(restricted)
@example((4, set(range(16))))
@example((3, {5}))
def test_ordered_classes_are_their_definitions(queries, drawn):
    d, values = drawn
    domain = letters(d, None if len(values) == 2**d else values)
    table = [tuple(row) for row in stated_table(queries, domain)]
    count = len(values)
    assert len(table) == len(set(table)) == queries.stated(domain)
    assert set(table) == naive_ordered(queries, sorted(values))
    assert len(table) == (count + 1 if queries == Thresholds() else count * (count + 1) // 2 + 1)
    assert queries.workload(domain).size == (count - 1 if queries == Thresholds() else comb(count, 2))


@pytest.mark.parametrize("queries", ORDERED, ids=lambda queries: queries.text)
@given(st.sets(st.integers(0, 15), min_size=1))
def test_labels_of_ordered_classes_say_what_is_counted(queries, values):
    domain = letters(4, values)
    names = {"TRUE": 1, "FALSE": 0}
    for query in queries.queries(domain):
        expected = [int(eval(query.label, names, {"value": value})) for value in sorted(values)]
        assert query.values(domain.table()).tolist() == expected


def test_labels_of_intervals_are_plain():
    domain = letters(3, [0, 1, 4, 7])
    assert Thresholds().workload(domain).labels == ("value < 1", "value < 4", "value < 7")
    assert [query.label for query in Intervals().queries(domain)] == [
        *("FALSE", "value == 0", "value <= 1", "value <= 4", "TRUE"),
        *("value == 1", "1 <= value <= 4", "value >= 1", "value == 4", "value >= 4", "value == 7"),
    ]
    # the largest tables are of the values that exist
    domain = flags(16, leaving([f"x{i}" for i in range(16)], [3, 500, 65_535]))
    assert Intervals().workload(domain).labels == ("value == 3", "value <= 500", "value == 500")


# Decision lists


@pytest.mark.parametrize("d", [1, 2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_decision_lists_are_their_definition(d, vectors):
    count = vectors["dl1_counts"]["value"][d - 1]
    assert DecisionLists().stated(letters(d)) == count
    assert DecisionLists().workload(letters(d)).size == count // 2 - 1  # halved by complements
    if d == 5:
        return
    table = [tuple(row) for row in stated_table(DecisionLists(), letters(d))]
    assert len(table) == count
    assert set(table) == naive_decision_lists(d)
    assert raw(DecisionLists(), d).low == vectors["dl1_vc"]["value"][d - 1]
    assert DecisionLists().vc_dimension(letters(d)) == VCDimension(d + 1, d + 1, "closed form")


def test_labels_of_decision_lists_are_predicates_that_say_the_same():
    domain = Domain(["is old", "b|c", "{0}", "d"])
    lists = list(DecisionLists().queries(domain))
    assert "`is old` & (`b|c` | `{0}`)" in [query.label for query in lists]
    for query in lists[2:]:
        (said,) = Predicates([query.label]).queries(domain)
        cells = domain.table()
        assert (said.on(domain, cells) == query.on(domain, cells)).all()


# Halfspaces


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_halfspaces_are_their_definition(d, vectors):
    table = [tuple(row) for row in stated_table(Halfspaces(), letters(d))]
    count = vectors["ltf_counts"]["value"][d - 1]
    assert len(table) == Halfspaces().stated(letters(d)) == count
    assert Halfspaces().workload(letters(d)).size == count // 2 - 1
    assert set(table) == naive_halfspaces(d, (1, 1, 2, 3)[d - 1]).keys()


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_labels_of_halfspaces_are_minimal_and_say_what_is_counted(d):
    least = naive_halfspaces(d, (2, 2, 3, 4)[d - 1])  # among larger weights than are enumerated
    domain, sums = letters(d), []
    for query in Halfspaces().queries(domain):
        text = re.sub(r"(\d) ([a-d])", r"\1 * \2", query.label)
        names = {"TRUE": 1, "FALSE": 0}
        table = tuple(int(eval(text, names, dict(zip("abcd", cell, strict=False)))) for cell in cells_of(d))
        assert tuple(query.values(domain.table()).tolist()) == table
        weights = re.findall(r"(\d*) ?[a-d]", query.label)
        sums.append(sum(int(w or 1) for w in weights))
        assert sums[-1] == least[table]
    assert sums == sorted(sums)


def test_labels_of_halfspaces_quote_names():
    labels = Halfspaces().workload(Domain(["is old", "b", "c"])).labels
    assert {"2 `is old` + b - c >= 1", "-`is old` + b + c >= 0"} <= {*labels}
    assert "a + b - c >= 0" in [query.label for query in Halfspaces(last=True).queries(letters(3))]


def test_that_a_halfspace_predicts_a_label_is_two_halfspaces():
    """The claim of examples/halfspaces.py; that it predicts the label is none in itself."""
    over_all = {tuple(row) for row in stated_table(Halfspaces(), letters(4))}
    cells, none = cells_of(4), 0
    for predicted in stated_table(Halfspaces(), letters(3)):
        pairs = [(predicted[4 * a + 2 * b + c], z) for a, b, c, z in cells]
        assert tuple(int(h and z) for h, z in pairs) in over_all
        assert tuple(int(not h and not z) for h, z in pairs) in over_all
        none += tuple(int(h == z) for h, z in pairs) not in over_all
    assert none == 104 - 2  # the two constants: the label itself and its negation


# Reduction loses no error


@pytest.mark.slow
@settings(max_examples=40)
@given(st.data())
def test_the_largest_error_is_that_of_all_queries_stated(data):
    d = data.draw(st.integers(1, 3))
    valid = data.draw(st.none() | st.sets(st.integers(0, 2**d - 1), min_size=1))
    domain = letters(d, valid)
    first, *others = data.draw(st.permutations(PLAIN))[: data.draw(st.integers(1, 3))]
    queries = sum(others, first)
    counts = st.lists(st.integers(0, 4), min_size=domain.size, max_size=domain.size).filter(any)
    table = np.array(stated_table(queries, domain))

    def shares(histogram):
        return [Fraction(int(count), sum(histogram)) for count in table @ histogram]

    real, small = data.draw(counts), data.draw(counts)
    workload = queries.workload(domain)
    expected = max(abs(a - b) for a, b in zip(shares(real), shares(small), strict=True))

    frame = pd.DataFrame(domain.table(), columns=domain.attributes)
    answers = [workload.answers(Rows.from_counts(domain, frame, counts)).tolist() for counts in (real, small)]
    assert answers == [(workload.matrix() @ histogram).tolist() for histogram in (real, small)]
    kept = [abs(Fraction(a, sum(real)) - Fraction(b, sum(small))) for a, b in zip(*answers, strict=True)]
    assert max(kept, default=0) == expected


# VC dimensions


tables = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1)
)


@pytest.mark.slow
@settings(max_examples=200)
@given(tables)
def test_search_is_the_definition(table):
    found = search(np.array(table))
    assert (found.low, found.high, found.how) == (naive_vc(table), naive_vc(table), "search")


@pytest.mark.slow
@given(st.integers(0, 3000))
def test_a_search_out_of_budget_says_what_it_has_proved(splits):
    table = np.array(stated_table(Parities(2), letters(7)), dtype=bool)
    found = search(table, splits=splits)
    assert found.low <= 4 <= found.high <= 4
    assert search(table, low=4, high=6, splits=splits).exact
    open_end = search(np.array(stated_table(Parities(2), letters(8)), dtype=bool), low=4, splits=splits)
    assert open_end == VCDimension(4, 5, "search")


def values(queries, d):
    return [queries(width).vc_dimension(letters(d)) for width in range(1, d + 1)]


def raw(queries, d):
    """By search alone, no closed form."""
    return search(np.array(stated_table(queries, letters(d)), dtype=bool))


@pytest.mark.parametrize("queries", [Conjunctions, Disjunctions], ids=lambda queries: queries.__name__)
@pytest.mark.parametrize("d", [4, 5, 6])
def test_monotone_conjunctions_have_their_dimensions(queries, d, vectors):
    expected = vectors["monoconj_le_k_vc"]["value"][f"d{d}"]
    assert [(v.low, v.high) for v in values(queries, d)] == [(v, v) for v in expected]
    assert [raw(queries(width), d).low for width in range(1, d + 1)] == expected


def test_the_other_classes_have_their_dimensions(vectors):
    stated = vectors["misc_vc"]["value"]
    for d in range(1, 6):
        assert raw(Conjunctions(d, negations=True), d).low == stated["literal_conj"][d - 1]
        assert Conjunctions(d, negations=True).vc_dimension(letters(d)).exact
    for d in range(1, 5):
        table = np.array(stated_table(Parities(d), letters(d)), dtype=bool)
        assert search(np.vstack([table, ~table])).low == stated["affine"][d - 1]
        expected = {
            Parities(d): stated["parities"][d - 1],
            Halfspaces(): vectors["ltf_vc"]["value"][d - 1],
            Thresholds(): stated["thresholds"],
            Intervals(): stated["intervals"],
        }
        for queries, value in expected.items():
            assert raw(queries, d) == VCDimension(value, value, "search")
            assert queries.vc_dimension(letters(d)) == VCDimension(value, value, "closed form")


BY_WIDTH = [
    (partial(Conjunctions, exactly=True), [2, 2, 1, 0], [2, 2, 2, 1, 0], [2, 3, 3, 2, 1, 0]),
    (partial(Conjunctions, negations=True), [2, 3, 3], [3, 4, 4, 4], [3, 4, 5, 5, 5]),
    (partial(Marginals, exactly=True), [2, 1], [2, 2, 1], [3, 2, 2, 1], [3, 3, 2, 2, 1]),
    (Parities, [2, 4, 4, 4, 5], [2, 4, 5, 5, 5, 6]),
]


@pytest.mark.parametrize("case", BY_WIDTH, ids=["exactly", "literals", "marginals", "parities"])
def test_dimensions_by_width(case):
    queries, *expected = case
    for dimensions in expected:
        d = len(dimensions)
        assert [(v.low, v.high) for v in values(queries, d)] == [(v, v) for v in dimensions]
        assert [raw(queries(width), d).low for width in range(1, d + 1)] == dimensions


@st.composite
def classes(draw, d):
    """A class over d attributes, small enough for the definition."""
    width, exactly = draw(st.integers(1, d)), draw(st.booleans())
    bit_rows = st.lists(st.lists(st.integers(0, 1), min_size=2**d, max_size=2**d), min_size=1, max_size=6)
    texts = ["a", "~a", "a & b", "a ^ b", "b | ~a"] if d > 1 else ["a", "~a", "a | ~a"]
    predicates = st.lists(st.sampled_from(texts), min_size=1)
    found = [
        Conjunctions(width, draw(st.booleans()), exactly),
        Disjunctions(width, exactly),
        Marginals(width, exactly),
        Parities(width, exactly),
        *PLAIN,
        DecisionLists(),
        Predicates(draw(predicates)),
        Linear(draw(bit_rows)),
    ]
    return draw(st.sampled_from(found))


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_every_class_has_the_dimension_of_its_definition(data):
    d = data.draw(st.integers(1, 3))
    queries = data.draw(classes(d))
    if data.draw(st.booleans()):
        queries = queries + data.draw(classes(d))
    domain = letters(d)
    if "linear" not in queries.text:
        domain = letters(d, data.draw(st.none() | st.sets(st.integers(0, 2**d - 1), min_size=1)))
    truth = naive_vc(stated_table(queries, domain))
    low, high = queries.vc_bounds(domain)
    assert low <= truth <= high
    found = queries.vc_dimension(domain)
    assert (found.low, found.high) == (truth, truth)


@given(st.integers(1, 300), st.integers(1, 40))
def test_the_lower_bound_is_never_below_the_stated_one(d, width):
    domain = flags(d)
    width = min(width, d)
    stated = width * ((d // width).bit_length() - 1)
    low, high = Parities(width).vc_bounds(domain)
    assert stated <= low <= high < Parities(width).stated(domain).bit_length()
    exactly, most = Parities(width, exactly=True).vc_bounds(domain)
    assert exactly <= low
    assert exactly <= most <= high


HUNDRED, FEWER = flags(100), Domain(flags(20).attributes, "~x1 | x2")


@pytest.mark.parametrize(
    ("queries", "domain", "low", "high"),
    [
        (Conjunctions(2), HUNDRED, 11, 12),
        (Conjunctions(1), HUNDRED, 6, 6),
        (Conjunctions(2) + Parities(1), HUNDRED, 11, 12),
        (Conjunctions(2), FEWER, 0, 7),
        (Predicates(["x1", "x2"]), FEWER, 0, 1),
        (Thresholds() + Intervals(), flags(20), 2, 4),  # one more for each part of a union
        (Marginals(20, exactly=True), flags(20), 1, 1),
        (Thresholds(), letters(3, [5]), 1, 1),
        (Intervals(), letters(3, [5]), 1, 1),
    ],
)
def test_dimensions_of_large_domains_are_bounded_without_tables(queries, domain, low, high):
    assert queries.vc_dimension(domain) == VCDimension(low, high, "closed form")


def test_dimensions_of_a_few_predicates_are_searched_on_any_domain():
    queries = Predicates(["x7 & x9", "x7 | x9", "x7", "x9"])
    assert queries.vc_dimension(HUNDRED) == VCDimension(2, 2, "search")
    assert Halfspaces().vc_bounds(HUNDRED) == (101, 101)


def test_what_has_no_vc_dimension_is_refused():
    domain = letters(1)
    assert Linear([[0, 1], [1, 1]]).vc_dimension(domain).exact
    for queries in (Linear([[0, "1/2"]]), Thresholds() + Linear([[0, "1/2"]])):
        with pytest.raises(ValueError, match=r"^linear: a VC dimension is that of weights 0 and 1 only$"):
            queries.vc_dimension(domain)
    with pytest.raises(ValueError, match=r"^halfspaces: at most 4"):
        Halfspaces().vc_dimension(letters(5))
    with pytest.raises(ValueError, match="more than the 1 attributes"):
        Marginals(2).vc_dimension(domain)


def test_a_dimension_says_whether_it_is_known():
    assert [str(VCDimension(2, high, "search")) for high in (2, 3)] == ["2", "2 to 3"]
    for low, high in [(3, 2), (-1, 2)]:
        with pytest.raises(ValueError, match="0 <= low <= high"):
            VCDimension(low, high, "search")


# The example


@pytest.mark.long
def test_a_halfspace_is_learnt_from_the_synthetic_table(examples, tmp_path):
    picture = tmp_path / "halfspaces.png"
    done = subprocess.run(
        [sys.executable, examples / "halfspaces.py", "--plot", picture],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    learnt = re.findall(r"^learnt from the (.*): (.*), right on (0\.\d{3}) of", done.stdout, re.M)
    assert [source for source, _, _ in learnt] == ["data", "synthetic table"]
    assert learnt[0][1:] == ("smoker + older - active >= 1", "0.880")
    error, accuracy, loss = map(float, re.findall(r": (0\.\d{3})(?:,|$)", done.stdout, re.M))
    assert 0 < error < 0.2
    assert accuracy <= 2 * error + 1e-3
    assert loss <= 4 * error + 1e-3
    assert loss == pytest.approx(float(learnt[0][2]) - float(learnt[1][2]), abs=1e-3)
    assert "not private" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def above_the_last(table, d):
    """Whether real weights make w x' >= x_d exactly where the table is 1, by a linear program."""
    rows, sides = [], []
    for cell, holds in zip(cells_of(d), table, strict=True):
        sign = -1 if holds else 1
        rows.append([*(sign * x for x in cell[:-1]), 0 if holds else 1])
        sides.append(sign * cell[-1])
    found = linprog(
        [0] * (d - 1) + [-1], A_ub=rows, b_ub=sides, bounds=[(None, None)] * (d - 1) + [(None, 1)]
    )
    return found.status == 0 and found.x[-1] > 1e-7


@pytest.mark.parametrize("d, count", [(1, 1), (2, 3), (3, 16), pytest.param(4, 185, marks=pytest.mark.long)])
def test_halfspaces_against_the_last_are_what_real_weights_do(d, count):
    """Of all halfspaces, those that a linear program finds weights for."""
    against = Halfspaces(last=True)
    expected = {tuple(row) for row in stated_table(Halfspaces(), letters(d)) if above_the_last(row, d)}
    listed = [tuple(row) for row in stated_table(against, letters(d))]
    assert set(listed) == expected
    assert len(listed) == against.stated(letters(d)) == count


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_dimension_of_halfspaces_against_the_last(d):
    assert Halfspaces(last=True).vc_bounds(letters(d)) == (d - 1, d)
    assert d - 1 <= naive_vc(stated_table(Halfspaces(last=True), letters(d))) <= d


# The text forms: specifications of workloads, and predicates


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("marginals:2", Marginals(2)),
        ("marginals:=2", Marginals(2, exactly=True)),
        ("conjunctions:2:negations", Conjunctions(2, negations=True)),
        ("conjunctions:=3:negations", Conjunctions(3, negations=True, exactly=True)),
        (" Disjunctions : 12 ", Disjunctions(12)),
        ("conjunctions:2 + parities:2", Union((Conjunctions(2), Parities(2)))),
        ("thresholds", Thresholds()),
        (" Intervals ", Intervals()),
        ("halfspaces + marginals:1", Union((Halfspaces(), Marginals(1)))),
        ("halfspaces : last + marginals:1", Union((Halfspaces(last=True), Marginals(1)))),
        ("predicates:smoker & ~older", Predicates(["smoker & ~older"])),
        (
            "predicates:a; `b + c; d` | a + parities:1",
            Union((Predicates(["a", "`b + c; d` | a"]), Parities(1))),
        ),
    ],
)
def test_texts_mean_their_classes(text, meaning):
    assert spec.parse(text) == meaning
    assert spec.parse(meaning.text) == meaning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown query class ''"),
        ("marginal:2", "did you mean 'marginals'"),
        *((f"marginals{width}", "expected a width") for width in ("", ":", ":two", ":-1")),
        ("marginals:0", "at least 1"),
        ("marginals:2:negations", "takes no option 'negations'"),
        ("conjunctions:2:negation", "takes no option"),
        ("marginals:2 +", "unknown query class ''"),
        ("predicates:", "expected an attribute name"),
        ("linear", "unknown query class 'linear'"),
        ("thresholds:2", "thresholds takes no width and no option"),
        *((f"halfspaces:{given}", "takes no width and no option") for given in ("", "first", "2")),
        ("interval", "did you mean 'intervals'"),
        ("marginals:2" + " " * 100_000, "at most"),
    ],
)
def test_bad_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        spec.parse(text)


def test_default_is_at_most_two_way():
    with pytest.raises(TypeError, match="must be text"):
        spec.parse(2)
    assert spec.default(Domain(["a"])) == Marginals(1)
    assert spec.default(Domain(["a", "b", "c"])) == Marginals(2)


@given(st.lists(classes(4).filter(lambda queries: "linear" not in queries.text), min_size=1, max_size=4))
def test_what_a_class_writes_is_read_again(parts):
    queries = sum(parts[1:], parts[0])
    assert spec.parse(queries.text) == queries


@st.composite
def predicates(draw, depth=4):
    """A predicate in the grammar and the same in Python's."""
    if depth == 0 or draw(st.booleans()):
        name = draw(st.sampled_from("abc"))
        return (draw(st.sampled_from([name, f"`{name}`", f" {name} "])), name)
    if draw(st.booleans()):
        text, python = draw(predicates(depth=depth - 1))
        return (f"~({text})", f"(1 ^ ({python}))")
    sign = draw(st.sampled_from("&|^"))
    (left, left_python), (right, right_python) = (draw(predicates(depth=depth - 1)) for _ in range(2))
    if draw(st.booleans()):
        return (f"({left}){sign}({right})", f"({left_python}){sign}({right_python})")
    return (f"{left}{sign}{right}", f"{left_python}{sign}{right_python}")


@given(predicates())
def test_predicates_mean_what_they_mean_in_python(pair):
    text, python = pair
    cells = np.array(list(product((False, True), repeat=3)))
    held = expressions.parse(text).evaluate(dict(zip("abc", cells.T, strict=True)).__getitem__)
    expected = [bool(eval(python, dict(zip("abc", map(int, cell), strict=True)))) for cell in cells]
    assert held.tolist() == expected


WRONG = {1: ["", "`a", "& a"], 2: ["a)", "()"], 3: ["a b", "(a", "a ~ b", "a + b"], 4: ["a &"], 5: ["a & 1"]}


@pytest.mark.parametrize(
    ("text", "position"), [(text, position) for position, texts in WRONG.items() for text in texts]
)
def test_errors_say_where(text, position):
    with pytest.raises(ValueError, match=rf"at character {position}( \(a name with|$)"):
        expressions.parse(text)


def test_deep_nesting_is_no_recursion():
    depth = 4_000
    assert len(expressions.parse("(" * depth + "a" + ")" * depth).steps) == 1
    assert len(expressions.parse("~" * depth + "a").steps) == depth + 1
    with pytest.raises(ValueError, match="at most"):
        expressions.parse("~" * 10_001 + "a")
    with pytest.raises(TypeError, match="must be text"):
        expressions.parse(None)


def test_linear_has_no_text_form():
    one, other = Linear([[0, 1]]), Linear([[0, "1/2"]])
    assert one.text == Linear([["0", 1.0]]).text != other.text
    with pytest.raises(ValueError, match="unknown query class"):
        spec.parse(one.text)
