"""Reading tables; `writing` writes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from queries import DataError, Domain, Rows
from queries.arrays import Integers
from queries.domain import Bits
from queries.expressions import suggestion
from queries.late import pd
from smalldb.files.outputs import unchanged
from smalldb.schema import Schema, plain
from smalldb.schema.fields import is_text
from smalldb.schema.json_lines import json_names, json_pieces
from smalldb.schema.kinds.number_format import without_zeros
from smalldb.schema.pieces import Fields, Piece, distinct, tally
from smalldb.schema.records import (
    CHUNK,
    COMMA,
    FIELDS,
    Fault,
    Heading,
    agreed,
    as_separator,
    lines_of,
    open_text,
    read_heading,
    records,
)
from smalldb.schema.sources import declared_dtypes, duckdb_dtypes, duckdb_pieces, parquet_pieces
from smalldb.schema.table_writers import written as written


def read_domain(
    path: str,
    columns: Sequence[str] | None = None,
    valid: str | None = None,
    separator: str | None = None,
) -> Domain:
    """Read the universe from the first line of a CSV file, which holds the column names; no data.

    Parameters
    ----------
    path
        The file, UTF-8.
    columns
        Which columns to take, in this order; by default all.
    valid
        Predicate for the cells that can exist (see `queries.Domain`).
    separator
        Of fields: one of ``, ; | tab space``; None: commas, or what a line ``sep=;`` above the names states.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        Empty, no CSV in UTF-8, bad column names, an unknown column.
    """
    if is_parquet(path) or is_json_lines(path):
        raise ValueError(f"{path}: tables in .parquet and .jsonl need a schema (--schema)")
    header = _names(path, separator, columns or ())
    if columns is None:
        if any(not name.strip() for name in header):
            raise ValueError(
                f"{path}: a column name in the first line is empty (an index? choose the columns)"
            )
        return Domain(header, valid)
    chosen = [name for name in header if name.strip() in columns]
    known = {name.strip(): name for name in chosen}
    for name in columns:
        if name not in known:
            raise ValueError(f"{path} has no column {name!r}{suggestion(name, header)}")
    return Domain([known[name] for name in columns], valid)


def read_csv(path: str, domain: Domain, separator: str | None = None) -> Rows:
    """Count the rows of a CSV or JSON lines file (``.jsonl``) of 0/1 or true/false columns.

    Columns that the domain lacks are passed over.
    A field is spelled 0/1 (or 0.0/1.0) or true/false, in any case. Memory grows with the distinct rows.

    Raises
    ------
    OSError, ValueError
        As `read_domain`.
    DataError
        A line that is no CSV or of another length; a field that its column cannot hold: names the column.
    """

    def encoded() -> Iterator[tuple[Bits, Integers]]:
        if is_json_lines(path):
            pieces = json_pieces(path, [name.strip() for name in domain.attributes], None)
        else:
            given, names = None if separator is None else as_separator(separator), domain.attributes
            pieces = _pieces(path, lambda header: _places(path, header, names), given, names)
        for columns, _ in pieces:
            bits = np.empty((len(columns[0]), len(columns)), dtype=np.uint8)
            for j, (name, column) in enumerate(zip(domain.attributes, columns, strict=True)):
                codes, fields = _factorized(column)
                found = _column([without_zeros(field.strip()).lower() for field in fields], name)
                bits[:, j] = np.array(found, dtype=np.uint8)[codes]
            yield distinct(bits, domain.sizes)

    return tally(domain, encoded())


def read_table(
    path: str,
    schema: Schema,
    counts: str | None = None,
    progress: bool = False,
    separator: str | None = None,
    watch: Callable[[Iterator[Piece]], Iterator[Piece]] = iter,
) -> Rows:
    """Count the rows of a CSV, JSON lines (``.jsonl``) or Parquet file (``.parquet``, by pyarrow), in pieces.

    Memory grows with the distinct rows of places only.

    Parameters
    ----------
    path
        The file; CSV in UTF-8 with column names in the first line; JSON lines with the schema's columns (and
        `counts`) as keys of each, in any order, and beside them none but ignored ones.
    schema
        What its columns can hold.
    counts
        Column that says how often each row occurs, in a table that is already aggregated; None: once.
    progress
        Show a bar over the bytes of a CSV file on stderr.
    separator
        Of fields of CSV, as `read_domain`; None: as the schema says.
    watch
        Is given the pieces on their way to be counted, and hands them on.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        No such file as is expected, other columns than the schema's, a file that changed meanwhile.
    DataError
        As `Schema.encode`; a line that is no CSV or of another length, or no JSON or with other keys; bytes
        that are not UTF-8.
    """
    with unchanged(path):
        return schema.count(watch(table_pieces(path, schema, counts, progress, separator)), counts)


def table_pieces(
    path: str,
    schema: Schema,
    counts: str | None = None,
    progress: bool = False,
    separator: str | None = None,
) -> Iterator[Piece]:
    """Return the columns of a schema, and one of counts behind them, as pieces of a file; as `read_table`."""
    sign = agreed(separator, schema.separator)
    wanted = [*schema.names, *([] if counts is None else [counts])]

    def choose(names: Sequence[str]) -> list[int]:
        return chosen(path, names, schema, counts)

    if is_parquet(path):
        return parquet_pieces(path, choose)
    if is_json_lines(path):
        choose(wanted)
        signs = {column.name: column.numbers.decimal for column in schema.columns}
        return json_pieces(path, wanted, None if "*" in schema.ignored else schema.unread, signs)
    return _pieces(path, choose, sign, [*wanted, *schema.unread], progress)


def read_by_duckdb(
    path: str,
    schema: Schema,
    counts: str | None = None,
    table: str | None = None,
    separator: str | None = None,
) -> Rows:
    """Count the rows of a CSV or Parquet file or of a DuckDB database, grouped by DuckDB out of core.

    Parameters
    ----------
    path, schema, counts, separator
        As `read_table`; with `table` the file is a database.
    table
        Name of a table or view in the database.

    Raises
    ------
    OSError, ValueError, DataError
        As `read_table`; column names that are not in the first line of a CSV file.
    """
    header: Heading | None = None
    with unchanged(path):
        if table is None and not is_parquet(path):
            sign = agreed(separator, schema.separator)
            with open_text(path) as file:
                header = read_heading(file, path, sign, [*schema.names, counts or "", *schema.unread])
            if header.lines > 1:  # DuckDB may lose rows behind lines that it passes over
                raise ValueError(f"{path}: DuckDB needs all column names in the first line, and none above")
        pieces = duckdb_pieces(path, lambda names: schema.chosen(names, counts), table, header)
        return schema.count(pieces, counts)


def is_parquet(path: str) -> bool:
    """Tell whether a file is one of Parquet, by its name."""
    return path.lower().endswith((".parquet", ".pq"))


def is_json_lines(path: str) -> bool:
    """Tell whether a file is one of JSON lines, by its name."""
    return path.lower().endswith(".jsonl")


def chosen(path: str, names: Sequence[str], schema: Schema, counts: str | None = None) -> list[int]:
    """Return the places of the schema's columns in a file; errors as `Schema.chosen`, with the file."""
    try:
        return schema.chosen(names, counts)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_columns(
    path: str, table: str | None = None, separator: str | None = None, known: Collection[str] = ()
) -> list[str] | dict[str, object]:
    """Read the column names of a table, with the dtypes that a Parquet file or a database declares; no data.

    Of JSON lines the names in the first record, sorted; with `table` the file is a database of DuckDB. Errors
    as `read_domain`: names that are `known` are not taken for those of another separator.
    """
    if table is not None:
        return duckdb_dtypes(path, table)
    if is_parquet(path):
        return declared_dtypes(path)
    if is_json_lines(path):
        return list(json_names(path))
    return [name.strip() for name in _names(path, separator, known)]


