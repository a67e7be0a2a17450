"""What is released is what is written, and what cannot be written is refused before it is paid."""

import json
import os
import re
import subprocess
import sys
from datetime import date
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calling import called

import smalldb
from smalldb.exact.bits import SeededBits
from smalldb.releasing import memory
from smalldb.releasing.budget_ledger import Ledger
from smalldb.schema import Categories, Column, Cuts, Dates, Flag, Integers, Schema, Times, parse_schema
from smalldb.schema.fields import dtype_of
from smalldb.schema.file_format import FileFormat
from smalldb.schema.kinds.kind import NumberFormat
from smalldb.schema.table_readers import read_table, rehearse, table_pieces
from smalldb.schema.table_writers import FORMATS, written

pytest.importorskip("pyarrow")

KINDS = {
    "yes/no": Flag(),
    "1/0": Flag([1], [0]),
    "J/N": Flag(["J", "ja"], ["N"]),
    "1/no": Flag([1], ["no"]),
    "texts": Categories(["a", "b, c", 'q"', "line\nbreak", "=1+1"]),
    "numbers": Categories([1, 2, 30]),
    "like numbers": Categories(["1", "true", "NaN", "-0.5"], other=True),
    "integers": Integers(-3, 9),
    "integers, comma": Integers(950, 1050, numbers=NumberFormat(",", ".")),
    "cuts": Cuts([18, 65], 0, 110),
    "cuts of digits": Cuts(["0.5", "0.625"], 0, 2),
    "cuts, small": Cuts(["-1e-9"], -1, "0.5"),
    "cuts, large": Cuts([10**16], 10**16 - 3, 2 * 10**16),
    "cuts, comma": Cuts([1000], 0, 1001, decimals=2, numbers=NumberFormat(",")),
    "days": Dates([1990], 1950, 2010),
    "moments": Dates(["2005-01-01T12:00", "2005-01-01T18:00:30"], "2005-01-01", "2005-01-01"),
    "days, format": Dates([1990], 1950, 2010, "%d/%m/%Y"),
    "moments, format": Dates([1990], 1950, 2010, "%d.%m.%Y %H:%M"),
    "old days": Dates([1300], 1200, 2010),
    "times": Times(["06:30"]),
    "seconds": Times(["06:30:15"], "01:00", "22:00"),
}
DTYPES = (
    *(None, "bool", "int8", "int64", "uint8", "float32", "float64", "object", "str", "string", "category"),
    *("boolean", "Int8", "Int64", "UInt16", "Float32", "Float64", "datetime64[s]", "datetime64[ns]"),
    *("datetime64[ns, America/Sao_Paulo]", "datetime64[s, Europe/Berlin]", "date32[day][pyarrow]"),
    *("timestamp[s][pyarrow]", "timestamp[us, tz=America/Sao_Paulo][pyarrow]", "bool[pyarrow]"),
    *("int16[pyarrow]", "double[pyarrow]", "float[pyarrow]", "large_string[pyarrow]", "string[pyarrow]"),
)
FORBIDDEN = (
    *("period[D]", "Sparse[int64]", "V", "binary[pyarrow]", "decimal128(10, 2)[pyarrow]", "complex128"),
    *("float16", "datetime64[D]", "timedelta64[ns]", "i4,f8", "time32[s][pyarrow]", "interval", "none"),
)


def columns(kind, dtypes):
    """A kind with each dtype that can hold it, without gaps, with gaps, and with gaps of a spelling."""
    for number, (dtype, gaps) in enumerate(product(dtypes, (None, (), ("NA", "-")))):
        try:
            yield Column(f"x{number}", kind, missing=gaps is not None, gaps=gaps or (), dtype=dtype)
        except ValueError as error:
            assert "dtype" in str(error) or "decimal or thousands" in str(error)


def test_a_workbook_has_the_sheet_that_the_schema_reads(tmp_path):
    schema = parse_schema('file = { sheet = "Patients" }\ncolumns.b = { kind = "bool" }')
    assert rehearse(schema, "xlsx")
    path = tmp_path / "table.xlsx"
    path.write_bytes(written(pd.DataFrame({"b": [True, False]}), "xlsx", schema))
    assert read_table(str(path), schema).codes().ravel().tolist() == [0, 1]


def fields_of(column, values):
    codes, fields = column.written(values)
    return [fields[code] for code in codes]


