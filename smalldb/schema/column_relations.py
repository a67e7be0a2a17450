"""What columns say of each other, in comparisons, gaps and code books; what becomes of rows that break it.

Comparisons speak of whole numbers, each of which is a category of its own, and of what is computed from
these: so the codes of a row tell all values, and each rule is a table over categories.
"""

from __future__ import annotations

import csv
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from queries.arrays import Booleans
from queries.expressions import Fault, chain, joined, parse, shorten, suggestion
from queries.rule_tables import compiled, finder, nearest
from queries.rules import MAX_RULE_CELLS, Relation, Rule
from smalldb.schema.derived import Derived
from smalldb.schema.kinds import Binned, Categories
from smalldb.schema.kinds import Integers as WholeNumbers
from smalldb.schema.schema_columns import Column

_NAME = r"[^\W\d]\w*"
_ATOM = re.compile(rf"({_NAME})(>=|<=|<|>|=)({_NAME}|-?[0-9]+(?:\.[0-9]+)?)")
_HOLDS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    **{">=": operator.ge, "<=": operator.le, "<": operator.lt, ">": operator.gt, "=": operator.eq}
}


class NoComparison(ValueError):
    """Why a comparison cannot be a table over categories."""


Compared: TypeAlias = tuple[str, str, str | Fraction]
"""A comparison: the name of a column, its sign, and another name or a number."""


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
        find = finder(universe)
        others = {name: truth for name in expression.names if (truth := find(name)) is not None}
        unnamed = [name for name in expression.names if name not in others]
        atoms = {name: atom for name in unnamed if (atom := self._read(name)) is not None}
        if not atoms:
            return None
        bases = {name: self._bases(atom) for name, atom in atoms.items()}
        if len(atoms) < len(unnamed):
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
        atom = _ATOM.fullmatch(name)
        known = {column.name for column in self.columns} | {*self.derived}
        if atom is None or atom[1] not in known:
            return None
        left, sign, right = atom.groups()
        if right in known:
            return left, sign, right
        return (left, sign, Fraction(right)) if left in self.derived and not re.match(_NAME, right) else None

    def _bases(self, atom: Compared) -> tuple[int, ...]:
        """Return the measured columns that a comparison looks at, by their numbers, ascending."""
        numbers, bases = {column.name: c for c, column in enumerate(self.columns)}, set[int]()
        waiting = [name for name in (atom[0], atom[2]) if isinstance(name, str)]
        while waiting:
            name = waiting.pop(0)
            if name in self.derived:
                waiting += self.derived[name].operands
                continue
            if not isinstance(self.columns[numbers[name]].kind, WholeNumbers):
                raise NoComparison(
                    f"column {name!r} is compared within a predicate, or through a computed column: that "
                    'takes kind = "integers"; an order that is a rule by itself takes all numbers and dates'
                )
            bases.add(numbers[name])
        return tuple(sorted(bases))

    def _truth(self, atom: Compared, bases: Sequence[int]) -> Booleans:
        """Tell in which categories of its columns a comparison holds; beside a gap it does."""
        (left, sign, right), columns = atom, [self.columns[c] for c in bases]

        def holds(values: Sequence[Fraction | None]) -> bool:
            row = {column.name: value for column, value in zip(columns, values, strict=True)}
            one = self._value(left, row)
            other = self._value(right, row) if isinstance(right, str) else right
            return one is None or other is None or _HOLDS[sign](one, other)

        values = [[*map(Fraction, c.kind.labels or ()), *[None] * c.missing] for c in columns]
        held = [*map(holds, product(*values))]
        return np.array(held, dtype=bool).reshape([*map(len, values)])

    def _value(self, name: str, row: Mapping[str, Fraction | None]) -> Fraction | None:
        if name not in self.derived:
            return row[name]
        derived = self.derived[name]
        return derived.value({operand: self._value(operand, row) for operand in derived.operands})


