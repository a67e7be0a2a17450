"""The exact worst error of SmallDB on a small instance: over all tables of n rows, and all outcomes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from queries import Domain, QueryClass, Workload
from queries.arrays import Floats, Integers, pd
from smalldb import bounds
from smalldb.auditing.laws import MOST_LAWS, CustomMechanism, Enclosure, audited, enclosed
from smalldb.counting.databases import (
    BLOCK,
    Histogram,
    Instance,
    Tables,
    check_budget,
    databases,
    instance_of,
    tables_of,
)
from smalldb.counting.level_counts import Law
from smalldb.counting.scores import Candidates
from smalldb.exact.numbers import Number, as_fraction, between_0_and_1, float_above, whole
from smalldb.mechanisms import Neighbours, workload_of

Errors = Mapping[Fraction, Enclosure]
"""The probability of each error, enclosed."""

NEAR = 1e-12  # relative, times the largest exponent: what floats cannot tell apart is compared exactly


def errors_of_laws(mechanism: CustomMechanism, workload: Workload, n: int) -> dict[Histogram, Errors]:
    """Return the law of the error of each table of n rows."""
    # an outcome is a small database, as counts over the cells, or the answers to the queries of the
    # reduced workload, as Fractions
    cells = workload.domain.size
    check_budget(cells, n, Neighbours.REPLACE_ONE, lambda tables, pairs: tables <= MOST_LAWS)
    error = _error_of(workload, n)
    laws = dict[Histogram, Errors]()
    for x in databases(cells, n, Neighbours.REPLACE_ONE):
        law = dict[Fraction, Enclosure]()
        for outcome, (low, high) in enclosed(mechanism(x)).items():
            wrong = error(x, outcome)
            before = law.get(wrong, (Fraction(0), Fraction(0)))
            law[wrong] = before[0] + low, before[1] + high
        laws[x] = law
    return laws


def _error_of(workload: Workload, n: int) -> Callable[[Histogram, Hashable], Fraction]:
    """Return what tells the error of an outcome for a table."""
    weights, unit, cells = workload.matrix().tolist(), workload.denominator, workload.domain.size

    def shares(counts: Histogram) -> list[Fraction]:
        size = sum(counts) * unit
        return [Fraction(sum(w * c for w, c in zip(query, counts, strict=True)), size) for query in weights]

    def error(x: Histogram, outcome: Any) -> Fraction:
        listed = isinstance(outcome, tuple)
        if listed and len(outcome) == len(weights) and all(isinstance(each, Fraction) for each in outcome):
            answers = list(outcome)
        elif listed and len(outcome) == cells and all(isinstance(each, int) for each in outcome):
            answers = shares(outcome)
        else:
            raise TypeError(
                "an outcome must be a small database, as whole counts over the cells, or the answers to the "
                "reduced queries, as Fractions"
            )
        return max((abs(a - b) for a, b in zip(shares(x), answers, strict=True)), default=Fraction(0))

    return error


@dataclass(frozen=True, slots=True)
class Accuracy:
    """
    The worst error of a mechanism over all tables of n rows; nothing here depends on anybody's data.

    Attributes
    ----------
    n, cells, queries, rows, epsilon, candidates
        The instance, as the calculators of `smalldb.bounds` name it; the last three are None for a mechanism
        of the caller's.
    optimum
        The largest error of the best outcome, exact: of SmallDB OPT(m) for tables of n rows.
    mean
        (low, high), which agree to at least 25 digits: the largest mean error.
    errors
        The errors that are possible, ascending.
    exceedances
        For each of them (low, high) of the largest P(error > it).
    hardest
        Tables, as counts over the cells: one with the largest `optimum`, and one with the largest `mean`.
    databases
        How many tables were looked at.
    """

    n: int
    cells: int
    queries: int
    rows: int | None
    epsilon: Fraction | None
    candidates: Candidates | None
    optimum: Fraction
    mean: Enclosure
    errors: tuple[Fraction, ...]
    exceedances: tuple[Enclosure, ...]
    hardest: tuple[Histogram, Histogram]
    databases: int

    @property
    def worst_mean(self) -> float:
        """The largest mean error, rounded up."""
        return float_above(self.mean[1])

    def quantile(self, probability: Number) -> Fraction:
        """Return the least error a such that P(error <= a) >= probability on every table; exact."""
        allowed = 1 - between_0_and_1(probability, "probability")
        pairs = zip(self.errors, self.exceedances, strict=True)
        return next(error for error, (_, high) in pairs if high <= allowed)

    def failure(self, error: Number) -> float:
        """Return delta, rounded up: SmallDB is (error, delta)-useful for every table of n rows."""
        position = bisect_right(self.errors, as_fraction(error, "error")) - 1
        return 1.0 if position < 0 else float_above(self.exceedances[position][1])

    def promised(self, beta: Number = "0.05") -> dict[str, float]:
        """Return what is proved for this instance beside what is true: name to error, of 1 - beta or mean.

        Equations (5), (6), (10), (11) and (16) of `docs/theory.md`. The theorem's rows are its own. For one
        query, where the lecture's bounds are false, as for two. Of a mechanism of the caller's nothing is
        proved.
        """
        quantile = float_above(self.quantile(1 - between_0_and_1(beta, "beta")))
        if self.rows is None or self.epsilon is None:
            return {"worst quantile": quantile, "worst mean": self.worst_mean}
        sizes: dict[str, Any] = {"n": self.n, "cells": self.cells, "epsilon": self.epsilon}
        numbers = sizes | {"queries": self.queries, "beta": beta}
        printed = sizes | {"queries": max(2, self.queries), "beta": beta}
        these: dict[str, Any] = {"rows": self.rows, "candidates": self.candidates}
        figures = {
            "worst quantile": quantile,
            "worst mean": self.worst_mean,
            "sharp": bounds.sharp(**numbers, **these),
            "proposition 4.4, whole rows": bounds.proposition_4_4_rows(**numbers, **these),
            "theorem 4.5": bounds.theorem_4_5(**printed),
            "bound on the mean": bounds.expected(**sizes, queries=self.queries, **these),
        }
        if self.candidates == "multisets":
            figures["sharp, neighbourhood"] = bounds.sharp_neighbourhood(**numbers, rows=self.rows)
        return figures

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each error: error, and the largest P(error > it), rounded up."""
        above = [float_above(high) for _, high in self.exceedances]
        return pd.DataFrame({"error": [float(error) for error in self.errors], "exceedance": above})


