"""Databases of SQLite, by Python's own module."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import ClassVar, final
from urllib.parse import quote

from queries import DataError
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.pieces import CHUNK, Piece
from smalldb.schema.readers.queried import check_columns, named_table, pieces_of_rows, quoted
from smalldb.schema.readers.reader import Wanted, WithoutCodeBook

_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
_TYPES = {  # by a part of a declared type, as SQLite itself reads it
    **{"BOOL": "bool", "DATE": "datetime64[s]", "TIMESTAMP": "datetime64[s]", "INT": "int64"},
    **{"CHAR": "string", "CLOB": "string", "TEXT": "string"},
    **{"REAL": "float64", "FLOA": "float64", "DOUB": "float64", "NUMERIC": "float64", "DECIMAL": "float64"},
}


@final
class SqliteFiles(WithoutCodeBook):
    """A `Reader` of SQLite: a table of the database, or a query."""

    name: ClassVar[str] = "sqlite"
    suffixes: ClassVar[tuple[str, ...]] = (".sqlite", ".sqlite3", ".db")
    lines: ClassVar[bool] = False
    headed: ClassVar[bool] = True
    chosen_by: ClassVar[str] = "query"

    def columns(
        self, path: str, file: FileFormat = USUAL, known: Collection[str] = ()
    ) -> Mapping[str, object]:
        """Return the columns, those of a table with the types that it declares."""
        with _opened(path) as base:
            table = _table(base, path, file)
            names = _names(base, path, _query(file, table))
            if table is None:
                return dict.fromkeys(names)
            declared = {
                name: kind for _, name, kind, *_ in base.execute(f"PRAGMA table_info({quoted(table)})")
            }
            return {name: _dtype(declared.get(name, "")) for name in names}

    def pieces(
        self, path: str, wanted: Wanted, file: FileFormat = USUAL, progress: bool = False
    ) -> Iterator[Piece]:
        """Yield the columns in pieces, as SQLite hands on the rows."""
        with _opened(path) as base:
            query = _query(file, _table(base, path, file))
            positions = wanted.choose(_names(base, path, query))
            broken = False
            try:
                cursor = base.execute(query)
                batches = iter(partial(cursor.fetchmany, CHUNK), [])
                yield from pieces_of_rows(batches, positions)
            except (sqlite3.Error, OverflowError):
                broken = True
            if broken:  # not chained: nothing of the data may travel in an error
                raise DataError(f"{path} is broken, or its query is: it cannot be read to its end")


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """Open a database for reading alone."""
    with open(path, "rb"):
        pass  # the usual error where it cannot be read
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as base:
        try:
            base.execute(_TABLES).fetchall()
        except sqlite3.Error as error:
            raise ValueError(f"{path} is not a database of SQLite that can be read") from error
        yield base


def _table(base: sqlite3.Connection, path: str, file: FileFormat) -> str | None:
    return named_table(file, lambda: [name for (name,) in base.execute(_TABLES)], path)


def _query(file: FileFormat, table: str | None) -> str:
    return (file.query or "").strip().removesuffix(";") if table is None else f"SELECT * FROM {quoted(table)}"


def _names(base: sqlite3.Connection, path: str, query: str) -> list[str]:
    """Return the names of the columns of a query; no row is looked at.

    ValueError: the query cannot be run, which SQLite tells from its text alone.
    """
    try:
        found = base.execute(f"SELECT * FROM ({query}\n) LIMIT 0").description
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise ValueError(f"{path}: SQLite cannot run the query: {error}") from error
    names = [name for name, *_ in found]
    # within parentheses SQLite calls the second column of one name a:1
    alike = [re.sub(r":[0-9]+$", "", name) for name in names]
    return check_columns(
        [one if one in names else name for one, name in zip(alike, names, strict=True)], path
    )


def _dtype(declared: str) -> str | None:
    return next((dtype for part, dtype in _TYPES.items() if part in declared.upper()), None)