def compared_relations(
    known: Comparisons, rules: Mapping[str, int]
) -> tuple[list[Relation], dict[str, Fault]]:
    """Return what rules say that compare columns in predicates, or computed ones; by rule, what is wrong."""
    relations, wrong = list[Relation](), dict[str, Fault]()
    for rule, number in rules.items():
        if chain(rule) is not None and not known.names_computed(rule):
            continue
        try:
            relation = known.relation(rule)
        except NoComparison as error:
            wrong[rule] = Fault(f"valid: rule {shorten(rule)!r}: {error}", "valid", str(number))
            continue
        except ValueError:  # it cannot be read, which is told as of any rule
            continue
        if relation is not None:
            relations.append(relation)
    return relations, wrong


def gap_relations(columns: Sequence[Column], known: Comparisons) -> tuple[list[Relation], list[Fault]]:
    """Return what `missing_with` and `only_if` of columns say of rows, and what is wrong with them."""
    numbers = {column.name: c for c, column in enumerate(columns)}
    relations, wrong = list[Relation](), list[Fault]()
    for c, column in enumerate(columns):
        for other in dict.fromkeys(column.missing_with):
            problem = ""
            if other not in numbers:
                problem = f"missing_with: there is no column {other!r}{suggestion(other, numbers)}"
            elif other == column.name:
                problem = "missing_with names the column itself"
            elif not columns[numbers[other]].missing:
                problem = f"missing_with: column {other!r} has no category for gaps: give it missing = true"
            if problem:
                wrong.append(Fault(problem, "columns", column.name, "missing_with"))
            else:
                text = f"column {column.name!r}: missing_with = {other!r}"
                first, second = sorted((c, numbers[other]))
                gaps = [np.arange(columns[i].universe.size) == columns[i].kind.size for i in (first, second)]
                relations.append(Relation(text, [Rule((first, second), np.equal.outer(*gaps))]))
        if column.only_if is not None:
            try:
                relations.append(_only_if(columns, numbers, column, known))
            except ValueError as error:
                wrong.append(Fault(f"only_if: {error}", "columns", column.name, "only_if"))
    return relations, wrong


def _only_if(
    columns: Sequence[Column], numbers: Mapping[str, int], column: Column, known: Comparisons
) -> Relation:
    """A value only where a predicate holds."""
    stated, universe = column.only_if or "", tuple(c.universe for c in columns)
    text = f"`{column.universe.category_names[-1]}` | ({stated})"
    label = f"column {column.name!r}: only_if = {stated!r}"
    if (compared := known.relation(text)) is not None:
        return Relation(label, compared.rules)
    find = finder(universe)
    for name in parse(stated).names:
        place = find(name)
        if place is None:
            raise ValueError(f"unknown attribute or category {shorten(name)!r}{nearest(universe, name)}")
        if place[0] == numbers[column.name]:
            raise ValueError("it names the column itself")
    rules = compiled([text], find, [c.size for c in universe])
    return Relation(label, rules)


