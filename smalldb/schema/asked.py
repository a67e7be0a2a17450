"""Columns that are to learn their categories, as a schema states them, and what stands in for these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, final

from smalldb.schema.kinds import Cuts
from smalldb.schema.schema_columns import Column


@final
@dataclass(frozen=True, slots=True)
class ColumnToLearn:
    """A column that is to learn its categories."""

    column: str  # its name
    what: str  # "values" or "cuts"
    share: Fraction  # of epsilon, and for values of delta
    bins: int = 0  # how many, of cuts


def filled(given: Mapping[str, Any], what: str, categories: Sequence[object] | None) -> dict[str, Any]:
    """Return the table of a column with its categories in place of the wish to learn them."""
    filled = {key: value for key, value in given.items() if key not in ("share", what)}
    if what == "values":
        listed = ["?", "??"] if categories is None else [*categories]
        if len(listed) == 1 and given["unknown"] != "other":
            listed += ["??" if listed == ["?"] else "?"]  # a column has two categories
        return {**filled, "values": listed}
    if categories is not None:
        filled.pop("bins", None)
        return {**filled, "cuts": [*categories]}
    return filled


def closest(column: Column) -> list[Decimal]:
    """Return cuts that are as near to each other, and as large, as any that can be learned."""
    kind = column.kind
    if not isinstance(kind, Cuts):
        return []
    first, last = kind.steps(0)[0], kind.steps(kind.size - 1)[1]
    steps = sorted({first + 1, min(first + 2, last), max(last - 1, first + 1), last})
    return [Decimal(step).scaleb(-kind.decimals) for step in steps]
