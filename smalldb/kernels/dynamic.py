"""Kernels of the census by dynamic programming: states are settled, layer by layer, and searched.

The key of a state holds the running maximum rank in the low bits of word 0 and one bit field for each live
query. All sums fit: the caller sizes fields from public bounds. Layers: see `kernels.census_layers`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queries.arrays import Integers, Words
from smalldb.kernels.bitwise import HALF, LOW_HALF, ONE
from smalldb.kernels.census_layers import join, taken
from smalldb.kernels.compiling import kernel


class Program(NamedTuple):
    """What the settling of keys reads: k queries, N cells in processing order."""

    # A query has no field while all cells so far give it the same weight (its answer is then known from
    # the rows used) nor once all later cells do (its answer is then final)

    # ranks, offsets: as in `smalldb.counting.scores.Scores`
    ranks: npt.NDArray[np.uint32]
    offsets: Integers
    best: Integers  # shape (k,): the position in ``ranks`` of the least rank of each query
    opening: Integers  # shape (k,): the weight of each query on the first cell
    # born, settled: shape (k,): the first cell with another weight than the first one, and the cell
    # after which all weights are the same (N and -1 for a constant query)
    born: Integers
    settled: Integers
    # positions, widths: shape (k,): the first bit of the query's field in the key, which lies in one
    # word, and its bits
    positions: Integers
    widths: Integers
    words: int  # uint64 words of a key
    rank_bits: int  # how many low bits of word 0 hold the running maximum rank


class Step(NamedTuple):
    """How the keys of one layer change."""

    rank_bits: int  # of the program
    floor: np.int64  # the least rank that the queries without a field must still reach
    fields: Words  # shape (fields, 5): one row for each query that has a field, see the column names
    # for each answer of each field, the least rank that it can still lead to in the low half and the
    # largest in the high half
    outlook: Words
    fresh: Words  # shape (words,): the answers to write into the fields that open with the next cell


# Columns of `Step.fields`: where the field lies in the key, where its answers start in `Step.outlook`,
# and the answer that stands for all those that no longer matter.
WORD, SHIFT, MASK, START, STANDARD = range(5)
BLOCK = 512  # keys brought to standard form at a time: their scratch stays in the nearest cache


@kernel
def plan_step(
    program: Program, cell: int, done: bool, used: int, left: int, least: Integers, most: Integers
) -> Step:
    """Say how the keys of ``used`` rows change at a cell, with ``left`` rows still to come."""
    # Fields open and close when a cell is done. The ranks of a query fall to the best one and then
    # rise, so those of an interval of answers lie between the best, if it is inside, or else the
    # smaller end, and the larger end.
    ranks, offsets = program.ranks, program.offsets
    fields = np.zeros((len(program.best), 5), np.uint64)
    outlook = np.empty(len(ranks), np.uint64)
    fresh = np.zeros(program.words, np.uint64)
    floor = np.int64(0)
    live = start = 0
    for j in range(len(program.best)):
        if program.settled[j] < cell:
            continue
        word, shift = program.positions[j] // 64, np.uint64(program.positions[j] % 64)
        low, high, best = offsets[j] + left * least[j], offsets[j] + left * most[j], program.best[j]
        known = program.born[j] > cell
        answer = used * program.opening[j]
        first, end = (answer, answer + 1) if known else (0, offsets[j + 1] - high)
        standard = 0
        for a in range(first, end):
            ends = np.int64(ranks[low + a]), np.int64(ranks[high + a])
            reached = np.int64(ranks[best]) if low + a < best < high + a else min(ends)
            outlook[start + a - first] = np.uint64(max(ends)) << HALF | np.uint64(reached)
            if outlook[start + a - first] >> HALF < outlook[start + standard] >> HALF:
                standard = a
        if known:
            floor = max(floor, np.int64(outlook[start] & LOW_HALF))
            if done and program.born[j] == cell + 1 and program.settled[j] > cell:
                fresh[word] += np.uint64(answer) << shift
            continue
        fields[live, WORD] = word
        fields[live, SHIFT] = shift
        fields[live, MASK] = (ONE << np.uint64(program.widths[j])) - ONE
        fields[live, START] = start
        fields[live, STANDARD] = 0 if done and program.settled[j] == cell else standard
        start += end - first
        live += 1
    return Step(program.rank_bits, floor, fields[:live], outlook[:start], fresh)


@kernel
def standardise(keys: Words, step: Step) -> None:
    """Bring keys to standard form, in place."""
    # the running maximum rises to what every query must still reach; the answer of a query that can no
    # longer exceed it, settled or dominated, becomes the standard one
    fields, outlook, words = step.fields, step.outlook, keys.shape[1]
    rank_mask = (ONE << np.uint64(step.rank_bits)) - ONE
    # one column a word: the loops over a block are then compiled to vector instructions
    block = np.empty((words, BLOCK), np.uint64)
    tops = np.empty(BLOCK, np.uint64)
    worst = np.empty((len(fields), BLOCK), np.uint64)
    for start in range(0, len(keys), BLOCK):
        size = min(BLOCK, len(keys) - start)
        for word in range(words):
            for i in range(size):
                block[word, i] = keys[start + i, word]
        for i in range(size):
            tops[i] = max(block[0, i] & rank_mask, np.uint64(step.floor))
        for q in range(len(fields)):
            column, maxima = block[np.int64(fields[q, WORD])], worst[q]
            shift, mask, first = fields[q, SHIFT], fields[q, MASK], fields[q, START]
            for i in range(size):
                ranks = outlook[first + ((column[i] >> shift) & mask)]
                tops[i] = max(tops[i], ranks & LOW_HALF)
                maxima[i] = ranks >> HALF
        for q in range(len(fields)):
            column, maxima = block[np.int64(fields[q, WORD])], worst[q]
            others = ~(fields[q, MASK] << fields[q, SHIFT])
            standard = fields[q, STANDARD] << fields[q, SHIFT]
            for i in range(size):
                column[i] = column[i] & others | standard if maxima[i] <= tops[i] else column[i]
        for i in range(size):
            block[0, i] = block[0, i] & ~rank_mask | tops[i]
        for word in range(words):
            for i in range(size):
                keys[start + i, word] = block[word, i] + step.fresh[word]


@kernel
def settle(keys: Words, counts: Words, delta: Words, step: Step) -> tuple[Words, Words]:
    """Return the layer with its keys raised by ``delta``, in standard form and equal ones joined."""
    standard = raised(keys, np.arange(len(keys)), delta)
    standardise(standard, step)
    return join(standard, counts)


@kernel
def raised(keys: Words, positions: Integers, delta: Words) -> Words:
    """Return the keys at some positions, raised by ``delta``."""
    copy = taken(keys, positions)
    for i in range(len(copy)):
        for word in range(len(delta)):
            copy[i, word] += delta[word]
    return copy


@kernel
def predecessors(keys: Words, delta: Words, target: Words, step: Step) -> Integers:
    """Return the positions of the keys that become ``target`` once raised by ``delta`` and settled."""
    rank_mask = (ONE << np.uint64(step.rank_bits)) - ONE
    positions = np.empty(len(keys), np.int64)
    size = 0
    for i in range(len(keys)):
        if keys[i, 0] & rank_mask <= target[0] & rank_mask:  # the running maximum never falls
            positions[size] = i
            size += 1
    standard = raised(keys, positions[:size], delta)
    standardise(standard, step)
    end = 0
    for i in range(size):
        word = 0
        while word < len(target) and standard[i, word] == target[word]:
            word += 1
        if word == len(target):
            positions[end] = positions[i]
            end += 1
    return positions[:end].copy()
