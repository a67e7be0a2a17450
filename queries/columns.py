"""One column of the universe: its categories, and the yes/no attributes that hold in each of them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from itertools import islice, pairwise
from math import isfinite
from typing import SupportsFloat

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans
from queries.expressions import Fault, TypeFault

Bits = npt.NDArray[np.integer]  # uint8 where they are made

MAX_CATEGORIES = 1 << 20  # of one column: more could never be tabulated
MAX_ENTRIES = 1 << 27  # of the table of one column
MAX_LISTED = 4  # categories that the name of a bit lists

_MOMENT = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?)?)?", re.ASCII)

_CODINGS = {  # the first is the usual one
    "yes/no": ("yes/no",),
    "labels": ("one-hot", "bits", "thermometer"),
    "integers": ("thermometer", "one-hot", "bits"),
    "cuts": ("thermometer", "bins", "bits"),
}


@dataclass(frozen=True, slots=True, repr=False)
class Column:
    """One column of the universe: k categories, of which each row has exactly one.

    ``Column("smoker")`` has the categories no and yes, and one attribute of its own name.

    Parameters
    ----------
    name
        The column of the data.
    categories
        Labels, at least two and distinct: ``["none", "part", "full"]``; or a whole number k: the integers
        from 0 to k - 1, in order. None: a yes/no column, or bins by `cuts`.
    cuts
        Ascending numbers: the categories are the bins below the first, from each cut to the next, from the
        last.
    coding
        How categories become attributes; the first is the default. Labels: "one-hot", "bits", or
        "thermometer", which says that they are in order. Integers: "thermometer", "one-hot", "bits". Cuts:
        "thermometer", "bins", "bits".

    Attributes
    ----------
    labels
        The text of each category.
    ordered
        Whether the categories are in a meaningful order.
    attributes
        Names of the yes/no attributes.
    kind
        "yes/no", "labels", "integers" or "cuts": how the data spell a category.
    spelled
        What files write for no and for yes: see `spelled_as`. Empty: as usual.

    Examples
    --------
    >>> Column("job", ["none", "part", "full"]).attributes
    ('job=none', 'job=part', 'job=full')
    >>> Column("age", cuts=[18, 65]).attributes, Column("age", cuts=[18, 65]).labels
    (('age>=18', 'age>=65'), ('below 18', '18 to 65', 'from 65'))
    >>> Column("age", cuts=[18, 65]).table.tolist()
    [[0, 0], [1, 0], [1, 1]]
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    attributes: tuple[str, ...]
    ordered: bool
    coding: str
    cuts: tuple[int | float | Decimal, ...] = ()
    _entries: bytes | None = field(default=None, repr=False)
    # of yes/no: what files write for no, and for yes, where that is not as usual
    spelled: tuple[tuple[str, ...], ...] = field(default=(), repr=False, compare=False)

    def __init__(
        self,
        name: str,
        categories: Iterable[str] | int | None = None,
        *,
        cuts: Iterable[SupportsFloat] | None = None,
        coding: str | None = None,
    ) -> None:
        check_name(name)
        if categories is not None and cuts is not None:
            raise Fault("give categories or cuts, not both", "columns", name)
        numbers: tuple[int | float, ...] = ()
        if cuts is not None:
            kind, numbers = "cuts", _cuts(name, cuts)
            inner = [f"{low} to {high}" for low, high in pairwise(numbers)]
            labels = (f"below {numbers[0]}", *inner, f"from {numbers[-1]}")
        elif categories is None:
            kind, labels = "yes/no", ("no", "yes")
        elif isinstance(categories, int | np.integer) and not isinstance(categories, bool):
            if not 2 <= categories <= MAX_CATEGORIES:
                raise Fault(f"a column has two to 2^20 categories, not {categories}", "columns", name)
            kind, labels = "integers", tuple(map(str, range(categories)))
        else:
            kind, labels = "labels", _labels(name, categories)
        if kind == "yes/no" and coding is not None:
            raise Fault("a yes/no column has no coding", "columns", name)
        known = _CODINGS[kind]
        coding = known[0] if coding is None else coding
        if coding not in known:
            raise Fault(f"coding must be one of {', '.join(known)}, not {coding!r}", "columns", name)
        attributes = attribute_names(name, labels, numbers, coding)
        ordered = kind in ("integers", "cuts") or coding == "thermometer"
        self._set(name, kind, labels, attributes, ordered, coding, numbers, None)

    @classmethod
    def coded(
        cls,
        name: str,
        labels: Iterable[str],
        attributes: Iterable[str],
        table: npt.ArrayLike,
        *,
        ordered: bool = False,
        cuts: Iterable[int | float | str | Decimal] = (),
    ) -> "Column":
        """
        Make a column of labelled categories with attributes of one's own.

        Parameters
        ----------
        name, labels
            Of the column, and of its categories in their order.
        attributes
            Names of the attributes; no other column has one of them.
        table
            Shape (categories, attributes), 0/1: which attributes hold in each category.
        ordered
            Whether the categories ascend.
        cuts
            Ascending numbers, exact as texts or `Decimal`, or dates in ISO form: the first categories are the
            bins that these make (a category for gaps may follow). A predicate then calls such a category by
            its label, and knows the ranges ``age>=40`` and ``age<40`` that begin or end at a cut.

        Examples
        --------
        >>> Column.coded("job", ["none", "part", "full"], ["works"], [[0], [1], [1]]).attributes
        ('works',)
        """
        check_name(name)
        texts, names = _labels(name, labels), tuple(attributes)
        for attribute in names:
            check_name(attribute)
        settings = np.asarray(table)
        # np.isin takes long for the 2^24 cells of a large column
        binary = (settings <= 1 if settings.dtype == np.uint8 else np.isin(settings, (0, 1))).all()
        if settings.shape != (len(texts), len(names)) or not binary:
            message = f"expected a 0/1 table of {len(texts)} categories x {len(names)} attributes"
            raise Fault(message, "columns", name)
        parsed = [_number(str(cut)) for cut in cuts]
        numbers = tuple(number for number in parsed if number is not None)
        if len(numbers) < len(parsed):
            raise Fault("cuts must be numbers, dates or times", "columns", name)
        if (numbers and not len(numbers) < len(texts)) or any(a >= b for a, b in pairwise(numbers)):
            raise Fault("cuts must ascend, and be fewer than the categories", "columns", name)
        column = object.__new__(cls)
        entries = settings.astype(np.uint8).tobytes()
        column._set(name, "labels", texts, names, ordered, "table", numbers, entries)
        return column

    def _set(self, *values: object) -> None:
        fields = ("name", "kind", "labels", "attributes", "ordered", "coding", "cuts", "_entries", "spelled")
        for key, value in zip(fields, (*values, ()), strict=True):
            object.__setattr__(self, key, value)

    def spelled_as(self, texts: Iterable[Iterable[str]]) -> "Column":
        """Return the column, which files spell like this: texts that mean no, and texts that mean yes."""
        column = copy(self)
        object.__setattr__(column, "spelled", tuple(map(tuple, texts)))
        return column

    def __repr__(self) -> str:
        return (
            f"Column({self.name!r})" if self.yes_no else f"<Column {self.name!r} of {self.size} categories>"
        )

    @property
    def size(self) -> int:
        """k, the number of categories."""
        return len(self.labels)

    @property
    def yes_no(self) -> bool:
        """Whether the column is one yes/no attribute."""
        return self.kind == "yes/no"

    @property
    def table(self) -> Bits:
        """Which attributes hold in each category: shape (categories, attributes), uint8 (read-only)."""
        return _table(self)

    def __hash__(self) -> int:
        return hash((self.name, self.coding))  # categories may be many: they are compared where these agree

    @property
    def category_names(self) -> tuple[str, ...]:
        """What a predicate calls each category, such as ``job=part``, ``18<=age<65``, or ``smoker=yes``."""
        if self.kind == "cuts":
            return tuple(bin_names(self.name, self.cuts))
        bins = len(self.cuts) + 1 if self.cuts else 0
        return (*self.labels[:bins], *(f"{self.name}={label}" for label in self.labels[bins:]))

    def holds(self, sign: str, value: str) -> Booleans | None:
        """Tell in which categories ``name sign value`` holds, shape (k,); None: there is no such value.

        The signs are ``= < <= > >=``; all but ``=`` are for ordered columns. A value is the label of a
        category; of bins, a cut (``>=`` and ``<`` alone: what is inside a bin is not known).

        >>> Column("age", cuts=[18, 65]).holds(">=", "65").tolist()
        [False, False, True]
        """
        at = np.arange(self.size)
        if sign == "=":
            return at == self.labels.index(value) if value in self.labels else None
        if self.cuts:
            cut, known = _number(value), [Decimal(str(number)) for number in self.cuts]
            if cut not in known or sign not in (">=", "<"):
                return None
            below: Booleans = at <= known.index(cut)
            return below if sign == "<" else ~below & (at <= len(known))  # a gap is on neither side
        if not self.ordered or value not in self.labels:
            return None
        code = self.labels.index(value)
        held: Booleans = {"<": at < code, "<=": at <= code, ">": at > code, ">=": at >= code}[sign]
        return held


