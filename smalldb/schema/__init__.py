"""Real columns to codes and back, by public choices alone."""

from smalldb.schema.counting_sql import count_on_cluster, counting_query
from smalldb.schema.drafting import draft, draft_schema
from smalldb.schema.kinds import Categories, Cuts, Dates, Flag, Integers, Times, Weekdays
from smalldb.schema.mapping import Schema
from smalldb.schema.reading import parse_schema, read_schema
from smalldb.schema.schema_columns import Column

as_schema = read_schema  # its earlier name

__all__ = [
    "Categories",
    "Column",
    "Cuts",
    "Dates",
    "Flag",
    "Integers",
    "Schema",
    "Times",
    "Weekdays",
    "as_schema",
    "count_on_cluster",
    "counting_query",
    "draft",
    "draft_schema",
    "parse_schema",
    "read_schema",
]
