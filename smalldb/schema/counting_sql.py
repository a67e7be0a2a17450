"""SQL that counts the rows of a table by the bins of a schema, inside a database.

A number or a date whose bin is sure becomes a value of that bin. Whatever else there is (gaps, other types,
numbers that a float does not hold) is handed on as it is, and is read as ever. So the counts are those of the
rows, whatever these hold, in fewer lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast, final
from uuid import uuid4

import numpy as np

from queries import Rows
from queries.expressions import suggestion
from smalldb.files.inputs import shown
from smalldb.schema.mapping import Schema
from smalldb.schema.readers.database_files import is_query
from smalldb.schema.readers.registry import reader_of
from smalldb.schema.schema_columns import Column

_MADE = {"postgresql": "postgres"}  # by URLs


@final
@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database tells types, and compares."""

    # tell whether ``{x}`` is a number, or a date, of which the other texts are sure
    number: str
    # write it such that it is compared by value with a number, with an ISO date in quotes
    as_number: str
    date: str
    as_date: str
    rest: str  # what is handed on as it is
    strange: str  # what a float that is no number is handed on as
    group: str  # what rows are grouped by: such that different texts stay apart, whatever the collation
    constant: str = "{x}"  # write a number that a number is compared with
    mark: str = '"'  # the sign about a name
    never: str = ""  # signs that no name has, whatever stands about it
    folds: bool = True  # names that differ in capitals alone are one

    def quoted(self, name: str) -> str:
        """Write the name of a table, or of a column."""
        return f"{self.mark}{name.replace(self.mark, 2 * self.mark)}{self.mark}"

    def check(self, names: Sequence[str], dialect: str) -> None:
        """ValueError: a name that a column of the database cannot have, or two that are one there."""
        known: dict[str, str] = {}
        for name in names:
            if set(name) & set(self.never):
                raise ValueError(f"no column can be called {name!r} in {dialect}: rename it")
            if self.folds and known.setdefault(name.casefold(), name) != name:
                other = known[name.casefold()]
                raise ValueError(f"columns {other!r} and {name!r} have one name in {dialect}: rename one")


def _of_snowflake(of_times: str) -> str:
    """Write a date or a time as a text, whatever format a session has; NULL: `{x}` holds neither."""
    times = [
        f"TO_CHAR(AS_TIMESTAMP_{zone}(TO_VARIANT({{x}})), '{of_times}')" for zone in ("NTZ", "LTZ", "TZ")
    ]
    return f"COALESCE(TO_CHAR(AS_DATE(TO_VARIANT({{x}})), 'YYYY-MM-DD'), {', '.join(times)})"


