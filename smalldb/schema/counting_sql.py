"""SQL that counts the rows of a table by the bins of a schema, inside a database.

A number or a date whose bin is sure becomes a value of that bin. Whatever else there is (gaps, other types,
numbers that a float does not hold) is handed on as it is, and is read as ever. So the counts are those of the
rows, whatever these hold, in fewer lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import final

import numpy as np

from queries.expressions import suggestion
from smalldb.schema.kinds import Cuts, Dates
from smalldb.schema.mapping import Schema
from smalldb.schema.readers.queried import is_query
from smalldb.schema.schema_columns import Column

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")  # how a gap begins that a date may mean
_EXACT = 15  # digits of a decimal number that a float keeps: comparisons with so many are exact


@final
@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database tells types, and compares.

    Attributes
    ----------
    number, date
        Tell whether ``{x}`` is a number, or a date, of which the other texts are sure.
    as_number, as_date
        Write it such that it is compared by value with a number, with an ISO date in quotes.
    rest
        What is handed on as it is.
    strange
        What a float that is no number is handed on as.
    group
        What rows are grouped by: such that different texts stay apart, whatever the collation.
    mark
        The sign about a name.
    """

    number: str
    as_number: str
    date: str
    as_date: str
    rest: str
    strange: str
    group: str
    mark: str = '"'

    def quoted(self, name: str) -> str:
        """Write the name of a table, or of a column."""
        return f"{self.mark}{name.replace(self.mark, 2 * self.mark)}{self.mark}"


DIALECTS: Mapping[str, Dialect] = {
    "sqlite": Dialect(
        "typeof({x}) IN ('integer', 'real') AND {x} > -1e15 AND {x} < 1e15",  # abs fails at -2^63
        "{x}",
        "typeof({x}) = 'text' AND {x} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]' "
        "AND date({x}, '+0 days') = {x} AND {x} > '0001'",
        "{x}",
        "{x}",
        "",
        "{x} COLLATE BINARY, typeof({x})",
    ),
    "duckdb": Dialect(
        "regexp_full_match(typeof({x}), 'U?(TINYINT|SMALLINT|INTEGER|BIGINT)|FLOAT|DOUBLE"
        "|DECIMAL\\(([0-9]|1[0-5]),.*') AND abs(TRY_CAST({x} AS DOUBLE)) < 1e15",
        "TRY_CAST({x} AS DOUBLE)",
        "typeof({x}) IN ('DATE', 'TIMESTAMP') AND year(TRY_CAST({x} AS DATE)) BETWEEN 1 AND 9999",
        "strftime(TRY_CAST({x} AS DATE), '%Y-%m-%d')",
        "CAST({x} AS VARCHAR)",
        "WHEN typeof({x}) IN ('FLOAT', 'DOUBLE') AND isnan(TRY_CAST({x} AS DOUBLE)) THEN NULL",
        "encode(CAST({x} AS VARCHAR))",
    ),
    "postgres": Dialect(
        "pg_typeof({x})::text IN ('smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision') "
        "AND {x}::text NOT IN ('NaN', 'Infinity', '-Infinity')",
        "{x}::text::numeric",
        "pg_typeof({x})::text IN ('date', 'timestamp without time zone') "
        "AND {x}::text ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}' AND {x}::text !~ 'BC$'",
        "left({x}::text, 10)",
        "{x}::text",
        "WHEN pg_typeof({x})::text IN ('numeric', 'real', 'double precision') AND {x}::text = 'NaN' "
        "THEN NULL",
        '{x}::text COLLATE "C"',
    ),
    "spark": Dialect(
        "(typeof({x}) IN ('tinyint', 'smallint', 'int', 'bigint', 'float', 'double') "
        "OR typeof({x}) RLIKE '^decimal[(]([0-9]|1[0-5]),') AND abs(try_cast({x} AS DOUBLE)) < 1e15D",
        "try_cast({x} AS DOUBLE)",
        "typeof({x}) IN ('date', 'timestamp_ntz', 'timestamp') "
        "AND year(try_cast({x} AS DATE)) BETWEEN 1 AND 9999",
        "date_format(try_cast({x} AS DATE), 'yyyy-MM-dd')",
        "CAST({x} AS STRING)",
        "WHEN typeof({x}) IN ('float', 'double') AND isnan(try_cast({x} AS DOUBLE)) THEN NULL",
        "{x}",
        "`",
    ),
}


