"""What a row is: a text for each column. Each value is spelled by itself, whatever else its column holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import MAXYEAR, date, timedelta
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

from queries.encoding import spell
from queries.late import pd
from smalldb.schema.pieces import Fields

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


def spelled(fields: Fields, decimal: str = ".") -> tuple[npt.NDArray[np.intp], list[str]] | None:
    """Return the index of each field's text among the texts that occur, and these; None: no single values.

    The text of a field depends on its value and on the dtype of its column, which is public, and on no other
    field. A gap is the empty text. Numbers that are no texts get this decimal sign.

    >>> spelled(pd.Series([True, 1, "1", None], dtype=object))
    (array([0, 1, 1, 2]), ['True', '1', ''])
    """
    column = fields.array if isinstance(fields, pd.Series) else fields
    if isinstance(column, pd.Categorical):
        found = spelled(pd.Series(column.categories), decimal)
        if found is None:
            return None
        indices, texts = found
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
        texts = [
            "" if gap else as_field(value, decimal)
            for value, gap in zip(values, pd.isna(values), strict=True)
        ]
    else:
        if kinds != {str}:
            if any(map(_is_list, kinds)):
                return None
            values = _texts(values, decimal)
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


def _texts(values: npt.NDArray[Any], decimal: str) -> npt.NDArray[Any]:
    texts = np.empty(len(values), dtype=object)
    texts[:] = [as_field(value, decimal) for value in values.tolist()]
    texts[pd.isna(values)] = ""
    return texts


def _is_list(kind: type) -> bool:
    return issubclass(kind, Iterable) and not issubclass(kind, str | bytes)