def accuracy(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int,
    epsilon: Number | None = None,
    rows: int | None = None,
    candidates: str | None = None,
    mechanism: CustomMechanism | None = None,
) -> Accuracy:
    """
    Return the exact worst error of SmallDB, or of any mechanism, over all tables of n rows.

    What equations (5), (10), (11) and (16) of `docs/theory.md` bound from above, (29) and (30) from below.
    Every law is that of `smalldb.census`. Floats find the tables that can be the worst, fractions compare
    them. Cost: tables x small databases x queries, as for `smalldb.audit`, which has the same budget.

    Parameters
    ----------
    domain, queries
        The universe and the workload.
    n, rows
        Rows of the table and of the small database.
    epsilon
        Exact, from 1e-20 to 1e9.
    candidates
        "multisets" (default) or "tuples".
    mechanism
        Instead of SmallDB: a function of a database, as `smalldb.audit` takes it, such as `by_score` makes
        one or `minimax` returns one. Its outcomes are small databases, as counts over the cells, or answers
        to the reduced queries, as Fractions. It brings its own epsilon and rows.

    Examples
    --------
    >>> worst = accuracy(Domain(["a", "b"]), "conjunctions:2", n=6, epsilon=1, rows=2)
    >>> worst.optimum, worst.quantile("0.95")
    (Fraction(1, 3), Fraction(1, 1))
    """
    workload = workload_of(queries, domain)
    if mechanism is not None:
        if not (epsilon is None and rows is None and candidates is None):
            raise ValueError("epsilon, rows and candidates are for SmallDB: the mechanism brings its own")
        return _of_laws(mechanism, workload, whole(n, "n"))
    if epsilon is None or rows is None:
        raise ValueError("epsilon and rows must be given for SmallDB")
    exact = audited(epsilon)
    n, rows = whole(n, "n"), whole(rows, "rows")
    instance = instance_of(workload, exact, rows, candidates, n, Neighbours.REPLACE_ONE, compared=False)
    with tables_of(instance) as tables:
        return _accuracy(instance, tables)


def _of_laws(mechanism: CustomMechanism, workload: Workload, n: int) -> Accuracy:
    laws = errors_of_laws(mechanism, workload, n)
    least = {x: min(law) for x, law in laws.items()}
    means = {x: _summed(law, lambda error: error) for x, law in laws.items()}
    errors = sorted({error for law in laws.values() for error in law})
    exceedances = [_largest([_summed(law, above.__lt__) for law in laws.values()]) for above in errors]
    hardest = max(least, key=lambda x: least[x]), max(means, key=lambda x: means[x][1])
    return Accuracy(
        n,
        workload.domain.size,
        workload.size,
        None,
        None,
        None,
        max(least.values()),
        _largest(list(means.values())),
        tuple(errors),
        tuple((low, min(high, Fraction(1))) for low, high in exceedances),
        hardest,
        len(laws),
    )


