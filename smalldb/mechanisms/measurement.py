"""What was released of the data, step by step: numbers with noise, which anybody may compute with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod, sqrt
from typing import Any, TypeAlias

import numpy as np

from queries import Domain
from queries.domain import Integers
from queries.late import pd
from smalldb.exact.numbers import as_text
from smalldb.noise.noise_protocol import Noise


@dataclass(frozen=True, slots=True)
class Marginal:
    """
    The counts of rows in each cell of a table of some columns, whose categories stand in groups.

    Where the domain's rules leave no row in a cell, its count may be 0 without noise.

    Attributes
    ----------
    columns
        Their numbers, ascending.
    groups
        For each column, the group of each of its categories, from 0.
    """

    columns: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each column."""
        return tuple(max(own) + 1 for own in self.groups)

    @property
    def size(self) -> int:
        """The number of cells."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Parity:
    """
    One number about yes/no columns: a contrast.

    Under replace-one how many rows have an odd number of yes among the columns; under add-remove the sum
    over the rows of -1 for an odd number, and of 1 for an even one (of no columns: the number of rows).

    Attributes
    ----------
    columns
        Their numbers, ascending.
    signed
        Whether it is the sum of signs: under add-remove.
    """

    columns: tuple[int, ...]
    signed: bool

    @property
    def size(self) -> int:
        """One number."""
        return 1


@dataclass(frozen=True, slots=True)
class Dependence:
    """
    One number that tells how far pairs of columns depend, in all.

    The sum over the pairs of how far their table is, in rows, from that of independent columns with its
    margins (the sum of absolute differences, rounded down), each up to its top.

    Attributes
    ----------
    pairs
        Numbers of columns.
    tops
        Of each pair.
    """

    pairs: tuple[tuple[int, int], ...]
    tops: tuple[int, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The numbers of all columns."""
        return tuple(sorted({c for pair in self.pairs for c in pair}))

    @property
    def size(self) -> int:
        """One number."""
        return 1


Measured: TypeAlias = Marginal | Parity | Dependence


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """
    Numbers that were released together, with one noise; public.

    Attributes
    ----------
    of
        What was measured.
    values
        The released integers, int64 (read-only): those of each part of `of`, one after another; the cells of
        a table in row-major order of its groups. Noise makes some of them negative.
    noise
        What was added to the true numbers.
    cost
        What was paid, an epsilon or a rho; 0: it was paid with the one before.
    concentrated
        Whether costs are a rho (zero-concentrated differential privacy); else they are an epsilon.
    selecting
        What was paid, besides, for choosing what to measure by the exponential mechanism; None: it was chosen
        from public or released numbers.
    """

    of: tuple[Measured, ...]
    values: Integers
    noise: Noise
    cost: Fraction
    concentrated: bool = False
    selecting: Fraction | None = None

    def __post_init__(self) -> None:
        self.values.setflags(write=False)
        if sum(part.size for part in self.of) != len(self.values):
            raise ValueError("a measurement needs one value for each number that was measured")

    def tables(self) -> Iterator[tuple[Measured, Integers]]:
        """Yield each part with its values; those of a table in its shape."""
        ends = np.cumsum([part.size for part in self.of])[:-1]
        for part, values in zip(self.of, np.split(self.values, ends), strict=True):
            yield part, values.reshape(part.shape) if isinstance(part, Marginal) else values


class Measurements(Sequence[Measurement]):
    """
    All that was released of the data, in order, but for bounds.

    Parameters
    ----------
    domain
        The columns, whose names and categories it is told by.
    items
        The measurements.
    """

    __slots__ = ("_items", "domain")

    def __init__(self, domain: Domain, items: Sequence[Measurement]) -> None:
        self.domain, self._items = domain, tuple(items)

    def __repr__(self) -> str:
        tables = sum(len(each.of) for each in self._items)
        return f"<Measurements: {len(self._items)}, of {tables} tables and contrasts>"

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place: Any) -> Any:
        return self._items[place]

    def to_frame(self) -> pd.DataFrame:
        """
        Return one row for each released number.

        Columns: `measurement`, its number from 0; `table`, its columns; `cell`, the categories of each;
        `value`; `noise`, its name; `deviation`, the standard deviation of the noise.
        """
        found = []
        for number, each in enumerate(self._items):
            deviation = sqrt(each.noise.variance())
            for part, values in each.tables():
                table = " x ".join(self.domain.names[c] for c in part.columns)
                for cell, value in zip(self._cells(part), values.ravel().tolist(), strict=True):
                    found.append((number, table, cell, value, each.noise.name, deviation))
        names = ["measurement", "table", "cell", "value", "noise", "deviation"]
        return pd.DataFrame(found, columns=names)

    def as_json(self) -> list[dict[str, Any]]:
        """Return them as JSON can hold them: exact numbers are texts."""
        return [
            {
                "tables": [self._told(part) for part in each.of],
                "values": each.values.tolist(),
                "noise": {"name": each.noise.name, **each.noise.parameters},
                "rho" if each.concentrated else "epsilon": as_text(each.cost),
                "selecting": None if each.selecting is None else as_text(each.selecting),
            }
            for each in self._items
        ]

    def _told(self, part: Measured) -> dict[str, Any]:
        names = [self.domain.names[c] for c in part.columns]
        if isinstance(part, Parity):
            return {"parity": names, "signed": part.signed}
        if isinstance(part, Dependence):
            pairs = [[self.domain.names[c] for c in pair] for pair in part.pairs]
            return {"dependence": pairs, "tops": list(part.tops)}
        return {"columns": names, "groups": [list(own) for own in part.groups]}

    def _cells(self, part: Measured) -> list[str]:
        """Tell each cell of a table by the categories of its groups."""
        if isinstance(part, Parity):
            if not part.signed:
                return ["rows with an odd number of yes"]
            return ["sum of signs: -1 for an odd number of yes" if part.columns else "rows"]
        if isinstance(part, Dependence):
            return ["dependence of pairs, in rows"]
        axes = []
        for c, own in zip(part.columns, part.groups, strict=True):
            labels: list[list[str]] = [[] for _ in range(max(own) + 1)]
            for label, group in zip(self.domain.columns[c].labels, own, strict=True):
                labels[group].append(label)
            axes.append([" or ".join(some) for some in labels])
        cells = [""]
        for names, c in zip(axes, part.columns, strict=True):
            own_name = self.domain.names[c]
            cells = [f"{cell}{', ' * bool(cell)}{own_name}={name}" for cell in cells for name in names]
        return cells
