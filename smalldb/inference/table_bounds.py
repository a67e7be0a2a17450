"""How far a synthetic table is off in each table that was measured: from the noise alone, all at once."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from queries import Rows
from queries.arrays import Booleans, Codes, Floats, Integers
from smalldb.inference.cells_asked import possible_cells
from smalldb.mechanisms.measurement import Marginal
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.noise.cone import ConeDifference
from smalldb.noise.cone import quantile as cone_quantile
from smalldb.noise.k_norm import KNorm
from smalldb.noise.noise_protocol import Noise

_SLACK = 1 + 2.0**-40  # more than what rounding takes


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
        """Which cells tell how many rows there are: all of a column that was measured with others.

        Their sum has the least noise, and its law is known. Elsewhere values are independent: fewer are
        better.
        """
        return np.ones_like(self.possible) if isinstance(self.noise, KNorm) else self.possible


# Proof: docs/proofs/certificate.md, "Each measured table".
def table_bounds(measurements: Measurements, rows: Rows, beta: Fraction, most: int) -> tuple[TableBound, ...]:
    """Return a bound for each measured table; all of them hold together with probability 1 - beta or more."""
    tables = _tables(measurements)
    if not tables or rows.n == 0:
        return ()
    if len(tables) > most:
        raise ValueError("more tables were measured than could be")
    private = measurements.n is None
    margins = [_margins(table, beta / most, private) for table in tables]
    fewest, most_rows = float(measurements.n or 0), float(measurements.n or 0)
    if private:  # each table says between which numbers the rows are, and all are right
        totals = [float(table.values[table.summed].sum()) for table in tables]
        fewest = max(total - reach for total, (_, reach) in zip(totals, margins, strict=True))
        most_rows = min(total + reach for total, (_, reach) in zip(totals, margins, strict=True))
    codes = rows.codes()
    found = []
    for table, (margin, _) in zip(tables, margins, strict=True):
        shares = _counts(table.part, codes, rows.counts) / rows.n
        worst = 1.0
        if 0 < fewest <= most_rows:
            values = table.values.astype(np.float64)
            gaps = (
                np.maximum(values + margin - shares * fewest, shares * most_rows - values + margin) / fewest
            )
            # no share can be off by more than the larger of itself and the rest
            gaps = np.minimum(gaps, np.maximum(shares, 1 - shares))
            worst = min(1.0, float(gaps[table.possible].max(initial=0.0)) * _SLACK)
        names = tuple(measurements.domain.names[c] for c in table.part.columns)
        found.append(TableBound(names, table.number, worst))
    return tuple(found)


def _margins(table: _Table, beta: Fraction, private: bool) -> tuple[float, float]:
    """
    Return by how many rows no possible cell of a table is off, and its sum; but for a probability of beta.

    Each cell, and the sum where n is private, has an equal part of it (union bound).
    """
    cells = int(table.possible.sum())
    each = beta / (cells + private)
    if isinstance(table.noise, ConeDifference):
        sizes = tuple(sorted(table.part.shape))
        margin = float(cone_quantile(table.noise.sizes, table.noise.rate, sizes, each))
        return margin, margin * cells
    summed = _quantile(table.noise, int(table.summed.sum()), each) if private else 0.0
    return _quantile(table.noise, None, each), summed


@lru_cache(maxsize=1 << 12)
def _quantile(noise: Noise, cells: int | None, failure: Fraction) -> float:
    """Return the quantile of one value, or of the sum over a table of so many cells."""
    return noise.quantile(None if cells is None else noise.summed(cells), failure)


def _tables(measurements: Measurements) -> list[_Table]:
    """Return all tables that were measured, in order."""
    return [
        _Table(number, part, values, possible_cells(measurements.domain, part), each.noise)
        for number, each in enumerate(measurements)
        for part, values in each.tables()
        if isinstance(part, Marginal)
    ]


def _counts(part: Marginal, codes: Codes, counts: Integers) -> Floats:
    """Return the counts of a table at its groups, shaped by them."""
    cells = np.zeros(len(codes), dtype=np.int64)
    for c, groups, size in zip(part.columns, part.groups, part.shape, strict=True):
        cells = cells * size + np.asarray(groups, dtype=np.int64)[codes[:, c]]
    found = np.bincount(cells, counts, minlength=int(np.prod(part.shape)))
    return np.asarray(found, dtype=np.float64).reshape(part.shape)
