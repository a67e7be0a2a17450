"""Reading tables; what a release can hold is written and read again, before anything is paid."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from queries import DataError, Domain, Rows
from queries.arrays import pd
from queries.expressions import suggestion
from queries.frames import is_index
from smalldb.files.inputs import shown
from smalldb.files.outputs import unchanged
from smalldb.schema.codebook import Described
from smalldb.schema.fields import Coded, Piece, looked_up, tally
from smalldb.schema.file_format import USUAL, FileFormat, agreed
from smalldb.schema.kinds import Cuts
from smalldb.schema.kinds import Integers as WholeNumbers
from smalldb.schema.kinds.kind import without_zeros
from smalldb.schema.mapping import Schema
from smalldb.schema.readers import Wanted
from smalldb.schema.readers.csv_files import FIELDS, heading, sniffed
from smalldb.schema.readers.registry import CSV, READERS, reader_of
from smalldb.schema.schema_columns import Column
from smalldb.schema.table_writers import written as written


def read_domain(
    path: str,
    columns: Sequence[str] | None = None,
    valid: str | None = None,
    file: FileFormat = USUAL,
) -> Domain:
    """Read the universe from the first line of a CSV file, which holds the column names; no data."""
    if os.path.isdir(path):
        raise ValueError(f"{shown(path)}: is a directory: folders of Parquet files need a schema (--schema)")
    if reader_of(path) is not CSV:
        others = ", ".join(reader.suffixes[0] for reader in READERS if reader is not CSV)
        raise ValueError(f"{shown(path)}: tables in {others} and databases need a schema (--schema)")
    header = heading(path, file, columns or ()).names
    if columns is None:
        if is_index(header):
            header = header[1:]
        if any(not name.strip() for name in header):
            raise ValueError(f"{path}: a column name in the first line is empty: choose the columns")
        return Domain(header, valid)
    return Domain([header[i] for i in _positions(path, header, columns)], valid)


def read_csv(path: str, domain: Domain, file: FileFormat = USUAL) -> Rows:
    """Count the rows of a CSV file of 0/1 or true/false columns, in any case; others are ignored."""
    names = tuple(name.strip() for name in domain.attributes)
    wanted = Wanted(names, lambda header: _positions(path, header, names), others=None)

    def encoded() -> Iterator[Coded]:
        for columns, _ in reader_of(path).pieces(path, wanted, file, False):
            yield np.column_stack([*map(_flags, columns, domain.attributes)]), None

    return tally(domain, encoded())


def read_table(
    path: str,
    schema: Schema,
    counts: str | None = None,
    progress: bool = False,
    file: FileFormat = USUAL,
    watch: Callable[[Iterator[Piece]], Iterator[Piece]] = iter,
) -> Rows:
    """Count the rows of a file in any format, in pieces; memory grows with the distinct rows only."""
    with unchanged(path):
        return schema.count(watch(schema.mended(table_pieces(path, schema, counts, progress, file))), counts)


def table_pieces(
    path: str,
    schema: Schema,
    counts: str | None = None,
    progress: bool = False,
    file: FileFormat = USUAL,
    keys: Sequence[str] = (),
) -> Iterator[Piece]:
    """Return the columns of a schema, and behind them counts and `keys`, as pieces of a file."""
    wanted = Wanted(
        (*schema.names, *([] if counts is None else [counts]), *keys),
        lambda names: chosen(path, names, schema, counts, keys),
        None if "*" in schema.ignored else tuple(name for name in schema.unread if name not in keys),
        {column.name: column.kind.numbers.decimal for column in schema.columns},
        {
            column.name: frozenset(column.gaps)
            for column in schema.columns
            if isinstance(column.kind, Cuts | WholeNumbers) and column.kind.numbers.plain
        },
    )
    return reader_of(path).pieces(path, wanted, agreed(file, schema.file), progress)


def chosen(
    path: str, names: Sequence[str], schema: Schema, counts: str | None = None, keys: Sequence[str] = ()
) -> list[int]:
    """Return the positions of the schema's columns in a file; errors as `Schema.chosen`, with the file."""
    try:
        return schema.chosen(names, counts, keys)
    except ValueError as error:
        raise ValueError(f"{shown(path)}: {error}") from error


