"""The draws: each finds its winner by octaves, exactly, without a list of probabilities.

`docs/proofs/select.md` proves their laws.
"""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from math import ceil, isqrt
from typing import final

import numpy as np

from smalldb.exact.bits import BitSource
from smalldb.exact.coins import Known, Lazy, Shifted, Uniform, bernoulli_exp, halved
from smalldb.exact.integers import uniform_below
from smalldb.selection.scored import OCTAVES, Scored

SURE = -1  # the winner is one of those that were sure to show heads
ABOVE_LOG2_E = Fraction(1442695041, 10**9)

DEEP = OCTAVES // 2  # once nothing is left above, octaves are counted anew


# Proof: docs/proofs/select.md, lemma 2.
def exponential(scored: Scored, source: BitSource) -> int:
    """Draw candidate i with probability proportional to weight_i exp(-r_i)."""
    # an octave is drawn by its weight 2^-j, a candidate in it, and that one is kept with probability
    # 2^j exp(-r_i), about one half at least; or else all starts anew
    while True:
        octaves = list(scored.octaves)
        ends = list(accumulate(weight << (OCTAVES - octave) for octave, weight in scored.octaves.items()))
        octave = octaves[bisect_right(ends, uniform_below(ends[-1], source))]
        index = scored.pick(octave, source)
        if bernoulli_exp(scored.depth(scored.score(index)), source, Fraction(1 << octave)):
            return index


# Proof: docs/proofs/select.md, lemma 3.
def permute_and_flip(scored: Scored, source: BitSource) -> int:
    """Take candidates in uniform order until one's coin shows heads, of probability exp(-r_i)."""
    # the coins may as well be thrown first: the winner is a uniform one of those that show heads
    index = _uniform_head(scored, None, 0, Known(Fraction(0)), False, source)
    if index is None:
        raise ArithmeticError("the best one's coin always shows heads")
    return index


# Proof: docs/proofs/select.md, lemma 5.
def noisy_max(scored: Scored, source: BitSource) -> int:
    """Draw the candidate for which Laplace noise of scale 1, minus r_i, is the largest."""
    # Noise is positive or negative by a fair coin, and exponential in size. Go down from 0 to the first
    # level g that holds positive noise; each candidate passed on the way has negative noise, and dies
    # at rate 1. Let m be the depth at which one dies, or else g. Those with positive noise exceed -m
    # with probability exp(-(r_i - m)) each, and then by amounts of one law, so a uniform one of them
    # wins; if none does, the dead one, which is a uniform one of those passed.
    # Two candidates, r = 0 and 1: the second wins with probability 3/4 e^-1 = 0.276. Of that, e^-1/8 falls
    # where the best has positive noise, e^-1/4 where it dies before depth 1 (the second's coin then shows
    # heads with e^-(1 - m) / 2), and 3/8 e^-1 where it lives so far: then the second has positive noise, or
    # both are alike.
    passed, last, depth = 0, scored.best, Fraction(0)
    for score, count in scored.levels():
        m = _death(depth, scored.depth(score), passed, source)
        if m is not None:
            index = _uniform_head(scored, last, 0, m, True, source)
            return scored.pick_from(last, source, above=True) if index is None else index
        depth = scored.depth(score)
        if positive := halved(count, 1, source):
            index = _uniform_head(scored, score, positive, Known(depth), True, source)
            return scored.pick_from(score, source) if index in (SURE, None) else index
        passed, last = passed + count, score
    return scored.pick_from(last, source, above=True)


# Proof: docs/proofs/select.md, lemma 5.
def _death(start: Fraction, end: Fraction, rate: int, source: BitSource) -> Lazy | None:
    """Draw where the first of `rate` things dies that each die at rate 1, if that is before the end."""
    while rate and start < end:
        step = min(end - start, Fraction(1, rate))
        if not bernoulli_exp(rate * step, source):
            while True:
                uniform = Uniform(source)
                if bernoulli_exp(Shifted(Fraction(0), rate * step, uniform), source):
                    return Shifted(start, step, uniform)
        start += step
    return None


