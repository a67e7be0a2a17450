"""What is proved of the error from the noise alone: of queries that were measured, and of measured tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from queries import Rows, Workload
from queries.arrays import Booleans, Codes, Floats
from queries.domain import Integers
from queries.rows import MAX_TOTAL
from smalldb.mechanisms.measurement import Marginal
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.noise.geometric import Geometric
from smalldb.noise.noise_protocol import Noise
from smalldb.noise.tails import noise_quantile

Whole: TypeAlias = Mapping[tuple[int, ...], tuple[Integers, Noise]]
"""Released tables at all categories, by their columns, each with its noise."""

_SLACK = 1e-12  # more than what rounding takes from a sum of a few floats
_FEW = 1 + 2.0**-40  # more than what it takes from a bound


class Sums(NamedTuple):
    """Between which numbers the sums of all queries over the data lie, and the rows of the data."""

    # the ends of each query, shape (J,)
    low: Floats
    high: Floats
    rows: tuple[float, float]  # the ends of n; equal where n is public
    slack: Floats | float = 0.0  # what rounding adds to the ends, in rows

    @classmethod
    def within(cls, released: Floats, margins: Floats | float, rows: tuple[float, float]) -> "Sums":
        """Return the sums that are within margins of released ones."""
        return cls(released - margins, released + margins, rows, _SLACK * (np.abs(released) + rows[1]))

    # Proof: docs/proofs/certificate.md, "All cells"; docs/proofs/answers.md, lemma 5.
    def gaps(self, shares: Floats) -> Floats:
        """Return how far shares of finished rows are off at most, if the sums lie between their ends.

        With A a sum over the data, and a its share, |A / n - a| is at most max(A - a n, a n - A) / n at the
        ends. Where nothing is known of n, it is 1.
        """
        fewest, most = self.rows
        if not 0 < fewest <= most:
            return np.ones(shares.shape)
        # n = 10, a released sum of 4 with margin 2, a = 1/2: A lies between 2 and 6, so A - 5 and 5 - A are
        # at most 1 and 3, and the bound is 0.3. No share can be off by more than max(a, 1 - a) = 1/2.
        gaps = np.maximum(self.high - shares * fewest, shares * most - self.low) + self.slack
        return np.minimum(gaps / fewest, np.maximum(shares, 1 - shares))

    def bound(self, workload: Workload, finished: Rows) -> float:
        """Return an error that no query's answer exceeds, if the sums lie between their ends; rounded up."""
        gaps = self.gaps(workload.answers(finished) / (workload.denominator * finished.n))
        return min(1.0, float(gaps.max(initial=0.0)) * (1 + 2.0**-49))


