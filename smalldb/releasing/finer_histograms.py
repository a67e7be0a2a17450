"""Counts of finer bins: gathered as a table is read, and released with exact noise beside the mechanism."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from queries import DataError
from queries.arrays import Integers
from queries.rows import MAX_TOTAL
from smalldb.marginals.asks import Noisy
from smalldb.marginals.counts import FinerBins
from smalldb.planning import Plan
from smalldb.planning.plans import finer_measure
from smalldb.schema import Schema
from smalldb.schema.pieces import Piece, occurrences

Histograms: TypeAlias = dict[str, Integers]
"""By column with finer bins, how many rows are in each. Private."""


def gather_finer(
    schema: Schema, counts: str | None, histograms: Histograms, pieces: Iterator[Piece]
) -> Iterator[Piece]:
    """
    Hand on the pieces of a table, and count on the way what the columns with finer bins hold.

    Gaps are left out, and fields that have no category: the reading of the table refuses them.
    """
    finer = [(c, column.name) for c, column in enumerate(schema.columns) if column.finer]
    sizes = {column.name: column.finer.kind.size for column in schema.columns if column.finer}
    histograms |= {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}
    for fields, times in pieces:
        given = occurrences(fields, times, counts)
        occur = [1] * len(fields[0]) if given is None else [int(count) for count in given]
        if sum(occur) >= MAX_TOTAL:
            raise DataError("counts add up to 2^62 or more")
        each = np.array(occur, dtype=np.int64)
        for c, name in finer:
            found = schema.columns[c].found_finer(fields[c])
            kept = (found >= 0) & (found < sizes[name])
            np.add.at(histograms[name], found[kept], each[kept])
        yield fields, times


# Proof: docs/proofs/learned.md, lemma 7.
def finer_asks(plan: Plan, schema: Schema) -> dict[str, Noisy]:
    """
    Return what is asked about finer bins, by column: each with its own part of epsilon, which is pure.

    A row stands in one finer bin of a column, or in none: one count moves by 1, or two under replace-one.
    """
    law = finer_measure(plan.neighbours)
    sizes = {column.name: column.finer.kind.size for column in schema.columns if column.finer}
    return {
        each.column: Noisy(
            FinerBins(each.column),
            ((law.noise(each.epsilon), sizes[each.column]),),
            each.epsilon,
            loss=law.loss_of_table(each.epsilon),
        )
        for each in plan.finer
    }


def finer_variances(plan: Plan) -> dict[str, float]:
    """Return the variance of the noise of each count of finer bins, by column."""
    law = finer_measure(plan.neighbours)
    return {each.column: law.noise(each.epsilon).variance() for each in plan.finer}
