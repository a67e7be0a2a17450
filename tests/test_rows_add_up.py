"""One row does not change the others: what a table is counted as is the sum of what its rows are, each alone.

Each reader makes a pool of random rows and reads any of them, in any order, as a table. A row alone is one
cell, or refused; a table of rows, its neighbours too, is the sum of these cells, or refused if one row is.
"""

import csv
import io
import json
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from queries import DataError, Domain, Rows
from smalldb.schema import mapping, parse_schema
from smalldb.schema.file_format import FileFormat
from smalldb.schema.readers import csv_files, parquet_files
from smalldb.schema.readers import database_files as sources
from smalldb.schema.readers import json_lines as json_reader
from smalldb.schema.table_readers import read_csv, read_table

COLUMNS_TEXT = """
ignore = ["id"]

[columns.code]
kind = "categories"
values = {values}
unknown = "other"
missing = true
coding = "bits"

[columns.size]
kind = "cuts"
cuts = [2, 9007199254740993]
range = [0, 9007199254740993]
{gaps}

[columns.day]
kind = "dates"
cuts = [2020]
range = [2000, 2039]
{gaps}

[columns.flag]
kind = "bool"
{gaps}
"""
VALUES = ["1", "True", "1.00", "1.0", "a", "A"]
LENIENT = parse_schema(COLUMNS_TEXT.format(values=VALUES, gaps='missing = ["NA"]\nunknown = "missing"'))
STRICT = parse_schema(COLUMNS_TEXT.format(values=VALUES, gaps='missing = ["NA"]'))  # refuses other fields
NAMES = ("code", "size", "day", "flag")
EAST = timezone(timedelta(hours=1))

