"""Schemas: real columns to codes and back, against readable definitions."""

import csv
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries import DataError
from smalldb.schema import Categories, Column, Cuts, Dates, Flag, Integers, Schema, parse_schema
from smalldb.schema.kinds.kind import NumberFormat
from smalldb.schema.table_readers import read_table, written

PEOPLE = """
ignore = ["id"]

columns.age = { kind = "cuts", cuts = [18, 40], range = [0, 99] }
columns.sex = { kind = "categories", values = ["female", "male"], coding = "bits" }
columns.job = { kind = "categories", values = ["none", "part", "full"], missing = true }
columns.smoker = { kind = "bool", missing = ["NA"] }
columns.born = { kind = "dates", cuts = [1960, 1990], range = [1920, 2029], coding = "bins" }
"""


def level(column, text):
    """The code of a field by the definitions of the kinds; the last for a gap."""
    kind, text = column.kind, text.strip()
    if text in ("", *column.gaps):
        return kind.size
    match kind:
        case Flag():
            return int(text.lower() in ("1", "true"))
        case Categories():
            spelled = [str(value) for value in kind.listed]
            return spelled.index(text if text in spelled else "other")
        case Cuts():
            return sum(Fraction(text) >= Fraction(cut) for cut in kind.cuts)
        case Dates():
            return sum(int(text[:4]) >= year for year in kind.cuts)


def attributes(column, text):
    """The attributes of a field by the definitions of the codings."""
    here, size = level(column, text), column.kind.size + column.missing
    match column.coding or column.kind.codings[0]:
        case "bits":
            return [int(bit) for bit in f"{here:0{(size - 1).bit_length()}b}"]
        case "thermometer":
            gap = here == column.kind.size
            reached = [int(here > i and not gap) for i in range(column.kind.size - 1)]
            return reached + [int(gap)] * column.missing
        case _:
            return [int(here == i) for i in range(size)]


def encoded(schema, records):
    """The rows of a table of texts: code -> count."""
    bits = [
        [b for c, text in zip(schema.columns, row, strict=True) for b in attributes(c, text)]
        for row in records
    ]
    return Counter("".join(map(str, row)) for row in bits)


def counted(rows):
    return Counter(
        {"".join(map(str, b)): int(n) for b, n in zip(rows.bits().tolist(), rows.counts, strict=True)}
    )


words = st.text("abc &|~'\"><=,é", min_size=1, max_size=4).map(str.strip).filter(bool)
decimals = st.integers(-(10**6), 10**6).map(lambda n: Fraction(n, 100))


@st.composite
def columns(draw, name):
    """A column and a strategy of its fields."""
    missing = draw(st.booleans())
    gaps = tuple(draw(st.sets(st.sampled_from(["NA", "-", "?"])))) if missing else ()
    pick = draw(st.sampled_from(["bool", "texts", "numbers", "cuts", "dates"]))
    if pick == "bool":
        kind, fields = Flag(), st.sampled_from(["0", "1", "true", "FALSE", " True "])
    elif pick == "texts":
        listed, other = draw(st.lists(words, min_size=2, max_size=4, unique=True)), draw(st.booleans())
        kind, fields = Categories(listed, other), st.sampled_from([*listed, *["elsewhere"] * other])
    elif pick == "numbers":
        listed = draw(st.lists(st.integers(-99, 99), min_size=2, max_size=4, unique=True))
        kind, fields = Categories(listed), st.sampled_from([f" {number}" for number in listed])
    elif pick == "cuts":
        numbers = sorted(draw(st.sets(decimals, min_size=3, max_size=5)))
        kind = Cuts(numbers[1:-1], numbers[0], numbers[-1])
        near = [number + step for number in numbers for step in (Fraction(-1, 1000), 0, Fraction(1, 1000))]
        fields = st.sampled_from([f"{float(number):.3f}" for number in near] + ["1e9", "-3", "+.5"])
    else:
        years = sorted(draw(st.sets(st.integers(1700, 2200), min_size=3, max_size=5)))
        kind = Dates(years[1:-1], years[0], years[-1])
        ends = st.sampled_from(["-01-01", "-12-31", "-06-30T10:00:00", "-06-30 23:59"])
        fields = st.builds("{}{}".format, st.integers(1000, 9999), ends)
    coding = draw(st.sampled_from([None, *kind.codings]))
    column = Column(name, kind, coding=coding, missing=missing, gaps=gaps)
    return column, st.one_of(fields, st.sampled_from(["", "  ", *gaps])) if missing else fields


@st.composite
def tables(draw, most=3):
    """A schema and records of texts."""
    made = [draw(columns(f"c{i}")) for i in range(draw(st.integers(1, most)))]
    records = draw(st.lists(st.tuples(*(fields for _, fields in made)), max_size=12))
    return Schema(tuple(column for column, _ in made)), records


