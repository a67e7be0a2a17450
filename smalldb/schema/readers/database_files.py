"""Databases in a file, of SQLite and of DuckDB."""

from __future__ import annotations

import os
import re
import sqlite3
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any, ClassVar, final
from urllib.parse import quote

from queries import DataError
from queries.expressions import shorten, suggestion
from smalldb.files import of_extra
from smalldb.schema.fields import CHUNK, Piece, objects
from smalldb.schema.file_format import FileFormat
from smalldb.schema.readers import Reader, Wanted, unbroken
from smalldb.schema.readers.csv_files import check_names

_SAY_WHICH = "say which (--query, or file.query of a schema)"
_STATEMENT = re.compile(  # how one begins; two words that begin otherwise are the name of a table
    r"(?:\s|\(|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
    r"(?:SELECT|WITH|FROM|VALUES|TABLE|PIVOT|UNPIVOT|EXPLAIN|SHOW|DESCRIBE"
    r"|SUMMARIZE|PRAGMA|CALL|EXEC|EXECUTE|INSERT|UPDATE|DELETE|MERGE|CREATE|DROP|ALTER|ATTACH|COPY)\b",
    re.IGNORECASE | re.DOTALL,
)


def quoted(name: str) -> str:
    """Write the name of a table, or of a column, as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def is_query(text: str) -> bool:
    """Tell whether a text is a query: one word is the name of a table, and a query has several.

    >>> is_query("SELECT * FROM t"), is_query("my table"), is_query("select"), is_query("( select 1)")
    (True, False, False, True)
    """
    return re.search(r"\s", text.strip()) is not None and _STATEMENT.match(text) is not None


def named_table(file: FileFormat, tables: Sequence[str], path: str) -> str | None:
    """Return the name of the table that is meant, of one word or of several; None: `file` states a query."""
    if file.query is None:
        if len(tables) == 1:
            return tables[0]
        names = "".join(f", {shorten(name)!r}" for name in tables[:8]) + ", ..." * (len(tables) > 8)
        raise ValueError(f"{path} has {len(tables)} tables{names}: {_SAY_WHICH}")
    name = file.query.strip()
    if name in tables:
        return name
    if is_query(name):
        return None
    raise ValueError(f"{path} has no table {name!r}{suggestion(name, tables)}")


def check_columns(names: list[str], path: str) -> list[str]:
    """Return the names of the columns of a query; ValueError: two are alike, or they cannot be shown."""
    check_names(names, path)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(
            f"{path}: the query returns two columns {repeated[0]!r}: rename one (AS), or leave one out"
        )
    return names


def pieces_of_rows(
    batches: Iterable[Sequence[Sequence[object]]], positions: Sequence[int]
) -> Iterator[Piece]:
    """Yield the columns at some positions of rows that come in batches."""
    for batch in batches:
        columns = [*zip(*batch, strict=True)]
        yield [objects(columns[i]) for i in positions], None


def imported() -> Any:
    """Return the module DuckDB."""
    with of_extra("DuckDB", "duckdb", "its databases"):
        import duckdb
    return duckdb


_TYPES = {  # by a part of a declared type, as SQLite itself reads it
    **{"BOOL": "bool", "DATE": "datetime64[s]", "TIMESTAMP": "datetime64[s]", "INT": "int64"},
    **{"CHAR": "string", "CLOB": "string", "TEXT": "string"},
    **{"REAL": "float64", "FLOA": "float64", "DOUB": "float64", "NUMERIC": "float64", "DECIMAL": "float64"},
}


class InUse(ValueError):
    """A database is locked by another process: it may be free later."""

    exit_code = 3  # of commands


class _DatabaseFiles(Reader):
    """What both share."""

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

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Return the columns, with the types that the database declares."""
        with self._opened(path, file) as (_, _, columns):
            return columns

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the columns in pieces, as the database hands on the rows."""
        with self._opened(path, file) as (base, query, columns):
            # a float of four bytes by its shortest text: .7, and not .699999988
            chosen = [
                f"CAST(CAST({quoted(name)} AS VARCHAR) AS DOUBLE)"
                if columns[name] == "float32"
                else quoted(name)
                for name in wanted.among([*columns])
            ]

            def rows() -> Iterator[Sequence[Sequence[object]]]:
                cursor = base.execute(f"SELECT {', '.join(chosen)} FROM ({query}\n)")
                yield from iter(partial(cursor.fetchmany, CHUNK), [])

            error = DataError(f"{path} is broken, or its query is: it cannot be read to its end")
            read = unbroken(rows(), (*self.errors(), OverflowError), error)
            yield from pieces_of_rows(read, range(len(chosen)))

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
                if "lock" in str(error):
                    raise InUse(f"{path} is locked by another process: try again later") from error
                raise ValueError(f"{path} is not a database of {self.make} that can be read") from error
            table = named_table(file, known, path)
            query = f"SELECT * FROM {quoted(table)}" if table is not None else (file.query or "").strip()
            try:
                columns = self.of_query(base, query := query.removesuffix(";"), table)
            except errors as error:  # which it tells from the text of the query alone
                problem = " ".join(str(error).partition("\n")[0].split())
                raise ValueError(f"{path}: {self.make} cannot run the query: {problem}") from error
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
        stated = [] if table is None else base.execute(f"PRAGMA table_info({quoted(table)})")
        declared = {name: kind for _, name, kind, *_ in stated}
        kinds = [declared.get(name, "").upper() for name in names]
        dtypes = [next((dtype for part, dtype in _TYPES.items() if part in kind), None) for kind in kinds]
        return [*zip(names, dtypes, strict=True)]


@final
class DuckDbFiles(_DatabaseFiles):
    """A `Reader` of DuckDB."""

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
        """Open a database for reading alone; its views may read files of its own folder, and of no other."""
        connect, failed = partial(imported().connect, path, read_only=True), imported().ConnectionException
        try:  # as a database of our own: what is set here holds for all connections to it
            base = connect(config={"custom_user_agent": "smalldb"})
        except failed:  # this process has it open already
            return connect()
        if base.execute("SELECT current_setting('enable_external_access')").fetchone()[0]:
            folder = os.path.dirname(os.path.abspath(path)).replace("'", "''")
            base.execute(f"SET allowed_directories = ['{folder}']")
            base.execute("SET enable_external_access = false")
        return base

    def of_query(self, base: Any, query: str, table: str | None) -> list[tuple[str, object]]:
        """Return the columns of a query with their types."""
        columns = base.execute(f"DESCRIBE {query}").fetchall()
        dtypes = base.execute(f"FROM ({query}\n) LIMIT 0").df().dtypes
        return [
            (str(name), "string" if kind == "VARCHAR" else dtype)
            for (name, kind, *_), dtype in zip(columns, dtypes, strict=True)
        ]
