"""Reading tables; `writing` writes them."""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from queries import DataError, Domain, Rows
from queries.arrays import Integers
from queries.domain import Bits
from queries.expressions import suggestion
from smalldb.files.inputs import LONGEST, TOO_LONG, Bounded
from smalldb.files.outputs import unchanged
from smalldb.schema import Schema, plain
from smalldb.schema.fields import is_text
from smalldb.schema.pieces import Piece, distinct, tally
from smalldb.schema.sources import declared_dtypes, duckdb_dtypes, duckdb_pieces, parquet_pieces
from smalldb.schema.writing import written as written

CHUNK = 1 << 13  # lines of a CSV file that are read at a time

_FIELDS = {"0": 0, "1": 1, "false": 0, "true": 1}  # what a yes/no field can hold


def read_domain(path: str, columns: Sequence[str] | None = None, valid: str | None = None) -> Domain:
    """Read the universe from the first line of a CSV file, which holds the column names; no data.

    Parameters
    ----------
    path
        The file, UTF-8.
    columns
        Which columns to take, in this order; by default all.
    valid
        Predicate for the cells that can exist (see `queries.Domain`).

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        Empty, no CSV in UTF-8, bad column names, an unknown column.
    """
    if is_parquet(path) or is_json_lines(path):
        raise ValueError(f"{path}: tables in .parquet and .jsonl need a schema (--schema)")
    with _open(path) as file:
        header = _header(_records(file), path)
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


def read_csv(path: str, domain: Domain) -> Rows:
    """Count the rows of a CSV or JSON lines file (``.jsonl``) of 0/1 or true/false columns.

    Columns that the domain lacks are passed over.
    A field is spelled 0/1 or true/false, in any case. Memory grows with the distinct rows.

    Raises
    ------
    OSError, ValueError
        As `read_domain`.
    DataError
        A line that is no CSV or of another length; a field that its column cannot hold: names the column.
    """

    def encoded() -> Iterator[tuple[Bits, Integers]]:
        if is_json_lines(path):
            pieces = _json_pieces(path, [name.strip() for name in domain.attributes], None)
        else:
            pieces = _pieces(path, lambda header: _places(path, header, domain.attributes))
        for columns, _ in pieces:
            bits = np.empty((len(columns[0]), len(columns)), dtype=np.uint8)
            for j, (name, column) in enumerate(zip(domain.attributes, columns, strict=True)):
                codes, fields = pd.factorize(column)
                found = _column([field.strip().lower() for field in fields], name)
                bits[:, j] = np.array(found, dtype=np.uint8)[codes]
            yield distinct(bits, domain.sizes)

    return tally(domain, encoded())


def read_table(path: str, schema: Schema, counts: str | None = None, progress: bool = False) -> Rows:
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
        return schema.count(table_pieces(path, schema, counts, progress), counts)


def table_pieces(
    path: str, schema: Schema, counts: str | None = None, progress: bool = False
) -> Iterator[Piece]:
    """Return the columns of a schema, and one of counts behind them, as pieces of a file; as `read_table`."""

    def choose(names: Sequence[str]) -> list[int]:
        return chosen(path, names, schema, counts)

    if is_parquet(path):
        return parquet_pieces(path, choose)
    if is_json_lines(path):
        choose(wanted := [*schema.names, *([] if counts is None else [counts])])
        signs = {column.name: column.numbers.decimal for column in schema.columns}
        return _json_pieces(path, wanted, None if "*" in schema.ignored else schema.ignored, signs)
    return _pieces(path, choose, progress)


def read_by_duckdb(path: str, schema: Schema, counts: str | None = None, table: str | None = None) -> Rows:
    """Count the rows of a CSV or Parquet file or of a DuckDB database, grouped by DuckDB out of core.

    Parameters
    ----------
    path, schema, counts
        As `read_table`; with `table` the file is a database.
    table
        Name of a table or view in the database.

    Raises
    ------
    OSError, ValueError, DataError
        As `read_table`; column names that are not in the first line of a CSV file.
    """
    header = None
    with unchanged(path):
        if table is None and not is_parquet(path):
            with _open(path) as file:
                # one line, the first: where the names end is where DuckDB begins
                header = _header(_records(io.StringIO(file.readline(LONGEST + 1))), path)
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


def read_columns(path: str, table: str | None = None) -> list[str] | dict[str, object]:
    """Read the column names of a table, with the dtypes that a Parquet file or a database declares; no data.

    Of JSON lines the names in the first record, sorted; with `table` the file is a database of DuckDB.
    Errors as `read_domain`.
    """
    if table is not None:
        return duckdb_dtypes(path, table)
    if is_parquet(path):
        return declared_dtypes(path)
    with _open(path) as file:
        if is_json_lines(path):
            return _json_names(_json_records(file), path)
        return [name.strip() for name in _header(_records(file), path)]


def _open(path: str) -> TextIO:
    """Open a CSV file; bytes that are not UTF-8 become surrogates, which no name and no field may hold."""
    return Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _records(file: TextIO) -> Iterator[list[str] | None]:
    """Yield the records that are not blank; None for what is no CSV, and then no more."""
    broken, lines = False, Bounded(file)
    try:
        for record in csv.reader(lines, strict=True):
            lines.read = 0
            if record:
                yield record
    except csv.Error:
        broken = True
    if broken:  # not chained: nothing of the data may travel in an error
        yield None


