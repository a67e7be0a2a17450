"""How often each value of each column stands in a table: its 1-way marginals."""

from dataclasses import dataclass

import numpy as np

from queries import Rows
from smalldb.schema import Cuts, Dates, Flag, Schema
from smalldb.schema.columns import Column


@dataclass(frozen=True, slots=True)
class Marginal:
    """A column, the names of what it can hold, and the share of rows in each."""

    column: str
    labels: tuple[str, ...]
    shares: tuple[float, ...]


def marginals(rows: Rows, schema: Schema | None) -> list[Marginal]:
    """Return the marginals of the schema's columns; without one, of all attributes together.

    Parameters
    ----------
    rows
        At least one.
    schema
        Whose domain the rows are of.
    """
    bits, weights = rows.bits(), rows.counts / rows.n
    if schema is None:
        return [Marginal("Attributes", rows.domain.attributes, tuple(weights @ bits))]
    found, start = [], 0
    for column in schema.columns:
        end = start + len(column.code.names)
        places = column.code.places(bits[:, start:end])
        labels = place_names(column)
        shares = np.bincount(places, weights=weights, minlength=len(labels))
        found.append(Marginal(column.name, labels, tuple(shares.tolist())))
        start = end
    return found


def place_names(column: Column) -> tuple[str, ...]:
    """Name the places of a column, as people read them.

    >>> place_names(Column("age", Cuts([18, 65], 0, 99), missing=True))
    ('age<18', '18<=age<65', 'age>=65', 'missing')
    """
    kind = column.kind
    if isinstance(kind, Cuts | Dates):
        names = kind.names(column.name, "bins")
    else:
        names = ["no", "yes"] if isinstance(kind, Flag) else [str(value) for value in kind.values()]
    return (*names, *(["missing"] if column.missing else []))
