"""The columns of a schema that have finer bins: what is wrong with them, their cost, their counts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from queries.faults import Fault
from smalldb.schema.finer_bins import MOST_SHARE, FinerCost
from smalldb.schema.orders import Orders
from smalldb.schema.schema_columns import Column


def not_finer(columns: Sequence[Column], orders: Orders) -> list[Fault]:
    """Tell which columns cannot have finer bins, and whether all of them spend too much."""
    named = [columns[c].name for group in orders.groups for c in group if columns[c].finer]
    said = "finer is not for columns of an order: leave it out"
    wrong = [Fault(said, "columns", name, "finer") for name in named]
    if sum(column.finer.share for column in columns if column.finer) > MOST_SHARE:
        wrong.append(Fault(f"finer: the shares of all columns may add up to {MOST_SHARE}"))
    return wrong


def finer_costs(columns: Sequence[Column], epsilon: Fraction) -> tuple[FinerCost, ...]:
    """Return what the finer bins cost of each column that has some, of an epsilon in all."""
    return tuple(
        FinerCost(column.name, tuple(column.finer.kind.cuts_told), column.finer.share * epsilon)
        for column in columns
        if column.finer
    )


def with_finer(
    columns: Sequence[Column], released: Mapping[str, Sequence[int]], variances: Mapping[str, float]
) -> tuple[Column, ...]:
    """Return the columns with what was released of their finer bins."""
    return tuple(
        replace(column, finer=column.finer.released(released[column.name], variances[column.name]))
        if column.finer and column.name in released
        else column
        for column in columns
    )
