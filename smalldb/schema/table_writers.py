"""Writing released tables as files: a column writes its own texts, and its dtype has no say in them."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from queries.late import pd
from smalldb.schema.fields import spelled
from smalldb.schema.mapping import Schema
from smalldb.schema.schema_columns import Column

# the suffix of a file's name -> its format; a name without one is that of a CSV file
SUFFIXES = {"": "csv", ".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
_RUN = re.compile(r"[=+\-@\t\r]")  # what a spreadsheet takes for the beginning of a formula
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?")
NAMED = f".{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}"


def form_of(path: str | None) -> str:
    """Return the format that the name of an output asks for; CSV for none.

    Raises
    ------
    ValueError
        Another suffix, or Parquet without pyarrow.
    """
    suffix = "" if path is None else os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"a table is written as {NAMED}, not {path!r}")
    if SUFFIXES[suffix] == "parquet" and find_spec("pyarrow") is None:
        raise ValueError("Parquet files need pyarrow: pip install 'smalldb-dp[parquet]'")
    return SUFFIXES[suffix]


def written(
    frame: pd.DataFrame,
    form: str,
    schema: Schema | None = None,
    *,
    separator: str | None = None,
    guard: bool = False,
) -> bytes:
    """Write a released table: the content of a file in the format "csv", "jsonl" (JSON lines) or "parquet".

    Parameters
    ----------
    frame
        The table, such as `smalldb.Release.data`.
    form
        CSV and JSON lines are in UTF-8. A gap is null in JSON lines; in CSV it is the first text that the
        schema's `missing` lists, or an empty field. Parquet has the dtypes of the table.
    schema
        What the table's columns hold: its columns spell their own values, so that what is written is read
        again by the same schema as the same rows. Without it, values are spelled by their dtypes: truth as
        true/false, dates and times in ISO 8601.
    separator
        Between the fields of CSV: a sign such as ``;``. None: the schema's, or a comma.
    guard
        Whether an apostrophe is put before names and texts of CSV that a spreadsheet would run. They are then
        not read again as they were.

    Raises
    ------
    ValueError
        Another format, or Parquet without pyarrow (the extra ``parquet``); a value that its column in the
        schema gives no place.
    """
    if form == "parquet":
        try:
            return frame.rename(columns=str).to_parquet(engine="pyarrow", index=False)
        except ImportError as error:
            raise ValueError("Parquet files need pyarrow: pip install 'smalldb-dp[parquet]'") from error
    known = {} if schema is None else {column.name: column for column in schema.released}
    stated = None if schema is None else schema.separator
    return spelled_out(_fields(frame, known), form, separator=separator or stated, guard=guard)


@dataclass(frozen=True, slots=True)
class Spelled:
    """A column that is to be written.

    Attributes
    ----------
    name
        Its name.
    codes
        The place of each row's field among `fields`, shape (rows,).
    fields
        The distinct fields; None: a gap.
    textual
        Whether they are texts, which JSON puts in quotes.
    gap
        How CSV writes a gap.
    """

    name: str
    codes: npt.NDArray[np.integer]
    fields: Sequence[str | None]
    textual: bool = False
    gap: str = ""


def spelled_out(
    columns: Iterable[Spelled], form: str, *, separator: str | None = None, guard: bool = False
) -> bytes:
    """Write columns of equal length as CSV or JSON lines; else as `written`."""
    if form == "csv":
        return _csv([*columns], separator or ",", guarded if guard else str)
    if form == "jsonl":
        return _json_lines(columns)
    raise ValueError(f"a table is written as {', '.join(FORMATS)}, not {form!r}")


class _Lines:
    """What a writer of CSV writes to: it quotes the signs of its own line ends, both; here a line has one."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, line: str) -> None:
        """Take a line, which ends in both."""
        self.written.append(f"{line[:-2]}\n")


def _csv(columns: Sequence[Spelled], separator: str, shown: Callable[[str], str]) -> bytes:
    lines = _Lines()
    writer = csv.writer(lines, delimiter=separator)
    writer.writerow(shown(column.name) for column in columns)
    texts = [
        _each(column.codes, [shown(column.gap if field is None else field) for field in column.fields])
        for column in columns
    ]
    writer.writerows(zip(*texts, strict=True))
    return "".join(lines.written).encode()


def _json_lines(columns: Iterable[Spelled]) -> bytes:
    texts = []
    for column in columns:
        key = json.dumps(column.name, ensure_ascii=False)
        values = [
            "null" if field is None else json.dumps(field, ensure_ascii=False) if column.textual else field
            for field in column.fields
        ]
        texts.append(_each(column.codes, [f"{key}:{value}" for value in values]))
    return "".join(f"{{{','.join(row)}}}\n" for row in zip(*texts, strict=True)).encode()


def _fields(frame: pd.DataFrame, known: Mapping[str, Column]) -> Iterator[Spelled]:
    """Yield the columns of a table, those of a schema in its spelling."""
    for i, label in enumerate(frame.columns):
        name, values = str(label), frame.iloc[:, i]
        if name in known:
            column = known[name]
            yield Spelled(name, *column.written(values), column.textual, (*column.gaps, "")[0])
        else:
            yield _plainly(values, name)


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


def _each(codes: npt.NDArray[np.integer], fields: Sequence[str]) -> list[str]:
    return np.array(fields, dtype=object)[codes].tolist() if len(codes) else []
