"""Texts of strangers, whatever they hold, are taken, or refused in one line without a value of the data.

Ledgers and checkpoints hold checksums, which nobody would guess: where an input has a # in the place of one,
the right one is put there.
"""

import csv
import io
import json
import re
import tempfile
import warnings
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queries import Column, DataError, Domain, Predicates, spec
from queries.rule_tables import RuledOut
from smalldb.accounting import compose_records
from smalldb.files.checkpoints import MARK, Checkpoint
from smalldb.planning import workload_of
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import Account, OutOfBudget
from smalldb.releasing.record import read_record, stated_bound, stated_queries
from smalldb.schema import parse_schema, read_schema
from smalldb.schema.codebook import read_codebook
from smalldb.schema.table_readers import read_columns, read_csv, read_domain, read_table

pytestmark = pytest.mark.slow

ABC = Domain(["a", "b", "c d"])
SCHEMA_TEXT = """
ignore = ["id"]
valid = "smoker | ~`age>=40`"
[columns.age]
kind = "cuts"
cuts = [18, 40]
range = [0, 99]
missing = ["NA"]
[columns.job]
kind = "categories"
values = ["none", "part"]
unknown = "other"
[columns.smoker]
kind = "bool"
[columns.born]
kind = "dates"
cuts = [1990]
range = [1950, 2009]
unknown = "missing"
missing = true
"""
SCHEMA = parse_schema(SCHEMA_TEXT)
FIXED = [  # what refusals say of any data, with digits in it
    *sorted({column.kind.spelling for column in SCHEMA.columns}),
    *("0/1 or true/false throughout", "in UTF-8", "counts add up to 2^62 or more", "2^26 characters"),
]
MORE_SCHEMA_TEXT = """
[columns.at]
kind = "times"
cuts = ["08:00", "12:30"]
missing = true
[columns.rooms]
kind = "integers"
range = [1, 6]
missing = ["NA", -1]
"""
MIXED = [Column("job", ["none", "part", "full"]), Column("age", cuts=[18, 40]), "a", "b"]
RECORD = (
    '{"schema": 1, "mechanism": "census", "candidates": null, "rows": 3, "universe": {}, "versions": {},'
    ' "epsilon": "1/2", "delta": null, "neighbours": "replace-one", "private": true,'
    ' "privacy": {"epsilon": "1/2", "bounded_range": "1/3"}, "queries": {"text": "intervals"},'
    ' "bounds": {"sharp": 0.25}}'
)
SPENT = '{"bounded_range": "1/3", "epsilon": "0.5", "neighbours": "replace-one"}'
SEEDS = {
    "csv": ["a,b\n0,1\n1,1\n", "a\ntrue\nFalse\n", '"a ","b"\r\n"0","1"\r\n', "a,b\n0,7734\n"],
    "table": [
        "id,age,job,smoker,born,n\n1,17,none,true,1989-12-31,2\n2,NA,xq9,0,x,3\n",
        "age,job,smoker,born\n44.5,part,7734,\n",
    ],
    "jsonl": [
        '{"a": 0, "b": true}\n\n{"b": false, "a": "1"}\n',
        '{"age": 17, "job": "none", "smoker": true, "born": "1989-12-31", "n": 2}\n'
        '{"age": "NA", "job": "xq9", "smoker": 0, "born": null, "n": 3}\n',
    ],
    "schema": [
        SCHEMA_TEXT,
        MORE_SCHEMA_TEXT,
        '[columns."a b"]\nkind = "categories"\nvalues = [1, 2]\ncoding = "bits"\n',
    ],
    "spec": ["conjunctions:2:negations + marginals:=1", "predicates: a & `c d`; ~b", "intervals"],
    "predicate": ["a & ~(b | `c d`)", "a ^ b"],
    "rules": ["~(a & b)\n`job=none` | `age>=40`", "a ^ b\n~a | `job=full` & `age<18`"],
    "codebook": [
        "column,value,label\njob,1,none\njob,2,part\n",
        '{"job": ["none", "part"], "age": {"1": "young", "2": "old"}}',
        '{"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}]}',
    ],
    "frame": ["\0\0\1\0\0\0\0\0\1\1\2\0", "\0\2\0\1\2\2\4\4\x00\x11\x22\x33"],
    "parquet": ["\0\1\6\1\0\0\0\0\0\1\1\0", "\x05\x12\6\7\0\0\0\3"],
    "keys": ["\1\2\3\0\0\0\0\0\1\1\2\1\3\2\2\1", "\7\1\2\3\0\0\0\0"],
    "record": [RECORD],
    "ledger": [
        f'# {{"budget": "2", "ledger": 1}}\n# {SPENT}\n# {SPENT}\n# {{"boun',
        '# {"budget": "1/3", "ledger": 1}\n# {"bounded_range": null, "epsilon": "1e-20", '
        '"neighbours": "add-remove"}',
    ],
    "shard": [f"{MARK}\nrun\n0\n[[1, 20], 3.5]\n#\n", f'{MARK}\nrun\n0\n{{"7": "{"9" * 99}"}}\n#\n'],
}


