"""Uniform and geometric integers, exactly and in bulk: random bits in, and no float anywhere."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.levels import exp_enclosure

# precision to integers (lo, hi) with lo <= 2^precision p <= hi, as narrow as wanted
Enclosure: TypeAlias = Callable[[int], tuple[int, int]]

CLIP = 1 << 61  # noise is cut off there, and sums with it at half of that: see `marginals.asks.Noisy.draw`
DIGIT = 8  # bits of a coin that are revealed at a time
_AT_ONCE = 1 << 14  # integers unpacked at a time: a multiple of 8, so that their first bits begin a byte


# Proof: docs/proofs/draw.md, lemma 4.
def uniform_below(n: int, source: BitSource) -> int:
    """Draw a uniform integer of 0..n-1, exactly, by the fast dice roller (Lumbroso 2013, arXiv:1304.1916)."""
    # what a rejected draw leaves is kept, so that fewer than log2(n) + 2 bits are used on average
    if n < 1:
        raise ValueError("n must be at least 1")
    # drawn is always uniform below span
    span, drawn = 1, 0
    while True:
        doublings = n.bit_length() - span.bit_length()
        doublings += span << doublings < n
        span <<= doublings
        drawn = drawn << doublings | source.bits(doublings)
        if drawn < n:
            return drawn
        span, drawn = span - n, drawn - n


# Proof: docs/proofs/draw.md, lemma 4.
def uniform_integers(bound: int, count: int, source: BitSource) -> Integers:
    """Draw independent uniform integers of 0..bound-1, exactly: int64, shape (count,), for bound <= 2^62."""
    # as many bits as `bound` has are drawn for each at once, and again for those that are too large: on
    # average less than twice
    width = (bound - 1).bit_length()
    drawn = np.zeros(count, dtype=np.int64)
    pending = np.arange(count)
    while len(pending):
        drawn[pending] = _fields(width, len(pending), source)
        pending = pending[drawn[pending] >= bound]
    return drawn


# Proof: docs/proofs/draw.md, lemma 4.
def uniform_subset(size: int, count: int, source: BitSource) -> set[int]:
    """Draw `count` of the integers 0..size-1, uniformly, exactly (Floyd's algorithm, Bentley 1987)."""
    subset = set[int]()
    for last in range(size - count, size):
        drawn = uniform_below(last + 1, source)
        subset.add(last if drawn in subset else drawn)
    return subset


def uniform_permutation(count: int, source: BitSource) -> Integers:
    """Draw a uniform permutation of 0..count-1, exactly: the order of random keys of 64 bits."""
    while True:
        drawn = source.bits(64 * count).to_bytes(8 * count, "big")
        keys = np.frombuffer(drawn, dtype=">u8").astype(np.uint64)
        order = np.argsort(keys)
        ranked = keys[order]
        # equal keys have no order of their own: all are drawn again
        if not (ranked[1:] == ranked[:-1]).any():
            return order


# Proof: docs/proofs/draw.md, lemma 6.
def whole_geometric(rate: Fraction, count: int, source: BitSource) -> npt.NDArray[Any]:
    """Draw independent X with P(X = x) proportional to exp(-rate |x|), exactly, not cut off."""
    # int64, or Python ints where some may need more. The difference of two geometric variables. The
    # binary digits of a geometric variable of ratio q are independent: digit i is 1 with probability
    # q^(2^i) / (1 + q^(2^i)); what stands above the digits is geometric of ratio q^(2^digits), and
    # counts the heads before the first tail.
    digits = max(0, (1 / rate).__ceil__().bit_length())
    ones, heads = np.zeros((2, 2 * count), dtype=np.int64 if digits < 63 else object)
    for i in range(digits):
        ones += coins(logistic(rate * (1 << i)), 2 * count, source).astype(ones.dtype) << i
    running = np.arange(2 * count)
    while len(running):
        running = running[coins(decay(rate * (1 << digits)), len(running), source)]
        heads[running] += 1
    if heads.max(initial=0) >= CLIP >> digits:  # beyond 64 bits, perhaps
        ones, heads = ones.astype(object), heads.astype(object)
    both = ones + (heads << digits)
    difference: npt.NDArray[Any] = both[:count] - both[count:]
    return difference


# Proof: docs/proofs/draw.md, lemma 7.
def clipped(values: Sequence[int]) -> Integers:
    """Move what lies beyond -CLIP or CLIP there: int64."""
    return np.array([max(-CLIP, min(CLIP, value)) for value in values], dtype=np.int64)


# Proof: docs/proofs/draw.md, lemma 5.
def coins(probability: Enclosure, count: int, source: BitSource) -> npt.NDArray[np.bool_]:
    """Throw coins that show heads with a probability below 1 that is irrational, exactly: shape (count,)."""
    # A uniform number is compared with it digit by digit, each as often as its digits are equal
    # (`docs/proofs/draw.md`, lemma 5)
    heads, pending, position = np.zeros(count, dtype=bool), np.arange(count), 0
    while len(pending):
        position += 1
        digit = _expansion(probability, position)
        drawn = _fields(DIGIT, len(pending), source)
        heads[pending] = drawn < digit
        pending = pending[drawn == digit]
    return heads


def _fields(width: int, count: int, source: BitSource) -> Integers:
    """Draw `count` uniform integers of `width` bits, width < 64."""
    total = width * count
    packed = np.frombuffer((source.bits(total) << -total % 8).to_bytes(-(-total // 8), "big"), dtype=np.uint8)
    values = np.empty(count, dtype=np.int64)
    for first in range(0, count, _AT_ONCE):
        some = values[first : first + _AT_ONCE]
        bits = np.unpackbits(packed[first * width // 8 :], count=len(some) * width)
        fields = np.zeros((len(some), 64), dtype=np.uint8)
        fields[:, 64 - width :] = bits.reshape(len(some), width)
        some[:] = np.packbits(fields, axis=1).view(">i8").ravel()
    return values


# Proof: docs/proofs/draw.md, lemmas 5 and 9.
def _expansion(probability: Enclosure, position: int) -> int:
    """Return a digit of a number in [0, 1) to the base 2^DIGIT, counted from 1 behind the point."""
    precision = wanted = position * DIGIT
    while True:
        precision += 32
        low, high = (end >> (precision - wanted) for end in probability(precision))
        if low == high:
            if low >> wanted:
                raise ArithmeticError("the probability of a coin is 1 or above: this must not happen")
            return low & ((1 << DIGIT) - 1)


def decay(r: Fraction) -> Enclosure:
    """Enclose exp(-r)."""
    return lambda precision: exp_enclosure(r, precision)


def logistic(r: Fraction) -> Enclosure:
    """Enclose exp(-r) / (1 + exp(-r))."""

    def enclosure(precision: int) -> tuple[int, int]:
        low, high = exp_enclosure(r, precision)
        unit = 1 << precision
        return (low << precision) // (unit + low), -((-high << precision) // (unit + high))

    return enclosure
