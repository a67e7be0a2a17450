"""The same table through every format: one histogram, row by row, and back again."""

import gzip
import os
import random
import sys
import threading
import zipfile
from itertools import product

import numpy as np
import pandas as pd
import pytest

import smalldb
from queries import DataError, Domain
from smalldb.cli import main
from smalldb.releasing.table_source import file_source
from smalldb.schema import parse_schema
from smalldb.schema.file_format import FileFormat, as_encoding
from smalldb.schema.readers import csv_files
from smalldb.schema.readers.compressed import compress
from smalldb.schema.readers.registry import READERS, SUFFIXES, reader_of
from smalldb.schema.table_readers import (
    read_columns,
    read_csv,
    read_domain,
    read_form,
    read_table,
    rehearse,
)
from smalldb.schema.table_writers import FORMATS, form_like, form_of, written

SCHEMA = """
columns.age = { kind = "cuts", cuts = [18, 65], range = [0, 110] }
columns.pay = { kind = "cuts", cuts = [10.5, 20], range = [0, 40], missing = ["", "-9,9"] }
columns.town.kind = "categories"
columns.town.values = ["Köln", "Aix; sur | mer", "'s-Hertogenbosch", 'a "b", c']
columns.town.missing = true
columns.smoker = { kind = "bool" }
"""
TOWNS = ["Köln", "Aix; sur | mer", "'s-Hertogenbosch", 'a "b", c', ""]


def rows(n=400, seed=3):
    draw = random.Random(seed)
    return [
        (
            str(draw.randrange(110)),
            draw.choice(["", f"{draw.randrange(400) / 10}"]),
            draw.choice(TOWNS),
            draw.choice(["true", "false"]),
        )
        for _ in range(n)
    ]


def stated(**keys):
    inner = ", ".join(f"{key} = {smalldb.schema.drafting.toml(value)}" for key, value in keys.items())
    return parse_schema(f"file = {{ {inner} }}\n{SCHEMA}")


USUAL = FileFormat()


def spell(table, file=USUAL):
    """A CSV text, written here by hand, so that no code is tested by itself."""
    sign, quote = file.separator or ",", file.quote

    def field(text, number):
        text = text.replace(".", file.decimal) if number else text
        return f"{quote}{text.replace(quote, quote * 2)}{quote}" if quote else text

    lines = [sign.join(field(name, False) for name in ("age", "pay", "town", "smoker"))]
    lines += [sign.join(field(text, c == 1) for c, text in enumerate(row)) for row in table]
    return ("\n".join(lines) + "\n").encode(file.codec)


def same(found, expected):
    assert found.n == expected.n
    assert np.array_equal(found.words, expected.words) and np.array_equal(found.counts, expected.counts)


def every(found):
    """The codes of each row."""
    return np.repeat(found.codes(), found.counts, axis=0)


@pytest.fixture(scope="module")
def expected():
    frame = pd.DataFrame(rows(), columns=["age", "pay", "town", "smoker"], dtype=object)
    return parse_schema(SCHEMA).encode(frame)


