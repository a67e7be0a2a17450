"""Columns that rules tie, as one column whose categories are the cells that can exist."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from queries import Domain
from queries.arrays import Integers
from queries.domain import Bits
from queries.rules import Parts, Rule, listed

MOST = 1 << 12  # categories of a block
INSTEAD = "ask for shares and means instead (smalldb ask, release.ask)"


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
        """Return the blocks of a domain; a column that no rule looks at is a block of its own."""
        tied = {part.columns: part.rules for part in Parts.of(domain.rules, domain.sizes).of_column.values()}
        free = set(range(len(domain.sizes))).difference(*tied)
        columns = tuple(sorted([*tied, *((column,) for column in free)]))
        return cls(columns, tuple(_cells(domain, block, tied.get(block, ())) for block in columns))

    @property
    def sizes(self) -> Integers:
        """The number of categories of each block."""
        return np.array([len(cells) for cells in self.cells], dtype=np.int64)

    def merged(self, codes: Bits) -> np.ndarray[tuple[int, int], np.dtype[np.int16]]:
        """Return rows of categories, shape (rows, C), as rows of blocks."""
        found = np.empty((len(codes), len(self.columns)), dtype=np.int16)
        for b, (columns, cells) in enumerate(zip(self.columns, self.cells, strict=True)):
            own = np.array(codes[:, columns], dtype=np.int64)  # and cells ascend, so they keep their numbers
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


def _cells(domain: Domain, block: tuple[int, ...], rules: Sequence[Rule]) -> Integers:
    """Return what the rules let exist in some columns, ascending."""
    sizes = tuple(domain.sizes[c] for c in block)
    own = [Rule(tuple(block.index(c) for c in rule.columns), rule.allowed) for rule in rules]
    cells = listed(own, sizes)
    if cells is None or len(cells) > MOST:
        names = ", ".join(domain.names[c] for c in block)
        raise ValueError(
            f"the rules tie columns ({names}) into more than {MOST} cells: several tables cannot be "
            f"drawn; {INSTEAD}"
        )
    return np.stack(np.unravel_index(cells, sizes), axis=1).astype(np.int64)
