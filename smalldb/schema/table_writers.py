"""Writing released tables as files: a column writes its own texts, and its dtype has no say in them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from queries.late import pd
from smalldb.schema.fields import spelled
from smalldb.schema.file_format import COMMA, USUAL, FileFormat, agreed
from smalldb.schema.kinds import Cuts, Integers
from smalldb.schema.mapping import Schema
from smalldb.schema.readers.compressed import check_compressing, compress, parted
from smalldb.schema.readers.reader import of_extra
from smalldb.schema.readers.registry import CSV, SUFFIXES, reader_of
from smalldb.schema.records import signs_of
from smalldb.schema.schema_columns import Column
from smalldb.schema.typed_tables import TYPED, check_typed, typed_file

SPELLED = ("csv", "jsonl")  # as texts, which may be compressed
FORMATS = (*SPELLED, "parquet", "arrow", *TYPED)
_ARROW = {"parquet": "Parquet files", "arrow": "Arrow files"}
_PIECE = 1 << 14  # rows whose texts are made together
_RUN = re.compile(r"[=+\-@\t\r]")  # what a spreadsheet takes for the beginning of a formula
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?")
NAMED = f".{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}, the first two also as .gz, .zst or .zip"


def form_of(path: str | None) -> str:
    """Return the format that the name of an output asks for, such as "csv" or "csv.gz"; CSV for none."""
    stem, packed = ("", "") if path is None else parted(path)
    suffix = os.path.splitext(stem)[1].lower()
    reader = SUFFIXES.get(suffix or CSV.suffixes[0])
    if reader is None or reader.name not in FORMATS or (packed and not reader.lines):
        raise ValueError(f"a table is written as {NAMED}, not {path!r}")
    check_compressing(packed)
    if reader.name in _ARROW:
        with of_extra("pyarrow", "smalldb-dp[parquet]", _ARROW[reader.name]):
            import pyarrow  # noqa: F401
    check_typed(reader.name)
    return reader.name + packed


def form_like(path: str | None) -> str:
    """Return the format that tables like that of a file are written in.

    CSV for what can only be read, and where no file is named (the schema then states a database).
    """
    if path is None:
        return form_of(None)
    name = reader_of(path).name
    return form_of(f"table.{name}{parted(path)[1]}") if name in FORMATS else form_of(None)


def written(
    frame: pd.DataFrame,
    form: str,
    schema: Schema | None = None,
    *,
    file: FileFormat = USUAL,
    guard: bool = False,
) -> bytes:
    """Write a released table: the content of a file in one of the `FORMATS`."""
    if form in _ARROW:
        return _arrow(frame.rename(columns=str), form)
    known = {} if schema is None else {column.name: column for column in schema.released}
    if form in TYPED:
        return typed_file(frame, known, form)
    stated = file if schema is None else agreed(file, schema.file)
    return spelled_out(_fields(frame, known), form, file=stated, guard=guard)


def _arrow(frame: pd.DataFrame, form: str) -> bytes:
    with of_extra("pyarrow", "smalldb-dp[parquet]", _ARROW[form]):
        from pyarrow import BufferOutputStream, Table, ipc
    if form == "parquet":
        return frame.to_parquet(engine="pyarrow", index=False)
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
            f"CSV of this quote or encoding ({file.told}) cannot hold a name or a value"
        ) from error


def _quoted(fields: Sequence[str], file: FileFormat, width: int) -> list[str]:
    """Quote fields as the `csv` module does, which quotes an empty one that is alone in its line."""
    text = io.StringIO()
    writer = csv.writer(text, **signs_of(file.separator or COMMA, file.quote))
    alone, found = ["x"] * (width > 1), list[str]()
    for field in fields:
        text.seek(0)
        text.truncate()
        writer.writerow([field, *alone])
        found.append(text.getvalue()[: -2 * len(alone) - 2])
    return found


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
        yield from zip(*(own[some].tolist() for own, some in zip(known, codes, strict=True)), strict=True)


def _fields(frame: pd.DataFrame, known: Mapping[str, Column]) -> Iterator[Spelled]:
    """Yield the columns of a table, those of a schema in its spelling."""
    for i, label in enumerate(frame.columns):
        name, values = str(label), frame.iloc[:, i]
        if name in known:
            column = known[name]
            yield Spelled(
                name, *column.written(values), column.textual, (*column.gaps, "")[0], _is_number(column)
            )
        else:
            yield _plainly(values, name)


def _is_number(column: Column) -> bool:
    return not column.textual and isinstance(column.kind, Cuts | Integers)


def _plainly(values: pd.Series[Any], name: str) -> Spelled:
    """Spell the values of a column that no schema describes."""
    found, kind = spelled(values), values.dtype.kind
    if found is None:
        raise ValueError(f"column {name!r} holds what is no single value")
    codes, texts = found
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
