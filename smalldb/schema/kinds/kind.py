"""What a kind of column is: the one protocol that the house knows it by, and its table in a schema's file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias, final, runtime_checkable

from smalldb.schema.kinds.number_format import PLAIN, NumberFormat

Value = bool | int | float | str
Type: TypeAlias = "type | tuple[type, ...]"
Given: TypeAlias = Mapping[str, Any]

MAX_CATEGORIES = 1 << 12  # of one column


class Kind(ABC):
    """A kind of column: categories 0, 1, ..., ``size - 1``, fixed by public choices alone."""

    __slots__ = ()
    codings: ClassVar[tuple[str, ...]]  # the first is the usual one
    spelling: ClassVar[str]  # how fields are written, for a refusal

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

    @abstractmethod
    def names(self, column: str, coding: str) -> list[str]:
        """Name each category (``sex=female``); for a thermometer what 1, 2, ... reach (``age>=40``)."""

    @abstractmethod
    def values(self) -> Sequence[Value]:
        """Return one value for each category: its own, or the middle of its bin."""

    @property
    def labels(self) -> Sequence[str] | None:
        """What people call each category, if not by its name (see `names`)."""
        return None

    @property
    def cuts_told(self) -> Sequence[str]:
        """The cuts that ranges such as ``age>=40`` may speak of; empty: the categories are no bins."""
        return ()

    @property
    def ordered(self) -> bool:
        """Whether the categories are in a meaningful order."""
        return False

    @property
    def format(self) -> NumberFormat:
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
class Ranged(Protocol):
    """A kind whose values have a range, which fields may exceed."""

    def side(self, text: str) -> int:
        """Tell whether a field is below (-1) or above (1) the range; 0: it is within, or none."""


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
