"""The one form in which data travels: distinct packed rows with integer counts."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from queries.domain import Bits, DataError, Domain, Integers

Words = npt.NDArray[np.uint64]

MAX_TOTAL = 1 << 62  # counts and their sums are int64


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """A table as its distinct rows, each packed into words, with how often it occurs.

    Private: it IS the data, so it has no telling repr.

    Attributes
    ----------
    domain
        The universe of the rows.
    words
        Shape (r, ceil(d / 64)), uint64: row codes, most significant word first, ascending, distinct.
    counts
        Shape (r,), int64, positive: how often each row occurs.
    """

    domain: Domain
    words: Words
    counts: Integers

    @classmethod
    def from_frame(cls, domain: Domain, frame: pd.DataFrame) -> "Rows":
        """Count the rows of a table (its columns: the attributes of the domain, see `Domain.encode`)."""
        return cls.from_chunks(domain, [frame])

    @classmethod
    def from_chunks(cls, domain: Domain, frames: Iterable[pd.DataFrame]) -> "Rows":
        """Count the rows of a table that comes in pieces; memory grows with the distinct rows only."""
        words, counts = _nothing(domain)
        for frame in frames:
            new = pack(domain.encode(frame))
            words, counts = _merge(
                np.concatenate([words, new]), np.concatenate([counts, np.ones(len(new), dtype=np.int64)])
            )
        return cls._made(domain, words, counts)

    @classmethod
    def from_counts(cls, domain: Domain, frame: pd.DataFrame, counts: Iterable[int]) -> "Rows":
        """Take a table that is already aggregated: each row of `frame` occurs `counts` times.

        Raises
        ------
        DataError
            A count that is negative or no whole number, or a total of 2^62 or more.
        """
        given = list(counts)
        if len(given) != len(frame):
            raise DataError("counts must be one for each row of the table")
        if any(isinstance(c, bool | np.bool_) or not isinstance(c, int | np.integer) or c < 0 for c in given):
            raise DataError("counts must be whole numbers, none negative")
        if sum(map(int, given)) >= MAX_TOTAL:
            raise DataError("counts add up to 2^62 or more")
        words, merged = _merge(pack(domain.encode(frame)), np.array(given, dtype=np.int64))
        return cls._made(domain, words, merged)

    @classmethod
    def from_bits(cls, domain: Domain, bits: Bits) -> "Rows":
        """Count 0/1 rows of shape (r, d), uint8, each of which can exist (the caller's promise)."""
        words, counts = _merge(pack(bits), np.ones(len(bits), dtype=np.int64))
        return cls._made(domain, words, counts)

    @classmethod
    def _made(cls, domain: Domain, words: Words, counts: Integers) -> "Rows":
        words, counts = words[counts > 0], counts[counts > 0]
        words.setflags(write=False)
        counts.setflags(write=False)
        return cls(domain, words, counts)

    def __repr__(self) -> str:
        return f"<Rows over {len(self.domain.attributes)} attributes: private>"

    @property
    def n(self) -> int:
        """The number of rows of the table (private under add-remove)."""
        return int(self.counts.sum())

    def bits(self) -> Bits:
        """Return the distinct rows as 0/1, shape (r, d), uint8."""
        return unpack(self.words, len(self.domain.attributes))

    def histogram(self) -> Integers:
        """Return how often each cell of the domain occurs, shape (N,), int64 (up to 2^20 cells)."""
        cells = self.domain.cells()
        table = np.zeros(len(cells), dtype=np.int64)
        table[np.searchsorted(cells, self.words[:, -1].astype(np.int64))] = self.counts
        return table


def pack(bits: Bits) -> Words:
    """Pack 0/1 rows (r, d) into words (r, ceil(d / 64)): the row's code as a big-endian integer.

    >>> pack(np.array([[1, 0, 1]], dtype=np.uint8)).tolist()
    [[5]]
    """
    rows, d = bits.shape
    words = -(-d // 64)
    padded = np.zeros((rows, 64 * words), dtype=np.uint8)
    padded[:, 64 * words - d :] = bits
    return np.packbits(padded, axis=1).view(">u8").astype(np.uint64)


def unpack(words: Words, d: int) -> Bits:
    """Undo `pack`."""
    bytes_ = np.ascontiguousarray(words.astype(">u8")).view(np.uint8)
    return np.unpackbits(bytes_, axis=1)[:, bytes_.shape[1] * 8 - d :]


def _nothing(domain: Domain) -> tuple[Words, Integers]:
    words = -(-len(domain.attributes) // 64)
    return np.zeros((0, words), dtype=np.uint64), np.zeros(0, dtype=np.int64)


def _merge(words: Words, counts: Integers) -> tuple[Words, Integers]:
    """Bring equal rows together, in ascending order."""
    if words.shape[1] == 1:
        distinct, inverse = np.unique(words[:, 0], return_inverse=True)
        distinct = distinct[:, None]
    else:
        distinct, inverse = np.unique(words, axis=0, return_inverse=True)
    merged = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(merged, inverse.reshape(-1), counts)
    return distinct, merged
