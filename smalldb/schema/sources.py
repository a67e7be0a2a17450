"""Tables that DuckDB groups, in pieces of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from queries import DataError
from smalldb.schema.pieces import CHUNK, Piece, objects
from smalldb.schema.readers.queried import quoted
from smalldb.schema.readers.reader import Choose, of_extra
from smalldb.schema.records import LONGEST, Heading

# an empty field stays one, and is no NULL: so that a blank line can be told from it;
# not in parallel: who begins in the middle of a file guesses, from its rows, whether it is within quotes
_DIALECT = (
    "auto_detect = false, header = false, quote = '\"', escape = '\"', nullstr = '\x01', strict_mode = true, "
    "parallel = false"
)


def duckdb_dtypes(path: str, table: str) -> dict[str, object]:
    """Return the columns of a table of a DuckDB database with their dtypes; no data."""
    duckdb = imported(path)
    try:
        with duckdb.connect(path, read_only=True) as base:
            empty = base.sql(f"FROM {quoted(table)} LIMIT 0")
            texts = {name for name, kind in zip(empty.columns, empty.types, strict=True) if kind == "VARCHAR"}
            dtypes = empty.df().dtypes.items()
            return {str(name): "string" if name in texts else dtype for name, dtype in dtypes}
    except duckdb.Error as error:
        raise ValueError(f"DuckDB cannot read a table {table!r} in {path}") from error


def duckdb_pieces(
    path: str,
    choose: Choose,
    table: str | None = None,
    header: Heading | None = None,
) -> Iterator[Piece]:
    """Yield the distinct rows of the chosen columns, with how often each occurs, as DuckDB groups them.

    The grouping runs out of core: what does not fit into memory goes to DuckDB's temporary files, which
    stand in the folder ``.tmp`` while it runs.
    """
    if set(path) & set("*?[{"):
        raise ValueError(f"DuckDB would take {path!r} as a pattern: rename the file")
    duckdb = imported(path)
    if table is not None:
        source = quoted(table)
    elif header is not None:
        columns = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in header.names)
        ways = f"delim = {_text(header.separator)}, skip = 1, max_line_size = {LONGEST}, {_DIALECT}"
        source = f"read_csv({_text(path)}, columns = {{{columns}}}, {ways})"
    else:
        source = f"read_parquet({_text(path)})"
    base = None
    try:
        base = duckdb.connect(":memory:" if table is None else path, read_only=table is not None)
        described = base.sql(f"DESCRIBE FROM {source}").fetchall()
    except duckdb.Error as error:
        if base is not None:
            base.close()
        found = path if table is None else f"a table {table!r} in {path}"
        raise ValueError(f"DuckDB cannot read {found}") from error
    with base:
        chosen = [described[i][:2] for i in choose([name for name, *_ in described])]
        broken = False
        try:
            base.execute(_grouped(source, chosen))
            while rows := base.fetchmany(CHUNK):
                fields = [*zip(*rows, strict=True)]
                times = fields.pop()
                yield [objects(field) for field in fields], times
        except duckdb.Error:
            broken = True
        if broken:  # not chained: nothing of the data may travel in an error
            raise DataError(f"{path} is broken: DuckDB cannot read it to its end")


def imported(path: str | None = None) -> Any:
    """Return the module DuckDB; where a file is to be read, that can be: ValueError, OSError."""
    with of_extra("DuckDB", "smalldb-dp[duckdb]", "its databases, and grouping on disk,"):
        import duckdb
    if path is not None:
        with open(path, "rb"):
            pass  # the usual error where it cannot be read
    return duckdb


def read_as(name: str, kind: str) -> str:
    """Write a column as it is read: a float of four bytes by its shortest text, .7 and not .699999988."""
    return f"CAST(CAST({quoted(name)} AS VARCHAR) AS DOUBLE)" if kind == "FLOAT" else quoted(name)


def _grouped(source: str, columns: Sequence[tuple[str, str]]) -> str:
    """Select the distinct rows of columns, each with its name and type, and how often each occurs.

    Texts are grouped as bytes, because a collation takes different texts (A and a) for equal.
    """
    inner, outer = [], []
    for i, (name, kind) in enumerate(columns):
        is_text = kind.startswith("VARCHAR") and not kind.endswith("]")
        inner.append(f"{f'encode({quoted(name)})' if is_text else read_as(name, kind)} AS c{i}")
        outer.append(f"decode(c{i})" if is_text else f"c{i}")
    groups = f"SELECT {', '.join(inner)}, count(*) AS n FROM {source} GROUP BY ALL"
    return f"SELECT {', '.join(outer)}, n FROM ({groups})"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