SIGNS = product([",", ";", "|", "tab", "space", "^", "\\x01", "§", ":"], ['"', "'"], [".", ","])
ENCODINGS = ["utf-8", "utf-16", "cp1252", "latin-1", "iso8859-15", "mac-roman", "gb18030"]
CSV = [
    *((FileFormat(*signs), "") for signs in SIGNS),
    *product([FileFormat(encoding=encoding) for encoding in ENCODINGS], ["", ".gz", ".zst", ".zip"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "packed"), CSV)
@pytest.mark.parametrize("least", [0, 1 << 30], ids=["pyarrow", "csv"])
def test_csv_of_any_signs_and_encoding_compressed_or_not(
    tmp_path, monkeypatch, expected, file, packed, least
):
    monkeypatch.setattr(csv_files, "LEAST", least)
    path = tmp_path / f"t.csv{packed}"
    path.write_bytes(compress(spell(rows(), file), packed))
    same(read_table(str(path), stated(**file.stated())), expected)
    if (file.quote, file.decimal) == ('"', "."):
        same(read_table(str(path), parse_schema(SCHEMA), file=file), expected)


def test_blocks_and_the_rest_of_a_compressed_file_are_one_table(tmp_path, monkeypatch):
    """pyarrow reads the first blocks, then a line longer than a block comes: the file is sought."""
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(csv_files, "LEAST", 0)
    monkeypatch.setattr(csv_files, "BLOCK", 64)
    lines = [f"{i % 100},{i % 40}.5,Köln,true" for i in range(500)]
    lines[300] = f'7,{" " * 90}1.5,"a ""b"", c",false'
    content = ("age,pay,town,smoker\n" + "\n".join(lines) + "\n").encode()
    (tmp_path / "t.csv").write_bytes(content)
    whole = read_table(str(tmp_path / "t.csv"), parse_schema(SCHEMA))
    assert whole.n == 500
    for packed in (".gz", ".zip"):
        path = tmp_path / f"t.csv{packed}"
        path.write_bytes(compress(content, packed))
        same(read_table(str(path), parse_schema(SCHEMA)), whole)


@pytest.mark.optional
def test_fields_without_quotes_keep_them(tmp_path, monkeypatch):
    schema = "file.quote = ''\n[columns.a]\nkind='categories'\nvalues=['\"x', 'y\"\"']\n"
    path = tmp_path / "t.csv"
    path.write_text('a,b\n"x,1\ny"",2\n"x,3\n')
    for least in (0, 1 << 30):
        monkeypatch.setattr(csv_files, "LEAST", least)
        found = read_table(str(path), parse_schema(f"ignore = ['b']\n{schema}"))
        assert found.histogram().tolist() == [2, 1]


def test_a_decimal_comma_is_of_the_file_and_each_row_is_read_by_itself(tmp_path):
    """A point is no number there, and a text that means a gap is one as it stands."""
    path = tmp_path / "t.csv"
    schema = stated(separator=";", decimal=",")
    lines = {"3;12,5;Köln;1": 1, "3;-9,9;Köln;1": 3, "3;;Köln;1": 3, "3,0;1,5e1;Köln;1": 1}
    for line, code in lines.items():
        path.write_text(f"age;pay;town;smoker\n{line}\n")
        assert read_table(str(path), schema).codes()[0].tolist() == [0, code, 0, 1]
    path.write_text("age;pay;town;smoker\n3;12.5;Köln;1\n")
    with pytest.raises(DataError, match="column 'pay' has values that its schema does not cover"):
        read_table(str(path), schema)
    frame = pd.DataFrame({"age": [3], "pay": [12.5], "town": ["Köln"], "smoker": [True]})
    assert schema.encode(frame).codes()[0].tolist() == [0, 1, 0, 1]
    content = written(frame, "csv", schema)
    assert content.decode() == "age;pay;town;smoker\n3;12,5;Köln;true\n"
    assert written(frame, "jsonl", schema).decode() == ('{"age":3,"pay":12.5,"town":"Köln","smoker":true}\n')


@pytest.mark.slow
@pytest.mark.parametrize("form", [*FORMATS, "csv.gz", "csv.zip", "csv.zst", "jsonl.gz", "jsonl.zip"])
def test_what_is_written_in_any_format_is_read_as_the_same_rows(tmp_path, expected, form):
    if form in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    schema = stated(separator=";", decimal=",", encoding="cp1252")
    path = tmp_path / f"out.{form}"
    assert form_of(str(path)) == form
    assert rehearse(schema, form) > 20
    path.write_bytes(written(schema.decode(every(expected), rng=3), form, schema))
    same(read_table(str(path), schema), expected)


@pytest.mark.optional
def test_bytes_that_an_encoding_has_not_are_refused_and_nothing_of_them_is_told(tmp_path, monkeypatch):
    bad = {"cp1252": b"\x81", "gb18030": b"\xff", "utf-8": b"\xff", "utf-16": b"\x00\xdc"}
    for encoding, byte in bad.items():
        text = "age,pay,town,smoker\n3,1,Köln,1\n"
        head = text.encode(encoding)
        tail = ",1,Köln,1\n".encode("utf-16-le" if encoding == "utf-16" else encoding)
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(head + byte + tail)
        for least in (0, 1 << 30):
            monkeypatch.setattr(csv_files, "LEAST", least)
            with pytest.raises(DataError, match="is not a CSV file in") as caught:
                read_table(str(path), stated(encoding=encoding))
            assert caught.value.__context__ is None


def test_broken_and_mistaken_archives_are_refused_in_a_line(tmp_path):
    schema, content = parse_schema(SCHEMA), spell(rows(20000))
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(content)[:-2000])
    with pytest.raises(
        DataError, match=r"is broken: it is not a \.gz file that can be read to its end"
    ) as caught:
        read_table(str(path), schema)
    assert caught.value.__context__ is None
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.csv\.gz is not a \.gz file"):
        read_table(str(path), schema)
    with pytest.raises(ValueError, match=r"not a \.zip file"):
        (tmp_path / "t.zip").write_bytes(content)
        read_table(str(tmp_path / "t.zip"), schema)
    two = tmp_path / "two.zip"
    with zipfile.ZipFile(two, "w") as archive:
        archive.writestr("a.csv", content)
        archive.writestr("b.csv", content)
    with pytest.raises(ValueError, match=r"two\.zip holds 2 files, not one"):
        read_table(str(two), schema)
    for name in ("t.parquet.gz", "t.arrow.zip"):
        with pytest.raises(ValueError, match="is compressed inside: unpack the"):
            reader_of(str(tmp_path / name))


