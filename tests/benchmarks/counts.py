"""
A release of many rows that DuckDB counts: ``python tests/benchmarks/counts.py 100000000``.

A made table lies in a Parquet file, of which a DuckDB database has a view: incomes that hardly repeat, ages,
towns, truth, dates and small numbers. `smalldb generate --count-in-database` releases 1,000 rows from it.
Beside it DuckDB takes the largest value of each column, and the same command reads the rows of a hundredth of
the table. CPU seconds and peaks are those of whole processes. 10^8 rows take some minutes and 1 GB of disk.
"""

import sys
import tempfile
import time
from pathlib import Path

import duckdb
from million import measured

SCHEMA = """
columns.income = { kind = "cuts", cuts = [10000, 25000, 50000], range = [0, 200000], missing = true }
columns.age = { kind = "cuts", cuts = [25, 45, 65], range = [0, 110] }
columns.town = { kind = "categories", values = ["north", "south", "west"] }
columns.smoker = { kind = "bool" }
columns.joined = { kind = "dates", cuts = [2000, 2010], range = [1980, 2029] }
columns.visits = { kind = "integers", range = [0, 6] }
"""
MADE = """
COPY (
    SELECT
        CASE WHEN random() > .05 THEN round(exp(10 + 1.4 * (random() + random() - 1)), 2) END AS income,
        CAST(floor(random() * 105) AS SMALLINT) AS age,
        ['north', 'south', 'west'][1 + CAST(floor(random() * 3) AS INTEGER)] AS town,
        random() < .2 AS smoker,
        DATE '1985-01-01' + CAST(floor(random() * 15000) AS INTEGER) AS joined,
        CAST(floor(7 * random() * random()) AS TINYINT) AS visits
    FROM range({rows})
) TO '{path}' (FORMAT parquet)
"""
LARGEST = """
import duckdb, sys
print(duckdb.connect(sys.argv[1]).execute(
    "SELECT max(income), max(age), max(town), max(smoker), max(joined), max(visits) FROM people").fetchall())
"""


def main(rows: int) -> None:
    """Make the table and count it."""
    with tempfile.TemporaryDirectory() as folder:
        path, base, schema = (str(Path(folder, name)) for name in ("people.parquet", "t.duckdb", "s.toml"))
        Path(schema).write_text(SCHEMA, encoding="utf-8")
        began = time.perf_counter()
        duckdb.execute(MADE.format(rows=rows, path=path))
        print(f"{rows:,} rows, {Path(path).stat().st_size / 1e6:,.0f} MB, written in", end=" ")
        print(f"{time.perf_counter() - began:.0f} s of the clock")
        with duckdb.connect(base) as made:
            made.execute(f"CREATE VIEW people AS SELECT * FROM '{path}'")
            made.execute(f"CREATE VIEW few AS SELECT * FROM '{path}' LIMIT {rows // 100}")
        release = ["-m", "smalldb", "generate", base, "--schema", schema, "--epsilon", "1", "--rows", "1000"]
        release += ["--quiet", "-o", str(Path(folder, "out.csv")), "--query"]
        measured(*release, "few", "--count-in-database")  # compile
        for name, command in {
            "released from counts": [*release, "people", "--count-in-database"],
            "largest values by DuckDB": ["-c", LARGEST, base],
            "a hundredth, from counts": [*release, "few", "--count-in-database"],
            "a hundredth, from rows": [*release, "few"],
        }.items():
            began = time.perf_counter()
            seconds, peak = measured(*command)
            clock = time.perf_counter() - began
            print(f"{name:25} {seconds:7.1f} CPU s {clock:7.1f} s {peak:6.0f} MB", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000)
