"""How accurate every strategy is, on six tables: means of many seeded releases, and their standard errors.

    python tests/accuracy_pins.py [--only PATTERN] [--seconds SECONDS] [--jobs JOBS]

writes `accuracy_pins.json` anew. Do that after a change that is to alter the accuracy, and say in the commit
which figures fell or rose, and why. A change that reorders the draws, or draws other noise of the same size,
leaves the file alone: a test compares means, not bytes. PATTERN is a regular expression, looked for in
"table: strategy"; other figures stay.

What is measured is in `measures.py`. `planned` and `released` alone know what the code calls a
strategy.
"""

import argparse
import csv
import json
import multiprocessing
import re
import sys
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
from asking import release_tables
from measures import Burt, figures

import smalldb
from queries import Column, Domain, Rows
from queries.spec import parse
from smalldb.exact.bits import SeededBits
from smalldb.marginals.estimate.column_estimates import on_simplex
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.marginals.strategies.all_pairs import AllPairs
from smalldb.marginals.strategies.choosing_parities import alternatives
from smalldb.marginals.strategies.strategy import Setting
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Neighbours
from smalldb.noise.distributions import Geometric
from smalldb.releasing import distances

HOME = Path(__file__).with_suffix(".json")
DELTA = Fraction(1, 10**9)
MEASURES = ("1-way", "2-way", "conditional", "association")
THREES = "3-way"  # also measured of releases for tables of three yes/no columns
MANY, FEWEST = 200, 30  # releases of a case, as CPU seconds allow
SIMPLE = 20  # releases of a simple way
FIRST = 1_000_000  # seed of the releases in the file: tests have others
EVERY_PAIR = "noise on every pair"
BASELINES = (distances.INDEPENDENT, EVERY_PAIR, distances.CELLS)


@dataclass(frozen=True)
class Case:
    """A strategy on a table."""

    table: str  # see `table`
    strategy: str  # see `released`
    epsilon: Fraction = Fraction(1)
    delta: bool = False  # whether noise is Gaussian, for (epsilon, 1e-9)
    rows: int | None = None  # of the synthetic table; None: as many as the data have

    def __str__(self):
        return f"{self.table}: {self.strategy}, epsilon {self.epsilon}{', delta 1e-9' * self.delta}"


def tree(seed, rows, columns):
    """
    Return a domain, and rows of columns that hang together as a tree.

    Each column is a name, its categories, whether they are ordered, and how often a row takes the category
    that stands where its parent's does (column i hangs on column (i - 1) // 2); else categories have weights
    that fall by a constant factor, so that some are rare.
    """
    chance, found = Random(seed), np.empty((rows, len(columns)), dtype=np.int64)
    sizes = [size for _, size, _, _ in columns]
    weights = [[0.75**i for i in range(size)] for size in sizes]
    for i in range(rows):
        for c, (_, size, _, tied) in enumerate(columns):
            if c and chance.random() < tied:
                parent = (c - 1) // 2
                found[i, c] = found[i, parent] * size // sizes[parent]
            else:
                found[i, c] = chance.choices(range(size), weights[c])[0]
    domain = Domain(
        [
            name if size == 2 else Column(name, size if ordered else [f"{name}{i}" for i in range(size)])
            for name, size, ordered, _ in columns
        ]
    )
    return domain, found


def heaped(seed, rows):
    """Return a domain, and rows of a group and of ages, hours and amounts with heaps at round numbers."""
    chance, found = Random(seed), np.empty((rows, 4), dtype=np.int64)
    for i in range(rows):
        group = int(chance.random() < 0.3)
        age, hours = chance.gauss(38 + 10 * group, 21), chance.gauss(42 - 8 * group, 20)
        smooth = age, hours, chance.triangular(0, 100, 25 + 40 * group)
        found[i, 0] = group
        for c, value in enumerate(smooth, 1):
            whole = min(95, max(0, int(value)))
            found[i, c] = whole // 5 * 5 if chance.random() < 0.25 else whole
    return Domain(["group", Column("age", 96), Column("hours", 96), Column("amount", 96)]), found