def test_a_zip_is_read_by_the_name_inside(tmp_path):
    schema = parse_schema("[columns.a]\nkind = 'bool'")
    for name, content in {"a.jsonl": '{"a":1}\n', "a.csv": "a\n1\n", "folder/a.txt": "a\n1\n"}.items():
        with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
            archive.writestr("folder/", "")
            archive.writestr("__MACOSX/x", "y")
            archive.writestr(name, content)
        assert read_table(str(tmp_path / "t.zip"), schema).histogram().tolist() == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.arrow", "t.feather", "t.arrows", "t.parquet"])
def test_arrow_files_and_streams(tmp_path, expected, name):
    pa = pytest.importorskip("pyarrow")
    frame = parse_schema(SCHEMA).decode(every(expected), rng=1)
    table, path = pa.Table.from_pandas(frame, preserve_index=False), str(tmp_path / name)
    match name.split(".")[1]:
        case "parquet":
            pa.parquet.write_table(table, path)
        case "arrows":
            with pa.ipc.new_stream(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=7)
        case _:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=7)
    same(read_table(path, parse_schema(SCHEMA)), expected)
    assert [*read_columns(path)] == ["age", "pay", "town", "smoker"]
    with open(path, "wb") as file:
        file.write(b"age,pay\n")
    with pytest.raises(ValueError, match="file that can be read"):
        read_table(path, parse_schema(SCHEMA))


FORMS = {"a.csv": "csv", "a.csv.gz": "csv.gz", "a": "csv", "a.jsonl": "jsonl", None: "csv"}
FORMS |= {"a.sas7bdat": "csv", "postgresql://host/people": "csv"}  # which can only be read


def test_every_suffix_has_one_reader_and_tables_are_written_as_they_are_read():
    assert {name: form_like(name) for name in FORMS} == FORMS
    assert len(SUFFIXES) == sum(len(reader.suffixes) for reader in READERS)
    assert len({reader.name for reader in READERS}) == len(READERS)
    assert {*FORMATS} <= {reader.name for reader in READERS}
    for suffix, reader in SUFFIXES.items():
        assert reader_of(f"Table{suffix.upper()}") is reader
    assert reader_of("people").name == reader_of("a.dat").name == "csv"


SNIFFED = {
    "age;b\n0;1\n": {"separator": ";"},
    "age\tb\n0\t1\n": {"separator": "\t"},
    "age|b|c d\n": {"separator": "|"},
    "sep=;\nage;b\n": {"separator": ";"},
    "age,b\n": {},
    '"a;b","c|d"\n': {},
    "age\n": {},
}


@pytest.mark.parametrize("text", SNIFFED)
def test_a_draft_takes_what_the_first_line_alone_says(tmp_path, capsys, text):
    path = tmp_path / "t.csv"
    for data in ("", "1,2,3;4\t5\n", "\xff;|\n"):
        path.write_bytes(text.split("\n", 1)[0].encode() + b"\n" + data.encode("latin-1"))
        if not text.startswith("sep"):
            assert read_form(str(path)).stated() == SNIFFED[text]
    path.write_text(text)
    assert main(["schema", "init", str(path)]) == 0
    draft = capsys.readouterr().out
    for value in SNIFFED[text].values():
        assert f"file = {{ separator = {smalldb.schema.drafting.toml(value)} }}" in draft
    path.write_bytes(text.encode("utf-16"))
    assert read_form(str(path)).stated() == {**SNIFFED[text], "encoding": "utf-16"}


