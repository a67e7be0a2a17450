"""What cannot be read of a schema's queries and rules."""

from collections.abc import Iterator, Sequence

from queries import Marginals, Union, spec
from queries.expressions import chain, parse, too_many
from queries.faults import Fault


def unreadable(queries: str | None, rules: Sequence[str], columns: int = 0) -> Iterator[Fault]:
    """Tell what cannot be read of the queries and the rules of a schema, and which tables are too wide."""
    if queries is not None:
        try:
            read = spec.parse(queries)
            for part in read.parts if isinstance(read, Union) else (read,):
                # other classes speak of attributes: how many is not known before a column has learned
                if columns and isinstance(part, Marginals) and part.width > columns:
                    said = f"queries {part.text!r}: width {part.width} is more than the {columns} columns"
                    yield Fault(said, "queries")
        except (ValueError, TypeError) as error:
            yield Fault(str(error), "queries")
    many = too_many(rules)
    yield from (Fault(said, "valid") for said in many)
    for number, rule in () if many else enumerate(rules):
        if chain(rule) is None:
            try:
                parse(rule)
            except (ValueError, TypeError) as error:
                yield Fault(str(error), "valid", str(number))