# Proof: docs/proofs/select.md, lemma 4.
def _uniform_head(
    scored: Scored, below: Fraction | None, sure: int, m: Lazy, signed: bool, source: BitSource
) -> int | None:
    """Draw a uniform one of the heads: `sure` ones, and the candidates whose coin shows heads."""
    # Each candidate below a score (None: all) throws heads with probability exp(-(r - m)), or half of
    # that if `signed`. Coins are thrown in uniform order until one shows heads, or all at once, where
    # fair coins first thin out each octave; of the two exact ways, the one with fewer coins.
    counts = scored.octaves if below is None else scored.below(below)
    shift = ceil(m.enclosure(64)[1] * ABOVE_LOG2_E)
    tosses = {octave: max(0, octave - shift) for octave in counts}
    expected = sum(Fraction(count, 1 << tosses[octave]) for octave, count in counts.items())
    if expected > isqrt(scored.size):
        left, tried = sum(counts.values()), set[int]()
        while sure or len(tried) < left:
            index = uniform_below(sure + scored.size, source) - sure
            if index < 0:
                return SURE
            score = scored.score(index)
            if index in tried or not scored.holds(index) or (below is not None and score >= below):
                continue
            tried.add(index)
            if (not signed or source.bits(1)) and bernoulli_exp(
                Shifted(scored.depth(score), Fraction(-1), m), source
            ):
                return index
        return None
    survivors = {octave: halved(n, tosses[octave] + signed, source) for octave, n in counts.items()}
    heads = [
        index
        for octave, some in scored.some({j: n for j, n in survivors.items() if n}, below, source).items()
        for index in some
        if bernoulli_exp(
            Shifted(scored.depth(scored.score(index)), Fraction(-1), m), source, Fraction(1 << tosses[octave])
        )
    ]
    if not sure and not heads:
        return None
    position = uniform_below(sure + len(heads), source) - sure
    return SURE if position < 0 else heads[position]


def ranked(scored: Scored, k: int, source: BitSource) -> list[int]:
    """Draw k candidates without replacement, each by weight exp(-r) among those left."""
    # That is also the law of the k largest scores with Gumbel noise, in their order (Durfee and Rogers
    # 2019). A draw is that of `drawing.exponential`: an octave by its weight 2^-j, a candidate in it,
    # and a coin of probability 2^j exp(-r), or all anew. Candidates lie in heaps by octave, and one
    # that is drawn leaves its heap, so a draw looks at no other one. Octaves are those below the best
    # one of all, until only deep ones are left: the last octave has no floor, and its coins would
    # seldom show heads.
    drawn: list[int] = []
    while True:
        heaps, before = Heaps(scored), len(drawn)
        while heaps.shallow:
            octave, position = heaps.pick(source)
            index = heaps.at(octave, position)
            if bernoulli_exp(scored.depth(scored.score(index)), source, Fraction(1 << octave)):
                drawn.append(index)
                if len(drawn) == k:
                    return drawn
                heaps.remove(octave, position)
        scored.drop(drawn[before:])


@final
class Heaps:
    """The candidates that are left, in heaps by octave, each with its weight."""

    def __init__(self, scored: Scored) -> None:
        index, octaves = scored.located()
        present, sizes = np.unique(octaves, return_counts=True)
        parts = np.split(index[np.argsort(octaves, kind="stable")], np.cumsum(sizes)[:-1])
        self._scored = scored
        self._heaps = dict(zip(present.tolist(), parts, strict=True))
        self._weights = dict(scored.octaves)
        self._weigh()

    @property
    def shallow(self) -> bool:
        """Whether any candidate is left in the upper half of the octaves."""
        return self._octaves[0] < DEEP if self._octaves else False

    def pick(self, source: BitSource) -> tuple[int, int]:
        """Draw an octave by its weight, and a position in its heap by the weights there."""
        octave = self._octaves[bisect_right(self._ends, uniform_below(self._ends[-1], source))]
        position = uniform_below(self._weights[octave], source)
        if self._scored.weights is not None:
            ends = list(accumulate(self._scored.weights[i] for i in self._heaps[octave].tolist()))
            position = bisect_right(ends, position)
        return octave, position

    def at(self, octave: int, position: int) -> int:
        """Return the candidate at a position of a heap."""
        return int(self._heaps[octave][position])

    def remove(self, octave: int, position: int) -> None:
        """Take one out; the last one of its heap takes its place."""
        heap, weights = self._heaps[octave], self._scored.weights
        self._weights[octave] -= 1 if weights is None else weights[heap[position]]
        heap[position] = heap[-1]
        self._heaps[octave] = heap[:-1]
        self._weigh()

    def _weigh(self) -> None:
        self._octaves = [octave for octave, weight in self._weights.items() if weight]
        self._ends = list(accumulate(self._weights[j] << (OCTAVES - j) for j in self._octaves))