def save(path, names, records):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(records)
    return str(path)


@given(tables())
def test_fields_become_attributes_as_defined(tmp_path_factory, table):
    schema, records = table
    path = save(tmp_path_factory.mktemp("csv") / "data.csv", schema.names, records)
    assert counted(read_table(path, schema)) == encoded(schema, records)
    frame = pd.DataFrame(records, columns=schema.names, dtype=object)
    assert counted(schema.encode(frame)) == encoded(schema, records)


@pytest.mark.slow
@given(tables())
def test_every_cell_decodes_to_a_table_that_encodes_to_it(tmp_path_factory, table):
    schema, _ = table
    cells = schema.domain.table()
    assert len(cells) == np.prod([column.kind.size + column.missing for column in schema.columns])
    frame = schema.decode(cells)
    assert tuple(frame.columns) == schema.names
    assert (schema.encode(frame).histogram() == 1).all()
    assert (schema.domain.encode(schema.domain.decode(cells)) == cells).all()  # labels give them back, too
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_bytes(written(frame, "csv"))
    assert (read_table(str(path), schema).histogram() == 1).all()


def test_a_schema_of_every_kind():
    schema = parse_schema(PEOPLE)
    assert schema.domain.attributes == (
        *("age>=18", "age>=40", "sex=male"),
        *("job=none", "job=part", "job=full", "job=missing"),
        *("smoker", "smoker=missing", "born<1960", "1960<=born<1990", "born>=1990"),
    )
    assert schema.domain.size == 3 * 2 * 4 * 3 * 3
    columns = (
        Column("age", Cuts([18, 40], 0, 99)),
        Column("sex", Categories(["female", "male"]), coding="bits"),
        Column("job", Categories(["none", "part", "full"]), missing=True),
        Column("smoker", Flag(), missing=True, gaps=("NA",)),
        Column("born", Dates([1960, 1990], 1920, 2029), coding="bins"),
    )
    assert schema == Schema(columns, ignored=("id",))
    assert schema.domain.sizes == (3, 2, 4, 3, 3)
    assert [column.labels for column in schema.domain.columns] == [
        ("age<18", "18<=age<40", "age>=40"),
        ("female", "male"),
        ("none", "part", "full", "missing"),
        ("no", "yes", "missing"),
        ("born<1960", "1960<=born<1990", "born>=1990"),
    ]
    frame = schema.decode(np.array([[1, 1, 2, 1, 1], [0, 0, 3, 2, 0]]), middle=True)
    dtypes = ["int64", "str", "str", "boolean", "datetime64[s]"]
    assert [str(dtype).replace("object", "str") for dtype in frame.dtypes] == dtypes
    assert frame.iloc[0].tolist() == [28, "male", "full", True, pd.Timestamp("1974-07-01")]
    assert frame.isna().sum().tolist() == [0, 0, 1, 1, 0]
    assert (frame["age"][1], frame["born"][1].year) == (8, 1939)
    with pytest.raises(ValueError, match="written as csv, jsonl, parquet"):
        written(frame, "xml")
    with pytest.raises(ValueError, match="column 'age': it has 3 categories, numbered from 0"):
        schema.decode(np.array([[3, 1, 2, 1, 1]]))
    with pytest.raises(ValueError, match=r"rows must be codes of shape \(r, 5\)"):
        schema.decode(np.zeros((1, 12), dtype=np.uint8))


@pytest.mark.parametrize(
    ("kind", "missing", "dtype", "decoded"),
    [
        (Flag(), False, None, "bool"),
        (Flag(), True, None, "boolean"),
        (Flag(), False, "int8", "int8"),
        (Flag(), True, "Int64", "Int64"),
        (Categories([3, 1]), False, None, "int64"),
        (Categories([3, 1]), True, None, "Int64"),
        (Categories([3, 1]), True, "float64", "float64"),
        (Categories(["b", "a"]), True, "category", pd.CategoricalDtype(["b", "a"])),
        (Categories([3, 1], other=True), False, "category", pd.CategoricalDtype(["3", "1", "other"])),
        (Categories(["b", "a"]), True, "string", "string"),
        (Cuts([18, 40], 0, 99), False, None, "int64"),
        (Cuts([18, 40], 0, 99), True, None, "Int64"),
        (Cuts([18, 40], 0, 99), True, "float32", "float32"),
        (Cuts(["0.7", 1], 0, 2), False, "float32", "float32"),
        (Cuts(["0.5"], 0, 2), True, None, "float64"),
        (Dates([1990], 1950, 2010), True, None, "datetime64[s]"),
        (Dates([1990], 1950, 2010), True, "datetime64[ns, UTC]", "datetime64[ns, UTC]"),
        (Dates([1990], 1950, 2010), False, "str", None),
    ],
)
def test_columns_decode_to_their_dtype(kind, missing, dtype, decoded):
    schema = Schema((Column("x", kind, missing=missing, dtype=dtype),))
    frame = schema.decode(schema.domain.table())
    assert decoded is None or frame["x"].dtype == decoded
    if dtype == "category":
        assert list(frame["x"].cat.categories) == list(decoded.categories)
    assert (schema.encode(frame).histogram() == 1).all()