def _header(records: Iterator[list[str] | None], path: str) -> list[str]:
    try:
        header = next(records, [])
    except DataError:  # names are public
        raise ValueError(f"{path}: {TOO_LONG}") from None
    if header is None or not _are_names(header):
        raise ValueError(f"{path} is not a CSV file in UTF-8")
    if not header:
        raise ValueError(f"{path} is empty: expected a first line with column names")
    if all(name.strip().lower() in _FIELDS for name in header):
        raise ValueError(f"{path}: the first line must hold column names, not data")
    if len(header) == 1 and any(sign in header[0] for sign in ";\t"):
        raise ValueError(f"{path}: the columns must be separated by commas")
    repeated = [
        name for name, times in Counter(name.strip() for name in header).items() if times > 1 and name
    ]
    if repeated:
        raise ValueError(f"{path}: column name {repeated[0]!r} stands more than once")
    return header


def _pieces(path: str, choose: Callable[[list[str]], list[int]], progress: bool = False) -> Iterator[Piece]:
    """Yield the chosen columns of a CSV file; of a large one by `plain`, while its lines are so."""
    from tqdm import tqdm

    regular = os.path.isfile(path)
    size, read = os.path.getsize(path) if regular else 0, 0
    with tqdm(total=size, unit="B", unit_scale=True, disable=not (progress and regular)) as bar:
        if regular and size >= plain.LEAST:
            with _open(path) as file:
                header = _header(_records(file), path)
            with Path(path).open("rb") as raw:
                places = choose(header)
                if plain.begin(raw):
                    for piece in plain.plain_pieces(raw, len(header), places, path):
                        yield piece
                        bar.update(raw.tell() - bar.n)
                    read = raw.tell()
        with _open(path) as file:
            file.seek(read)
            records = _records(file)
            if not read:
                header = _header(records, path)
                places = choose(header)
            width = len(header)
            while piece_of_records := list(islice(records, CHUNK)):
                fields = [record for record in piece_of_records if record is not None]
                if len(fields) < len(piece_of_records) or {*map(len, fields)} != {width}:
                    raise DataError(f"{path} is not a CSV file with as many fields in every line")
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


def _are_names(names: Sequence[str]) -> bool:
    """Tell whether column names can be shown."""
    together = "".join(names)
    return is_text(together) and re.search(r"[\x00-\x08]", together) is None


class _Number(str):
    """A number of JSON, as the line spells it."""

    __slots__ = ()


def _json_records(file: TextIO, number: type[str] = str) -> Iterator[dict[str, str] | None]:
    """Yield the records, spelled as in a CSV file; None for what is no record, and then no more."""
    broken = False
    try:
        for line in (lines := Bounded(file)):
            lines.read = 0
            if line.strip():
                pairs = json.loads(
                    line, parse_int=number, parse_float=number, parse_constant=str, object_pairs_hook=tuple
                )
                if not isinstance(pairs, tuple):
                    raise TypeError("no object")
                record = {name.strip(): _field(value) for name, value in pairs}
                if len(record) < len(pairs):
                    raise ValueError("a name stands more than once")
                yield record
    except DataError:  # a line without an end
        raise
    except (ValueError, TypeError, RecursionError):
        broken = True
    if broken:  # not chained: nothing of the data may travel in an error
        yield None


def _field(value: object) -> str:
    """Spell a value of JSON, whose numbers are texts already, as CSV does; TypeError: no single value."""
    if value is None or isinstance(value, bool):
        return {None: "", False: "false", True: "true"}[value]
    if not isinstance(value, str) or not is_text(value):
        raise TypeError("no single value")
    return value


def _json_names(records: Iterator[dict[str, str] | None], path: str) -> list[str]:
    """Return the names in the first record, sorted: the order in which a row has its keys is the row's."""
    first = next(records, None)
    if not first or not _are_names(list(first)):
        raise ValueError(
            f"{path} is empty, or is not JSON lines in UTF-8: an object in each line, each name in it once"
        )
    return sorted(first)


def _json_pieces(
    path: str, wanted: Sequence[str], others: Collection[str] | None, signs: Mapping[str, str] | None = None
) -> Iterator[Piece]:
    """Yield the wanted columns of a file of JSON lines, whose records may hold others too (None: any).

    Each record is taken or refused by itself, with its keys in any order. A number, not a text, is respelled
    with its column's decimal sign, if it has one in `signs` that is no point.
    """
    comma = {name for name, sign in (signs or {}).items() if sign != "."}
    needed = {*wanted}
    allowed = None if others is None else needed | {*others}

    def fits(record: dict[str, str]) -> bool:
        return needed <= record.keys() and (allowed is None or record.keys() <= allowed)

    with _open(path) as file:
        records = _json_records(file, _Number if comma else str)
        while piece := list(islice(records, CHUNK)):
            fields = [record for record in piece if record is not None and fits(record)]
            if len(fields) < len(piece):
                raise DataError(
                    f"{path} is not JSON lines in UTF-8: an object in each line, with every column as a key "
                    "once, and no key that is not expected"
                )
            columns = [[record[name] for record in fields] for name in wanted]
            if comma:
                for c, name in enumerate(wanted):
                    point = "," if name in comma else "."
                    columns[c] = [
                        text.replace(".", point) if isinstance(text, _Number) else text for text in columns[c]
                    ]
            yield [np.array(column, dtype=object) for column in columns], None


def _column(fields: list[str], name: str) -> list[int]:
    """Read yes/no fields, in lower case."""
    if "" in fields:
        raise DataError(
            f"column {name!r} has missing values: expected 0/1 or true/false throughout; a schema "
            "gives gaps a place (--schema, see smalldb schema init)"
        )
    if not _FIELDS.keys() >= {*fields}:
        raise DataError(
            f"column {name!r} is not spelled 0/1 or true/false throughout: for other columns generate and "
            "evaluate take --schema (see smalldb schema init)"
        )
    return [_FIELDS[field] for field in fields]
