"""
A release of many rows from CSV to CSV, beside pandas that reads and writes them: CPU seconds and memory.

    python tests/benchmarks/million.py 1000000

The table is made: 14 columns of the sizes of the census table, which depend on a hidden class of eight.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SIZES = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
PANDAS = "import pandas as pd, sys; pd.read_csv(sys.argv[1]).to_csv(sys.argv[2], index=False)"

# between the two processes, because a peak starts at that of the parent
MEASURED = """
import os, sys
child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, *sys.argv[1:]])
_, status, used = os.wait4(child, 0)
if status:
    raise SystemExit("failed")
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def made(rows):
    """Return a table as CSV, and its schema."""
    chance = np.random.default_rng(1)
    hidden, columns = chance.integers(0, 8, rows), []
    for size in SIZES:
        edges = np.cumsum(chance.dirichlet(np.full(size, 0.5), 8), axis=1)
        columns.append((chance.random(rows)[:, None] > edges[hidden, :-1]).sum(axis=1))
    names = [f"c{c}" for c in range(len(SIZES))]
    return names, np.stack(columns, axis=1), schema_of(SIZES)


def schema_of(sizes):
    """Return a schema of whole numbers."""
    return "".join(
        f'[columns.c{c}]\nkind = "integers"\nrange = [0, {size - 1}]\n' for c, size in enumerate(sizes)
    )


def measured(*arguments):
    """Run Python in a process of its own; return its CPU seconds and its peak in MB."""
    told = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    seconds, peak = map(float, told.stdout.split()[-2:])
    return seconds, peak * 1024 / 1e6


def compared(rows):
    """Return the CPU seconds and the peak in MB of a release, and of pandas."""
    names, codes, schema = made(rows)
    with tempfile.TemporaryDirectory() as folder:
        data, stated, out = (str(Path(folder) / name) for name in ("t.csv", "t.toml", "out.csv"))
        np.savetxt(data, codes, "%d", ",", header=",".join(names), comments="")
        Path(stated).write_text(schema, encoding="utf-8")
        given = (
            "--queries marginals:2 --epsilon 1 --neighbours add-remove --rows-per-person 1 --seed 1 --quiet"
        )
        small = ["-m", "smalldb", "generate", data, "--schema", stated, *given.split()]
        small += ["--n-max", str(rows), "-o", out]
        measured(*small)  # compiled code is kept
        return {"release": measured(*small), "pandas": measured("-c", PANDAS, data, out)}


def main(rows):
    """Print both, and their ratio."""
    found = compared(rows)
    for name, (seconds, peak) in found.items():
        print(f"{name:8} {seconds:6.1f} CPU s  {peak:6.0f} MB")
    (seconds, peak), (plain, least) = found.values()
    print(f"{seconds / plain:.1f} times as long, {peak / least:.1f} times the memory")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