def counting_query(schema: Schema, dialect: str, table: str, counts: str = "n") -> str:
    """
    Write a query whose rows are those of a table by the bins of a schema, with how often each occurs.

    Numbers and dates that are sure to lie in a bin are counted together. All else is handed on as it is.

    Parameters
    ----------
    dialect
        "sqlite", "duckdb", "postgres" or "spark".
    table
        The name of a table or view, or a query.
    counts
        The column that says how often a row occurs.

    Raises
    ------
    ValueError
        Another dialect, or a column of counts that the schema has.
    """
    if dialect not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise ValueError(f"dialect must be one of {known}, not {dialect!r}{suggestion(dialect, DIALECTS)}")
    if counts in schema.names:
        raise ValueError(f"column {counts!r} cannot hold counts: it is in the schema")
    way = DIALECTS[dialect]
    source = (
        f"({table.strip().removesuffix(';')}\n) AS rows_of_data" if is_query(table) else way.quoted(table)
    )
    inner = [f"  {_expression(column, way)} AS {way.quoted(column.name)}" for column in schema.columns]
    names = [way.quoted(name) for name in schema.names]
    groups = [group for name in names for group in dict.fromkeys((name, way.group.format(x=name)))]
    return (
        f"SELECT {', '.join(names)}, count(*) AS {way.quoted(counts)}\nFROM (SELECT\n"
        + ",\n".join(inner)
        + f"\n  FROM {source}\n) AS binned\nGROUP BY {', '.join(groups)}\n"
    )


def _expression(column: Column, way: Dialect) -> str:
    """Write a column by its bins, where these are sure."""
    name = way.quoted(column.name)
    match column.kind:
        case Cuts() if column.numbers.plain:
            cuts = [f"{cut:f}" for cut in column.kind.cuts]
            edges = [f"{edge:f}" for edge in (column.kind.low, *column.kind.cuts)]
            if any(len(cut.replace("-", "").replace(".", "").strip("0")) > _EXACT for cut in cuts):
                return name
            sure, value = way.number, way.as_number
            codes = [text for text in map(_number, column.gaps) if text is not None]
        case Dates() if not column.kind.timed and column.kind.form is None:
            starts = [column.kind.at(column.kind.steps(place)[0]) for place in range(column.kind.size)]
            edges, cuts = [str(start) for start in starts], [f"'{start}'" for start in starts[1:]]
            sure, value = way.date, way.as_date
            codes = [f"'{gap[:10]}'" for gap in column.gaps if _DAY.match(gap)]
        case _:
            return name
    found = column.found(np.array(edges, dtype=object))
    if found.tolist() != [*range(len(edges))]:  # an edge means a gap
        return name
    compared = value.format(x=name)
    guard = sure.format(x=name) + (f" AND {compared} NOT IN ({', '.join(codes)})" if codes else "")
    branches = [
        f"WHEN {guard} AND {compared} < {cut} THEN '{text}'" for cut, text in zip(cuts, edges, strict=False)
    ]
    last = f"WHEN {guard} AND {compared} >= {cuts[-1]} THEN '{edges[-1]}'"
    strange = [way.strange.format(x=name)] if way.strange and isinstance(column.kind, Cuts) else []
    if isinstance(column.kind, Cuts) and any(Decimal(code) == 0 for code in codes):  # also -0.0 is that gap
        strange.append(f"WHEN {sure.format(x=name)} AND {compared} = 0 THEN '0'")
    return f"CASE {' '.join([*strange, *branches, last])} ELSE {way.rest.format(x=name)} END"


def _number(text: str) -> str | None:
    """Write a text that means a gap as a number, if it is one."""
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    return f"{number:f}" if number.is_finite() else None