@lru_cache(maxsize=256)
def _table(column: Column) -> Bits:
    k, attributes = column.size, len(column.attributes)
    if k * attributes > MAX_ENTRIES:
        message = f"{attributes} attributes of {k} categories are too many: use coding 'bits'"
        raise Fault(message, "columns", column.name)
    if column._entries is not None:
        table: Bits = np.frombuffer(column._entries, dtype=np.uint8).reshape(k, attributes)
    else:  # of two categories, yes/no is a thermometer
        table = coded_table(k, column.coding)
    table.setflags(write=False)
    return table


def coded_table(categories: int, coding: str, gap: bool = False) -> Bits:
    """Return which attributes hold in each category; a gap is the last one, and reaches no threshold."""
    if coding in ("one-hot", "bins"):
        return np.eye(categories, dtype=np.uint8)
    if coding == "bits":
        width = (categories - 1).bit_length()
        return (np.arange(categories)[:, None] >> np.arange(width)[::-1] & 1).astype(np.uint8)
    table = np.tri(categories, categories - 1, -1, dtype=np.uint8)
    if gap:
        table[-1] = np.arange(categories - 1) == categories - 2
        table[:-1, -1] = 0
    return table


def attribute_names(
    name: str, labels: Sequence[str], cuts: Sequence[object], coding: str, gap: bool = False
) -> tuple[str, ...]:
    """Name the attributes of a column by its labels, or by the cuts between bins; a gap comes last."""
    gaps = [f"{name}=missing"] * gap
    if coding == "yes/no":
        return name, *gaps
    if coding == "thermometer":
        return (*(f"{name}>={value}" for value in cuts or labels[1:]), *gaps)
    names = [*(bin_names(name, cuts) if cuts else [f"{name}={label}" for label in labels]), *gaps]
    return tuple(bit_names(name, names, (len(names) - 1).bit_length()) if coding == "bits" else names)