# what cannot be written: numbers and texts in one column; statistical files hold floats
REFUSED = [("parquet", "1/no"), ("arrow", "1/no"), ("dta", "cuts, large"), ("sav", "cuts, large")]


def check(kind, form, dtypes, tmp_path):
    """The columns of a kind side by side in one table; or each alone, where the format refuses some."""
    found = [*columns(KINDS[kind], dtypes)]
    assert len(found) > 2
    for some in [[column] for column in found] if (form, kind) in REFUSED else [found]:
        check_table(Schema((*some, Column("b", Flag()))), form, (form, kind) in REFUSED, tmp_path / "table")


def check_table(schema, form, refused, path):
    sizes = [column.universe.size for column in schema.columns]
    rows = np.stack([np.resize(np.arange(size), 6 * max(sizes)) for size in sizes], axis=1)
    rows[:, -1] = np.arange(len(rows)) % 2
    frame = schema.decode(rows, rng=SeededBits(5))
    try:
        rehearse(schema, form)
    except ValueError as error:
        assert refused and re.search(rf"column 'x\d+': cannot be written as {form}", str(error))
        return
    path = f"{path}.{form}"
    Path(path).write_bytes(written(frame, form, schema))
    ((again, _),) = table_pieces(path, schema)
    for column, values, codes in zip(schema.columns, again, rows.T, strict=True):
        assert (column.codes(values) == codes).all(), column
        # the cells themselves, not their bins alone: what a frame says is what its file says
        assert fields_of(column, values) == fields_of(column, frame[column.name]), column


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "every", [None, pytest.param(6, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.long)]
)
def test_what_is_written_is_read_as_it_was_released(kind, form, every, tmp_path):
    """Of no dtype, of a sixth of them, so that every dtype meets every kind and every format, and of all."""
    start = ([*KINDS].index(kind) + [*FORMATS].index(form)) % (every or 1)
    check(kind, form, (None, *(DTYPES[1 + start :: every] if every else ())), tmp_path)


@pytest.mark.parametrize("dtype", FORBIDDEN)
@pytest.mark.parametrize("kind", ["yes/no", "cuts", "days"])
def test_other_dtypes_are_refused_in_one_sentence(kind, dtype):
    assert dtype_of(dtype) is None
    with pytest.raises(ValueError, match=r"column 'x': dtype '.*' cannot hold its values"):
        Column("x", KINDS[kind], dtype=dtype)
    if kind != "yes/no":
        with pytest.raises(ValueError, match="column 'x': dtype \"category\" is for listed values"):
            Column("x", KINDS[kind], dtype="category")


def test_a_day_without_a_midnight_is_that_day():
    """In Sao Paulo summer time began at midnight: 2010-10-17 has no 00:00, and 2010-02-20 has 23:00 twice."""
    column = Column(
        "x", Dates(["2010-10-17"], "2010-02-20", "2010-10-18"), dtype="datetime64[ns, America/Sao_Paulo]"
    )
    codes, texts = column.written(column.ends()[0])
    assert [texts[code] for code in codes] == ["2010-02-20", "2010-10-16", "2010-10-17", "2010-10-18"]


def test_fields_are_spelled_as_the_schema_spells_them(tmp_path):
    gaps = ("NA", "-")
    schema = Schema(
        (
            Column("code", Categories([1, 2]), missing=True, gaps=gaps, dtype="float64"),
            Column("yes", Flag(["J"], ["N"]), missing=True),
            Column("one", Flag([1], [0]), dtype="bool"),
            Column("at", KINDS["moments"]),
        )
    )
    frame = schema.decode(np.array([[0, 1, 1, 0], [2, 2, 0, 1]]), middle=True)
    assert written(frame, "csv", schema).decode().splitlines() == [
        "code,yes,one,at",
        "1,J,1,2005-01-01T05:59:59",
        "NA,,0,2005-01-01T15:00:14",
    ]
    assert written(frame, "jsonl", schema).decode().splitlines() == [
        '{"code":1,"yes":"J","one":1,"at":"2005-01-01T05:59:59"}',
        '{"code":null,"yes":null,"one":0,"at":"2005-01-01T15:00:14"}',
    ]


def test_numbers_keep_all_their_digits_in_every_format():
    schema = Schema((Column("x", Cuts(["0.000000000001"], -1, 1)),))
    frame = pd.DataFrame({"x": [0.12345678901234, 1e-14, -1e-12]})
    for form in ("csv", "jsonl"):
        text = written(frame, form, schema).decode()
        assert all(digits in text for digits in ("0.12345678901234", "0.00000000000001", "-0.000000000001"))


