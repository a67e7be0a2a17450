"""The one form in which data travels: distinct packed rows with integer counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from queries.arrays import Codes, Integers, Words, pd
from queries.columns import Bits
from queries.domain import DataError, Domain
from queries.encoding import merge, merge_runs, pack, pack_codes, unpack, unpack_codes, width
from queries.rule_tables import RuledOut, ruled_out_message

MAX_TOTAL = 1 << 62  # counts and their sums are int64
MAX_TABLE = 1 << 27  # cells of one table of counts, 1 GiB

__all__ = ["MAX_TOTAL", "Rows", "Words", "pack", "unpack"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """A table as its distinct rows, each packed into words, with how often it occurs.

    Private: it IS the data, so it has no telling repr.

    Attributes
    ----------
    domain
        The universe of the rows.
    words
        Shape (r, words), uint64: packed rows, most significant word first, ascending, distinct. Each
        column takes the bits of its largest code, so yes/no columns one bit each.
    counts
        Shape (r,), int64, positive: how often each row occurs.
    """

    domain: Domain
    words: Words
    counts: Integers
    _checked: bool = False

    @classmethod
    def from_frame(cls, domain: Domain, frame: pd.DataFrame) -> Rows:
        """Count the rows of a table (its columns: those of the domain, see `Domain.encode`)."""
        return cls._sound(domain, *merge(pack_codes(domain.encode(frame), domain.sizes)))

    @classmethod
    def from_counts(cls, domain: Domain, frame: pd.DataFrame, counts: Iterable[int]) -> Rows:
        """
        Take a table that is already aggregated: each row of `frame` occurs `counts` times.

        Parameters
        ----------
        domain
            The universe.
        frame
            A table of pandas: its columns are those of the domain, in any order. Rows may be equal.
        counts
            Whole numbers of at least 0, one for each row of `frame`.

        Raises
        ------
        DataError
            A count that is negative or no whole number, or a total of 2^62 or more.
        """
        numbers = list(counts)
        if len(numbers) != len(frame):
            raise DataError("counts must be one for each row of the table")
        if any(
            isinstance(c, bool | np.bool_) or not isinstance(c, int | np.integer) or c < 0 for c in numbers
        ):
            raise DataError("counts must be whole numbers, none negative")
        if sum(map(int, numbers)) >= MAX_TOTAL:
            raise DataError("counts add up to 2^62 or more")
        words, merged = merge(
            pack_codes(domain.encode(frame), domain.sizes), np.array(numbers, dtype=np.int64)
        )
        return cls._sound(domain, words, merged)

    @classmethod
    def from_codes(
        cls, domain: Domain, codes: npt.NDArray[np.integer], counts: Integers | None = None
    ) -> Rows:
        """
        Count rows of codes.

        Parameters
        ----------
        domain
            The universe.
        codes
            Integers, shape (r, C): categories of the columns.
        counts
            Shape (r,), int64: how often each row occurs; None: once.

        Raises
        ------
        ValueError
            Another shape than (r, C).
        DataError
            A row that cannot exist.
        """
        return cls._sound(domain, *merge(packed(domain, codes), counts))

    @classmethod
    def from_words(cls, domain: Domain, words: Words) -> Rows:
        """Count rows that `packed` has checked, shape (r, words)."""
        return cls._sound(domain, *merge(words))

    def plus(self, other: Rows) -> Rows:
        """Add the rows of another table over the same domain: two sorted runs are merged."""
        if other.domain != self.domain:
            raise ValueError("the rows are over different domains")
        return self._sound(self.domain, *merge_runs(self.words, self.counts, other.words, other.counts))

    @classmethod
    def _sound(cls, domain: Domain, words: Words, counts: Integers) -> Rows:
        if len(counts) and counts.min() <= 0:
            words, counts = words[counts > 0], counts[counts > 0]
        words.setflags(write=False)
        counts.setflags(write=False)
        return cls(domain, words, counts, True)

    def checked(self) -> Rows:
        """Return these rows, made sound where they were put together by hand: equal rows are added up.

        Raises
        ------
        ValueError
            Words or counts of another shape or dtype.
        DataError
            A row outside the domain, a count that is negative, or a total of 2^62 or more.
        """
        if self._checked:
            return self
        shape = len(self.words), width(self.domain.sizes)
        if (self.words.shape, self.words.dtype, self.counts.shape, self.counts.dtype) != (
            *(shape, np.dtype(np.uint64)),
            *(shape[:1], np.dtype(np.int64)),
        ):
            raise ValueError("rows need uint64 words, as many as the domain has, and an int64 count each")
        if (self.counts < 0).any() or sum(self.counts.tolist()) >= MAX_TOTAL:
            raise DataError("counts must not be negative, and add up to less than 2^62")
        codes = self.codes()
        if not np.array_equal(pack_codes(codes, self.domain.sizes), self.words):
            raise DataError(ruled_out_message(None, []))
        return Rows.from_codes(self.domain, codes, self.counts)

    def __repr__(self) -> str:
        if self.domain.binary:
            return f"<Rows over {len(self.domain.attributes)} attributes: private>"
        return f"<Rows over {len(self.domain.columns)} columns: private>"

    @property
    def n(self) -> int:
        """The number of rows of the table (private under add-remove)."""
        return int(self.counts.sum())

    def codes(self) -> Codes:
        """Return the distinct rows as codes, shape (r, C), the narrowest unsigned integers."""
        return unpack_codes(self.words, self.domain.sizes)

    def bits(self) -> Bits:
        """Return the attributes of the distinct rows as 0/1, shape (r, attributes), uint8."""
        return self.domain.bits(self.codes())

    def histogram(self) -> Integers:
        """Return how often each cell of the domain occurs, shape (N,), int64 (up to 2^20 cells)."""
        cells, present = self.domain.cells(), self.domain.cells_of(self.codes())
        table = np.zeros(len(cells), dtype=np.int64)
        np.add.at(table, np.searchsorted(cells, present), self.counts)
        return table

    def table(self, columns: Sequence[int]) -> Integers:
        """Return the counts of all cells of the table of these columns, shaped by their sizes: int64."""
        shape = tuple(self.domain.sizes[c] for c in columns)
        return tabulated(self.domain, self.codes(), self.counts, columns).reshape(shape)


def tabulated(domain: Domain, codes: Codes, counts: Integers, columns: Sequence[int]) -> Integers:
    """Count rows of codes by the cells of some columns, in product order: int64, exact."""
    size = prod(domain.sizes[c] for c in columns)
    if size > MAX_TABLE:
        raise ValueError(f"the table of {len(columns)} columns has {size} cells, more than 2^27")
    return bincounted(domain.cells_of(codes, columns), counts, size)


def bincounted(cells: Integers, counts: Integers, size: int) -> Integers:
    """Add up counts by cells, exactly: int64."""
    if counts.sum() < 1 << 53:  # doubles add whole numbers exactly up to there
        return np.bincount(cells, counts, size).astype(np.int64)
    table = np.zeros(size, dtype=np.int64)
    np.add.at(table, cells, counts)
    return table


def packed(domain: Domain, codes: npt.NDArray[np.integer]) -> Words:
    """Pack rows of codes that can exist, shape (r, C), in their order; errors as `Rows.from_codes`."""
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(domain.sizes) or codes.dtype.kind not in "ui":
        raise ValueError(f"rows must be integers of shape (r, {len(domain.sizes)})")
    if codes.dtype.kind == "i" and (codes < 0).any():
        raise DataError(ruled_out_message(None, []))
    if not (kept := domain.contains(codes)).all():
        numbers = domain.broken(codes[~kept])
        raise RuledOut(ruled_out_message(domain.valid, numbers), numbers)
    return pack_codes(codes, domain.sizes)
