"""Reading and writing CSV: the same rows as pandas reads, and one clear line for everything else."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries import DataError, Domain
from smalldb.schema import parse_schema
from smalldb.schema.file_format import FileFormat
from smalldb.schema.table_readers import read_columns, read_csv, read_domain, read_table
from smalldb.schema.table_writers import written


def read(tmp_path, text, *arguments):
    path = tmp_path / "data.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_csv(str(path), read_domain(str(path), *arguments))


def test_columns_are_selected_and_ordered(tmp_path):
    table = read(tmp_path, "a,b,c\n0,1,x\n1,1,\n0,1,y\n", ["b", "a"])
    assert table.domain == Domain(["b", "a"])
    assert table.histogram().tolist() == [0, 0, 2, 1]
    assert read(tmp_path, "a,b\n").n == 0


def test_both_spellings_are_read_and_either_is_written(tmp_path):
    table = read(tmp_path, "\ufeffa,b\r\nTrue,0\r\n\r\nFALSE, 1 \r\ntrue,0\r\n")
    assert table.histogram().tolist() == [0, 1, 2, 0]
    # the spelling of one row says nothing of the others'
    assert read(tmp_path, "a,b\n0,1\n0,true\nFalse,0\n").histogram().tolist() == [1, 2, 0, 0]
    frame = pd.DataFrame({"a": [1, 0], "b": [0, 1]})
    assert written(frame.astype(int), "csv") == b"a,b\n1,0\n0,1\n"
    assert written(frame.astype(bool), "csv", file=FileFormat(";")) == b"a;b\ntrue;false\nfalse;true\n"


@given(
    st.lists(st.sampled_from(["0", "1"]), min_size=1, max_size=12),
    st.text("ab,\"' \n", min_size=1),
    st.sampled_from(["0/1", "true/false"]),
)
def test_written_tables_read_back(tmp_path_factory, fields, name, spelling):
    name = name.strip() or "x"
    frame = pd.DataFrame({name: [int(f) for f in fields], "other": [1] * len(fields)})
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_bytes(written(frame.astype(int if spelling == "0/1" else bool), "csv"))
    table = read_csv(str(path), read_domain(str(path)))
    assert table.domain.attributes == (name, "other")
    assert table.bits()[:, 0] @ table.counts == sum(frame[name])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,a\n0,1\n", "'a' occurs more than once"),
        ("a,\n0,1\n", "column name in the first line is empty"),
        ('a,b\n0,"1\n', "not a CSV file"),
        ('a,b\n0,"1"x\n', "not a CSV file"),
        (b"a,b\n0,\xff\n", "not a CSV file in UTF-8"),
        (b"a,\xff\n0,1\n", "not a CSV file in UTF-8: save it as UTF-8"),
        ("a,b\n0,1\n".encode("utf-16"), "not a CSV file in UTF-8: it is in UTF-16"),
        ("a,b\x01\n0,1\n", r"the name of column 2 holds a control character \(U\+0001\)"),
        ('"a,b\n0,1\n', r"not a CSV file: a quote is not closed.*\(in the first line\)"),
        ("a" * (1 << 22) + ",b\n0,1\n", r"longer than 2\^22 characters"),
        ("\n" * (1 << 22) + ",b\n0,1\n", r"longer than 2\^22 characters"),
        ("a,b\n0\n", "as many fields in every line"),
        ("a,b\n0,1,1\n", "as many fields in every line"),
        ("0,1\n1,1\n", "must hold column names, not data"),
        ("1.0,0.0\n1,1\n", "must hold column names, not data"),
        ("1,1,0\n1,1,1\n", "must hold column names, not data"),
        ("a,b\n0,\n", "'b' has missing values"),
        ("a,b\n0,2\n", "'b' is not spelled 0/1 or true/false"),
        ("a,b\n0,1.5\n", "'b' is not spelled 0/1 or true/false"),
        ("a,b\n0,1.\n", "'b' is not spelled 0/1 or true/false"),
        ("a,b\n0,secret\n", "'b' is not spelled 0/1 or true/false"),
    ],
)
def test_other_files_are_refused_without_a_value(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, text)
    error = caught.value
    assert "secret" not in str(error)
    assert "\n" not in str(error)
    assert error.__context__ is None
    assert isinstance(error, DataError) == (text[:4] in ("a,b\n", b"a,b\n"))


SCHEMA = parse_schema(
    'ignore = ["z"]\ncolumns.x = {kind = "cuts", cuts = [2], range = [0, 9]}\n'
    'columns.j = {kind = "categories", values = ["a"], unknown = "other", missing = true}\n'
    'columns.f = {kind = "bool"}'
)


@pytest.mark.parametrize(
    "line",
    [
        b'{"x": [1], "j": "a", "f": 1}',
        b'{"x": 1, "j": "secret',
        b'{"x": 1, "j": "\xff", "f": 1}',
        b'{"x": 1, "j": "\\ud800", "f": 1}',
        b'{"x": 1, "j": "a", "f": 1, "x": 7}',
        b'{"x": 1, "j": "a", "f": 1, " x": 1}',
        b'[["x", 1], ["j", "a"], ["f", 1]]',
        b"[1]",
        b"1",
    ],
)
def test_what_is_no_json_lines_is_refused(tmp_path, line):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"x": 1, "j": "a", "f": 1}\n' + line + b"\n")
    with pytest.raises(DataError, match="is not JSON lines in UTF-8: an object in each line") as caught:
        read_table(str(path), SCHEMA)
    assert caught.value.__context__ is None
    path.write_bytes(line + b"\n")  # alone it is refused as well
    with pytest.raises(DataError, match="is not JSON lines in UTF-8: an object in each line"):
        read_table(str(path), SCHEMA)
    path.write_bytes(b"[1]\n")
    with pytest.raises(ValueError, match="is empty, or is not JSON lines"):
        read_columns(str(path))


def test_a_key_that_a_line_leaves_out_is_a_gap(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"x": 1, "j": "a", "f": 1}\n{"x": 1, "f": true}\n{"f": 1, "x": 2, "j": null}\n')
    assert [*map(int, read_table(str(path), SCHEMA).codes()[:, 1])] == [0, 2, 2]
    path.write_text('{"x": 1, "j": "a"}\n')
    with pytest.raises(DataError, match="column 'f' has missing values: missing = true"):
        read_table(str(path), SCHEMA)
    with pytest.raises(DataError, match="column 'f' has missing values"):
        read_csv(str(path), Domain(["f"]))


def test_json_lines_have_their_keys_in_any_order_and_no_other_keys(tmp_path):
    path = tmp_path / "data.jsonl"
    for text, taken in {
        "": 0,
        "\n": 0,
        '{"f": 1, "x": 1, "j": "a"}\n{"z": 2, "j": "a", "x": 1, "f": 1}\n': 2,  # z is ignored
        '{"x": 1, "j": "a", "f": 1, "y": 1}\n': None,
    }.items():
        path.write_text(text)
        if taken is None:
            with pytest.raises(DataError, match="no key that is not expected"):
                read_table(str(path), SCHEMA)
        else:
            assert read_table(str(path), SCHEMA).n == taken
    path.write_text('{"b": 1, "a": 0}\n')
    assert [*read_columns(str(path))] == ["a", "b"]
    with pytest.raises(ValueError, match="column 'x' cannot hold counts"):
        read_table(str(path), SCHEMA, counts="x")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((name, "each name in it once") for name in (b"\xff", b"\\ud800", b"x")),
        (b"\\u0000", r"the name of column 1 holds a control character \(U\+0000\)"),
    ],
)
def test_names_of_json_lines_are_names(tmp_path, name, message):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"x": 1, "' + name + b'": 1}\n')
    with pytest.raises(ValueError, match=message):
        read_columns(str(path))


def test_other_columns_are_named_with_their_file(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("ab,c\n0,1\n")
    with pytest.raises(ValueError, match=r"data\.csv has no column 'abc'; did you mean 'ab'"):
        read_csv(str(path), Domain(["abc", "c"]))
    with pytest.raises(ValueError, match=r"data\.csv: the table has no column 'x'"):
        read_table(str(path), SCHEMA)
    for name in ("data.parquet", "data.jsonl"):
        with pytest.raises(ValueError, match="need a schema"):
            read_domain(str(tmp_path / name))
    (tmp_path / "made.jsonl").write_text('{"abc": 0, "c": 1}\n')
    assert read_csv(str(tmp_path / "made.jsonl"), Domain(["abc", "c"])).bits().tolist() == [[0, 1]]