@pytest.mark.parametrize("separator", [",", ";"])
def test_line_ends_of_any_kind_are_quoted(separator, tmp_path):
    """A lone carriage return too: the standard writer quotes it only where it ends lines by it."""
    path = tmp_path / "t.csv"
    schema = Schema((Column("a\rb", Categories(["x\ry", "y\nz"])), Column("1", Integers(0, 1))))
    rows = np.array([[0, 1], [1, 0]])
    assert rehearse(schema, "csv", FileFormat(separator)) > 0
    path.write_bytes(written(schema.decode(rows), "csv", schema, file=FileFormat(separator)))
    read = [
        c.codes(f)
        for c, f in zip(
            schema.columns, next(table_pieces(str(path), schema, file=FileFormat(separator)))[0], strict=True
        )
    ]
    assert np.stack(read, axis=1).tolist() == rows.tolist()
    assert path.read_bytes().count(b"\n") == 4


def test_names_that_look_like_values_are_names_where_the_schema_has_them(tmp_path):
    path = tmp_path / "t.csv"
    schema = Schema((Column("1", Integers(0, 9)), Column("0", Flag())))
    rehearse(schema, "csv")
    path.write_text("1,0\n5,1\n7,0\n")
    assert read_table(str(path), schema).n == 2


def test_without_a_schema_values_are_spelled_by_their_dtypes():
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["2005-01-01", None]),
            "at": pd.to_datetime(["2005-01-01 12:30", "2005-01-02 00:00"]),
            "on": pd.Series([date(2005, 1, 1), None], dtype=object),
            "yes": pd.Series([True, None], dtype="boolean"),
            "x": [0.1, np.nan],
            7: [1, 2],
        }
    )
    assert written(frame, "csv").decode().splitlines() == [
        "day,at,on,yes,x,7",
        "2005-01-01,2005-01-01T12:30:00,2005-01-01,true,0.1,1",
        ",2005-01-02T00:00:00,,,,2",
    ]
    assert written(frame, "jsonl").decode().splitlines()[1] == (
        '{"day":null,"at":"2005-01-02T00:00:00","on":null,"yes":null,"x":null,"7":2}'
    )


def test_a_value_that_the_schema_does_not_cover_is_not_written():
    schema = Schema((Column("x", Integers(0, 3)),))
    with pytest.raises(ValueError, match="column 'x' has values that its schema does not cover"):
        written(pd.DataFrame({"x": [4]}), "csv", schema)


def test_a_text_that_utf8_cannot_write_is_refused_at_once():
    for make in (
        lambda: Column("\udce9", Flag()),
        lambda: Column("x", Categories(["a", "\udce9"])),
        lambda: Column("x", Flag(["\ud800"], ["n"])),
        lambda: Column("x", Flag(), missing=True, gaps=("\udce9",)),
    ):
        with pytest.raises(ValueError, match="that UTF-8 cannot write"):
            make()


TIMES = """
valid = ["b | `seen>=2005-01-01T12:00`"]
columns.seen = { kind = "dates", cuts = ["2005-01-01T12:00"], range = ["2005-01-01", "2005-01-01"] }
columns.b = { kind = "bool" }
"""


@pytest.fixture
def folder(workdir):
    rows = [f"2005-01-01T{hour:02}:30:00,{int(hour < 12)}" for hour in range(24)] * 10
    (workdir / "d.csv").write_text("seen,b\n" + "\n".join(rows) + "\n")
    (workdir / "s.toml").write_text(TIMES)
    return workdir


def generate(capfd, *more):
    return called(capfd, "generate", "d.csv", "--schema", "s.toml", "--epsilon", "50", *more)


PAID = ("--ledger", "l", "--budget", "60")


