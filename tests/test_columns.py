"""A universe of columns against brute force: categories, rules, rows, and every refusal."""

import pickle
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise, product
from math import prod

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries import Column, DataError, Domain, Predicates, Rows
from queries import rules as rules_module
from queries.expressions import MAX_RULES
from queries.rules import Parts, count, listed, projected

JOB = Column("job", ["none", "part", "full"])
AGE = Column("age", cuts=[18, 40, 65, 80])
HOURS = Column("hours", 5)

COLUMNS = st.lists(st.sampled_from([2, 3, 5]), min_size=1, max_size=4)


def domain_of(sizes, valid=None):
    """Yes/no columns where there are two categories, labels for three, integers for five."""
    made = {2: Column, 3: lambda name: Column(name, ["x", "y", "z"]), 5: lambda name: Column(name, 5)}
    return Domain([made[k](f"c{i}") for i, k in enumerate(sizes)], valid)


@st.composite
def ruled(draw):
    """A domain with up to three random rules, and the rows that they leave, by listing."""
    sizes = draw(COLUMNS)
    names = [f"c{i}={label}" for i, k in enumerate(sizes) for label in domain_of([k]).columns[0].labels]
    texts, kept = [], list(product(*map(range, sizes)))
    for _ in range(draw(st.integers(0, 3))):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        sign = draw(st.sampled_from(["&", "|", "^"]))
        texts.append(f"~(`{a}` {sign} `{b}`)")
        holds = {"&": lambda x, y: x and y, "|": lambda x, y: x or y, "^": lambda x, y: x != y}[sign]
        kept = [row for row in kept if not holds(is_at(row, sizes, a), is_at(row, sizes, b))]
    return sizes, texts or None, kept


def is_at(row, sizes, name):
    column, label = name[1:].split("=")
    return domain_of([sizes[int(column)]]).columns[0].labels[row[int(column)]] == label


def test_categories_and_attributes_of_each_kind():
    assert (JOB.size, JOB.labels, JOB.ordered) == (3, ("none", "part", "full"), False)
    assert JOB.attributes == ("job=none", "job=part", "job=full")
    assert JOB.table.tolist() == np.eye(3, dtype=int).tolist()
    assert (AGE.size, AGE.ordered) == (5, True)
    assert AGE.attributes == ("age>=18", "age>=40", "age>=65", "age>=80")
    assert AGE.table.tolist() == [[int(code > i) for i in range(4)] for code in range(5)]
    assert (HOURS.labels, HOURS.ordered) == (("0", "1", "2", "3", "4"), True)
    assert HOURS.attributes == ("hours>=1", "hours>=2", "hours>=3", "hours>=4")
    assert (Column("smoker").size, Column("smoker").attributes) == (2, ("smoker",))
    assert Column("smoker").table.tolist() == [[0], [1]]


def test_codings_are_tables_of_a_column():
    bits = Column("job", ["none", "part", "full"], coding="bits")
    assert bits.attributes == ("job=full", "job=part")
    ten = Column("x", [*"abcdefghij"], coding="bits")
    assert ten.attributes == ("x=i|j", "x=e|f|g|h", "x=c|d|g|h", "x.bit4")
    assert bits.table.tolist() == [[0, 0], [0, 1], [1, 0]]
    bins = Column("age", cuts=[18, 65], coding="bins")
    assert bins.attributes == ("age<18", "18<=age<65", "age>=65")
    ranks = Column("size", ["s", "m", "l"], coding="thermometer")
    assert (ranks.attributes, ranks.ordered) == (("size>=m", "size>=l"), True)
    named = "job", ["none", "part", "full"], ["works", "long"]
    own = Column.coded(*named, [[0, 0], [1, 0], [1, 1]])
    assert own.table.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert own == Column.coded(*named, [[0, 0], [1, 0], [1, 1]])
    assert own != Column.coded(*named, [[0, 0], [1, 0], [0, 1]])
    wide = Column("n", 1000, coding="bits")
    assert wide.attributes == tuple(f"n.bit{i}" for i in range(1, 11))
    assert (wide.table @ (1 << np.arange(9, -1, -1))).tolist() == list(range(1000))


