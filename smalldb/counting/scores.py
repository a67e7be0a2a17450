"""What a census needs of the data: integer scores of the small databases, as ranks in small tables."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from queries import Workload
from queries.arrays import Integers
from smalldb.counting import multisets

Ranks = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

Candidates = Literal["multisets", "tuples"]

MAX_SCORE = 1 << 62  # n x rows x D: scores are int64
MAX_ORDERING = 10**8  # queries x cells^2: about a second
MAX_RANKS = 1 << 26  # entries of the rank tables, at most 256 MiB; a public size: queries, rows, weights


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scores:
    """The score of every small database of ``rows`` rows, in units of ``1 / (n m D)``."""

    # A small database y is counts over the cells. Its answer to query j is the integer a_j = sum_i y_i
    # weights[i, j] (shifted and divided so that the least weight is 0), its score s(y) = max_j |m b_j - n
    # (A y)_j| = levels[max_j ranks[offsets[j] + a_j]]: a census carries a running maximum of small integers.

    rows: int  # m, the number of rows of a small database
    cells: Integers  # shape (N,): which cell of the domain stands at each position of the processing order
    # shape (N, k), int64, >= 0: what one row in the cell at that position adds to each answer
    weights: Integers
    # shape (k + 1,), int64: the ranks of query j are ``ranks[offsets[j]:offsets[j + 1]]``, one for each
    # answer ``0 .. m * max_i weights[i, j]``.
    offsets: Integers
    ranks: Ranks  # uint16 or uint32: the position of ``|m b_j - n (A y)_j|`` among ``levels``
    # shape (number of levels,), int64, ascending: every value that some query can take, so not each
    # need be the score of a candidate
    levels: Integers

    @property
    def parts(self) -> tuple[Any, ...]:
        """All that it holds, which tells it from others."""
        return tuple(getattr(self, field.name) for field in fields(self))

    # Proof: docs/proofs/census.md, lemma 1.
    @classmethod
    def build(cls, matrix: Integers, answers: Integers, n: int, rows: int, most: int = MAX_SCORE) -> "Scores":
        """Tabulate the scores of the databases of ``rows`` rows against the data's ``answers``."""
        order = settling_order(matrix)
        least = matrix.min(axis=1)
        shifted = (matrix - least[:, None])[:, order]
        steps = np.maximum(np.gcd.reduce(shifted, axis=1), 1)
        weights = np.ascontiguousarray((shifted // steps[:, None]).T)
        lengths = rank_lengths(weights, rows)
        if sum(lengths) > MAX_RANKS:
            raise ValueError(
                f"the score tables would need {sum(lengths)} entries, more than {MAX_RANKS}: "
                "use fewer rows, fewer queries, or weights with a smaller common denominator"
            )
        offsets = np.array([0, *np.cumsum(lengths, dtype=np.int64)], dtype=np.int64)
        values = np.empty(sum(lengths), dtype=np.int64)
        for j, length in enumerate(lengths):
            candidate = rows * least[j] + steps[j] * np.arange(length, dtype=np.int64)
            values[offsets[j] : offsets[j + 1]] = np.minimum(np.abs(rows * answers[j] - n * candidate), most)
        levels, ranks = np.unique(values, return_inverse=True)
        if len(levels) == 0:  # no query: every candidate has error zero
            levels = np.zeros(1, dtype=np.int64)
        narrow = ranks.astype(np.uint16) if len(values) < 1 << 16 else ranks.astype(np.uint32)
        return cls(rows, order, weights, offsets, narrow, levels)

    # Proof: docs/proofs/head-and-tail.md, lemma 1.
    def cut(self, rank: int) -> "Scores":
        """Return the scores in which all levels beyond the one of a rank are the next one."""
        # A census of them counts the candidates up to that level as before, and all others together
        return replace(
            self,
            ranks=np.minimum(self.ranks, rank + 1, dtype=self.ranks.dtype),
            levels=self.levels[: rank + 2],
        )


def base_measure(name: str) -> Candidates:
    """Read the name of a base measure: "multisets" or "tuples" (ordered rows)."""
    if name == "multisets":
        return "multisets"
    if name == "tuples":
        return "tuples"
    raise ValueError(f"candidates must be 'multisets' or 'tuples', not {name!r}")


# Proof: docs/proofs/census.md, lemma 2.
def rate_of(epsilon: Fraction, rows: int, denominator: int) -> Fraction:
    """Return what a unit of the score costs, epsilon / (2 m D): weights are ``exp(-rate score)``."""
    # A score is max_j |m b_j - n (A y)_j|, the error times n m D. Between neighbours n times the error
    # moves by at most 1, so a score by at most m D, and a weight, and the sum of all, by a factor of at
    # most exp(epsilon / 2) (`docs/proofs/census.md`).
    return epsilon / (2 * rows * denominator)


# Proof: docs/proofs/rejection.md, lemma 1.
def largest_score(n_max: int | None, rows: int, denominator: int) -> int:
    """Return the public number at which the scores of a mechanism that plans for `n_max` rows are cut off."""
    # A table of at most n_max rows has no score beyond n_max m D. Of a larger one, min(s, n_max m D)
    # moves by no more than s, and in the same direction: what is proved of s holds
    # (`docs/proofs/rejection.md`). None: n is public, and nothing is cut off.
    return MAX_SCORE if n_max is None else n_max * rows * denominator


# Proof: docs/proofs/census.md, lemma 1.
def too_large(n: int, rows: int, denominator: int) -> bool:
    """Whether scores could reach `MAX_SCORE`: n m D is the score of an error of 1."""
    return n * rows * denominator >= MAX_SCORE


def rank_count(workload: Workload, rows: int) -> int:
    """Return the entries that the rank tables have at most, whatever the weights: see `MAX_RANKS`."""
    return max(1, workload.size) * (rows * workload.denominator + 1)


def count(cells: int, rows: int, candidates: Candidates) -> int:
    """Return |R|: the multisets, C(N + m - 1, m), or the ordered rows, N^m."""
    return multisets.count(cells, rows) if candidates == "multisets" else cells**rows


def rank_lengths(weights: Integers, rows: int) -> list[int]:
    """Return how many answers each query can take: ``rows * largest weight + 1``."""
    return [rows * int(top) + 1 for top in weights.max(axis=0, initial=0)]


def settling_order(matrix: Integers) -> Integers:
    """Order the cells so that few queries are live at a time (public values only)."""
    # From the last position to the first, take the cell that leaves the fewest queries with different
    # weights on the cells taken so far, among those the one of least total weight. Equal columns are
    # side by side. Beyond k N^2 = `MAX_ORDERING` simply by descending total weight.
    if not len(matrix):
        return np.arange(matrix.shape[1])
    if matrix.size * matrix.shape[1] > MAX_ORDERING:
        return np.lexsort((*matrix, -matrix.sum(axis=0)))
    columns, group = np.unique(matrix, axis=1, return_inverse=True)
    left = np.argsort(columns.sum(axis=0), kind="stable")
    least = most = columns[:, left[:1]]
    position = np.empty(len(left), dtype=np.int64)
    for last in range(len(left) - 1, -1, -1):
        lows, highs = np.minimum(least, columns[:, left]), np.maximum(most, columns[:, left])
        chosen = int(np.argmin((lows != highs).sum(axis=0)))
        least, most = lows[:, [chosen]], highs[:, [chosen]]
        position[left[chosen]] = last
        left = np.delete(left, chosen)
    return np.argsort(position[group.ravel()], kind="stable")
