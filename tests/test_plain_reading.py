"""Large CSV files are read as small ones are: by the kernel while lines are plain, by `csv` from there on."""

import csv

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries import DataError, Domain
from smalldb.schema import parse_schema, plain
from smalldb.schema.tables import read_csv, read_table

SCHEMA = parse_schema("""
[columns.age]
kind = "cuts"
cuts = [18, 65]
range = [0, 110]
missing = ["NA"]
[columns.job]
kind = "categories"
values = ["none", "part", "é"]
unknown = "other"
""")
WORDS = [",", "\n", "\r\n", "\r", '"', "\x00", " ", "\ufeff", "\udcff", "17", "NA", "none", "é", "x" * 40]
RECORD = st.sampled_from(["17,none", "NA,é", " 70 ,", ",part", "8e0,x", '"17","a\nb"', "", "1,2,3", "5"])
END = st.sampled_from(["\n", "\n", "\r\n"])
LINES = st.lists(st.builds(str.__add__, RECORD, END), max_size=12).map("".join)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(st.sampled_from([*WORDS[:3], "", "a", "b", "ab", WORDS[5]]), max_size=20), st.integers(1, 3))
def test_the_kernel_splits_as_its_twin(words, width):
    block = ("".join(words) + "\n").encode()
    slots = np.arange(width)[::-1].copy()
    found, expected = plain._split(block, width, slots, width), naive.split(block, width, 50)
    if expected is None:
        assert found is None
        return
    for column in range(width):
        codes, starts, ends = found[slots[column]]
        texts = [block[a:b] for a, b in zip(starts, ends, strict=True)]
        assert [texts[code] for code in codes] == [line[column] for line in expected]
        assert len({*texts}) == len(texts)


def result(path, read):
    """What a reader returns, or refuses."""
    try:
        rows = read(str(path))
    except (DataError, ValueError) as error:
        return type(error)
    return rows.words.tolist(), rows.counts.tolist()


@pytest.mark.slow
@settings(max_examples=300)
@given(
    header=st.sampled_from(
        ["age,job\n", "job,id,age\r\n", "\n\ufeffage,job\n", '"age",job\n', "\ufeffage,job\n"]
    ),
    body=LINES | st.lists(st.sampled_from(WORDS), max_size=12).map("".join),
    block=st.integers(1, 40),
    end=st.booleans(),
)
def test_readers_agree(header, body, block, end, tmp_path_factory):
    text = (header + body if end else (header + body).rstrip("\n")).encode(errors="surrogateescape")
    path = tmp_path_factory.mktemp("plain") / "data.csv"
    path.write_bytes(text)

    def by_schema(path):
        return read_table(path, SCHEMA)

    slow = result(path, by_schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "LEAST", 0)
        patch.setattr(plain, "BLOCK", block)
        assert result(path, by_schema) == slow


def test_a_large_file_of_flags(tmp_path, monkeypatch):
    path, chance = tmp_path / "data.csv", np.random.default_rng(5)
    bits = chance.integers(0, 2, size=(3000, 5))
    path.write_text("a,b,c,d,e\n" + "".join(",".join(map(str, row)) + "\n" for row in bits.tolist()))
    domain = Domain([*"abcde"])
    slow = result(path, lambda path: read_csv(path, domain))
    monkeypatch.setattr(plain, "LEAST", 0)
    monkeypatch.setattr(plain, "BLOCK", 1000)
    with path.open("rb") as file:
        assert plain.begin(file)
        assert sum(len(columns[0]) for columns, _ in plain.plain_pieces(file, 5, [4, 0], "")) == 3000
    assert result(path, lambda path: read_csv(path, domain)) == slow


def test_a_line_longer_than_csv_allows_is_refused_by_both(tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_text("age,job\n1," + "x" * (csv.field_size_limit() + 1) + "\n")
    assert result(path, lambda path: read_table(path, SCHEMA)) is DataError
    monkeypatch.setattr(plain, "LEAST", 0)
    assert result(path, lambda path: read_table(path, SCHEMA)) is DataError