@pytest.mark.parametrize(
    ("kind", "missing", "dtype"),
    [
        (Flag(), True, "bool"),
        (Categories([300, 1]), False, "int8"),
        (Categories([3, 1]), True, "int64"),
        (Categories(["a", "b"]), False, "int64"),
        (Cuts(["0.5"], 0, 1), False, "int64"),
        (Cuts(["0.30000000000000001", "0.3000000000000001"], 0, 1), False, "float32"),
        (Dates([1300], 1200, 2010), False, "datetime64[ns]"),
        (Cuts([10000, 20000], 0, 40000), False, "int16"),  # both ends of a bin must fit, not its middle alone
        (Dates([2000], 1950, 2300), False, "datetime64[ns]"),  # its middle is before 2262
        (Flag(), False, "flag"),
    ],
)
def test_a_dtype_that_cannot_hold_the_values_is_refused(kind, missing, dtype):
    with pytest.raises(ValueError, match=re.escape(f"column 'x': dtype '{dtype}' cannot hold its values")):
        Column("x", kind, missing=missing, dtype=dtype)


def test_typed_columns_are_read_as_their_texts():
    kind = Cuts(["0.1", 40], 0, 99)
    codes = Column("x", kind, missing=True, gaps=("99",)).codes
    assert codes(pd.Series([0.1, np.nan, 39.99, 40.0, 99.0])).tolist() == [1, 3, 1, 2, 3]
    assert codes(pd.Series([0.1, 0.7], dtype="float32")).tolist() == [1, 1]
    # a float is its shortest decimal: this one is below 10^23 as a binary number
    assert Column("x", Cuts(["1e23"], 0, "1e24"), dtype="float64").codes(pd.Series([1e23])).tolist() == [1]
    assert Column("x", Cuts(["0.7"], 0, 1)).codes(pd.Series([0.7], dtype="float32")).tolist() == [1]
    assert codes(pd.Series([2**63, None, 99], dtype="UInt64")).tolist() == [2, 3, 3]
    assert codes(pd.Series([40, "0.05", None], dtype=object)).tolist() == [2, 0, 3]
    jobs = Column("x", Categories([1, 2]), missing=True)
    assert jobs.codes(pd.Series([1, None, 2])).tolist() == [0, 2, 1]  # float64
    assert jobs.codes(pd.Series(["2", None], dtype="category")).tolist() == [1, 2]
    days = Column("x", Dates([1990], 1950, 2010), missing=True)
    assert days.codes(pd.to_datetime(pd.Series(["1989-12-31", None, "1990-01-01"]))).tolist() == [0, 2, 1]
    assert days.codes(pd.Series([pd.Timestamp("1989-12-31").date()])).tolist() == [0]


EAST = timezone(timedelta(hours=1))
OBJECTS = {  # that a text can stand for; many of one text equal those of another
    "1": [1, 1.0, np.int64(1), np.float32(1), np.uint8(1), Decimal("1"), " 1 "],
    "True": [True, np.True_],
    "1.00": [Decimal("1.00")],
    "": [None, float("nan"), pd.NA, pd.NaT, Decimal("NaN")],
    "2019-12-31": [
        *("2019-12-31 23:30:00+00:00", date(2019, 12, 31), pd.Timestamp("2019-12-31")),
        *(datetime(2019, 12, 31, 23, 30, tzinfo=UTC), pd.Timestamp("2019-12-31 23:30", tz=UTC)),
    ],
    "2020-01-01": [
        *("2020-01-01 00:30:00+01:00", date(2020, 1, 1), np.datetime64("2020-01-01")),
        *(datetime(2020, 1, 1, 0, 30, tzinfo=EAST), pd.Timestamp("2020-01-01 00:30", tz=EAST)),
    ],
}
CODES = {"1": 0, "True": 1, "1.00": 2, "": 4, "2019-12-31": 0, "2020-01-01": 1}


