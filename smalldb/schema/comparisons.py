"""Comparisons within predicates, and of columns that are computed: ``~ill | left >= came``, ``years >= 0``.

They speak of whole numbers, each of which is a category of its own, and of what is computed from these. So
the codes of a row tell all values, and the rule is a table over categories.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import final

import numpy as np

from queries.arrays import Booleans
from queries.expressions import chain, parse, shorten
from queries.faults import Fault
from queries.names import find
from queries.relations import Relation
from queries.rules import MAX_RULE_CELLS, Rule
from smalldb.schema.derived import Derived
from smalldb.schema.kinds import Integers
from smalldb.schema.schema_columns import Column

_NAME = r"[^\W\d]\w*"
_ATOM = re.compile(rf"({_NAME})(>=|<=|<|>|=)({_NAME}|-?[0-9]+(?:\.[0-9]+)?)")
_HOLDS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    **{">=": operator.ge, "<=": operator.le, "<": operator.lt, ">": operator.gt, "=": operator.eq}
}


class NoComparison(ValueError):
    """Why a comparison cannot be a table over categories."""


@final
@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of two values of a row."""

    # the name of a column, or a number
    left: str
    sign: str  # which of the two is the larger
    right: str | Fraction


@final
@dataclass(frozen=True, slots=True)
class Comparisons:
    """What comparisons may speak of."""

    columns: tuple[Column, ...]  # of the schema
    derived: Mapping[str, Derived]  # the columns that are computed, by name

    def names_computed(self, rule: str) -> bool:
        """Tell whether a rule that is an order names a column that is computed."""
        linked = chain(rule)
        return linked is not None and any(name in self.derived for name in linked[0])

    def relation(self, rule: str) -> Relation | None:
        """Return the meaning of a rule; None: it compares no columns, and others read it."""
        text, linked = rule, chain(rule)
        if linked is not None and self.names_computed(rule):
            text = " & ".join(map("".join, zip(linked[0], linked[1], linked[0][1:], strict=False)))
        expression, universe = parse(text), tuple(column.universe for column in self.columns)
        atoms = {
            name: found
            for name in expression.names
            if find(universe, name) is None and (found := self._read(name)) is not None
        }
        if not atoms:
            return None
        bases = {name: self._bases(atom) for name, atom in atoms.items()}
        others = {name: truth for name in expression.names if (truth := find(universe, name)) is not None}
        if len(atoms) + len(others) < len(expression.names):
            return None  # it names what is not there, which is told as of any rule
        seen = sorted({c for of in bases.values() for c in of} | {c for c, _ in others.values()})
        sizes = [universe[c].size for c in seen]
        if prod(sizes) > MAX_RULE_CELLS:
            raise NoComparison(f"it looks at {len(seen)} columns of more than 2^20 cells together")

        def over(name: str) -> Booleans:
            if name in others:
                column, truth = others[name]
                return truth.reshape([-1 if c == column else 1 for c in seen])
            table = self._truth(atoms[name], bases[name])
            return table.reshape([universe[c].size if c in bases[name] else 1 for c in seen])

        held = np.broadcast_to(expression.evaluate(over), sizes)
        return Relation(rule, [Rule(tuple(seen), np.ascontiguousarray(held))])

    def _read(self, name: str) -> Compared | None:
        """Read a name of a predicate as a comparison of columns; None: it is none."""
        found = _ATOM.fullmatch(name)
        known = {column.name for column in self.columns} | {*self.derived}
        if found is None or found[1] not in known:
            return None
        left, sign, right = found.groups()
        if right in known:
            return Compared(left, sign, right)
        if left in self.derived and not re.match(_NAME, right):
            return Compared(left, sign, Fraction(right))
        return None

    def _bases(self, atom: Compared) -> tuple[int, ...]:
        """Return the measured columns that a comparison looks at, by their numbers, ascending."""
        numbers, found = {column.name: c for c, column in enumerate(self.columns)}, set[int]()
        waiting = [name for name in (atom.left, atom.right) if isinstance(name, str)]
        while waiting:
            name = waiting.pop(0)
            if name in self.derived:
                waiting += self.derived[name].operands
                continue
            if not isinstance(self.columns[numbers[name]].kind, Integers):
                raise NoComparison(
                    f"column {name!r} is compared within a predicate, or through a computed column: that "
                    'takes kind = "integers"; an order that is a rule by itself takes all numbers and dates'
                )
            found.add(numbers[name])
        return tuple(sorted(found))

    def _truth(self, atom: Compared, bases: Sequence[int]) -> Booleans:
        """Tell in which categories of its columns a comparison holds; beside a gap it does."""
        names = [self.columns[c].name for c in bases]
        values = [self._values(self.columns[c]) for c in bases]
        held = [self._holds(atom, dict(zip(names, each, strict=True))) for each in product(*values)]
        return np.array(held, dtype=bool).reshape([len(each) for each in values])

    def _values(self, column: Column) -> list[Fraction | None]:
        """Return the value of each category of a column of whole numbers."""
        assert isinstance(column.kind, Integers)
        found: list[Fraction | None] = [Fraction(v) for v in range(column.kind.low, column.kind.high + 1)]
        return [*found, *([None] if column.missing else [])]

    def _holds(self, atom: Compared, row: Mapping[str, Fraction | None]) -> bool:
        left = self._value(atom.left, row)
        right = self._value(atom.right, row) if isinstance(atom.right, str) else atom.right
        return left is None or right is None or _HOLDS[atom.sign](left, right)

    def _value(self, name: str, row: Mapping[str, Fraction | None]) -> Fraction | None:
        if name not in self.derived:
            return row[name]
        made = self.derived[name]
        return made.value({operand: self._value(operand, row) for operand in made.operands})


def compared_relations(
    known: Comparisons, rules: Mapping[str, int]
) -> tuple[list[Relation], dict[str, Fault]]:
    """Return what rules say that compare columns in predicates, or computed ones; by rule, what is wrong."""
    relations, wrong = list[Relation](), dict[str, Fault]()
    for rule, number in rules.items():
        if chain(rule) is not None and not known.names_computed(rule):
            continue
        try:
            made = known.relation(rule)
        except NoComparison as error:
            wrong[rule] = Fault(f"valid: rule {shorten(rule)!r}: {error}", "valid", str(number))
            continue
        except ValueError:  # it cannot be read, which is told as of any rule
            continue
        if made is not None:
            relations.append(made)
    return relations, wrong
