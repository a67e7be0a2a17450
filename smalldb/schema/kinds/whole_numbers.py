"""Whole numbers of a small range, each a category."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, final

from queries.expressions import Fault
from smalldb.schema.kinds.binned import span
from smalldb.schema.kinds.kind import (
    MAX_CATEGORIES,
    PLAIN,
    SIGNS,
    Kind,
    NumberFormat,
    Spec,
    Value,
    as_decimal,
    number_format,
)


@final
@dataclass(frozen=True, slots=True)
class Integers(Kind):
    """A whole number from `low` to `high`; each number is a category.

    Parameters
    ----------
    low, high
        The first and the last, both included.
    nearest
        Whether numbers outside count as the nearest end; otherwise they have no category.
    numbers
        How fields write numbers. Other formats than the plain one are written as text.
    """

    codings: ClassVar[tuple[str, ...]] = ("thermometer", "one-hot", "bits")
    spelling: ClassVar[str] = 'a whole number of its range; unknown = "nearest" takes others for its ends'
    ordered: ClassVar[bool] = True
    measure: ClassVar[str] = "numbers"
    unit: ClassVar[Fraction] = Fraction(1)

    low: int
    high: int
    nearest: bool = False
    numbers: NumberFormat = PLAIN

    def __post_init__(self) -> None:
        for name, end in (("low", self.low), ("high", self.high)):
            exact = as_decimal(end, "range")
            if exact != int(exact):
                raise Fault("range must be two whole numbers", "range")
            self._set(**{name: int(exact)})
        if not 2 <= self.size <= MAX_CATEGORIES:
            raise Fault(f"range must hold 2 to {MAX_CATEGORIES} whole numbers: take cuts for more", "range")

    @property
    def size(self) -> int:
        """How many whole numbers there are."""
        return self.high - self.low + 1

    @property
    def dtype(self) -> str:
        """Int64."""
        return "Int64" if self.numbers.plain else "str"

    @property
    def labels(self) -> Sequence[str]:
        """The numbers."""
        return [str(number) for number in range(self.low, self.high + 1)]

    def ends(self) -> Sequence[tuple[float, float]]:
        """Return each number, twice."""
        return [(float(low), float(high)) for low, high in self.all_steps]

    def value(self, text: str) -> Decimal | None:
        """Read the number of a field, also one beyond the range."""
        return self.numbers.read(text)

    def steps(self, code: int) -> tuple[int, int]:
        """Return the number, twice."""
        return self.low + code, self.low + code

    @property
    def all_steps(self) -> list[tuple[int, int]]:
        """Each number, twice."""
        return [(number, number) for number in range(self.low, self.high + 1)]

    def code(self, text: str) -> int | None:
        """Find the code of a field."""
        number = self.numbers.read(text)
        if number is None or number != number.to_integral_value():
            return None
        if not self.low <= number <= self.high:
            return (0 if number < self.low else self.size - 1) if self.nearest else None
        return int(number) - self.low

    def side(self, text: str) -> int:
        """Tell whether a field is below (-1) or above (1) the range; 0: it is within, or none."""
        number = self.numbers.read(text)
        return 0 if number is None else (number > self.high) - (number < self.low)

    def values(self) -> Sequence[Value]:
        """Return the numbers."""
        return range(self.low, self.high + 1) if self.numbers.plain else self.labels


SPEC = Spec(
    "integers",
    lambda table: Integers(*span(table), table.get("unknown") == "nearest", number_format(table)),
    {"range": list, **SIGNS, "coding": str},
    "range = [0, 9]: a category for each whole number",
    needed=(("range",),),
    unknown=("missing", "nearest"),
    questions=(("range", "lowest and highest"),),
)
