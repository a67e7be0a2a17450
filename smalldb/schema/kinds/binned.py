"""Bins: what numbers, dates and times share once their edges are exact values of one measure."""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import islice, pairwise
from math import ceil, floor
from typing import Any, ClassVar, Self, TypeVar

from queries.expressions import Fault, TypeFault
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_below, uniform_integers
from smalldb.schema.kinds.kind import MAX_CATEGORIES, Given, Kind, Type, Value

_T = TypeVar("_T")

MAX_LISTED = 1 << 16  # values of one list


def listed(values: Iterable[_T], name: str) -> list[_T]:
    """Return a list, refusing what is none, and what nobody lists."""
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise TypeFault(f"{name} must be a list", name)
    items = list(islice(values, MAX_LISTED + 1))
    if len(items) > MAX_LISTED:
        raise Fault(f"{name} must be a list of up to 2^16", name)
    return items


def check_bins(bins: object) -> int:
    """Read how many bins of equal width are wanted."""
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= MAX_CATEGORIES:
        raise Fault(f"bins must be a whole number from 2 to {MAX_CATEGORIES}", "bins")
    return bins


def equal_steps(low: int, high: int, bins: int) -> list[int]:
    """Return where the second and later of equally many whole numbers from low to high begin.

    >>> equal_steps(0, 99, 4), equal_steps(0, 9, 3)
    ([25, 50, 75], [3, 6])
    """
    count = high + 1 - low
    if not bins <= count:
        raise Fault(f"bins must be at most {max(count, 0)}: the range has no more steps", "bins")
    return [low + count * i // bins for i in range(1, bins)]


def uniform_between(low: int, high: int, count: int, source: BitSource) -> list[int]:
    """Draw independent uniform integers of low..high, exactly."""
    span = high + 1 - low
    if span <= 1 << 62:
        return [low + step for step in uniform_integers(span, count, source).tolist()]
    return [low + uniform_below(span, source) for _ in range(count)]


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

    def _set_edges(self, edges: Sequence[Any], last: Any, **stated: Any) -> None:
        """Check the edges, and keep them and what is stated."""
        low, cuts = edges[0], edges[1:]
        if not 1 <= len(cuts) < MAX_CATEGORIES:
            problem = f"cuts must be 1 to {MAX_CATEGORIES - 1}, not {len(cuts)}: take wider bins"
            raise Fault(problem, "cuts")
        if any(a >= b for a, b in pairwise(cuts)):
            raise Fault("cuts must ascend, each above the one before", "cuts")
        if not (low < cuts[0] and cuts[-1] <= last):
            raise Fault("range must begin below the first cut and end at the last cut or above it", "range")
        self._set(**stated, edges=(*edges, last))

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.cuts) + 1

    @property
    def cut_texts(self) -> Sequence[str]:
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

    def values(self) -> Sequence[Value]:
        """Return the (lower) middle of each bin."""
        return [self.at(sum(steps) // 2) for steps in self.all_steps]

    def steps(self, code: int) -> tuple[int, int]:
        """Return the first and the last step of the grid that lie in a bin."""
        low, high = (Fraction(edge) / self.unit for edge in self.edges[code : code + 2])
        return ceil(low), floor(high) if code == len(self.cuts) else ceil(high) - 1

    @property
    def all_steps(self) -> list[tuple[int, int]]:
        """These steps of each bin."""
        return [*map(self.steps, range(self.size))]

    def parted(self, parts: Sequence[int]) -> Self:
        """Return bins that lie in these, so many in each, of equally many steps to within one."""
        cuts: list[Any] = []
        for code, count in enumerate(parts):
            cuts += [self.cuts[code - 1]] if code else []
            cuts += map(self.cut_at, equal_steps(*self.steps(code), count))
        return self.with_cuts(cuts)


def build_bins(kind: Any, table: Given, *options: object) -> Any:
    """Make a kind by its cuts, or by how many bins it has."""
    return kind.of_bins(table["bins"], *options) if "bins" in table else kind(table["cuts"], *options)


def span(table: Given) -> tuple[Any, Any]:
    """Return the two ends of a range."""
    ends: list[Any] = table["range"]
    if len(ends) != 2:
        raise Fault("range must be a list of two, the lowest and the highest", "range")
    return ends[0], ends[1]
