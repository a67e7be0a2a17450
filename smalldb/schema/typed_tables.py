"""Released tables as files with types of their own: workbooks, and statistical files with labels."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

import numpy as np

from queries.late import pd
from smalldb.schema.kinds import Categories
from smalldb.schema.readers.reader import of_extra
from smalldb.schema.schema_columns import Column

TYPED = ("xlsx", "dta", "sav")
_FIRST = datetime(1900, 3, 1)  # before it, Excel has a day that there was not


@final
@dataclass(frozen=True, slots=True)
class Typed:
    """A column that is to be written."""

    values: list[object]  # shape (rows,), of objects: texts, numbers, truth, dates; None is a gap
    labels: Mapping[str | int, str] | None = None  # by code, what it means, where the values are codes


def check_typed(form: str) -> None:
    """Refuse a format whose package is not installed: ValueError."""
    if form == "xlsx":
        with of_extra("openpyxl", "smalldb-dp[excel]", "Excel files"):
            import openpyxl  # noqa: F401
    if form == "sav":
        with of_extra("pyreadstat", "smalldb-dp[stats]", "SPSS files"):
            import pyreadstat  # noqa: F401


def typed_file(frame: pd.DataFrame, known: Mapping[str, Column], form: str) -> bytes:
    """Write a released table in one of the formats `TYPED`."""
    check_typed(form)
    columns = {
        str(label): _typed(frame.iloc[:, i], known.get(str(label)), form == "xlsx")
        for i, label in enumerate(frame.columns)
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return {"xlsx": _workbook, "dta": _stata, "sav": _spss}[form](columns)
    except Exception as error:  # which ones other libraries raise for any value is not documented
        raise ValueError(f"a name or a value cannot be written as {form}") from error


def _typed(values: pd.Series[Any], column: Column | None, in_sheet: bool) -> Typed:
    if column is None:
        plain = values.astype(object)
        return Typed(plain.where(plain.notna(), None).tolist())
    codes, fields = column.written(values)
    if (
        column.textual and isinstance(values.dtype, np.dtype) and values.dtype.kind == "M"
    ):  # moments of a time zone are spelled out
        moments = values.astype(object)
        return Typed([None if gap else each for gap, each in zip(values.isna(), moments, strict=True)])
    found: list[object] = [*fields]
    labels = None if in_sheet else _labels(column)
    if labels is not None:
        back = {label: code for code, label in labels.items()}
        found = [None if field is None else back[field] for field in fields]
    elif not column.textual:
        truth: dict[str, object] = {"true": True, "false": False}
        found = [None if text is None else truth.get(text) for text in fields]
        if {*fields} - {*truth, None}:
            found = [None if text is None else _number(text, in_sheet) for text in fields]
    return Typed([found[code] for code in codes.tolist()], labels)


def _labels(column: Column) -> dict[str | int, str] | None:
    """Return the labels of codes: those of categories that all are groups, by the first of each."""
    kind = column.kind
    if not isinstance(kind, Categories) or len(kind.groups) < len(kind.listed):
        return None
    labels = {codes[0]: name for name, codes in kind.groups if codes}
    one_type = len({type(code) for code in labels}) == 1
    return labels if len(labels) == len(kind.groups) and one_type else None


def _number(text: str, in_sheet: bool) -> int | float | str:
    """Read a number; one of more digits than Excel and openpyxl keep stays a text in a sheet."""
    found = float(text)
    if in_sheet and (abs(found) >= 1e15 or Decimal(text) != Decimal(f"{found:.16g}")):
        return text
    return int(text) if re.fullmatch("-?[0-9]+", text) else found


def _workbook(columns: Mapping[str, Typed]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")

    def cell(value: object) -> object:
        if isinstance(value, pd.Timestamp):
            value = value.to_pydatetime()
        if isinstance(value, datetime):
            if value < _FIRST:
                return value.isoformat()
            return value.date() if value == datetime(value.year, value.month, value.day) else value
        if isinstance(value, str) and value.startswith("="):
            made = WriteOnlyCell(sheet, value)
            made.data_type = "s"  # a text, and no formula
            return made
        return value.item() if isinstance(value, np.generic) else value

    sheet.append([cell(name) for name in columns])
    for row in zip(*(column.values for column in columns.values()), strict=True):
        filled = (
            row if any(value is not None for value in row) else (" ", *row[1:])
        )  # else it would be no row
        sheet.append([cell(value) for value in filled])
    target = BytesIO()
    book.save(target)
    return target.getvalue()


def _frame(columns: Mapping[str, Typed]) -> tuple[pd.DataFrame, set[str]]:
    """Return columns of types that statistical files have, and which of them are days."""
    made, days = {}, set()
    for name, column in columns.items():
        held = [value for value in column.values if value is not None]
        if any(isinstance(value, datetime) for value in held):
            given: Any = column.values
            moments = pd.Series(pd.to_datetime(given)).astype("datetime64[ms]")
            made[name] = moments
            if (moments.dropna().dt.normalize() == moments.dropna()).all():
                days.add(name)
        elif all(isinstance(value, str) for value in held) and (held or column.labels is None):
            made[name] = pd.Series([value or "" for value in column.values], dtype=object)
        else:
            whole = len(held) == len(column.values) and all(not isinstance(value, float) for value in held)
            if any(isinstance(value, int) and abs(value) > 1 << 53 for value in held):
                raise ValueError("statistical files hold whole numbers up to 2^53")
            numbers = [np.nan if value is None else value for value in column.values]
            made[name] = pd.Series(numbers, dtype="int64" if whole else "float64")
    return pd.DataFrame(made), days


def _stata(columns: Mapping[str, Typed]) -> bytes:
    frame, days = _frame(columns)
    numbers = {name for name, column in columns.items() if frame[name].dtype.kind in "if"}
    moments = {name: "td" if name in days else "tc" for name in frame if frame[name].dtype.kind == "M"}
    labels = {name: columns[name].labels for name in columns if columns[name].labels and name in numbers}
    target = BytesIO()
    options: dict[str, Any] = {"convert_dates": moments or None, "value_labels": labels or None}
    frame.to_stata(target, write_index=False, version=118, **options)
    return target.getvalue()


def _spss(columns: Mapping[str, Typed]) -> bytes:
    import pyreadstat

    frame, days = _frame(columns)
    for name in days:
        frame[name] = frame[name].astype(object).map(lambda each: None if pd.isna(each) else each.date())
    labels: Any = {name: dict(column.labels) for name, column in columns.items() if column.labels}
    with TemporaryDirectory(prefix="smalldb-") as folder:
        path = os.path.join(folder, "table.sav")
        pyreadstat.write_sav(frame, path, variable_value_labels=labels)
        return Path(path).read_bytes()