def test_tables_cannot_be_changed_and_columns_travel():
    with pytest.raises(ValueError, match="read-only"):
        JOB.table[0] = 1
    domain = Domain([JOB, "smoker", AGE], valid="~(smoker & age<18)")
    again = pickle.loads(pickle.dumps(domain))
    assert again == domain
    assert hash(again) == hash(domain)
    assert again.cells().tolist() == domain.cells().tolist()


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: Column("x", ["a", "b", "a"]), ValueError, "column 'x': category 'a' stands 2 times"),
        (lambda: Column("x", ["a"]), ValueError, "column 'x': a column has at least two categories"),
        (lambda: Column("x", 1), ValueError, "column 'x': a column has two to 2\\^20 categories, not 1"),
        (lambda: Column("x", True), TypeError, "a list of labels or a whole number"),
        (lambda: Column("x", "ab"), TypeError, "a list of labels"),
        (lambda: Column("x", [1, 2]), TypeError, "labels of categories must be text"),
        (lambda: Column("x", ["a", " "]), ValueError, "' ' is empty"),
        (lambda: Column("x", ["a", "b"], cuts=[1]), ValueError, "categories or cuts, not both"),
        (lambda: Column("x", cuts=[]), ValueError, "cuts must be one number"),
        (lambda: Column("x", cuts=[2, 1]), ValueError, "cuts must ascend"),
        (lambda: Column("x", cuts=["1"]), TypeError, "cuts must be finite numbers"),
        (lambda: Column("x", cuts=[float("nan")]), TypeError, "cuts must be finite numbers"),
        (lambda: Column("x", 3, coding="bins"), ValueError, "must be one of thermometer, one-hot, bits"),
        (lambda: Column("x", coding="bits"), ValueError, "a yes/no column has no coding"),
        (lambda: Column(" "), ValueError, "not empty"),
        (lambda: Column(3), TypeError, "must be text"),
        (lambda: Column.coded("x", ["a", "b"], ["c"], [[0]]), ValueError, "2 categories x 1 attributes"),
        (lambda: Domain([JOB, "job=part"]), ValueError, "attribute name 'job=part' occurs more than once"),
        (lambda: Domain([JOB, JOB]), ValueError, "column name 'job' occurs more than once"),
        (lambda: Domain([JOB, "job"]), ValueError, "column name 'job' occurs more than once"),
        (lambda: Domain([JOB], "`job=prt`"), ValueError, "or category 'job=prt'; did you mean 'job=part'"),
        (lambda: Domain([AGE], "age>=41"), ValueError, "or category 'age>=41'; did you mean 'age>=4"),
        (lambda: Domain([AGE], "age<=40"), ValueError, "unknown attribute or category 'age<=40'"),
        (lambda: Domain([JOB], "job>=part"), ValueError, "unknown attribute or category 'job>=part'"),
        (lambda: Domain([JOB], ["job=none | job=full", "job=part"]), ValueError, "no cell"),
        (lambda: Domain([JOB], ["job=part", 3]), TypeError, "predicate text, or several"),
        (
            lambda: Domain([JOB, "a", "a", "smoker"], ["`jbo=none`", "smokr | a"]),
            ValueError,
            r"'a' occurs more than once; .*'jbo=none'.*; .*'smokr'; did you mean",
        ),
        (lambda: Domain({"age": [1, 2]}), TypeError, r"a domain takes a list: Domain\(\[Column"),
        (lambda: Predicates(["job=fall"]).workload(Domain([JOB])), ValueError, "'job=fall'; did you mean"),
    ],
)
def test_bad_columns_are_refused_in_one_line(build, kind, message):
    with pytest.raises(kind, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_a_rule_over_too_many_columns_says_how_many_cells_it_would_need():
    columns = [Column(f"c{i}", 100) for i in range(4)]
    with pytest.raises(ValueError, match=r"3 columns, which have 2097152 cells"):
        Domain([Column(f"c{i}", 1 << 7) for i in range(3)], "c0>=2 ^ c1>=3 ^ c2>=9").rules  # noqa: B018
    with pytest.raises(ValueError, match="looks at 4 columns, which have 100000000 cells together"):
        Domain(columns, "c0>=2 ^ c1>=3 ^ c2>=9 ^ c3>=1")
    apart = Domain(columns, "(c0>=2 | c1>=3) & ~(c2>=9 | c3>=1)")
    assert [rule.columns for rule in apart.rules] == [(0, 1), (2,), (3,)]
    assert apart.size == (100 * 100 - 2 * 3) * 9 * 1


@pytest.mark.slow
def test_rules_are_limited_before_they_are_read():
    names = [f"x{i}" for i in range(200)]
    pairs = [f"~({a} & {b})" for a, b in combinations(names, 2)]
    most = MAX_RULES
    assert len(Domain(names, pairs[:most]).rules) == most
    refused = r"^valid: more than 2\^14 rules \(an AND counts as several\)"
    with pytest.raises(ValueError, match=refused):
        Domain(names, pairs[: most + 1])
    with pytest.raises(ValueError, match=refused):
        Domain(names, ["neither read ("] * (most + 1))
    with pytest.raises(ValueError, match=refused):
        Domain(names, [" & ".join(pairs[i : i + 500]) for i in range(0, most + 500, 500)])
    with pytest.raises(ValueError, match=r"^valid: rules of 530000 characters together"):
        Domain(names, ["x0" + " " * 9998] * 53)
    with pytest.raises(ValueError, match=r"the tables of the rules pass 2\^24 cells"):
        Domain(names, [" | ".join(names[i : i + 20]) for i in range(17)])


@given(ruled())
def test_cells_are_those_that_listing_leaves(drawn):
    sizes, texts, kept = drawn
    if not kept:
        with pytest.raises(ValueError, match="no cell"):
            domain_of(sizes, texts)
        return
    domain = domain_of(sizes, texts)
    assert domain.table().tolist() == [list(row) for row in kept]
    assert (domain.size, domain.valid_decided, domain.product) == (len(kept), True, prod(sizes))
    everything = np.array(list(product(*map(range, sizes))))
    assert domain.contains(everything).tolist() == [tuple(row) in set(kept) for row in everything.tolist()]
    assert domain.codes_of(domain.cells_of(everything)).tolist() == everything.tolist()
    outside = everything + np.array(sizes)
    assert not domain.contains(outside).any()


@given(ruled())
def test_what_rules_leave_is_counted_and_projected_exactly(drawn):
    sizes, texts, kept = drawn
    if not kept or texts is None:
        return
    domain = domain_of(sizes, texts)
    assert count(domain.rules, sizes) == len(kept)
    assert listed(domain.rules, sizes).tolist() == domain.cells().tolist()
    parts = Parts.of(domain.rules, sizes)
    for width in range(len(sizes) + 1):
        for columns in combinations(range(len(sizes)), width):
            expected = np.zeros([sizes[c] for c in columns], dtype=bool)
            for row in kept:
                expected[tuple(row[c] for c in columns)] = True
            assert domain.allowed(columns).tolist() == expected.tolist()
            assert parts.allowed(columns).tolist() == expected.tolist()
            for part in parts.of_column.values():  # one table, or rules that columns are summed out of
                core = tuple(c for c in columns if c in part.columns)
                assert replace(part, table=None).projected(core).tolist() == part.projected(core).tolist()


def test_rules_that_meet_are_a_part():
    domain = Domain([f"x{i}" for i in range(9)], ["~(x0 & x4)", "x7 | x2", "~(x4 & x8)", "x3 | x2"])
    parts = Parts.of(domain.rules, domain.sizes)
    assert {part.columns for part in parts.of_column.values()} == {(0, 4, 8), (2, 3, 7)}
    apart = [(0, 1), (0, 5), (0, 2), (2,), (4, 8), (1, 5)]  # they meet a part in (0,), (4, 8) and (2,)
    one = {part.steps([(0,)]) for part in parts.of_column.values()}
    assert (parts.steps(apart), parts.steps([(1, 5)])) == (3 * min(one), 0)


def test_where_few_rows_are_left_they_say_what_stands_together():
    names = [f"x{i}" for i in range(40)]
    at_most_one = Domain(names, [f"~({a} & {b})" for a, b in combinations(names, 2)])
    assert at_most_one.size == 41
    assert at_most_one.allowed((3, 30)).tolist() == [[True, True], [True, False]]
    assert at_most_one.enforced([*combinations(range(40), 3)]) == 9880
    one = Domain(names, [*at_most_one.valid, " | ".join(names[:15])])  # listed, whatever the attributes
    assert one.size == 15 and one.table().sum(axis=1).tolist() == [1] * 15
    sixteen = Domain([Column(f"c{i}", [f"{j}" for j in range(16)]) for i in range(5)])
    assert (sixteen.size, len(sixteen.attributes), sixteen.table().shape) == (1 << 20, 80, (1 << 20, 5))


@given(ruled())
def test_mini_buckets_never_rule_out_too_much(drawn):
    sizes, texts, kept = drawn
    if not kept or texts is None:
        return
    domain = domain_of(sizes, texts)
    made = domain.rules
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("MAX_RULE_CELLS", "MAX_BUCKET"):
            patch.setattr(rules_module, limit, 1)
        for columns in combinations(range(len(sizes)), min(2, len(sizes))):
            assert (projected(made, sizes, columns) | ~domain.allowed(columns)).all()
        assert count(made, sizes) in (None, len(kept))


@pytest.mark.parametrize(
    "value", ["1:", ":", "8:00", "24:00:", "0001-01-01T08:00", "1990-01-01T1:", "1e9:", ""]
)
@pytest.mark.parametrize("sign", ["<", ">=", "=", "<=", ">"])
def test_a_broken_time_is_no_cut(sign, value):
    assert Column("age", cuts=[18, 40]).holds(sign, value) is None
    with pytest.raises(ValueError, match="age"):
        Domain([Column("age", cuts=[18, 40])], f"`age{sign}{value}`")


def test_rules_hold_at_any_width():
    hot = [Column(f"c{i}", [f"v{j}" for j in range(10)]) for i in range(60)]
    domain = Domain([Column("sex", ["m", "f"]), "pregnant", *hot], valid="~(pregnant & sex=m)")
    assert domain.size == 3 * 10**60
    codes = np.zeros((3, 62), dtype=np.uint8)
    codes[1, 1] = codes[2, :2] = 1
    assert domain.contains(codes).tolist() == [True, False, True]
    with pytest.raises(DataError, match=r"rows break rule|valid rules out"):
        Rows.from_codes(domain, codes)
    assert [rule.columns for rule in domain.rules] == [(0, 1)]
    with pytest.raises(ValueError, match="at most 2\\^20 cells, not more than 10\\^20"):
        domain.cells()


def test_a_chain_of_rules_that_leaves_no_row_is_refused_at_any_width():
    names = [f"x{i}" for i in range(40)]
    chain = [f"~{a} | {b}" for a, b in pairwise(names)]
    assert Domain(names, chain).size == 41
    assert Domain(names, chain).table().sum(axis=1).tolist() == list(range(41))
    with pytest.raises(ValueError, match="no cell"):
        Domain(names, [*chain, "x0", "~x39"])


def test_what_cannot_be_decided_is_said():
    names = [f"x{i}" for i in range(70)]
    rng = np.random.default_rng(4)
    clauses = [" | ".join(names[i] for i in rng.choice(70, 3, replace=False)) for _ in range(300)]
    domain = Domain(names, clauses)
    assert not domain.valid_decided
    assert domain.contains(np.ones((1, 70), dtype=np.uint8)).tolist() == [True]
    with pytest.raises(ValueError, match="cannot be counted: use fewer rules that meet"):
        domain.size  # noqa: B018
    with pytest.raises(ValueError, match="at most 20 attributes"):
        domain.cells()


def test_ranges_and_categories_are_names_of_predicates():
    domain = Domain([AGE, JOB, HOURS])
    cells = domain.table()
    found = {
        "age>=40 & ~`age>=65`": (cells[:, 0] == 2),
        "age >= 40 & age < 65": (cells[:, 0] == 2),
        "`40<=age<65`": (cells[:, 0] == 2),
        "`age=40 to 65`": (cells[:, 0] == 2),
        "job=part | job = full": (cells[:, 1] > 0),
        "hours<=2 & hours>0": (cells[:, 2] <= 2) & (cells[:, 2] > 0),
        "hours=3 ^ `hours>=2`": (cells[:, 2] >= 2) & (cells[:, 2] != 3),
    }
    for text, expected in found.items():
        (query,) = Predicates([text]).queries(domain)
        assert query.on(domain, cells).tolist() == expected.astype(int).tolist(), text


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_rows_count_categories(data):
    sizes = data.draw(st.lists(st.sampled_from([2, 3, 5, 200, 300]), min_size=1, max_size=8))
    domain = Domain([Column(f"c{i}", k) if k > 2 else f"c{i}" for i, k in enumerate(sizes)])
    row = st.tuples(*(st.integers(0, k - 1) for k in sizes))
    drawn = data.draw(st.lists(row, max_size=12))
    chosen = drawn + drawn[::2]
    rows = Rows.from_codes(domain, np.array(chosen, dtype=np.int64).reshape(-1, len(sizes)))
    expected = sorted(Counter(chosen).items())
    assert [tuple(r) for r in rows.codes().tolist()] == [r for r, _ in expected]
    assert rows.counts.tolist() == [times for _, times in expected]
    again = Rows.from_codes(domain, rows.codes(), rows.counts)
    assert again.words.tolist() == rows.words.tolist()
    frame = domain.decode(np.array(chosen, dtype=np.int64).reshape(-1, len(sizes)))
    assert Rows.from_frame(domain, frame).words.tolist() == rows.words.tolist()
    assert Rows.from_frame(domain, frame).counts.tolist() == rows.counts.tolist()
    pair = tuple(c for c in range(len(sizes)) if sizes[c] <= 200)[:2]
    table = Counter(tuple(r[c] for c in pair) for r in chosen)
    found = rows.table(pair)
    assert found.shape == tuple(sizes[c] for c in pair)
    assert {cell: int(n) for cell, n in np.ndenumerate(found) if n} == dict(table)


def test_words_of_several_kinds_of_columns_fill_more_than_one_word():
    domain = Domain([Column(f"c{i}", 1000) for i in range(14)])  # 140 bits
    codes = np.random.default_rng(2).integers(0, 1000, (500, 14))
    rows = Rows.from_codes(domain, np.concatenate([codes, codes[:100]]))
    assert rows.words.shape == (500, 3)
    assert rows.codes().tolist() == sorted(codes.tolist())
    assert rows.n == 600


def test_counts_beyond_doubles_are_exact():
    domain = Domain([JOB])
    rows = Rows.from_codes(domain, np.array([[0], [2], [0]]), np.array([2**60, 3, 1]))
    assert rows.table([0]).tolist() == [2**60 + 1, 0, 3]
    assert rows.histogram().tolist() == [2**60 + 1, 0, 3]


@pytest.mark.parametrize(
    ("codes", "kind", "message"),
    [
        ([[3, 0]], DataError, "rows break rule|valid rules out"),
        ([[-1, 0]], DataError, "rows break rule|valid rules out"),
        ([[0, 1]], DataError, "rows break rule|valid rules out"),
        ([[0]], ValueError, "shape \\(r, 2\\)"),
        ([[0.0, 1.0]], ValueError, "integers"),
    ],
)
def test_categories_outside_are_refused(codes, kind, message):
    with pytest.raises(kind, match=message):
        Rows.from_codes(Domain([JOB, "smoker"], "~(job=none & smoker)"), np.array(codes))


@pytest.mark.slow
@given(ruled(), st.data())
def test_decode_undoes_encode(drawn, data):
    sizes, texts, kept = drawn
    if not kept:
        return
    domain = domain_of(sizes, texts)
    codes = np.array(data.draw(st.lists(st.sampled_from(kept), max_size=10)), dtype=int).reshape(
        -1, len(sizes)
    )
    frame = domain.decode(codes)
    assert domain.encode(frame).tolist() == codes.tolist()
    shuffled = frame[list(frame.columns[::-1])]
    pd.testing.assert_frame_equal(domain.decode(domain.encode(shuffled), like=shuffled), shuffled)


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_labels_are_read_from_texts(dtype):
    frame = pd.DataFrame({"job": pd.Series(["part", "none", "part"], dtype=dtype)})
    assert Domain([JOB]).encode(frame).tolist() == [[1], [0], [1]]
    back = Domain([JOB]).decode(Domain([JOB]).encode(frame), like=frame)
    assert back["job"].tolist() == ["part", "none", "part"]
    assert dtype == "category" or back["job"].dtype == frame["job"].dtype
    assert dtype != "category" or list(back["job"].cat.categories) == ["none", "part", "full"]


def test_labels_may_be_spelled_by_numbers_and_bools():
    code, flag = Column("code", ["10", "20", "30"]), Column("flag", ["True", "False"])
    frame = pd.DataFrame({"code": [30, 10], "flag": [False, True]})
    domain = Domain([code, flag])
    assert domain.encode(frame).tolist() == [[2, 1], [0, 0]]
    pd.testing.assert_frame_equal(domain.decode(domain.encode(frame), like=frame), frame)
    mixed = pd.Series([1, 2.5, 3.0, 1.0], dtype=object)
    for values in (mixed, mixed.astype("category")):
        codes = Domain([Column("x", ["1", "2.5", "3"])]).encode(pd.DataFrame({"x": values}))
        assert codes[:, 0].tolist() == [0, 1, 2, 0]


def test_bins_are_read_from_numbers_and_from_their_labels():
    for values in ([17, 18, 39, 90], [17.9, 18.0, 39.5, 1e9], [-3, 39, 18, 80]):
        expected = [[sum(v >= cut for cut in (18, 40, 65, 80))] for v in values]
        assert Domain([AGE]).encode(pd.DataFrame({"age": values})).tolist() == expected
    labels = Domain([AGE]).decode(np.arange(5)[:, None])
    assert labels["age"].tolist() == list(AGE.labels)
    assert Domain([AGE]).encode(labels).tolist() == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize(
    ("column", "values", "kind", "message"),
    [
        (JOB, ["part", "fulll"], DataError, "'job' has values that are none of its categories"),
        (JOB, ["part", None], DataError, "'job' has missing values"),
        (JOB, [0.5, 1.0], TypeError, "'job' has dtype float64: expected the labels"),
        (JOB, pd.Series(["part", "31337"], dtype="category"), DataError, "none of its categories"),
        (HOURS, [0, 5], DataError, "'hours' has values that are none"),
        (HOURS, [0, -1], DataError, "'hours' has values that are none"),
        (HOURS, [0.0, 1.0], TypeError, "expected integers from 0 to 4"),
        (HOURS, np.array([4, 7], dtype=np.uint64), DataError, "expected integers from 0 to 4"),
        (HOURS, ["0", "1"], TypeError, "expected integers from 0 to 4"),
        (HOURS, pd.Series([1, None], dtype="Int64"), DataError, "missing values"),
        (AGE, [1.0, float("nan")], DataError, "missing values"),
        (AGE, ["below 18", "31337"], DataError, "none of its categories"),
        (AGE, pd.to_datetime(["2020-01-01", "2020-01-02"]), TypeError, "'age' has dtype datetime64"),
    ],
)
def test_other_values_are_refused_by_name(column, values, kind, message):
    with pytest.raises(kind, match=message) as caught:
        Domain([column]).encode(pd.DataFrame({column.name: values}))
    assert ("looked at the data" in str(caught.value)) == (kind is DataError)
    assert "31337" not in str(caught.value)
    assert "fulll" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_coded_column_of_bins_knows_its_ranges():
    """Categories below and from a cut, exactly as decimals; a gap is on neither side."""
    table = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]]
    names = ("a", "b", "gap")
    column = Column.coded("x", ["low", "mid", "high", "gap"], names, table, cuts=["0.1", "1e2"])
    assert column.category_names == ("low", "mid", "high", "x=gap")
    assert column.holds(">=", "100").tolist() == [False, False, True, False]
    assert column.holds("<", "0.10").tolist() == [True, False, False, False]
    assert column.holds(">=", "1e-1").tolist() == [False, True, True, False]
    for sign, value in ((">=", "5"), (">", "0.1"), ("<", "nan"), ("<", "gap"), (">=", "1e999999999")):
        assert column.holds(sign, value) is None
    assert column.holds("=", "gap").tolist() == [False, False, False, True]
    for cuts in ([2, 1], [1, 1], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match="cuts must ascend, and be fewer than the categories"):
            Column.coded("x", ["low", "mid", "high", "gap"], names, table, cuts=cuts)