def read_separator(path: str, table: str | None = None, separator: str | None = None) -> str | None:
    """Return the separator of a CSV file, as it is stated, or as the file's first line states it.

    None: commas, or no CSV file. Errors as `read_domain`.
    """
    if table is not None or is_parquet(path) or is_json_lines(path):
        return None
    with open_text(path) as file:
        found = read_heading(file, path, None if separator is None else as_separator(separator)).separator
    return None if found == COMMA else found


def _names(path: str, separator: str | None, known: Collection[str]) -> list[str]:
    given = None if separator is None else as_separator(separator)
    with open_text(path) as file:
        return read_heading(file, path, given, known).names


def _pieces(
    path: str,
    choose: Callable[[list[str]], list[int]],
    separator: str | None,
    known: Collection[str],
    progress: bool = False,
) -> Iterator[Piece]:
    """Yield the chosen columns of a CSV file; of a large one by `plain`, while its lines are so."""
    from tqdm import tqdm

    regular = os.path.isfile(path)
    size = os.path.getsize(path) if regular else 0
    with (
        tqdm(total=size, unit="B", unit_scale=True, disable=not (progress and regular)) as bar,
        open_text(path) as file,
    ):
        header = read_heading(file, path, separator, known)
        places, width = choose(header.names), len(header.names)
        if regular and size >= plain.LEAST:
            with Path(path).open("rb") as raw:
                if plain.begin(raw, header.lines):
                    for piece in plain.plain_pieces(raw, width, places, path, header.separator):
                        yield piece
                        bar.update(raw.tell() - bar.n)
                    file.seek(raw.tell())
        rows = records(lines_of(file), header.separator)
        while piece_of_rows := list(islice(rows, CHUNK)):
            fields = [row for row in piece_of_rows if not isinstance(row, Fault)]
            if len(fields) < len(piece_of_rows):
                raise DataError(f"{path} {next(r.said for r in piece_of_rows if isinstance(r, Fault))}")
            if {*map(len, fields)} != {width}:
                raise DataError(
                    f"{path} is not a CSV file with as many fields in every line as names: {width}"
                )
            columns = list(zip(*fields, strict=True))
            if not all(is_text("".join(columns[i])) for i in places):
                raise DataError(f"{path} is not a CSV file in UTF-8")
            yield [np.array(columns[i], dtype=object) for i in places], None
            bar.update(file.buffer.tell() - bar.n)


