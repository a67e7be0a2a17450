"""What tables of two columns are to hold: the model's counts, moved towards tables released beside it."""

from collections.abc import Sequence

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.estimate.column_estimates import signal, without_margins
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.measuring import NoisyTable


# Proof: docs/proofs/rounds.md, lemma 7.
def moved(
    expected: Floats, tables: Sequence[NoisyTable], groups: Sequence[tuple[Integers, Integers]]
) -> Floats:
    """
    Move a table towards what was released of it, measurement by measurement.

    The released counts of groups are read as in `modelling.factor_of`: what they are beyond the expected ones
    is shrunk by how much of it is noise. Cells of a group change by the same factor; rows and columns keep
    their sums, about.
    """
    for table, (first, second) in zip(tables, groups, strict=True):
        shape = table.counts.shape
        coarse = np.zeros(shape)
        np.add.at(coarse, (first[:, None], second[None, :]), expected)
        beyond = without_margins(table.counts - coarse)
        noise = max(table.variance, 1e-9)
        prior = signal(beyond, np.maximum(coarse, 1.0), noise)
        wanted = np.maximum(coarse + beyond * prior / (prior + noise), 0.0)
        ratio = np.divide(wanted, coarse, out=np.zeros(shape), where=coarse > 0)
        spread = expected * ratio[first[:, None], second[None, :]]
        # where nothing was expected, categories of a group share by their columns
        empty = np.where(coarse > 0, 0.0, wanted)
        if empty.any():
            rows, columns = expected.sum(axis=1), expected.sum(axis=0)
            row_shares = rows / np.maximum(np.bincount(first, rows, shape[0])[first], 1e-300)
            column_shares = columns / np.maximum(np.bincount(second, columns, shape[1])[second], 1e-300)
            spread += empty[first[:, None], second[None, :]] * np.outer(row_shares, column_shares)
        expected = fitted_margins(spread, expected.sum(axis=1), expected.sum(axis=0))
    return expected


def fitted_margins(table: Floats, rows: Floats, columns: Floats, passes: int = 5) -> Floats:
    """Scale the rows and columns of a table in turn to given sums (iterative proportional fitting)."""
    for _ in range(passes):
        table = table * _ratio(rows, table.sum(axis=1))[:, None]
        table = table * _ratio(columns, table.sum(axis=0))
    return table


def _ratio(wanted: Floats, there: Floats) -> Floats:
    """Return what sums are to be multiplied by; 1 where nothing is there that could be."""
    return np.divide(wanted, there, out=np.ones_like(wanted), where=there > 1e-200)


def groups_at(groupings: Sequence[Grouping], table: NoisyTable) -> tuple[Integers, Integers]:
    """Return the groups of all categories of the two columns of a released table."""
    (a, level), (b, other) = table.scope
    return groupings[a].of_categories(level), groupings[b].of_categories(other)
