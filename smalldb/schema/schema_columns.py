"""A column of a table: its kind, its category for gaps, and how fields become codes and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import numpy.typing as npt

import queries
from queries import DataError
from queries.arrays import Booleans, Codes, pd
from queries.columns import attribute_names, bin_names, coded_table
from queries.expressions import Fault, suggestion
from smalldb.exact.bits import BitSource
from smalldb.schema.bin_shapes import (
    BinMeans,
    BinShape,
    FinerBins,
    FinerShape,
    InBins,
    TiltedShape,
    drawn_steps,
)
from smalldb.schema.fields import Fields, Memo, as_field, as_series, dtype_of, is_text, objects, spelled
from smalldb.schema.kinds import Binned, Categories, Cuts, Dates, Flag, Kind, Value
from smalldb.schema.kinds.kind import without_zeros

UNKNOWN = -1  # a field that no category covers
MOST_KNOWN = 1 << 18  # texts of a column whose codes are kept from one piece to the next

_PLAIN = {"boolean": "bool", "Int64": "int64"}  # for columns without gaps


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column, its categories and their attributes; all of it public.

    Decoding any code and encoding what comes out gives that code again: checked when a column is made.

    Parameters
    ----------
    name
        Of the column.
    kind
        What its fields can be.
    coding
        One of ``kind.codings``; None: the first of them.
    missing
        Whether gaps have a category, the last; otherwise they are refused.
    gaps
        Fields that are gaps, beside the empty one and what pandas calls missing; needs `missing`.
    unknown
        Whether fields that no category covers count as gaps; otherwise they are refused.
    dtype
        Of the decoded column, as pandas names it; None: as the kind has it.
    missing_with
        Columns that have a gap in the same rows; needs `missing`.
    only_if
        A predicate over other columns: where it does not hold, this one has a gap; needs `missing`.
    determines
        By the name of another column, which value of it goes with which of this one (`determined.Book`).
    description, unit
        For people: what the column is, and what its numbers count.
    finer
        Smaller bins, which a release measures beside the categories; None: it does not.
    means
        What a release measured of where numbers lie in the bins; None: nothing yet.

    Attributes
    ----------
    universe
        The column of the domain: its categories, named as people read them, and its attributes.
    pandas_dtype
        The dtype of the decoded column.

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
    missing_with: tuple[str, ...] = ()
    only_if: str | None = None
    determines: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    description: str = ""
    unit: str = ""
    finer: FinerBins | None = None
    means: BinMeans | None = None
    universe: queries.Column = field(init=False, repr=False, compare=False)
    pandas_dtype: Any = field(init=False, repr=False, compare=False)
    _values: pd.Series[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.strip() or "`" in self.name:
            raise self._fault("expected a name without backticks, and without spaces at its ends")
        codings, texts = self.kind.codings, {as_field(value) for value in self.kind.values()}
        if not is_text("".join([self.name, *texts, *self.gaps, self.description, self.unit])):
            raise self._fault("it has a text that UTF-8 cannot write")
        if self.coding is not None and self.coding not in codings:
            near = suggestion(self.coding, codings)
            raise self._fault(f"coding must be one of {', '.join(codings)}{near}", "coding")
        if self.unknown and not self.missing:
            raise self._fault('unknown = "missing" needs missing = true', "unknown")
        if (self.missing_with or self.only_if is not None) and not self.missing:
            key = "missing_with" if self.missing_with else "only_if"
            raise self._fault(f"{key} needs missing = true", key)
        if self.gaps and (not self.missing or {*texts, *map(without_zeros, texts)} & {*self.gaps}):
            raise self._fault("a text for gaps cannot be a value of the column", "missing")
        object.__setattr__(self, "universe", self._universe(self.coding or codings[0]))
        object.__setattr__(self, "pandas_dtype", self._chosen_dtype())
        object.__setattr__(self, "_values", self._series())

    @property
    def meaning(self) -> str:
        """What the column is, for people: its description and unit; empty where the schema says neither."""
        unit = f"in {self.unit}" if self.unit else ""
        return ", ".join(part for part in (self.description, unit) if part)

    def codes(self, fields: Fields) -> npt.NDArray[np.int64]:
        """Find the code of each field, shape (r,): a value as pandas holds it, or its text in a CSV file.

        Raises
        ------
        DataError
            A gap or another field that no category covers: names the column, nothing else.
        """
        codes = self.encode(fields)
        problem = self.problem(codes)
        if problem is not None:
            raise DataError(problem)
        return codes

    def problem(self, codes: npt.NDArray[np.int64]) -> str | None:
        """Tell what is wrong with codes that `encode` returned; None: nothing."""
        if (codes == UNKNOWN).any():
            others = '"other" or ' if isinstance(self.kind, Categories) else ""
            return (
                f"column {self.name!r} has values that its schema does not cover: "
                f'{self.kind.spelling}; unknown = {others}"missing" gives the rest a category, '
                'and missing = ["NA", "-"] lists what means a gap'
            )
        if not self.missing and (codes == self.kind.size).any():
            return f"column {self.name!r} has missing values: missing = true gives them a category"
        return None

    def memo(self, kind: Kind | InBins | None = None) -> Memo:
        """Return what finds the code of a text: of a gap the one behind all others, or `UNKNOWN`."""
        kind = kind or self.kind
        size = kind.size
        beyond = size if self.unknown else UNKNOWN

        def codes(texts: list[str]) -> list[int]:
            numbers = [beyond if code is None else code for code in kind.codes(texts)]
            gaps = map(self.is_gap, texts) if self.gaps else (not text for text in texts)
            return [size if gap else code for gap, code in zip(gaps, numbers, strict=True)]

        return Memo(codes)

    def is_gap(self, text: str) -> bool:
        """Tell whether a text means a gap: 99.0, too, where 99 does, if no point stands between thousands."""
        return text in ("", *self.gaps) or (self.kind.numbers.plain and without_zeros(text) in self.gaps)

    def encode(self, fields: Fields, known: Memo | None = None) -> npt.NDArray[np.int64]:
        """Find the code of each field, shape (r,), by the `memo` of earlier pieces; DataError: a list."""
        known = self.memo() if known is None else known
        inverse, distinct = self.spelled(fields)
        if len(known) > MOST_KNOWN:
            known.clear()
        return known.of(distinct).astype(np.int64)[inverse]

    def occurring(self, fields: Fields, times: Sequence[int] | None) -> Iterator[tuple[str, int]]:
        """Yield the texts of fields that are no gaps, and how often each occurs; errors as `encode`."""
        inverse, distinct = self.spelled(fields)
        counts = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(counts, inverse, 1 if times is None else np.asarray(times, dtype=np.int64))
        for text, count in zip(distinct, counts.tolist(), strict=True):
            if count and not self.is_gap(text):
                yield text, count

    def spelled(self, fields: Fields) -> tuple[npt.NDArray[np.intp], list[str]]:
        """Return the index of each field's text among those that occur, and these; errors as `encode`."""
        return spelled(fields, self.name, self.kind.numbers.decimal)

    def with_gaps(self, fields: Fields, rows: Booleans) -> Fields:
        """Return fields with gaps in some rows."""
        if not rows.any():
            return fields
        inverse, distinct = self.spelled(fields)
        return objects([*distinct, ""])[np.where(rows, len(distinct), inverse)]

    def encode_finer(self, fields: Fields) -> npt.NDArray[np.int64]:
        """Find the finer bin of each field, as `encode` finds codes; of a gap the number of finer bins."""
        return self.encode(fields, self.memo(None if self.finer is None else self.finer.kind))

    def numbered(self, fields: Fields, number: Callable[[str], int]) -> npt.NDArray[np.int64]:
        """Return a number of each field, 0 of gaps."""
        inverse, distinct = self.spelled(fields)
        lost = self.memo()
        numbers = [0 if lost[text] == self.kind.size else number(text) for text in distinct]
        return np.array(numbers, dtype=np.int64)[inverse]

    def decode(self, codes: Codes, source: BitSource | None = None) -> pd.Series[Any]:
        """Write each code, shape (r,), as a value of the column.

        Without a source, a bin is its middle. With one, it is drawn from the bin, by the shape of the column
        (`bin_shapes`), by that of its finer bins where these were released, or such that bins have the means
        that were released; a drawn value that the column's dtype would round into another bin is the middle.
        """
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(self._values):
            raise self._fault(f"it has {len(self._values)} categories, numbered from 0")
        if source is None or not isinstance(self.kind, Binned):
            return self._values.iloc[codes].reset_index(drop=True)
        shape = BinShape.of(self.kind, codes)
        wide = max(map(abs, self.kind.steps(self.kind.size - 1))) >= 1 << 62
        steps = np.zeros(len(codes), dtype=object if wide else np.int64)
        within: FinerShape | TiltedShape | None = self.finer and self.finer.shape(shape)
        if self.finer is None and self.means is not None and isinstance(self.kind, Cuts):
            within = self.means.shape(self.kind, shape, len(codes))
        codes = np.ascontiguousarray(codes)
        order, counts = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=self.kind.size)
        parts = np.split(order, np.cumsum(counts))
        for code in np.flatnonzero(counts[: self.kind.size]).tolist():
            at = parts[code]
            if within is None:
                steps[at] = drawn_steps(self.kind, code, len(at), shape, source)
            else:
                steps[at] = within.drawn_steps(code, len(at), source)
        there = np.flatnonzero(codes < self.kind.size)
        distinct, first, inverse = np.unique(steps[there], return_index=True, return_inverse=True)
        rows = np.full(len(codes), len(distinct))  # each value is made once, and a gap behind them
        rows[there] = inverse
        values = [*map(self.kind.at, distinct.tolist()), *[None] * self.missing]
        of_values = np.append(codes[there][first], [self.kind.size] * self.missing).astype(np.int64)
        return self._held(values, of_values).iloc[rows].reset_index(drop=True)

    def holding(self, codes: Codes, steps: Sequence[int | None]) -> pd.Series[Any]:
        """Write each code, shape (r,), as the value at a step of its grid; None: the middle, or a gap."""
        if not isinstance(self.kind, Binned):
            return self.decode(codes)
        middles = [*(sum(steps) // 2 for steps in self.kind.all_steps), None]
        pairs = zip(codes.tolist(), steps, strict=True)
        filled = [middles[code] if step is None else step for code, step in pairs]
        values = {step: self.kind.at(step) for step in {*filled} if step is not None}
        held = self._held([None if step is None else values[step] for step in filled], codes)
        left = np.array([step is None for step in steps], dtype=bool)
        return held.mask(left, self.decode(codes)) if left.any() else held

    def ends(self) -> tuple[pd.Series[Any], npt.NDArray[np.int64]]:
        """Return the values that a release writes at the ends of each bin, and their codes.

        Of a category with one value that value, of a gap the gap: each twice.
        """
        codes = np.repeat(np.arange(len(self._values)), 2)
        if not isinstance(self.kind, Binned):
            return self._values.iloc[codes].reset_index(drop=True), codes
        ends = [self.kind.at(step) for steps in self.kind.all_steps for step in steps]
        return self._held([*ends, *[None, None] * self.missing], codes), codes

    @property
    def textual(self) -> bool:
        """Whether fields are texts in JSON, too; otherwise they are numbers or truth."""
        return any(isinstance(value, str) for value in self.kind.values())

    def written(self, values: pd.Series[Any]) -> tuple[npt.NDArray[np.intp], list[str | None]]:
        """Spell released values as the schema has them: indices among the distinct fields; None is a gap."""
        inverse, distinct = self.spelled(values)
        codes = self.encode(np.array(distinct, dtype=object))
        problem = self.problem(codes)
        if problem is not None:
            raise ValueError(problem)
        if isinstance(self.kind, Binned):
            write, gap = self.kind.written, self.kind.size
            fields = zip(distinct, codes.tolist(), strict=True)
            return inverse.astype(np.int32), [None if code == gap else write(text) for text, code in fields]
        texts = [*self.kind.texts, None]
        return inverse.astype(np.int32), [texts[code] for code in codes.tolist()]

    def _held(self, values: Sequence[Value | None], codes: Codes) -> pd.Series[Any]:
        """Return values in the column's dtype; one that it would round into another bin is the middle."""
        held = self._typed(values)
        strayed = self.encode(held) != codes
        return held.mask(strayed, self._values.iloc[codes].reset_index(drop=True)) if strayed.any() else held

    def _typed(self, values: Sequence[Value | None]) -> pd.Series[Any]:
        """Return values in the column's dtype; errors as `as_series`."""
        if isinstance(self.kind, Dates) and self.kind.form is not None and self.pandas_dtype.kind == "M":
            values = [self.kind.iso(value) if isinstance(value, str) else value for value in values]
        return as_series(values, self.pandas_dtype)

    def _universe(self, coding: str) -> queries.Column:
        kind, cuts, gap = self.kind, self.kind.cut_texts, self.missing
        if isinstance(kind, Flag) and not gap:
            universe = queries.Column(self.name)
        else:
            labels = [*(bin_names(self.name, cuts) if kind.labels is None else kind.labels)]
            named = "yes/no" if isinstance(kind, Flag) else coding
            universe = queries.Column.coded(
                self.name,
                [*labels, *["missing"] * gap],
                attribute_names(self.name, labels, cuts, named, gap),
                coded_table(kind.size + gap, coding, gap),
                ordered=kind.ordered and not gap,
                cuts=cuts,
            )
        return universe.spelled_as(kind.spelled) if isinstance(kind, Flag) and kind.true else universe

    def _series(self) -> pd.Series[Any]:
        """Return the value of each category, in the column's dtype.

        Each must be found in its category again, and so must the ends of each bin: what a release can hold,
        it can write.
        """
        truth = isinstance(self.kind, Flag) and self.pandas_dtype.kind == "b"
        values = [*([False, True] if truth else self.kind.values()), *([None] if self.missing else [])]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                series = self._typed(values)
                object.__setattr__(self, "_values", series)
                ends, codes = self.ends()
                if (self.codes(series) == np.arange(len(values))).all() and (self.codes(ends) == codes).all():
                    return series
        except (ValueError, TypeError, OverflowError, NotImplementedError, Warning) as error:
            raise self._unfit() from error
        raise self._unfit()

    def _chosen_dtype(self) -> Any:
        """Return the dtype that the column was given, or that of its kind."""
        chosen = dtype_of(self._dtype_name)
        if chosen is None:
            raise self._unfit()
        text = isinstance(chosen, pd.StringDtype) or chosen.kind in "OU"
        if not self.kind.numbers.plain and not text:
            raise self._fault('what decimal or thousands write is text: leave dtype out, or "str"', "dtype")
        if not isinstance(chosen, pd.CategoricalDtype):
            return chosen
        if isinstance(self.kind, Binned):
            raise self._fault(
                'dtype "category" is for listed values, and those of bins are drawn: leave dtype out', "dtype"
            )
        return pd.CategoricalDtype([*self.kind.values()])

    def _unfit(self) -> Fault:
        gaps = " and gaps" if self.missing else ""
        return self._fault(f"dtype {self._dtype_name!r} cannot hold its values{gaps}", "dtype")

    def _fault(self, problem: str, *keys: str) -> Fault:
        return Fault(problem, "columns", self.name, *keys)

    @property
    def _dtype_name(self) -> str:
        usual = self.kind.dtype if self.missing else _PLAIN.get(self.kind.dtype, self.kind.dtype)
        return usual if self.dtype is None else self.dtype
