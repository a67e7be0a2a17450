"""How a record holds the columns of a table, and how they are read again, with what their categories mean."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from queries import Column, Domain
from queries.expressions import parse
from queries.rule_tables import finder, rule_texts
from smalldb.schema import Schema
from smalldb.schema.related_schema import RelatedSchema

Range: TypeAlias = tuple[float | None, float | None] | None
Ranges: TypeAlias = Mapping[str, Sequence[Range]]
"""
Of each column of numbers, the least and the largest number of each category.

An end is None where it is not known, and a range is None for a gap.
"""


def standing_ranges(domain: Domain) -> dict[str, tuple[Range, ...]]:
    """Return what a domain alone says of its columns: of bins by cuts, the outer ones have an open end."""
    ranges = dict[str, tuple[Range, ...]]()
    for column in domain.columns:
        if column.yes_no or column.kind == "integers":
            ranges[column.name] = tuple((float(i), float(i)) for i in range(column.size))
        elif column.kind == "cuts":
            ends = [None, *map(float, column.cuts), None]
            ranges[column.name] = tuple(pairwise(ends))
    return ranges


def schema_ranges(schema: Schema | RelatedSchema) -> dict[str, tuple[Range, ...]]:
    """Return what a schema says of its columns of numbers; what is beyond its range is in the outer bins."""
    if isinstance(schema, RelatedSchema):
        return {
            f"{name}.{column}": ranges
            for name, table in schema.tables.items()
            for column, ranges in schema_ranges(table).items()
        }
    ends = {column.name: (column.kind.ends(), column.missing) for column in schema.columns}
    return {name: (*ranges, *[None] * missing) for name, (ranges, missing) in ends.items() if ranges}


def recorded_columns(domain: Domain, ranges: Ranges) -> list[Any]:
    """Return what a record holds of each column: names, and what orders its categories."""
    entries = []
    for column in domain.columns:
        recorded: dict[str, Any] = {"name": column.name, "places": list(column.labels)}
        if column.yes_no:
            recorded["yes_no"] = True
        if column.spelled:
            recorded["spelled"] = [list(texts) for texts in column.spelled]
        if column.ordered and not column.yes_no:
            recorded["ordered"] = True
        if column.cuts:
            recorded["cuts"] = [str(cut) for cut in column.cuts]
        if column.name in ranges and not column.yes_no:
            recorded["ranges"] = [None if each is None else list(each) for each in ranges[column.name]]
        entries.append(recorded)
    return entries


def domain_of(universe: Mapping[str, Any]) -> Domain:
    """Return the domain that a record describes: names, categories, their order, and the rules."""
    entries = universe.get("columns")
    if entries is None:
        columns = [Column(name) for name in universe["attributes"]]
    else:
        columns = [_column(each).spelled_as(each.get("spelled", ())) for each in entries]
    truth_of = finder(tuple(columns))
    # attributes of one's own are not in a record, nor rules that name them, nor numbers of cells in rules
    rules = [rule for rule in rule_texts(universe["valid"]) if isinstance(rule, str)]
    return Domain(columns, [rule for rule in rules if _is_predicate(rule, truth_of)])


def _is_predicate(rule: str, truth_of: Callable[[str], object]) -> bool:
    """Tell whether a rule is a predicate of the columns; others relate columns, such as a < b < c."""
    try:
        return all(map(truth_of, parse(rule).names))
    except ValueError:
        return False


def ranges_of(universe: Mapping[str, Any]) -> dict[str, tuple[Range, ...]] | None:
    """Return the ranges that a record holds; None: those of its domain."""
    entries = universe.get("columns")
    if entries is None:
        return None
    ranges = dict[str, tuple[Range, ...]]()
    for each in entries:
        if each.get("yes_no"):
            ranges[each["name"]] = ((0.0, 0.0), (1.0, 1.0))
        elif "ranges" in each:
            ranges[each["name"]] = tuple(
                None if ends is None else (_number(ends[0]), _number(ends[1])) for ends in each["ranges"]
            )
    return ranges


def _number(end: float | None) -> float | None:
    return None if end is None else float(end)


def _column(entry: Mapping[str, Any]) -> Column:
    """Return a column of the categories that were written."""
    name, labels = entry["name"], entry["places"]
    if entry.get("yes_no"):
        return Column(name)
    cuts, none = entry.get("cuts", ()), np.zeros((len(labels), 0), dtype=np.uint8)
    if cuts and labels[0].startswith("below "):  # else they are dates, or a schema has named the bins
        return Column(name, cuts=map(float, cuts))
    return Column.coded(name, labels, (), none, ordered=bool(entry.get("ordered")), cuts=cuts)