def _summed(law: Errors, factor: Callable[[Fraction], Fraction | bool]) -> Enclosure:
    """Return the mean of a factor of the error."""
    low = sum((factor(error) * mass[0] for error, mass in law.items()), Fraction(0))
    return low, sum((factor(error) * mass[1] for error, mass in law.items()), Fraction(0))


def _accuracy(instance: Instance, tables: Tables) -> Accuracy:
    workload = instance.workload
    unit = instance.n * instance.rows * workload.denominator
    levels = np.unique(tables.scores)
    laws: dict[int, _Tails] = {}

    def exact(position: int) -> _Tails:
        number = tables.ln_z.law(position)
        if number not in laws:
            laws[number] = _Tails.of(tables.ln_z.levels(number), instance.rate, unit)
        return laws[number]

    slack = NEAR * (1 + float(instance.rate) * int(levels[-1]))
    top, best = np.zeros(len(levels)), 0.0
    for _, tails, means in _blocks(tables, levels, float(instance.rate)):
        top, best = np.maximum(top, tails.max(axis=0)), max(best, float(means.max()))
    close: list[set[int]] = [set() for _ in levels]
    close_means: set[int] = set()
    least = tables.scores.min(axis=1)
    sure = int(np.searchsorted(levels, least.max()))  # below it some table has no small database
    for first, tails, means in _blocks(tables, levels, float(instance.rate)):
        close_means.update((first + np.flatnonzero(means >= best * (1 - slack))).tolist())
        for level in range(sure, len(levels) - 1):
            positions = np.flatnonzero(tails[:, level] >= top[level] * (1 - slack))
            close[level].update((first + positions).tolist())
    exceedances = [
        (Fraction(1), Fraction(1))
        if level < sure
        else _largest([exact(position).above(int(levels[level])) for position in sorted(close[level])])
        for level in range(len(levels) - 1)
    ]
    hardest = max(sorted(close_means), key=lambda position: exact(position).mean[1])
    return Accuracy(
        instance.n,
        workload.domain.size,
        workload.size,
        instance.rows,
        instance.epsilon,
        instance.base,
        Fraction(int(least.max()), unit),
        _largest([exact(position).mean for position in close_means]),
        tuple(Fraction(level, unit) for level in levels.tolist()),
        (*exceedances, (Fraction(0), Fraction(0))),
        (tables.databases[int(least.argmax())], tables.databases[hardest]),
        len(tables.databases),
    )


def _blocks(tables: Tables, levels: Integers, rate: float) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield the first position of each block of tables, P(score > level) by floats, and the mean score."""
    size = BLOCK // max(len(levels), tables.scores.shape[1]) + 1
    for first in range(0, len(tables.databases), size):
        scores = tables.scores[first : first + size]
        weights = tables.shares * np.exp(-rate * (scores - scores.min(axis=1)[:, None]))
        where = np.searchsorted(levels, scores) + len(levels) * np.arange(len(scores))[:, None]
        masses = np.bincount(where.ravel(), weights.ravel(), len(levels) * len(scores))
        masses = masses.reshape(len(scores), len(levels)) / weights.sum(axis=1)[:, None]
        below = np.cumsum(masses[:, ::-1], axis=1)[:, ::-1]
        yield first, below - masses, masses @ levels


@dataclass(frozen=True, slots=True)
class _Tails:
    """The exact law of one table: its levels, P(score > each), and its mean error, all enclosed."""

    levels: tuple[int, ...]
    tails: tuple[Enclosure, ...]
    mean: Enclosure

    @classmethod
    def of(cls, counted: tuple[tuple[int, int], ...], rate: Fraction, unit: int) -> _Tails:
        levels = tuple(level for level, _ in counted)
        law = Law(np.array(levels, dtype=np.int64), tuple(count for _, count in counted), rate, unit)
        masses = law.enclosures()
        tails, low, high = list[Enclosure](), Fraction(0), Fraction(0)
        for mass in reversed(masses):
            tails.append((low, min(high, Fraction(1))))
            low, high = low + mass[0], high + mass[1]
        means = [sum(level * mass[end] for level, mass in zip(levels, masses, strict=True)) for end in (0, 1)]
        return cls(levels, tuple(reversed(tails)), (Fraction(means[0]) / unit, Fraction(means[1]) / unit))

    def above(self, level: int) -> Enclosure:
        position = bisect_right(self.levels, level) - 1
        return self.tails[position] if position >= 0 else (Fraction(1), Fraction(1))


def _largest(values: list[Enclosure]) -> Enclosure:
    return max(low for low, _ in values), max(high for _, high in values)
