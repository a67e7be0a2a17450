"""Real columns to places and back, by public choices alone."""

from smalldb.schema.arguments import as_schema
from smalldb.schema.columns import Column
from smalldb.schema.drafting import draft_schema
from smalldb.schema.kinds import Categories, Cuts, Dates, Flag, Integers, Times
from smalldb.schema.mapping import Schema
from smalldb.schema.parsing import parse_schema, read_schema

__all__ = [
    "Categories",
    "Column",
    "Cuts",
    "Dates",
    "Flag",
    "Integers",
    "Schema",
    "Times",
    "as_schema",
    "draft_schema",
    "parse_schema",
    "read_schema",
]