def check(error, data="", path=""):
    """The tool's own errors are of four kinds, one line each; neither they nor their causes name a value."""
    assert type(error) in (ValueError, TypeError, DataError, RuledOut, OutOfBudget), type(error)
    assert "\n" not in str(error) and "\r" not in str(error)
    assert 0 < len(str(error)) < 2000
    header, body = split(data)
    said = ""
    while error is not None:
        said, error = f"{said} {error}".replace(path, ""), error.__cause__ or error.__context__
    for text in FIXED:
        said = said.replace(text, "\n")
    for value in set(re.findall(r"[^\s,\"':{}\[\]]{3,}", body)):
        if re.search(r"[0-9]", value) and value not in header and value not in SCHEMA_TEXT:
            assert value not in said, "a value of the data stands in an error"


def split(data):
    """The names in the first record of a CSV text, which may have several lines, or of JSON, and all else."""
    lines = io.StringIO(data, newline="")
    if data.lstrip("\ufeff \r\n\t").startswith("{"):
        first = next(filter(str.strip, lines)).strip("\ufeff \r\n\t")
        try:
            return "".join(json.loads(first, parse_int=str)), data
        except (ValueError, RecursionError):
            return data, ""
    try:
        names = "".join(next(filter(None, csv.reader(lines)), []))
    except csv.Error:
        return data, ""
    return names, lines.read()


def tried(raw, work, data=""):
    """Do something with a text; the tool may refuse it. Return whether it was taken."""
    try:
        work(raw)
    except (ValueError, TypeError) as error:
        check(error, data, raw)
        return False
    return True


def of_text(work):
    """A target that is given a text."""
    return lambda raw: tried(raw.decode(errors="replace"), work)


def on_file(work, raw, suffix="", data=True):
    """Do something with a file of this content, whose values no error may show where they are data."""
    with tempfile.NamedTemporaryFile(prefix="fuzz", suffix=suffix) as file:
        file.write(raw)
        file.flush()
        return tried(file.name, work, raw.decode(errors="replace") if data else "")


def sealed(lines):
    """The lines of a ledger; a # at the beginning of one gives way to the checksum of all up to it."""
    last = b""
    for line in lines:
        if line.startswith(b"# "):
            last = sha256(last + b" " + line[2:]).hexdigest().encode()
            line = last + line[1:]
        yield line


def fuzz_csv(raw):
    """A CSV file of yes/no columns."""

    def work(path):
        domain = read_domain(path)
        rows = read_csv(path, domain)
        assert rows.n == rows.counts.sum()

    return on_file(work, raw)


def fuzz_table(raw):
    """A CSV file with a schema, and with a column of counts."""
    counts = "n" if b",n" in raw.partition(b"\n")[0] else None
    return on_file(lambda path: read_table(path, SCHEMA, counts), raw)


def fuzz_jsonl(raw):
    """A file of JSON lines, of yes/no columns or with a schema; each line that is not blank is a row."""

    def work(path):
        names = read_columns(path)
        if "age" in names:
            return read_table(path, SCHEMA, "n" if "n" in names else None)
        rows = read_csv(path, Domain([*names]))
        with open(path, encoding="utf-8-sig", newline="") as file:
            assert rows.n == sum(1 for line in file if line.strip())

    return on_file(work, raw, ".jsonl")


def fuzz_schema(raw):
    """A schema."""

    def work(path):
        schema = read_schema(path)
        assert schema.decode(schema.domain.table()[:4]).shape[1] == len(schema.columns)

    return on_file(work, raw, data=False)


@of_text
def fuzz_spec(text):
    """Query classes; what is read says itself in words that are read as the same."""
    read = spec.parse(text)
    assert spec.parse(read.text) == read
    assert "halfspaces" in read.text or read.stated(ABC) >= 0


