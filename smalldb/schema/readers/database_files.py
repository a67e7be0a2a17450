"""Databases in a file, of SQLite and of DuckDB: a table of it, or a query."""

from __future__ import annotations

import os
import re
import sqlite3
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any, ClassVar, final
from urllib.parse import quote

from queries import DataError
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.pieces import CHUNK, Piece
from smalldb.schema.readers.queried import check_columns, named_table, pieces_of_rows, quoted
from smalldb.schema.readers.reader import Wanted, WithoutCodeBook
from smalldb.schema.sources import imported, read_as

_TYPES = {  # by a part of a declared type, as SQLite itself reads it
    **{"BOOL": "bool", "DATE": "datetime64[s]", "TIMESTAMP": "datetime64[s]", "INT": "int64"},
    **{"CHAR": "string", "CLOB": "string", "TEXT": "string"},
    **{"REAL": "float64", "FLOA": "float64", "DOUB": "float64", "NUMERIC": "float64", "DECIMAL": "float64"},
}


class _DatabaseFiles(WithoutCodeBook):
    """What both share."""

    lines: ClassVar[bool] = False
    headed: ClassVar[bool] = True
    chosen_by: ClassVar[str] = "query"
    make: ClassVar[str]
    tables: ClassVar[str]  # a query that lists them

    @abstractmethod
    def errors(self) -> tuple[type[Exception], ...]:
        """Return what its driver raises."""

    @abstractmethod
    def connect(self, path: str) -> Any:
        """Open a database for reading alone."""

    @abstractmethod
    def of_query(self, base: Any, query: str, table: str | None) -> list[tuple[str, object]]:
        """Return the names of the columns of a query, with the dtypes that are known; no row is looked at."""

    def columns(
        self, path: str, file: FileFormat = USUAL, known: Collection[str] = ()
    ) -> Mapping[str, object]:
        """Return the columns, with the types that the database declares."""
        with self._opened(path, file) as (_, _, columns):
            return columns

    def pieces(
        self, path: str, wanted: Wanted, file: FileFormat = USUAL, progress: bool = False
    ) -> Iterator[Piece]:
        """Yield the columns in pieces, as the database hands on the rows."""
        with self._opened(path, file) as (base, query, columns):
            names = [*columns]
            kinds = {name: "FLOAT" if dtype == "float32" else "" for name, dtype in columns.items()}
            chosen = [read_as(names[i], kinds[names[i]]) for i in wanted.choose(names)]
            broken, errors = False, tuple[type[Exception], ...]((*self.errors(), OverflowError))
            try:
                cursor = base.execute(f"SELECT {', '.join(chosen)} FROM ({query}\n)")
                yield from pieces_of_rows(iter(partial(cursor.fetchmany, CHUNK), []), range(len(chosen)))
            except errors:
                broken = True
            if broken:  # not chained: nothing of the data may travel in an error
                raise DataError(f"{path} is broken, or its query is: it cannot be read to its end")

    @contextmanager
    def _opened(self, path: str, file: FileFormat) -> Iterator[tuple[Any, str, dict[str, object]]]:
        """Open a database: with the query that is meant, and its columns."""
        with open(path, "rb"):
            pass  # the usual error where it cannot be read
        with ExitStack() as stack:
            errors = self.errors()
            try:
                base = stack.enter_context(closing(self.connect(path)))
                known = [str(name) for (name,) in base.execute(self.tables).fetchall()]
            except errors as error:
                raise ValueError(f"{path} is not a database of {self.make} that can be read") from error
            table = named_table(file, lambda: known, path)
            query = f"SELECT * FROM {quoted(table)}" if table is not None else (file.query or "").strip()
            try:
                columns = self.of_query(base, query := query.removesuffix(";"), table)
            except errors as error:  # which it tells from the text of the query alone
                said = " ".join(str(error).partition("\n")[0].split())
                raise ValueError(f"{path}: {self.make} cannot run the query: {said}") from error
            check_columns([name for name, _ in columns], path)
            yield base, query, dict(columns)


@final
class SqliteFiles(_DatabaseFiles):
    """A `Reader` of SQLite, by Python's own module."""

    name: ClassVar[str] = "sqlite"
    suffixes: ClassVar[tuple[str, ...]] = (".sqlite", ".sqlite3", ".db")
    make: ClassVar[str] = "SQLite"
    tables: ClassVar[str] = (
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
    )

    def errors(self) -> tuple[type[Exception], ...]:
        """Return what `sqlite3` raises."""
        return sqlite3.Error, sqlite3.Warning

    def connect(self, path: str) -> Any:
        """Open a database for reading alone."""
        return sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)

    def of_query(self, base: Any, query: str, table: str | None) -> list[tuple[str, object]]:
        """Return the columns of a query; those of a table have types."""
        names = [name for name, *_ in base.execute(f"SELECT * FROM ({query}\n) LIMIT 0").description]
        # within parentheses SQLite calls the second column of one name a:1
        alike = [re.sub(r":[0-9]+$", "", name) for name in names]
        names = [one if one in names else name for one, name in zip(alike, names, strict=True)]
        declared = (
            {}
            if table is None
            else {name: kind for _, name, kind, *_ in base.execute(f"PRAGMA table_info({quoted(table)})")}
        )
        kinds = [declared.get(name, "").upper() for name in names]
        dtypes = [next((dtype for part, dtype in _TYPES.items() if part in kind), None) for kind in kinds]
        return [*zip(names, dtypes, strict=True)]


@final
class DuckDbFiles(_DatabaseFiles):
    """A `Reader` of DuckDB; `smalldb.schema.tables.read_by_duckdb` has it group the rows."""

    name: ClassVar[str] = "duckdb"
    suffixes: ClassVar[tuple[str, ...]] = (".duckdb", ".ddb")
    make: ClassVar[str] = "DuckDB"
    tables: ClassVar[str] = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    )

    def errors(self) -> tuple[type[Exception], ...]:
        """Return what its package raises, which is optional."""
        return (imported().Error,)

    def connect(self, path: str) -> Any:
        """Open a database for reading alone."""
        return imported().connect(path, read_only=True)

    def of_query(self, base: Any, query: str, table: str | None) -> list[tuple[str, object]]:
        """Return the columns of a query with their types."""
        found = base.execute(f"DESCRIBE {query}").fetchall()
        dtypes = base.execute(f"FROM ({query}\n) LIMIT 0").df().dtypes
        return [
            (str(name), "string" if kind == "VARCHAR" else dtype)
            for (name, kind, *_), dtype in zip(found, dtypes, strict=True)
        ]
