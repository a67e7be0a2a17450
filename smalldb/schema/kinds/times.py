"""Times of the day and durations, in bins."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import time
from fractions import Fraction
from typing import ClassVar, final

from smalldb.schema.kinds.edges import (
    BINS,
    bin_names,
    check_bins,
    check_cuts,
    equal_steps,
    listed,
)
from smalldb.schema.kinds.kind import Value

_TIME = re.compile(r"([0-9]{1,5}):([0-5][0-9])(?::([0-5][0-9])(?:\.[0-9]+)?)?")
_DAY = 24 * 3600


@final
@dataclass(frozen=True, slots=True)
class Times:
    """A time of the day, read as its bin; or a duration, or a time beyond midnight, where the range says so.

    Parameters
    ----------
    cuts
        Ascending, at least one: texts such as "06:30" or "06:30:15", where bins begin.
    low, high
        What the values of the outer bins are taken from, both included. A `high` of "24:00" or more says that
        there are values beyond a day: then "25:10" counts, and otherwise it has no category.
    """

    codings: ClassVar[tuple[str, ...]] = BINS
    labels: ClassVar[None] = None
    ordered: ClassVar[bool] = True
    measure: ClassVar[str] = "times"
    dtype: ClassVar[str] = "str"
    spelling: ClassVar[str] = (
        "a time is written as 18:30 or 18:30:15; beyond 24:00 only where range or cuts reach so far"
    )

    cuts: tuple[str, ...]
    low: str
    high: str
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __init__(
        self, cuts: Iterable[str | time], low: str | time = "00:00", high: str | time = "23:59"
    ) -> None:
        starts = tuple(_edge(cut, "cuts") for cut in listed(cuts, "cuts"))
        first, last = _edge(low, "range"), _edge(high, "range")
        check_cuts(starts, first, last)
        object.__setattr__(self, "cuts", tuple(map(_text, starts)))
        object.__setattr__(self, "low", _text(first))
        object.__setattr__(self, "high", _text(last))
        object.__setattr__(self, "_starts", starts)

    @classmethod
    def of_bins(cls, bins: object, low: str | time = "00:00", high: str | time = "23:59") -> "Times":
        """
        Make bins of equal width, to within a minute.

        Parameters
        ----------
        bins
            How many, from 2 on.
        low, high
            As for `Times`.
        """
        first, last = _edge(low, "range") // 60, _edge(high, "range") // 60
        return cls([_text(60 * step) for step in equal_steps(first, last, check_bins(bins))], low, high)

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.cuts) + 1

    @property
    def cuts_told(self) -> Sequence[str]:
        """The cuts."""
        return self.cuts

    @property
    def unit(self) -> Fraction:
        """A minute or a second, in microseconds."""
        return Fraction(self._step * 10**6)

    def value(self, text: str) -> int | None:
        """Read a time as microseconds since midnight, or a duration; fractions of seconds are passed over."""
        seconds = self._read(text)
        return None if seconds is None else seconds * 10**6

    def code(self, text: str) -> int | None:
        """Find the bin of a field."""
        seconds = self._read(text)
        return None if seconds is None else bisect_right(self._starts, seconds)

    def side(self, text: str) -> int:
        """Tell whether a field is below (-1) or above (1) the range; 0: it is within, or none."""
        seconds = self._read(text)
        if seconds is None:
            return 0
        return (seconds // self._step > self.steps(len(self.cuts))[1]) - (seconds < _edge(self.low, ""))

    def names(self, column: str, coding: str) -> list[str]:
        """Name each bin, or what reaches each cut."""
        return bin_names(column, self.cuts_told, coding)

    def values(self) -> Sequence[Value]:
        """Return the middle of each bin."""
        return [self.at(sum(self.steps(code)) // 2) for code in range(self.size)]

    def steps(self, code: int) -> tuple[int, int]:
        """Return the first and the last time of a bin: minutes, or seconds where cuts or range have them."""
        edges = (_edge(self.low, ""), *self._starts, _edge(self.high, ""))
        last = edges[code + 1] - (code < len(self.cuts))
        return edges[code] // self._step, last // self._step

    def at(self, step: int) -> str:
        """Return the time so many minutes or seconds after midnight."""
        return _text(step * self._step)

    def written(self, text: str) -> str:
        """Write the time as it is."""
        return text

    def _read(self, text: str) -> int | None:
        seconds = _seconds(text)
        return None if seconds is None or (seconds >= _DAY > _edge(self.high, "")) else seconds

    @property
    def _step(self) -> int:
        return 1 if any(edge.count(":") > 1 for edge in (self.low, *self.cuts, self.high)) else 60


def _edge(given: object, name: str) -> int:
    text = given.isoformat() if isinstance(given, time) else given
    found = _seconds(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f'{name} must be times of the day, such as "06:30", or durations, such as "36:00"')
    return found


def _seconds(text: str) -> int | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups())
    return 3600 * hour + 60 * minute + second


def _text(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}" + (f":{second:02}" if second else "")