@of_text
def fuzz_predicate(text):
    """A predicate, as a query and as what can exist."""
    query = Predicates([text]).workload(ABC)
    if query.size:  # a tautology says nothing, a contradiction leaves no cell
        assert Domain(ABC.attributes, valid=text).size == query.matrix()[0].sum()


def fuzz_record(raw):
    """A public record: its queries and its bound, and what it loses together with another."""

    def work(path):
        record = read_record(path)
        tried(stated_queries(record), lambda text: workload_of(text, ABC))
        assert isinstance(stated_bound(record), float | None)
        assert compose_records([record, record], delta="0").epsilon >= 0

    return on_file(work, raw, data=False)


def fuzz_ledger(raw):
    """A ledger: each line with a closing brace counts, or all is refused; one more release adds to it."""
    raw = b"\n".join(sealed(raw.split(b"\n")))

    def work(path):
        account = Ledger(path).read()
        head, *entries = (json.loads(line[65:]) for line in raw.split(b"\n") if b"}" in line)
        assert account.budget == Fraction(head["budget"])
        assert account.spent == sum(Fraction(entry["epsilon"]) for entry in entries)
        assert len(account.records) == len(entries)
        try:
            made = Ledger(path).spend(json.loads(RECORD))
        except (ValueError, TypeError):
            assert Path(path).read_bytes() == raw
            raise
        assert made.spent == account.spent + Fraction(1, 2) <= account.budget
        assert Ledger(path).read() == replace(made, torn=False)

    return on_file(work, raw, data=False)


def fuzz_shard(raw):
    """A part in a checkpoint's folder: read as it was written for this run and place, or refused."""
    *lines, last = raw.split(b"\n")
    if last == b"" and lines and lines[-1] == b"#":
        lines[-1] = sha256(b"\n".join(lines[:-1])).hexdigest().encode()

    def work(folder):
        Path(folder, "000000.shard").write_bytes(b"\n".join([*lines, last]))
        found = Checkpoint(folder, "run").load(0)
        assert raw == b"\n".join([MARK.encode(), b"run", b"0", lines[3], b"#", b""])
        assert repr(found) == repr(json.loads(lines[3]))

    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        return tried(folder, work, "000000.shard\n" + raw.decode(errors="replace"))


@of_text
def fuzz_rules(text):
    """Rules, a line each: what they leave are rows that they allow."""
    domain = Domain(MIXED, text.splitlines())
    table = domain.table()
    assert len(table) == domain.size >= 1
    assert domain.contains(table).all()
    assert Domain(MIXED).contains(table).all()


def fuzz_codebook(raw):
    """A code book, or a Table Schema."""

    def work(path):
        for name, described in read_codebook(path).items():
            assert isinstance(name, str)
            assert {*map(type, described.values)} <= {int, str}

    return on_file(work, raw, ".json" if raw.lstrip()[:1] == b"{" else ".csv", data=False)


VALUES = [
    *(0, 1, True, False, None, 17, 44.5, -1, 1e30, 1990, 2**53 + 1, 2**70, float("nan"), float("inf")),
    *(10**12, np.datetime64(10**12, "s"), pd.Timestamp(np.datetime64(10**12, "s"), tz="UTC")),
    *("none", "part", "xq9", "", " 17", "NA", "1989-12-31", "true", "0", "4_4", "17.0"),
    *("\u0661\u0667", "\x007734", Decimal("17.50"), Fraction(7734, 7), 1 + 0j, b"part", (7734, 1)),
    *(date(1989, 12, 31), datetime(1990, 1, 1), pd.Timestamp("1990-01-01T00:00", tz="UTC"), pd.NaT, pd.NA),
    np.float32(0.1),
]
FITTING = [
    *((17, 44.5, "NA", "17", Decimal(40)), ("none", "part", "xq9"), (True, False, 1, 0, "true")),
    ("1989-12-31", "x", None, date(1990, 1, 1), datetime(1999, 12, 31, 23)),
]
DTYPES = [
    *(None, object, "category", "str", "string", "bool", "boolean", "int8", "int64", "uint64", "Int64"),
    *("UInt8", "float32", "float64", "Float64", "complex128", "datetime64[ns]", "datetime64[s]"),
    *("timedelta64[ns]", "datetime64[ns, UTC]", "period[D]", "Sparse[int64]", "interval"),
    *("datetime64[s, Europe/Berlin]", "int64[pyarrow]", "double[pyarrow]", "string[pyarrow]"),
    *("bool[pyarrow]", "date32[pyarrow]", "timestamp[s][pyarrow]", "timestamp[s, tz=UTC][pyarrow]"),
]
COLUMNS = SCHEMA.names


