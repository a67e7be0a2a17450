"""What cannot be read of a schema's queries and rules."""

from collections.abc import Sequence

from queries import Marginals, QueryClass, Union, spec
from queries.expressions import parse, too_many
from smalldb.schema.orders import is_order


def unreadable(queries: str | None, rules: Sequence[str], columns: int = 0) -> list[str]:
    """Tell what cannot be read of the queries and the rules of a schema, and which tables are too wide."""
    wrong = []
    if queries is not None:
        try:
            wrong += _too_wide(spec.parse(queries), columns)
        except (ValueError, TypeError) as error:
            wrong.append(str(error))
    wrong += (many := too_many(rules))
    for rule in () if many else rules:
        if is_order(rule):
            continue
        try:
            parse(rule)
        except (ValueError, TypeError) as error:
            wrong.append(str(error))
    return wrong


def _too_wide(queries: QueryClass, columns: int) -> list[str]:
    """Tell which tables have more columns than there are.

    Other classes speak of attributes: how many is not known before a column has learned its categories.
    """
    parts = queries.parts if isinstance(queries, Union) else (queries,)
    return [
        f"queries {part.text!r}: width {part.width} is more than the {columns} columns"
        for part in parts
        if columns and isinstance(part, Marginals) and part.width > columns
    ]
