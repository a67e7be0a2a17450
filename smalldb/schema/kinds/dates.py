"""Dates and moments, in bins."""

import re
from calendar import monthrange
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, NamedTuple, final

from queries.expressions import Fault
from smalldb.exact.numbers import whole
from smalldb.schema.kinds.binned import CUTS, KEYS, Binned, build_bins, check_bins, equal_steps, listed, span
from smalldb.schema.kinds.kind import MAX_CATEGORIES, InSql, Spec, Value, without_zeros

_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ].*)?", re.DOTALL)
_EDGE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)?)?)?"
)
_CLOCK = re.compile("%[HIMSTXcrRp]")
_YEARLESS = re.compile("(?:[^%]|%[^YyGcx])*", re.DOTALL)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")  # how a gap begins that a date may mean
_START = datetime(1, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_MONTHS_OF = {"year": 12, "quarter": 3, "month": 1}
_DAYS_OF = {"week": 7, "day": 1}
UNITS = (*_MONTHS_OF, *_DAYS_OF)
FORMAT = ("format", "format (empty: 1999-12-31; or %d.%m.%Y)")

Day = int | str | date


class Edge(NamedTuple):
    """A year, month, day or time: as it is written, its first moment, its last day or second."""

    text: str
    start: datetime
    last: datetime


@final
@dataclass(frozen=True, slots=True)
class Dates(Binned):
    """A date, read as its bin.

    Without `form` it is written year-month-day, and a time behind it is passed over, if no cut has one.
    The middle of a bin of years is the first of July of its (lower) middle year, of others its middle day.

    Parameters
    ----------
    cuts
        Ascending, at least one: years (2000), months ("2000-04"), days ("2000-04-01") or times
        ("2000-04-01T12:30"), where bins begin.
    low, high
        What the values of the outer bins are taken from, likewise, the whole of `high` included:
        ``low < cuts[0]``, ``high >= cuts[-1]``.
    form
        How fields write a date, as `datetime.strptime` reads it, such as "%d.%m.%Y"; released values are
        texts of that form. A typed date is read whatever the form. None: year-month-day.
    """

    measure: ClassVar[str] = "dates"
    spelling: ClassVar[str] = 'a date is written as 1999-12-31, or as its schema says: format = "%d.%m.%Y"'

    cuts: tuple[int | str, ...]
    low: int | str
    high: int | str
    form: str | None = None
    timed: bool = field(init=False, repr=False, compare=False)  # whether times of the day count
    edges: tuple[int, ...] = field(init=False, repr=False, compare=False)  # microseconds since `_START`
    unit: Fraction = field(init=False, repr=False, compare=False)  # a day, a minute or a second
    _stated: datetime = field(init=False, repr=False, compare=False)  # the last cut that somebody chose

    def __init__(self, cuts: Iterable[Day], low: Day, high: Day, form: str | None = None) -> None:
        edges = [as_edge(cut, "cuts") for cut in listed(cuts, "cuts")]
        every = first, *edges, last = as_edge(low, "range"), *edges, as_edge(high, "range")
        timed = _CLOCK.search(form or "") is not None or any(len(edge.text) > 10 for edge in every)
        seconds = any(edge.start.second for edge in every) or "%S" in (form or "")
        step = timedelta(days=1) if not timed else timedelta(seconds=1 if seconds else 60)
        self._set_edges(
            [_since(edge.start) for edge in every[:-1]],
            _since(last.last) + 999_999,  # the whole of its last second
            cuts=tuple(map(_stated, edges)),
            low=_stated(first),
            high=_stated(last),
            form=form,
            timed=timed,
            unit=Fraction(step // _MICROSECOND),
            _stated=every[-2].start,
        )
        if form is not None and (_YEARLESS.fullmatch(form) or self._unreadable()):
            example = "%d.%m.%Y %H:%M" if timed else "%d.%m.%Y"
            problem = f"format {form!r} does not tell the dates of the bins: expected one such as {example!r}"
            raise Fault(problem, "format")

    @classmethod
    def of_bins(cls, bins: object, low: Day, high: Day, form: str | None = None) -> "Dates":
        """Make so many bins of equal width to within one year, day or minute; or one for each of `UNITS`."""
        first, last = as_edge(low, "range"), as_edge(high, "range")
        if isinstance(bins, str):
            if bins not in UNITS:
                raise Fault(f"bins must be a whole number, or one of {', '.join(UNITS)}", "bins")
            return cls(_starts_of(bins, first.start, last.last), low, high, form)
        wanted = check_bins(bins)
        if len(first.text) == len(last.text) == 4:
            return cls(equal_steps(int(first.text), int(last.text), wanted), low, high, form)
        timed = max(len(first.text), len(last.text)) > 10
        unit = timedelta(minutes=1) if timed else timedelta(days=1)
        steps = equal_steps(0, (last.last - first.start) // unit, wanted)
        texts = [(first.start + step * unit).isoformat()[: 16 if timed else 10] for step in steps]
        return cls(texts, low, high, form)

    def with_cuts(self, cuts: Iterable[Day]) -> "Dates":
        """Return the same dates with other cuts, which nobody chose."""
        other = Dates(cuts, self.low, self.high, self.form)
        other._set(_stated=self._stated)
        return other

    def cut_at(self, step: int) -> str:
        """State the day or the moment of a step."""
        return self._iso(self._moment(step))

    @property
    def dtype(self) -> str:
        """A date of pandas; text where the schema says how dates are written."""
        return "datetime64[s]" if self.form is None else "str"

    def value(self, text: str) -> int | None:
        """Read a date as microseconds since the first of January of the year 1, of its own clock."""
        moment = self._read(text)
        return None if moment is None else _since(moment.replace(tzinfo=None))

    def values(self) -> Sequence[Value]:
        """Return a date inside each bin, as text."""
        if all(isinstance(edge, int) for edge in (self.low, *self.cuts, self.high)):
            years = [int(year) for year in (self.low, *self.cuts, int(self.high) + 1)]
            return [self._text(datetime((a + b - 1) // 2, 7, 1)) for a, b in pairwise(years)]
        return [self.at(sum(steps) // 2) for steps in self.all_steps]

    @property
    def latest(self) -> int | None:
        """The last step that is not ahead of today; None: values may be ahead, or none can.

        The schema says that they may be by a range that ends at a day or a time, or by a cut that lies ahead.
        """
        today, end = now(), as_edge(self.high, "range")
        may = len(end.text) > len("1999-12") or self._stated > today
        return None if may or end.last <= today else _since(today) // int(self.unit)

    def at(self, step: int) -> str:
        """Return the date so many days, minutes or seconds after the first of January of the year 1."""
        return self._text(self._moment(step))

    def written(self, text: str) -> str:
        """Write a date, with its time and its zone's offset where times count; as `form` says, if it does."""
        moment = self._read(text)
        return text if moment is None else self._text(moment)

    def iso(self, text: str) -> str:
        """Respell a date of `form` year-month-day, with its time where times count."""
        moment = self._read(text)
        return text if moment is None else self._iso(moment)

    def in_sql(self) -> InSql | None:
        """Return the bins of days."""
        if self.timed or self.form is not None:
            return None
        starts = tuple(self.at(first) for first, _ in self.all_steps)
        return InSql("date", starts, lambda gap: f"'{gap[:10]}'" if _DAY.match(gap) else None)

    def _read(self, text: str) -> datetime | None:
        return read_date(text, self.form, self.timed)

    def _moment(self, step: int) -> datetime:
        return _START + step * int(self.unit) * _MICROSECOND

    def _text(self, moment: datetime) -> str:
        return self._iso(moment) if self.form is None else moment.strftime(self.form)

    def _iso(self, moment: datetime) -> str:
        return moment.isoformat() if self.timed else moment.date().isoformat()

    def _unreadable(self) -> bool:
        """Tell whether a value of some bin, as written, is not found in it: its ends, and one a year."""
        year = timedelta(days=365) // _MICROSECOND // int(self.unit)
        return any(
            self.code(self.at(step)) != code
            for code, (first, last) in enumerate(self.all_steps)
            for step in (*range(first, last, year), last)
        )


def _since(moment: datetime) -> int:
    return (moment - _START) // _MICROSECOND


def now() -> datetime:
    """Return what the clock of this machine says."""
    return datetime.now()


def read_date(text: str, form: str | None, timed: bool = False) -> datetime | None:
    """Read a field, in its own time zone."""
    if form is not None:
        for spelled in (text, without_zeros(text)):  # 19991231.0
            with suppress(ValueError, re.error):  # the second: of a form that has a part twice
                return datetime.strptime(spelled, form)
    if written := _DATE.fullmatch(text):
        with suppress(ValueError):
            return datetime.fromisoformat(text if timed else written[1])
    return None


def tells_dates(form: str) -> bool:
    """Tell whether a date that is written in a form is read again as it was."""
    days = [datetime(2000, 2, 29), datetime(2023, 11, 5)]
    with suppress(ValueError, re.error):
        return _YEARLESS.fullmatch(form) is None and days == [
            datetime.strptime(day.strftime(form), form) for day in days
        ]
    return False


def _starts_of(unit: str, first: datetime, last: datetime) -> list[str]:
    """Return where the units of the calendar begin that begin behind a first moment, up to a last one."""
    if unit in ("week", "day"):
        days, monday = (last.date() - first.date()).days, 7 - first.weekday()
        steps = range(monday if unit == "week" else 1, min(days, 7 * MAX_CATEGORIES) + 1, _DAYS_OF[unit])
        return [(first + timedelta(days=step)).date().isoformat() for step in steps]
    months = [
        (year, month) for year in range(first.year, last.year + 1) for month in range(1, 13, _MONTHS_OF[unit])
    ]
    starts = [f"{year:04}-{month:02}" for year, month in months if first < datetime(year, month, 1) <= last]
    return [start[:4] for start in starts] if unit == "year" else starts


def as_edge(value: object, name: str) -> Edge:
    """Read a year, month, day or time of a schema; TOML has days and times of its own."""
    if isinstance(value, date):
        value = value.isoformat()
    elif not isinstance(value, str):
        value = f"{whole(value, f'a year of {name}'):04}"
    parts = _EDGE.fullmatch(value)
    problem = f"{name}: {value!r} is not a year, month (1999-12), day (1999-12-31) or time (1999-12-31T18:30)"
    if value.isdecimal() and len(value) > 4:
        raise Fault(f"{name} must end by the year 9999", name)
    if parts is None:
        raise Fault(problem, name)
    year, month, day, hour, minute, second = (part and int(part) for part in parts.groups())
    try:
        start = datetime(int(year or 0), month or 1, day or 1, hour or 0, minute or 0, second or 0)
    except ValueError as error:
        raise Fault(problem, name) from error
    last = start
    if day is None:
        last = start.replace(month=start.month if month else 12)
        last = last.replace(day=monthrange(last.year, last.month)[1])
    if hour is None:
        last = last.replace(hour=23, minute=59, second=59)
    return Edge(value.replace(" ", "T"), start, last)


def _stated(edge: Edge) -> int | str:
    return int(edge.text) if len(edge.text) == 4 else edge.text


SPEC = Spec(
    "dates",
    lambda table: build_bins(Dates, table, *span(table), table.get("format")),
    {**KEYS, "bins": (int, str), "format": str, "share": (str, int, Decimal), "finer": int, "coding": str},
    'cuts = [1960, "1990-07"], range = [1920, 2030]; format = "%d.%m.%Y"',
    needed=(("cuts", "bins"), ("range",)),
    questions=(FORMAT, ("range", "first and last year, month or day"), CUTS),
    draft="cuts = []  # years, months or days, ascending; or bins = 10\nrange = []  # first and last",
    more='or bins = "year", "quarter", "month", "week", "day"',
)
