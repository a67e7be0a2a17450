"""Columns that are computed from others, such as ``age - education - 6``, exactly and in every row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np

from queries.arrays import Booleans, Integers, pd
from queries.expressions import MAX_LENGTH, Fault, Step, evaluate, formula, suggestion
from smalldb.schema.fields import Fields
from smalldb.schema.kinds import Cuts, Dates
from smalldb.schema.kinds import Integers as WholeNumbers
from smalldb.schema.kinds.bins import MAX_DECIMALS
from smalldb.schema.kinds.kind import number_format
from smalldb.schema.orders import inexact
from smalldb.schema.schema_columns import Column

DAY = 86_400 * 10**6  # microseconds
_SIGNS: Mapping[str, Callable[[Fraction, Fraction], Fraction]]
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_DIGITS = 4  # that a divisor is taken to have which is itself a quotient


@final
@dataclass(frozen=True, slots=True)
class Derived:
    """A column that is computed from released values."""

    column: Column  # how its numbers are held and spelled: bins of a range that holds them all
    # the expression. Numbers stand for themselves, dates for days; a gap makes a gap, and so does a division
    # by 0. The result is rounded to the column's digits, half to even.
    text: str
    steps: tuple[Step, ...]  # of the expression, in postfix order

    @property
    def operands(self) -> tuple[str, ...]:
        """The columns that occur, each once."""
        return _names(self.steps)

    def of(self, fields: Mapping[str, Fields], columns: Mapping[str, Column]) -> list[Fraction | None]:
        """Compute its values, one a row, from fields of the operands, which are of these columns."""
        names = self.operands
        codes, values = zip(*(values_of(fields[name], columns[name]) for name in names), strict=True)
        distinct, of_row = np.unique(np.stack(codes), axis=1, return_inverse=True)
        rows = [[each[code] for each, code in zip(values, row, strict=True)] for row in distinct.T.tolist()]
        results = [self.value(dict(zip(names, row, strict=True))) for row in rows]
        return [results[i] for i in of_row.reshape(-1).tolist()]

    def written(self, values: Sequence[Fraction | None]) -> pd.Series[Any]:
        """Return values in the column's dtype."""
        kind = self.column.kind
        assert isinstance(kind, Cuts)
        digits = 10**kind.decimals
        steps = [None if value is None else int(value * digits) for value in values]
        cut = int(kind.cuts[0] * digits)
        codes = [kind.size if step is None else int(step >= cut) for step in steps]
        return self.column.holding(np.array(codes, dtype=np.int64), steps)

    def broken(self, fields: Mapping[str, Fields], columns: Mapping[str, Column]) -> Booleans:
        """Tell in which rows of data the column, whose fields are given too, is another than computed."""
        codes, stated = values_of(fields[self.column.name], self.column)
        computed = self.of(fields, columns)
        pairs = zip(codes.tolist(), computed, strict=True)
        return np.array([stated[code] != value for code, value in pairs], dtype=bool)

    def value(self, values: Mapping[str, Fraction | None]) -> Fraction | None:
        """Compute its value in a row, from those of the operands; None: a gap."""
        if any(value is None for value in values.values()):
            return None
        kind = self.column.kind
        assert isinstance(kind, Cuts)
        try:
            exact = evaluate(
                self.steps,
                lambda kind, word: word if kind == "number" else values[word] or Fraction(0),
                _combined,
            )
        except ZeroDivisionError:
            return None
        digits = 10**kind.decimals
        return Fraction(round(exact * digits), digits)


def values_of(fields: Fields, column: Column) -> tuple[Integers, list[Fraction | None]]:
    """Return the index of each field among the distinct ones, and the values of these; None: a gap."""
    (inverse, texts), kind = column.spelled(fields), column.kind
    assert isinstance(kind, Cuts | Dates | WholeNumbers)
    unit = DAY if isinstance(kind, Dates) else 1
    covered = [0 <= code < kind.size for code in column.encode(np.array(texts, dtype=object)).tolist()]
    read = [kind.value(text) if known else None for text, known in zip(texts, covered, strict=True)]
    return inverse.astype(np.int64), [None if value is None else Fraction(value) / unit for value in read]


class _Range(NamedTuple):
    """What is known of an expression: between which numbers it lies, its digits, and whether it has gaps."""

    low: Fraction
    high: Fraction
    digits: int | None
    days: int = 0  # how many dates are added in it, less those that are subtracted
    gaps: bool = False


