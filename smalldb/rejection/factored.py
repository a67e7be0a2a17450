"""Workloads whose queries look at one attribute each: columns are independent, nothing is rejected."""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from math import comb
from operator import mul

import numpy as np

from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level
from smalldb.rejection.target import Bits, Target


class Factored:
    """SmallDB over ordered rows where the score is a maximum over single columns; confidential."""

    # N(s), the number of candidates of score at most s, is the product over the columns of how many
    # columns have score at most s. No trials are needed.

    trials = 0

    def __init__(self, target: Target, rate: Fraction) -> None:
        self._rows, self._rate = target.rows, rate
        self._scores = _column_scores(target)
        self._levels = _levels(self._scores, target.rows)

    def __repr__(self) -> str:
        return "<Factored: computed from the data>"

    # Proof: docs/proofs/rejection.md, lemma 9.
    def draw(self, source: BitSource) -> tuple[Bits, int]:
        """Draw m ordered rows, shape (m, d), and their score, in proportion to exp(-rate score)."""
        score = draw_level(self._levels, self._rate, source)
        return self.candidate(score, uniform_below(self._levels[score], source)), score

    def candidate(self, score: int, position: int) -> Bits:
        """Return the candidate at a position among those of a score, as rows: shape (m, d)."""
        below = [_counts(scores, score - 1, self._rows) for scores in self._scores]
        upto = [_counts(scores, score, self._rows) for scores in self._scores]
        # candidates of this score, by the first column that has it
        totals = [(sum(some.values()), sum(more.values())) for some, more in zip(below, upto, strict=True)]
        after = [*accumulate((more for _, more in totals[:0:-1]), mul, initial=1)][::-1]
        first, before = 0, 1
        while position >= (here := before * (totals[first][1] - totals[first][0]) * after[first]):
            position, before, first = position - here, before * totals[first][0], first + 1
        exactly = {c: ways for c, ways in upto[first].items() if c not in below[first]}
        columns = []
        for choices in (*below[:first], exactly, *upto[first + 1 :]):
            position, index = divmod(position, sum(choices.values()))
            columns.append(_column(choices, index, self._rows))
        return np.array(columns, dtype=np.uint8).T


def _column_scores(target: Target) -> list[list[int]]:
    """Return the score of each column by its number of ones, cut off: d lists of m + 1."""
    scores = [[0] * (target.rows + 1) for _ in range(target.attributes)]
    for table, answer in zip(target.tables, target.answers.tolist(), strict=True):
        weights = (0, target.unit) if table.weights is None else table.weights.tolist()
        column = scores[table.attributes[0]]
        for ones in range(target.rows + 1):
            found = weights[0] * (target.rows - ones) + weights[1] * ones
            gap = abs(target.rows * answer - target.n * found)
            column[ones] = max(column[ones], min(gap, target.largest_score))
    return scores


def _levels(scores: list[list[int]], rows: int) -> dict[int, int]:
    """Return how many candidates have each score."""
    steps = sorted(
        (score, a, comb(rows, ones)) for a, column in enumerate(scores) for ones, score in enumerate(column)
    )
    columns, missing, before = [0] * len(scores), len(scores), 0
    product, levels = 1, {}
    for position, (score, a, ways) in enumerate(steps):
        if columns[a]:
            product = product // columns[a] * (columns[a] + ways)
        else:
            product, missing = product * ways, missing - 1
        columns[a] += ways
        if not missing and (position + 1 == len(steps) or steps[position + 1][0] > score):
            levels[score], before = product - before, product
    return levels


def _counts(scores: list[int], most: int, rows: int) -> dict[int, int]:
    """Return how many columns have each number of ones, among those of score at most `most`."""
    return {ones: comb(rows, ones) for ones, score in enumerate(scores) if score <= most}


def _column(choices: dict[int, int], index: int, rows: int) -> list[int]:
    """Return the column at a position among those with the given numbers of ones."""
    ends = list(accumulate(choices.values()))
    position = bisect_right(ends, index)
    ones = list(choices)[position]
    index -= ends[position] - choices[ones]
    column = []
    for left in range(rows - 1, -1, -1):
        without = comb(left, ones)
        column.append(int(index >= without))
        if index >= without:
            index, ones = index - without, ones - 1
    return column
