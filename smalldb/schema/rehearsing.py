"""A rehearsal before anything is paid: what a release can hold is written, and read again as it was."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from queries.late import pd
from smalldb.schema.file_format import USUAL, FileFormat, agreed
from smalldb.schema.mapping import Schema
from smalldb.schema.schema_columns import Column
from smalldb.schema.table_writers import written
from smalldb.schema.tables import table_pieces


def rehearse(schema: Schema, form: str, file: FileFormat = USUAL) -> int:
    """
    Write both ends of every bin of every column, and the gap, in a format, and read them again.

    It looks at the schema alone, so what it refuses is public. Columns with equally many categories make a
    table.
    """
    size = 0
    with TemporaryDirectory(prefix="smalldb-") as folder:
        path = os.path.join(folder, f"rehearsal.{form}")
        alone = [column.alone() for column in schema.released]
        for _, group in groupby(sorted(alone, key=_size), _size):
            columns = [*group]
            stated = agreed(file, schema.file)
            length = _length(columns, form, path, stated)
            if length is None:
                names = [
                    repr(column.name) for column in columns if _length([column], form, path, stated) is None
                ]
                raise ValueError(
                    f"column{'s' if len(names) > 1 else ''} {', '.join(names)}: cannot be written as {form} "
                    "such that smalldb reads it again: leave dtype out, or write another format"
                )
            size += length
    return size


def _size(column: Column) -> int:
    return column.universe.size


def _length(columns: list[Column], form: str, path: str, file: FileFormat) -> int | None:
    """Return the length of the longest row of some columns; None: they are not read as they were written."""
    part = Schema(tuple(columns), file=file)
    ends = {column.name: column.ends() for column in columns}
    frame = pd.DataFrame({name: values for name, (values, _) in ends.items()})
    try:
        content = written(frame, form, part)
        Path(path).write_bytes(content)
        pieces = [fields for fields, _ in table_pieces(path, part)]
        for c, column in enumerate(columns):
            found = np.concatenate([column.found(piece[c]) for piece in pieces])
            if not np.array_equal(found, ends[column.name][1]):
                return None
    except (ValueError, TypeError, OverflowError, NotImplementedError):
        return None
    # a small file of other formats is nearly all header: their columns take about as much as texts, or less
    text = content if form in ("csv", "jsonl") else written(frame, "csv", part)
    return max(map(len, text.splitlines())) + 1
