"""The Vapnik-Chervonenkis dimension of 0/1 functions, found by exhaustion."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from queries.arrays import Booleans, Codes
from queries.domain import Domain
from queries.encoding import codes_dtype
from queries.query import Query

MAX_SEARCH = 1 << 11  # queries, and
MAX_SEARCH_TABLE = 1 << 20  # entries of their table, that a search is made on
SPLITS = 1_000_000  # blocks of functions that a search may split: about a second


@dataclass(frozen=True, slots=True)
class VCDimension:
    """The largest number of cells on which a class of 0/1 queries takes all 2^number patterns of values.

    Attributes
    ----------
    low, high
        Both are proved, and they are equal where the value is known.
    how
        What proves them: "closed form", or "search" (which may end before the two meet).
    """

    low: int
    high: int
    how: str

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(f"a VC dimension lies between 0 <= low <= high, not {self.low} and {self.high}")

    @property
    def exact(self) -> bool:
        """Whether the value is known."""
        return self.low == self.high

    def __str__(self) -> str:
        return f"{self.low}" if self.exact else f"{self.low} to {self.high}"


def search(table: Booleans, low: int = 0, high: int | None = None, splits: int = SPLITS) -> VCDimension:
    """Find the VC dimension of functions given as the rows of a 0/1 table, by exhaustion.

    >>> search(np.eye(4, dtype=bool))
    VCDimension(low=1, high=1, how='search')
    """
    # a set of cells is shattered where it cuts the functions into 2^(its size) blocks, none empty; it is
    # grown cell by cell, and as long as it lacks w cells, every block needs 2^w functions
    functions = np.unique(table, axis=0)
    cells = np.unique(functions ^ functions[:1], axis=1)  # a cell and its negation do the same
    masks = [int.from_bytes(np.packbits(cell).tobytes()) for cell in cells.T if cell.any()]
    most = min(len(masks), len(functions).bit_length() - 1)
    high = most if high is None else min(most, high)
    everything = ((1 << len(functions)) - 1) << (-len(functions) % 8)  # as packbits fills the last byte
    left = splits

    def extends(blocks: Sequence[int], masks: Sequence[int], wanted: int) -> bool:
        """Whether some `wanted` of the cells cut every block into 2^wanted; False out of budget."""
        nonlocal left
        if wanted == 0:
            return True
        fitting = []
        for mask in masks:
            halves = []
            for block in blocks:
                left -= 1
                inside = block & mask
                outside = block ^ inside
                if left < 0 or min(inside.bit_count(), outside.bit_count()) < 1 << (wanted - 1):
                    break
                halves += [inside, outside]
            else:
                fitting.append((mask, halves))
        others = [mask for mask, _ in fitting]
        return any(
            extends(halves, others[i:], wanted - 1)
            for i, (_, halves) in enumerate(fitting, start=1)
            if wanted <= len(fitting) - i + 1
        )

    while low < high and extends([everything], masks, low + 1):
        low += 1
    return VCDimension(low, high if left < 0 else low, "search")


def cells_that_matter(domain: Domain, queries: Iterable[Query], most: int) -> Codes | None:
    """Return cells on which the queries take all their values."""
    if domain.valid is not None:
        return domain.table() if domain.listable and domain.size <= most else None
    columns = sorted({c for query in queries for c in query.columns(domain)})
    count = math.prod(domain.sizes[c] for c in columns)
    if count > most:
        return None
    settings = np.arange(count)
    cells = np.zeros((count, len(domain.sizes)), dtype=np.int64)
    for c in reversed(columns):
        settings, cells[:, c] = np.divmod(settings, domain.sizes[c])
    return cells.astype(codes_dtype(domain.sizes))
