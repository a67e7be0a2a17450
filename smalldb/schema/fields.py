"""What a row is, a text for each column; pieces of rows, and the dtypes of released ones."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import MAXYEAR, date, timedelta
from functools import partial
from types import NoneType
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from queries import DataError, Domain, Rows
from queries.arrays import Codes, Integers, Words, pd
from queries.encoding import spell
from queries.rows import MAX_TOTAL, packed
from queries.rule_tables import RuledOut, ruled_out_message

_ALIKE = (int, bool, float, date)  # equal values of one of these types have one text
NO_TEXT = "a value without a text"  # pandas spells no moment past the year 9999 in a time zone


def is_text(text: str) -> bool:
    """Tell whether UTF-8 can write a text: it holds no byte that was none, and no half of a character."""
    return text.isascii() or re.search("[\ud800-\udfff]", text) is None


def as_field(value: object, decimal: str = ".") -> str:
    """Spell a value of a table as a CSV file does; a whole float (an integer beside gaps) as an integer.

    `decimal` is the sign with which numbers that are no texts are spelled.

    >>> as_field(np.float64(3.0)), as_field(np.float32(0.1)), as_field(" a "), as_field(1.5, ",")
    ('3', '0.1', 'a', '1,5')
    """
    if isinstance(value, str):
        return value.strip()
    try:
        if isinstance(value, timedelta | np.timedelta64):
            return _as_duration(value)
        return spell(value).replace(".", decimal)
    except (NotImplementedError, OverflowError, ValueError):
        return NO_TEXT


def _as_duration(value: timedelta | np.timedelta64) -> str:
    """Spell a duration as hours, minutes and seconds: a day and a half as 36:00:00."""
    seconds, rest = divmod(np.timedelta64(value, "us").astype(int).item(), 10**6)
    minutes, second = divmod(abs(seconds), 60)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"{'-' * (seconds < 0)}{minutes // 60:02}:{minutes % 60:02}:{second:02}{fraction}"


def spelled(fields: Fields, name: str = "", decimal: str = ".") -> tuple[npt.NDArray[np.intp], list[str]]:
    """Return the index of each field's text among the texts that occur, and these; DataError: a list.

    The text of a field depends on its value and on the dtype of its column, which is public, and on no other
    field. A gap is the empty text. Numbers that are no texts get this decimal sign.

    >>> spelled(pd.Series([True, 1, "1", None], dtype=object))
    (array([0, 1, 1, 2]), ['True', '1', ''])
    """
    column = fields.array if isinstance(fields, pd.Series) else fields
    if isinstance(column, pd.Categorical):
        categories = column.categories
        texts = [*map(str.strip, categories)] if {*map(type, categories)} == {str} else []
        indices = np.arange(len(texts))
        if not texts or len({*texts}) < len(texts):
            indices, texts = spelled(pd.Series(categories), name, decimal)
        shifted = column.codes.astype(np.intp) + 1
        occurs = np.bincount(shifted) > 0
        used, codes = np.flatnonzero(occurs) - 1, (np.cumsum(occurs) - 1)[shifted]
        listed = np.append(indices, -1)  # code -1 is a gap
        return codes, ["" if index < 0 else texts[index] for index in listed[used]]
    # of one type, so equal values have one text; True == 1 == Decimal("1.00") have three
    typed = column.dtype.kind in "biufmM" or isinstance(column.dtype, pd.StringDtype)
    values, kinds = np.array([]), set[type]()
    if not typed:
        values = _listed(column, object)
        kinds = {*map(type, values.tolist())}
    if typed or (len(one := kinds - {NoneType}) == 1 and one <= {*_ALIKE}):
        codes, distinct = pd.factorize(fields if typed else values)
        values = _listed(distinct)
        if values.dtype.kind in "iu":
            texts = [*map(str, values.tolist())]
        else:
            texts = [
                "" if gap else as_field(value, decimal)
                for value, gap in zip(values, pd.isna(values), strict=True)
            ]
    else:
        if kinds != {str}:
            if any(issubclass(kind, Iterable) and not issubclass(kind, str | bytes) for kind in kinds):
                raise DataError(f"column {name!r} has a value that is a list or an object")
            gaps = pd.isna(values)
            values = objects([as_field(value, decimal) for value in values.tolist()])
            values[gaps] = ""
        codes, distinct = pd.factorize(values)
        texts = [text.strip() for text in distinct]
    if (codes < 0).any():
        return np.where(codes < 0, len(texts), codes), [*texts, ""]
    return codes, texts


def _listed(column: Any, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    try:
        if isinstance(column.dtype, pd.DatetimeTZDtype) and not _in_tables(column):
            raise NotImplementedError
        return np.asarray(column, dtype=dtype)
    except (NotImplementedError, OverflowError, ValueError):
        values = np.empty(len(column), dtype=object)
        values[:] = [_value(column, i) for i in range(len(column))]
        return values


def _in_tables(moments: Any) -> bool:
    """Tell whether pandas knows moments in their zone: its tables begin where nanoseconds do, in 1677.

    Before 3.1 it reads what lies in front of a table, so that the process may end; or it prints a year that
    Python has not.
    """
    years = moments.tz_convert("UTC").year
    return moments.dtype.unit == "ns" or bool(((years > 1677) & (years < MAXYEAR)).all())


def _value(column: Any, i: int) -> object:
    try:
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            return column[i : i + 1].tz_convert("UTC")[0].to_pydatetime().astimezone(column.dtype.tz)
        return column[i]
    except (NotImplementedError, OverflowError, ValueError):
        return NO_TEXT


Fields: TypeAlias = "pd.Series[Any] | npt.NDArray[Any]"
Piece: TypeAlias = tuple[Sequence[Fields], Sequence[int] | None]
"""Columns of equal length, and how often each of their rows occurs (None: once)."""

Coded: TypeAlias = "tuple[Codes, Sequence[int] | Integers | None]"
"""Rows of codes, and how often each of them occurs (None: once)."""

P = TypeVar("P")
R = TypeVar("R")
CHUNK = 1 << 16  # rows of a piece
MOST_THREADS = 4  # more would wait for the one that makes the parts, and hold more of them
SORTED = 1 << 21  # words of rows that are sorted together
TOO_MANY = "counts add up to 2^62 or more"
FEW = 1 << 12  # texts of a column that are kept, whether they occur again or not

_COUNT = re.compile("[0-9]{1,19}")


class Memo(dict[str, int]):
    """The numbers of texts, each computed once."""

    def __init__(self, numbers: Callable[[list[str]], Iterable[int]]) -> None:
        self._numbers = numbers

    def __missing__(self, text: str) -> int:
        return int(self.of([text])[0])

    def of(self, texts: Collection[str]) -> npt.NDArray[np.int32]:
        """Return the number of each text."""
        new = [text for text in texts if text not in self]
        if len(new) > max(FEW, len(texts) // 2):  # of a column whose texts hardly ever occur again
            return np.fromiter(self._numbers([*texts]), dtype=np.int32, count=len(texts))
        self.update(zip(new, self._numbers(new), strict=True))
        return looked_up(self, texts)


def looked_up(numbers: Mapping[str, int], texts: Collection[str]) -> npt.NDArray[np.int32]:
    """Return the number of each text."""
    return np.fromiter(map(numbers.__getitem__, texts), dtype=np.int32, count=len(texts))


def tally(
    domain: Domain,
    pieces: Iterable[Coded],
    step: str = "",
    outside: set[int] | None = None,
) -> Rows:
    """Add up rows of codes; memory grows with the distinct rows."""
    outside, refused = set() if outside is None else outside, False  # those of all pieces are told
    runs = [Rows.from_codes(domain, np.zeros((0, len(domain.sizes)), dtype=np.uint8))]
    n, waiting, size = 0, list[Words](), 0
    for total, part in in_threads(partial(_packed, domain), pieces):
        n += total
        if n >= MAX_TOTAL:
            raise DataError(TOO_MANY)
        if isinstance(part, RuledOut):
            outside |= part.numbers
            refused = True
        elif isinstance(part, Rows):
            _add(runs, part)
        else:
            waiting.append(part)
            size += part.size
        if size >= SORTED:
            _add(runs, Rows.from_words(domain, np.concatenate(waiting)))
            waiting, size = [], 0
    if refused or outside:
        raise RuledOut(ruled_out_message(domain.valid, outside) + step, outside)
    if waiting:
        _add(runs, Rows.from_words(domain, np.concatenate(waiting)))
    while len(runs) > 1:
        runs.append(runs.pop().plus(runs.pop()))
    return runs[0]


def _packed(domain: Domain, piece: Coded) -> tuple[int, Rows | Words | RuledOut]:
    """Pack the rows of a piece that occur once each, count others; and say how many they are."""
    codes, counts = piece
    try:
        if counts is None:
            return len(codes), packed(domain, codes)
        total = int(counts.sum()) if isinstance(counts, np.ndarray) else sum(counts)
        if total >= MAX_TOTAL:
            raise DataError(TOO_MANY)
        return total, Rows.from_codes(domain, codes, np.asarray(counts, dtype=np.int64))
    except RuledOut as error:
        return 0, error


def in_threads(function: Callable[[P], R], parts: Iterable[P]) -> Iterator[R]:
    """Yield results in the order of the parts, which this thread makes, computed by at most four others."""
    cores = min(MOST_THREADS, os.cpu_count() or 1)
    waiting = deque[Future[R]]()
    with ThreadPoolExecutor(cores) as pool:
        try:
            for part in parts:
                waiting.append(pool.submit(function, part))
                if len(waiting) > cores:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _add(runs: list[Rows], run: Rows) -> None:
    """Add a run; it is merged with those that are no longer, so each row is moved a few times."""
    runs.append(run)
    while len(runs) > 1 and len(runs[-2].counts) <= 2 * len(runs[-1].counts):
        runs.append(runs.pop().plus(runs.pop()))


def objects(values: Sequence[object]) -> npt.NDArray[Any]:
    """Return values of any types as a column, shape (r,): each by itself, also a list."""
    return np.fromiter(values, dtype=object, count=len(values))


def occurrences(
    fields: Sequence[Fields], times: Sequence[int] | None, counts: str | None
) -> Sequence[int] | None:
    """Return how often each row of a piece occurs; None: once."""
    if counts is None:
        return times
    texts = [str(value).strip() for value in np.asarray(fields[-1])]
    if not all(map(_COUNT.fullmatch, texts)):
        raise DataError(f"column {counts!r} must hold counts: whole numbers, none negative")
    stated = [*map(int, texts)]
    return stated if times is None else [a * b for a, b in zip(stated, times, strict=True)]


_MOMENTS = (f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns"))
_PLAIN = ("bool", "object", "float32", "float64", *_MOMENTS)


def dtype_of(name: str) -> Any | None:
    """Return the dtype of a name; None: `docs/schema.md` does not list it.

    >>> dtype_of("int8"), dtype_of("period[D]"), dtype_of("no such dtype")
    (dtype('int8'), None, None)
    """
    types = pd.api.types  # before the try: that pandas cannot be loaded is told as such
    try:
        dtype: Any = types.pandas_dtype(name)
    except Exception:  # which ones pandas raises for any text is not documented
        return None
    if isinstance(dtype, np.dtype):
        fits = dtype.kind in "iu" or dtype.name in _PLAIN or name == "str"
    elif isinstance(dtype, pd.ArrowDtype):
        fits = _is_allowed_arrow(dtype.pyarrow_dtype)
    else:
        whole = types.is_integer_dtype(dtype) and not isinstance(dtype, pd.SparseDtype)
        floats, others = pd.Float32Dtype | pd.Float64Dtype, pd.StringDtype | pd.CategoricalDtype
        fits = whole or isinstance(dtype, pd.BooleanDtype | floats | others | pd.DatetimeTZDtype)
    return dtype if fits else None


def as_series(values: Sequence[object], dtype: Any) -> pd.Series[Any]:
    """Return values, None for a gap, in a dtype of `dtype_of`.

    Moments are of the clock of the dtype's zone. An hour that the zone skips is read as the next
    one; an hour that it has twice, as the first of the two.
    """
    moments = getattr(dtype, "pyarrow_dtype", dtype)  # of Arrow or of pandas
    if getattr(moments, "tz", None) is None:
        return pd.Series(list(values), dtype=dtype)
    clock: pd.Series[Any] = pd.Series(list(values), dtype=f"datetime64[{moments.unit}]")
    first = np.ones(len(clock), dtype=bool)
    moments_in_zone = clock.dt.tz_localize(moments.tz, ambiguous=first, nonexistent="shift_forward")
    series: pd.Series[Any] = moments_in_zone.astype(dtype)
    return series


def _is_allowed_arrow(arrow: Any) -> bool:
    from pyarrow import types

    number = types.is_integer(arrow) or types.is_float32(arrow) or types.is_float64(arrow)
    text = types.is_string(arrow) or types.is_large_string(arrow)
    moment = types.is_date32(arrow) or types.is_timestamp(arrow)
    return bool(types.is_boolean(arrow) or number or text or moment)
