"""Reading and writing CSV: the same rows as pandas reads, and one clear line for everything else."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries import DataError, Domain, Rows
from smalldb.tables import read_csv, to_csv


def read(tmp_path, text, *arguments):
    path = tmp_path / "data.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_csv(str(path), *arguments)


@pytest.mark.parametrize("example", ["autoworkers", "titanic"])
def test_examples_read_as_pandas_reads_them(example, examples):
    path = examples / f"{example}.csv"
    frame = pd.read_csv(path)
    rows = read_csv(str(path)).rows
    expected = Rows.from_frame(Domain(frame.columns), frame)
    assert (rows.words == expected.words).all()
    assert (rows.counts == expected.counts).all()


def test_columns_are_selected_and_ordered(tmp_path):
    table = read(tmp_path, "a,b,c\n0,1,x\n1,1,\n0,1,y\n", ["b", "a"])
    assert table.rows.domain == Domain(["b", "a"])
    assert table.rows.histogram().tolist() == [0, 0, 2, 1]


def test_spellings_are_kept(tmp_path):
    table = read(tmp_path, "\ufeffa,b\r\nTrue,0\r\n\r\nFALSE, 1 \r\ntrue,0\r\n")
    assert table.booleans == ("a",)
    assert table.rows.histogram().tolist() == [0, 1, 2, 0]
    out = to_csv(table.spelled(pd.DataFrame({"a": [1, 0], "b": [0, 1]})))
    assert out == "a,b\ntrue,0\nfalse,1\n"


@given(st.lists(st.sampled_from(["0", "1"]), min_size=1, max_size=12), st.text("ab,\"' \n", min_size=1))
def test_written_tables_read_back(tmp_path_factory, fields, name):
    name = name.strip() or "x"
    frame = pd.DataFrame({name: [int(f) for f in fields], "other": [True] * len(fields)})
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_text(to_csv(frame), newline="")
    table = read_csv(str(path))
    assert table.rows.domain.attributes == (name, "other")
    assert table.rows.bits()[:, 0] @ table.rows.counts == sum(frame[name])
    assert table.booleans == ("other",)


def test_no_rows_is_an_empty_table(tmp_path):
    assert read(tmp_path, "a,b\n").rows.n == 0


def test_valid_reaches_the_domain(tmp_path):
    assert read(tmp_path, "a,b\n0,1\n", None, "~a | b").rows.domain.size == 3
    with pytest.raises(DataError, match="valid cells"):
        read(tmp_path, "a,b\n1,0\n", None, "~a | b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,a\n0,1\n", "'a' stands more than once"),
        ("a,\n0,1\n", "column name in the first line is empty"),
        ('a,b\n0,"1\n', "not a CSV file"),
        ('a,b\n0,"1"x\n', "not a CSV file"),
        (b"a,b\n0,\xff\n", "not a CSV file in UTF-8"),
        ("a,b\n0\n", "another number of fields"),
        ("a,b\n0,1,1\n", "another number of fields"),
        ("a,b\n0,\n", "'b' has missing values"),
        ("a,b\n0,2\n", "'b' is not spelled 0/1 or true/false"),
        ("a,b\n0,1.0\n", "'b' is not spelled 0/1 or true/false"),
        ("a,b\n0,1\n0,true\n", "'b' is not spelled 0/1 or true/false"),
        ("a,b\n0,secret\n", "'b' is not spelled 0/1 or true/false"),
    ],
)
def test_other_files_are_refused_without_a_value(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, text)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no column 'smokr'; did you mean 'smoker'"):
        read(tmp_path, "smoker,older\n0,1\n", ["smokr"])
    with pytest.raises(OSError, match="No such file"):
        read_csv(str(tmp_path / "none.csv"))


def test_memory_follows_the_distinct_rows(tmp_path):
    bits = np.random.default_rng(0).integers(0, 2, size=(20_000, 3))
    text = io.StringIO()
    csv.writer(text).writerows([["a", "b", "c"], *bits.tolist()])
    table = read(tmp_path, text.getvalue())
    assert len(table.rows.counts) == 8
    assert table.rows.n == 20_000
