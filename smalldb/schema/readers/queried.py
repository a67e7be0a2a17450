"""What databases share: which query is meant, and rows of it as columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from queries.expressions import shorten, suggestion
from smalldb.schema.file_format import FileFormat
from smalldb.schema.pieces import Piece, objects
from smalldb.schema.records import check_names

_SAID = "say which (--query, or file.query of a schema)"
_STATEMENT = re.compile(  # how one begins; two words that begin otherwise are the name of a table
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*+(?:SELECT|WITH|FROM|VALUES|TABLE|PIVOT|UNPIVOT|EXPLAIN|SHOW|DESCRIBE"
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


def named_table(file: FileFormat, tables: Callable[[], Sequence[str]], path: str) -> str | None:
    """Return the name of the table that is meant, of one word or of several; None: `file` states a query."""
    stated, known = file.query, [*tables()]
    if stated is not None and is_query(stated) and stated.strip() not in known:
        return None
    if stated is None:
        if len(known) == 1:
            return known[0]
        listed = f", {', '.join(repr(shorten(name)) for name in known[:8])}" if known else ""
        raise ValueError(f"{path} has {len(known)} tables{listed}{', ...' * (len(known) > 8)}: {_SAID}")
    name = stated.strip()
    if name not in known:
        raise ValueError(f"{path} has no table {name!r}{suggestion(name, known)}")
    return name


def check_columns(names: Sequence[str], path: str) -> list[str]:
    """Return the names of the columns of a query; ValueError: two are alike, or they cannot be shown."""
    found = [*names]
    check_names(found, path)
    repeated = [name for name, times in Counter(found).items() if times > 1]
    if repeated:
        raise ValueError(
            f"{path}: the query returns two columns {repeated[0]!r}: "
            "give one another name (AS), or leave one out"
        )
    return found


def pieces_of_rows(
    batches: Iterable[Sequence[Sequence[object]]], positions: Sequence[int]
) -> Iterator[Piece]:
    """Yield the columns at some positions of rows that come in batches."""
    for batch in batches:
        columns = [*zip(*batch, strict=True)]
        yield [objects(columns[i]) for i in positions], None
