"""Which queries have the same error on every table: equal up to sign and an added constant."""

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans, Codes, Integers, Words, splitmix64
from queries.domain import MAX_CELLS, Domain
from queries.query import Cells, Query

Key = Callable[[Query], Hashable | None]
Drop = Callable[[Query], bool]
MAX_RULE_STEPS = 100_000  # tables that are made to enforce rules on sets of columns: some seconds
MAX_MARKED = 1 << 26  # cells of the universe x sets of columns that queries are compared on
LEAST_MARKED = 1 << 11  # cells that a set takes as long as, whatever the universe


def marks_for(domain: Domain, sets: Iterable[tuple[int, ...]]) -> "Marks | None":
    """Return the marks that compare queries over sets of columns; None: rules are over many cells or sets."""
    if domain.valid is None or not domain.listable:
        return None
    return Marks.of(domain) if len({*sets}) * max(domain.size, LEAST_MARKED) <= MAX_MARKED else None


def check_rules(domain: Domain, sets: Iterable[tuple[int, ...]], text: str) -> None:
    """Refuse sets of columns on which it takes long to enforce the rules: counted before it is done."""
    if domain.valid is None:
        return
    wanted = {*sets}
    needed = domain.enforced(wanted)
    if needed > MAX_RULE_STEPS:
        raise ValueError(
            f"{text}: the rules of valid are enforced on {len(wanted)} sets of columns in {needed} steps, "
            f"more than {MAX_RULE_STEPS}: use fewer rules that meet, fewer columns, or a smaller width"
        )


def key_of(domain: Domain, marks: "Marks | None") -> Key:
    """Return what two queries share exactly where they are equal up to sign and constant; None: constant."""
    # equal on the cells that can exist; without marks, some that rules make equal are told apart
    if domain.free:
        return _key
    return _key_on_columns(domain) if marks is None else marks.key


def reduced_cells(
    domain: Domain, tables: Iterable[tuple[int, ...]], marks: "Marks | None"
) -> tuple[Cells, ...]:
    """Keep one of each group of equal cells of tables, the first, and no constant."""
    blocks = []
    ruled = domain.ruled
    for columns in dict.fromkeys(tables):
        block = Cells.of(domain, columns)
        kept = None
        if not ruled.isdisjoint(columns):
            kept = block.in_order(domain, domain.allowed(columns)).copy()
        existing = block.cells if kept is None else int(kept.sum())
        if existing <= 2:  # of one cell the query is constant, of two each is the complement of the other
            kept = np.ones(block.cells, dtype=bool) if kept is None else kept
            kept[np.flatnonzero(kept)[existing - 1 :]] = False
        if existing > 1:
            blocks.append(block if kept is None else Cells.of(domain, columns, kept))
    return tuple(blocks) if marks is None else _distinct(domain, blocks, marks)


def in_cells(domain: Domain, blocks: tuple[Cells, ...], marks: "Marks | None") -> Drop:
    """Return what tells whether a query is equal to a cell of these tables, up to sign and constant."""
    if marks is not None:
        known = {(tuple(row), 1) for block in blocks for row in marks.of_cells(block).tolist()}
        return lambda query: marks.key(query) in known
    tables = {block.columns for block in blocks}

    def drop(query: Query) -> bool:
        shape = _canonical_on_columns(domain, query)
        if shape is None or shape[0] not in tables:
            return False
        _, values, scale = shape
        ones = int(np.count_nonzero(values))
        return scale == 1 and int(values.max()) == 1 and ones in (1, len(values) - 1)

    return drop