def test_a_first_line_in_another_encoding_asks_for_the_option(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_bytes("größe;b\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"such as cp1252 \(--encoding, or file.encoding"):
        read_form(str(path))
    assert main(["schema", "init", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["schema", "init", str(path), "--separator", ";", "--encoding", "Windows-1252"]) == 0
    assert 'encoding = "cp1252"' in capsys.readouterr().out


def test_formats_that_are_none_are_refused_all_at_once(tmp_path):
    text = 'file = { separator = "x", quote = "`", decimal = "·", encoding = "utf-7", sheets = "1" }\n'
    with pytest.raises(ValueError, match="file: unknown key 'sheets'"):
        parse_schema(text + SCHEMA)
    with pytest.raises(ValueError) as caught:
        parse_schema(text.replace(', sheets = "1"', "") + SCHEMA)
    for said in ("file: separator must", "file: quote must", "file: decimal must", "file: encoding must"):
        assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    for name in ("utf-7", "iso2022_jp", "base64", "rot13", "nothing", "utf-16-be", "\0"):
        with pytest.raises(ValueError, match="encoding must be one of"):
            as_encoding(name)
    with pytest.raises(ValueError, match="separator and quote"):
        FileFormat("'", "'")
    with pytest.raises(ValueError, match="encoding: the schema says cp1252, not utf-16"):
        (tmp_path / "t.csv").write_bytes(spell(rows()))
        read_table(str(tmp_path / "t.csv"), stated(encoding="cp1252"), file=FileFormat(encoding="utf-16"))


def test_an_unnamed_first_column_is_an_index_in_files_and_frames(tmp_path):
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [1, 1, 0]}, index=[5, 6, 7])
    path = tmp_path / "t.csv"
    frame.to_csv(path)
    again = pd.read_csv(path)
    assert [*again.columns] == ["Unnamed: 0", "a", "b"]
    schema = parse_schema("[columns.a]\nkind = 'bool'\n[columns.b]\nkind = 'bool'")
    histogram = [0, 1, 1, 1]
    assert read_domain(str(path)) == Domain(["a", "b"])
    assert read_csv(str(path), Domain(["a", "b"])).histogram().tolist() == histogram
    for table in (frame, again, str(path)):
        made = smalldb.release(table, schema=schema, epsilon=1, rows=3, rng=1)
        assert [*made.data.columns] == ["a", "b"]
    same(schema.encode(again), schema.encode(frame))
    same(read_table(str(path), schema), schema.encode(frame))
    one, other = (smalldb.release(table, epsilon=1, rows=3, rng=1) for table in (frame, again))
    assert one.data.equals(other.data) and [*one.data.columns] == ["a", "b"]
    assert main(["schema", "init", str(path), "-o", str(tmp_path / "s.toml")]) == 0
    assert [*smalldb.schema.parsing.tomllib.loads((tmp_path / "s.toml").read_text())["columns"]] == ["a", "b"]
    with pytest.raises(ValueError, match="no column 'Unnamed: 0'"):
        schema.encode(again[["a", "Unnamed: 0", "b"]])


LACKING = {  # the package that a table needs, and the extra that installs it
    "t.csv.zst": ("zstandard", "zstd"),
    "t.parquet": ("pyarrow", "parquet"),
    "t.arrow": ("pyarrow", "parquet"),
    "t.duckdb": ("DuckDB", "duckdb"),
    "t.xlsx": ("openpyxl", "excel"),
    "t.sav": ("pyreadstat", "stats"),
    "t.sas7bdat": ("pyreadstat", "stats"),
    "postgresql://host/people": ("SQLAlchemy", "sql"),
}


@pytest.mark.parametrize("name", LACKING)
def test_the_missing_package_is_named(tmp_path, monkeypatch, name):
    schema, (package, extra) = parse_schema(SCHEMA), LACKING[name]
    for module in (package.lower(), f"{package}.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    path = name if ":" in name else str(tmp_path / name)
    if path != name:
        (tmp_path / name).write_bytes(b"\x28\xb5\x2f\xfd")
    said = rf"{package}: pip install 'smalldb-dp\[{extra}\]'"
    with pytest.raises(ValueError, match=said):
        read_table(path, schema)
    if name not in ("t.duckdb", "t.sas7bdat", path):  # no table is written so
        with pytest.raises(ValueError, match=said):
            form_of(name)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl", "t.dta"])
def test_a_pipe_has_the_format_of_its_name(tmp_path, expected, name):
    schema = parse_schema(SCHEMA)
    form, pipe = name.split(".", 1)[1], tmp_path / name
    content = written(schema.decode(every(expected), rng=1), form, schema)
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[content])
    writer.start()
    source = file_source(str(pipe), schema)
    writer.join()
    same(source.read(), expected)


@pytest.mark.parametrize("form", [*FORMATS, "csv.gz"])
def test_yes_no_columns_are_written_in_every_format(workdir, form):
    if form in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    (workdir / "t.csv").write_text("a,b\n" + "0,1\n1,1\n" * 30)
    schema = parse_schema("[columns.a]\nkind = 'bool'\n[columns.b]\nkind = 'bool'\n")
    given = ["generate", "t.csv", "--epsilon", "1", "--rows", "5", "--quiet", "-o", f"out.{form}"]
    for spelling in ("0/1", "true/false"):
        assert main([*given, "--spelling", spelling]) == 0
        assert read_table(f"out.{form}", schema).n == 5
