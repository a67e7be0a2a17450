"""How accurate every strategy is, on five tables: means of many seeded releases, and their standard errors.

    python tests/accuracy_pins.py [--only PATTERN] [--jobs JOBS]

writes `accuracy_pins.json` anew. Do that after a change that is to alter the accuracy, and say in the commit
which figures fell or rose, and why. A change that reorders the draws, or draws other noise of the same size,
leaves the file alone: a test compares means, not bytes. PATTERN is a regular expression, looked for in
"table: strategy"; other figures stay.

What is measured, and beside what, is in `measures.py`. The strategies are those of a release; `released` alone
knows what they are called in the code.
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
from functools import cache
from itertools import combinations
from math import sqrt
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
from measures import Burt, figures

from queries import Column, Domain, Rows
from queries.domain import MAX_TABLE_ATTRIBUTES
from queries.spec import parse
from smalldb.accounting.concentrated import rho_of
from smalldb.answers import AnswersPlan, measure, synthesise
from smalldb.answers.shares import alternatives
from smalldb.exact.bits import SeededBits
from smalldb.exact.integers import two_sided_geometric
from smalldb.mechanisms import Neighbours
from smalldb.releasing import baselines
from smalldb.rounds import RoundsPlan, Universe, checked, release_rounds
from smalldb.rounds import plan as plans
from smalldb.rounds.measuring import Law
from smalldb.rounds.parities import plan_parities, release_parities
from smalldb.rounds.plan import MEMORY
from smalldb.rounds.reading import on_simplex

HOME = Path(__file__).with_suffix(".json")
DELTA = Fraction(1, 10**9)
MANY = 200  # releases a figure
EVERY_PAIR = "noise on every pair"
BASELINES = (baselines.INDEPENDENT, EVERY_PAIR, baselines.CELLS)


@dataclass(frozen=True)
class Case:
    """A strategy on a table.

    Attributes
    ----------
    table
        Its name in `TABLES`.
    strategy
        What is measured: see `released`.
    epsilon
        Of the release.
    delta
        Whether noise is Gaussian, for (epsilon, 1e-9).
    beaten
        Baselines whose mean 2-way distance is larger: in order of `BASELINES`.
    """

    table: str
    strategy: str
    epsilon: Fraction = Fraction(1)
    delta: bool = False

    def __str__(self):
        return f"{self.table}: {self.strategy}, epsilon {self.epsilon}{', delta 1e-9' * self.delta}"


def tree(seed, rows, columns):
    """
    Return rows of columns that hang together as a tree, and the domain.

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
    """Ages, hours and amounts as people tell them: smooth, but for heaps at round numbers; and two groups."""
    chance, found = Random(seed), np.empty((rows, 5), dtype=np.int64)
    for i in range(rows):
        group = int(chance.random() < 0.3)
        age = min(59, max(0, int(chance.gauss(26 + 9 * group, 13))))
        hours = 20 if chance.random() < 0.45 else min(39, max(0, int(chance.gauss(17 + 0.1 * age, 7))))
        amount = int(chance.triangular(0, 48, 12 + 10 * group))
        found[i] = (
            group,
            age // 10 * 10 if chance.random() < 0.3 else age,
            hours // 5 * 5 if chance.random() < 0.3 else hours,
            amount // 12 * 12 if chance.random() < 0.4 else amount,
            min(7, int(chance.expovariate(0.4 + 0.3 * group))),
        )
    domain = Domain(["group", Column("age", 60), Column("hours", 40), Column("amount", 48), Column("visits", 8)])
    return domain, found


@cache
def table(name):
    """Return a table's domain and its places."""
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
        return heaped(3, 2_000)
    if name == "wide":
        return tree(4, 2_000, [(f"c{i}", 2, False, 0.35 + 0.02 * i) for i in range(24)])
    raise ValueError(f"no table is called {name}")


@cache
def planned(case):
    """Return what a case's releases measure, with nothing spent on a certificate."""
    domain, places = table(case.table)
    delta, n = DELTA if case.delta else None, len(places)
    strategy, _, more = case.strategy.partition(", ")
    if domain.binary and strategy in ("contrasts", "cells"):
        workload = parse("marginals:3" if more == "threes" else "marginals:2").workload(domain)
        given = {"n": n, "epsilon": case.epsilon, "neighbours": "replace-one", "delta": delta}
        if len(domain.names) > MAX_TABLE_ATTRIBUTES:
            return plan_parities(workload, certificate=Fraction(0), **given)
        found = [one for one in alternatives(workload, **given) if (one.cells is not None) == (strategy == "cells")]
        found = [one for one in found if strategy == "cells" or (one.delta is not None) == case.delta]
        return min(found, key=lambda one: one.expected_error)
    pairs = tuple(combinations(range(len(domain.sizes)), 2))
    universe = Universe(
        domain.sizes,
        tuple(column.ordered for column in domain.columns),
        pairs,
        (1,) * len(pairs),
        target=0 if more == "target" else None,
    )
    pure = Law(concentrated=False, replaced=True)
    if strategy == "cells":
        return plans._alone(universe, pure, case.epsilon, n, MEMORY, Fraction(0), 0.0, cells=case.epsilon)
    if strategy == "pairs":
        return plans._pairs_at_once(universe, pure, case.epsilon, n, MEMORY, Fraction(0))
    assert strategy == "adaptive"
    law = replace(pure, concentrated=case.delta)
    budget = rho_of(case.epsilon, DELTA) if case.delta else case.epsilon
    return plans._in_rounds(universe, law, case.epsilon, delta, budget, n, MEMORY, Fraction(0))


def released(case, seed):
    """Return the synthetic rows of a seeded release as places."""
    domain, places = table(case.table)
    plan, source = planned(case), SeededBits(seed)
    if isinstance(plan, RoundsPlan):
        return release_rounds(plan, checked(places, np.ones(len(places), dtype=np.int64), domain.sizes), source).places
    rows = Rows.from_places(domain, places)
    if isinstance(plan, AnswersPlan):
        return synthesise(plan, measure(plan, rows, source), len(places))
    return release_parities(plan, rows, source, most=len(places)).places


@cache
def real(name):
    """Return the tables of one and two columns of a table."""
    domain, places = table(name)
    return Burt.of(places, domain.sizes)


def measured(case, seed):
    """Return the figures of a seeded release, by the name of the measure."""
    here = real(case.table)
    return figures(here, Burt.of(released(case, seed), here.sizes), len(table(case.table)[1]))
