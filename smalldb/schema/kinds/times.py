"""Times of the day and durations, in bins."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import time
from fractions import Fraction
from typing import ClassVar, final

from queries.expressions import Fault
from smalldb.schema.kinds.binned import KEYS, Binned, build_bins, check_bins, equal_steps, listed, span
from smalldb.schema.kinds.kind import Spec

_TIME = re.compile(r"([0-9]{1,5}):([0-5][0-9])(?::([0-5][0-9])(?:\.[0-9]+)?)?")
_DAY, _SECOND = 24 * 3600, 10**6  # in seconds, in microseconds
_WHOLE_DAY = ("00:00", "23:59")


@final
@dataclass(frozen=True, slots=True)
class Times(Binned):
    """A time of the day, read as its bin; or a duration, or a time beyond midnight, where the range says so.

    Parameters
    ----------
    cuts
        Ascending, at least one: texts such as "06:30" or "06:30:15", where bins begin.
    low, high
        What the values of the outer bins are taken from, both included. A `high` of "24:00" or more says that
        there are values beyond a day: then "25:10" counts, and otherwise it has no category.
    """

    measure: ClassVar[str] = "times"
    dtype: ClassVar[str] = "str"
    spelling: ClassVar[str] = (
        "a time is written as 18:30 or 18:30:15; beyond 24:00 only where range or cuts reach so far"
    )

    cuts: tuple[str, ...]
    low: str
    high: str
    edges: tuple[int, ...] = field(init=False, repr=False, compare=False)  # microseconds
    unit: Fraction = field(init=False, repr=False, compare=False)  # a minute or a second

    def __init__(
        self, cuts: Iterable[str | time], low: str | time = "00:00", high: str | time = "23:59"
    ) -> None:
        starts = [_edge(cut, "cuts") for cut in listed(cuts, "cuts")]
        every = first, *starts, last = _edge(low, "range"), *starts, _edge(high, "range")
        step = 1 if any(edge % 60 for edge in every) else 60
        self._set_edges(
            [edge * _SECOND for edge in every[:-1]],
            (last + step) * _SECOND - 1,  # the whole of its last minute or second
            cuts=tuple(map(_text, starts)),
            low=_text(first),
            high=_text(last),
            unit=Fraction(step * _SECOND),
        )

    @classmethod
    def of_bins(cls, bins: object, low: str | time = "00:00", high: str | time = "23:59") -> "Times":
        """Make so many bins of equal width, to within a minute."""
        first, last = _edge(low, "range") // 60, _edge(high, "range") // 60
        return cls([_text(60 * step) for step in equal_steps(first, last, check_bins(bins))], low, high)

    def with_cuts(self, cuts: Iterable[str | time]) -> "Times":
        """Return the same times with other cuts."""
        return Times(cuts, self.low, self.high)

    def value(self, text: str) -> int | None:
        """Read a time as microseconds since midnight, or a duration; fractions of seconds are passed over."""
        seconds = _seconds(text)
        beyond = seconds is not None and seconds >= _DAY and self.edges[-1] < _DAY * _SECOND
        return None if seconds is None or beyond else seconds * _SECOND

    def at(self, step: int) -> str:
        """Return the time so many minutes or seconds after midnight."""
        return _text(step * int(self.unit) // _SECOND)

    cut_at = at

    def written(self, text: str) -> str:
        """Write the time as it is."""
        return text


def _edge(value: object, name: str) -> int:
    text = value.isoformat() if isinstance(value, time) else value
    seconds = _seconds(text) if isinstance(text, str) else None
    if seconds is None:
        problem = f'{name} must be times of the day, such as "06:30", or durations, such as "36:00"'
        raise Fault(problem, name)
    return seconds


def _seconds(text: str) -> int | None:
    parts = _TIME.fullmatch(text)
    if parts is None:
        return None
    hour, minute, second = (int(part or 0) for part in parts.groups())
    return 3600 * hour + 60 * minute + second


def _text(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}" + (f":{second:02}" if second else "")


SPEC = Spec(
    "times",
    lambda table: build_bins(Times, table, *(span(table) if "range" in table else _WHOLE_DAY)),
    {**KEYS, "coding": str},
    'cuts = ["06:00", "18:00"]; durations: range = ["00:00", "99:00"], bins = 10',
    needed=(("cuts", "bins"),),
    questions=(("cuts", "cuts, such as 06:00, 18:00"),),
    draft='cuts = []  # such as "06:00", ascending',
)
