"""What a kind of column is to the rest of the house."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Protocol, runtime_checkable

Value = bool | int | float | str

MAX_CATEGORIES = 1 << 12  # of one column


class Kind(Protocol):
    """A kind of column: categories 0, 1, ..., ``size - 1``, fixed by public choices alone."""

    codings: ClassVar[tuple[str, ...]]
    spelling: ClassVar[str]  # how fields are written, for a refusal

    @property
    def size(self) -> int:
        """How many categories there are."""

    @property
    def dtype(self) -> str:
        """The dtype of the decoded column, if nobody chooses one; of a nullable kind where there is one."""

    @property
    def labels(self) -> Sequence[str] | None:
        """What people call each category, if not by its name (see `names`)."""

    @property
    def cuts_told(self) -> Sequence[str]:
        """The cuts that ranges such as ``age>=40`` may speak of; empty: the categories are no bins."""

    @property
    def ordered(self) -> bool:
        """Whether the categories are in a meaningful order."""

    def code(self, text: str) -> int | None:
        """Find the code of a field, spelled as in a CSV file; None: no category covers it."""

    def names(self, column: str, coding: str) -> list[str]:
        """Name each category (``sex=female``); for a thermometer what 1, 2, ... reach (``age>=40``)."""

    def values(self) -> Sequence[Value]:
        """Return one value for each category: its own, or the middle of its bin."""


@runtime_checkable
class Ranged(Kind, Protocol):
    """A kind whose values have a range, which fields may exceed."""

    def side(self, text: str) -> int:
        """Tell whether a field is below (-1) or above (1) the range; 0: it is within, or none."""


@runtime_checkable
class Binned(Kind, Protocol):
    """A kind whose categories are bins of a grid of values. Those of other kinds have one value each."""

    def steps(self, code: int) -> tuple[int, int]:
        """Return the first and the last step of the grid that lie in a bin."""

    def at(self, step: int) -> Value:
        """Return the value at a step of the grid."""

    def written(self, text: str) -> str:
        """Write a value of the grid, spelled by `fields.as_field` from any dtype, as a field of a file."""


@runtime_checkable
class Comparable(Kind, Protocol):
    """A kind whose fields have values that can be compared, exactly; its released ones lie on a grid."""

    measure: ClassVar[str]  # "numbers", "dates" or "times": those of one measure can be compared

    @property
    def unit(self) -> Fraction:
        """How far released values are apart: a step has the value ``step * unit``."""

    def value(self, text: str) -> Decimal | int | None:
        """Return the value of a field: a number, or microseconds since a fixed moment; None: none."""

    def steps(self, code: int) -> tuple[int, int]:
        """Return the first and the last step of the grid that lie in a category."""
