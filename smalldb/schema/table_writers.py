"""Writing released tables as files: a column writes its own texts, and its dtype has no say in them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from queries.arrays import pd
from smalldb.files import of_extra
from smalldb.schema.fields import spelled
from smalldb.schema.file_format import COMMA, USUAL, FileFormat, agreed
from smalldb.schema.kinds import Categories, Cuts, Integers
from smalldb.schema.mapping import Schema
from smalldb.schema.readers.compressed import compress, parted, zstandard
from smalldb.schema.readers.csv_files import signs_of
from smalldb.schema.readers.registry import CSV, SUFFIXES, reader_of
from smalldb.schema.schema_columns import Column

_FIRST = datetime(1900, 3, 1)  # before it, Excel has a day that there was not


@final
@dataclass(frozen=True, slots=True)
class Typed:
    """A column that is to be written."""

    values: list[object]  # shape (rows,), of objects: texts, numbers, truth, dates; None is a gap
    labels: Mapping[str | int, str] | None = None  # by code, what it means, where the values are codes


def _typed_file(frame: pd.DataFrame, known: Mapping[str, Column], sheet: str | None, form: str) -> bytes:
    """Write a released table in a format that has types."""
    columns = {
        str(label): _typed(frame.iloc[:, i], known.get(str(label)), form == "xlsx")
        for i, label in enumerate(frame.columns)
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if form == "xlsx":
                return _workbook(columns, sheet)
            return {"dta": _stata, "sav": _spss}[form](columns)
    except Exception as error:  # which ones other libraries raise for any value is not documented
        raise ValueError(f"a name or a value cannot be written as {form}") from error


def _typed(values: pd.Series[Any], column: Column | None, in_sheet: bool) -> Typed:
    if column is None:
        plain = values.astype(object)
        return Typed(plain.where(plain.notna(), None).tolist())
    codes, fields = column.written(values)
    if column.textual and isinstance(values.dtype, np.dtype) and values.dtype.kind == "M":
        moments = values.astype(object)  # those of a time zone are spelled out
        return Typed([None if gap else each for gap, each in zip(values.isna(), moments, strict=True)])
    labels = None if in_sheet else _labels(column)
    read: Callable[[str], object] = str
    if labels is not None:
        read = {label: code for code, label in labels.items()}.__getitem__
    elif not column.textual:
        truth = {"true": True, "false": False}
        read = partial(_number, in_sheet=in_sheet) if {*fields} - {*truth, None} else truth.__getitem__
    distinct = [None if field is None else read(field) for field in fields]
    return Typed([distinct[code] for code in codes.tolist()], labels)


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
    number = float(text)
    if in_sheet and (abs(number) >= 1e15 or Decimal(text) != Decimal(f"{number:.16g}")):
        return text
    return int(text) if re.fullmatch("-?[0-9]+", text) else number


def _workbook(columns: Mapping[str, Typed], title: str | None) -> bytes:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet(title or "Sheet1")

    def cell(value: object) -> object:
        if isinstance(value, pd.Timestamp):
            value = value.to_pydatetime()
        if isinstance(value, datetime):
            if value < _FIRST:
                return value.isoformat()
            return value.date() if value == datetime(value.year, value.month, value.day) else value
        if isinstance(value, str) and value.startswith("="):
            text_cell = WriteOnlyCell(sheet, value)
            text_cell.data_type = "s"  # a text, and no formula
            return text_cell
        return value.item() if isinstance(value, np.generic) else value

    sheet.append([cell(name) for name in columns])
    for row in zip(*(column.values for column in columns.values()), strict=True):
        if all(value is None for value in row):
            row = (" ", *row[1:])  # else it would be no row
        sheet.append([cell(value) for value in row])
    target = BytesIO()
    book.save(target)
    return target.getvalue()


def _frame(columns: Mapping[str, Typed]) -> tuple[pd.DataFrame, set[str]]:
    """Return columns of types that statistical files have, and which of them are days."""
    series, days = {}, set()
    for name, column in columns.items():
        held = [value for value in column.values if value is not None]
        if any(isinstance(value, datetime) for value in held):
            values: Any = column.values
            moments = pd.Series(pd.to_datetime(values)).astype("datetime64[ms]")
            series[name] = moments
            if (moments.dropna().dt.normalize() == moments.dropna()).all():
                days.add(name)
        elif all(isinstance(value, str) for value in held) and (held or column.labels is None):
            series[name] = pd.Series([value or "" for value in column.values], dtype=object)
        else:
            whole = len(held) == len(column.values) and all(not isinstance(value, float) for value in held)
            if any(isinstance(value, int) and abs(value) > 1 << 53 for value in held):
                raise ValueError("statistical files hold whole numbers up to 2^53")
            numbers = [np.nan if value is None else value for value in column.values]
            series[name] = pd.Series(numbers, dtype="int64" if whole else "float64")
    return pd.DataFrame(series), days


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


@final
@dataclass(frozen=True, slots=True)
class Writer:
    """How a format is written that is not spelled out in texts."""

    # a table, its columns of a schema, and what the sheet of a workbook is called
    write: Callable[[pd.DataFrame, Mapping[str, Column], str | None], bytes]
    # the package that it needs, its extra, and what the files are called; None: none
    needs: tuple[str, str, str] | None = None

    def check(self) -> None:
        """Refuse a format whose package is not installed: ValueError."""
        if self.needs is not None:
            package, extra, what = self.needs
            with of_extra(package, extra, what):
                if find_spec(package) is None:
                    raise ImportError


WRITERS: dict[str, Writer] = {
    "parquet": Writer(
        lambda frame, *_: frame.to_parquet(engine="pyarrow", index=False),
        ("pyarrow", "parquet", "Parquet files"),
    ),
    "arrow": Writer(lambda frame, *_: _arrow(frame), ("pyarrow", "parquet", "Arrow files")),
    "xlsx": Writer(partial(_typed_file, form="xlsx"), ("openpyxl", "excel", "Excel files")),
    "dta": Writer(partial(_typed_file, form="dta")),
    "sav": Writer(partial(_typed_file, form="sav"), ("pyreadstat", "stats", "SPSS files")),
}
SPELLED = ("csv", "jsonl")  # as texts, which may be compressed
FORMATS = (*SPELLED, *WRITERS)
_PIECE = 1 << 14  # rows whose texts are made together
_RUN = re.compile(r"[=+\-@\t\r]")  # what a spreadsheet takes for the beginning of a formula
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?")
NAMED = f".{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}, the first two also as .gz, .zst or .zip"


def form_of(path: str | None) -> str:
    """Return the format that the name of an output asks for, such as "csv" or "csv.gz"; CSV for none."""
    stem, packed = ("", "") if path is None else parted(path)
    suffix = os.path.splitext(stem)[1].lower()
    reader = SUFFIXES.get(suffix or CSV.suffixes[0])
    if reader is None or reader.name not in {*SPELLED, *WRITERS} or (packed and not reader.lines):
        raise ValueError(f"a table is written as {NAMED}, not {path!r}")
    if packed == ".zst":
        zstandard()
    if reader.name in WRITERS:
        WRITERS[reader.name].check()
    return reader.name + packed


def form_like(path: str | None) -> str:
    """Return the format that tables like that of a file are written in; CSV for what can only be read."""
    if path is None:
        return form_of(None)
    name = reader_of(path).name
    return form_of(f"table.{name}{parted(path)[1]}") if name in {*SPELLED, *WRITERS} else form_of(None)


def written(
    frame: pd.DataFrame,
    form: str,
    schema: Schema | None = None,
    *,
    file: FileFormat = USUAL,
    guard: bool = False,
) -> bytes:
    """Write a released table: the content of a file in one of the `FORMATS`."""
    known = {} if schema is None else {column.name: column for column in schema.released}
    stated = file if schema is None else agreed(file, schema.file)
    if form in WRITERS:
        WRITERS[form].check()
        return WRITERS[form].write(frame.rename(columns=str), known, stated.sheet)
    return spelled_out(_fields(frame, known), form, file=stated, guard=guard)


def _arrow(frame: pd.DataFrame) -> bytes:
    from pyarrow import BufferOutputStream, Table, ipc

    table, target = Table.from_pandas(frame, preserve_index=False), BufferOutputStream()
    with ipc.new_file(target, table.schema) as writer:
        writer.write_table(table)
    content: bytes = target.getvalue().to_pybytes()
    return content


@dataclass(frozen=True, slots=True)
class Spelled:
    """A column that is to be written."""

    name: str
    codes: npt.NDArray[np.integer]  # the index of each row's field among `fields`, shape (rows,)
    fields: Sequence[str | None]  # the distinct fields; None: a gap
    textual: bool = False  # whether they are texts, which JSON puts in quotes
    gap: str = ""  # how CSV writes a gap
    # whether they are numbers as programs write them, which the decimal sign of a file is for
    number: bool = False


def spelled_out(
    columns: Iterable[Spelled], form: str, *, file: FileFormat = USUAL, guard: bool = False
) -> bytes:
    """Write columns of equal length as CSV or JSON lines; else as `written`."""
    lines, packed = parted(form)
    if lines == "csv":
        return compress(_csv([*columns], file, guarded if guard else str), packed, "table.csv")
    if lines == "jsonl":
        return compress(_json_lines(columns), packed, "table.jsonl")
    raise ValueError(f"a table is written as {', '.join(FORMATS)}, not {form!r}")


def _csv(columns: Sequence[Spelled], file: FileFormat, shown: Callable[[str], str]) -> bytes:
    """Write lines; each distinct field of a column is quoted once."""
    sign, texts, content = file.separator or COMMA, list[list[str]](), io.BytesIO()
    lines = io.TextIOWrapper(content, file.codec, newline="", write_through=True)
    try:
        lines.write(sign.join(_quoted([shown(column.name) for column in columns], file, len(columns))) + "\n")
        for column in columns:
            point = file.decimal if column.number else "."
            fields = [column.gap if field is None else field.replace(".", point) for field in column.fields]
            texts.append(_quoted([*map(shown, fields)], file, len(columns)))
        rows = map(sign.join, _rows(columns, texts))
        while piece := [*islice(rows, _PIECE)]:
            lines.write("\n".join([*piece, ""]))
        return content.getvalue()
    except (csv.Error, UnicodeEncodeError) as error:
        raise ValueError(
            f"CSV of this quote or encoding ({file.encoding_in_words}) cannot hold a name or a value"
        ) from error


def _quoted(fields: Sequence[str], file: FileFormat, width: int) -> list[str]:
    """Quote fields as the `csv` module does, which quotes an empty one that is alone in its line."""
    echo: Any = SimpleNamespace(write=str)  # `writerow` returns what this does
    writer, others = csv.writer(echo, **signs_of(file.separator or COMMA, file.quote)), ["x"] * (width > 1)
    return [writer.writerow([field, *others])[: -2 * len(others) - 2] for field in fields]


def _json_lines(columns: Iterable[Spelled]) -> bytes:
    columns, texts, lines = [*columns], [], io.BytesIO()
    for column in columns:
        key = json.dumps(column.name, ensure_ascii=False)
        values = [
            "null" if field is None else json.dumps(field, ensure_ascii=False) if column.textual else field
            for field in column.fields
        ]
        texts.append([f"{key}:{value}" for value in values])
    for row in _rows(columns, texts):
        lines.write(f"{{{','.join(row)}}}\n".encode())
    return lines.getvalue()


def _rows(columns: Sequence[Spelled], texts: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield rows of texts, made in pieces; of each column, the texts of its fields."""
    known = [np.array(fields, dtype=object) for fields in texts]
    for start in range(0, max((len(column.codes) for column in columns), default=0), _PIECE):
        codes = [column.codes[start : start + _PIECE] for column in columns]
        yield from zip(
            *(texts_of_column[some].tolist() for texts_of_column, some in zip(known, codes, strict=True)),
            strict=True,
        )


