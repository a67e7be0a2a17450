"""Rows whose tables are counted on demand: over categories, or over groups of categories."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from queries import Domain, Rows
from queries.arrays import Codes
from queries.domain import Integers
from smalldb.files.checkpoints import finished
from smalldb.mechanisms import Marginal, Parity

MOST = 1 << 53  # rows: sums of counts are exact in floats up to there
PIECE = 1 << 20  # distinct rows that are counted together, at least
PIECES = 16  # at most: each may bring tables of some 100 MB
BLOCK = 1 << 15  # rows that are counted together, so that their groups stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class PackedTables:
    """Tables of very many pairs of columns, to be counted into one array: see `estimate.packed_pairs`."""

    groups: tuple[Codes, ...]  # of each category of each column
    pairs: Integers
    origins: Integers  # where the first cell of each table is
    strides: Integers  # and how far one row of it is from the next
    cells: int


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """Rows as codes, with how often each is there: the data, which are private, or synthetic ones."""

    codes: Codes  # shape (r, C), integers: the code of each column
    counts: Integers  # shape (r,), int64, at least 0; the sum is below 2^53

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or self.counts.shape != self.codes.shape[:1]:
            raise ValueError("codes must have shape (r, C), and counts shape (r,)")
        if self.counts.dtype != np.int64:
            raise TypeError("counts must be int64")

    # Proof: docs/proofs/rounds.md, lemma 1.
    def table(self, columns: Sequence[int], sizes: Sequence[int]) -> Integers:
        """Count the rows in each cell of a table; an int64 array of shape `sizes`."""
        cells = np.zeros(len(self.codes), dtype=np.int64)
        for column, size in zip(columns, sizes, strict=True):
            cells *= size
            cells += self.codes[:, column]
        return self.sums(cells, prod(sizes)).reshape(tuple(sizes))

    def pieces(self) -> "list[CountedRows]":
        """Return the same rows in parts of at least `PIECE` distinct rows, at most `PIECES` of them."""
        size = max(1, PIECE, -(-len(self.counts) // PIECES))
        starts = range(0, max(1, len(self.counts)), size)
        return [CountedRows(self.codes[s : s + size], self.counts[s : s + size]) for s in starts]

    def grouped(self, groups: Sequence[Integers]) -> "CountedRows":
        """Return the same rows with each category replaced by its group, one array for each column."""
        codes = np.empty(self.codes.shape, dtype=np.int64, order="F")
        for column, group in enumerate(groups):
            codes[:, column] = group[self.codes[:, column]]
        return CountedRows(codes, self.counts)

    def sums(self, cells: Integers, size: int) -> Integers:
        """Return how many rows are in each cell, by the cell of each distinct row."""
        if (self.counts == 1).all():
            return np.bincount(cells, minlength=size)
        # float sums of integers are exact below 2^53
        return np.bincount(cells, weights=self.counts, minlength=size).astype(np.int64)


# Proof: docs/proofs/rounds.md, lemmas 1 and 10.
def count(what: Sequence[Marginal] | Sequence[Parity] | PackedTables, rows: CountedRows) -> list[Integers]:
    """Count some rows: what several pieces add up to is what all of them count."""
    if isinstance(what, PackedTables):
        return [_pairs(what, rows)]
    if isinstance(what[0], Parity):
        return [_parities([each for each in what if isinstance(each, Parity)], rows)]
    return _tables([each for each in what if isinstance(each, Marginal)], rows)


# Proof: docs/proofs/rounds.md, lemma 1.
def _tables(what: Sequence[Marginal], rows: CountedRows) -> list[Integers]:
    """Count tables, at all categories of a column or at groups of them; each column is grouped once."""
    tables, grouped = list[Integers](), dict[tuple[int, tuple[int, ...]], Integers]()
    for table in what:
        shape = table.shape
        cells = np.zeros(len(rows.codes), dtype=np.int64)
        for column, groups, size in zip(table.columns, table.groups, shape, strict=True):
            cells *= size
            if size == len(groups) and groups == tuple(range(size)):
                cells += rows.codes[:, column]
                continue
            if (column, groups) not in grouped:
                grouped[column, groups] = np.array(groups)[rows.codes[:, column]]
            cells += grouped[column, groups]
        tables.append(rows.sums(cells, table.size).reshape(shape))
    return tables


# Proof: docs/proofs/rounds.md, lemma 1.
def _pairs(what: PackedTables, rows: CountedRows) -> Integers:
    """Count all pairs of columns into one array."""
    from smalldb.kernels.cell_sums import count_pairs

    flat = np.zeros(what.cells, dtype=np.int64)
    for start in range(0, len(rows.counts), BLOCK):
        some = slice(start, start + BLOCK)
        block = np.stack(
            [groups[codes] for groups, codes in zip(what.groups, rows.codes[some].T, strict=True)]
        )
        count_pairs(block, rows.counts[some], what.pairs, what.origins, what.strides, flat)
    return flat


# Proof: docs/proofs/answers.md, lemma 1.
def _parities(what: Sequence[Parity], rows: CountedRows) -> Integers:
    """Count the rows that are odd on each set of attributes; or sum up their signs."""
    pairs = [tuple(zip(each.columns, each.yes, strict=True)) for each in what]
    attributes = sorted({one for some in pairs for one in some})
    at = {one: position for position, one in enumerate(attributes)}
    columns, categories = [c for c, _ in attributes], np.array([k for _, k in attributes], dtype=np.int64)
    bits = (rows.codes[:, columns] == categories).astype(np.uint8)
    sets = tuple(tuple(at[one] for one in some) for some in pairs)
    odd = odd_counts(Rows.from_codes(Domain(max(1, len(at))), bits, rows.counts), sets)
    signed = np.array([each.signed for each in what])
    return np.where(signed, int(rows.counts.sum()) - 2 * odd, odd)


# Proof: docs/proofs/answers.md, lemma 1.
def odd_counts(rows: Rows, sets: Sequence[tuple[int, ...]]) -> Integers:
    """Count the rows with an odd number of ones on each set of attributes, exactly: int64, shape (k,)."""
    # columns are packed bit by bit over the distinct rows, and so are the binary digits of the counts
    columns = _packed(rows.bits().T)
    digits = int(rows.counts.max(initial=0)).bit_length()
    planes = _packed(rows.counts >> np.arange(digits)[:, None] & 1)
    counts = np.empty(len(sets), dtype=np.int64)
    for position, chosen in enumerate(sets):
        odd = np.bitwise_xor.reduce(columns[list(chosen)], axis=0)
        ones = np.bitwise_count(planes & odd).sum(axis=1, dtype=np.int64)
        counts[position] = (ones << np.arange(digits)).sum()
    return counts


def _packed(bits: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Pack rows of 0/1, shape (r, n), into words, shape (r, ceil(n / 64)); padded with 0."""
    rows, length = bits.shape
    padded = np.zeros((rows, -(-length // 64) * 64), dtype=np.uint8)
    padded[:, :length] = bits
    return np.packbits(padded, axis=1).view(np.uint64)


def counted(
    rows: CountedRows, count: Callable[[CountedRows], list[Integers]], executor: Executor | None = None
) -> list[Integers]:
    """Count tables piece by piece and add the pieces up: the same integers as in one piece."""
    pieces = rows.pieces()
    if len(pieces) == 1 and executor is None:
        return count(rows)
    total: list[Integers] | None = None
    for _, tables in finished(count, pieces, executor=executor):
        total = tables if total is None else [a + b for a, b in zip(total, tables, strict=True)]
    return total or []


def checked(codes: Codes, counts: Integers, sizes: Sequence[int]) -> CountedRows:
    """Return rows that lie in the universe and can be counted exactly, or ValueError: it shows no value."""
    rows = CountedRows(np.asfortranarray(codes), np.ascontiguousarray(counts))
    if codes.shape[1] != len(sizes):
        raise ValueError("codes must have one column for each column of the universe")
    if (codes < 0).any() or (codes >= np.array(sizes)).any():
        raise ValueError("a code lies outside of its column")
    if (counts < 0).any() or sum(int(part.sum()) for part in np.array_split(counts, 64)) >= MOST:
        raise ValueError("counts must be at least 0, and less than 2^53 in all")
    return rows