# Proof: docs/proofs/certificate.md, "All cells".
def margins(workload: Workload, noise: Geometric, beta: Fraction) -> tuple[float, float]:
    """Return by how many rows no query's sum is off, and the number of rows, but for a chance of beta."""
    # shared evenly; weights of cells are from 0 to 1, and the largest sum of weights stands for all queries
    domain, each = workload.domain, beta / (workload.size + 1)
    every = Rows.from_codes(domain, domain.table())
    most = int(workload.answers(every).max(initial=0))
    return (
        noise_quantile(noise.rate, -(-most // workload.denominator), each),
        noise_quantile(noise.rate, every.n, each),
    )


# Proof: docs/proofs/certificate.md, "All cells".
def sums_of_cells(
    workload: Workload, counts: Integers, noise: Geometric, n: int | None, beta: Fraction
) -> Sums:
    """Return between which numbers all sums lie, but for a probability of at most beta over the noise."""
    domain, scale = workload.domain, workload.denominator
    codes = domain.table()
    released = counts[tuple(codes.T)]
    sums = np.zeros(workload.size)
    if int(np.abs(released.astype(np.float64)).sum()) * scale >= MAX_TOTAL // 2:
        return Sums.within(sums, 0.0, (0, 0))  # nothing is known
    of_query, of_rows = margins(workload, noise, beta)
    for sign in (1, -1):
        some = np.maximum(sign * released, 0)
        present = some > 0
        sums += sign * workload.answers(Rows.from_codes(domain, codes[present], some[present])) / scale
    total = int(released.sum())
    return Sums.within(sums, of_query, (total - of_rows, total + of_rows) if n is None else (n, n))


# Proof: docs/proofs/certificate.md, "Columns"; docs/proofs/pairs.md, lemma 8.
def sums_of_tables(workload: Workload, tables: Whole, n: int | None, beta: Fraction) -> Sums:
    """Return the same where every query is a cell of a table that was measured."""
    each, columns = beta / (workload.size + 1), workload.domain.columns
    sums, reach = list[Floats](), list[Floats]()
    for block in workload.cells:
        counts, noise = tables[block.columns]
        yes_first = tuple(axis for axis, c in enumerate(block.columns) if columns[c].yes_no)
        sums.append(block.of_counts(np.flip(counts, yes_first).ravel()).astype(np.float64))
        reach.append(np.full(block.size, noise.cell_quantile(counts.shape, each)))
    rows = (float(n or 0), float(n or 0))
    if n is None:  # which sum tells best how many rows there are is public
        off = {at: noise.sum_quantile(counts.size, each) for at, (counts, noise) in tables.items()}
        least = min(off, key=lambda at: off[at])
        total = int(tables[least][0].sum())
        rows = total - off[least], total + off[least]
    return Sums.within(np.concatenate(sums), np.concatenate(reach), rows)


def cells_of_tables(workload: Workload, most: int) -> bool:
    """Whether all its queries are cells of tables of so many columns at most."""
    return not workload.listed and all(0 < len(block.columns) <= most for block in workload.cells)


@dataclass(frozen=True, slots=True)
class TableBound:
    """A bound on the error of the cells of a measured table."""

    columns: tuple[str, ...]  # their names
    measurement: int  # the number of the measurement, from 0, which says at which groups of categories
    bound: float  # no cell's share of the synthetic rows differs by more from that of the data


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A measured table: its number, its possible cells, its noise, and what a cell exceeds seldom."""

    number: int
    part: Marginal
    values: Integers
    possible: Booleans
    noise: Noise

    @property
    def summed(self) -> Booleans:
        """Which cells tell how many rows there are: all of a table whose sum has a law of its own."""
        return np.ones_like(self.possible) if self.noise.repeating else self.possible


# Proof: docs/proofs/certificate.md, "Each measured table".
def table_bounds(
    measurements: Measurements, finished: Rows, beta: Fraction, most: int
) -> tuple[TableBound, ...]:
    """Return a bound for each measured table; all of them hold together with probability 1 - beta or more."""
    tables = _tables(measurements)
    if not tables or finished.n == 0:
        return ()
    if len(tables) > most:
        raise ValueError("more tables were measured than could be")
    private = measurements.n is None
    margins = [_margins(table, beta / most, private) for table in tables]
    fewest = most_rows = float(measurements.n or 0)
    if private:  # each table says between which numbers the rows are, and all are right
        totals = [float(table.values[table.summed].sum()) for table in tables]
        fewest = max(total - reach for total, (_, reach) in zip(totals, margins, strict=True))
        most_rows = min(total + reach for total, (_, reach) in zip(totals, margins, strict=True))
    codes, bounds = finished.codes(), []
    for table, (margin, _) in zip(tables, margins, strict=True):
        values = table.values.astype(np.float64)
        sums = Sums(values - margin, values + margin, (fewest, most_rows))
        gaps = sums.gaps(_counts(table.part, codes, finished.counts) / finished.n)
        worst = min(1.0, float(gaps[table.possible].max(initial=0.0)) * _FEW)
        names = tuple(measurements.domain.names[c] for c in table.part.columns)
        bounds.append(TableBound(names, table.number, worst))
    return tuple(bounds)


def _margins(table: _Table, beta: Fraction, private: bool) -> tuple[float, float]:
    """Return by how many rows no possible cell of a table is off, and its sum; but for a chance of beta."""
    # each cell, and the sum where n is private, has an equal part of it (union bound)
    each = beta / (int(table.possible.sum()) + private)
    margin = _quantile(table.noise, table.part.shape, each)
    return margin, _quantile(table.noise, int(table.summed.sum()), each) if private else 0.0


@lru_cache(maxsize=1 << 12)
def _quantile(noise: Noise, what: tuple[int, ...] | int, failure: Fraction) -> float:
    """Return the quantile of a cell of a table of a shape, or of the sum over so many cells."""
    if isinstance(what, int):
        return noise.sum_quantile(what, failure)
    return noise.cell_quantile(what, failure)


def _tables(measurements: Measurements) -> list[_Table]:
    """Return all tables that were measured, in order."""
    return [
        _Table(number, part, values, part.possible(measurements.domain), each.noise)
        for number, each in enumerate(measurements)
        for part, values in each.tables()
        if isinstance(part, Marginal)
    ]


def _counts(part: Marginal, codes: Codes, counts: Integers) -> Floats:
    """Return the counts of a table at its groups, shaped by them."""
    cells = np.zeros(len(codes), dtype=np.int64)
    for c, groups, size in zip(part.columns, part.groups, part.shape, strict=True):
        cells = cells * size + np.asarray(groups, dtype=np.int64)[codes[:, c]]
    return np.bincount(cells, counts, minlength=part.size).astype(np.float64).reshape(part.shape)
