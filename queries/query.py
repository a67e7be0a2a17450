"""Queries: a rational number in [0, 1] of each row, one by one or as all cells of the table of columns."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import isqrt, prod
from operator import ge
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans, Codes, Integers
from queries.columns import Bits, Column
from queries.domain import MAX_CELLS, Domain
from queries.expressions import quote
from queries.rows import bincounted


@dataclass(frozen=True, slots=True)
class Query:
    """One linear query f: rows -> [0, 1] that looks at a few attributes, or at a few columns.

    Attributes
    ----------
    label
        Readable name, in the grammar of `queries.expressions` where it is a predicate.
    attributes
        Positions of the attributes that it looks at, ascending; with `sizes`, of the columns.
    weights
        ``denominator * f`` for each of the 2^|attributes| settings, in product order;
        None for the parity (XOR) of the attributes, which needs no table.
    denominator
        Common denominator of the weights.
    sizes
        How many categories each of the columns has; the weights are then one for each cell of their table.
        None: the query looks at attributes.
    """

    label: str
    attributes: tuple[int, ...]
    weights: tuple[int, ...] | None
    denominator: int = 1
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        positions = self.attributes
        # of up to 10^5 queries and more: each check runs in C
        if (
            {*map(type, positions)} - {int}
            or any(map(ge, positions, positions[1:]))
            or (positions and positions[0] < 0)
        ):
            raise ValueError(f"query {self.label!r}: attributes must be positions, ascending")
        if type(self.denominator) is not int or self.denominator < 1:
            raise ValueError(f"query {self.label!r}: the denominator must be a whole number of at least 1")
        if self.weights is None:
            if self.denominator != 1 or self.sizes is not None:
                raise ValueError(f"query {self.label!r}: a parity has denominator 1, and looks at attributes")
            return
        cells = 1 << len(positions) if self.sizes is None else prod(self.sizes)
        if (
            (self.sizes is not None and len(self.sizes) != len(positions))
            or len(self.weights) != cells
            or {*map(type, self.weights)} != {int}
            or min(values := {*self.weights}) < 0  # mostly two
            or max(values) > self.denominator
        ):
            expected = f"2^{len(positions)}" if self.sizes is None else f"{cells}"
            raise ValueError(
                f"query {self.label!r}: expected {expected} whole weights from 0 to {self.denominator}"
            )

    @property
    def constant(self) -> bool:
        """Whether it has one value on all rows, and so no error on any table."""
        return not self.attributes if self.weights is None else len(set(self.weights)) == 1

    def values(self, bits: Bits) -> Integers:
        """Return ``denominator * f`` on 0/1 rows of shape (r, d): int64, shape (r,).

        A query with `sizes` takes rows of codes, shape (r, C).
        """
        chosen = bits[:, list(self.attributes)]
        if self.weights is None:
            return odd(chosen).astype(np.int64)
        weights: Integers = np.array(self.weights, dtype=np.int64)
        if self.sizes is None:
            return weights[settings(chosen)]
        return (
            weights[np.ravel_multi_index(tuple(chosen.T), self.sizes)]
            if self.sizes
            else weights[[0] * len(bits)]
        )

    def on(self, domain: Domain, codes: Codes) -> Integers:
        """Return ``denominator * f``, as `values` does, on rows of codes of a domain, shape (r, C)."""
        if domain.binary or self.sizes is not None:
            return self.values(codes)
        near = Query(self.label, tuple(range(len(self.attributes))), self.weights, self.denominator)
        return near.values(domain.bits(codes, self.attributes))

    def columns(self, domain: Domain) -> tuple[int, ...]:
        """Return the columns of a domain that it looks at, ascending."""
        if self.sizes is not None or domain.binary:
            return self.attributes
        return tuple(sorted({domain.column_of(a)[0] for a in self.attributes}))

    def over_columns(self, domain: Domain) -> Integers:
        """Return ``denominator * f`` on the cells of the table of its columns, shaped by their sizes.

        ValueError beyond 2^20 cells.
        """
        columns = self.columns(domain)
        shape = tuple(domain.sizes[c] for c in columns)
        if prod(shape) > MAX_CELLS:
            raise ValueError(
                f"query {self.label!r} looks at columns with {prod(shape)} cells, more than 2^20"
            )
        if self.weights is not None and (self.sizes is not None or domain.binary):
            return np.array(self.weights, dtype=np.int64).reshape(shape)
        held = []
        for attribute in self.attributes:
            c, within = domain.column_of(attribute)
            truth = domain.columns[c].table[:, within].astype(np.int64)
            held.append(truth.reshape([-1 if i == c else 1 for i in columns]))
        nothing = np.zeros((1,) * len(shape), dtype=np.int64)
        if self.weights is None:
            return np.broadcast_to(reduce(np.bitwise_xor, held, nothing), shape)
        setting = reduce(lambda code, truth: 2 * code + truth, held, nothing)
        weights: Integers = np.array(self.weights, dtype=np.int64)
        return np.broadcast_to(weights[setting], shape)


def odd(chosen: Bits) -> Booleans:
    """Tell which 0/1 rows have an odd number of ones."""
    is_odd: Booleans = chosen.sum(axis=1) % 2 == 1
    return is_odd


def settings(chosen: Bits) -> Integers:
    """Read each 0/1 row as an integer, first column most significant."""
    positions = np.arange(chosen.shape[1] - 1, -1, -1, dtype=np.int64)
    return chosen.astype(np.int64) @ (np.int64(1) << positions)


Entry = TypeVar("Entry", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one table, less those that reduction dropped: one 0/1 query each, in product order."""

    # a yes/no column has yes first, so that its queries are in the order of `queries.Conjunctions`
    columns: tuple[int, ...]  # positions of the columns, ascending
    cells: int  # how many cells the table has
    dropped: bytes | None = None  # which cells are no queries, one byte each; None: none is dropped

    @classmethod
    def of(cls, domain: Domain, columns: tuple[int, ...], kept: Booleans | None = None) -> "Cells":
        """Take the cells of a table, or some of them."""
        dropped = None if kept is None or kept.all() else (~kept).tobytes()
        return cls(columns, prod(domain.sizes[c] for c in columns), dropped)

    @property
    def size(self) -> int:
        """How many queries there are."""
        return self.cells if self.dropped is None else self.dropped.count(0)

    @property
    def kept(self) -> Booleans:
        """Which cells are queries, shape (cells,)."""
        if self.dropped is None:
            return np.ones(self.cells, dtype=bool)
        return ~np.frombuffer(self.dropped, dtype=bool)

    def cells_of(self, domain: Domain, codes: Codes) -> Integers:
        """Return the cell of the table that each row of codes is in, shape (r,)."""
        cells = np.zeros(len(codes), dtype=np.int64)
        for c in self.columns:
            cells *= domain.sizes[c]
            cells += 1 - codes[:, c].astype(np.int64) if domain.columns[c].yes_no else codes[:, c]
        return cells

    def of_counts(self, counts: Integers) -> Integers:
        """Take the queries' entries of an array over all cells."""
        return counts if self.dropped is None else counts[self.kept]

    def in_order(self, domain: Domain, table: npt.NDArray[Entry]) -> npt.NDArray[Entry]:
        """Put a table in the order of queries, in which yes comes first."""
        yes_first = tuple(i for i, c in enumerate(self.columns) if domain.columns[c].yes_no)
        return np.flip(table, yes_first).reshape(-1)

    def label(self, domain: Domain, cell: int) -> str:
        """Name a cell, by its number among all cells."""
        words = []
        for c in reversed(self.columns):
            cell, code = divmod(cell, domain.sizes[c])
            words.append(_words(domain.columns[c])[code])
        return " & ".join(reversed(words)) or "TRUE"

    def queries(self, domain: Domain) -> list[Query]:
        """List the queries."""
        sizes = tuple(domain.sizes[c] for c in self.columns)
        cells = self.in_order(domain, np.arange(self.cells).reshape(sizes)).tolist()
        words = product(*(_words(domain.columns[c]) for c in self.columns))
        shape, queries = None if domain.binary else sizes, []
        for cell, literals, kept in zip(cells, words, self.kept.tolist(), strict=True):
            if kept:
                weights = (0,) * cell + (1,) + (0,) * (self.cells - cell - 1)
                queries.append(Query(" & ".join(literals) or "TRUE", self.columns, weights, 1, shape))
        return queries


