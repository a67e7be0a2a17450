"""A column of a data frame as codes, and back."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from queries.columns import Bits, Column
from queries.expressions import suggestion
from queries.late import pd

_OTHERS = " (others: schema=..., or domain=Domain([Column(name, categories), ...]))"


class DataError(ValueError):
    """The table has a value outside the declared universe.

    Its text names a column, never a value. That it was raised at all depends on the data, so it is
    for the curator, and it says so.
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} (this looked at the data: for the curator only)")


def check_columns(frame: pd.DataFrame, names: tuple[str, ...], word: str) -> None:
    """Refuse a table that has not these columns, and no others."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"expected a pandas DataFrame, not {type(frame).__name__}")
    if not frame.columns.is_unique:
        raise ValueError("the table has two columns of one name")
    given, known = list(frame.columns), set(names)
    for name in names:
        if name not in given:
            raise ValueError(f"the table has no column {name!r}{suggestion(name, map(str, given))}")
    for column in given:
        if column not in known:
            raise ValueError(f"column {column!r} is not {word} of the domain: select the columns to release")


def read_column(series: pd.Series, column: Column) -> npt.NDArray[np.integer]:
    """Return the code of each value, shape (n,).

    A yes/no column is bool or 0/1 integers. Labels are texts (a categorical, too), or integers and bools that
    are spelled like them. Integers are whole numbers. Bins take numbers, or their labels.
    """
    if column.yes_no:
        return _zero_one(series, column.name)
    dtype, name = series.dtype, column.name
    plain = dtype.kind if isinstance(dtype, np.dtype) else ""
    whole = plain in ("b", "i", "u") or _is_nullable(dtype)
    number = whole or plain == "f" or isinstance(dtype, pd.Float32Dtype | pd.Float64Dtype)
    text = plain == "O" or isinstance(dtype, pd.StringDtype | pd.CategoricalDtype)
    expected = {
        "labels": ("the labels of its categories", text or whole),
        "integers": (f"integers from 0 to {column.size - 1}", whole and plain != "b"),
        "cuts": ("numbers, or the labels of its bins", text or number),
    }[column.kind]
    if not expected[1]:
        kind = dtype if isinstance(dtype, np.dtype) else type(dtype).__name__  # whose text may hold values
        raise TypeError(f"column {name!r} has dtype {kind}: expected {expected[0]}")
    if series.isna().any():
        raise DataError(f"column {name!r} has missing values: expected {expected[0]}")
    if column.kind == "integers":
        values = _plain(series)
        codes: npt.NDArray[np.integer] = np.where((values >= 0) & (values < column.size), values, -1)
    elif column.kind == "cuts" and number:
        codes = _bins(_plain(series), column)
    else:
        codes = _labelled(series, column)
    if (codes < 0).any():
        raise DataError(f"column {name!r} has values that are none of its categories: expected {expected[0]}")
    return codes


def write_column(codes: npt.NDArray[np.integer], column: Column, like: pd.Series | None) -> pd.Series:
    """Write codes as 0/1, integers or labels (of bins, too)."""
    if column.yes_no or column.kind == "integers":
        values = pd.Series(codes.astype(np.int64))
    else:
        values = pd.Series(np.array(column.labels, dtype=object)[codes], dtype="str")
    if like is None or (
        column.kind == "cuts" and not isinstance(like.dtype, pd.StringDtype | pd.CategoricalDtype)
    ):
        return values
    if isinstance(like.dtype, pd.CategoricalDtype):  # the categories of the data may be those that occur
        return values.astype(pd.CategoricalDtype(list(column.labels), ordered=column.ordered))
    if not column.yes_no and not _holds(like.dtype, column):
        return values
    if like.dtype.kind == "b" and not column.yes_no:
        return (values == "True").astype(like.dtype)
    return values.astype(like.dtype)


def _holds(dtype: Any, column: Column) -> bool:
    """Tell whether a dtype can hold every category of a column, by its label."""
    if dtype.kind == "O" or isinstance(dtype, pd.StringDtype):
        return True
    if dtype.kind == "b":
        return {*column.labels} <= {"True", "False"}
    try:
        every = pd.Series([*map(int, column.labels)]).astype(dtype).tolist()
    except (ValueError, TypeError, OverflowError):
        return False
    return [*map(str, every)] == [*column.labels]  # integers that are too large may wrap around


def _labelled(series: pd.Series, column: Column) -> npt.NDArray[np.integer]:
    labels = pd.Index(column.labels, dtype=object)
    if isinstance(series.dtype, pd.CategoricalDtype):
        spelled = pd.Index([spell(value) for value in series.cat.categories], dtype=object)
        code_of = labels.get_indexer(spelled)
        codes: npt.NDArray[np.integer] = code_of[series.cat.codes.to_numpy()]
        return codes
    values = series
    if series.dtype == object and {*map(type, series.tolist())} != {str}:
        # equal objects of several types, such as True and 1, are spelled apart: each by itself
        values = pd.Series([spell(value) for value in series.tolist()], dtype=object)
    inverse, distinct = pd.factorize(values)
    spelled = pd.Index([spell(value) for value in distinct], dtype=object)
    found: npt.NDArray[np.integer] = labels.get_indexer(spelled)
    return found[inverse] if len(found) else np.zeros(0, dtype=np.int64)


def spell(value: object) -> str:
    """Spell a value as a CSV file does; a whole float, which may stand beside gaps, as an integer."""
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 1 << 53:
        return str(int(value))
    return str(value)


def _bins(values: npt.NDArray[Any], column: Column) -> npt.NDArray[np.integer]:
    """Return the bin of each number, compared exactly: beyond 2^53 no double may stand for an integer."""
    if values.dtype.kind == "f":
        edges = np.array([float(cut) for cut in column.cuts])
        short = [Fraction(edge) < cut for edge, cut in zip(edges.tolist(), column.cuts, strict=True)]
        return np.searchsorted(np.where(short, np.nextafter(edges, np.inf), edges), values, side="right")
    values = values.astype(np.int64) if values.dtype.kind == "b" else values
    limits, least = np.iinfo(values.dtype), [ceil(cut) for cut in column.cuts]
    reached = sum(edge <= limits.min for edge in least)
    inside = [edge for edge in least if limits.min < edge <= limits.max]
    return reached + np.searchsorted(np.array(inside, dtype=values.dtype), values, side="right")


def _is_nullable(dtype: object) -> bool:
    """Tell whether a dtype is one of pandas' own for truth and whole numbers."""
    whole = (pd.Int8Dtype, pd.Int16Dtype, pd.Int32Dtype, pd.Int64Dtype)
    positive = (pd.UInt8Dtype, pd.UInt16Dtype, pd.UInt32Dtype, pd.UInt64Dtype)
    return isinstance(dtype, (pd.BooleanDtype, *whole, *positive))


def _plain(series: pd.Series) -> npt.NDArray[np.integer]:
    dtype = series.dtype
    plain: npt.NDArray[np.integer] = series.to_numpy(dtype if isinstance(dtype, np.dtype) else dtype.type)  # type: ignore[arg-type]
    return plain


def _zero_one(column: pd.Series, name: str) -> Bits:
    dtype = column.dtype
    plain = isinstance(dtype, np.dtype) and dtype.kind in "biu"
    # a list of what is allowed: categories, for one, hold the values that occur
    if not plain and not _is_nullable(dtype):
        kind = dtype if isinstance(dtype, np.dtype) else type(dtype).__name__  # whose text may hold values
        raise TypeError(f"column {name!r} has dtype {kind}: expected bool or 0/1 integers{_OTHERS}")
    if column.isna().any():
        raise DataError(f"column {name!r} has missing values: expected bool or 0/1 throughout")
    values = _plain(column)
    if not ((values == 0) | (values == 1)).all():
        raise DataError(f"column {name!r} has values other than 0 and 1{_OTHERS}")
    return values.astype(np.uint8)
