"""Tables of real columns are counted alike wherever they come from; a wrong one is refused by column."""

import importlib
import os
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from queries import DataError, Domain
from smalldb.files import outputs as files
from smalldb.schema import Column, Flag, Schema, parse_schema
from smalldb.schema.fields import in_threads, spelled, tally
from smalldb.schema.table_readers import read_table, written

SCHEMA = parse_schema("""
ignore = ["id"]
columns.age = { kind = "cuts", cuts = [18, 40], range = [0, 99], missing = true }
columns.job = { kind = "categories", values = ["none", "part"], unknown = "other" }
columns.smoker = { kind = "bool", missing = ["NA"] }
columns.born = { kind = "dates", cuts = [1990], range = [1950, 2009] }
""")
FRAME = pd.DataFrame(
    {
        "id": [7, 8, 9, 10],
        "smoker": pd.Series([True, None, False, True], dtype="boolean"),
        "age": pd.Series([17, None, 40, 17], dtype="Int64"),
        "born": pd.to_datetime(["1989-12-31", "1990-01-01", "2001-02-03", "1989-12-31"]),
        "job": ["none", "part", "mine", "none"],
    }
)
TEXT = """id,smoker,age,born, job
7,true,17,1989-12-31,none
8,NA,,1990-01-01,part

9,0,40,2001-02-03, mine
10,1,17,1989-12-31,none
"""


def counted(rows):
    return rows.words.tolist(), rows.counts.tolist()


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TEXT)
    return str(path)


def test_texts_typed_columns_and_other_libraries_are_the_same_table(people):
    class Foreign:
        def to_pandas(self):
            return FRAME

    rows = read_table(people, SCHEMA)
    assert rows.n == 4
    assert sorted(rows.counts.tolist()) == [1, 1, 2]
    assert counted(SCHEMA.encode(FRAME)) == counted(SCHEMA.encode(Foreign())) == counted(rows)
    assert counted(read_table(people, Schema(SCHEMA.columns, ignored=("*",)))) == counted(rows)
    shown = SCHEMA.decode(rows.codes())
    assert sorted(shown["job"]) == ["none", "other", "part"]
    with pytest.raises(TypeError, match="a table with to_pandas"):
        SCHEMA.encode([1, 2])
    with pytest.raises(ValueError, match="two columns 'a'"):
        Schema((Column("a", Flag()),)).encode(pd.DataFrame([[1, 1]], columns=["a", "a"]))


