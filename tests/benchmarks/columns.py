"""
Wide tables: releases in rounds, beside independent columns and noise on all cells.

    python tests/benchmarks/columns.py CODES.csv SIZES.json --ordered age hours-per-week --epsilon 0.1 1 10

CODES.csv has a column of codes (integers from 0) for each column, and SIZES.json the number of categories of
each. Prints the mean total variation distance (TVD) of tables of one, two and three columns, the largest of
two, CPU seconds, and at the end the memory of the process. Tables of two and
three have up to 10,000 cells.
"""

import argparse
import json
import resource
import time
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
from beside import MOST, distances

from smalldb.exact.bits import SeededBits
from smalldb.marginals.counted_rows import checked
from smalldb.marginals.counts import InMemory
from smalldb.marginals.curator import Curator, PrivacyFilter
from smalldb.marginals.estimate.column_estimates import on_simplex
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Journal
from smalldb.noise.distributions import Geometric


def told(codes, made, sizes):
    one, two, three = (distances(codes, made, sizes, width) for width in (1, 2, 3))
    return [one.mean(), two.mean(), two.max(), three.mean()]


def universe_of(sizes, ordered, target=None):
    """The columns, some of which have an order; the workload is all tables of two of up to 10,000 cells."""
    known = tuple(c in ordered for c in range(len(sizes)))
    tables = tuple(t for t in combinations(range(len(sizes)), 2) if sizes[t[0]] * sizes[t[1]] <= MOST[2])
    return Universe(
        tuple(sizes), known, tables, (1,) * len(tables), targets=() if target is None else (target,)
    )


def ours(codes, universe, epsilon, delta, replaced, seed, times=1):
    """The release; each row stands there so many times, and as many rows are made as there are lines."""
    plan = plan_tables(universe, epsilon, delta, replaced, len(codes) * times)
    rows = checked(codes, np.full(len(codes), times, dtype=np.int64), universe.sizes)
    budget = PrivacyFilter(plan.loss.amount, replaced)
    curator = Curator(InMemory(rows), Journal(SeededBits(seed)), budget)
    return curator.follow(plan.release(len(codes))).codes, plan.expected


def independent(codes, universe, epsilon, replaced, seed):
    """Every column with geometric noise, an equal share each; columns are independent."""
    source, rng, columns = SeededBits(seed), np.random.default_rng(seed), []
    rate = epsilon / len(universe.sizes) / (2 if replaced else 1)
    for column, size in zip(codes.T, universe.sizes, strict=True):
        counts = np.bincount(column, minlength=size) + Geometric(rate).draw(size, source)
        shares = on_simplex(counts.astype(float), len(codes)) / len(codes)
        columns.append(rng.choice(size, size=len(codes), p=shares / shares.sum()))
    return np.stack(columns, axis=1)


def every_cell(codes, universe, epsilon, replaced, seed):
    """Geometric noise on every cell, and the nearest point of the simplex; its rows are drawn."""
    rate = epsilon / (2 if replaced else 1)
    cells = np.ravel_multi_index(codes.T, universe.sizes)
    counts = np.bincount(cells, minlength=universe.cells)
    counts = counts + Geometric(rate).draw(universe.cells, SeededBits(seed))
    shares = on_simplex(counts.astype(float), len(codes)) / len(codes)
    drawn = np.random.default_rng(seed).choice(universe.cells, size=len(codes), p=shares / shares.sum())
    return np.stack(np.unravel_index(drawn, universe.sizes), axis=1)


def by_counts(codes, universe, given):
    """The same table by larger and larger counts, at an epsilon that falls as they grow: the same plan."""
    for times in given.times:
        for epsilon in given.epsilon:
            start = time.process_time()
            for seed in range(given.releases):
                ours(codes, universe, epsilon / times, None, given.replace_one, seed, times)
            seconds = (time.process_time() - start) / given.releases
            print(f"{len(codes) * times:13,d} rows, epsilon {float(epsilon / times):g}: {seconds:6.1f} CPU s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("codes")
    parser.add_argument("sizes")
    parser.add_argument("--columns", nargs="*", help="only these columns")
    parser.add_argument("--ordered", nargs="*", default=[], help="columns whose categories have an order")
    parser.add_argument(
        "--epsilon", nargs="*", type=Fraction, default=[Fraction(1, 10), Fraction(1), Fraction(10)]
    )
    parser.add_argument("--delta", type=Fraction, default=Fraction(1, 10**9))
    parser.add_argument("--replace-one", action="store_true")
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--times", type=int, nargs="*", help="count each line so often: CPU seconds alone")
    given = parser.parse_args()
    frame = pd.read_csv(given.codes)
    names = given.columns or list(frame.columns)
    with open(given.sizes, encoding="utf-8") as file:
        known = json.load(file)
    codes, sizes = frame[names].to_numpy(), tuple(known[name] for name in names)
    universe = universe_of(sizes, [c for c, name in enumerate(names) if name in given.ordered])
    replaced = given.replace_one
    if given.times:
        by_counts(codes, universe, given)
        return
    print(f"{'epsilon':>8} {'way':20} 1-way   2-way   largest 3-way   expected  CPU s")
    for epsilon in given.epsilon:
        ways = {
            "rounds, pure": lambda s, e=epsilon: ours(codes, universe, e, None, replaced, s),
            "rounds, delta": lambda s, e=epsilon: ours(codes, universe, e, given.delta, replaced, s),
            "independent": lambda s, e=epsilon: (independent(codes, universe, e, replaced, s), None),
        }
        if universe.cells <= 1 << 20:
            ways["noise on all cells"] = lambda s, e=epsilon: (
                every_cell(codes, universe, e, replaced, s),
                None,
            )
        for name, way in ways.items():
            found, seconds, expected = [], 0.0, None
            for seed in range(given.releases):
                start = time.process_time()
                made, expected = way(seed)
                seconds += time.process_time() - start
                found.append(told(codes, made, sizes))
            figures = "  ".join(f"{value:.4f}" for value in np.mean(found, axis=0))
            foreseen = "        " if expected is None else f"{expected:.4f}  "
            print(f"{float(epsilon):8g} {name:20} {figures}  {foreseen} {seconds / given.releases:6.1f}")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
