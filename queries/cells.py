"""All cells of the tables of a few columns, as queries that are never listed, and rows counted by them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans, Codes, Integers
from queries.columns import Column
from queries.domain import Domain
from queries.expressions import quote
from queries.query import Query
from queries.rows import bincounted

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
        shape, found = None if domain.binary else sizes, []
        for cell, said, kept in zip(cells, words, self.kept.tolist(), strict=True):
            if kept:
                weights = (0,) * cell + (1,) + (0,) * (self.cells - cell - 1)
                found.append(Query(" & ".join(said) or "TRUE", self.columns, weights, 1, shape))
        return found


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
