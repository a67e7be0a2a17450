"""Bins: what numbers, dates and times share once their edges are exact values of one measure."""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any, ClassVar, Self

from queries.faults import Fault
from smalldb.schema.kinds.edges import bin_names, check_cuts, equal_steps
from smalldb.schema.kinds.kind import Given, Kind, Type, Value

KEYS: dict[str, Type] = {"cuts": list, "range": list, "bins": int}
CUTS = ("cuts", "cuts, or a number of bins, as: bins 10")


class Binned(Kind):
    """A kind whose categories are bins of a grid of values; of each the first step and the last are known."""

    __slots__ = ()
    codings: ClassVar[tuple[str, ...]] = ("thermometer", "bins", "bits")
    ordered: ClassVar[bool] = True
    labels: ClassVar[None] = None
    measure: ClassVar[str]

    cuts: tuple[Any, ...]  # as they are stated
    edges: tuple[Any, ...]  # exact: where the range begins, the cuts, the last value of the range
    unit: Fraction  # how far released values are apart

    @property
    def latest(self) -> int | None:
        """The last step that a value is drawn from, whatever its bin; None: all of its bin."""
        return None

    @abstractmethod
    def value(self, text: str) -> Decimal | int | None:
        """Read a field, of the measure of `edges`; None: it is none."""

    @abstractmethod
    def at(self, step: int) -> Value:
        """Return the value at a step of the grid."""

    @abstractmethod
    def written(self, text: str) -> str:
        """Write a value of the grid, spelled by `fields.as_field` from any dtype, as a field of a file."""

    @abstractmethod
    def cut_at(self, step: int) -> Any:
        """State a cut at a step of the grid."""

    @abstractmethod
    def with_cuts(self, cuts: Iterable[Any]) -> Self:
        """Return the same kind with other cuts."""

    def _set(self, edges: Sequence[Any], last: Any, **stated: Any) -> None:
        """Check the edges, and keep them and what is stated."""
        check_cuts(edges[1:], edges[0], last)
        for name, value in {**stated, "edges": (*edges, last)}.items():
            object.__setattr__(self, name, value)

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.cuts) + 1

    @property
    def cuts_told(self) -> Sequence[str]:
        """The cuts, plainly written."""
        return [str(cut) for cut in self.cuts]

    def code(self, text: str) -> int | None:
        """Find the bin of a field."""
        value = self.value(text)
        return None if value is None else bisect_right(self.edges, value, 1, self.size) - 1

    def side(self, text: str) -> int:
        """Tell whether a field is below (-1) or above (1) the range; 0: it is within, or none."""
        value = self.value(text)
        return 0 if value is None else (value > self.edges[-1]) - (value < self.edges[0])

    def names(self, column: str, coding: str) -> list[str]:
        """Name each bin, or what reaches each cut."""
        return bin_names(column, self.cuts_told, coding)

    def values(self) -> Sequence[Value]:
        """Return the (lower) middle of each bin."""
        return [self.at(sum(self.steps(code)) // 2) for code in range(self.size)]

    def steps(self, code: int) -> tuple[int, int]:
        """Return the first and the last step of the grid that lie in a bin."""
        low, high = (Fraction(edge) / self.unit for edge in self.edges[code : code + 2])
        return ceil(low), floor(high) if code == len(self.cuts) else ceil(high) - 1

    def parted(self, parts: Sequence[int]) -> Self:
        """Return bins that lie in these, so many in each, of equally many steps to within one."""
        cuts: list[Any] = []
        for code, count in enumerate(parts):
            cuts += [self.cuts[code - 1]] if code else []
            cuts += map(self.cut_at, equal_steps(*self.steps(code), count))
        return self.with_cuts(cuts)


def span(given: Given) -> tuple[Any, Any]:
    """Return the two ends of a range."""
    ends: list[Any] = given["range"]
    if len(ends) != 2:
        raise Fault("range must be a list of two, the lowest and the highest", "range")
    return ends[0], ends[1]
