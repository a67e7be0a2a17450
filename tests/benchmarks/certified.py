"""
How often a bound is exceeded: many releases of made-up tables, one of them with 10^5 queries.

    python tests/benchmarks/certified.py

The record of a release states by how much any answer of `marginals:2` is off at most, with probability .95.
The largest error is looked up in the data, over all queries. Releases take turns: replace-one and add-remove,
pure and with a delta. Where every query was measured, the bound follows from the noise alone. The others pay
for a certificate.
"""

import argparse
import time
from fractions import Fraction

import numpy as np

import smalldb
from queries import Column, Domain, Rows

TABLES = {  # name: sizes of the columns, rows
    "ordered and not": ((12, 30, 2, 9, 40), 50_000),
    "with yes/no columns": ((2,) * 5 + (20, 5, 20), 50_000),
    "fewer rows": ((8,) * 8, 5_000),
    "100,000 queries": ((60,) * 8, 50_000),
    "all cells at once": ((4, 3, 2), 1_000),
    "all parities at once": ((2,) * 21, 5_000),
}


def coupled(sizes, n, seed):
    """Rows whose columns hang together by a hidden category; every third column has an order."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 4, n)
    columns = [(hidden * (1 + c % 3) + rng.integers(0, max(2, k // 2), n)) % k for c, k in enumerate(sizes)]
    domain = Domain([column(f"x{c}", k, c % 3 == 0) for c, k in enumerate(sizes)])
    return Rows.from_codes(domain, np.stack(columns, axis=1))


def column(name, size, ordered):
    """Return a column: of numbers, of labels, or yes/no."""
    if size == 2:
        return Column(name)
    return Column(name, size) if ordered else Column(name, [f"p{code}" for code in range(size)])


def worst(workload, real, made):
    """Return the largest error of an answer, exactly."""
    one, other, scale = workload.answers(real), workload.answers(made), workload.denominator
    apart = np.abs(one * made.n - other * real.n)  # far below 2^63 for so few rows
    return Fraction(int(apart.max()), scale * real.n * made.n)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--releases", type=int, default=50, help="of each table")
    parser.add_argument("--epsilon", default="1")
    given = parser.parse_args()
    print(f"{'table':24} {'queries':>8} releases exceeded  mean error  mean bound  nearest  CPU s")
    for name in given.tables:
        sizes, n = TABLES[name]
        real, errors, bounds, seconds = coupled(sizes, n, list(TABLES).index(name)), [], [], 0.0
        for seed in range(given.releases):
            public = {"neighbours": "add-remove", "n_max": n} if seed % 2 else {}
            public |= {"delta": "1e-9"} if seed % 4 > 1 else {}
            start = time.process_time()
            made = smalldb.release(
                real, "marginals:2", epsilon=given.epsilon, mechanism="marginals", rng=seed, **public
            )
            seconds += time.process_time() - start
            finished = Rows.from_codes(real.domain, np.asarray(made.codes, dtype=np.int64))
            errors.append(worst(made.plan.workload, real, finished))
            bounds.append(made.record["bounds"]["released"])
        exceeded = sum(error > bound for error, bound in zip(errors, bounds, strict=True))
        near = max(float(error) / bound for error, bound in zip(errors, bounds, strict=True))
        print(
            f"{name:24} {made.plan.workload.size:8,d} {given.releases:8} {exceeded:8}"
            f" {float(sum(errors) / len(errors)):11.4f} {np.mean(bounds):11.4f} {near:8.3f}"
            f" {seconds / given.releases:6.1f}",
            made.record["bounds"]["covers"],
            flush=True,
        )


if __name__ == "__main__":
    main()