def _fields(frame: pd.DataFrame, known: Mapping[str, Column]) -> Iterator[Spelled]:
    """Yield the columns of a table, those of a schema in its spelling."""
    for i, label in enumerate(frame.columns):
        name, values = str(label), frame.iloc[:, i]
        if name in known:
            column = known[name]
            number = not column.textual and isinstance(column.kind, Cuts | Integers)
            gap = (*column.gaps, "")[0]
            yield Spelled(name, *column.written(values), column.textual, gap, number)
        else:
            yield plainly(values, name)


def plainly(values: pd.Series[Any], name: str) -> Spelled:
    """Spell the values of a column that no schema describes."""
    (codes, texts), kind = spelled(values, name), values.dtype.kind
    if kind == "b":
        texts = [text.lower() for text in texts]
    elif kind == "M":  # a column of days is written as days
        texts = [re.sub(r"\.0+\b", "", text.replace(" ", "T")) for text in texts]
        if all(text[10:] in ("", "T00:00:00") for text in texts):
            texts = [text[:10] for text in texts]
    return Spelled(name, codes, [text or None for text in texts], kind not in "biuf")


def guarded(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run; numbers stay as they are.

    >>> guarded("=1+1"), guarded("-5"), guarded("-2+3"), guarded("a=b")
    ("'=1+1", '-5', "'-2+3", 'a=b')
    """
    return f"'{text}" if _RUN.match(text) and not _NUMBER.fullmatch(text) else text