def columns_of(raw):
    """Four numbers, and then as many columns, in turn: of values that fit and, half of them, of any."""
    kinds, columns = (*raw[:4], 0, 0, 0, 0)[:4], [[], [], [], []]
    for i, position in enumerate(raw[4:40]):
        from_ = FITTING[i % 4] if position < 128 else VALUES
        columns[i % 4].append(from_[position % len(from_)])
    return kinds, [column[: len(columns[3])] for column in columns]


def for_pyarrow(column):
    """The values; to infer a type of numpy's moments and numbers together ends pyarrow 26's process."""
    mixed = len({type(value) for value in column if isinstance(value, np.generic)}) > 1
    return [pd.Timestamp(v) if mixed and isinstance(v, np.datetime64) else v for v in column]


def read(work, *arguments):
    """The rows that are read; None: refused, as the tool refuses."""
    said = "x\n" + " ".join(map(str, VALUES))
    try:
        rows = work(*arguments)
    except (ValueError, TypeError) as error:
        check(error, said)
        return None
    return rows.words.tolist(), rows.counts.tolist()


def fuzz_frame(raw):
    """A data frame of any dtypes: refused only if some row alone would be, and otherwise read row by row."""
    kinds, columns = columns_of(raw)
    dtypes = [DTYPES[kind % len(DTYPES)] for kind in kinds]
    columns = [
        for_pyarrow(column) if str(dtype).endswith("[pyarrow]") else column
        for dtype, column in zip(dtypes, columns, strict=True)
    ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = pd.DataFrame(
                {
                    name: pd.Series(column, dtype=dtype)
                    for name, dtype, column in zip(COLUMNS, dtypes, columns, strict=True)
                }
            )
    except Exception:  # pandas has no such column
        return False
    whole = read(SCHEMA.encode, frame)
    parts = [read(SCHEMA.encode, frame.iloc[[i]]) for i in range(len(frame))]
    assert (whole is None) == (None in parts)
    if whole is not None:
        each = sorted(words for found, _ in parts for words in found)
        assert each == [words for words, times in zip(*whole, strict=True) for _ in range(times)]
    return whole is not None


def fuzz_parquet(raw):
    """A Parquet file of any types, nested ones, decimals and dictionaries among them."""
    import pyarrow as pa
    from pyarrow import parquet

    types = [
        *(None, pa.string(), pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.date32()),
        *(pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.time32("s"), pa.duration("s"), pa.binary()),
        *(pa.timestamp("s", "Europe/Berlin"), pa.timestamp("us", "+02:00"), pa.date64(), pa.time64("ns")),
        *(pa.decimal128(5, 2), pa.decimal256(40, 3), pa.large_string(), pa.null(), pa.list_(pa.int64())),
        *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())),
        *(pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64())),
    ]
    kinds, columns = columns_of(raw)
    length = len(columns[0])
    arrays = []
    for kind, column in zip(kinds, columns, strict=True):
        wanted = types[kind % len(types)]
        if wanted is None:
            column = for_pyarrow(column)
        elif pa.types.is_nested(wanted):
            nested = {"list": [1], "struct": {"a": 7734}, "map": [("a", 1)]}
            column = [nested[re.match("[a-z]+", str(wanted))[0]]] * length
        try:
            arrays.append(pa.array(column, wanted))
        except (ValueError, TypeError, OverflowError, AttributeError, NotImplementedError):  # no such column
            arrays.append(pa.array(["none"] * length))
    with tempfile.NamedTemporaryFile(prefix="fuzz", suffix=".parquet") as file:
        try:
            parquet.write_table(pa.Table.from_arrays(arrays, names=COLUMNS), file.name)
        except ValueError:  # it writes no such column
            return False
        return read(read_table, file.name, SCHEMA) is not None


