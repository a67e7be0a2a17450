"""Linear counting queries, and the workload that is left of them after reduction."""

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from queries.domain import MAX_TABLE_ATTRIBUTES, Bits, Domain, Integers
from queries.expressions import Booleans
from queries.rows import MAX_TOTAL, Rows
from queries.vc import VCDimension, search

MAX_QUERIES = 1 << 20  # of one workload, before reduction
MAX_MATRIX = 1 << 27  # entries of the table queries x cells, 1 GiB
MAX_SEARCH = 1 << 11  # queries, and
MAX_SEARCH_TABLE = 1 << 20  # entries of their table, that a VC dimension is searched on


@dataclass(frozen=True, slots=True)
class Query:
    """One linear query f: rows -> [0, 1] that looks at a few attributes.

    Attributes
    ----------
    label
        Readable name, in the grammar of `queries.expressions` where it is a predicate.
    attributes
        Places of the attributes that it looks at, ascending.
    weights
        ``denominator * f`` for each of the 2^|attributes| settings, in product order;
        None for the parity (XOR) of the attributes, which needs no table.
    denominator
        Common denominator of the weights.
    """

    label: str
    attributes: tuple[int, ...]
    weights: tuple[int, ...] | None
    denominator: int = 1

    def __post_init__(self) -> None:
        places = self.attributes
        if any(type(i) is not int for i in places) or list(places) != sorted({i for i in places if i >= 0}):
            raise ValueError(f"query {self.label!r}: attributes must be places, ascending")
        if type(self.denominator) is not int or self.denominator < 1:
            raise ValueError(f"query {self.label!r}: the denominator must be a whole number of at least 1")
        if self.weights is None:
            if self.denominator != 1:
                raise ValueError(f"query {self.label!r}: a parity has denominator 1")
        elif (
            len(self.weights) != 1 << len(places)
            or {*map(type, self.weights)} != {int}
            or min(self.weights) < 0
            or max(self.weights) > self.denominator
        ):
            raise ValueError(
                f"query {self.label!r}: expected 2^{len(places)} whole weights from 0 to {self.denominator}"
            )

    def values(self, bits: Bits) -> Integers:
        """Return ``denominator * f`` on 0/1 rows of shape (r, d): int64, shape (r,)."""
        chosen = bits[:, list(self.attributes)]
        if self.weights is None:
            return _odd(chosen).astype(np.int64)
        weights: Integers = np.array(self.weights, dtype=np.int64)
        return weights[_settings(chosen)]


