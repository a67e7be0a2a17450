"""What a kind of column is: its protocol, its table in a file, and how numbers are written."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias, final, runtime_checkable

from queries.expressions import Fault
from smalldb.exact.numbers import as_fraction, as_text

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
_ZEROS = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
SIGNS = {"decimal": str, "thousands": str}  # keys of a schema
_SIGNS = {"decimal": ".,", "thousands": ".,'\u2019 \u00a0\u202f_"}


@final
@dataclass(frozen=True, slots=True)
class NumberFormat:
    """The signs of written numbers."""

    decimal: str = "."
    thousands: str = ""

    def __post_init__(self) -> None:
        for name, signs in _SIGNS.items():
            sign = getattr(self, name)
            if (
                not isinstance(sign, str)
                or len(sign) > 1
                or sign not in signs
                or (not sign and name == "decimal")
            ):
                raise Fault(f"{name} must be one of {' '.join(map(repr, signs))}", name)
        if self.decimal == self.thousands:
            raise Fault("decimal and thousands must be different signs", "decimal")

    @property
    def plain(self) -> bool:
        """Whether numbers are written as programs write them."""
        return (self.decimal, self.thousands) == (".", "")

    def read(self, text: str) -> Decimal | None:
        """Read a field exactly; None: it is no number.

        >>> NumberFormat(",", ".").read("1.234,50"), NumberFormat().read("1,234")
        (Decimal('1234.50'), None)
        """
        if not self.plain:
            text = self._in_plain(text)
        return Decimal(text) if _NUMBER.fullmatch(text) else None

    def _in_plain(self, text: str) -> str:
        """Respell a number plainly; what is none becomes none."""
        if self.decimal != "." and "." in text and self.thousands != ".":
            return ""
        whole, _, rest = text.partition(self.decimal)
        if self.thousands and self.thousands in whole:
            sign = re.escape(self.thousands)
            if re.fullmatch(rf"[+-]?[0-9]{{1,3}}(?:{sign}[0-9]{{3}})+", whole) is None:
                return ""
            whole = whole.replace(self.thousands, "")
        if self.thousands and self.thousands in rest:
            return ""
        return f"{whole}.{rest}" if rest else whole


PLAIN = NumberFormat()


def number_format(table: Mapping[str, Any]) -> NumberFormat:
    """Return the format that a column's table states."""
    return NumberFormat(**{key: table[key] for key in SIGNS if key in table})


def without_zeros(text: str) -> str:
    """Leave the fraction of zeros out of a whole number, which programs write beside gaps.

    >>> without_zeros("1.0"), without_zeros("-0.0"), without_zeros("01.0"), without_zeros("1.5")
    ('1', '0', '01.0', '1.5')
    """
    number = _ZEROS.fullmatch(text)
    if number is None:
        return text
    return "0" if number[1] == "-0" else number[1]


def as_decimal(number: object, name: str) -> Decimal:
    """Read a number of a schema exactly."""
    try:
        text = as_text(as_fraction(number, name))
    except (ValueError, TypeError) as error:
        raise Fault.of(error, name) from error
    if "/" in text:
        raise Fault(f"{name} must be decimal numbers", name)
    return Decimal(text)


Value = bool | int | float | str
Type: TypeAlias = "type | tuple[type, ...]"
Given: TypeAlias = Mapping[str, Any]

MAX_CATEGORIES = 1 << 12  # of one column


class Kind(ABC):
    """A kind of column: categories 0, 1, ..., ``size - 1``, fixed by public choices alone."""

    __slots__ = ()
    codings: ClassVar[tuple[str, ...]]  # the first is the usual one
    spelling: ClassVar[str]  # how fields are written, for a refusal
    ordered: ClassVar[bool] = False  # whether the categories are in a meaningful order

    @property
    @abstractmethod
    def size(self) -> int:
        """How many categories there are."""

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The dtype of the decoded column, if nobody chooses one; of a nullable kind where there is one."""

    @abstractmethod
    def code(self, text: str) -> int | None:
        """Find the code of a field, spelled as in a CSV file; None: no category covers it."""

    def _set(self, **values: object) -> None:
        """Set fields of a kind, which is frozen once it is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def codes(self, texts: Sequence[str]) -> Sequence[int | None]:
        """Find the codes of many fields."""
        return [*map(self.code, texts)]

    @abstractmethod
    def values(self) -> Sequence[Value]:
        """Return one value for each category: its own, or the middle of its bin."""

    @property
    def labels(self) -> Sequence[str] | None:
        """What people call each category; None: they are bins, between the cuts."""
        return None

    @property
    def texts(self) -> Sequence[str]:
        """The values, as files have them."""
        return [str(value).lower() if isinstance(value, bool) else str(value) for value in self.values()]

    @property
    def cut_texts(self) -> Sequence[str]:
        """The cuts that ranges such as ``age>=40`` may speak of; empty: the categories are no bins."""
        return ()

    @property
    def numbers(self) -> NumberFormat:
        """How fields write numbers."""
        return PLAIN

    def ends(self) -> Sequence[tuple[float, float]]:
        """Return the least and the largest number of each category, for records; empty: they have none."""
        return ()

    def in_sql(self) -> InSql | None:
        """Return the bins that a database can find by itself; None: it hands the column on as it is."""
        return None


@final
@dataclass(frozen=True, slots=True)
class InSql:
    """Bins that a database finds: "number" or "date", where each begins, and the texts that mean a gap."""

    measure: str
    edges: tuple[str, ...]
    gap: Callable[[str], str | None]


@final
@dataclass(frozen=True, slots=True)
class Spec:
    """The table of a kind in a schema's file: all that parsing, drafts and the wizard know of it."""

    name: str  # what `kind` says
    build: Callable[[Given], Kind]  # makes the kind from a table whose keys are of the right types
    keys: Mapping[str, Type]  # its own keys, with the types of their values
    line: str  # an example, for the head of drafts
    needed: tuple[tuple[str, ...], ...] = ()  # of each of these choices one key at least
    unknown: tuple[str, ...] = ("missing",)  # what `unknown` may say
    questions: tuple[tuple[str, str], ...] = ()  # of the wizard: a key, and what is asked
    draft: str = ""  # the lines of a draft that are to be filled in
    learns: str | None = None  # the key that may be "learn" in place of a list
    more: str = field(default="")  # a second line of the head


@runtime_checkable
class Comparable(Protocol):
    """A kind whose fields have values that can be compared, exactly; its released ones lie on a grid."""

    measure: ClassVar[str]  # "numbers", "dates" or "times": those of one measure can be compared

    @property
    def size(self) -> int:
        """How many categories there are."""

    @property
    def unit(self) -> Fraction:
        """How far released values are apart: a step has the value ``step * unit``."""

    def value(self, text: str) -> Decimal | int | None:
        """Return the value of a field: a number, or microseconds since a fixed moment; None: none."""

    def steps(self, code: int) -> tuple[int, int]:
        """Return the first and the last step of the grid that lie in a category."""

    @property
    def all_steps(self) -> list[tuple[int, int]]:
        """These steps of each category."""

    def side(self, text: str) -> int:
        """Tell whether a field is below (-1) or above (1) the range; 0: it is within, or none."""
