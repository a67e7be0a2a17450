"""Conditional systematic rounding: rows in coarse groups get finer ones by their shares."""

import numpy as np

from queries.arrays import Floats, Integers, Words
from smalldb.kernels.compiling import kernel


@kernel
def shuffled(words: Words) -> Integers:
    """Return an order of as many places as there are words, by the exchanges of Fisher and Yates."""
    order = np.arange(len(words))
    for i in range(len(words) - 1, 0, -1):
        j = np.int64(words[i] % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    return order


# Proof: docs/proofs/rounds.md, lemma 9.
@kernel
def refine(
    context: Integers, group: Integers, table: Floats, starts: Integers, words: Words, offsets: Floats
) -> None:
    """
    Replace each row's coarse group by a finer one inside it: counts are met to within one row.

    Of the s rows that agree in context and coarse group, row i, from 0, gets the fine group at the share
    (i + offset) / s of their weights. Where all weights are 0, every row gets the last.

    Parameters
    ----------
    context, group
        Of each row, shape (rows,); `group` is written.
    table
        Weights at least 0, shape (contexts, fine groups).
    starts
        The first fine group of each coarse one, and at the end their number.
    words
        Random, shape (rows,): rows are taken in the order `shuffled(words)`.
    offsets
        From 0 to below 1, shape (contexts, coarse groups).
    """
    coarse = len(starts) - 1
    sizes = np.zeros((len(table), coarse), np.int64)
    for row in range(len(context)):
        sizes[context[row], group[row]] += 1
    taken = np.zeros((len(table), coarse), np.int64)
    for row in shuffled(words):
        c, g = context[row], group[row]
        span = 0.0
        for f in range(starts[g], starts[g + 1]):
            span += table[c, f]
        wanted = (taken[c, g] + offsets[c, g]) / sizes[c, g] * span
        taken[c, g] += 1
        found, past = starts[g], table[c, starts[g]]
        while past <= wanted and found + 1 < starts[g + 1]:
            found += 1
            past += table[c, found]
        while span > 0.0 and table[c, found] == 0.0:  # the share was rounded up to 1: past all weights
            found -= 1
        group[row] = found
