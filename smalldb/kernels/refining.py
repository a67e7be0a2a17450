"""Conditional systematic rounding: rows in coarse groups get finer ones by their shares."""

import numpy as np

from queries.arrays import Codes, Floats, Integers, Words
from smalldb.kernels.compiling import kernel


# Proof: docs/proofs/rounds.md, lemma 9.
@kernel
def refine(
    context: Codes, group: Codes, table: Floats, starts: Integers, words: Words, offsets: Floats
) -> None:
    """Replace each row's coarse group by a finer one inside it: counts are met to within one row."""
    # Of the s rows that agree in context and coarse group, one gets the fine group at each of the
    # shares (i + offset) / s of their weights, i from 0 to s - 1, in an order that the words make
    # uniformly random. Where all weights are 0, every row gets the last.
    coarse = len(starts) - 1
    sizes = np.zeros((len(table), coarse), np.int64)
    for row in range(len(context)):
        sizes[context[row], group[row]] += 1
    given, next_one, at = np.empty(len(context), np.int32), np.zeros(sizes.shape, np.int64), 0
    for c in range(len(table)):
        for g in range(coarse):
            size, first, last = sizes[c, g], starts[g], starts[g + 1] - 1
            span = 0.0
            for f in range(first, last + 1):
                span += table[c, f]
            found, past = first, table[c, first]
            for i in range(size):
                wanted = (i + offsets[c, g]) / size * span
                while past <= wanted and found < last:
                    found += 1
                    past += table[c, found]
                # a share that was rounded up to 1 is past all weights
                while span > 0.0 and table[c, found] == 0.0:
                    found -= 1
                given[at + i] = found
            for i in range(size - 1, 0, -1):
                j = np.int64(words[at + i] % np.uint64(i + 1))
                given[at + i], given[at + j] = given[at + j], given[at + i]
            next_one[c, g] = at
            at += size
    for row in range(len(context)):
        c, g = context[row], group[row]
        group[row] = given[next_one[c, g]]
        next_one[c, g] += 1
