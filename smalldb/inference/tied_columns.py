"""Columns that rules tie, as one column whose categories are the cells that can exist."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from queries import Domain
from queries.arrays import Integers
from queries.domain import Bits

MOST = 1 << 12  # categories of a block


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """
    A partition of columns: whatever the rules allow in one block goes with whatever they allow in another.

    Attributes
    ----------
    columns
        The columns of each block, ascending.
    cells
        Of each block the categories of its columns that can exist together, shape (size, columns).
    """

    columns: tuple[tuple[int, ...], ...]
    cells: tuple[Integers, ...]

    # Proof: docs/proofs/imputation.md, lemma 3.
    @classmethod
    def of(cls, domain: Domain) -> Self:
        """
        Return the blocks of a domain; a column that no rule looks at is a block of its own.

        Raises
        ------
        ValueError
            A block has too many cells.
        """
        label = list(range(len(domain.sizes)))
        for rule in domain.rules:
            joined = {label[c] for c in rule.columns}
            label = [min(joined) if one in joined else one for one in label]
        columns = tuple(
            tuple(c for c, one in enumerate(label) if one == first) for first in sorted(set(label))
        )
        return cls(columns, tuple(_cells(domain, block) for block in columns))

    @property
    def sizes(self) -> Integers:
        """The number of categories of each block."""
        return np.array([len(cells) for cells in self.cells], dtype=np.int64)

    def merged(self, places: Bits) -> np.ndarray[tuple[int, int], np.dtype[np.int16]]:
        """Return rows of categories, shape (rows, C), as rows of blocks."""
        found = np.empty((len(places), len(self.columns)), dtype=np.int16)
        for b, (columns, cells) in enumerate(zip(self.columns, self.cells, strict=True)):
            own = np.array(places[:, columns], dtype=np.int64)  # and cells ascend, so they keep their numbers
            both, number = np.unique(np.concatenate((cells, own)), axis=0, return_inverse=True)
            if len(both) > len(cells):
                raise ValueError("a row is outside the cells that can exist")
            found[:, b] = number.reshape(-1)[len(cells) :]
        return found

    def split(self, rows: np.ndarray[tuple[int, int], np.dtype[np.int16]]) -> Integers:
        """Return rows of blocks as rows of categories, shape (rows, C)."""
        found = np.empty((len(rows), sum(map(len, self.columns))), dtype=np.int64)
        for b, (columns, cells) in enumerate(zip(self.columns, self.cells, strict=True)):
            found[:, columns] = cells[rows[:, b]]
        return found


def _cells(domain: Domain, block: Sequence[int]) -> Integers:
    """Return what can exist in some columns: column by column, less what a rule forbids."""
    cells, columns = np.zeros((1, 0), dtype=np.int64), list[int]()
    for column in block:
        size = domain.sizes[column]
        if len(cells) * size > 16 * MOST:
            raise ValueError(_too_many(domain, block))
        cells = np.column_stack((np.repeat(cells, size, axis=0), np.tile(np.arange(size), len(cells))))
        columns.append(column)
        for rule in domain.rules:
            if column in rule.columns and set(rule.columns) <= set(columns):
                cells = cells[rule.allowed[tuple(cells[:, columns.index(c)] for c in rule.columns)]]
    if len(cells) > MOST:
        raise ValueError(_too_many(domain, block))
    return cells


def _too_many(domain: Domain, block: Sequence[int]) -> str:
    names = ", ".join(domain.names[c] for c in block)
    return f"the rules tie columns ({names}) into more than {MOST} cells: several tables cannot be drawn"
