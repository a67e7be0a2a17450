"""Layers of states of the census by dynamic programming: merged, added to, joined and sorted.

A layer is a pair of uint64 arrays, ``keys`` of shape (states, words) and ``counts`` of shape (states, limbs),
both least significant word first; its keys are distinct and ascending. All sums fit: the caller sizes limbs
from public bounds. Arithmetic on counts wraps within a limb on purpose and carries on.
"""

import numpy as np

from queries.arrays import Integers, Words
from smalldb.kernels.bitwise import HALF, LOW_HALF, ONE, SPREAD
from smalldb.kernels.compiling import inlined, kernel

ZERO = np.uint64(0)
DIGIT = np.uint64(11)
DIGIT_MASK = np.uint64(2047)


@inlined
def add_row(totals: Words, i: int, terms: Words, j: int) -> None:
    """Add the number in row ``j`` of ``terms`` to the one in row ``i`` of ``totals``."""
    carry = ZERO
    for limb in range(totals.shape[1]):
        term = terms[j, limb]
        partial = totals[i, limb] + term
        total = partial + carry
        carry = ONE if partial < term or total < partial else ZERO
        totals[i, limb] = total


@kernel
def merge(keys: Words, counts: Words, more_keys: Words, more_counts: Words) -> tuple[Words, Words]:
    """Return the union of two layers; counts add up."""
    words, limbs = keys.shape[1], counts.shape[1]
    size, more = len(keys), len(more_keys)
    merged = np.empty((size + more, words), np.uint64)
    sums = np.empty((size + more, limbs), np.uint64)
    i = j = end = 0
    while i < size or j < more:
        side = 0
        if i == size:
            side = 1
        elif j == more:
            side = -1
        else:
            for word in range(words - 1, -1, -1):
                left, right = keys[i, word], more_keys[j, word]
                if left != right:
                    side = -1 if left < right else 1
                    break
        if side <= 0:
            for word in range(words):
                merged[end, word] = keys[i, word]
            for limb in range(limbs):
                sums[end, limb] = counts[i, limb]
            i += 1
            if side == 0:
                add_row(sums, end, more_counts, j)
                j += 1
        else:
            for word in range(words):
                merged[end, word] = more_keys[j, word]
            for limb in range(limbs):
                sums[end, limb] = more_counts[j, limb]
            j += 1
        end += 1
    return merged[:end], sums[:end]


@kernel
def add_multiple(
    keys: Words, counts: Words, part_keys: Words, part_counts: Words, delta: Words, factor: Words
) -> None:
    """Add ``factor`` times the counts of a layer, keys raised by ``delta``, to a layer of its keys."""
    words, digits = keys.shape[1], 2 * counts.shape[1]
    product = np.empty(digits, np.uint64)
    position = 0
    for t in range(len(part_keys)):
        word = 0
        while word < words:
            if keys[position, word] == part_keys[t, word] + delta[word]:
                word += 1
            else:
                position += 1
                word = 0
        for limb in range(counts.shape[1]):
            product[2 * limb] = counts[position, limb] & LOW_HALF
            product[2 * limb + 1] = counts[position, limb] >> HALF
        for i in range(digits):
            term = part_counts[t, i // 2]
            term = term >> HALF if i % 2 else term & LOW_HALF
            carry = ZERO
            for j in range(digits - i):
                if j >= len(factor) and carry == ZERO:
                    break
                value = product[i + j] + carry
                if j < len(factor):
                    value += term * factor[j]
                product[i + j] = value & LOW_HALF
                carry = value >> HALF
        for limb in range(counts.shape[1]):
            counts[position, limb] = product[2 * limb] | product[2 * limb + 1] << HALF


@kernel
def join(keys: Words, counts: Words) -> tuple[Words, Words]:
    """Return a layer of the distinct keys, ascending, with their counts added up; ``keys`` is overwritten."""
    words, limbs = keys.shape[1], counts.shape[1]
    sums = np.empty((len(keys), limbs), np.uint64)
    bits = 4
    while 1 << bits < 2 * len(keys):
        bits += 1
    slots = np.full(1 << bits, -1, np.int64)  # open addressing: positions of distinct keys
    last = len(slots) - 1
    unused = np.uint64(64 - bits)
    size = 0
    ascending = True
    for i in range(len(keys)):
        mixed = ZERO
        for word in range(words):
            mixed = (mixed ^ keys[i, word]) * SPREAD
            mixed ^= mixed >> HALF
        slot = np.int64((mixed * SPREAD) >> unused)
        position = slots[slot]
        while position >= 0:
            word = 0
            while word < words and keys[position, word] == keys[i, word]:
                word += 1
            if word == words:
                break
            slot = (slot + 1) & last
            position = slots[slot]
        if position >= 0:
            add_row(sums, position, counts, i)
            continue
        slots[slot] = size
        for word in range(words):
            keys[size, word] = keys[i, word]
        for limb in range(limbs):
            sums[size, limb] = counts[i, limb]
        if ascending and size > 0:
            word = words - 1
            while word > 0 and keys[size, word] == keys[size - 1, word]:
                word -= 1
            ascending = keys[size - 1, word] < keys[size, word]
        size += 1
    order = np.arange(size) if ascending else ascending_order(keys[:size])
    return taken(keys, order), taken(sums, order)


@kernel
def taken(rows: Words, order: Integers) -> Words:
    """Return the rows in that order."""
    copy = np.empty((len(order), rows.shape[1]), np.uint64)
    for i in range(len(order)):
        for column in range(rows.shape[1]):
            copy[i, column] = rows[order[i], column]
    return copy


@kernel
def ascending_order(keys: Words) -> Integers:
    """Return the permutation that sorts the keys: a radix sort over the bits that vary, least digit first."""
    order = np.arange(len(keys))
    other = np.empty_like(order)
    starts = np.empty(2048, np.int64)
    for word in range(keys.shape[1]):
        varying = ZERO
        for i in range(len(keys)):
            varying |= keys[i, word] ^ keys[0, word]
        shift = ZERO
        while varying >> shift != ZERO:
            while (varying >> shift) & ONE == ZERO:
                shift += ONE
            starts[:] = 0
            for i in range(len(keys)):
                starts[np.int64((keys[i, word] >> shift) & DIGIT_MASK)] += 1
            total = 0
            for digit in range(len(starts)):
                count = starts[digit]
                starts[digit] = total
                total += count
            for position in order:
                bucket = np.int64((keys[position, word] >> shift) & DIGIT_MASK)
                other[starts[bucket]] = position
                starts[bucket] += 1
            order, other = other, order
            shift += DIGIT
            if shift >= np.uint64(64):
                break
    return order