TEXTS = [
    "1", "True", "true", "0", "1.0", "1.00", " a ", "a", "A", "", "NA", "2", "-0", "2e0", 'x,"y\n', "\ufeff",
    "é",
]  # fmt: skip
TEXTS += ["9007199254740992", "9007199254740993", "2019-12-31", "2020-01-01", "2020-01-01 00:30:00+01:00"]
NUMBERS = [0, 1, 2, 2**53, 2**53 + 1, -3]
ALIKE = [  # values that Python takes for equal, or that are gaps
    [
        1,
        True,
        1.0,
        1 + 0j,
        Decimal("1"),
        Decimal("1.0"),
        Decimal("1.00"),
        Fraction(1),
        np.int64(1),
        np.uint8(1),
    ],
    [1, "1", np.float32(1), np.bool_(True), True, "True", "true", np.str_("1"), b"1"],
    [0, False, 0.0, -0.0, Decimal("-0"), np.False_, "0", "False"],
    [2**53, float(2**53), np.float64(2**53), Decimal(2**53), 2**53 + 1, float(2**53 + 1)],
    [2.5, Fraction(5, 2), Decimal("2.50"), np.float32(2.5), 1e300, float("inf")],
    [datetime(2019, 12, 31, 23, 30, tzinfo=UTC), datetime(2020, 1, 1, 0, 30, tzinfo=EAST)],
    [pd.Timestamp("2019-12-31 23:30", tz=UTC), pd.Timestamp("2020-01-01 00:30", tz=EAST)],
    [date(2020, 1, 1), datetime(2020, 1, 1), pd.Timestamp("2020-01-01"), np.datetime64("2020-01-01")],
    [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s"), Decimal("NaN"), "", "NA", np.float32("nan")],
    ["a", " a ", "A", np.str_("a"), b"a", [1], (1,)],
    [pd.Timedelta(1), pd.Period("2020"), pd.Interval(0, 1), *TEXTS, *NUMBERS],
]
INSTANTS = ["2019-12-31 23:30", "2020-01-01 00:30", "1999-01-01", None]


def gaps(values, chance):
    """The values, at times with a gap among them."""
    return [None if chance.random() < 0.2 else value for value in values] if chance.random() < 0.5 else values


def drawn(values, rows, chance):
    """Few different values, so that rows meet."""
    return chance.choices(chance.sample(values, min(len(values), 3)), k=rows)


def mixed(rows, chance):
    """A column of objects, most of them equal to others."""
    values = [*chance.choice(ALIKE), *chance.choice(chance.choice([ALIKE, [[None]]]))]
    return pd.Series(chance.choices(values, k=rows), dtype=object)


def of(dtype, values, gap=False):
    """A maker of columns of a dtype."""
    return lambda rows, chance: pd.Series(
        gaps(drawn(values, rows, chance), chance) if gap else drawn(values, rows, chance), dtype=dtype
    )


def category(values):
    """A maker of categorical columns, of which not every category occurs."""
    return lambda rows, chance: pd.Series(
        pd.Categorical(gaps(drawn(values, rows, chance), chance), categories=values)
    )


FLOATS = [0.0, -0.0, 1.0, 2.0, 2.5, 0.1, float(2**53), 1e300, float("inf"), float("nan")]
COLUMNS = {
    "texts": of(object, TEXTS, gap=True),
    "bool": of("bool", [True, False]),
    **{name: of(name, [0, 1, 2, 3]) for name in ("int8", "uint16", "int32", "uint64")},
    "int64": of("int64", NUMBERS),
    **{name: of(name, FLOATS[:6]) for name in ("float16", "float32")},
    "float64": of("float64", FLOATS),
    "complex128": of("complex128", [0, 1, 1j]),
    "boolean": of("boolean", [True, False], gap=True),
    **{name: of(name, [0, 1, 2, 3], gap=True) for name in ("Int8", "UInt16", "Int32")},
    "Int64": of("Int64", NUMBERS, gap=True),
    "UInt64": of("UInt64", [0, 1, 2**63, 2**53 + 1], gap=True),
    **{name: of(name, FLOATS[:6], gap=True) for name in ("Float32", "Float64")},
    **{name: of(name, TEXTS, gap=True) for name in ("str", "string[python]")},
    **{f"datetime64[{unit}]": of(f"datetime64[{unit}]", INSTANTS) for unit in ("s", "ns")},
    "datetime64[s, zone]": of(pd.DatetimeTZDtype("s", EAST), INSTANTS),
    "timedelta64[s]": of("timedelta64[s]", [0, 1, None]),
    "period": of("period[M]", ["2020-01", "2019-12", None]),
    "interval": of("interval[int64]", [pd.Interval(0, 1), pd.Interval(1, 2)]),
    "sparse": of(pd.SparseDtype("int64", 1), [0, 1, 2]),
    "category": category(TEXTS),
    "category of numbers": category(NUMBERS),
    "category of floats": category([0.0, 0.1, 1.0, 2.0, 1e300]),
    "category of both": category(["1", 1, "a", 2.5, "2020-01-01"]),
}


def arrow_columns():
    """Makers of Arrow arrays, by their type; pyarrow is an extra."""
    import pyarrow as pa

    decimals = [Decimal("1.00"), Decimal("2.00"), Decimal("0.10")]
    plain = {
        pa.bool_(): [True, False],
        pa.int64(): NUMBERS,
        pa.uint8(): [0, 1, 2],
        pa.uint64(): [0, 2**63],
        pa.float32(): FLOATS[:6],
        pa.float64(): FLOATS,
        pa.string(): TEXTS,
        pa.large_string(): TEXTS,
        pa.decimal128(5, 2): decimals,
        pa.date32(): [date(2019, 12, 31), date(2020, 1, 1)],
        pa.timestamp("us"): [datetime(2019, 12, 31, 23, 30), datetime(2020, 1, 1)],
        pa.timestamp("s", tz="+01:00"): [datetime(2019, 12, 31, 23, 30, tzinfo=UTC)],
        pa.null(): [None],
    }
    made = {kind: (kind, values) for kind, values in plain.items()}
    for kind in (pa.string(), pa.int64(), pa.float64()):
        made[f"dictionary of {kind}"] = (pa.dictionary(pa.int32(), kind), plain[kind])
    return made


def arrow_table(rows, chance):
    import pyarrow as pa

    kinds, made = list(arrow_columns().values()), {}
    for name in NAMES:
        kind, values = chance.choice(kinds)
        fields = gaps(drawn(values, rows, chance), chance)
        if pa.types.is_dictionary(kind):
            made[name] = pa.array(fields, kind.value_type).dictionary_encode()
        else:
            made[name] = pa.array(fields, kind)
    return pa.table(made)


def taken(table, positions):
    return table.take(np.array(positions, dtype=np.int64))


def frame_of(rows, chance):
    """A frame whose columns are each of some dtype."""
    makers = [*COLUMNS.values()]
    made = {name: chance.choice([mixed, chance.choice(makers)])(rows, chance) for name in NAMES}
    return pd.DataFrame({name: made[name] for name in chance.sample(NAMES, len(NAMES))})


def schema_of(chance):
    return chance.choice([LENIENT, STRICT])


def texts_of(rows, chance):
    return [{name: chance.choice(TEXTS) for name in NAMES} for _ in range(rows)]


def frames(rows, chance, folder):
    """A frame whole, in pieces, or with how often each row occurs, which some never do."""
    pool, schema = frame_of(rows, chance), schema_of(chance)
    way = chance.choice(["whole", "pieces", "counts"])
    dtype = chance.choice(["int64", "Int64", object, "str"])  # of the counts

    def read(positions):
        if way == "whole":
            return schema.encode(pool.iloc[positions])
        if way == "pieces":
            cuts = [0, *sorted(chance.choices(range(len(positions) + 1), k=3)), len(positions)]
            parts = [pool[list(NAMES)].iloc[positions[a:b]] for a, b in pairwise(cuts)]
            return schema.count([([part[name] for name in NAMES], None) for part in parts])
        times = Counter(positions)
        stated = pd.Series(list(times.values()), dtype="int64").astype(dtype)
        return schema.encode(pool.iloc[list(times)].reset_index(drop=True).assign(n=stated), counts="n")

    return read


def arrow_frames(rows, chance, folder):
    """A frame of pandas with columns of Arrow, or a table of Arrow, which becomes one of pandas."""
    table, schema = arrow_table(rows, chance), schema_of(chance)
    if chance.random() < 0.5:
        return lambda positions: schema.encode(taken(table, positions))
    pool = table.to_pandas(types_mapper=pd.ArrowDtype)
    return lambda positions: schema.encode(pool.iloc[positions])


def csv_of(records, chance, names):
    """A CSV file, quoted and ended in one of the ways."""
    text = io.StringIO(newline="")
    quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    writer = csv.writer(text, quoting=quoting, lineterminator=chance.choice(["\n", "\r\n"]))
    writer.writerows([names, *([record[name] for name in names] for record in records)])
    return text.getvalue()


def csv_file(rows, chance, folder):
    """A CSV file, in which rows may say how often they occur."""
    pool, schema, path = texts_of(rows, chance), schema_of(chance), folder / "data.csv"
    counts = chance.choice([None, "n"])

    def read(positions):
        records = [pool[i] for i in positions]
        if counts:
            records = [{**pool[i], "n": times} for i, times in Counter(positions).items()]
        text = csv_of(records, chance, (*NAMES, "n") if counts else NAMES)
        path.write_text(text, encoding="utf-8", newline="")
        return read_table(str(path), schema, counts)

    return read


def large_csv_file(rows, chance, folder):
    """A CSV file that is read in blocks, as large ones are."""
    read, block = csv_file(rows, chance, folder), chance.randint(1, 60)

    def in_blocks(positions):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_files, "LEAST", 0)
            patch.setattr(csv_files, "BLOCK", block)
            return read(positions)

    return in_blocks


