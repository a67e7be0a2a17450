"""Answers of queries on columns, and the bounds that are looked up after each column."""

from typing import NamedTuple

import numpy as np

from queries.arrays import Integers, Words
from smalldb.kernels.bitwise import ONE, ones
from smalldb.kernels.compiling import inlined, kernel

CONJUNCTION, PARITY, TABLE = range(3)


class Queries(NamedTuple):
    """Answers on columns: ``offset + factor count`` of the rows that a query counts; tables add weights."""

    # shape (k,): `CONJUNCTION` counts the rows on which all literals hold, `PARITY` those with an odd
    # number of ones, `TABLE` adds the weight of each row's setting
    kinds: Integers
    position_start: Integers  # shape (k + 1,): where a query's attributes start, in
    positions: Integers  # shape (literals,), ascending; and
    flips: Words  # shape (literals,), all bits set where the literal is negated
    weight_start: Integers  # shape (k + 1,): where its table starts, in
    weights: Integers  # shape (entries,), product order
    # offsets, factors: shape (k,)
    offsets: Integers
    factors: Integers


class Checks(NamedTuple):
    """What is looked up after each column: queries that no clique holds, with the bounds of each layer."""

    start: Integers  # shape (nodes + 1,): where the queries to check after a node start, in
    queries: Integers  # shape (checks,)
    # lows, highs: shape (checks,): the bounds on each answer
    lows: Integers
    highs: Integers


@inlined
def answer(queries: Queries, j: int, columns: Words, everyone: np.uint64) -> int:
    """Return the answer of query j on the columns."""
    first, last = queries.position_start[j], queries.position_start[j + 1]
    if queries.kinds[j] == CONJUNCTION:
        chosen = everyone
        for literal in range(first, last):
            chosen &= columns[queries.positions[literal]] ^ queries.flips[literal]
        return int(queries.offsets[j] + queries.factors[j] * np.int64(ones(chosen)))
    if queries.kinds[j] == PARITY:
        chosen = np.uint64(0)
        for literal in range(first, last):
            chosen ^= columns[queries.positions[literal]]
        return int(queries.offsets[j] + queries.factors[j] * np.int64(ones(chosen)))
    total = queries.offsets[j]
    row = everyone
    shift = np.uint64(0)
    while row:
        setting = np.uint64(0)
        for literal in range(first, last):
            setting = setting << ONE | (columns[queries.positions[literal]] >> shift) & ONE
        total += queries.weights[queries.weight_start[j] + np.int64(setting)]
        row >>= ONE
        shift += ONE
    return int(total)


@kernel
def answers_of(queries: Queries, columns: Words, everyone: np.uint64) -> Integers:
    """Return all answers, shape (k,)."""
    answers = np.empty(len(queries.kinds), np.int64)
    for j in range(len(answers)):
        answers[j] = answer(queries, j, columns, everyone)
    return answers
