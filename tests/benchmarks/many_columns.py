"""
How releases grow with the number of columns: ``python tests/benchmarks/many_columns.py [COLUMNS ...]``.

A made table of 10^5 rows and so many columns of 4 categories. In half of the rows a column takes, shifted,
the category of one of the five columns before it. All pairs are asked at epsilon 1, add-remove. Printed: CPU
seconds and peak memory of a release, in a process of its own, and the mean distance of its tables of two
columns from the data's, beside independent columns that spend all of epsilon, and without noise.
"""

import json
import resource
import subprocess
import sys
import time
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from measures import Burt

import smalldb
from queries import Column, Domain, Rows
from smalldb.mechanisms import Neighbours
from smalldb.releasing.distances import INDEPENDENT, baselines

ROWS, SIZE = 100_000, 4


def made(columns):
    """Return a domain and rows."""
    rng = np.random.default_rng(columns)
    codes = np.empty((ROWS, columns), dtype=np.int64)
    for c in range(columns):
        codes[:, c] = rng.choice(SIZE, ROWS, p=rng.dirichlet([2] * SIZE))
        if c:
            same = rng.random(ROWS) < 0.5
            codes[same, c] = (codes[same, rng.integers(max(0, c - 5), c)] + c) % SIZE
    return Domain([Column(f"c{c}", [f"{i}" for i in range(SIZE)]) for c in range(columns)]), codes


def distance(real, other):
    """Return the mean total variation distance of tables of two columns."""
    pairs = combinations(range(len(real.sizes)), 2)
    return np.mean([np.abs(real.table(*pair) - other.table(*pair)).sum() / 2 for pair in pairs])


def one(columns):
    """Print the figures of one number of columns."""
    domain, codes = made(columns)
    rows, start = Rows.from_codes(domain, codes), time.process_time()
    public = {"n_max": ROWS, "rows": ROWS, "neighbours": "add-remove"}
    plan = smalldb.plan(domain, "marginals:2", epsilon=1, mechanism="marginals", **public)
    released = smalldb.release(plan, rows, rng=1).codes
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    real = Burt.of(codes, domain.sizes)
    noisy = baselines(rows, Fraction(1), Neighbours.ADD_REMOVE)[INDEPENDENT]
    shares = np.concatenate([real.column(c) for c in range(columns)])
    ways = {
        "release": Burt.of(released, domain.sizes),
        "independent": Burt.of(noisy.codes(), domain.sizes, noisy.counts),
        "independent, no noise": Burt(domain.sizes, np.outer(shares, shares)),
    }
    errors = {way: round(float(distance(real, tables)), 4) for way, tables in ways.items()}
    print(json.dumps({"columns": columns, "CPU s": round(seconds, 1), "MB": round(memory)} | errors))


if __name__ == "__main__":
    numbers = sys.argv[1:] or ["10", "30", "100", "300"]
    if len(numbers) == 1:
        one(int(numbers[0]))
    else:
        for number in numbers:
            subprocess.run([sys.executable, __file__, number], check=True)