@pytest.mark.parametrize("text", OBJECTS)
def test_objects_are_their_text(text):
    """Alone, in a column of objects or of their dtype; several are what each is, by `test_rows_add_up`."""
    listed = Categories(["1", "True", "1.00"], other=True)
    column = Column("x", Dates([2020], 2000, 2039) if text[4:5] == "-" else listed, missing=True)
    (code,) = column.codes(pd.Series([text], dtype=object))
    assert code == CODES[text]
    for value in OBJECTS[text]:
        for dtype in (object, None):
            assert column.codes(pd.Series([value], dtype=dtype)).tolist() == [code], (value, dtype)


@pytest.mark.parametrize("fields", [["1.0", "0.0", "2.00"], [1.0, -0.0, 2.0], [Decimal("1.0"), "-0.0", 2]])
def test_whole_numbers_may_have_a_fraction_of_zeros(fields):
    """A program writes 1.0 for 1 in a column with gaps, because it takes them for floats."""

    def codes(kind, fields, **choices):
        return Column("x", kind, **choices).codes(pd.Series(fields, dtype=object)).tolist()

    assert codes(Categories([0, 1, 2]), fields) == [1, 0, 2]
    assert codes(Categories(["0", "1", "2"]), fields) == [1, 0, 2]
    assert codes(Categories([7], True, {"few": [0, 1], "more": [2]}), fields) == [1, 1, 2]
    assert codes(Integers(0, 2), fields) == [1, 0, 2]
    assert codes(Integers(1, 3), fields, missing=True, gaps=("0",)) == [0, 3, 1]
    assert codes(Cuts([1], 0, 9), fields, missing=True, gaps=("2",)) == [1, 0, 2]
    assert codes(Flag(), fields[:2]) == [1, 0]
    assert codes(Flag(["1", "2"], ["0"]), fields) == [1, 0, 1]
    assert codes(Dates(["1990"], 1980, 1999, "%Y%m%d"), ["19900101.0", "19891231.0"]) == [1, 0]
    texts = Categories(["1", "1.0", "0"], other=True)  # what is listed stands for itself
    assert codes(texts, ["1", "1.0", "1.00", "01.0", "0.0"]) == [0, 1, 0, 3, 2]
    thousands = Integers(999, 1001, numbers=NumberFormat(",", "."))
    assert codes(thousands, ["1.000", "1.000,0"], missing=True, gaps=("1",)) == [1, 1]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Flag(), ["maybe", 2, 0.5, "-1"]),
        (Categories(["a", "b"]), ["A", "c", 1, True]),
        (Categories([1, 2]), ["1.", "01.0", "1.00e0", "+1.0", 1.5, "01", "a", True]),
        (Cuts([18], 0, 99), ["x", "1_8", "0x1", "nan", "1,5", np.inf, "1e9999999", True, "1 8"]),
        (Dates([1990], 1950, 2010), ["1990", "1990-13-01", "19900101", "1990-W01-1", "01.02.1990", 1990]),
    ],
)
def test_values_without_a_category_are_refused_or_count_as_gaps(kind, values):
    for value in values:
        column = pd.Series([value], dtype=object)
        with pytest.raises(DataError) as caught:
            Column("x", kind, missing=True).codes(column)
        assert str(caught.value).startswith(
            f"column 'x' has values that its schema does not cover: {kind.spelling}; unknown = "
        )
        assert ("no percent sign or unit" in str(caught.value)) == isinstance(kind, Cuts)
        assert caught.value.__context__ is None
        assert Column("x", kind, missing=True, unknown=True).codes(column).tolist() == [kind.size]


@pytest.mark.parametrize("gap", ["", "  ", None, np.nan, pd.NA, pd.NaT])
def test_gaps_without_a_category_are_refused(gap):
    with pytest.raises(DataError, match=r"^column 'x' has missing values"):
        Column("x", Flag()).codes(pd.Series([True, gap], dtype=object))


def test_rules_speak_of_attributes_categories_and_ranges():
    rules = (
        """valid = ["~(`job=full` & `age<18`)", "~(smoker & `18<=age<40`)", "~(`born=missing` & age>=40)"]"""
    )
    schema = parse_schema(
        rules
        + """
columns.age = { kind = "cuts", cuts = [18, "40.0"], range = [0, 99], coding = "bits", missing = true }
columns.job = { kind = "categories", values = ["none", "full"] }
columns.smoker = { kind = "bool" }
columns.born = { kind = "dates", cuts = [1990], range = [1950, 2010], missing = true }
"""
    )
    young, middle, old = 0, 1, 2  # 3 is a gap, on neither side of a cut
    expected = [
        [age, job, smoker, born]
        for age, job, smoker, born in product(range(4), range(2), range(2), range(3))
        if not ((job == 1 and age == young) or (smoker and age == middle) or (born == 2 and age == old))
    ]
    assert schema.domain.table().tolist() == expected
    assert schema.valid == schema.domain.valid