def fuzz_keys(raw):
    """JSON lines: the same rows in any order of their keys."""
    kinds, columns = columns_of(raw)
    texts = [[v if isinstance(v, int | str | float | None) else str(v) for v in column] for column in columns]
    found = []
    for turned in (False, True):
        lines = []
        for i, row in enumerate(zip(*texts, strict=True)):
            pairs = list(zip(COLUMNS, row, strict=True))
            if turned:
                pairs = pairs[kinds[i % 4] % 4 :] + pairs[: kinds[i % 4] % 4]
            lines.append(json.dumps(dict(pairs)))
        with tempfile.NamedTemporaryFile("w", prefix="fuzz", suffix=".jsonl") as file:
            file.write("\n".join(lines))
            file.flush()
            found.append(read(read_table, file.name, SCHEMA))
    assert found[0] == found[1]
    return found[0] is not None


TARGETS = {name.removeprefix("fuzz_"): work for name, work in globals().items() if name[:5] == "fuzz_"}


WORDS = {
    "csv": [*"\" , 0 1 true FALSE a b 7734 ''".split(), "\n", "\r", "\ufeff", "\x00", " ", "\udc80"],
    "table": [
        *SEEDS["table"][0].replace("\n", ",").split(","),
        *'" , NaN 1e999 -0 99999999999999999999'.split(),
        "\n",
    ],
    "schema": [*SCHEMA_TEXT.split(), "\n", *'[ ] { 1e400 -1 nan 2020-01-01 dtype "category" = \''.split()],
    "spec": "conjunctions marginals : = 2 + negations predicates ; ` a & 9999 \u0662".split(),
    "predicate": [*"a b ` & | ^ ~ ( ) \xe9 True __import__".split(), "`c d`", " ", "\x00"],
    "record": [
        *'{ } [ ] : , " epsilon privacy 1/2 1e9 null true bounded_range NaN -1 0 1e999 \\ud800'.split()
    ],
    "jsonl": [
        *SEEDS["jsonl"][1].replace("\n", " ").split(),
        *["\n", "{", "}", '"', ":", ",", "[", "null", "NaN", "-0", "1e999", "\ufeff", "\x00", "\udc80"],
        *["{}", '{"a": 7734}', '{"a": 1}', "\\ud800"],
    ],
    "ledger": [
        *["# ", "\n", " ", f"# {SPENT}\n", SPENT, '# {"budget": "1", "ledger": 1}\n', *'# { } " :'.split()],
        *[*"1/2 1e9 -1 0 null add-remove epsilon ledger 2 \xe9 \\ud800".split(), "\x00"],
    ],
    "rules": ["a", "`job=part`", "`age>=18`", "&", "|", "~", "(", ")", "\n", "`age<7`", "1"],
    "codebook": [*'column value , " { } [ ] : fields resources 1 -1'.split(), "\n", "\x00"],
    "shard": [MARK, "run", "0", "1", "\n", "#", "[", "]", ",", '"', "null", "NaN", "7734", "\r", "\x00", " "],
}


def mutated(name):
    """Texts of the words of a language, and its seeds with a piece replaced."""
    words = st.lists(st.sampled_from(WORDS[name]) | st.text(max_size=3), max_size=12).map("".join)

    def replaced(seed, at, length, piece):
        return seed[: at % (len(seed) + 1)] + piece + seed[at % (len(seed) + 1) + length :]

    seeds = st.builds(replaced, st.sampled_from(SEEDS[name]), st.integers(0, 999), st.integers(0, 9), words)
    return (words | seeds).map(lambda text: text.encode(errors="surrogatepass"))


EXAMPLES = {"csv": 60, "table": 60, "jsonl": 60, "schema": 60, "record": 30, "ledger": 100, "shard": 100}
EXAMPLES |= {"rules": 50, "codebook": 100, "spec": 200, "predicate": 200}
EXAMPLES |= {"frame": 75, "parquet": 30, "keys": 30}  # these are read byte by byte


@pytest.mark.parametrize("name", EXAMPLES)
def test_texts_and_tables_of_any_kind(name):
    if name == "parquet":
        pytest.importorskip("pyarrow")

    @settings(max_examples=EXAMPLES[name], suppress_health_check=[HealthCheck.too_slow])
    @given(mutated(name) | st.binary(max_size=60) if name in WORDS else st.binary(max_size=28))
    def run(raw):
        TARGETS[name](raw)

    run()


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_reach_what_is_behind_the_parser(name):
    if name == "parquet":
        pytest.importorskip("pyarrow")
    assert TARGETS[name](SEEDS[name][0].encode())


