"""Columns of which all is known: those of a parent table that was released, in the walks to its children."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from queries.domain import Integers
from smalldb.marginals.counted_rows import CountedRows
from smalldb.marginals.estimate.packed_pairs import cramers_v
from smalldb.marginals.measuring import NoisyTable
from smalldb.noise.distributions import Geometric

MOST_CELLS = 1 << 10  # of a table of two known columns that the model has
PAIRS = 2  # for each known column but one: so many tables of two the model has, the most dependent ones
VARIANCE = 1e-6  # of the counts of known columns, as a share of the squared total


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What was released of the first columns of a universe, and of how many rows: public."""

    # codes of these columns by the law of the walk, shape (K, some): predictions are made from them
    walks: Integers
    rows: Integers  # those of the rows that are to be made, shape (K, rows)
    tables: tuple[NoisyTable, ...]  # of each of these columns, and then of pairs of them, at all categories
    total: int  # what all rows weigh together

    @property
    def columns(self) -> int:
        """How many columns are known."""
        return len(self.walks)

    @property
    def pairs(self) -> list[NoisyTable]:
        """The tables of two of them."""
        return [table for table in self.tables if len(table.scope) == 2]


# Proof: docs/proofs/related.md, lemma 5.
def known_columns(
    parents: Integers, times: Integers, unit: Integers, sizes: Sequence[int], walks: int
) -> Known:
    """Return what released parents tell of the walks from a parent to one of its children."""
    weights = times * unit
    total = int(weights.sum())
    ends = np.cumsum(weights)
    chosen = np.searchsorted(ends, (np.arange(walks) + 0.5) * (total / walks), side="right")
    chosen = np.minimum(chosen, np.flatnonzero(weights)[-1])
    weighed = CountedRows(parents, weights)
    variance = VARIANCE * float(total) ** 2 / len(parents)

    def table(columns: tuple[int, ...]) -> NoisyTable:
        counts = weighed.table(columns, [sizes[c] for c in columns])
        scope = tuple((c, 0) for c in columns)
        return NoisyTable(scope, counts, Fraction(0), Geometric(Fraction(1)), variance)

    pairs = [
        table(pair)
        for pair in combinations(range(len(sizes)), 2)
        if sizes[pair[0]] * sizes[pair[1]] <= MOST_CELLS
    ]
    pairs.sort(key=lambda found: -cramers_v(found.counts.astype(np.float64)))
    tables = (*(table((c,)) for c in range(len(sizes))), *pairs[: PAIRS * (len(sizes) - 1)])
    return Known(parents[chosen].T.copy(), np.repeat(parents, times, axis=0).T.copy(), tables, total)
