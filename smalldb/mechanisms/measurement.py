"""What was released of the data, step by step: numbers with noise, which anybody may compute with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TypeAlias

import numpy as np

from queries import Domain
from queries.arrays import Booleans
from queries.domain import Integers
from smalldb.noise.noise_protocol import Moved, Noise


@dataclass(frozen=True, slots=True)
class Marginal:
    """The counts of rows in each cell of a table of some columns, whose categories stand in groups.

    Where the domain's rules leave no row in a cell, its count may be 0 without noise.
    """

    columns: tuple[int, ...]  # their numbers, ascending
    groups: tuple[tuple[int, ...], ...]  # for each column, the group of each of its categories, from 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each column."""
        return tuple(max(groups) + 1 for groups in self.groups)

    @property
    def size(self) -> int:
        """The number of cells."""
        return prod(self.shape)

    # Proof: docs/proofs/rounds.md, lemma 1.
    def moved(self, replaced: bool) -> Moved:
        """Return how far neighbours move it: a row stands in one cell."""
        cells = 2 if replaced else 1
        return Moved(cells, cells)

    def possible(self, domain: Domain) -> Booleans:
        """Return which cells some row can have, in the shape of the groups."""
        allowed = domain.allowed(self.columns)
        for axis, groups in enumerate(self.groups):
            allowed = grouped(allowed, axis, np.asarray(groups))
        return allowed


def grouped(allowed: Booleans, axis: int, groups: Integers) -> Booleans:
    """Return whether any category of each group is allowed, along an axis."""
    members = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
    return np.stack([np.take(allowed, codes, axis=axis).any(axis=axis) for codes in members], axis=axis)


@dataclass(frozen=True, slots=True)
class Parity:
    """One number about yes/no columns, or about a category of each of some columns: a contrast.

    Under replace-one how many rows have an odd number of yes among the columns; under add-remove the sum
    over the rows of -1 for an odd number, and of 1 for an even one (of no columns: the number of rows).
    """

    columns: tuple[int, ...]  # their numbers, ascending
    signed: bool  # whether it is the sum of signs: under add-remove
    # the category of each column that counts as yes; None: that of yes/no columns, which is 1
    categories: tuple[int, ...] | None = None

    @property
    def yes(self) -> tuple[int, ...]:
        """The category of each column that counts as yes."""
        return (1,) * len(self.columns) if self.categories is None else self.categories

    @property
    def size(self) -> int:
        """One number."""
        return 1


@dataclass(frozen=True, slots=True)
class Dependence:
    """One number that tells how far pairs of columns depend, in all.

    The sum over the pairs of how far their table is, in rows, from that of independent columns with its
    margins (the sum of absolute differences, rounded down).
    """

    pairs: tuple[tuple[int, int], ...]  # numbers of columns
    tops: tuple[int, ...] = ()  # up to which each pair counts: of earlier versions
    # whether it is how far they are from a public start, with weights that agree with columns; without tops
    of_start: bool = False
    # at how many groups a column is counted at most: category i of k is in group i * groups // k; None: all
    groups: int | None = None

    @property
    def columns(self) -> tuple[int, ...]:
        """The numbers of all columns."""
        return tuple(sorted({c for pair in self.pairs for c in pair}))

    @property
    def size(self) -> int:
        """One number."""
        return 1


@dataclass(frozen=True, slots=True)
class Offsets:
    """
    Of a column of numbers in bins, for each bin the sum of how far the numbers are from its middle.

    In `units` of the bin's width, rounded: of a row at most half of them, up or down. Rows with a gap count
    nowhere.
    """

    columns: tuple[int]  # its number
    bins: int
    units: int

    # Proof: docs/proofs/curator.md, lemma 5.
    def moved(self, replaced: bool) -> Moved:
        """Return how far neighbours move it: by half a bin, or from one end of a bin to the other."""
        far = self.units if replaced else self.units // 2
        return Moved(far, far**2)

    @property
    def size(self) -> int:
        """The number of bins."""
        return self.bins


MeasuredPart: TypeAlias = Marginal | Parity | Dependence | Offsets


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Numbers that were released together, with one noise; public."""

    of: tuple[MeasuredPart, ...]  # what was measured
    # the released integers, int64 (read-only): those of each part of `of`, one after another; the cells of a
    # table in row-major order of its groups. Noise makes some of them negative.
    values: Integers
    noise: Noise  # what was added to the true numbers
    cost: Fraction  # what was paid, an epsilon or a rho; 0: it was paid with the one before
    # what was paid, besides, for choosing what to measure by the exponential mechanism; None: it was chosen
    # from public or released numbers
    selecting: Fraction | None = None

    def __post_init__(self) -> None:
        self.values.setflags(write=False)
        if sum(part.size for part in self.of) != len(self.values):
            raise ValueError("a measurement needs one value for each number that was measured")

    @property
    def concentrated(self) -> bool:
        """Whether the cost is a rho (zero-concentrated differential privacy); else it is an epsilon."""
        return self.noise.concentrated

    def tables(self) -> Iterator[tuple[MeasuredPart, Integers]]:
        """Yield each part with its values; those of a table in its shape."""
        ends = np.cumsum([part.size for part in self.of])[:-1]
        for part, values in zip(self.of, np.split(self.values, ends), strict=True):
            yield part, values.reshape(part.shape) if isinstance(part, Marginal) else values
