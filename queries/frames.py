"""Tables of pandas and its kin, and the universe and rows that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from typing import Any, cast

import numpy as np

from queries.arrays import pd
from queries.domain import Domain
from queries.rows import Rows


def as_frame(table: object) -> pd.DataFrame:
    """Return a table of pandas as it is, another library's by its ``to_pandas()``; names that are texts."""
    frame = table
    if isinstance(table, pd.DataFrame) and any(isinstance(dtype, pd.ArrowDtype) for dtype in table.dtypes):
        frame = _without_arrow(table)
    if not isinstance(table, pd.DataFrame) and hasattr(table, "to_pandas"):
        match type(table).__module__.partition(".")[0]:
            case "pyarrow":
                frame = from_arrow(table)
            case "polars":
                frame = from_arrow(cast(Any, table).to_arrow())
            case _:
                frame = table.to_pandas()
    if not isinstance(frame, pd.DataFrame):
        expected = "a pandas DataFrame, a table with to_pandas(), or queries.Rows"
        read = ": read the file first" if isinstance(table, str | PathLike) else ""
        raise TypeError(f"expected {expected}, not {type(table).__name__}{read}")
    texts = [*map(str, frame.columns)]
    return frame if texts == [*frame.columns] else frame.set_axis(texts, axis=1)


def _without_arrow(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of pandas with the nullable types of pandas in place of Arrow's; by dtypes alone."""
    from pyarrow import types

    frame = table.copy(deep=False)
    for i, dtype in enumerate(table.dtypes):
        if not isinstance(dtype, pd.ArrowDtype):
            continue
        arrow, column = dtype.pyarrow_dtype, table.iloc[:, i]
        if types.is_dictionary(arrow):
            arrow = arrow.value_type
            column = column.astype(pd.ArrowDtype(arrow))
        if types.is_date(arrow) or types.is_time(arrow):
            frame.isetitem(i, _moments(column.array.__arrow_array__()))
            continue
        plain = pd.api.types.pandas_dtype(_without_arrow_dtype(arrow))
        if hasattr(plain, "__from_arrow__"):  # astype would take large integers beside a gap for floats
            frame.isetitem(i, plain.__from_arrow__(column.array.__arrow_array__()))
        else:
            frame.isetitem(i, column.astype(plain).array)
    return frame


def _without_arrow_dtype(arrow: Any) -> Any:
    """Return the dtype of pandas for one of Arrow that may have gaps; object where pandas has none."""
    from pyarrow import types

    if types.is_boolean(arrow):
        return "boolean"
    if types.is_integer(arrow):  # int32, uint8
        return str(arrow).replace("int", "Int").replace("uI", "UI")
    if types.is_string(arrow) or types.is_large_string(arrow):
        return "string"  # "str" is a dtype of NumPy before pandas 3, and a gap the text "<NA>"
    if types.is_floating(arrow):
        return "Float32" if arrow.bit_width <= 32 else "Float64"
    if types.is_timestamp(arrow):
        return f"datetime64[{arrow.unit}]" if arrow.tz is None else pd.DatetimeTZDtype(arrow.unit, arrow.tz)
    return object


def in_library_of(frame: pd.DataFrame, like: object) -> Any:
    """Return a table of pandas as one of the library of `like`: its names, and types that hold all values."""
    match type(like).__module__.partition(".")[0]:
        case "polars":
            return _as_polars(frame, like)
        case "pyarrow":
            return _as_arrow(frame, like)
    if not isinstance(like, pd.DataFrame):
        return frame
    converted = frame.copy(deep=False)
    for label, dtype in like.dtypes.items():
        name = str(label)
        if name in frame and isinstance(dtype, pd.ArrowDtype) and _lends(dtype.pyarrow_dtype, frame[name]):
            with suppress(ValueError, TypeError, NotImplementedError):
                cast = frame[name].astype(dtype)
                again = cast.astype(frame[name].dtype)
                if again.where(cast.notna(), None).equals(frame[name]):  # texts beside None before pandas 3
                    converted[name] = cast
    labels = {str(label): label for label in like.columns}
    return converted.set_axis([labels.get(name, name) for name in converted.columns], axis=1)


def _lends(wanted: Any, column: pd.Series[Any]) -> bool:
    """Tell whether a type of Arrow suits a column: a type of texts suits texts alone."""
    from pyarrow import types

    numbers = isinstance(column.dtype, pd.BooleanDtype) or column.dtype.kind in "biufM"
    return not (numbers and (types.is_string(wanted) or types.is_large_string(wanted)))


def _as_arrow(frame: pd.DataFrame, like: Any) -> Any:
    from pyarrow import ArrowException, Table

    table = Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    for i, name in enumerate(table.column_names):
        column = table.column(i)
        with suppress(ArrowException, KeyError):
            wanted = like.schema.field(name).type
            cast = column.cast(wanted) if _lends(wanted, frame[name]) else column
            if cast.cast(column.type).equals(column):
                table = table.set_column(i, name, cast)
    return table


def _as_polars(frame: pd.DataFrame, like: Any) -> Any:
    from polars import Categorical, DataFrame, Series, String
    from polars.exceptions import PolarsError

    columns = []
    for name, column in frame.items():
        series = Series(str(name), column.astype(object).where(column.notna(), None).tolist())
        with suppress(PolarsError, KeyError):
            wanted = like.schema[name]
            # the codes of a Categorical follow the order in which the data's values were first seen
            keeps = wanted == Categorical or (wanted == String and series.dtype != String)
            cast = series if keeps else series.cast(wanted)
            series = cast if cast.cast(series.dtype).equals(series) else series
        columns.append(series)
    return DataFrame(columns)


def from_arrow(table: Any, **options: bool) -> pd.DataFrame:
    """Return a table of Arrow as a frame in which a value does not depend on the others of its column."""
    # Integers beside a gap stay integers: as floats large ones would lose digits. A dictionary becomes its
    # values: pandas would refuse one with a gap in it, or with both 0.0 and -0.0.
    from pyarrow import nulls, types

    moments = {}
    for i, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            field = field.with_type(field.type.value_type)
            table = table.set_column(i, field, table.column(i).cast(field.type))
        if types.is_date(field.type) or types.is_time(field.type):
            moments[i] = _moments(table.column(i))
            table = table.set_column(i, field.name, nulls(len(table)))
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True, **options)
    for i, column in moments.items():
        frame.isetitem(i, column)
    return frame


