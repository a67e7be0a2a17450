"""Tables of several Parquet files: folders, partitions and patterns have the rows of one file."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calling import called
from test_readers_formats import same

from queries import DataError
from smalldb.files.inputs import files_of
from smalldb.schema import parse_schema
from smalldb.schema.table_readers import read_columns, read_table

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

SCHEMA = """
columns.year = { kind = "integers", range = [2020, 2022] }
columns.town = { kind = "categories", values = ["Aix", "a/b c"], missing = true }
columns.age = { kind = "cuts", cuts = [18, 65], range = [0, 110] }
"""


def frame(n=300):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "year": rng.integers(2020, 2023, n),
            "town": rng.choice(np.array(["Aix", "a/b c", None], dtype=object), n),
            "age": rng.integers(0, 110, n),
        }
    )


@pytest.fixture
def expected():
    return parse_schema(SCHEMA).encode(frame())


@pytest.fixture
def folder(tmp_path):
    """A folder as Spark, Dask and pyarrow write it, by year and town."""
    path = tmp_path / "people"
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    parquet.write_to_dataset(table, path, partition_cols=["year", "town"])
    (path / "_metadata").write_bytes(b"no Parquet")
    (path / ".part.parquet.crc").write_bytes(b"no Parquet")
    (path / "_common.parquet").write_bytes(b"no Parquet")
    (path / "notes.txt").write_text("no Parquet")
    return str(path)


def test_a_folder_of_partitions_has_the_rows_of_one_file(folder, expected, tmp_path, capfd):
    schema = parse_schema(SCHEMA)
    assert len(files_of(folder)) == 9
    same(read_table(folder, schema), expected)
    same(read_table(os.path.join(folder, ""), schema), expected)
    assert {*read_columns(folder)} == {"age", "year", "town"}
    keys = parse_schema(
        "ignore = ['age', 'town']\ncolumns.year = { kind = 'integers', range = [2020, 2022] }"
    )
    assert (
        read_table(folder, keys).histogram().tolist() == frame()["year"].value_counts().sort_index().tolist()
    )
    text = tmp_path / "s.toml"
    text.write_text(SCHEMA)
    given = ["generate", folder, "--schema", text, "--epsilon", 1, "--rows", 5, "--quiet"]
    code, out, err = called(capfd, *given)
    assert (code, out.count("\n"), err) == (0, 6, "")
    assert called(capfd, "schema", "init", folder)[1].count("[columns.") == 3


@pytest.mark.parametrize("pattern", ["*.parquet", "part-[0-9].parquet", "**/*.parquet", "part-?.parquet"])
def test_a_pattern_has_the_rows_of_all_its_files(tmp_path, expected, pattern):
    for k, rows in enumerate(np.array_split(np.arange(300), 4)):
        part = frame().iloc[rows]
        part = part[["age", "year", "town"]] if k == 2 else part  # columns in another order
        part.to_parquet(tmp_path / f"part-{k}.parquet", index=False)
    same(read_table(str(tmp_path / pattern), parse_schema(SCHEMA)), expected)


def test_partitions_that_a_pattern_leaves_open_are_columns(folder, expected):
    same(read_table(f"{folder}/year=*/**/*.parquet", parse_schema(SCHEMA)), expected)
    part = parse_schema(
        "ignore = ['age']\ncolumns.town = { kind = 'categories', values = ['Aix', 'a/b c'],missing = true }"
    )
    found = read_table(f"{folder}/year=2021/*/*.parquet", part)
    assert found.n == (frame()["year"] == 2021).sum()
    frame().to_parquet(f"{folder}/a[1].parquet", index=False)
    frame().iloc[:5].to_parquet(f"{folder}/a1.parquet", index=False)
    same(read_table(f"{folder}/a[1].parquet", parse_schema(SCHEMA)), expected)  # a name that exists is none


def test_what_is_wrong_is_told_of_the_whole_and_not_of_a_file_whose_name_is_data(folder, tmp_path):
    schema = parse_schema(SCHEMA)
    for nothing in (str(tmp_path / "*.parquet"), str(tmp_path / "empty")):
        os.makedirs(tmp_path / "empty", exist_ok=True)
        with pytest.raises(ValueError, match="there are no Parquet files"):
            read_table(nothing, schema)
    last = files_of(folder)[-1]
    content = Path(last).read_bytes()
    pd.DataFrame({"years": [1]}).to_parquet(last, index=False)
    with pytest.raises(ValueError, match="its files do not all have the same columns") as caught:
        read_columns(folder)
    assert "town=" not in str(caught.value)
    pd.DataFrame({"age": [1], "year": [2020]}).to_parquet(last, index=False)
    with pytest.raises(ValueError, match="column 'year' is in the files and in the names of folders"):
        read_table(folder, schema)
    with open(last, "wb") as file:
        file.write(content[:4] + b"\0" * (len(content) - 300) + content[-296:])
    with pytest.raises((ValueError, DataError), match="people") as caught:
        read_table(folder, schema)
    assert "town=" not in str(caught.value)


def test_a_folder_that_changes_meanwhile_is_refused(folder):
    schema = parse_schema(SCHEMA)

    def watch(pieces):
        yield next(pieces)
        frame().to_parquet(os.path.join(folder, "year=2020", "more.parquet"))
        yield from pieces

    with pytest.raises(ValueError, match="changed while it was read"):
        read_table(folder, schema, watch=watch)