@pytest.mark.parametrize(
    ("schema", "more", "message"),
    [
        ('kind = "cuts"\ncuts = [10000, 20000]\nrange = [0, 40000]\ndtype = "int16"', (), "dtype 'int16'"),
        ('kind = "dates"\ncuts = [1990]\nrange = [1980, 1999]\ndtype = "period[D]"', (), "dtype 'period"),
        (
            'kind = "bool"\ntrue = [1]\nfalse = ["no"]\ndtype = "object"',
            ("-o", "o.parquet"),
            "column 'x': cannot be written as parquet",
        ),
        *(
            ('kind = "bool"', ("-o", "o.csv", "--report", "o.html", option, "caf\udce9"), option)
            for option in ("--title", "--publisher", "--table")
        ),
        ('kind = "bool"', ("-o", "o.csv", "--rows", str(10**6)), "rows: 1000000 rows of 2 columns need"),
    ],
)
def test_what_cannot_be_written_is_refused_before_it_is_paid(
    workdir, monkeypatch, capfd, schema, more, message
):
    (workdir / "d.csv").write_text("x,b\n" + "1,1\n" * 50)
    (workdir / "s.toml").write_text(f'[columns.x]\n{schema}\n[columns.b]\nkind = "bool"\n')
    monkeypatch.setattr(memory, "memory_limit", lambda: 10**8)
    code, _, err = generate(capfd, *more, *PAID)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
    assert {path.name for path in workdir.iterdir()} == {"d.csv", "s.toml"}


def test_the_disk_is_reserved_before_it_is_paid(folder, capfd, monkeypatch):
    asked = []

    def full(handle, start, size):
        asked.append(size)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        code, _, err = generate(capfd, "-o", "o.csv", *PAID)
    assert (code, err) == (3, "smalldb: o.csv: no space left on device\n")
    assert Ledger("l").read().spent == 0
    assert {path.name for path in folder.iterdir()} == {"d.csv", "s.toml", "l"}
    code, _, err = generate(capfd, "-o", "o.csv", "--quiet", *PAID)
    assert code == 0, err
    assert 240 * len("2005-01-01T12:30:00,true\n") <= asked[0] < 240 * 30
    assert (folder / "o.csv").read_bytes().count(b"\n") == 241


def test_rows_are_refused_by_the_memory_there_is_with_the_number_that_fits(monkeypatch):
    frame = pd.DataFrame({"a": [0, 1] * 50, "b": [1, 1] * 50})
    monkeypatch.setattr(memory, "memory_limit", lambda: 100 * 2 * memory.BYTES_PER_FIELD - 1)
    with pytest.raises(ValueError, match=r"rows: 100 rows of 2 columns need .* take at most 99 rows"):
        smalldb.release(frame, epsilon=1, rows=100)
    assert len(smalldb.release(frame, epsilon=1, rows=99).data) == 99
    monkeypatch.setattr(memory, "memory_limit", lambda: None)
    assert len(smalldb.release(frame, epsilon=1, rows=100).data) == 100


@pytest.mark.parametrize("columns", [[0, 1], ["0", 1], [("a", 0), ("a", 1)]])
def test_columns_keep_names_that_are_no_texts(columns):
    frame = pd.DataFrame([[0, 1], [1, 1]] * 20)
    frame.columns = columns
    tables = "".join(f'[columns."{name}"]\nkind = "bool"\n' for name in columns)
    assert list(smalldb.generate(frame, schema=tables, epsilon=1).columns) == columns
    assert list(smalldb.generate(frame, epsilon=1).columns) == columns
    frame.columns = [0, "0"]
    with pytest.raises(ValueError, match="two columns"):
        smalldb.generate(frame, schema='[columns.0]\nkind = "bool"\n', epsilon=1)


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("locale", "more"),
    [
        ({"PYTHONIOENCODING": "ascii"}, ()),
        (C_LOCALE, ("-o", "o.csv", "--record", "r.json", "--json")),
        (C_LOCALE, ("-o", "o.jsonl", "--report", "o.html")),
    ],
)
def test_what_is_written_is_utf8_whatever_the_locale(tmp_path, locale, more):
    (tmp_path / "d.csv").write_text("größe,b\n" + "日本,1\né,0\n" * 30, encoding="utf-8")
    (tmp_path / "s.toml").write_text(
        '[columns."größe"]\nkind = "categories"\nvalues = ["日本", "é"]\n[columns.b]\nkind = "bool"\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "smalldb", "generate", "d.csv", "--schema", "s.toml", "--epsilon", "9"]
    done = subprocess.run(
        [*command, *more, *PAID[:3], "9"], cwd=tmp_path, capture_output=True, env=os.environ | locale
    )
    assert done.returncode == 0, done.stderr
    content = (tmp_path / more[1]).read_bytes() if more else done.stdout
    assert content.decode("utf-8").count("é") > 5
    if "--json" in more:
        assert "größe" in str(json.loads(done.stdout.decode("utf-8")))
