"""Cost of counting a large CSV file: ``python tests/benchmarks/reading.py [--rows N] [--only TABLE]``.

Three tables are written to temporary files: raw columns (a number that hardly repeats, ages, categories, yes
and no, dates, gaps), 14 columns of codes, and 60 columns of yes and no. Each is counted by smalldb, and read
by pandas, pyarrow and DuckDB (which groups its rows) where they are installed, each in a process of its own.
Where Dask is installed two of its workers count the same rows in four files.
Goals: at most 3 times the CPU seconds of pandas, and at most 4 times the packed distinct rows and 500 MB.
Seconds are CPU time of the process, without imports.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable
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
SIZES = (9, 8, 16, 16, 7, 15, 6, 5, 2, 11, 8, 9, 42, 2)
LISTED = "".join(
    f'columns.c{i} = {{ kind = "categories", values = {list(range(k))} }}\n' for i, k in enumerate(SIZES)
)
READERS = {  # what is imported, and what is measured
    "smalldb": (
        "from smalldb.schema import read_schema\nfrom smalldb.schema.table_readers import *",
        "rows = read_table(data, read_schema(schema)) if schema else read_csv(data, read_domain(data))\n"
        "size = rows.words.nbytes + rows.counts.nbytes",
    ),
    "smalldb, 4 files, 2 workers of Dask": (
        "from functools import partial\nfrom distributed import Client, LocalCluster\n"
        "from smalldb.schema import read_schema\nfrom smalldb.schema.fields import tally\n"
        "from smalldb.schema.table_readers import *",
        "parts = [f'{data}.{k}' for k in range(4)]\n"
        "domain = read_schema(schema).domain if schema else read_domain(data)\n"
        "told = (read_table, {'schema': read_schema(schema)}) if schema else (read_csv, {'domain': domain})\n"
        "made = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)\n"
        "with made, Client(made) as client:\n"
        "    tables = client.get_executor().map(partial(told[0], **told[1]), parts)\n"
        "    rows = tally(domain, ((part.codes(), part.counts) for part in tables))",
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
import hashlib, resource, sys
from os import times
data, schema = sys.argv[1:3]
size, rows = 0, None
if __name__ == "__main__":
    exec({!r})
    start = sum(times()[:4])
    exec({!r})
    took = sum(times()[:4]) - start
    own = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
    of = [own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
    held = "" if rows is None else hashlib.sha256(rows.words.tobytes() + rows.counts.tobytes()).hexdigest()
    print()
    print(took, max(of) * 1024 / 1e6, size / 1e6, held)
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


def codes(source: np.random.Generator, rows: int) -> pd.DataFrame:
    """Make columns of codes, some of which are rare."""
    return pd.DataFrame(
        {f"c{i}": (source.random(rows) ** 3 * k).astype(np.int64) for i, k in enumerate(SIZES)}
    )


def flags(source: np.random.Generator, rows: int) -> pd.DataFrame:
    """Make yes/no columns."""
    return pd.DataFrame(
        source.integers(0, 2, size=(rows, 60), dtype=np.uint8), columns=[f"x{i}" for i in range(60)]
    )


def written(table: pd.DataFrame) -> bytes:
    """Write the lines of a table; of digits at once."""
    if (table.dtypes == np.uint8).all():
        lines = np.full((len(table), 2 * len(table.columns)), ord(","), dtype=np.uint8)
        lines[:, ::2], lines[:, -1] = table.to_numpy() + ord("0"), ord("\n")
        return lines.tobytes()
    return table.to_csv(index=False, header=False).encode()


TABLES = {"raw": (raw, SCHEMA), "codes": (codes, LISTED), "yes/no": (flags, "")}


def measured(
    name: str, rows: int, readers: Iterable[str] = READERS
) -> tuple[float, dict[str, tuple[float, float, float]]]:
    """Return the MB of a table as CSV, and by reader CPU seconds, peak MB and, of ours, MB of packed rows."""
    make, described = TABLES[name]
    with tempfile.TemporaryDirectory() as folder:
        schema, data, source = Path(folder, "s.toml"), Path(folder, "data.csv"), np.random.default_rng(0)
        script = Path(folder, "measured.py")
        schema.write_text(described, encoding="utf-8")
        header = (",".join(make(source, 1).columns) + "\n").encode()
        parts = [Path(f"{data}.{k}") for k in range(4)]
        for path in (data, *parts):
            path.write_bytes(header)
        for done in range(0, rows, CHUNK):
            lines = written(make(source, min(CHUNK, rows - done)))
            for path in (data, parts[done // CHUNK % 4]):
                with path.open("ab") as file:
                    file.write(lines)
        found = {}
        for reader in readers:
            script.write_text(MEASURED.format(*READERS[reader]))
            command = [sys.executable, script, data, schema if described else ""]
            said = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            if said.returncode == 0:  # else it is not installed
                found[reader] = said.stdout.splitlines()[-1].split()
        held = {words.pop() for words in found.values() if len(words) > 3}
        if len(held) != 1:
            raise ValueError("the rows that were counted differ")
        size = data.stat().st_size / 1e6
    return size, {reader: tuple(map(float, words)) for reader, words in found.items()}


def main() -> None:
    """Write the files and read them."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--only", choices=TABLES)
    given = options.parse_args()
    print("| table | rows | MB of CSV | reader | CPU seconds | of pandas | peak MB | goals met |")
    print("|---|---|---|---|---|---|---|---|")
    for name in [given.only] if given.only else TABLES:
        size, found = measured(name, given.rows)
        for reader, (seconds, peak, packed) in found.items():
            of_pandas = seconds / found["pandas"][0]
            met = ("yes" if of_pandas <= 3 and peak <= 4 * packed + 500 else "NO") if packed else ""
            print(
                f"| {name} | {given.rows:,} | {size:.0f} | {reader} | {seconds:.1f} | {of_pandas:.2f} "
                f"| {peak:.0f} | {met} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
