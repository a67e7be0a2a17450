"""Rows whose tables are counted on demand: over categories, or over groups of categories."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from math import prod

import numpy as np

from queries.arrays import Codes
from queries.domain import Integers
from smalldb.files.checkpoints import finished

MOST = 1 << 53  # rows: sums of counts are exact in floats up to there
PIECE = 1 << 20  # distinct rows that are counted together, at least
PIECES = 16  # at most: each may bring tables of some 100 MB


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """
    Rows as codes, with how often each is there: the data, which are private, or synthetic ones.

    Attributes
    ----------
    codes
        Shape (r, C), integers: the code of each column.
    counts
        Shape (r,), int64, at least 0; the sum is below 2^53.
    """

    codes: Codes
    counts: Integers

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or self.counts.shape != self.codes.shape[:1]:
            raise ValueError("codes must have shape (r, C), and counts shape (r,)")
        if self.counts.dtype != np.int64:
            raise TypeError("counts must be int64")

    # Proof: docs/proofs/rounds.md, lemma 1.
    def table(self, columns: Sequence[int], sizes: Sequence[int]) -> Integers:
        """
        Count the rows in each cell of a table; an int64 array of shape `sizes`.

        Between neighbours under add-remove one cell moves by 1; under replace-one two do, or none.

        Parameters
        ----------
        columns, sizes
            Of the table, in the order of its axes: their numbers, and how many categories each has.
        """
        cells = np.zeros(len(self.codes), dtype=np.int64)
        for column, size in zip(columns, sizes, strict=True):
            cells *= size
            cells += self.codes[:, column]
        return self._sums(cells, prod(sizes)).reshape(tuple(sizes))

    # Proof: docs/proofs/rounds.md, lemma 1.
    def table_of_groups(self, columns: Sequence[int], groups: Sequence[Integers]) -> Integers:
        """Count the rows in each cell of a table of groups; each column has the group of each category."""
        cells = np.zeros(len(self.codes), dtype=np.int64)
        sizes = tuple(int(own.max()) + 1 for own in groups)
        for column, own, size in zip(columns, groups, sizes, strict=True):
            cells *= size
            cells += own[self.codes[:, column]]
        return self._sums(cells, prod(sizes)).reshape(sizes)

    def pieces(self) -> "list[CountedRows]":
        """Return the same rows in parts of at least `PIECE` distinct rows, at most `PIECES` of them."""
        size = max(1, PIECE, -(-len(self.counts) // PIECES))
        starts = range(0, max(1, len(self.counts)), size)
        return [CountedRows(self.codes[s : s + size], self.counts[s : s + size]) for s in starts]

    def grouped(self, groups: Sequence[Integers]) -> "CountedRows":
        """Return the same rows with each category replaced by its group, one array for each column."""
        found = np.empty(self.codes.shape, dtype=np.int64, order="F")
        for column, group in enumerate(groups):
            found[:, column] = group[self.codes[:, column]]
        return CountedRows(found, self.counts)

    def _sums(self, cells: Integers, size: int) -> Integers:
        if (self.counts == 1).all():
            return np.bincount(cells, minlength=size)
        # float sums of integers are exact below 2^53
        return np.bincount(cells, weights=self.counts, minlength=size).astype(np.int64)


def counted(
    rows: CountedRows, count: Callable[[CountedRows], list[Integers]], executor: Executor | None = None
) -> list[Integers]:
    """Count tables piece by piece and add the pieces up: the same integers as in one piece."""
    pieces = rows.pieces()
    if len(pieces) == 1 and executor is None:
        return count(rows)
    found: list[Integers] | None = None
    for _, tables in finished(count, pieces, executor=executor):
        found = tables if found is None else [a + b for a, b in zip(found, tables, strict=True)]
    return found or []


def checked(codes: Codes, counts: Integers, sizes: Sequence[int]) -> CountedRows:
    """Return rows that lie in the universe and can be counted exactly; no message shows a value.

    Parameters
    ----------
    codes
        Shape (r, C), integers.
    counts
        How often each row is there: int64, shape (r,).
    sizes
        How many categories each column has.

    Raises
    ------
    ValueError
        A code that no category has, a count below 0, 2^53 rows or more, or another number of columns.
    """
    rows = CountedRows(np.asfortranarray(codes), np.ascontiguousarray(counts))
    if codes.shape[1] != len(sizes):
        raise ValueError("codes must have one column for each column of the universe")
    if (codes < 0).any() or (codes >= np.array(sizes)).any():
        raise ValueError("a code lies outside of its column")
    if (counts < 0).any() or sum(int(part.sum()) for part in np.array_split(counts, 64)) >= MOST:
        raise ValueError("counts must be at least 0, and less than 2^53 in all")
    return rows
