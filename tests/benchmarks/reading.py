"""Cost of counting a large CSV file: ``python tests/benchmarks/reading.py [--rows N]``.

Three tables are written to temporary files: raw columns (a number that hardly repeats, ages, categories, yes
and no, dates, gaps), 14 columns of places, and 60 columns of yes and no. Each is counted by smalldb, and read
by pandas, pyarrow and DuckDB (which groups its rows) where they are installed, each in a process of its own.
Goals: at most 3 times the CPU seconds of pandas, and at most 4 times the packed distinct rows and 500 MB.
Seconds are CPU time of the process, without imports.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

CHUNK = 250_000

SCHEMA = """
columns.income = { kind = "cuts", cuts = [10000, 25000, 50000], range = [0, 200000], missing = true }
columns.age = { kind = "cuts", cuts = [25, 45, 65], range = [0, 110] }
columns.sex = { kind = "categories", values = ["female", "male"], coding = "bits" }
columns.smoker = { kind = "bool", missing = ["NA"] }
columns.joined = { kind = "dates", cuts = [2000, 2010], range = [1980, 2029] }
"""
PLACES = (9, 8, 16, 16, 7, 15, 6, 5, 2, 11, 8, 9, 42, 2)
LISTED = "".join(
    f'columns.c{i} = {{ kind = "categories", values = {list(range(k))} }}\n' for i, k in enumerate(PLACES)
)
READERS = {  # what is imported, and what is measured
    "smalldb": (
        "from smalldb.schema import read_schema\nfrom smalldb.schema.tables import *",
        "rows = read_table(data, read_schema(schema)) if schema else read_csv(data, read_domain(data))\n"
        "size = rows.words.nbytes + rows.counts.nbytes",
    ),
    "pandas": ("import pandas", "pandas.read_csv(data)"),
    "pyarrow": ("import pyarrow.csv", "pyarrow.csv.read_csv(data)"),
    "DuckDB, grouped": (
        "import duckdb",
        "duckdb.sql('SET threads = 1')\n"
        "duckdb.sql(f\"SELECT count(*) FROM (SELECT * FROM read_csv('{data}') GROUP BY ALL)\").fetchall()",
    ),
}
MEASURED = """
import resource, sys
from time import process_time
data, schema = sys.argv[1:3]
size = 0
{}
start = process_time()
{}
print()
print(process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, size / 1e6)
"""


def raw(source: np.random.Generator, rows: int) -> pd.DataFrame:
    """Make raw columns."""
    days = source.integers(0, 15_000, rows).astype("timedelta64[D]")
    return pd.DataFrame(
        {
            "income": pd.Series(source.lognormal(10, 0.7, rows).round(2)).mask(source.random(rows) < 0.05),
            "age": source.integers(0, 105, rows),
            "sex": source.choice(["female", "male"], rows),
            "smoker": source.choice(["true", "false", "NA"], rows),
            "joined": (np.datetime64("1985-01-01") + days).astype(str),
        }
    )


def places(source: np.random.Generator, rows: int) -> pd.DataFrame:
    """Make columns of places, some of which are rare."""
    return pd.DataFrame(
        {f"c{i}": (source.random(rows) ** 3 * k).astype(np.int64) for i, k in enumerate(PLACES)}
    )


def flags(source: np.random.Generator, rows: int) -> pd.DataFrame:
    """Make yes/no columns."""
    return pd.DataFrame(source.integers(0, 2, size=(rows, 60)), columns=[f"x{i}" for i in range(60)])


def main() -> None:
    """Write the files and read them."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rows", type=int, default=10_000_000)
    rows = options.parse_args().rows
    print("| table | rows | MB of CSV | reader | CPU seconds | of pandas | peak MB | goals met |")
    print("|---|---|---|---|---|---|---|---|")
    for name, make, described in (("raw", raw, SCHEMA), ("places", places, LISTED), ("yes/no", flags, "")):
        with tempfile.TemporaryDirectory() as folder:
            schema, data, source = Path(folder, "s.toml"), Path(folder, "data.csv"), np.random.default_rng(0)
            schema.write_text(described, encoding="utf-8")
            for done in range(0, rows, CHUNK):
                piece = make(source, min(CHUNK, rows - done))
                piece.to_csv(data, index=False, header=not done, mode="a")
            found = {}
            for reader, parts in READERS.items():
                command = [sys.executable, "-c", MEASURED.format(*parts), data, schema if described else ""]
                said = subprocess.run(list(map(str, command)), capture_output=True, text=True)
                if said.returncode == 0:  # else it is not installed
                    found[reader] = [float(word) for word in said.stdout.splitlines()[-1].split()]
            size = data.stat().st_size / 1e6
        for reader, (seconds, peak, packed) in found.items():
            of_pandas = seconds / found["pandas"][0]
            met = ("yes" if of_pandas <= 3 and peak <= 4 * packed + 500 else "NO") if packed else ""
            print(
                f"| {name} | {rows:,} | {size:.0f} | {reader} | {seconds:.1f} | {of_pandas:.2f} "
                f"| {peak:.0f} | {met} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