Book: TypeAlias = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""By the column that follows, pairs of texts: a value of the first column, and the one that goes with it."""

MAX_BOOK = 1 << 24  # characters


def read_book(name: str, stated: object, folder: str = "") -> Book:
    """Read what a column determines: a table of tables by column, or the path of a CSV file in a folder."""
    if isinstance(stated, Mapping):
        books = [(column, pairs) for column, pairs in stated.items() if isinstance(pairs, Mapping)]
        if (
            not stated
            or len(books) < len(stated)
            or any(not isinstance(v, str | int) for _, p in books for v in p.values())
        ):
            raise Fault('determines must be a file, or such as { country = { Leeds = "UK" } }', "determines")
        return tuple((column, tuple((k, str(v)) for k, v in pairs.items())) for column, pairs in books)
    path = Path(folder, str(stated))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = file.read(MAX_BOOK + 1)
        rows = [[field.strip() for field in row] for row in csv.reader(text.splitlines(), strict=True) if row]
    except OSError as error:
        problem = f"determines: {stated}: {(error.strerror or 'it cannot be read').lower()}"
        raise Fault(problem, "determines") from error
    except (ValueError, csv.Error) as error:
        raise Fault(f"determines: {stated} is no CSV file in UTF-8", "determines") from error
    if len(text) > MAX_BOOK:
        raise Fault(f"determines: {stated} has more than 2^24 characters", "determines")
    if len(rows) < 2 or rows[0][0] != name or len(rows[0]) < 2 or any(len(r) != len(rows[0]) for r in rows):
        raise Fault(
            f"determines: {stated} needs a first line of {name!r} and the columns that follow, and "
            "as many fields in every line",
            "determines",
        )
    return tuple(
        (column, tuple((row[0], row[i]) for row in rows[1:])) for i, column in enumerate(rows[0]) if i
    )


def with_book(table: Mapping[str, Any], book: Book) -> dict[str, Any]:
    """Return the table of a column with what it determines, in place of the file that says so."""
    return {**table, "determines": {name: dict(pairs) for name, pairs in book}}


def determined_relations(columns: Sequence[Column]) -> tuple[list[Relation], list[Fault]]:
    """Return what `determines` of columns says of rows, and what is wrong with it."""
    numbers = {column.name: c for c, column in enumerate(columns)}
    relations, wrong = list[Relation](), list[Fault]()
    for c, column in enumerate(columns):
        for name, pairs in column.determines:
            where = "columns", column.name, "determines"
            if name not in numbers:
                wrong.append(
                    Fault(f"determines: there is no column {name!r}{suggestion(name, numbers)}", *where)
                )
                continue
            if name == column.name:
                wrong.append(Fault("determines names the column itself", *where))
                continue
            other = columns[numbers[name]]
            faults, allowed = _allowed(column, other, pairs)
            if faults:
                wrong += [Fault(f"determines: {fault}", *where) for fault in faults]
                continue
            first, second = sorted((c, numbers[name]))
            rule = Rule((first, second), np.ascontiguousarray(allowed if first == c else allowed.T))
            relations.append(Relation(f"column {column.name!r}: determines {name!r}", [rule]))
    return relations, wrong


def _allowed(left: Column, right: Column, pairs: Sequence[tuple[str, str]]) -> tuple[list[str], Booleans]:
    """Return what is wrong with a code book, and which categories can stand together: beside a gap, any."""
    shape = left.universe.size, right.universe.size
    allowed = np.ones(shape if shape[0] * shape[1] <= MAX_RULE_CELLS else (0, 0), dtype=bool)
    binned = [column for column in (left, right) if isinstance(column.kind, Binned)]
    problem = "has bins: a code book is for categories, yes/no and integers"
    faults = [f"column {column.name!r} {problem}" for column in binned]
    if not allowed.size:
        faults.append(f"columns {left.name!r} and {right.name!r} have more than 2^20 pairs of categories")
    if faults:
        return faults, allowed
    followers: dict[int, int] = {}
    rest = left.kind.listed.index("other") if isinstance(left.kind, Categories) and left.kind.other else None
    for text, value in pairs:
        code, follows = left.kind.code(text), right.kind.code(value)
        if code is None or code == rest:
            continue  # it cannot occur, or counts as "other" with many more
        if follows is None:
            faults.append(f"{shorten(value)!r} is not a value of column {right.name!r}")
        elif followers.setdefault(code, follows) != follows:
            faults.append(f"{shorten(text)!r} has two values of column {right.name!r}")
    lacking = [
        repr(text) for code, text in enumerate(left.kind.texts) if code not in followers and code != rest
    ]
    if lacking and not faults:
        faults.append(f"no value of column {right.name!r} stands beside {joined(lacking)}")
    for code, follows in followers.items():
        allowed[code, : right.kind.size] = np.arange(right.kind.size) == follows
    return faults, allowed
