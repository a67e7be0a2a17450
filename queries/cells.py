"""All cells of the table of a few columns, as queries that are never listed."""

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans, Codes, Integers
from queries.columns import Column
from queries.domain import Domain
from queries.expressions import quote
from queries.query import Query

Entry = TypeVar("Entry", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one table, less those that reduction dropped: one 0/1 query each.

    They stand in product order of the columns' categories; a yes/no column has yes first, so that the
    queries of yes/no columns are conjunctions in the order of `queries.Conjunctions`.
    """

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
            column = domain.columns[c]
            cell, code = divmod(cell, column.size)
            if column.yes_no:
                words.append("~" * code + quote(column.name))
            else:
                words.append(quote(column.category_names[code]))
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
