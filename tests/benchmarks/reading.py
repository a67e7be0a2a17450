"""Cost of counting a large CSV file: ``python tests/benchmarks/reading.py [--rows N]``.

Ten million rows of raw columns (a number that hardly repeats, ages, categories, yes and no, dates, gaps), the
same 250,000 over and over, are written to a temporary file of about 330 MB and counted through a schema in a
process of its own, whose peak memory is the goal: at most 500 MB. A second file holds yes/no columns alone
and is counted without a schema. Seconds are CPU time of one thread.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

GOAL = 500  # MB
CHUNK = 250_000

SCHEMA = """
columns.income = { kind = "cuts", cuts = [10000, 25000, 50000], range = [0, 200000], missing = true }
columns.age = { kind = "cuts", cuts = [25, 45, 65], range = [0, 110] }
columns.sex = { kind = "categories", values = ["female", "male"], coding = "bits" }
columns.smoker = { kind = "bool", missing = ["NA"] }
columns.joined = { kind = "dates", cuts = [2000, 2010], range = [1980, 2029] }
"""

COUNT = """
import resource, sys
from time import process_time
from smalldb.schema import read_schema
from smalldb.schema.tables import read_csv, read_domain, read_table
data, schema = sys.argv[1:3]
start = process_time()
rows = read_table(data, read_schema(schema)) if schema else read_csv(data, read_domain(data))
seconds = process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print(rows.n, len(rows.counts), seconds, peak)
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


def flags(source: np.random.Generator, rows: int) -> pd.DataFrame:
    """Make yes/no columns."""
    return pd.DataFrame(source.integers(0, 2, size=(rows, 8)), columns=[f"x{i}" for i in range(8)])


def main() -> None:
    """Write the files and count them."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rows", type=int, default=10_000_000)
    rows = options.parse_args().rows
    print("| table | rows | MB of CSV | distinct rows | seconds | rows a second | peak MB | at most 500 MB |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        schema = Path(folder, "schema.toml")
        schema.write_text(SCHEMA, encoding="utf-8")
        for name, make, described in (("raw columns", raw, str(schema)), ("yes/no columns", flags, "")):
            data, piece = Path(folder, "data.csv"), make(np.random.default_rng(0), CHUNK)
            header, _, lines = piece.to_csv(index=False).partition("\n")
            with data.open("w", encoding="utf-8") as file:
                file.write(header + "\n")
                for _ in range(rows // CHUNK):
                    file.write(lines)
            command = [sys.executable, "-c", COUNT, str(data), described]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            n, distinct, seconds, peak = (float(word) for word in said)
            size, met = data.stat().st_size / 1e6, "yes" if peak <= GOAL else "NO"
            print(
                f"| {name} | {n:,.0f} | {size:.0f} | {distinct:,.0f} | {seconds:.1f} | {n / seconds:,.0f} "
                f"| {peak:.0f} | {met} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
