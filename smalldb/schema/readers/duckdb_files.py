"""Databases of DuckDB."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, final

from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.pieces import Piece
from smalldb.schema.readers.queried import check_columns, named_table
from smalldb.schema.readers.reader import Wanted, WithoutCodeBook
from smalldb.schema.sources import duckdb_dtypes, duckdb_names, duckdb_pieces, duckdb_tables


@final
class DuckDbFiles(WithoutCodeBook):
    """A `Reader` of DuckDB: a table of the database, or a query."""

    name: ClassVar[str] = "duckdb"
    suffixes: ClassVar[tuple[str, ...]] = (".duckdb", ".ddb")
    lines: ClassVar[bool] = False
    headed: ClassVar[bool] = True
    chosen_by: ClassVar[str] = "query"

    def columns(
        self, path: str, file: FileFormat = USUAL, known: Collection[str] = ()
    ) -> Mapping[str, object]:
        """Return the columns with the types that the database declares."""
        return duckdb_dtypes(path, *_meant(path, file))

    def pieces(
        self, path: str, wanted: Wanted, file: FileFormat = USUAL, progress: bool = False
    ) -> Iterator[Piece]:
        """Yield the columns in pieces; `smalldb.schema.tables.read_by_duckdb` has DuckDB group them."""
        table, query = _meant(path, file)
        yield from duckdb_pieces(path, wanted.choose, table, query=query, grouped=False)


def _meant(path: str, file: FileFormat) -> tuple[str | None, str | None]:
    """Return the table or the query that is meant; its columns are checked."""
    table = named_table(file, lambda: duckdb_tables(path), path)
    if table is not None:
        return table, None
    query = (file.query or "").strip().removesuffix(";")
    check_columns(duckdb_names(path, query), path)
    return None, query
