"""Whether most pairs of columns depend: one number, which decides how tables of two columns are measured."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import pi, sqrt

import numpy as np

from queries.domain import Integers
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.universe import Universe

MOVED = 4  # by how much the distance of a table from independent columns moves with a row, at most
DEPENDENT_SHARE = 2 / 5  # of the largest number that can be released: from there on, most pairs depend
_NOISES_AT_TOP = 3  # times the noise of a table, beyond which its distance counts no further
_MOST_NOISE_SHARE = 1 / 4  # of the largest number: its mean noise, at most
_PLAIN = 1 << 30  # rows up to which products of counts, and their sums, fit int64

Pairs = Mapping[tuple[int, int], float]


def tops(universe: Universe, noise: Pairs) -> dict[tuple[int, int], int]:
    """
    Return up to which distance, in rows, each pair counts: some times what such noise puts its table off.

    Columns that are nearer to independent than noise are better left alone than measured with it.
    """
    return {pair: round(_NOISES_AT_TOP * sqrt(v * 2 / pi) * universe.size(pair)) for pair, v in noise.items()}


def answerable(universe: Universe, noise: Pairs, law: PrivacyMeasure, cost: Fraction) -> bool:
    """Whether the number at that cost is not lost in its own noise."""
    most = tops(universe, noise)
    return law.noise(cost / (MOVED * len(most))).mean_size <= _MOST_NOISE_SHARE * sum(most.values())


# Proof: docs/proofs/rounds.md, lemma 13.
def distance(counts: Integers) -> int:
    """
    Return how far the counts of a table are from those of independent columns with its margins, rounded down.

    The sum over cells of abs(count - row sum x column sum / n), in exact integers.

    Examples
    --------
    >>> distance(np.array([[3, 0], [0, 3]]))
    6
    """
    n = int(counts.sum())
    if not n:
        return 0
    exact = counts if n < _PLAIN else counts.astype(object)
    return int(np.abs(n * exact - np.outer(exact.sum(axis=1), exact.sum(axis=0))).sum()) // n


# Proof: docs/proofs/rounds.md, lemma 13.
def summed(most: Sequence[int], counts: Sequence[Integers]) -> int:
    """Return the sum of the distances of tables, each up to its top; a row moves it by `MOVED` for each."""
    return sum(min(top, distance(table)) for top, table in zip(most, counts, strict=True))


def mostly(released: int, universe: Universe, noise: Pairs) -> bool:
    """Tell whether that number says that most pairs depend."""
    return released >= DEPENDENT_SHARE * sum(tops(universe, noise).values())