def read_derived(
    columns: Sequence[Column], tables: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Derived], list[Fault]]:
    """Read the columns that are computed, from their tables in a schema, by name."""
    known, wrong = {column.name: column for column in columns}, list[Fault]()
    parsed: dict[str, tuple[Step, ...]] = {}
    for name, described in tables.items():
        try:
            parsed[name] = formula(described["derive"])
        except ValueError as error:
            wrong.append(Fault(f"derive: {error}", "columns", name, "derive"))
    derived, waiting = list[Derived](), dict(parsed)
    while waiting:
        ready = [name for name, steps in waiting.items() if not {*_names(steps)} & {*waiting}]
        if not ready:
            first, names = next(iter(waiting)), ", ".join(map(repr, waiting))
            problem = f"derive: it depends on itself, by columns {names}"
            return derived, [*wrong, Fault(problem, "columns", first, "derive")]
        name = ready[0]
        steps = waiting.pop(name)
        if any(operand in tables and operand not in known for operand in _names(steps)):
            continue  # what is wrong with the operand is told
        try:
            column = _column(name, steps, tables[name], known)
        except (ValueError, TypeError) as error:
            wrong.append(Fault.of(error, "columns", name))
            continue
        known[name] = column
        derived.append(Derived(column, tables[name]["derive"], steps))
    return derived, wrong


def _column(
    name: str, steps: Sequence[Step], table: Mapping[str, Any], known: Mapping[str, Column]
) -> Column:
    """Return how the numbers of an expression are held: between its least and its greatest value."""

    def operand(kind: str, word: Any) -> _Range:
        if kind == "name":
            return _range_of(word, known)
        return _Range(word, word, next(d for d in range(MAX_LENGTH) if (word * 10**d).denominator == 1))

    if not _names(steps):
        raise ValueError("derive: it uses no column")
    range_ = evaluate(steps, operand, _ranged)
    if range_.days:
        raise ValueError("derive: it is a date, not a number: take the difference of two dates")
    decimals = table.get("decimals", range_.digits)
    if decimals is None or not 0 <= decimals <= MAX_DECIMALS:
        raise ValueError(f"derive: its number of digits is needed: decimals, from 0 to {MAX_DECIMALS}")
    gaps = table.get("missing", False)
    if range_.gaps and gaps is False:
        raise ValueError("derive: it can have gaps, or divide by 0: missing = true gives gaps a category")
    low, high = (range_.low * 10**decimals).__floor__(), (range_.high * 10**decimals).__ceil__()
    ends = [Decimal(step).scaleb(-decimals) for step in (low, max(high, low + 1))]
    column = Column(
        name,
        Cuts([ends[1]], ends[0], ends[1], decimals, number_format(table)),
        missing=gaps is not False,
        gaps=tuple(gaps) if isinstance(gaps, list) else (),
        dtype=table.get("dtype"),
        description=table.get("description", ""),
        unit=table.get("unit", ""),
    )
    if reason := inexact(column):
        raise ValueError(reason)
    return column


def _range_of(name: str, known: Mapping[str, Column]) -> _Range:
    """Return what is known of a column."""
    if name not in known:
        raise ValueError(f"derive: there is no column {name!r}{suggestion(name, known)}")
    column = known[name]
    if not isinstance(column.kind, Cuts | Dates | WholeNumbers):
        raise ValueError(f"derive: column {name!r} has no numbers or dates to compute with")
    ends = [step * column.kind.unit for steps in column.kind.all_steps for step in steps]
    if isinstance(column.kind, Dates):
        digits = None if column.kind.timed else 0
        return _Range(min(ends) / DAY, max(ends) / DAY, digits, 1, column.missing)
    digits = column.kind.decimals if isinstance(column.kind, Cuts) else 0
    return _Range(min(ends), max(ends), digits, 0, column.missing)


def _ranged(sign: str, one: _Range | None, other: _Range) -> _Range:
    """Return what is known of a sum, a difference, a product or a quotient."""
    if one is None:
        sign, one = "-", _Range(Fraction(0), Fraction(0), 0)
    gaps = one.gaps or other.gaps
    digits = None if None in (one.digits, other.digits) else max(one.digits or 0, other.digits or 0)
    if sign in "+-":
        turn = 1 if sign == "+" else -1
        ends = [one.low + turn * (other.low if turn > 0 else other.high)]
        ends += [one.high + turn * (other.high if turn > 0 else other.low)]
        return _Range(ends[0], ends[1], digits, one.days + turn * other.days, gaps)
    if one.days or other.days:
        raise ValueError(
            "derive: a date can only be subtracted from another: put the difference in parentheses"
        )
    if sign == "*":
        digits = None if digits is None else (one.digits or 0) + (other.digits or 0)
    elif other.low <= 0 <= other.high:
        least = Fraction(1, 10 ** (_DIGITS if other.digits is None else other.digits))  # of divisors
        most = max(abs(one.low), abs(one.high)) / least
        return _Range(-most, most, None, 0, True)
    every = [_combined(sign, a, b) for a in (one.low, one.high) for b in (other.low, other.high)]
    return _Range(min(every), max(every), digits if sign == "*" else None, 0, gaps)


def _combined(sign: str, one: Fraction | None, other: Fraction) -> Fraction:
    return -other if one is None else _SIGNS[sign](one, other)


def _names(steps: Sequence[Step]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for kind, word in steps if kind == "name"))