@pytest.mark.parametrize(
    ("error", "data"),
    [
        (KeyError("a"), ""),
        (UnicodeDecodeError("utf-8", b"a", 0, 1, "bad"), ""),
        (ValueError("two\nlines"), ""),
        (ValueError(""), ""),
        (DataError("column 'a' holds 7734"), "a\n7734\n"),
        (DataError("column 'a' holds 7734"), '{"a": 7734}\n'),
        (DataError("column 'a' holds 4.5: a number is written plainly, as 1234.5"), "a\n4.5\n"),
        (DataError("column 'a' holds 0/1"), "a\n0/1\n"),
        (ValueError("bad"), "a\n7734\n"),
    ],
    ids=str,
)
def test_the_check_sees_what_it_is_for(error, data):
    if str(error) == "bad":
        error.__context__ = KeyError("7734")
    with pytest.raises(AssertionError):
        check(error, data)


@pytest.mark.parametrize("text", FIXED)
def test_the_check_takes_what_is_said_of_any_data(text):
    check(DataError(f"bad: {text}"), "a\n" + "\n".join(text[i:] for i in range(len(text))))


@pytest.mark.parametrize("kept", [0, 1])
def test_a_ledger_that_says_less_than_was_spent_is_seen(kept, monkeypatch):
    plain = Ledger.read
    monkeypatch.setattr(
        Ledger, "read", lambda self: Account((made := plain(self)).budget, made.records[:kept], made.torn)
    )
    with pytest.raises(AssertionError):
        TARGETS["ledger"](SEEDS["ledger"][0].encode())


def test_a_part_that_is_read_though_it_is_damaged_is_seen(monkeypatch):
    damaged = SEEDS["shard"][0].replace("[1, 20]", "[1, 21]").replace("#", "0" * 64).encode()
    assert not TARGETS["shard"](damaged)
    monkeypatch.setattr(Checkpoint, "load", lambda *_: [[1, 21], 3.5])
    with pytest.raises(AssertionError):
        TARGETS["shard"](damaged)


DEEP = [
    ("schema", "x = " + "[" * 100_000),
    ("schema", "x" + ".a" * 2000 + " = 1"),
    ("schema", "a = " + "9" * 5000),
    ("spec", "+".join(["parities:1"] * 9000)),
    ("spec", "predicates:" + "~" * 9000 + "a"),
    ("spec", "marginals:" + "9" * 99),
    ("predicate", "(" * 5000 + "a" + ")" * 4000),
    ("predicate", "~" * 9999 + "a"),
    ("predicate", "a & " * 2499 + "a"),
    ("predicate", "`" + "a" * 9000 + "`"),
    ("csv", '"' * 100_001),
    ("csv", "a" * 200_000 + "\n0\n"),
    ("csv", "a,b\n" * 3000),
    ("csv", "a\n" + "0" * 200_000),
    ("table", "id,age,job,smoker,born\n" + "," * 200_000),
    ("table", "age,job,smoker,born\n" + "9" * 9999 + ",none,1,\n"),
    ("jsonl", '{"a": ' + "[" * 100_000),
    ("jsonl", '{"a": ' + "9" * 5000 + "}"),
    ("jsonl", '{"' + "a" * 200_000 + '": 0}\n'),
    ("codebook", "column,value\na"),
    ("codebook", '{"a": ' + "[" * 100_000),
    ("codebook", '{"resources": []}'),
    ("codebook", '{"a": [' + "9" * 5000 + "]}"),
    ("rules", "~" * 9999 + "a"),
    ("rules", "a\n" * 3000),
    ("rules", "`age>=" + "9" * 5000 + "`"),
    ("record", '{"a": ' * 100_000),
    ("record", '{"bounds": {"sharp": 1' + "0" * 400 + "}}"),
    ("record", '{"epsilon": ' + "9" * 5000 + "}"),
    ("ledger", "# " + '{"a": ' * 100_000 + "}"),
    ("ledger", '# {"budget": "' + "9" * 5000 + '", "ledger": 1}'),
    ("ledger", '# {"budget": "1", "ledger": ' + "9" * 5000 + "}"),
    ("ledger", "#" * 100_000),
    ("ledger", "\n" * 100_000),
    ("shard", f"{MARK}\nrun\n0\n" + "[" * 100_000 + "\n#\n"),
    ("shard", f"{MARK}\nrun\n0\n" + "9" * 5000 + "\n#\n"),
    ("shard", f"{MARK}\nrun\n0\n\n#\n"),
]


@pytest.mark.parametrize(("name", "text"), DEEP, ids=lambda text: text[:9])
def test_long_and_deep_texts(name, text):
    TARGETS[name](text.encode())
