"""Trials of a star: a state of its hubs is drawn at once, and the column of each leaf until it fits the hubs.

The rows of a candidate are sorted by their hubs here, so a state of the hubs says what their columns are. A
leaf's column is drawn among all columns with as many ones as it may have. Columns are words of m bits.

Indices into tables are unsigned: Numba checks a signed one for being negative.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queries.arrays import Integers, Words
from smalldb.kernels.bitwise import HALF, LOW_HALF, ONE, first_above, ones
from smalldb.kernels.compiling import inlined, kernel
from smalldb.kernels.trials import OUT_OF_WORDS, PAUSED, SURVIVED

MOST_ROWS = 32  # so that half a word says which of all columns it is
STEPS = 2  # columns drawn, or leaves checked, in the time of a unit of work

ATTRIBUTE, SIZE, EXCESS, WAYS, WAYS_END, FITS, CHECKS, CHECKS_END = range(8)  # of `Star.leaves`
LOWS, LOW_START, HIGH_START = range(3)  # of `Star.ways`
OWN, OTHER, FLIP, LEAST, SPAN, MORE, MORE_END = range(7)  # of `Star.conjunctions`


class Star(NamedTuple):
    """One layer whose tree is a star."""

    sums: Words  # shape (states,): running sums of the states' shares out of 2^63
    hubs: Words  # shape (hubs,): their attributes
    hub_columns: Words  # shape (states, hubs): the hubs' columns, words of m bits; rows are sorted by cell
    # shape (leaves, 8). Which `ATTRIBUTE`; the `SIZE` of the set that its columns are drawn from, at
    # most 2^32, and 2^32 modulo that (`EXCESS`); its rows of `ways` and `way_sums`, from `WAYS` to
    # before `WAYS_END`; its conjunctions with hubs alone, which it must fit, from `FITS` to before
    # `CHECKS`, and with leaves before it, too, from `CHECKS` to before `CHECKS_END`.
    leaves: Words
    # shape (ways, 3), one for each number of ones in the high half of a column: how many words of the
    # low half it allows (`LOWS`), and where these start in `low_words`, and those of the high half in
    # `high_words`
    ways: Words
    way_sums: Words  # shape (ways,): running sums of their columns, for each leaf
    # low_words, high_words: all words of half as many bits, by their number of ones; those of the high
    # half stand where it does
    low_words: npt.NDArray[np.uint32]
    high_words: Words
    # shape (conjunctions, 7), of two attributes or more. `OWN`: all bits set where the leaf is negated;
    # `OTHER`, `FLIP`: another attribute, and the same for it; `LEAST`, `SPAN`: how many rows it must be
    # true of, and how many more it may be; from `MORE` on, what else it looks at, in
    conjunctions: Words
    literals: Words  # shape (literals, 2): attributes, and all bits set where they are negated
    everyone: np.uint64  # the m low bits


# Proof: docs/proofs/rejection.md, lemma 11.
@inlined
def column_of(star: Star, leaf: int, rank: np.uint64) -> np.uint64:
    """Return a column of those that a leaf's are drawn from, by its position among them."""
    first, last = star.leaves[leaf, WAYS], star.leaves[leaf, WAYS_END]
    way = first_above(star.way_sums, first, last, rank)
    if way > first:
        rank -= star.way_sums[way - ONE]
    high = rank // star.ways[way, LOWS]
    rank -= high * star.ways[way, LOWS]
    low = star.low_words[star.ways[way, LOW_START] + rank]
    return np.uint64(low | star.high_words[star.ways[way, HIGH_START] + high])


@inlined
def holds(star: Star, first: np.uint64, last: np.uint64, column: np.uint64, columns: Words) -> bool:
    """Return whether some conjunctions of a leaf are true of as many rows as they may."""
    for c in range(first, last):
        chosen = column ^ star.conjunctions[c, OWN]
        chosen &= columns[star.conjunctions[c, OTHER]] ^ star.conjunctions[c, FLIP]
        for literal in range(star.conjunctions[c, MORE], star.conjunctions[c, MORE_END]):
            chosen &= columns[star.literals[literal, 0]] ^ star.literals[literal, 1]
        # fewer than the least wrap round to very many
        if ones(chosen & star.everyone) - star.conjunctions[c, LEAST] > star.conjunctions[c, SPAN]:
            return False
    return True


# Proof: docs/proofs/rejection.md, lemmas 7 and 11.
@kernel
def star_trials(
    star: Star,
    order: Integers,
    turn: int,
    stop: int,
    end: int,
    words: Words,
    start: int,
    columns: Words,
    budget: int,
) -> tuple[int, int, int, int, np.int64]:
    """Make trials until a candidate survives all checks."""
    # A trial reads its words in order: one for the state, and half a word for each column drawn. If its
    # words do not reach, it is given up, and the caller must make it again from its first word.
    steps, state = 0, np.uint64(0)
    while turn < stop and steps <= STEPS * budget:
        if order[turn] >= end:
            turn += 1
            continue
        if start == len(words):
            return OUT_OF_WORDS, turn, start, steps // STEPS, np.int64(0)
        position, here = words[start] >> ONE, start + 1
        later, waiting = np.uint64(0), False  # the second half of a word
        alive = position < star.sums[-1]  # or else it is the slack of the shares
        if alive:
            state = first_above(star.sums, np.uint64(0), np.uint64(len(star.sums)), position)
            for hub in range(len(star.hubs)):
                columns[star.hubs[hub]] = star.hub_columns[state, hub]
            for leaf in range(len(star.leaves)):
                fits, column = False, np.uint64(0)
                while not fits:
                    if waiting:
                        half, waiting = later, False
                    elif here == len(words):
                        return OUT_OF_WORDS, turn, start, steps // STEPS, np.int64(0)
                    else:
                        half, later, waiting = words[here] & LOW_HALF, words[here] >> HALF, True
                        here += 1
                    steps += 1
                    product = half * star.leaves[leaf, SIZE]
                    if product & LOW_HALF < star.leaves[leaf, EXCESS]:
                        continue
                    column = column_of(star, leaf, product >> HALF)
                    fits = holds(star, star.leaves[leaf, FITS], star.leaves[leaf, CHECKS], column, columns)
                columns[star.leaves[leaf, ATTRIBUTE]] = column
                steps += 1
                alive = holds(star, star.leaves[leaf, CHECKS], star.leaves[leaf, CHECKS_END], column, columns)
                if not alive:
                    break
        start = here
        if alive:
            return SURVIVED, turn, start, steps // STEPS, np.int64(state)
        turn += 1
    return PAUSED, turn, start, steps // STEPS, np.int64(0)
