"""Gaps that go together: a column that has one where another has, or where a predicate does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from queries.expressions import parse, shorten, suggestion
from queries.faults import Fault
from queries.names import find, nearest
from queries.relations import Relation
from queries.rule_tables import compiled
from queries.rules import Rule
from smalldb.schema.comparisons import Comparisons
from smalldb.schema.schema_columns import Column


def gap_relations(columns: Sequence[Column], known: Comparisons) -> tuple[list[Relation], list[Fault]]:
    """Return what `missing_with` and `only_if` of columns say of rows, and what is wrong with them."""
    numbers = {column.name: c for c, column in enumerate(columns)}
    relations, wrong = list[Relation](), list[Fault]()
    for c, column in enumerate(columns):
        for other in dict.fromkeys(column.missing_with):
            said = ""
            if other not in numbers:
                said = f"missing_with: there is no column {other!r}{suggestion(other, numbers)}"
            elif other == column.name:
                said = "missing_with names the column itself"
            elif not columns[numbers[other]].missing:
                said = f"missing_with: column {other!r} has no category for gaps: give it missing = true"
            if said:
                wrong.append(Fault(said, "columns", column.name, "missing_with"))
            else:
                text = f"column {column.name!r}: missing_with = {other!r}"
                relations.append(Relation(text, [_together(columns, c, numbers[other])]))
        if column.only_if is not None:
            try:
                relations.append(_only_if(columns, numbers, column, known))
            except ValueError as error:
                wrong.append(Fault(f"only_if: {error}", "columns", column.name, "only_if"))
    return relations, wrong


def _together(columns: Sequence[Column], one: int, other: int) -> Rule:
    """Both have a gap, or neither."""
    first, second = sorted((one, other))
    gaps = [np.arange(columns[c].universe.size) == columns[c].kind.size for c in (first, second)]
    return Rule((first, second), gaps[0][:, None] == gaps[1][None, :])


def _only_if(
    columns: Sequence[Column], numbers: Mapping[str, int], column: Column, known: Comparisons
) -> Relation:
    """A value only where a predicate holds."""
    stated, universe = column.only_if or "", tuple(c.universe for c in columns)
    text = f"`{column.universe.category_names[-1]}` | ({stated})"
    said = f"column {column.name!r}: only_if = {stated!r}"
    if (compared := known.relation(text)) is not None:
        return Relation(said, compared.rules)
    for name in parse(stated).names:
        found = find(universe, name)
        if found is None:
            raise ValueError(f"unknown attribute or category {shorten(name)!r}{nearest(universe, name)}")
        if found[0] == numbers[column.name]:
            raise ValueError("it names the column itself")
    rules = compiled([text], lambda name: find(universe, name), [c.size for c in universe])
    return Relation(said, rules)
