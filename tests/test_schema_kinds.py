"""Kinds of columns: what has which category, what a value of a category can be, and how values are drawn."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries import DataError
from smalldb.exact.bits import SeededBits
from smalldb.exact.integers import uniform_permutation
from smalldb.schema import Categories, Column, Cuts, Dates, Flag, Integers, Times, parse_schema
from smalldb.schema.bin_shapes import BinShape, drawn_steps
from smalldb.schema.kinds.binned import equal_steps
from smalldb.schema.kinds.kind import NumberFormat

COMMA = NumberFormat(",", ".")
KINDS = {
    "whole": Cuts([18, 40], 0, 99),
    "decimal": Cuts(["0.5"], 0, 2),
    "cents": Cuts([10, 20], 0, 30, decimals=2),
    "comma": Cuts([1000, 2000], 0, 3000, decimals=1, numbers=COMMA),
    "large": Cuts([10**17], 0, 10**18),
    "years": Dates([2000], 1990, 2020),
    "months": Dates(["2000-04", "2010-04-02"], 1990, "2020-03"),
    "moments": Dates(["2000-04-01T12:30"], "1999-12", 2001),
    "form": Dates([2000], 1990, 2020, "%d.%m.%Y"),
    "form with a clock": Dates([2000], 1990, 2020, "%d/%m/%y %H:%M:%S"),
    "times": Times(["06:00", "12:30:10"]),
    "integers": Integers(-2, 5),
    "signs": Flag(["Y", "yes"], ["N"]),
    "codes": Flag([1], [2]),
    "groups": Categories(["Rome"], other=True, groups={"north": ["Leeds", "York"], "south": ["Bath"]}),
}


def drawn(kind, code, count, shape, source):
    """Values of a bin, by the shape of its column."""
    return [kind.at(int(step)) for step in drawn_steps(kind, code, count, shape, source)]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_values_of_a_category_are_found_in_it_again(name, missing):
    column = Column("x", KINDS[name], missing=missing)
    codes = np.arange(5 * column.universe.size) % column.universe.size
    for source in (None, SeededBits(1)):
        made = column.decode(codes, source)
        assert (column.codes(made) == codes).all()
        assert made.dtype == column.decode(codes[:1]).dtype
        texts = pd.Series(["" if pd.isna(v) else str(v) for v in made], dtype="str")
        assert (column.codes(texts) == codes).all()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Cuts([3], 0, 5), [[0, 1, 2], [3, 4, 5]]),
        (Cuts([1], 0, 1, decimals=1), [[i / 10 for i in range(10)], [1.0]]),
        (Cuts([1], 0, "1.1", decimals=1, numbers=COMMA), [[f"0,{i}" for i in range(10)], ["1,0", "1,1"]]),
        (
            Dates(["2000-03"], "2000-02-27", "2000-03-01"),
            [["2000-02-27", "2000-02-28", "2000-02-29"], ["2000-03-01"]],
        ),
        (Times(["00:02"], "00:00", "00:03"), [["00:00", "00:01"], ["00:02", "00:03"]]),
    ],
)
def test_draws_are_uniform_over_the_values_of_a_bin_where_all_bins_are_as_dense(kind, values):
    shape = BinShape.of(kind, np.repeat(np.arange(len(values)), [10 * len(some) for some in values]))
    for code, expected in enumerate(values):
        count = 3000
        found = Counter(drawn(kind, code, count, shape, SeededBits(7)))
        assert sorted(found) == sorted(expected)
        share = count / len(expected)
        chi = sum((times - share) ** 2 / share for times in found.values())
        assert chi < len(expected) + 4 * (2 * len(expected)) ** 0.5
        skewed = dict.fromkeys(expected, share) | {expected[0]: 1.4 * share}
        if len(expected) > 1:  # a law that is off would be seen
            assert sum((times - found[value]) ** 2 / share for value, times in skewed.items()) > 2 * chi


def test_a_value_that_its_dtype_would_round_into_another_bin_is_the_middle():
    column = Column("x", Cuts([10**16], 10**16 - 3, 2 * 10**16), dtype="float64")
    made = column.decode(np.zeros(200, dtype=np.int64), SeededBits(1))
    assert (column.codes(made) == 0).all()
    assert made.nunique() > 1


def test_permutations_are_uniform():
    found = Counter(tuple(uniform_permutation(3, SeededBits(i)).tolist()) for i in range(1200))
    assert len(found) == 6
    assert all(150 < times < 250 for times in found.values())
    assert uniform_permutation(0, SeededBits(1)).tolist() == []


@pytest.mark.parametrize(
    ("text", "plain", "comma", "grouped"),
    [
        ("1234.5", "1234.5", None, "1234.5"),
        ("1234,5", None, "1234.5", None),
        ("1.234,5", None, "1234.5", None),
        ("1,234.5", None, None, "1234.5"),
        ("1.234", "1.234", "1234", "1.234"),
        ("12.34", "12.34", None, "12.34"),
        ("-1.234.567", None, "-1234567", None),
        ("1,234,567", None, None, "1234567"),
        ("1,2345", None, "1.2345", None),
        ("1,234.567,8", None, None, None),
        (",5", None, "0.5", None),
        (".5", "0.5", None, "0.5"),
        ("5,", None, "5", None),
        ("", None, None, None),
        ("1,000", None, "1", "1000"),
    ],
)
def test_numbers_are_read_as_their_format_says(text, plain, comma, grouped):
    formats = (NumberFormat(), COMMA, NumberFormat(".", ","))
    found = [form.read(text) for form in formats]
    assert [None if number is None else float(number) for number in found] == [
        None if number is None else float(number) for number in (plain, comma, grouped)
    ]


def test_typed_numbers_are_themselves_whatever_the_format_of_texts():
    column = Column("x", Cuts([100], 0, 2000, numbers=COMMA))
    typed = pd.Series([1.234, 1234.0, 99.9])
    assert column.codes(typed).tolist() == [0, 1, 0]
    assert column.codes(typed.astype(object)).tolist() == [0, 1, 0]
    assert column.codes(pd.Series(["1.234", "1234,0", "99,9"])).tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="what decimal or thousands write is text"):
        Column("x", Cuts([100], 0, 2000, numbers=COMMA), dtype="float64")


def test_numbers_that_are_texts_have_all_their_digits():
    kind = Cuts([1000], 0, 1001, decimals=2, numbers=COMMA)
    assert kind.values() == ["500,00", "1000,50"]
    shape = BinShape.of(kind, np.repeat([0, 1], [1000, 1]))
    (digits,) = {len(text.partition(",")[2]) for text in drawn(kind, 1, 400, shape, SeededBits(3))}
    assert digits == 2
    assert {"1000,00", "1000,10"} <= {*drawn(kind, 1, 4000, shape, SeededBits(4))}
    assert Cuts(["0.01"], 0, "0.02", decimals=2, numbers=COMMA).values() == ["0,005", "0,015"]


@pytest.mark.parametrize("cell", [float("nan"), float("inf"), float("-inf"), "NaN", "inf"])
def test_what_is_no_number_is_a_gap_only_where_the_schema_says_so(cell):
    gap = isinstance(cell, float) and cell != cell
    fields, kind = pd.Series([1, cell, 3], dtype=object), Cuts([2], 0, 9)
    with pytest.raises(DataError, match="missing values" if gap else r"no NaN or infinity.*missing = \["):
        Column("x", kind).codes(fields)
    listed = Column("x", kind, missing=True, gaps=("NaN", "inf", "-inf"))
    assert listed.codes(fields).tolist() == [0, 2, 1]
    assert Column("x", kind, missing=True, unknown=True).codes(fields).tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        (Flag(), {"yes": 1, "Y": 1, "TRUE": 1, "1": 1, "no": 0, "n": 0, "False": 0, "0": 0, "2": None}),
        (Flag(["Y"], ["N"]), {"Y": 1, "N": 0, "y": None, "1": None, "True": 1, "false": 0}),
        (Flag([1], [2]), {"1": 1, "2": 0, "0": None}),
        (Integers(0, 3), {"0": 0, "3": 3, "2.0": 2, "4": None, "-1": None, "1.5": None, "1e99": None}),
        (Integers(0, 3, nearest=True), {"4": 3, "-7": 0, "1e999999": 3, "1.5": None, "x": None}),
        (KINDS["groups"], {"Leeds": 1, "north": 1, "York": 1, "Bath": 2, "Rome": 0, "Paris": 3}),
        (Times(["06:00"]), {"05:59:59": 0, "6:00": 1, "23:59": 1, "24:00": None, "06:00:00.25": 1}),
        (
            Dates(["2000-04-01T12:30"], 1990, 2010),
            {"2000-04-01T12:29:59": 0, "2000-04-01 12:30": 1, "2000-04-01": 0, "2000-04-01 noon": None},
        ),
        (
            Dates([2000], 1990, 2010, "%d.%m.%Y"),
            {"31.12.1999": 0, "01.01.2000": 1, "2000-01-01": 1, "2000-01-01T10:00:00": 1, "1/1/2000": None},
        ),
    ],
)
def test_categories_of_fields(kind, codes):
    assert {text: kind.code(text) for text in codes} == codes


def test_ranges_of_dates_and_times_are_known_to_rules():
    schema = parse_schema("""
    valid = ["`seen>=2001-02-03` | `at<06:30`", "~(`seen<2000-05` & `at>=18:00`)"]
    columns.seen = { kind = "dates", cuts = ["2000-05", 2001-02-03], range = [1999, 2002], missing = true }
    columns.at = { kind = "times", cuts = ["06:30", "18:00"], coding = "bins" }
    """)
    kept = [[0, 0], [1, 0], [2, 0], [2, 1], [2, 2], [3, 0]]
    assert schema.domain.table().tolist() == kept


@pytest.mark.parametrize(
    ("low", "high", "bins"), [(0, 99, 10), (0, 100, 10), (1, 10, 3), (-5, 5, 11), (0, 1, 2)]
)
def test_equal_bins_hold_equally_many_numbers_to_within_one(low, high, bins):
    cuts = [low, *equal_steps(low, high, bins), high + 1]
    assert {b - a for a, b in pairwise(cuts)} <= {(high + 1 - low) // bins, -(-(high + 1 - low) // bins)}
    assert len(cuts) == bins + 1


def test_bins_of_equal_width():
    assert Cuts.of_bins(4, 0, 2) == Cuts(["0.5", 1, "1.5"], 0, 2)
    assert Dates.of_bins(4, 1990, 2029) == Dates([2000, 2010, 2020], 1990, 2029)
    assert Dates.of_bins(2, "2020-01-01", "2020-01-02T11:59").cuts == ("2020-01-01T18:00",)
    assert Times.of_bins(4).cuts == ("06:00", "12:00", "18:00")
    with pytest.raises(ValueError, match="cannot be divided into so many bins"):
        Cuts.of_bins(3, 0, 1)
    with pytest.raises(ValueError, match="bins must be at most 2"):
        Times.of_bins(3, "00:00", "00:01")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Flag(["Y"], []), "give both lists"),
        (lambda: Flag(["Y"], ["Y"]), "'Y' stands in both"),
        (lambda: Flag([True], [False]), "must be lists of texts or whole numbers"),
        (lambda: Flag([" Y"], ["N"]), "' Y' is empty, or has spaces"),
        (lambda: Integers(0, 0), "must hold 2 to 4096"),
        (lambda: Integers(0, 10**6), "take cuts for more"),
        (lambda: Integers(0, "1.5"), "two whole numbers"),
        (lambda: Cuts([1], 0, 2, decimals=-1), "decimals must be"),
        (lambda: Cuts(["0.2", "0.4"], 0, 1, decimals=0), "no number of 0 digits lies in one of the bins"),
        (lambda: NumberFormat(",", ","), "must be different signs"),
        (lambda: NumberFormat("x"), "decimal must be one of"),
        (lambda: Dates(["1990-13"], 1980, 2000), "is not a year, month"),
        (lambda: Dates([1990], 1980, 2000, "%d.%m."), "does not tell the dates of the bins"),
        (lambda: Dates([1990], 1880, 2000, "%d.%m.%y"), "does not tell the dates of the bins"),
        (lambda: Dates(["1900-07"], 1900, 1900, "%d.%m. %%Y"), "does not tell the dates of the bins"),
        (lambda: Times(["25:00"]), "range must begin"),
        (lambda: Categories(["a"], groups={"b": ["a"]}), "'a' occurs more than once"),
    ],
)
def test_what_makes_no_kind_is_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_all_columns_with_values_that_are_not_listed_are_told_at_once():
    schema = parse_schema("""
    columns.a = { kind = "categories", values = ["x", "y"] }
    columns.b = { kind = "bool" }
    columns.c = { kind = "bool" }
    """)
    last, first, gap = ["x"] * 70000 + ["z"], ["7"] + ["no"] * 70000, ["1", None] + ["1"] * 69999
    frame = pd.DataFrame({"a": last, "b": first, "c": gap})
    with pytest.raises(DataError) as caught:
        schema.encode(frame)
    told = str(caught.value)
    parts = ["column 'a' has values", "column 'b' has values", "column 'c' has missing"]
    assert sorted(map(told.index, parts)) == [told.index(part) for part in parts]
    assert told.count("for the curator only") == 1


def test_a_category_in_another_unicode_form_is_refused_with_the_reason():
    """The reason depends on what the schema lists alone."""
    for listed, odd, told in (("Köln", "Ko\u0308ln", True), ("Rome", "Roma", False)):
        column = Column("town", Categories([listed, "Bath"]))
        with pytest.raises(DataError, match="written exactly as its schema lists it") as caught:
            column.codes(pd.Series([odd, "Bath"]))
        assert ("in the same Unicode form" in str(caught.value)) is told
        with pytest.raises(DataError) as other:
            column.codes(pd.Series(["x"]))
        assert str(other.value) == str(caught.value)


@given(
    st.lists(
        st.one_of(
            st.decimals(-10, 10, places=20).map(lambda number: f"{number:f}"),
            st.sampled_from(
                ["0.1", "0.10", ".1", "+0.1", "0.1000000000000000000001", "0.09999999999999999999", "7."]
            ),
            st.sampled_from(["9007199254740993", "9007199254740992.5", "-9007199254740993", "1" * 400]),
            st.text("0123456789.+-e_ ", max_size=6),
        ),
        min_size=40,
        max_size=60,
    )
)
def test_many_numbers_get_the_bins_that_each_gets(texts):
    kind = Cuts([0.1, 7, 9007199254740993], -10, 1e16)
    assert kind.codes(texts) == [kind.code(text) for text in texts]
    numbers = [text for text in texts if kind.code(text) is not None]
    assert kind.codes(numbers) == [kind.code(text) for text in numbers]
