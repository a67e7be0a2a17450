"""The day of the week of a date."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from queries.expressions import Fault
from smalldb.schema.kinds.dates import FORMAT, read_date, tells_dates
from smalldb.schema.kinds.kind import Kind, Spec, Value

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@final
@dataclass(frozen=True, slots=True)
class Weekdays(Kind):
    """A date, or the English name of a day, read as the day of the week; its name is released.

    Parameters
    ----------
    form
        How fields write a date, as `Dates` takes it; None: year-month-day.
    """

    codings: ClassVar[tuple[str, ...]] = ("one-hot", "bits")
    spelling: ClassVar[str] = (
        'a weekday is a date such as 1999-12-31, or as its schema says (format = "%d.%m.%Y"), or a name '
        "such as Friday"
    )
    size: ClassVar[int] = len(_DAYS)
    dtype: ClassVar[str] = "str"
    labels: ClassVar[Sequence[str]] = _DAYS

    form: str | None = None

    def __post_init__(self) -> None:
        if self.form is not None and not tells_dates(self.form):
            problem = f"format {self.form!r} does not tell dates: expected one such as '%d.%m.%Y'"
            raise Fault(problem, "format")

    def code(self, text: str) -> int | None:
        """Find the day of a field: Monday is 0."""
        if text in _DAYS:
            return _DAYS.index(text)
        date = read_date(text, self.form)
        return None if date is None else date.weekday()

    def values(self) -> Sequence[Value]:
        """Return the names of the days."""
        return _DAYS


SPEC = Spec(
    "weekdays",
    lambda table: Weekdays(table.get("format")),
    {"format": str, "coding": str},
    "of dates",
    questions=(FORMAT,),
)
