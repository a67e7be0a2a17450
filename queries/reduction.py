"""Which queries have the same error on every table: equal up to sign and an added constant."""

import math
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from queries.cells import Cells
from queries.domain import MAX_CELLS, Domain
from queries.packing import Integers, Words
from queries.query import Query

Key = Callable[[Query], Hashable | None]
Drop = Callable[[Query], bool]


def key_of(domain: Domain) -> Key:
    """Return what two queries share exactly where they are equal up to sign and constant; None: constant.

    Equal means equal on the cells that can exist. Where rules are over a universe of more than 2^20 cells
    and meet in wide tables, some queries that the rules make equal are told apart.
    """
    if domain.free:
        return _key
    if domain.valid is not None and domain.listable:
        return _key_on_cells(domain)
    return _key_on_columns(domain)


def reduced_cells(domain: Domain, tables: Iterable[tuple[int, ...]]) -> tuple[Cells, ...]:
    """Keep one of each group of equal cells of tables, the first, and no constant."""
    found = []
    for columns in dict.fromkeys(tables):
        block = Cells.of(domain, columns)
        kept = None
        if domain.valid is not None:
            axes = tuple(i for i, c in enumerate(columns) if domain.columns[c].yes_no)
            kept = np.flip(domain.allowed(columns), axes).reshape(-1).copy()
        existing = block.cells if kept is None else int(kept.sum())
        if existing <= 2:  # of one cell the query is constant, of two each is the complement of the other
            kept = np.ones(block.cells, dtype=bool) if kept is None else kept
            kept[np.flatnonzero(kept)[existing - 1 :]] = False
        if existing > 1:
            found.append(Cells.of(domain, columns, kept))
    if domain.valid is None or not domain.listable:
        return tuple(found)
    return _distinct(domain, found)


def in_cells(domain: Domain, blocks: tuple[Cells, ...]) -> Drop:
    """Return what tells whether a query is equal to a cell of these tables, up to sign and constant."""
    if domain.valid is not None and domain.listable:
        marks = _marks(domain)
        places = domain.table()
        known = {tuple(row) for block in blocks for row in _fingerprints(domain, block, marks).tolist()}

        def drop_marked(query: Query) -> bool:
            values, scale = _unsigned(query.on(domain, places), query.denominator)
            return scale == 1 and tuple((values.astype(np.uint64) @ marks).tolist()) in known

        return drop_marked
    tables = {block.columns for block in blocks}

    def drop(query: Query) -> bool:
        shape = _canonical_on_columns(domain, query)
        if shape is None or shape[0] not in tables:
            return False
        _, values, scale = shape
        ones = int(np.count_nonzero(values))
        return scale == 1 and int(values.max()) == 1 and ones in (1, len(values) - 1)

    return drop


def _distinct(domain: Domain, blocks: list[Cells]) -> tuple[Cells, ...]:
    """Drop cells that are equal, on the cells of the universe, to one before or to its complement."""
    if not blocks:
        return ()
    marks = _marks(domain)
    prints = np.concatenate([_fingerprints(domain, block, marks) for block in blocks])
    order = np.lexsort((np.arange(len(prints)), prints[:, 1], prints[:, 0]))
    first = np.ones(len(prints), dtype=bool)
    first[order[1:]] = (prints[order[1:]] != prints[order[:-1]]).any(axis=1)
    found, at = [], 0
    for block in blocks:
        kept = block.kept
        kept[kept] = first[at : at + block.size]
        at += block.size
        if kept.any():
            found.append(Cells.of(domain, block.columns, kept))
    return tuple(found)


def _marks(domain: Domain) -> Words:
    """Return two random-looking words for each cell of the universe (splitmix64), shape (N, 2).

    A set of cells is known by the sum of its marks. That two of 10^7 different sets share 128 bits has a
    chance of about 10^-24.
    """
    with np.errstate(over="ignore"):
        z = np.arange(1, 2 * domain.size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (z ^ z >> np.uint64(31)).reshape(2, -1).T


def _fingerprints(domain: Domain, block: Cells, marks: Words) -> Words:
    """Return those of the queries of a block, each or its complement: the one that is 0 on the first cell."""
    codes = block.codes(domain, domain.table())
    sums = np.zeros((block.cells, 2), dtype=np.uint64)
    for half in range(2):
        np.add.at(sums[:, half], codes, marks[:, half])
    sums[codes[0]] = marks.sum(axis=0) - sums[codes[0]]
    return sums[block.kept]


def _key(query: Query) -> Hashable | None:
    """Return the key on the whole cube: a function there has one set of attributes that matter."""
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
    places, values, scale = _plain(table, denominator)
    return places, tuple(values.tolist()), scale


def _plain(table: Integers, denominator: int) -> tuple[tuple[int, ...], Integers, int]:
    """Return the axes that matter, and the table over them without constant, sign and common factor."""
    axes = tuple(i for i in range(table.ndim) if (table != table.take([0], i)).any())
    over_axes = tuple(slice(None) if i in axes else 0 for i in range(table.ndim))
    return axes, *_unsigned(table[over_axes].reshape(-1), denominator)


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


def _key_on_cells(domain: Domain) -> Key:
    """Return the same for a universe with structural zeros: a function is its values on the cells."""
    cells = domain.table()

    def key(query: Query) -> Hashable | None:
        values, scale = _unsigned(query.on(domain, cells), query.denominator)
        return (values.tobytes(), scale) if values.any() else None

    return key


def _key_on_columns(domain: Domain) -> Key:
    """Return the same for columns: a function has one set of columns that matter."""

    def key(query: Query) -> Hashable | None:
        found = _canonical_on_columns(domain, query)
        if found is None:
            return query.attributes, query.weights, query.sizes  # too wide to compare
        columns, values, scale = found
        if domain.valid is not None and columns:
            values, scale = _unsigned(values[domain.allowed(columns).reshape(-1)], scale)
        return (columns, sha256(values.tobytes()).digest(), scale) if values.any() else None

    return key


def _canonical_on_columns(
    domain: Domain, query: Query
) -> tuple[tuple[int, ...], npt.NDArray[np.int64], int] | None:
    """Return the columns that matter, and the table over them; None where it would pass 2^20 cells."""
    columns = query.columns(domain)
    if math.prod(domain.sizes[c] for c in columns) > MAX_CELLS:
        return None
    axes, values, scale = _plain(query.over_columns(domain), query.denominator)
    return tuple(columns[i] for i in axes), values, scale