def test_equal_objects_of_several_types_are_spelled_apart():
    domain = Domain([Column("x", ["1", "True", "other"])])
    values = [True, 1, "1", "True", np.int64(1), "other"]
    for order in (values, values[::-1]):
        for value in order:
            alone = domain.encode(pd.DataFrame({"x": pd.Series([value], dtype=object)}))
            assert alone.tolist() == [[["1", "True", "other"].index(str(value))]]
        together = domain.encode(pd.DataFrame({"x": pd.Series(order, dtype=object)}))
        assert together.tolist() == [[["1", "True", "other"].index(str(value))] for value in order]
    # 1 + 0j == 1 and is no category: it does not borrow one from its neighbour
    with pytest.raises(DataError, match="none of its categories"):
        domain.encode(pd.DataFrame({"x": pd.Series([1, 1 + 0j], dtype=object)}))


@pytest.mark.parametrize(
    "dtype", ["int64", "uint64", "Int64", "UInt64", "float64", "int8", "bool", "float32"]
)
def test_numbers_are_compared_with_cuts_exactly(dtype):
    """Doubles would take 2^53 + 1 for 2^53."""
    cuts = [-(2**70), 1, 2**53 + 1, 2**63, 2**64 - 1]
    values = [0, 1, 2**53, 2**53 + 1, 2**63 - 1]
    if dtype in ("uint64", "UInt64"):
        values += [2**63, 2**64 - 2, 2**64 - 1]
    if dtype.startswith("float"):
        values = [float(value) for value in values if float(value) == value] + [2.0**54, 2.0**64]
    if dtype in ("int8", "bool"):
        values = values[:2]
    domain = Domain([Column("x", cuts=cuts)])
    codes = domain.encode(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))
    assert codes[:, 0].tolist() == [sum(value >= cut for cut in cuts) for value in values]
