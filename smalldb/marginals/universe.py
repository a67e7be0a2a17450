"""What is public of a wide table: its columns, what is impossible, and what will be asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from operator import ge

import numpy as np
import numpy.typing as npt

Rule = tuple[tuple[int, ...], npt.NDArray[np.bool_]]  # columns, and which of their cells are possible

MOST_CATEGORIES = 1 << 20  # of a column


@dataclass(frozen=True, slots=True, eq=False)
class Universe:
    """The product of columns of so many categories, less what rules forbid, and the tables of a workload."""

    sizes: tuple[int, ...]  # the number of categories of each column, at least 2; shape (C,)
    ordered: tuple[bool, ...]  # of each column, whether categories beside each other are alike; shape (C,)
    # the tables of the workload: distinct sets of columns, each ascending and without repeats
    tables: tuple[tuple[int, ...], ...]
    # columns, ascending, and a boolean array shaped by their sizes: False where no row can be
    rules: tuple[Rule, ...] = ()
    # columns whose tables with each other column are measured before others are selected; ascending
    targets: tuple[int, ...] = ()
    # more tables that are measured first, whether the workload has them or not: distinct sets of at least two
    # columns, each ascending
    named: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.sizes or any(not 2 <= size <= MOST_CATEGORIES for size in self.sizes):
            raise ValueError(f"every column needs 2 to {MOST_CATEGORIES} categories")
        if len(self.ordered) != len(self.sizes):
            raise ValueError("ordered must say yes or no for every column")
        if not self.tables or len(set(self.tables)) != len(self.tables):
            raise ValueError("tables must be distinct, and at least one")
        for columns in (*self.tables, *(columns for columns, _ in self.rules)):
            # of up to 10^5 tables and more: the check runs in C
            unordered = any(map(ge, columns, columns[1:]))
            if not columns or unordered or not 0 <= columns[0] <= columns[-1] < len(self.sizes):
                raise ValueError("the columns of a table or rule are numbers from 0, ascending, at least one")
        for columns in (self.targets, *self.named):
            if any(map(ge, columns, columns[1:])) or any(not 0 <= c < len(self.sizes) for c in columns):
                raise ValueError("targets and named tables are numbers of columns, ascending")
        if len(set(self.named)) != len(self.named) or any(len(columns) < 2 for columns in self.named):
            raise ValueError("named tables must be distinct, each of at least two columns")
        for columns, allowed in self.rules:
            if allowed.dtype != np.bool_ or allowed.shape != tuple(self.sizes[c] for c in columns):
                raise ValueError("a rule needs a boolean array of the shape of its columns' categories")
            if not allowed.any():
                raise ValueError("a rule forbids everything")

    @property
    def cells(self) -> int:
        """The number of cells of the product, whatever the rules."""
        return prod(self.sizes)

    def possible(self) -> npt.NDArray[np.bool_]:
        """Return where rows can be, shaped by the sizes: for universes whose cells can be listed."""
        cells = np.ones(self.sizes, dtype=bool)
        for columns, allowed in self.rules:
            cells &= allowed.reshape([s if c in columns else 1 for c, s in enumerate(self.sizes)])
        return cells

    def size(self, columns: Sequence[int]) -> int:
        """Return the number of cells of a table."""
        return prod(self.sizes[c] for c in columns)

    @property
    def queries(self) -> int:
        """The number of cells of all tables of the workload."""
        return sum(map(self.size, self.tables))


def pairs_of(universe: Universe) -> list[tuple[int, int]]:
    """Return the pairs of columns in the tables of the workload, in order."""
    every, pairs = comb(len(universe.sizes), 2), set[tuple[int, int]]()
    for table in universe.tables:
        pairs.update(combinations(table, 2))
        if len(pairs) == every:  # among 10^5 tables the first thousand often have them all
            break
    return sorted(pairs)
