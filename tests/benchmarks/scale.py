"""Count tables of Parquet beside DuckDB and pandas, by rows and by distinct rows: CPU seconds and memory.

    python tests/benchmarks/scale.py [ROWS ...] [--write]    # 10^6 and 10^7: minutes

Tables have the 14 columns of `million.py`: once nearly all rows are distinct, and once ten thousand are.
Each way runs in a process of its own, and imports count: what `generate` reads by, DuckDB that counts for
smalldb, DuckDB's own grouping with one thread, and pandas that groups (up to a million rows). With --write
the table goes to docs/performance.md.
"""

import argparse
import re
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from million import SIZES, measured, schema_of
from pyarrow import parquet

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
PART = 250_000
FEW = 10_000
OURS = "from smalldb.schema import *\nfrom smalldb.schema.table_readers import *\nimport sys\n"
WAYS = {
    "smalldb": f"{OURS}read_table(sys.argv[1], read_schema(sys.argv[2]))",
    "DuckDB": "import duckdb, sys\nduckdb.sql('SET threads = 1')\n"
    "duckdb.sql(f\"SELECT count(*) FROM (SELECT *, count(*) FROM '{sys.argv[1]}' GROUP BY ALL)\").fetchall()",
    "pandas": "import pandas as pd, sys\nt = pd.read_parquet(sys.argv[1])\nt.groupby([*t]).size()",
}
MOST_OF_PANDAS = 10**6


def write_table(path, rows, few):
    """Write a table that depends on a hidden class of eight; of few distinct rows: a sample of such rows."""
    chance = np.random.default_rng(1)
    edges = [np.cumsum(chance.dirichlet(np.full(size, 0.5), 8), axis=1)[:, :-1] for size in SIZES]

    def made(rows):
        hidden, found = chance.integers(0, 8, rows), {}
        for c, own in enumerate(edges):
            values, uniforms = np.empty(rows, dtype=np.int32), chance.random(rows)
            for k in range(8):
                values[hidden == k] = np.searchsorted(own[k], uniforms[hidden == k])
            found[f"c{c}"] = values
        return pa.table(found)

    few_rows, writer = made(FEW) if few else None, None
    for begin in range(0, rows, PART):
        size = min(PART, rows - begin)
        part = made(size) if few_rows is None else few_rows.take(chance.integers(0, FEW, size))
        writer = writer or parquet.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()


def figures(rows, few, ways=WAYS):
    """Return the CPU seconds and the peak in MB of each way; None: it is not asked for so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        data, stated = str(Path(folder, "t.parquet")), Path(folder, "t.toml")
        write_table(data, rows, few)
        stated.write_text(schema_of(SIZES), encoding="utf-8")
        return {
            name: None
            if name == "pandas" and rows > MOST_OF_PANDAS
            else measured("-c", code, data, str(stated))
            for name, code in WAYS.items()
            if name in ways
        }


def table(sizes):
    """Return the figures as a table of Markdown."""
    lines = [f"| rows | distinct | {' | '.join(f'{name}: CPU s, MB' for name in WAYS)} | to DuckDB |"]
    lines.append("|" + "---|" * (len(WAYS) + 3))
    for rows in sizes:
        for few in (False, True):
            found = figures(rows, few)
            cells = ["" if each is None else f"{each[0]:.1f}, {each[1]:.0f}" for each in found.values()]
            ratio = found["smalldb"][0] / found["DuckDB"][0]
            which = f"{FEW:,}" if few else "nearly all"
            lines.append(f"| {rows:,} | {which} | {' | '.join(cells)} | {ratio:.1f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main(sizes, write):
    """Print the table, and write it into the page."""
    made = table(sizes)
    print(made)
    if write:
        text = PAGE.read_text(encoding="utf-8")
        found = re.sub(r"(?<=<!-- scale.py -->\n\n).*?(?=\n\n<!-- /scale.py -->)", made, text, flags=re.S)
        PAGE.write_text(found, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", type=int, default=[10**6, 10**7])
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    main(given.rows, given.write)