def bit_names(name: str, categories: Sequence[str], width: int) -> list[str]:
    """Name each bit by the categories in which it holds, or by its number if they are more than four."""
    bits = []
    for i in range(1, width + 1):
        every = (category for at, category in enumerate(categories) if at >> width - i & 1)
        held = [*islice(every, MAX_LISTED + 1)]
        joined = "|".join([*held[:1], *(each.removeprefix(f"{name}=") for each in held[1:])])
        bits.append(joined if len(held) <= MAX_LISTED else f"{name}.bit{i}")
    return bits


def bin_names(name: str, cuts: Sequence[object]) -> list[str]:
    """Name each bin: ``age<18``, ``18<=age<65``, ``age>=65``."""
    inner = [f"{low}<={name}<{high}" for low, high in pairwise(cuts)]
    return [f"{name}<{cuts[0]}", *inner, f"{name}>={cuts[-1]}"]


def check_name(name: object) -> None:
    """Refuse a name of a column or attribute that is no text, empty, or has backticks."""
    if not isinstance(name, str):
        raise TypeError(f"attribute names must be text, not {type(name).__name__}")
    if not name.strip() or "`" in name:
        raise ValueError(f"attribute name {name!r}: expected a text that is not empty, without backticks")


def _labels(name: str, categories: Iterable[str] | int) -> tuple[str, ...]:
    if isinstance(categories, str | bool) or not isinstance(categories, Iterable):
        raise TypeFault("categories must be a list of labels or a whole number", "columns", name)
    labels = tuple(categories)
    if any(not isinstance(label, str) for label in labels):
        raise TypeFault("labels of categories must be text", "columns", name)
    unfit = [label for label in labels if not label.strip() or "`" in label]
    wrong = [f"label {label!r} is empty or has backticks" for label in unfit]
    repeated = [(label, times) for label, times in Counter(labels).items() if times > 1]
    wrong += [f"category {label!r} stands {times} times" for label, times in repeated]
    if len(set(labels)) < 2:
        wrong.append("a column has at least two categories")
    if len(labels) > MAX_CATEGORIES:
        wrong = [f"a column has at most 2^20 categories, not {len(labels)}"]
    if wrong:
        raise Fault("; ".join(wrong), "columns", name)
    return labels


def _cuts(name: str, cuts: Iterable[SupportsFloat]) -> tuple[int | float, ...]:
    if isinstance(cuts, str) or not isinstance(cuts, Iterable):
        raise TypeFault("cuts must be a list of numbers", "columns", name)
    numbers = []
    for cut in cuts:
        if isinstance(cut, str | bool | np.bool_) or not isinstance(cut, SupportsFloat) or not isfinite(cut):
            raise TypeFault("cuts must be finite numbers", "columns", name)
        exact = Fraction(cut) if isinstance(cut, int | float | Fraction) else Fraction(str(cut))
        numbers.append(int(exact) if exact.denominator == 1 else float(cut))
    if not 1 <= len(numbers) < MAX_CATEGORIES:
        raise Fault("cuts must be one number to 2^20 - 1", "columns", name)
    if any(low >= high for low, high in pairwise(numbers)):
        raise Fault("cuts must ascend, each above the one before", "columns", name)
    return tuple(numbers)


def _number(text: str) -> Decimal | None:
    moment = _MOMENT.fullmatch(text) or _MOMENT.fullmatch(f"0001-01-01T{text}")
    if moment is not None:  # a year, and for each part that follows two digits after the point
        year, month, day, *clock = (part or "" for part in moment.groups())
        parts = [f"{int(part or 1) - 1:02}" for part in (month, day)] + [part or "00" for part in clock]
        return Decimal(f"{year}.{''.join(parts)}")
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