def _words(column: Column) -> list[str]:
    """Name the categories of a column, in the order of cells."""
    if column.yes_no:
        return [quote(column.name), "~" + quote(column.name)]
    return [quote(name) for name in column.category_names]


MOST_GROUP = 64  # settings of a group of columns, so that the table of two groups fits the cache
ROWS = 1 << 16  # that are counted together, for the same reason


def sums_of_cells(domain: Domain, blocks: Sequence[Cells], codes: Codes, counts: Integers) -> Integers:
    """Return how many rows are in each cell that is a query, block by block: int64, exact."""
    starts = np.cumsum([0, *(block.size for block in blocks)])
    sums = np.zeros(starts[-1], dtype=np.int64)
    of_pairs: dict[tuple[int, ...], int] = {
        block.columns: i for i, block in enumerate(blocks) if len(block.columns) == 2
    }
    for i, block in enumerate(blocks):
        if block.columns not in of_pairs:
            table = bincounted(block.cells_of(domain, codes), counts, block.cells)
            sums[starts[i] : starts[i + 1]] = block.of_counts(table)
    for pair, table in pair_tables(codes, counts, domain.sizes, of_pairs):
        block = blocks[i := of_pairs[pair]]
        sums[starts[i] : starts[i + 1]] = block.of_counts(block.in_order(domain, table))
    return sums