_SNOWFLAKE_DAY, _SNOWFLAKE_TIME = map(_of_snowflake, ("YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS"))
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
        # four bytes are what their shortest text says: .7, and not .699999988
        "CASE WHEN typeof({x}) = 'FLOAT' THEN TRY_CAST(CAST({x} AS VARCHAR) AS DOUBLE) "
        "ELSE TRY_CAST({x} AS DOUBLE) END",
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
        folds=False,
    ),
    "spark": Dialect(
        "(typeof({x}) IN ('tinyint', 'smallint', 'int', 'bigint', 'float', 'double') "
        "OR typeof({x}) RLIKE '^decimal[(]([0-9]|1[0-5]),') AND abs(try_cast({x} AS DOUBLE)) < 1e15D",
        "CASE WHEN typeof({x}) = 'float' THEN try_cast(CAST({x} AS STRING) AS DOUBLE) "
        "ELSE try_cast({x} AS DOUBLE) END",
        "typeof({x}) IN ('date', 'timestamp_ntz', 'timestamp') "
        "AND year(try_cast({x} AS DATE)) BETWEEN 1 AND 9999",
        "date_format(try_cast({x} AS DATE), 'yyyy-MM-dd')",
        "CAST({x} AS STRING)",
        "WHEN typeof({x}) IN ('float', 'double') AND isnan(try_cast({x} AS DOUBLE)) THEN NULL",
        "{x}",
        mark="`",
    ),
    # JSON has finite floats, and whole numbers that a float holds, without quotes: so no text is one
    "bigquery": Dialect(
        "REGEXP_CONTAINS(TO_JSON_STRING({x}), '^-?[0-9]')",
        "SAFE_CAST({x} AS FLOAT64)",
        # a space that JSON writes as T is that of a time, and of no text
        "SAFE_CAST(SUBSTR(CAST({x} AS STRING), 1, 10) AS DATE) IS NOT NULL "
        "AND REGEXP_CONTAINS(CAST({x} AS STRING), '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}( |$)') "
        "AND (LENGTH(CAST({x} AS STRING)) = 10 OR SUBSTR(TO_JSON_STRING({x}), 12, 1) = 'T')",
        "SUBSTR(CAST({x} AS STRING), 1, 10)",
        "CAST({x} AS STRING)",
        "WHEN {x} != {x} THEN NULL",
        "CAST(TO_JSON_STRING({x}) AS BYTES)",
        mark="`",
        never="`\\",
    ),
    # of a float that is no whole number, only AS_DOUBLE knows all digits
    "snowflake": Dialect(
        "(SYSTEM$TYPEOF({x}) LIKE 'FLOAT%' AND TO_VARCHAR({x}) NOT IN ('NaN', 'inf', '-inf') "
        "OR REGEXP_LIKE(SYSTEM$TYPEOF({x}), 'NUMBER[(](([0-9]|1[0-5]),.*|[0-9]+,0[)].*)') "
        "AND ABS(TRY_TO_DOUBLE(TO_VARCHAR({x}))) < 1e15)",
        "COALESCE(AS_DOUBLE(TO_VARIANT({x})), TRY_TO_DOUBLE(TO_VARCHAR({x})))",
        f"REGEXP_LIKE({_SNOWFLAKE_DAY}, '[0-9]{{{{4}}}}-[0-9]{{{{2}}}}-[0-9]{{{{2}}}}') "
        f"AND {_SNOWFLAKE_DAY} > '0001'",
        _SNOWFLAKE_DAY,
        f"COALESCE({_SNOWFLAKE_TIME}, TO_VARCHAR({{x}}))",
        "WHEN SYSTEM$TYPEOF({x}) LIKE 'FLOAT%' AND TO_VARCHAR({x}) = 'NaN' THEN NULL",
        "TO_BINARY(TO_VARCHAR({x}), 'UTF-8')",
        "CAST({x} AS FLOAT)",
        folds=False,
    ),
}


def counting_query(schema: Schema, dialect: str, table: str, counts: str = "n") -> str:
    """
    Write a query whose rows are those of a table by the bins of a schema, with how often each occurs.

    Numbers and dates that are sure to lie in a bin, or a finer one, are counted together. All else is handed
    on as it is.

    Parameters
    ----------
    schema
        Whose bins they are.
    dialect
        "sqlite", "duckdb", "postgres", "spark", "bigquery" or "snowflake".
    table
        The name of a table or view, or a query.
    counts
        The column that says how often a row occurs.

    Raises
    ------
    ValueError
        Another dialect, a column of counts that the schema has, or names that the database cannot tell apart.
    """
    if dialect not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise ValueError(f"dialect must be one of {known}, not {dialect!r}{suggestion(dialect, DIALECTS)}")
    if counts in schema.names:
        raise ValueError(f"column {counts!r} cannot hold counts: it is in the schema")
    way = DIALECTS[dialect]
    way.check((*schema.names, counts), dialect)
    if not is_query(table) and set(table) & set(way.never):
        raise ValueError(f"no table can be called {table!r} in {dialect}")
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