YES_NO = ["0", "1", "true", "FALSE", " 1 "]


def yes_no_file(rows, chance, folder):
    """Columns of yes and no without a schema, in CSV or JSON lines."""
    spelled = YES_NO + ["2", ""] * (chance.random() < 0.3)
    pool = [{name: chance.choice(spelled) for name in "ab"} for _ in range(rows)]
    lines = chance.random() < 0.5
    path = folder / ("data.jsonl" if lines else "data.csv")

    def read(positions):
        records = [pool[i] for i in positions]
        text = lines_of(records, chance) if lines else csv_of(records, chance, "ab")
        path.write_text(text, encoding="utf-8", newline="")
        return read_csv(str(path), Domain(["a", "b"]))

    return read


def lines_of(records, chance):
    """JSON lines, each with its keys in an order of its own."""
    lines = []
    for record in records:
        shuffled = {name: record[name] for name in chance.sample(list(record), len(record))}
        lines.append(json.dumps(shuffled, ensure_ascii=chance.random() < 0.5) + "\n" * chance.randint(1, 2))
    return "".join(lines)


def json_lines(rows, chance, folder):
    values = [*TEXTS, *NUMBERS, True, False, None, 1.0, 2.5, 1e300, [1]]
    pool, schema, path = [], schema_of(chance), folder / "data.jsonl"
    for i in range(rows):
        pool.append({name: chance.choice(values) for name in NAMES} | chance.choice([{}, {"id": i}]))

    def read(positions):
        path.write_text(lines_of([pool[i] for i in positions], chance), encoding="utf-8")
        return read_table(str(path), schema)

    return read


def parquet(rows, chance, folder):
    from pyarrow.parquet import write_table

    table, schema, path = arrow_table(rows, chance), schema_of(chance), folder / "data.parquet"

    def read(positions):
        write_table(taken(table, positions), path, row_group_size=chance.randint(1, 4))
        return read_table(str(path), schema)

    return read


DUCKDB = {
    "VARCHAR": TEXTS,
    "VARCHAR COLLATE NOCASE": TEXTS,
    "VARCHAR COLLATE NOACCENT": ["e", "é", "a", "A"],
    "BOOLEAN": [True, False],
    "BIGINT": NUMBERS,
    "HUGEINT": [*NUMBERS, 2**100],
    "DOUBLE": FLOATS,
    "FLOAT": FLOATS[:6],
    "DECIMAL(20, 2)": [Decimal("1.00"), Decimal(2), Decimal(2**53 + 1)],
    "DATE": [date(2019, 12, 31), date(2020, 1, 1)],
    "TIMESTAMP": [datetime(2019, 12, 31, 23, 30), datetime(2020, 1, 1)],
    "INTERVAL": ["1 month", "30 days"],
    "TIME WITH TIME ZONE": ["12:00:00+00", "13:00:00+01"],
    "ENUM ('a', 'A', '1')": ["a", "A", "1"],
    "INTEGER[]": [[1], [1, 2]],
}