def test_large_integers_beside_a_gap_keep_their_digits():
    schema = parse_schema(
        f"columns.a = {{ kind = 'cuts', cuts = [{2**53 + 1}], range = [0, {2**60}], missing = true }}"
    )
    values = [2**53, 2**53 + 1, None]
    expected = schema.encode(pd.DataFrame({"a": pd.Series(values, dtype="Int64")})).histogram().tolist()
    assert expected == [1, 1, 1]
    made = [pd.DataFrame({"a": pd.Categorical(values, categories=values[:2])})]
    for library in ("polars", "pyarrow"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        made.append(module.DataFrame({"a": values}) if library == "polars" else module.table({"a": values}))
    for table in made:
        assert schema.encode(table).histogram().tolist() == expected


@pytest.mark.parametrize("kind", ["date32", "date64", "time64", "timestamp UTC", "timestamp Europe/Berlin"])
def test_moments_that_python_has_not_have_no_category(tmp_path, kind):
    """The year 10000, or a nanosecond: the other rows are read as they are, and no error names the value."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    name, _, zone = kind.partition(" ")
    types = {"date32": pa.date32(), "date64": pa.date64(), "time64": pa.time64("ns")}
    day, arrow = {"date32": (1, pa.int32()), "date64": (86_400_000, pa.int64())}.get(
        name, (86_400, pa.int64())
    )
    odd = 5 if name == "time64" else 10**7 * day
    values = [odd, 0, None] if name == "time64" else [odd, -odd, 0, None]
    array = pa.array(values, arrow).cast(types.get(name) or pa.timestamp("s", zone))
    described = (
        '"times", cuts = ["08:00"]' if name == "time64" else '"dates", cuts = [1990], range = [1950, 2009]'
    )
    schema = parse_schema(f'columns.a = {{ kind = {described}, missing = true, unknown = "missing" }}')
    table = pa.table({"a": array})
    parquet.write_table(table, tmp_path / "a.parquet")
    expected = schema.encode(pa.table({"a": array[1:]})).histogram()
    expected += schema.encode(pa.table({"a": array[:1]})).histogram()
    assert expected.sum() == len(values)
    for found in (
        schema.encode(table),
        schema.encode(pa.table({"a": array.dictionary_encode()})),
        schema.encode(table.to_pandas(types_mapper=pd.ArrowDtype)),
        read_table(str(tmp_path / "a.parquet"), schema),
    ):
        assert (found.histogram() == expected).all()
    strict = parse_schema(f"columns.a = {{ kind = {described}, missing = true }}")
    if name != "time64":
        with pytest.raises(DataError, match="column 'a' has values that its schema does not cover"):
            strict.encode(table)


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "+01:00", "pytz", "dateutil/Europe/Berlin"])
def test_moments_before_the_tables_of_a_zone_have_their_local_text(unit, zone):
    """Before version 3.1 pandas reads beyond the tables of pytz, whose zones it takes before version 3."""
    zone = pytest.importorskip("pytz").timezone("Europe/Berlin") if zone == "pytz" else zone
    moments = np.array(
        ["1500-12-31T23:30", "1676-12-31T12:00", "2001-12-31T23:30", "NaT"], f"datetime64[{unit}]"
    )
    column = pd.Series(moments).dt.tz_localize("UTC").dt.tz_convert(zone)
    codes, texts = spelled(column)
    years = [texts[code][:4] for code in codes]
    assert years == (["1500", "1676", "2001", ""] if str(zone) == "UTC" else ["1501", "1676", "2002", ""])


def test_what_is_no_single_value_is_refused():
    schema = parse_schema('columns.a = { kind = "bool", missing = true, unknown = "missing" }')
    for value in ([1], (1,), {"a": 1}, {1}, np.array([1])):
        fields = pd.Series([None, None], dtype=object)
        fields.iat[1] = value
        made = [fields] if not isinstance(value, tuple) else [fields, pd.Series([value], dtype="category")]
        for column in made:
            with pytest.raises(DataError, match="column 'a' has a value that is a list") as caught:
                schema.encode(pd.DataFrame({"a": column}))
            assert caught.value.__context__ is None


def test_parquet(people, tmp_path):
    pytest.importorskip("pyarrow")
    expected = counted(read_table(people, SCHEMA))
    path = tmp_path / "people.parquet"
    path.write_bytes(written(FRAME.assign(age=[17.0, np.nan, 40, 17]), "parquet"))
    assert counted(read_table(str(path), SCHEMA)) == expected
    frame = SCHEMA.decode(read_table(people, SCHEMA).codes())
    path.write_bytes(written(frame, "parquet"))
    dtypes = pd.read_parquet(path).dtypes
    assert [dtypes["age"], dtypes["smoker"], dtypes["born"].kind] == ["Int64", "boolean", "M"]
    assert read_table(str(path), SCHEMA).words.tolist() == expected[0]
    path.write_bytes(FRAME.set_index("id").to_parquet())  # an index is a column of the file
    assert counted(read_table(str(path), SCHEMA)) == expected
    path.write_bytes(b"PAR1" + path.read_bytes()[4:-50])
    with pytest.raises(ValueError, match=r"people.parquet is not a Parquet file that can be read"):
        read_table(str(path), SCHEMA)
    further = bytearray(written(pd.concat([FRAME] * 99), "parquet"))
    further[4:400] = bytes(396)
    path.write_bytes(further)
    with pytest.raises(DataError, match="is broken: it cannot be read to its end") as caught:
        read_table(str(path), SCHEMA)
    assert caught.value.__context__ is None


def test_aggregated_counts(tmp_path):
    schema = parse_schema("columns.a.kind = 'bool'")
    path = tmp_path / "counts.csv"
    path.write_text("n,a\n5,1\n5,1\n1000000000000,0\n0,1\n")
    rows = read_table(str(path), schema, counts="n")
    assert (rows.bits().tolist(), rows.counts.tolist()) == ([[0], [1]], [10**12, 10])
    frame = pd.DataFrame({"a": [1, 0, 1], "n": [7, 0, 2]})
    assert schema.encode(frame, counts="n").histogram().tolist() == [0, 9]
    for count in ("-1", "1.5", "", "x", "1e3", "2.0"):
        path.write_text(f"a,n\n1,{count}\n")
        with pytest.raises(DataError, match="column 'n' must hold counts: whole numbers, none negative"):
            read_table(str(path), schema, counts="n")
    for counts in ([1.0], [True], [None]):
        with pytest.raises(DataError, match="column 'n' must hold counts"):
            schema.encode(pd.DataFrame({"a": [1], "n": counts}), counts="n")
    path.write_text(f"a,n\n1,{2**61}\n0,{2**61}\n")
    with pytest.raises(DataError, match=r"2\^62"):
        read_table(str(path), schema, counts="n")
    with pytest.raises(ValueError, match="column 'a' cannot hold counts"):
        read_table(str(path), schema, counts="a")


def test_a_file_that_changes_meanwhile_is_refused(people):
    def watch(pieces):
        yield next(pieces)
        Path(people).write_text(TEXT + "1,1,17,1989-12-31,none\n")
        yield from pieces

    with pytest.raises(ValueError, match=r"people.csv changed while it was read"):
        read_table(people, SCHEMA, watch=watch)
    with files.unchanged(people):
        Path(people).read_text()


@pytest.mark.parametrize("attributes", [1, 8, 64, 70])
def test_equal_rows_of_many_pieces_are_counted_together(attributes, monkeypatch):
    """Rows that occur once each wait until they are sorted together, whatever pieces they come in."""
    monkeypatch.setattr("smalldb.schema.fields.SORTED", 30)
    chance = np.random.default_rng(2)
    bits = chance.integers(0, 2, size=(40, attributes)).astype(np.uint8)
    bits = bits[chance.integers(0, 40, 500)]
    domain, pieces = Domain([f"x{i}" for i in range(attributes)]), np.array_split(bits, 23)
    times = [None if k % 3 else np.full(len(piece), k + 1) for k, piece in enumerate(pieces)]
    expected = Counter()
    for piece, some in zip(pieces, times, strict=True):
        for row, many in zip(
            piece.tolist(), [1] * len(piece) if some is None else some.tolist(), strict=True
        ):
            expected[tuple(row)] += many
    found = tally(domain, zip(pieces, times, strict=True))
    assert dict(zip(map(tuple, found.bits().tolist()), found.counts.tolist(), strict=True)) == expected
    assert np.array_equal(found.words, np.unique(found.words, axis=0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "Int64", "bool"])
def test_close_integers_are_spelled_as_others_are(dtype):
    """Those that are near each other are counted, others looked up: of each the index of its text."""
    kind = dtype.lower()
    low, high = (0, 1) if kind == "bool" else (np.iinfo(kind).min, np.iinfo(kind).max)
    near = [low, low, low + 1] + [high - 1, high] * (kind in ("int8", "uint8", "bool")) * 300
    for values in (near, [low, high], [high, high - 1], []):
        series = pd.Series(values, dtype=dtype)
        codes, texts = spelled(series)
        assert [texts[code] for code in codes] == [str(value) for value in series]
        assert sorted(texts) == sorted({*map(str, series)})
    codes, texts = spelled(pd.Series([7, None, 8], dtype="Int64"))
    assert [texts[code] for code in codes] == ["7", "", "8"]


def test_threads_keep_the_order_of_parts_and_the_first_error():
    def slow(part):
        time.sleep(0.01 * (part % 3))
        if part in (5, 7):
            raise ValueError(f"part {part}")
        return part, threading.get_ident()

    asked, made, by = iter(range(99)), [], set()
    with pytest.raises(ValueError, match="part 5"):
        for part, thread in in_threads(slow, asked):
            made.append(part)
            by.add(thread)
    assert made == [0, 1, 2, 3, 4] and threading.get_ident() not in by
    assert next(asked) < 10 + (os.cpu_count() or 1)  # only a few parts are made ahead
