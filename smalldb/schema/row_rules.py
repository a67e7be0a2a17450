"""Rules about the rows of a table: what of them cannot be read, and what becomes of rows that break one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from queries import Domain, Marginals, Union, spec
from queries.expressions import Fault, Faults, chain, parse, shorten, too_many
from queries.rule_tables import compiled, rule_texts, unknown
from queries.rules import Rule
from smalldb.schema.bin_shapes import MOST_SHARE
from smalldb.schema.column_relations import (
    Comparisons,
    compared_relations,
    determined_relations,
    gap_relations,
)
from smalldb.schema.derived import Derived
from smalldb.schema.orders import Orders, read_orders
from smalldb.schema.schema_columns import Column

GAPS, DROP = "missing", "drop"
OUTCOMES = {GAPS: "become gaps", DROP: "are left out"}


class Breaking(NamedTuple):
    """What becomes of rows that break a rule."""

    how: str  # GAPS or DROP
    columns: tuple[int, ...] = ()  # those that get a gap


def unreadable(queries: str | None, rules: Sequence[str], columns: int = 0) -> Iterator[Fault]:
    """Tell what cannot be read of the queries and the rules of a schema, and which tables are too wide."""
    if queries is not None:
        try:
            read = spec.parse(queries)
            for part in read.parts if isinstance(read, Union) else (read,):
                # other classes speak of attributes: how many is not known before a column has learned
                if columns and isinstance(part, Marginals) and part.width > columns:
                    problem = f"queries {part.text!r}: width {part.width} is more than the {columns} columns"
                    yield Fault(problem, "queries")
        except (ValueError, TypeError) as error:
            yield Fault(str(error), "queries")
    many = too_many(rules)
    yield from (Fault(problem, "valid") for problem in many)
    for number, rule in () if many else enumerate(rules):
        if chain(rule) is None:
            try:
                parse(rule)
            except (ValueError, TypeError) as error:
                yield Fault(str(error), "valid", str(number))


def not_finer(columns: Sequence[Column], orders: Orders) -> list[Fault]:
    """Tell which columns cannot have finer bins, and whether all of them spend too much."""
    named = [columns[c].name for group in orders.groups for c in group if columns[c].finer]
    problem = "finer is not for columns of an order: leave it out"
    wrong = [Fault(problem, "columns", name, "finer") for name in named]
    if sum(column.finer.share for column in columns if column.finer) > MOST_SHARE:
        wrong.append(Fault(f"finer: the shares of all columns may add up to {MOST_SHARE}"))
    return wrong


def domain_of(
    columns: Sequence[Column],
    derived: Sequence[Derived],
    valid: str | Sequence[str] | None,
    queries: str | None,
    wrong: list[Fault],
) -> tuple[Domain, Orders]:
    """Return the universe, with all rules about rows, and the orders; Faults: with those in `wrong`."""
    stated = (valid,) if isinstance(valid, str) else valid or ()
    rules = dict[str, int]()  # each with the place where it stands first
    for number, rule in enumerate(stated):
        rules.setdefault(rule, number)
    unread = [*unreadable(queries, stated, len(columns))]
    known = Comparisons(tuple(columns), {each.column.name: each for each in derived})
    orders, disordered = read_orders(
        columns, {rule: i for rule, i in rules.items() if not known.names_computed(rule)}
    )
    compared, unlike = compared_relations(known, rules)
    gaps, loose = gap_relations(columns, known)
    determined, undetermined = determined_relations(columns)
    wrong = [*wrong, *unread, *not_finer(columns, orders), *disordered, *unlike.values(), *loose]
    wrong += undetermined
    reported = {*unlike, *(relation.text for relation in compared)}
    reported |= {stated[int(fault.path[1])] for fault in unread if fault.path[1:]}
    universe = tuple(column.universe for column in columns)
    if not any(fault.path == ("valid",) for fault in unread):
        wrong += [
            Fault(problem, "valid", str(i))
            for rule, i in rules.items()
            if chain(rule) is None and rule not in reported
            for problem in unknown(universe, [rule])
        ]
    if wrong:
        raise Faults(wrong)
    relations = [*gaps, *determined]
    if relations:
        valid = (*stated, *(relation.text for relation in relations))
    return Domain(universe, valid, [*orders.relations(), *compared, *relations]), orders


def read_breaks(
    breaks: str | Mapping[str, str], columns: Sequence[Column], domain: Domain, orders: Orders
) -> dict[int, Breaking]:
    """Return what becomes of rows that break a rule, by its number, from 1; Faults: what is wrong."""
    texts = rule_texts(domain.valid)
    relations = {relation.text: relation.rules for relation in domain.relations}
    ordered = {order.text: {c for pair in order.pairs for c in pair[:2]} for order in orders.stated}
    breaking, wrong = dict[int, Breaking](), list[Fault]()
    for text, how in (dict.fromkeys(texts, breaks) if isinstance(breaks, str) else breaks).items():
        if how not in OUTCOMES:
            wrong.append(Fault('breaks must be "missing" or "drop", or a table of them by rule', "breaks"))
        elif text not in texts:
            wrong.append(Fault(f"breaks: {shorten(text)!r} is not a rule of the schema", "breaks"))
        elif how == DROP:
            breaking[texts.index(text) + 1] = Breaking(DROP)
        else:
            rules = relations.get(text) or compiled([text], domain.find, domain.sizes)
            seen = ordered.get(text) or {c for rule in rules for c in rule.columns}
            try:
                breaking[texts.index(text) + 1] = _gaps(columns, text, sorted(seen), rules)
            except Fault as error:
                wrong.append(error)
    if not texts:
        wrong.append(Fault("breaks: the schema has no rule: leave it out", "breaks"))
    if wrong:
        raise Faults(wrong)
    return breaking


def _gaps(columns: Sequence[Column], text: str, seen: Sequence[int], rules: Sequence[Rule]) -> Breaking:
    """Return which of the columns that a rule looks at get gaps; Fault: a row with these may break it."""
    blanked = tuple(c for c in seen if columns[c].missing)
    for rule in rules:
        at = tuple(columns[c].kind.size if c in blanked else slice(None) for c in rule.columns)
        if not np.all(rule.allowed[at]):
            named = ", ".join(columns[c].name for c in seen if c not in blanked) or "none"
            beside = len(blanked) == len(seen)
            reason = "beside gaps" if beside else f"columns without a category for gaps: {named}"
            raise Fault(f"breaks: a row with gaps can break the rule {shorten(text)!r} ({reason})", "breaks")
    return Breaking(GAPS, blanked)