def pair_tables(
    codes: Codes, counts: Integers, sizes: Sequence[int], pairs: Iterable[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, ...], Integers]]:
    """Count rows by the cells of each pair of columns: a pair and its table, int64, exact, in any order."""
    groups = _groups(sizes, max(2, min(MOST_GROUP, isqrt(len(codes)))))
    group_of = {c: g for g, group in enumerate(groups) for c in group}
    wanted: dict[tuple[int, int], list[tuple[int, ...]]] = defaultdict(list)
    for pair in pairs:
        first, second = pair
        wanted[group_of[first], group_of[second]].append(pair)
    numbers = [_numbers(codes, sizes, group) for group in groups]
    for (left, right), members in wanted.items():
        columns = groups[left] if left == right else groups[left] + groups[right]
        shape = [sizes[c] for c in columns]
        table = np.zeros(prod(shape), dtype=np.int64)
        times = prod(sizes[c] for c in groups[right])
        for start in range(0, len(codes), ROWS):
            some = slice(start, start + ROWS)
            cells = numbers[left][some]
            if left != right:
                cells = cells.astype(np.min_scalar_type(len(table) - 1)) * times + numbers[right][some]
            table += bincounted(cells, counts[some], len(table))
        of_columns = table.reshape(shape)
        for pair in members:
            others = tuple(axis for axis, c in enumerate(columns) if c not in pair)
            yield pair, of_columns.sum(axis=others)


def _groups(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Take neighbouring columns together while their settings are at most so many."""
    groups: list[list[int]] = []
    for c, size in enumerate(sizes):
        if groups and prod(sizes[other] for other in groups[-1]) * size <= most:
            groups[-1].append(c)
        else:
            groups.append([c])
    return groups


def _numbers(codes: Codes, sizes: Sequence[int], group: Sequence[int]) -> Integers:
    """Number the settings of a group of columns in each row, in the narrowest integers."""
    settings = prod(sizes[c] for c in group)
    numbers = np.zeros(len(codes), dtype=np.min_scalar_type(settings - 1))
    for c in group:
        numbers *= numbers.dtype.type(sizes[c])
        numbers += codes[:, c].astype(numbers.dtype)
    return numbers
