"""Databases of any make by a URL, by SQLAlchemy: a table, or a query, of which rows come in batches."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar, final

from queries import DataError
from smalldb.files import LibraryMissing, of_extra
from smalldb.files.inputs import shown
from smalldb.schema.fields import CHUNK, Piece
from smalldb.schema.file_format import FileFormat
from smalldb.schema.readers import Reader, Wanted, unbroken
from smalldb.schema.readers.database_files import check_columns, is_query, named_table, pieces_of_rows

_DTYPES: dict[type, str] = {
    **{bool: "bool", int: "int64", float: "float64", Decimal: "float64", str: "string"},
    **{date: "datetime64[s]", datetime: "datetime64[s]"},
}


@final
class SqlDatabases(Reader):
    """A `Reader` of a database at a URL, such as ``postgresql+psycopg://host/name``.

    It is read, and never written to. What is told of one is its address: never a password, and of an error
    nothing that could hold data.
    """

    name: ClassVar[str] = "sql"
    suffixes: ClassVar[tuple[str, ...]] = ()
    chosen_by: ClassVar[str] = "query"

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Return the columns, those of a table with the types that the database declares."""
        with ExitStack() as stack:
            base = _connected(path, stack)
            table = _table(base, path, file)
            names = check_columns([*_result(base, path, file, table, stack).keys()], shown(path))
            if table is None:
                return dict.fromkeys(names)
            return {name: dtype for name, dtype in _declared(base, table).items() if name in names}

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the columns in pieces, by a cursor that stays in the database where it can."""
        with ExitStack() as stack:
            base = _connected(path, stack)
            result = _result(base, path, file, _table(base, path, file), stack)
            positions = wanted.choose(check_columns([*result.keys()], shown(path)))
            error = QueryEnded(f"{shown(path)}: the database stopped the query")
            # which errors drivers raise is not documented
            batches = unbroken(result.partitions(CHUNK), (Exception,), error)
            yield from pieces_of_rows(batches, positions)


class NoConnection(ValueError):
    """A database cannot be reached: it may be later."""

    exit_code = 3  # of commands


class QueryEnded(DataError):
    """A database was lost in the middle of a query."""

    exit_code = 3


def _connected(path: str, stack: ExitStack) -> Any:
    """Connect to a database, for as long as `stack` is open."""
    with of_extra("SQLAlchemy", "sql", "databases by a URL"):
        import sqlalchemy
        from sqlalchemy import exc, pool
    address, reason = shown(path), ""
    kind: type[ValueError] = ValueError
    try:
        url = sqlalchemy.make_url(path)
        if "@" in (url.host or ""):
            raise ValueError
        engine = sqlalchemy.create_engine(url, poolclass=pool.NullPool)
    except exc.NoSuchModuleError:
        reason = f"SQLAlchemy knows no databases {path.partition('://')[0]}://; a file is named by its path"
        if path.startswith("postgres://"):
            reason = "SQLAlchemy calls these databases postgresql://"
    except ImportError as error:
        kind = LibraryMissing
        base_name = path.partition(":")[0].partition("+")[0]
        reason = (
            f"this needs the driver {error.name}: install it, or name the driver that is installed, as in "
            f"{base_name}+DRIVER://"
        )
    except (exc.ArgumentError, ValueError, TypeError):
        reason = "this is not the URL of a database: in a password write % signs for : / ? # @ (%40 for @)"
    if reason:  # not chained: an error may hold the URL, and so a password
        raise kind(f"{address}: {reason}")
    stack.callback(engine.dispose)
    database = url.database or ""
    in_file = (
        url.get_backend_name() == "sqlite" and database and not database.startswith((":memory:", "file:"))
    )
    if in_file and not os.path.isfile(database):  # SQLite would make one
        raise ValueError(f"{address}: no such file")
    try:
        base = engine.connect().execution_options(postgresql_readonly=True)
        stack.callback(base.close)
        return base
    except Exception as error:
        words = " ".join(str(getattr(error, "orig", None) or "").split())[:400]
        secrets = [url.password, *map(str, url.query.values())]
        if words and not any(secret and secret in words for secret in secrets):
            reason = f": {words}"
    raise NoConnection(f"{address}: no connection to the database{reason}")


def _table(base: Any, path: str, file: FileFormat) -> str | None:
    from sqlalchemy import inspect

    if is_query(file.query or ""):  # a large database is not asked for all its tables
        return None
    inspector, (schema, _) = inspect(base), _parts(file.query or "")
    names = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
    named = [name if schema is None else f"{schema}.{name}" for name in names]
    return named_table(file, named, shown(path))


def _parts(name: str) -> tuple[str | None, str]:
    """Part the name of a table from that of its schema."""
    schema, dot, table = name.strip().rpartition(".")
    return (schema, table) if dot and " " not in name.strip() else (None, name)


def _declared(base: Any, table: str) -> dict[str, object]:
    from sqlalchemy import inspect

    schema, name = _parts(table)
    dtypes: dict[str, object] = {}
    for column in inspect(base).get_columns(name, schema):
        try:
            dtypes[column["name"]] = _DTYPES.get(column["type"].python_type)
        except NotImplementedError:  # a type that Python has not
            dtypes[column["name"]] = None
    return dtypes


def _result(base: Any, path: str, file: FileFormat, table: str | None, stack: ExitStack) -> Any:
    """Ask for all rows of a table, or run the query of `file`; no row is looked at yet."""
    from sqlalchemy import exc

    query = file.query or ""
    if table is not None:
        write = base.dialect.identifier_preparer.quote
        query = f"SELECT * FROM {'.'.join(write(part) for part in _parts(table) if part is not None)}"
    ways = {"stream_results": True, "yield_per": CHUNK, "no_parameters": True}  # a % is one
    query, result = query.strip().removesuffix(";"), None
    if base.dialect.name == "postgresql":  # it tells what is wrong with the text without running it
        try:
            base.exec_driver_sql(f"EXPLAIN {query}", execution_options={"no_parameters": True}).close()
        except exc.DBAPIError as error:
            problem = str(error.orig).partition("\n")[0]
            raise ValueError(f"{shown(path)}: the database cannot run the query: {problem}") from None
    with suppress(exc.SQLAlchemyError):
        result = base.exec_driver_sql(query, execution_options=ways)
    if result is None:  # not chained: some rows may have been looked at
        raise DataError(f"{shown(path)}: the database cannot run the query")
    if not result.returns_rows:
        raise ValueError(f"{shown(path)}: the query returns no rows: use a SELECT")
    stack.callback(result.close)
    return result
