"""A column of a table: its kind, its place for gaps, and how fields become places and back."""

import warnings
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import numpy.typing as npt
import pandas as pd

import queries
from queries import DataError
from queries.expressions import suggestion
from queries.packing import Places
from smalldb.exact.bits import BitSource
from smalldb.schema.codings import Coding, binary, one_hot, thermometer
from smalldb.schema.fields import as_field, spelled
from smalldb.schema.kinds import Categories, Cuts, Flag, Integers, Kind, Value
from smalldb.schema.kinds.numbers import PLAIN, NumberFormat, without_zeros
from smalldb.schema.pieces import Fields

UNKNOWN = -1  # a field without a place

_PLAIN = {"boolean": "bool", "Int64": "int64"}  # for columns without gaps


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column, its places and their attributes; all of it public.

    Decoding any place and encoding what comes out gives that place again: checked when a column is made.

    Parameters
    ----------
    name
        Of the column.
    kind
        What its fields can be.
    coding
        One of ``kind.codings``; None: the first of them.
    missing
        Whether gaps have a place, the last; otherwise they are refused.
    gaps
        Fields that are gaps, beside the empty one and what pandas calls missing; needs `missing`.
    unknown
        Whether fields without a place count as gaps; otherwise they are refused.
    dtype
        Of the decoded column, as pandas names it; None: as the kind has it.

    Attributes
    ----------
    universe
        The column of the domain: its places, named as people read them, and its attributes.

    Raises
    ------
    ValueError, TypeError
        Names the column: an unknown coding or dtype, a dtype that cannot hold the column's values.
    """

    name: str
    kind: Kind
    coding: str | None = None
    missing: bool = False
    gaps: tuple[str, ...] = ()
    unknown: bool = False
    dtype: str | None = None
    universe: queries.Column = field(init=False, repr=False, compare=False)
    _values: "pd.Series[Any]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.strip() or "`" in self.name:
            raise ValueError(
                f"column {self.name!r}: expected a name without backticks, and without spaces at its ends"
            )
        codings, texts = self.kind.codings, {as_field(value) for value in self.kind.values()}
        if self.coding is not None and self.coding not in codings:
            near = suggestion(self.coding, codings)
            raise ValueError(f"column {self.name!r}: coding must be one of {', '.join(codings)}{near}")
        if self.unknown and not self.missing:
            raise ValueError(f'column {self.name!r}: unknown = "missing" needs missing = true')
        if self.gaps and (not self.missing or {*texts, *map(without_zeros, texts)} & {*self.gaps}):
            raise ValueError(f"column {self.name!r}: what means missing cannot be a value of the column")
        object.__setattr__(self, "universe", self._universe(self.coding or codings[0]))
        object.__setattr__(self, "_values", self._series())

    def places(self, fields: Fields) -> npt.NDArray[np.int64]:
        """Find the place of each field, shape (r,): a value as pandas holds it, or its text in a CSV file.

        Raises
        ------
        DataError
            A gap or another field that has no place: names the column, nothing else.
        """
        found = self.found(fields)
        problem = self.problem(found)
        if problem is not None:
            raise DataError(problem)
        return found

    def problem(self, found: npt.NDArray[np.int64]) -> str | None:
        """Tell what is wrong with the places that `found` has found; None: nothing."""
        if (found == UNKNOWN).any():
            others = '"other" or ' if isinstance(self.kind, Categories) else ""
            return (
                f"column {self.name!r} has values that its schema gives no place: "
                f'{self.kind.spelling}; unknown = {others}"missing" gives the rest a place, '
                'and missing = ["NA", "-"] lists what means a gap'
            )
        if not self.missing and (found == self.kind.size).any():
            return f"column {self.name!r} has missing values: missing = true gives them a place"
        return None

    def found(self, fields: Fields) -> npt.NDArray[np.int64]:
        """Find the place of each field, of a gap the one behind all others, or `UNKNOWN`: shape (r,).

        Raises
        ------
        DataError
            The fields are no single values: names the column.
        """
        texts = spelled(fields, self.numbers.decimal)
        if texts is None:
            raise DataError(f"column {self.name!r} holds what is no single value")
        codes, distinct = texts
        size, blank = self.kind.size, {"", *self.gaps}
        beyond = size if self.unknown else UNKNOWN
        # 99.0 is a gap where 99 is one, but not if a point stands between thousands
        short = without_zeros if self.numbers.plain else str
        places = [size if {text, short(text)} & blank else self.kind.place(text) for text in distinct]
        return np.array([beyond if p is None else p for p in places], dtype=np.int64)[codes]

    def decode(self, places: Places, source: BitSource | None = None) -> "pd.Series[Any]":
        """Write each place, shape (r,), as a value of the column.

        Without a source, a bin is its middle. With one, it is drawn from the bin, uniformly; a drawn value
        that the column's dtype would round into another bin is the middle, too.

        ValueError: a place that the column does not have.
        """
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(self._values):
            raise ValueError(f"column {self.name!r}: it has {len(self._values)} places, numbered from 0")
        middles = self._values.iloc[places].reset_index(drop=True)
        drawn = None if source is None else self._drawn(places, source)
        if drawn is None:
            return middles
        made = pd.Series(drawn, dtype=middles.dtype)
        strayed = self.found(made) != places
        return made.mask(strayed, middles) if strayed.any() else made

    def _drawn(self, places: Places, source: BitSource) -> list[Value | None] | None:
        """Draw a value for each place; None: each place has but one."""
        values: list[Value | None] = [None] * len(places)
        for place in np.unique(places).tolist():
            if place == self.kind.size:
                continue
            at = np.flatnonzero(places == place).tolist()
            drawn = self.kind.drawn(place, len(at), source)
            if drawn is None:
                return None
            for i, value in zip(at, drawn, strict=True):
                values[i] = value
        return values

    @property
    def numbers(self) -> NumberFormat:
        """How fields write numbers."""
        return self.kind.numbers if isinstance(self.kind, Cuts | Integers) else PLAIN

    def _universe(self, coding: str) -> queries.Column:
        gap, kind = ["missing"] * self.missing, self.kind
        if isinstance(kind, Flag) and not gap:
            return queries.Column(self.name)
        labels = kind.names(self.name, "bins") if kind.labels is None else kind.labels
        code = self._code(coding)
        return queries.Column.coded(
            self.name,
            [*labels, *gap],
            code.names,
            code.table,
            ordered=kind.ordered and not gap,
            cuts=kind.cuts_told,
        )

    def _code(self, coding: str) -> Coding:
        names, gap = self.kind.names(self.name, coding), [f"{self.name}=missing"] * self.missing
        if coding == "thermometer":
            return thermometer(names, *gap)
        return binary(self.name, names + gap) if coding == "bits" else one_hot(names + gap)

    def _series(self) -> "pd.Series[Any]":
        """Return the value of each place, in the column's dtype; each must be found in its place again."""
        dtype = self.dtype
        if dtype is None:
            dtype = self.kind.dtype if self.missing else _PLAIN.get(self.kind.dtype, self.kind.dtype)
        truth = isinstance(self.kind, Flag) and dtype in ("bool", "boolean")
        values = [*([False, True] if truth else self.kind.values()), *([None] if self.missing else [])]
        if not self.numbers.plain and dtype not in ("str", "string", "object"):
            raise ValueError(
                f'column {self.name!r}: what decimal or thousands write is text: leave dtype out, or "str"'
            )
        problem = ValueError(
            f"column {self.name!r}: dtype {dtype!r} cannot hold its values"
            + (" and gaps" if self.missing else "")
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                chosen = pd.CategoricalDtype([*self.kind.values()]) if dtype == "category" else dtype
                series = pd.Series(values, dtype=chosen)
        except (ValueError, TypeError, OverflowError, Warning) as error:
            raise problem from error
        try:
            if self.places(series).tolist() != [*range(len(values))]:
                raise problem
        except DataError as error:
            raise problem from error
        return series
