"""The month of a date."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from smalldb.schema.kinds.dates import FORMAT, read_date
from smalldb.schema.kinds.kind import Kind, Spec, Value

_MONTHS = ("January", "February", "March", "April", "May", "June", "July")
_MONTHS += ("August", "September", "October", "November", "December")


@final
@dataclass(frozen=True, slots=True)
class Months(Kind):
    """A date, or the English name of a month, read as the month; its name is released."""

    codings: ClassVar[tuple[str, ...]] = ("one-hot", "bits")
    spelling: ClassVar[str] = "a month is a date such as 1999-12-31, or a name such as March"
    size: ClassVar[int] = 12
    dtype: ClassVar[str] = "str"
    labels: ClassVar[Sequence[str]] = _MONTHS

    form: str | None = None

    def code(self, text: str) -> int | None:
        """Find the month of a field: January is 0."""
        if text in _MONTHS:
            return _MONTHS.index(text)
        found = read_date(text, self.form)
        return None if found is None else found.month - 1

    def names(self, column: str, coding: str) -> list[str]:
        """Name each month."""
        return [f"{column}={month}" for month in _MONTHS]

    def values(self) -> Sequence[Value]:
        """Return the names of the months."""
        return _MONTHS


SPEC = Spec(
    "months",
    lambda given: Months(given.get("format")),
    {"format": str, "coding": str},
    "of dates",
    questions=(FORMAT,),
)
