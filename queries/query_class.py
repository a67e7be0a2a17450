"""Classes of queries: stated without a domain, and made into a workload over one; their VC dimension."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn

import numpy as np

from queries.arrays import Booleans, Codes
from queries.domain import Domain
from queries.encoding import codes_dtype
from queries.expressions import count_text
from queries.query import Query
from queries.workload import LESS, MAX_QUERIES, Workload

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
    """Find the VC dimension of functions given as the rows of a 0/1 table, by exhaustion."""
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


MAX_ON_COLUMNS = 1 << 14  # queries that are listed where columns have more categories, or rules
MAX_WEIGHTS = 1 << 24  # of all that are listed; on columns four times as many, which are not held
MAX_TABLES = 1 << 18  # of one workload
MAX_CELLS_STATED = 1 << 27  # of the tables of one workload


class QueryClass(ABC):
    """A class of queries, stated without a domain; ``a + b`` is the union of two."""

    __slots__ = ()

    @property
    @abstractmethod
    def text(self) -> str:
        """The class as `queries.spec` reads it."""

    @abstractmethod
    def stated(self, domain: Domain) -> int:
        """Return how many queries the class states over a domain (nothing is built).

        On the whole cube they are distinct functions, except where a user lists them or in a union.
        """

    @abstractmethod
    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield the queries over a domain."""

    def workload(self, domain: Domain) -> Workload:
        """Build the reduced workload over a domain.

        Classes of tables (`tables`) are kept so, but where all columns are yes/no and few queries are stated.
        """
        stated, listable = self.stated(domain), MAX_QUERIES if domain.free else MAX_ON_COLUMNS
        if domain.binary and stated <= listable and self.stated_weights(domain) <= MAX_WEIGHTS:
            return Workload.reduced(domain, self.text, self.queries(domain))
        parts = [(part, part.tables(domain)) for part in _parts(self)]
        others = [part for part, sets in parts if sets is None]
        listed = sum(part.stated(domain) for part in others)
        if listed > listable or stated > MAX_CELLS_STATED:
            self._refuse(domain, "queries", stated, listable if listed > listable else MAX_CELLS_STATED)
        weights = sum(part.stated_weights(domain) for part in others)
        most = MAX_WEIGHTS if domain.free else 4 * MAX_WEIGHTS
        if weights > most:
            self._refuse(domain, "queries with weights", weights, most)
        tables = list(islice((columns for _, sets in parts for columns in sets or ()), MAX_TABLES + 1))
        if len(tables) > MAX_TABLES:
            self._refuse(domain, "tables", None, MAX_TABLES)
        queries = (query for part in others for query in part.queries(domain))
        return Workload.reduced(domain, self.text, queries, tables)

    def stated_weights(self, domain: Domain) -> int:
        """Return how many weights all queries have together; 0 where the class bounds them itself.

        On columns of several categories: how many cells the tables of their columns have. Nothing is built.
        """
        return 0

    def tables(self, domain: Domain) -> Iterator[tuple[int, ...]] | None:
        """Yield the sets of columns of whose tables the class states all cells; None: it is no such class."""
        return None

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return what is proved of the VC dimension without a search; at the least log2 of the size."""
        return 0, self.stated(domain).bit_length() - 1

    def vc_dimension(self, domain: Domain) -> VCDimension:
        """Return the VC dimension of the queries stated, constants and complements included.

        It is that of functions on the cells that can exist. Where the closed forms do not meet and
        the table of queries by cells is small, it is searched for, within a fixed budget.

        Raises
        ------
        ValueError
            The class states no queries over this domain, or queries other than 0/1.

        Examples
        --------
        >>> from queries import Intervals
        >>> Intervals().vc_dimension(Domain(["a", "b"]))
        VCDimension(low=2, high=2, how='closed form')
        """
        stated = self.stated(domain)
        low, high = self.vc_bounds(domain)
        if low < high and stated <= MAX_SEARCH:
            queries = tuple(self.queries(domain))
            cells = cells_that_matter(domain, queries, MAX_SEARCH_TABLE // stated)
            if cells is not None:
                table = np.array([query.on(domain, cells) for query in queries], dtype=bool)
                return search(table, low, high)
        return VCDimension(low, high, "closed form")

    def _refuse(self, domain: Domain, what: str, stated: int | None, most: int) -> NoReturn:
        """Refuse more than `most` of what the class states; None: they were not counted further."""
        word, number = (
            ("attributes", len(domain.attributes)) if domain.binary else ("columns", len(domain.columns))
        )
        many = f"more than {most} {what}" if stated is None else f"{count_text(stated)} {what}"
        limit = "" if stated is None else f", more than {most}"
        less = LESS.replace("columns", word)
        raise ValueError(f"{self.text} states {many} over {number} {word}{limit}: {less}")

    def __add__(self, other: "QueryClass") -> "Union":
        if not isinstance(other, QueryClass):
            return NotImplemented
        return Union((*_parts(self), *_parts(other)))


@dataclass(frozen=True, slots=True)
class Union(QueryClass):
    """The queries of several classes together; written ``a + b``."""

    parts: tuple[QueryClass, ...]

    @property
    def text(self) -> str:
        """The parts, joined by ``+``."""
        return " + ".join(part.text for part in self.parts)

    def stated(self, domain: Domain) -> int:
        """Return the sum over the parts."""
        return sum(part.stated(domain) for part in self.parts)

    def stated_weights(self, domain: Domain) -> int:
        """Return the sum over the parts."""
        return sum(part.stated_weights(domain) for part in self.parts)

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return the largest of the parts, and the lesser of log2 of the size and VC(a) + VC(b) + 1."""
        lows, highs = zip(*(part.vc_bounds(domain) for part in self.parts), strict=True)
        return max(lows), min(self.stated(domain).bit_length(), sum(highs) + len(highs)) - 1

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield the queries of each part in turn."""
        for part in self.parts:
            yield from part.queries(domain)


def _parts(queries: QueryClass) -> tuple[QueryClass, ...]:
    return queries.parts if isinstance(queries, Union) else (queries,)