def _distinct(domain: Domain, blocks: list[Cells], marks: "Marks") -> tuple[Cells, ...]:
    """Drop cells that are equal, on the cells of the universe, to one before or to its complement."""
    if not blocks:
        return ()
    prints = np.concatenate([marks.of_cells(block) for block in blocks])
    order = np.lexsort((np.arange(len(prints)), prints[:, 1], prints[:, 0]))
    first = np.ones(len(prints), dtype=bool)
    first[order[1:]] = (prints[order[1:]] != prints[order[:-1]]).any(axis=1)
    distinct, at = [], 0
    for block in blocks:
        kept = block.kept
        kept[kept] = first[at : at + block.size]
        at += block.size
        if kept.any():
            distinct.append(Cells.of(domain, block.columns, kept))
    return tuple(distinct)


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Two words of splitmix64 for each cell: a function is known by its sum of values times marks."""

    # modulo 2^64: that two of 10^7 different ones share 128 bits has a chance of about 10^-24

    domain: Domain  # the universe: at most 2^20 cells
    codes: Codes  # its cells, shape (N, C)
    words: Words  # shape (N, 2)

    @classmethod
    def of(cls, domain: Domain) -> "Marks":
        """Mark the cells of a universe."""
        return cls(domain, domain.table(), splitmix64(2 * domain.size).reshape(2, -1).T)

    def added(self, cells: Integers, size: int) -> Words:
        """Add up the marks by cells (N,) below `size`, shape (size, 2)."""
        sums = np.zeros((size, 2), dtype=np.uint64)
        for half, words in enumerate(self.words.T):
            for shift in (0, 32):  # sums of 2^20 numbers of 32 bits are exact in doubles
                part = (words >> np.uint64(shift) & np.uint64(0xFFFFFFFF)).astype(np.float64)
                sums[:, half] += np.bincount(cells, part, size).astype(np.uint64) << np.uint64(shift)
        return sums

    def of_cells(self, block: Cells) -> Words:
        """Return by what the queries of a block are known, shape (size, 2)."""
        cells = block.cells_of(self.domain, self.codes)
        sums = self.added(cells, block.cells)
        sums[cells[0]] -= self.words.sum(axis=0)  # each is 0 on the first cell
        return _least_of_signs(sums[block.kept])

    def key(self, query: Query) -> Hashable | None:
        """Return by what a query is known, up to sign and constant; None: it is constant."""
        columns = query.columns(self.domain)
        if math.prod(self.domain.sizes[c] for c in columns) <= self.domain.size:
            first, existing, sums = _table_of(self, columns)
            values = query.over_columns(self.domain).reshape(-1)
        else:
            first, existing, sums = 0, np.ones(len(self.codes), dtype=bool), self.words
            values = query.on(self.domain, self.codes)
        values = (values - values[first]) * existing
        nonzero = values[values != 0]
        if len(nonzero) == 0:
            return None
        common = math.gcd(int(np.gcd.reduce(nonzero)), query.denominator)
        words = ((values // common).astype(np.uint64)[:, None] * sums).sum(axis=0)
        return tuple(_least_of_signs(words[None])[0].tolist()), query.denominator // common


@lru_cache(maxsize=8)
def _table_of(marks: Marks, columns: tuple[int, ...]) -> tuple[int, Booleans, Words]:
    """Return the setting of columns in the first cell, which settings exist, and the sums of their marks."""
    cells = marks.domain.cells_of(marks.codes, columns)
    size = math.prod(marks.domain.sizes[c] for c in columns)
    return int(cells[0]), np.bincount(cells, minlength=size) > 0, marks.added(cells, size)


def _least_of_signs(words: Words) -> Words:
    """Return each row (r, 2), or its negative modulo 2^64: the lesser, of which both have the same."""
    negative = np.uint64(0) - words
    swap = (negative[:, 0] < words[:, 0]) | ((negative[:, 0] == words[:, 0]) & (negative[:, 1] < words[:, 1]))
    return np.where(swap[:, None], negative, words)


def _key(query: Query) -> Hashable | None:
    """Return the key on the whole cube: a function there has one set of attributes that matter."""
    if query.weights is None:
        return (query.attributes, None) if query.attributes else None
    positions, function = _canonical(query.weights, query.denominator)
    if not positions:
        return None
    attributes = query.attributes  # of up to 10^5 queries and more, most of which look at all of theirs
    if len(positions) < len(attributes):
        attributes = tuple(attributes[i] for i in positions)
    return attributes, function


@lru_cache(maxsize=512)
def _canonical(
    weights: tuple[int, ...], denominator: int
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], int] | None]:
    """Return the positions that matter, and the table over them without constant, sign and common factor."""
    # of a parity None in place of the table and its denominator
    table = np.array(weights, dtype=np.int64).reshape((2,) * (len(weights).bit_length() - 1))
    positions, differences, scale = _plain(table, denominator)
    values = tuple(differences.tolist())
    return positions, None if scale == 1 and values == _parity_table(len(positions)) else (values, scale)


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


def _key_on_columns(domain: Domain) -> Key:
    """Return the same for columns: a function has one set of columns that matter."""
    ruled, tables = domain.ruled, dict[tuple[int, ...], Booleans]()

    def allowed(columns: tuple[int, ...]) -> Booleans:
        """Return which of the cells of these columns can exist: what the rules say of some of the columns."""
        core = tuple(c for c in columns if c in ruled)
        if core not in tables:  # few, of up to 10^4 sets of columns and more
            tables[core] = domain.allowed(core) if core else np.ones((), dtype=bool)
        shape = [domain.sizes[c] if c in ruled else 1 for c in columns]
        return np.broadcast_to(tables[core].reshape(shape), [domain.sizes[c] for c in columns])

    def key(query: Query) -> Hashable | None:
        canonical = _canonical_on_columns(domain, query)
        if canonical is None:
            return query.attributes, query.weights, query.sizes  # too wide to compare
        columns, values, scale = canonical
        if domain.valid is not None and columns:
            values, scale = _unsigned(values[allowed(columns).reshape(-1)], scale)
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
