"""Tables of Spark and of Dask, counted where they are: only counts leave the cluster."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

from queries import Rows
from smalldb.schema.counting_sql import counting_query, counts_beside
from smalldb.schema.mapping import Schema


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
    given = cast(Any, table)
    match type(table).__module__.partition(".")[0]:
        case "pyspark":
            return _by_spark(given, schema)
        case "dask":
            return _by_dask(given, schema)
    raise TypeError(f"expected a DataFrame of Spark or of Dask, not {type(table).__name__}")


def _by_spark(frame: Any, schema: Schema) -> Rows:
    session, view, counts = frame.sparkSession, f"smalldb_{uuid4().hex}", counts_beside(schema)
    schema.chosen(frame.columns)
    frame.createOrReplaceTempView(view)
    try:
        found = session.sql(counting_query(schema, "spark", view, counts)).toPandas()
    finally:
        session.catalog.dropTempView(view)
    return schema.encode(found, counts)


def _by_dask(frame: Any, schema: Schema) -> Rows:
    from dask import compute, delayed

    names = [frame.columns[position] for position in schema.chosen([*frame.columns])]
    count, plus = delayed(schema.encode), delayed(Rows.plus)
    found = [count(part) for part in frame[names].to_delayed()]
    while len(found) > 1:
        odd = found[-1:] if len(found) % 2 else []
        found = [plus(one, other) for one, other in zip(found[::2], found[1::2], strict=False)] + odd
    (rows,) = compute(found[0])
    return cast(Rows, rows)
