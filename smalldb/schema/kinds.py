"""What a column can hold: each kind knows its places, finds that of a field, and writes one value for it."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Protocol, TypeVar, final

from smalldb.exact.numbers import as_fraction, as_text, whole

Value = bool | int | float | str
_T = TypeVar("_T")

MAX_PLACES = 1 << 12  # of one column

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ].*)?", re.DOTALL)


class Kind(Protocol):
    """A kind of column: places 0, 1, ..., ``size - 1``, fixed by public choices alone."""

    codings: ClassVar[tuple[str, ...]]
    spelling: ClassVar[str]  # how fields are written, for a refusal

    @property
    def size(self) -> int:
        """How many places there are."""

    @property
    def dtype(self) -> str:
        """The dtype of the decoded column, if nobody chooses one; of a nullable kind where there is one."""

    def place(self, text: str) -> int | None:
        """Find the place of a field, spelled as in a CSV file; None: it has none."""

    def names(self, column: str, coding: str) -> list[str]:
        """Name each place (``sex=female``); for a thermometer what places 1, 2, ... reach (``age>=40``)."""

    def values(self) -> Sequence[Value]:
        """Return the value that each place is decoded to."""


@final
@dataclass(frozen=True, slots=True)
class Flag:
    """Yes or no: 0/1 or true/false, in any case."""

    codings: ClassVar[tuple[str, ...]] = ("thermometer",)
    spelling: ClassVar[str] = "bool takes 0/1 and true/false; list other spellings as categories"
    size: ClassVar[int] = 2
    dtype: ClassVar[str] = "boolean"

    def place(self, text: str) -> int | None:
        """Find the place of a field."""
        return {"0": 0, "false": 0, "1": 1, "true": 1}.get(text.lower())

    def names(self, column: str, coding: str) -> list[str]:
        """Name what yes reaches as the column."""
        return [column]

    def values(self) -> Sequence[Value]:
        """Return False and True."""
        return [False, True]


@final
@dataclass(frozen=True, slots=True)
class Categories:
    """One of a public list of texts or whole numbers, compared as a CSV file spells them.

    Parameters
    ----------
    listed
        At least two with ``other``, distinct.
    other
        Whether a value outside the list counts as the category "other" (appended, if it is not listed).
    """

    codings: ClassVar[tuple[str, ...]] = ("one-hot", "bits")
    spelling: ClassVar[str] = "a category is written exactly as its schema lists it"

    listed: tuple[str | int, ...]
    other: bool = False
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __init__(self, listed: Iterable[str | int], other: bool = False) -> None:
        values = _listed(listed, "values")
        if any(isinstance(v, bool) or not isinstance(v, str | int) for v in values):
            raise TypeError("values must be texts or whole numbers")
        if other and "other" not in values:
            values = [*map(str, values), "other"]
        if len({type(v) for v in values}) > 1:
            raise TypeError("values must be all texts or all whole numbers")
        if not 2 <= len(values) <= MAX_PLACES:
            raise ValueError(
                f"values must be 2 to {MAX_PLACES}, with 'other' (a column of one value: list it in ignore)"
            )
        spelled = [str(v) for v in values]
        for text, times in Counter(spelled).items():
            if not text or text != text.strip():
                raise ValueError(f"values: {text!r} is empty, or has spaces at its ends")
            if times > 1:
                raise ValueError(f"values: {text!r} stands more than once")
        object.__setattr__(self, "listed", tuple(values))
        object.__setattr__(self, "other", other)
        object.__setattr__(self, "_places", {text: place for place, text in enumerate(spelled)})

    @property
    def size(self) -> int:
        """How many categories there are."""
        return len(self.listed)

    @property
    def dtype(self) -> str:
        """Int64 if the values are whole numbers."""
        return "Int64" if isinstance(self.listed[0], int) else "str"

    def place(self, text: str) -> int | None:
        """Find the place of a field."""
        return self._places.get(text, self._places["other"] if self.other else None)

    def names(self, column: str, coding: str) -> list[str]:
        """Name each category."""
        return [f"{column}={value}" for value in self.listed]

    def values(self) -> Sequence[Value]:
        """Return the categories."""
        return self.listed


@final
@dataclass(frozen=True, slots=True)
class Cuts:
    """A number, of which only the bin is kept: below the first cut, from each cut to the next, from the last.

    Numbers are compared exactly, as decimals. Beyond `low` and `high` they count in the outer bins.
    The value of a bin is its middle; where the cuts and the range are whole, its (lower) middle integer.

    Parameters
    ----------
    cuts
        Ascending, at least one.
    low, high
        The range that the values of the outer bins are taken from: ``low < cuts[0]``, ``high >= cuts[-1]``.
    """

    codings: ClassVar[tuple[str, ...]] = ("thermometer", "bins", "bits")
    spelling: ClassVar[str] = "a number is written plainly, as 1234.5: no spaces or commas between digits"

    cuts: tuple[Decimal, ...]
    low: Decimal
    high: Decimal

    def __init__(self, cuts: Iterable[object], low: object, high: object) -> None:
        numbers = tuple(_decimal(cut, "cuts") for cut in _listed(cuts, "cuts"))
        _check_cuts(numbers, _decimal(low, "range"), _decimal(high, "range"))
        object.__setattr__(self, "cuts", numbers)
        object.__setattr__(self, "low", _decimal(low, "range"))
        object.__setattr__(self, "high", _decimal(high, "range"))

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.cuts) + 1

    @property
    def dtype(self) -> str:
        """Int64 where the values are integers."""
        return "Int64" if all(isinstance(value, int) for value in self.values()) else "float64"

    def place(self, text: str) -> int | None:
        """Find the bin of a field."""
        return bisect_right(self.cuts, Decimal(text)) if _NUMBER.fullmatch(text) else None

    def names(self, column: str, coding: str) -> list[str]:
        """Name each bin, or what reaches each cut."""
        return _ordered(column, [f"{cut:f}" for cut in self.cuts], coding)

    def values(self) -> Sequence[Value]:
        """Return the middle of each bin."""
        edges = [Fraction(number) for number in (self.low, *self.cuts, self.high)]
        if any(edge.denominator > 1 for edge in edges):
            return [float((a + b) / 2) for a, b in pairwise(edges)]
        return [int(a + b - 1) // 2 for a, b in pairwise([*edges[:-1], edges[-1] + 1])]


@final
@dataclass(frozen=True, slots=True)
class Dates:
    """A date, written year-month-day (a time behind it is passed over), of which only a bin of years is kept.

    The value of a bin is the first of July of its (lower) middle year.

    Parameters
    ----------
    cuts
        Years, ascending, at least one: a bin begins on the first of January.
    low, high
        The years that the values of the outer bins are taken from: ``low < cuts[0]``, ``high >= cuts[-1]``.
    """

    codings: ClassVar[tuple[str, ...]] = ("thermometer", "bins", "bits")
    dtype: ClassVar[str] = "datetime64[s]"
    spelling: ClassVar[str] = "a date is written as 1999-12-31"

    cuts: tuple[int, ...]
    low: int
    high: int

    def __init__(self, cuts: Iterable[int], low: int, high: int) -> None:
        years = tuple(whole(year, "a year of cuts") for year in _listed(cuts, "cuts"))
        _check_cuts(years, whole(low, "a year of range"), whole(high, "a year of range"))
        if high > 9999:
            raise ValueError("range must end by the year 9999")
        object.__setattr__(self, "cuts", years)
        object.__setattr__(self, "low", int(low))
        object.__setattr__(self, "high", int(high))

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.cuts) + 1

    def place(self, text: str) -> int | None:
        """Find the bin of a field."""
        written = _DATE.fullmatch(text)
        try:
            return bisect_right(self.cuts, date.fromisoformat(written[1]).year) if written else None
        except ValueError:
            return None

    def names(self, column: str, coding: str) -> list[str]:
        """Name each bin, or what reaches each cut."""
        return _ordered(column, [str(year) for year in self.cuts], coding)

    def values(self) -> Sequence[Value]:
        """Return a date inside each bin, as text."""
        return [f"{(a + b - 1) // 2:04}-07-01" for a, b in pairwise([self.low, *self.cuts, self.high + 1])]


def _listed(cuts: Iterable[_T], name: str) -> list[_T]:
    if not isinstance(cuts, Iterable) or isinstance(cuts, str):
        raise TypeError(f"{name} must be a list")
    return list(cuts)


def _decimal(number: object, name: str) -> Decimal:
    text = as_text(as_fraction(number, name))
    if "/" in text:
        raise ValueError(f"{name} must be decimal numbers")
    return Decimal(text)


def _check_cuts(cuts: Sequence[Decimal | int], low: Decimal | int, high: Decimal | int) -> None:
    if not 1 <= len(cuts) < MAX_PLACES:
        raise ValueError(f"cuts must be 1 to {MAX_PLACES - 1} numbers")
    if any(a >= b for a, b in pairwise(cuts)):
        raise ValueError("cuts must ascend, each above the one before")
    if not (low < cuts[0] and cuts[-1] <= high):
        raise ValueError("range must begin below the first cut and end at the last cut or above it")


def _ordered(column: str, cuts: Sequence[str], coding: str) -> list[str]:
    reached = [f"{column}>={cut}" for cut in cuts]
    if coding == "thermometer":
        return reached
    inner = [f"{low}<={column}<{high}" for low, high in pairwise(cuts)]
    return [f"{column}<{cuts[0]}", *inner, reached[-1]]