def duckdb_table(rows, chance, folder):
    import duckdb

    kinds = chance.choices(list(DUCKDB), k=len(NAMES))
    pool = [
        [*(None if chance.random() < 0.1 else chance.choice(DUCKDB[kind]) for kind in kinds)]
        for _ in range(rows)
    ]
    schema, path = schema_of(chance), folder / "data.duckdb"

    def read(positions):
        path.unlink(missing_ok=True)
        with duckdb.connect(str(path)) as base:
            described = ", ".join(f"{name} {kind}" for name, kind in zip(NAMES, kinds, strict=True))
            base.execute(f"CREATE TABLE t ({described})")
            if positions:
                base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [pool[i] for i in positions])
        return read_table(str(path), schema, file=FileFormat(query="t"))

    return read


def yes_no_frames(rows, chance, folder):
    """Columns of yes and no without a schema, whole, in pieces or with counts."""
    dtypes = ["bool", "int8", "uint64", "int64", "boolean", "Int8", "UInt32", "Int64"]
    values = [0, 1] + [2] * (chance.random() < 0.2)
    pool = pd.DataFrame()
    for name in "ba":
        dtype = chance.choice(dtypes)
        made = drawn([0, 1] if dtype in ("bool", "boolean") else values, rows, chance)
        pool[name] = pd.Series(made).astype(dtype)
    domain, way = Domain(["a", "b"]), chance.choice(["whole", "pieces", "counts"])

    def read(positions):
        if way == "counts":
            times = Counter(positions)
            return Rows.from_counts(domain, pool.iloc[list(times)], times.values())
        if way == "pieces":
            cut = chance.randint(0, len(positions))
            parts = pool.iloc[positions[:cut]], pool.iloc[positions[cut:]]
            return Rows.from_frame(domain, parts[0]).plus(Rows.from_frame(domain, parts[1]))
        return Rows.from_frame(domain, pool.iloc[positions])

    return read


READERS = {  # what each needs, and how many of ten thousand tables are its own
    frames: ((), 3100),
    arrow_frames: (("pyarrow",), 1200),
    yes_no_frames: ((), 1500),
    csv_file: ((), 2000),
    large_csv_file: ((), 450),
    yes_no_file: ((), 600),
    json_lines: ((), 700),
    parquet: (("pyarrow",), 400),
    duckdb_table: (("duckdb",), 50),
}


def histogram(read, positions):
    """How often each cell occurs; None: refused."""
    try:
        found = read(positions)
    except DataError:
        return None
    return Counter(dict(zip(map(tuple, found.words.tolist()), found.counts.tolist(), strict=True)))


def added(parts):
    return None if any(part is None for part in parts) else sum(parts, Counter())


def check(reader, number, folder):
    """Compare a random table, and its neighbours, with the sums of their rows; tell whether it was taken."""
    chance = random.Random(f"{reader.__name__} {number}")
    size = chance.randint(2, 5)
    read = reader(size, chance, folder)
    alone = [histogram(read, [i]) for i in range(size)]
    assert all(cell is None or cell.total() == 1 for cell in alone)
    good = [i for i in range(size) if alone[i] is not None]
    table = chance.choices(good if good and chance.random() < 0.8 else range(size), k=chance.randint(1, 6))
    position = chance.randrange(len(table))
    replaced = [*table[:position], chance.randrange(size), *table[position + 1 :]]
    removed = [*table[:position], *table[position + 1 :]]
    for positions in (table, chance.sample(table, len(table)), replaced, removed):
        assert histogram(read, positions) == added([alone[i] for i in positions]), (
            reader.__name__,
            number,
            positions,
        )
    return all(alone[i] is not None for i in table)


@pytest.fixture
def pieces(monkeypatch):
    """Pieces of few rows, so that tables of some rows come in several."""
    for module in (mapping, sources, csv_files, parquet_files):
        monkeypatch.setattr(module, "CHUNK", 3)
    monkeypatch.setattr(json_reader, "RECORDS", 3)


@pytest.mark.parametrize(
    "share", [pytest.param(100, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("reader", READERS)
def test_a_table_is_the_sum_of_its_rows(reader, share, tmp_path, pieces):
    modules, cases = READERS[reader]
    for module in modules:
        pytest.importorskip(module)
    tried = max(2, cases // share)
    assert sum(check(reader, number, tmp_path) for number in range(tried)) >= tried / 5
