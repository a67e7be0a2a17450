"""Cost of counting a table of PostgreSQL: ``python tests/benchmarks/databases.py [--rows N]``.

A server is started by the binaries of the system (Debian: ``apt-get install postgresql``) and holds a table
of whole numbers, decimals, texts, truth and dates. smalldb counts it by its URL, and its twin as a Parquet
file: grouped by DuckDB, and batch by batch. Goal: at most 4 times the seconds of DuckDB. Seconds are those
of the clock, the least of three.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote_plus

import numpy as np
import psycopg
import pyarrow as pa
from pyarrow import parquet

from queries import Rows
from smalldb.schema import parse_schema
from smalldb.schema.table_readers import read_table

sys.path.insert(0, str(Path(__file__).parent.parent))
import postgres

SCHEMA = """
columns.age = { kind = "cuts", cuts = [18, 65], range = [0, 110] }
columns.pay = { kind = "cuts", cuts = [10.5, 20], range = [0, 40] }
columns.town = { kind = "categories", values = ["north", "south"] }
columns.smoker = { kind = "bool" }
columns.joined = { kind = "dates", cuts = [2000], range = [1990, 2020] }
"""
MADE = """
CREATE TABLE people AS SELECT (random() * 90)::int AS age, round((random() * 40)::numeric, 2) AS pay,
(ARRAY['north', 'south'])[1 + (random() > .5)::int] AS town, random() > .5 AS smoker,
DATE '1990-01-01' + (random() * 9000)::int AS joined FROM generate_series(1, {})
"""


def least(read: Callable[[], Rows]) -> tuple[float, Rows]:
    """Return the least of three times, in seconds, and what was read."""
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        found = read()
        times.append(time.perf_counter() - begun)
    return min(times), found


def main() -> None:
    """Make the table, and read it."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rows", type=int, default=1_000_000)
    rows, schema = options.parse_args().rows, parse_schema(SCHEMA)
    with postgres.server() as port, tempfile.TemporaryDirectory() as folder:
        url = f"postgresql+psycopg://ann:{quote_plus(postgres.PASSWORD)}@127.0.0.1:{port}/postgres"
        address, path = f"host=127.0.0.1 port={port} user=ann dbname=postgres", str(Path(folder, "t.parquet"))
        with psycopg.connect(address, password=postgres.PASSWORD) as base:
            base.execute(MADE.format(rows))
            columns = zip(*base.execute("SELECT * FROM people").fetchall(), strict=True)
            parquet.write_table(pa.table(dict(zip(schema.names, columns, strict=True))), path)
        found = {
            "batches of the Parquet twin": least(lambda: read_table(path, schema)),
            "PostgreSQL": least(lambda: read_table(url, schema)),
        }
    if any(
        not np.array_equal(made.histogram(), found["PostgreSQL"][1].histogram()) for _, made in found.values()
    ):
        raise ValueError("the rows that were counted differ")
    print("| rows | read | seconds | of Parquet |")
    print("|---|---|---|---|")
    for name, (seconds, _) in found.items():
        print(
            f"| {rows:,} | {name} | {seconds:.2f} | {seconds / found['batches of the Parquet twin'][0]:.2f} |"
        )


if __name__ == "__main__":
    main()