def _moments(column: Any) -> Any:
    """Return dates or times of Arrow as those of Python; of one that Python has not, the text in Arrow."""
    from pyarrow import string

    try:
        return column.to_pandas().to_numpy(dtype=object)
    except (ValueError, OverflowError):  # it may name a value, and one such value must not stop the others
        values = np.empty(len(column), dtype=object)
        values[:] = [_moment(value, string()) for value in column]
        return values


def _moment(value: Any, text: Any) -> object:
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return value.cast(text).as_py()


def is_index(names: Sequence[str]) -> bool:
    """Tell whether the first of a table's columns is an index: it has no name, or what pandas calls that."""
    return len(names) > 1 and names[0].strip() in ("", "Unnamed: 0")


def without_index(table: pd.DataFrame, domain: Domain | None) -> pd.DataFrame:
    """Return a table without a first column that is an index, unless a domain has a column of this name."""
    names = [*table.columns]
    known = domain is not None and is_index(names) and names[0] in domain.names
    return table.iloc[:, 1:] if is_index(names) and not known else table


def universe_of(data: pd.DataFrame | Rows, domain: Domain | None) -> Domain:
    """Return the universe of a table: the given one, or all its columns, each 0 or 1."""
    if domain is not None and not isinstance(domain, Domain):
        raise TypeError(f"domain must be a queries.Domain, not {type(domain).__name__}")
    if isinstance(data, Rows):
        if domain not in (None, data.domain):
            raise ValueError("domain is not the domain of the given rows")
        return data.domain
    return Domain(data.columns) if domain is None else domain


def rows_of(data: pd.DataFrame | Rows, domain: Domain) -> Rows:
    """Bring a table into the form in which data travels."""
    return data.checked() if isinstance(data, Rows) else Rows.from_frame(domain, data)
