"""Tables that DuckDB groups, in pieces of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queries import DataError
from queries.late import pd
from smalldb.schema.pieces import CHUNK, Piece
from smalldb.schema.readers.reader import Choose
from smalldb.schema.records import LONGEST, Heading

# an empty field stays one, and is no NULL: so that a blank line can be told from it;
# not in parallel: who begins in the middle of a file guesses, from its rows, whether it is within quotes
_DIALECT = (
    "auto_detect = false, header = false, quote = '\"', escape = '\"', nullstr = '\x01', strict_mode = true, "
    "parallel = false"
)


def duckdb_dtypes(path: str, table: str) -> dict[str, object]:
    """Return the columns of a table of a DuckDB database with their declared dtypes; no data.

    Errors as `duckdb_pieces`.
    """
    try:
        import duckdb
    except ImportError as error:
        raise ValueError("this needs DuckDB: pip install 'smalldb-dp[duckdb]'") from error

    with open(path, "rb"):
        pass  # the usual error where it cannot be read
    try:
        with duckdb.connect(path, read_only=True) as base:
            empty = base.sql(f"FROM {_identifier(table)} LIMIT 0")
            texts = {name for name, kind in zip(empty.columns, empty.types, strict=True) if kind == "VARCHAR"}
            dtypes = empty.df().dtypes.items()
            return {str(name): "string" if name in texts else dtype for name, dtype in dtypes}
    except duckdb.Error as error:
        raise ValueError(f"DuckDB cannot read a table {table!r} in {path}") from error


def duckdb_pieces(
    path: str, choose: Choose, table: str | None = None, header: Heading | None = None
) -> Iterator[Piece]:
    """Yield the distinct rows of the chosen columns, with how often each occurs, as DuckDB groups them.

    The grouping runs out of core: what does not fit into memory goes to DuckDB's temporary files, which
    stand in the folder ``.tmp`` while it runs.

    Parameters
    ----------
    path
        A database of DuckDB with `table`; otherwise a CSV file with `header`; otherwise a Parquet file.
    choose
        Which columns.
    table
        Name of a table or view.
    header
        Of a CSV file; its fields are taken as texts, nothing is inferred.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        DuckDB is not installed (the extra ``duckdb``), cannot read the file or does not find the table.
    DataError
        It is broken further on.
    """
    try:
        import duckdb
    except ImportError as error:
        raise ValueError("this needs DuckDB: pip install 'smalldb-dp[duckdb]'") from error

    if set(path) & set("*?[{"):
        raise ValueError(f"DuckDB would take {path!r} as a pattern: rename the file")
    with open(path, "rb"):
        pass  # the usual error where it cannot be read
    if table is not None:
        source = _identifier(table)
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
                *fields, times = zip(*rows, strict=True)
                yield [pd.Series(field, dtype=object) for field in fields], times
        except duckdb.Error:
            broken = True
        if broken:  # not chained: nothing of the data may travel in an error
            raise DataError(f"{path} is broken: DuckDB cannot read it to its end")


def _grouped(source: str, columns: Sequence[tuple[str, str]]) -> str:
    """Select the distinct rows of columns, each with its name and type, and how often each occurs.

    Texts are grouped as bytes, because a collation takes different texts (A and a) for equal.
    """
    inner, outer = [], []
    for i, (name, kind) in enumerate(columns):
        is_text = kind.startswith("VARCHAR") and not kind.endswith("]")
        inner.append(f"{f'encode({_identifier(name)})' if is_text else _identifier(name)} AS c{i}")
        outer.append(f"decode(c{i})" if is_text else f"c{i}")
    groups = f"SELECT {', '.join(inner)}, count(*) AS n FROM {source} GROUP BY ALL"
    return f"SELECT {', '.join(outer)}, n FROM ({groups})"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