def counting_inside(path: str, schema: Schema, table: str | None) -> tuple[str, str]:
    """Return the query that counts a table inside its database, and the name of its column of counts."""
    reader = reader_of(path).name
    make = path.partition(":")[0].partition("+")[0] if reader == "sql" else reader
    dialect = _MADE.get(make, make)
    if dialect not in DIALECTS:
        raise ValueError(
            f"{shown(path)}: only {', '.join(DIALECTS)} can count: leave out --count-in-database"
        )
    if table is None:
        raise ValueError(f"{shown(path)}: name the table that is to be counted (--query)")
    if reader == "sql" and "." in table and dialect != "bigquery" and not is_query(table):
        table = f"SELECT * FROM {'.'.join(map(DIALECTS[dialect].quoted, table.rpartition('.')[::2]))}"
    counts = counts_beside(schema)
    return counting_query(schema, dialect, table, counts), counts


def counts_beside(schema: Schema) -> str:
    """Return a name for a column of counts that no column of a schema has, in capitals or not."""
    counts = "n"
    while counts in map(str.casefold, schema.names):
        counts += "_"
    return counts


def _expression(column: Column, way: Dialect) -> str:
    """Write a column by its bins, where these are sure."""
    name, odd = way.quoted(column.name), []
    kind = column.kind if column.finer is None else column.finer.kind  # these lie in the bins
    bins = kind.in_sql()
    if bins is None:
        return name
    codes, edges = [text for text in map(bins.gap, column.gaps) if text is not None], bins.edges
    ways = (way.date, way.as_date) if bins.measure == "date" else (way.number, way.as_number)
    sure, compared = (text.format(x=name) for text in ways)
    cuts = [f"'{edge}'" for edge in edges[1:]]
    if bins.measure == "number":
        odd = [way.strange.format(x=name)] if way.strange else []
        if any(Decimal(code) == 0 for code in codes):  # also -0.0 is that gap
            odd.append(f"WHEN {sure} AND {compared} = 0 THEN '0'")
        cuts, codes = ([way.constant.format(x=text) for text in texts] for texts in (edges[1:], codes))
    bins_of_edges = column.encode_finer(np.array(edges, dtype=object))
    if bins_of_edges.tolist() != [*range(len(edges))]:  # an edge means a gap
        return name
    guard = f"{sure} AND {compared} NOT IN ({', '.join(codes)})" if codes else sure
    cases = [f"WHEN {compared} < {cut} THEN '{edge}'" for cut, edge in zip(cuts, edges, strict=False)]
    binned = f"WHEN {guard} THEN CASE {' '.join(cases)} ELSE '{edges[-1]}' END"
    return f"CASE {' '.join([*odd, binned])} ELSE {way.rest.format(x=name)} END"


def count_on_cluster(table: object, schema: Schema) -> Rows:
    """
    Count the rows of a table of Spark or of Dask, by a schema: the counts that `Schema.encode` would give.

    Spark groups the rows by bins (`counting_query`). Dask counts each partition, and adds them up two by two.
    A task whose worker died is run again by either, so it is counted once.

    Parameters
    ----------
    table
        A DataFrame of Spark (``pyspark.sql``) or of Dask (``dask.dataframe``).
    schema
        Of the table: its columns are found by their names.

    Raises
    ------
    TypeError
        Another table: `Schema.encode` counts those.
    ValueError, DataError
        As `Schema.encode`.
    """
    frame, make = cast(Any, table), type(table).__module__.partition(".")[0]
    if make == "pyspark":
        session, view, counts = frame.sparkSession, f"smalldb_{uuid4().hex}", counts_beside(schema)
        schema.chosen(frame.columns)
        frame.createOrReplaceTempView(view)
        try:
            counted = session.sql(counting_query(schema, "spark", view, counts)).toPandas()
        finally:
            session.catalog.dropTempView(view)
        return schema.encode(counted, counts)
    if make == "dask":
        from dask import compute, delayed

        names = [frame.columns[position] for position in schema.chosen([*frame.columns])]
        count, plus = delayed(schema.encode), delayed(Rows.plus)
        parts = [count(part) for part in frame[names].to_delayed()]
        while len(parts) > 1:
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [plus(one, other) for one, other in zip(parts[::2], parts[1::2], strict=False)] + odd
        return cast(Rows, compute(parts[0])[0])
    raise TypeError(f"expected a DataFrame of Spark or of Dask, not {type(table).__name__}")