def read_columns(path: str, file: FileFormat = USUAL, known: Collection[str] = ()) -> dict[str, object]:
    """Read the column names of a table, each with the dtype that is declared, or None; no data."""
    # names that are `known` are not taken for those of another separator
    return dict(reader_of(path).columns(path, file, known))


def read_described(path: str, file: FileFormat = USUAL) -> dict[str, Described]:
    """Read what the code book inside a file says of its columns, such as labels; no data."""
    return dict(reader_of(path).described(path, file))


def read_form(path: str, file: FileFormat = USUAL) -> FileFormat:
    """Return how a table is written: as stated, and as the first line of a CSV file says."""
    check_fits(path, file)
    return sniffed(path, file) if reader_of(path) is CSV else file


def check_fits(path: str, file: FileFormat) -> None:
    """Refuse a query or a sheet of a file that has none: all its rows would be taken instead."""
    chosen_by = reader_of(path).chosen_by
    for key, whole in (("query", "database"), ("sheet", "workbook")):
        if getattr(file, key) is not None and chosen_by != key:
            raise ValueError(f"{path}: a {key} is of a {whole}, and this is none: leave out --{key}")


def _positions(path: str, header: Sequence[str], names: Sequence[str]) -> list[int]:
    """Tell where columns stand in a file."""
    stripped = [name.strip() for name in header]
    for name in names:
        if name not in stripped:
            raise ValueError(f"{shown(path)} has no column {name!r}{suggestion(name, stripped)}")
    return [stripped.index(name) for name in names]


def _flags(column: Any, name: str) -> npt.NDArray[np.uint8]:
    """Read yes/no fields, each distinct one once; pandas only where it made them."""
    listed = column.tolist() if isinstance(column, np.ndarray) else []
    distinct = [*{*listed}] if isinstance(column, np.ndarray) else [*column.array.categories]
    fields = [without_zeros(text.strip()).lower() for text in distinct]
    if "" in fields:
        raise DataError(
            f"column {name!r} has missing values: expected 0/1 or true/false throughout; a schema "
            "gives gaps a category (--schema, see smalldb schema init)"
        )
    if not FIELDS.keys() >= {*fields}:
        raise DataError(
            f"column {name!r} is not spelled 0/1 or true/false throughout: for other columns generate and "
            "evaluate take --schema (see smalldb schema init)"
        )
    bits = np.array([FIELDS[field] for field in fields], dtype=np.uint8)
    if not isinstance(column, np.ndarray):
        return np.asarray(bits[column.array.codes])
    return looked_up(dict(zip(distinct, bits.tolist(), strict=True)), listed).astype(np.uint8)


def rehearse(schema: Schema, form: str, file: FileFormat = USUAL) -> int:
    """Write both ends of every bin of every column, and the gap, in a format, and read them again: public."""
    size = 0
    with TemporaryDirectory(prefix="smalldb-") as folder:
        path = os.path.join(folder, f"rehearsal.{form}")
        alone = [replace(column, missing_with=(), only_if=None, determines=()) for column in schema.released]
        for _, group in groupby(sorted(alone, key=_size), _size):
            columns = [*group]
            stated = agreed(file, schema.file)
            length = _length(columns, form, path, stated)
            if length is None:
                unfit = [column for column in columns if _length([column], form, path, stated) is None]
                names = [repr(column.name) for column in unfit]
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
            codes = np.concatenate([column.encode(piece[c]) for piece in pieces])
            if not np.array_equal(codes, ends[column.name][1]):
                return None
    except (ValueError, TypeError, OverflowError, NotImplementedError):
        return None
    # a small file of other formats is nearly all header: their columns take about as much as texts, or less
    text = content if form in ("csv", "jsonl") else written(frame, "csv", part)
    return max(map(len, text.splitlines())) + 1