@dataclass(frozen=True, slots=True)
class Workload:
    """The queries that a release answers, reduced: what differs in error from what is kept, no more.

    Queries that are equal up to sign and an added constant have the same error on every table, so one
    of them stands for all (the first, or the first with a smaller denominator); constants drop. (On a
    universe with structural zeros, equal means equal on the cells that can exist.)

    Attributes
    ----------
    domain
        The universe.
    text
        The workload as its class writes it, for records.
    stated
        How many queries the class states, before reduction.
    queries
        Those kept.
    """

    domain: Domain
    text: str
    stated: int
    queries: tuple[Query, ...]

    @classmethod
    def reduced(cls, domain: Domain, text: str, queries: Iterable[Query]) -> "Workload":
        """Keep one of each group of queries with equal errors, in the first one's place, and no constant."""
        key = _key if domain.valid is None else _key_on_cells(domain)
        kept: dict[Hashable, Query] = {}
        stated = 0
        for query in queries:
            stated += 1
            found = key(query)
            if found is None:
                continue
            # of several, the least denominator: the guarantee under add-remove depends on it
            if query.denominator < kept.setdefault(found, query).denominator:
                kept[found] = query
        workload = cls(domain, text, stated, tuple(kept.values()))
        if workload.denominator >= MAX_TOTAL:
            raise ValueError("the weights of the queries need a common denominator of 2^62 or more")
        return workload

    @property
    def size(self) -> int:
        """|Q|: the number of queries kept."""
        return len(self.queries)

    @property
    def denominator(self) -> int:
        """D: the least common denominator of the weights of the queries kept."""
        return math.lcm(*(query.denominator for query in self.queries))

    @property
    def labels(self) -> tuple[str, ...]:
        """Readable names of the queries kept."""
        return tuple(query.label for query in self.queries)

    def answers(self, rows: Rows) -> Integers:
        """Return D times the sum of each query over the rows: int64, shape (size,), exact.

        Cost: distinct rows times distinct attribute sets. No table of cells is needed.

        Raises
        ------
        ValueError
            The rows are of another domain, or n D reaches 2^62.
        """
        if rows.domain != self.domain:
            raise ValueError("the rows and the workload are over different domains")
        denominator = self.denominator
        if rows.n * denominator >= MAX_TOTAL:
            raise ValueError("rows of the data times the common denominator of the queries reach 2^62")
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for j, query in enumerate(self.queries):
            groups[query.attributes].append(j)
        bits, answers = rows.bits(), np.zeros(self.size, dtype=np.int64)
        for attributes, members in groups.items():
            chosen = bits[:, list(attributes)]
            if any(self.queries[j].weights is not None for j in members):
                table = np.zeros(1 << len(attributes), dtype=np.int64)
                np.add.at(table, _settings(chosen), rows.counts)
            for j in members:
                weights = self.queries[j].weights
                if weights is None:
                    total = int(rows.counts[_odd(chosen)].sum())
                else:
                    total = int(np.array(weights, dtype=np.int64) @ table)
                answers[j] = total * (denominator // self.queries[j].denominator)
        return answers

    def matrix(self) -> Integers:
        """Return D times each query on each cell: int64, shape (size, N), cells in domain order.

        ValueError beyond 20 attributes or 2^27 entries.
        """
        entries = self.size * self.domain.size
        if len(self.domain.attributes) > MAX_TABLE_ATTRIBUTES or entries > MAX_MATRIX:
            raise ValueError(
                f"a table of {self.size} queries by 2^{len(self.domain.attributes)} cells is too large: "
                f"at most {MAX_TABLE_ATTRIBUTES} attributes and {MAX_MATRIX} entries"
            )
        cells, denominator = self.domain.table(), self.denominator
        table = np.empty((self.size, len(cells)), dtype=np.int64)
        for j, query in enumerate(self.queries):
            table[j] = query.values(cells) * (denominator // query.denominator)
        return table


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
        """Build the reduced workload over a domain."""
        stated = self.stated(domain)
        if stated > MAX_QUERIES:
            many = str(stated) if stated < 10**20 else "more than 10^20"
            raise ValueError(
                f"{self.text} states {many} queries over {len(domain.attributes)} attributes, more than "
                f"{MAX_QUERIES}: use fewer attributes, or a smaller width where the class has one"
            )
        return Workload.reduced(domain, self.text, self.queries(domain))

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
            cells = _cells_that_matter(domain, queries, MAX_SEARCH_TABLE // stated)
            if cells is not None:
                return search(np.array([query.values(cells) for query in queries], dtype=bool), low, high)
        return VCDimension(low, high, "closed form")

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

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return the largest of the parts, and the lesser of log2 of the size and VC(a) + VC(b) + 1."""
        lows, highs = zip(*(part.vc_bounds(domain) for part in self.parts), strict=True)
        return max(lows), min(self.stated(domain).bit_length(), sum(highs) + len(highs)) - 1

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield the queries of each part in turn."""
        for part in self.parts:
            yield from part.queries(domain)


def _cells_that_matter(domain: Domain, queries: Iterable[Query], most: int) -> Bits | None:
    """Return cells, shape (r, d), on which the queries take all their values; None: more than `most`."""
    if domain.valid is not None:
        return domain.table() if domain.size <= most else None
    places = sorted({i for query in queries for i in query.attributes})
    if 1 << len(places) > most:
        return None
    settings = np.arange(1 << len(places))
    cells = np.zeros((len(settings), len(domain.attributes)), dtype=np.uint8)
    for shift, i in enumerate(reversed(places)):
        cells[:, i] = settings >> shift & 1
    return cells


def _parts(queries: QueryClass) -> tuple[QueryClass, ...]:
    return queries.parts if isinstance(queries, Union) else (queries,)


def _odd(chosen: Bits) -> Booleans:
    """Tell which 0/1 rows have an odd number of ones."""
    odd: Booleans = chosen.sum(axis=1) % 2 == 1
    return odd


def _settings(chosen: Bits) -> Integers:
    """Read each 0/1 row as an integer, first column most significant."""
    places = np.arange(chosen.shape[1] - 1, -1, -1, dtype=np.int64)
    return chosen.astype(np.int64) @ (np.int64(1) << places)


def _key(query: Query) -> Hashable | None:
    """Return what two queries share exactly where they are equal up to sign and constant; None: constant.

    A function on the cube has one set of attributes that matter and one table over them.
    """
    if query.weights is None:
        return (query.attributes, None) if query.attributes else None
    places, table, denominator = _canonical(query.weights, query.denominator)
    if not places:
        return None
    attributes = tuple(query.attributes[i] for i in places)
    if denominator == 1 and table == _parity_table(len(places)):
        return attributes, None
    return attributes, (table, denominator)


@lru_cache(maxsize=512)
def _canonical(weights: tuple[int, ...], denominator: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the places that matter, and the table over them without constant, sign and common factor."""
    table = np.array(weights, dtype=np.int64).reshape((2,) * (len(weights).bit_length() - 1))
    places = tuple(i for i in range(table.ndim) if (table.take(0, i) != table.take(1, i)).any())
    over_places = tuple(slice(None) if i in places else 0 for i in range(table.ndim))
    values, scale = _unsigned(table[over_places].reshape(-1), denominator)
    return places, tuple(values.tolist()), scale


def _unsigned(values: Integers, denominator: int) -> tuple[Integers, int]:
    """Take away the constant, the sign and the common factor."""
    values = values - values[0]
    nonzero = values[values != 0]
    if len(nonzero) == 0:
        return values, 1
    common = math.gcd(int(np.gcd.reduce(nonzero)), denominator)
    return values // (common if nonzero[0] > 0 else -common), denominator // common


@lru_cache(maxsize=32)
def _parity_table(width: int) -> tuple[int, ...]:
    return tuple(setting.bit_count() & 1 for setting in range(1 << width))


def _key_on_cells(domain: Domain) -> Callable[[Query], Hashable | None]:
    """Return the same for a universe with structural zeros: a function is its values on the cells."""
    cells = domain.table()

    def key(query: Query) -> Hashable | None:
        values, scale = _unsigned(query.values(cells), query.denominator)
        return (values.tobytes(), scale) if values.any() else None

    return key
