"""Ranked lists: k exponential draws without replacement, from one pass over the scores."""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from typing import final

import numpy as np

from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.exact.integers import uniform_below
from smalldb.selection.scored import OCTAVES, Scored

DEEP = OCTAVES // 2  # once nothing is left above, octaves are counted anew


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
        found, sizes = np.unique(octaves, return_counts=True)
        parts = np.split(index[np.argsort(octaves, kind="stable")], np.cumsum(sizes)[:-1])
        self._scored = scored
        self._heaps = dict(zip(found.tolist(), parts, strict=True))
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