def _places(path: str, header: Sequence[str], names: Sequence[str]) -> list[int]:
    """Tell where columns stand in a file."""
    stripped = [name.strip() for name in header]
    for name in names:
        if name.strip() not in stripped:
            raise ValueError(f"{path} has no column {name!r}{suggestion(name, stripped)}")
    return [stripped.index(name.strip()) for name in names]


def _factorized(column: Fields) -> tuple[Sequence[int] | npt.NDArray[np.intp], Iterable[str]]:
    """Return the place of each field among the distinct ones, and these; pandas only where it made them."""
    if not isinstance(column, np.ndarray):
        return pd.factorize(column)
    places: dict[str, int] = {}
    return [places.setdefault(field, len(places)) for field in column.tolist()], places


def _column(fields: list[str], name: str) -> list[int]:
    """Read yes/no fields, in lower case."""
    if "" in fields:
        raise DataError(
            f"column {name!r} has missing values: expected 0/1 or true/false throughout; a schema "
            "gives gaps a place (--schema, see smalldb schema init)"
        )
    if not FIELDS.keys() >= {*fields}:
        raise DataError(
            f"column {name!r} is not spelled 0/1 or true/false throughout: for other columns generate and "
            "evaluate take --schema (see smalldb schema init)"
        )
    return [FIELDS[field] for field in fields]
