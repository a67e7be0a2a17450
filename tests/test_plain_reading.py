"""Large CSV files are read as small ones are: by the kernel while lines are plain, by `csv` from there on."""

import csv
from io import StringIO

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries import DataError, Domain
from smalldb.schema import parse_schema, plain
from smalldb.schema.file_format import SEPARATORS, FileFormat
from smalldb.schema.records import NO_CSV, lines_of, records
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
@given(
    st.lists(st.sampled_from([*WORDS[:3], "", "a", "b", "ab", WORDS[5]]), max_size=20),
    st.integers(1, 3),
    st.sampled_from([*SEPARATORS]),
)
def test_the_kernel_splits_as_its_twin(words, width, sign):
    block = ("".join(words) + "\n").replace(",", sign).encode()
    slots = np.arange(width)[::-1].copy()
    found, expected = plain._split(block, width, slots, width, sign), naive.split(block, width, sign)
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
    sign=st.sampled_from([",", *SEPARATORS]),
    stated=st.booleans(),
)
def test_readers_agree(header, body, block, end, sign, stated, tmp_path_factory):
    whole = (header + body if end else (header + body).rstrip("\n")).replace(",", sign)
    path = tmp_path_factory.mktemp("plain") / "data.csv"
    path.write_bytes((f"sep={sign}\n" * stated + whole).encode(errors="surrogateescape"))

    def by_schema(path):
        return read_table(path, SCHEMA, file=FileFormat(None if stated else sign))

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
        assert plain.begin(file, 1)
        assert sum(len(columns[0]) for columns, _ in plain.plain_pieces(file, 5, [4, 0], "")) == 3000
    assert result(path, lambda path: read_csv(path, domain)) == slow


def test_a_field_longer_than_csv_allows_is_read_by_both(tmp_path, monkeypatch):
    path, limit = tmp_path / "data.csv", csv.field_size_limit()
    long = "x" * (limit + 1)
    schema = parse_schema("ignore = '*'\n[columns.job]\nkind = 'categories'\nvalues = ['none', 'part']")
    for line in (f"{long},none", f'"{long}","none"', f'"{long}\n""\n{long}",part'):
        path.write_text(f"age,job\n1,none\n{line}\n2,part\n")
        slow = result(path, lambda path: read_table(path, schema))
        assert sum(slow[1]) == 3
        with monkeypatch.context() as patch:
            patch.setattr(plain, "LEAST", 0)
            for block in (1 << 22, 1 << 10, 1):
                patch.setattr(plain, "BLOCK", block)
                assert result(path, lambda path: read_table(path, schema)) == slow
    assert csv.field_size_limit() == limit
    for line in (f"1,{long}", f'1,"{long}"'):  # of a column that is described: no category, as other texts
        path.write_text(f"age,job\n{line}\n")
        with pytest.raises(DataError, match="column 'job' has values that its schema does not cover"):
            read_table(str(path), schema)
        with pytest.raises(DataError, match="'job' is not spelled 0/1"):
            read_csv(str(path), Domain(["job"]))


PIECES = ["a", ",", '"', "\n", "\r\n", "\r", "\x00", " ", "é", '""', ",\n"]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.sampled_from(",; "), st.integers(1, 4))
def test_records_are_those_of_csv_whatever_their_length(text, separator, limit):
    text = text.replace(",", separator)
    expected = []
    try:
        for record in csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True):
            expected += [record] if record else []
    except csv.Error:
        expected.append(NO_CSV)
    before = csv.field_size_limit(limit)
    try:
        found = list(records(lines_of(StringIO(text, newline="")), separator))
    finally:
        csv.field_size_limit(before)
    assert found == expected
