"""Predicates as rules: tables that say on which settings of a few columns they hold."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import prod

import numpy as np

from queries.arrays import Booleans
from queries.expressions import MAX_RULES, TOO_MANY, Expression, parse, shorten
from queries.rules import MAX_RULE_CELLS, MAX_RULES_CELLS, Rule

TOO_LARGE = "valid: the tables of the rules pass 2^24 cells: use rules of fewer columns"

Truth = tuple[int, Booleans]  # a column, and in which of its categories a name holds


def compiled(
    texts: Iterable[str],
    find: Callable[[str], Truth | None],
    sizes: Sequence[int],
    given: Iterable[Rule] = (),
) -> tuple[Rule, ...]:
    """Make the tables of rules: one for each set of columns, with all rules that look at just these."""
    tables: dict[tuple[int, ...], Booleans] = {}
    known, total = cache(find), 0
    for number, expression in enumerate(part for text in texts for part in parse(text).conjuncts):
        if number == MAX_RULES:
            raise ValueError(TOO_MANY)
        names = {name: truth for name in expression.names if (truth := known(name)) is not None}
        columns = tuple(sorted({column for column, _ in names.values()}))
        cells = prod(sizes[c] for c in columns)
        if cells > MAX_RULE_CELLS:
            raise ValueError(
                f"valid: rule {shorten(expression.text)!r} looks at {len(columns)} columns, which have "
                f"{cells} cells together: a rule may look at up to 2^20; split it into rules of fewer columns"
            )
        total += 0 if columns in tables else cells
        if total > MAX_RULES_CELLS:
            raise ValueError(TOO_LARGE)
        allowed = truth_of(expression, names, columns)
        tables[columns] = tables[columns] & allowed if columns in tables else allowed
    for rule in given:
        total += 0 if rule.columns in tables else rule.allowed.size
        if total > MAX_RULES_CELLS:
            raise ValueError(TOO_LARGE)
        tables[rule.columns] = tables[rule.columns] & rule.allowed if rule.columns in tables else rule.allowed
    return tuple(Rule(columns, allowed) for columns, allowed in tables.items())


def truth_of(expression: Expression, names: dict[str, Truth], columns: tuple[int, ...]) -> Booleans:
    """Return where a predicate holds over the cells of some columns."""

    def along(name: str) -> Booleans:
        column, truth = names[name]
        axis = columns.index(column)
        return truth.reshape([-1 if i == axis else 1 for i in range(len(columns))])

    return np.ascontiguousarray(expression.evaluate(along))