@cache
def table(name):
    """Return a table's domain and its codes."""
    if name == "autoworkers":
        with (Path(__file__).parent.parent / "examples" / "autoworkers.csv").open(encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        return Domain(names), np.array(rows, dtype=np.int64)
    if name == "yes/no":
        return tree(1, 3_000, [(f"a{i}", 2, False, 0.2 + 0.05 * i) for i in range(12)])
    if name == "columns":
        sizes = (3, 6, 2, 5, 9, 4, 8)
        return tree(2, 3_000, [(f"b{i}", size, i % 3 == 1, 0.4 + 0.05 * i) for i, size in enumerate(sizes)])
    if name == "heaped":
        return heaped(3, 4_000)
    if name == "eighteen":
        return tree(2, 20_000, [(f"d{i}", 2, False, min(0.95, 0.2 + 0.05 * i)) for i in range(18)])
    if name == "wide":
        return tree(4, 2_000, [(f"c{i}", 2, False, 0.35 + 0.02 * i) for i in range(24)])
    raise ValueError(f"no table is called {name}")


@cache
def planned(case):
    """Return what a case's releases measure, with nothing spent on a certificate."""
    domain, codes = table(case.table)
    delta, n = DELTA if case.delta else None, len(codes)
    strategy, _, more = case.strategy.partition(", ")
    text = "marginals:3" if more == "threes" else "marginals:2"
    given = {"n": n, "epsilon": case.epsilon, "delta": delta, "certificate": Fraction(0)}
    if strategy == "contrasts":
        plans = alternatives(parse(text).workload(domain), neighbours="replace-one", **given)
        plans = [plan for plan in plans if plan.delta == delta]  # with a delta, what has Gaussian noise
        return min(plans, key=lambda plan: plan.worst_expected if plan.tabled else plan.expected)
    if strategy == "chosen":
        return smalldb.plan(domain, text, mechanism="marginals", **given).chosen.strategy
    pairs = tuple(combinations(range(len(domain.sizes)), 2))
    universe = Universe(
        domain.sizes,
        tuple(column.ordered for column in domain.columns),
        pairs,
        targets=(0,) if more == "target" else (),
    )
    law = PrivacyMeasure(concentrated=case.delta, replaced=True)
    setting = Setting(
        universe=universe, law=law, epsilon=case.epsilon, delta=delta, rows=n, certificate=Fraction(0)
    )
    if strategy != "adaptive":
        return {"cells": AllCells, "pairs": AllPairs}[strategy].planned(replace(setting, delta=None))
    return Adaptive.shared(setting, halves=True)


def released(case, seed):
    """Return the synthetic rows of a seeded release as codes."""
    domain, codes = table(case.table)
    plan = planned(case)
    return release_tables(plan, Rows.from_codes(domain, codes), SeededBits(seed), case.rows).codes


@cache
def real(name):
    """Return the tables of one and two columns of a table."""
    domain, codes = table(name)
    return Burt.of(codes, domain.sizes)


def measured(case, seed):
    """Return the figures of a seeded release, by the name of the measure."""
    here, codes, made = real(case.table), table(case.table)[1], released(case, seed)
    found = figures(here, Burt.of(made, here.sizes), len(codes))
    return found | {THREES: three_way(codes, made)} if case.strategy.endswith("threes") else found


def three_way(codes, made):
    """Return the mean total variation distance of all tables of three yes/no columns."""
    off = []
    for columns in combinations(range(codes.shape[1]), 3):
        one, other = (
            np.bincount(x[:, columns].astype(np.int64) @ [1, 2, 4], minlength=8) / len(x)
            for x in (codes, made)
        )
        off.append(np.abs(one - other).sum() / 2)
    return float(np.mean(off))


def simply(domain, codes, epsilon, replaced=True):
    """
    Yield the name of a simple way, and a function from a seed to its tables of one and two columns.

    Those of `smalldb.releasing.distances`, and geometric noise at an equal share of epsilon on every table of
    two columns: each becomes the nearest table whose cells are at least 0 and add up to n, and a column is
    the mean of what its tables say.
    """
    n, rows = len(codes), Rows.from_codes(domain, codes)
    relation = Neighbours.REPLACE_ONE if replaced else Neighbours.ADD_REMOVE
    width, exact = len(domain.sizes), Burt.of(codes, domain.sizes)
    pairs = list(combinations(range(width), 2))
    rate = epsilon / len(pairs) / (2 if replaced else 1)

    def by_name(name, seed):
        with mock.patch.object(distances, "SeededBits", lambda _: SeededBits(seed)):
            made = distances.baselines(rows, epsilon, relation)[name]
        return Burt.of(made.codes(), domain.sizes, made.counts)

    def every_pair(seed):
        source, tables = SeededBits(seed), {}
        columns = [np.zeros(size) for size in domain.sizes]
        for a, b in pairs:
            counts = exact.table(a, b) * n
            noise = Geometric(rate).draw(counts.size, source).reshape(counts.shape)
            tables[a, b] = on_simplex((counts + noise).ravel(), n).reshape(counts.shape) / n
            columns[a] += tables[a, b].sum(axis=1) / (width - 1)
            columns[b] += tables[a, b].sum(axis=0) / (width - 1)
        return exact.replaced(tables, columns)

    yield distances.INDEPENDENT, partial(by_name, distances.INDEPENDENT)
    yield EVERY_PAIR, every_pair
    if domain.listable:
        yield distances.CELLS, partial(by_name, distances.CELLS)


def cases():
    """Return all cases."""
    one, two = Fraction(1), Fraction(2)
    both = (False, True)
    return [
        *(Case("autoworkers", "contrasts", one, delta) for delta in both),
        *(Case("autoworkers", "contrasts, threes", one, delta) for delta in both),
        Case("autoworkers", "cells"),
        *(Case("autoworkers", "adaptive", one, delta) for delta in both),
        *(Case("yes/no", "contrasts", one, delta) for delta in both),
        Case("yes/no", "contrasts, threes"),
        Case("yes/no", "chosen, threes"),
        Case("eighteen", "chosen, threes"),  # of three columns, what the planner takes
        Case("yes/no", "cells"),
        *(Case("yes/no", "adaptive", one, delta) for delta in both),
        Case("columns", "cells"),
        Case("columns", "pairs"),  # tables near their noise: shrinkage decides
        Case("columns", "pairs", Fraction(1000), rows=300),  # no noise: the search on few rows decides
        *(Case("columns", "adaptive", one, delta) for delta in both),
        *(Case("columns", "adaptive, target", one, delta) for delta in both),
        *(
            Case("heaped", "adaptive", two, delta) for delta in both
        ),  # columns at a noise where smoothing decides
        *(Case("wide", "contrasts", one, delta) for delta in both),
        Case("wide", "adaptive"),
    ]


def stated(found):
    """Return what the file holds of figures: how many, and the mean and deviation of each."""
    return {
        "releases": len(found),
        **{
            measure: [float(np.mean(values)), float(np.std(values, ddof=1))]
            for measure in (*MEASURES, THREES)
            if measure in found[0]
            for values in [[one[measure] for one in found]]
        },
    }


def reference(case, seconds):
    """Return what the file holds of a case: of as many releases as there are CPU seconds for."""
    measured(case, 0)  # kernels are compiled, and plans made
    found, start = [], time.process_time()
    while len(found) < FEWEST or (len(found) < MANY and time.process_time() - start < seconds):
        found.append(measured(case, FIRST + len(found)))
    return stated(found)


def simple(name):
    """Return what the file holds of the simple ways on a table, at every epsilon of its cases."""
    domain, codes = table(name)
    here, entries = real(name), {}
    for epsilon in sorted({case.epsilon for case in cases() if case.table == name}):
        for way, made in simply(domain, codes, epsilon):
            found = [figures(here, made(seed), len(codes)) for seed in range(SIMPLE)]
            entries[f"{name}: {way}, epsilon {epsilon}"] = stated(found)
    return entries


def main():
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--seconds", type=float, default=60, help="of a processor, for each case; default 60")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    chosen = [case for case in cases() if re.search(given.only, str(case))]
    found = json.loads(HOME.read_text(encoding="utf-8")) if given.only and HOME.exists() else {}
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for case, entry in zip(
            chosen, pool.imap(partial(reference, seconds=given.seconds), chosen), strict=True
        ):
            found[str(case)] = entry
            sys.stdout.write(f"{case}: {entry}\n")
            sys.stdout.flush()
        for entries in pool.imap(simple, dict.fromkeys(case.table for case in chosen)):
            found |= entries
    HOME.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
