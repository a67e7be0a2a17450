"""Predicates as rules: what their names speak of, tables of where they hold, and which of them rows break."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache, partial
from math import prod

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans
from queries.columns import Column
from queries.encoding import DataError
from queries.expressions import MAX_RULES, TOO_MANY, Expression, parse, shorten, suggestion, too_many
from queries.rules import MAX_RULE_CELLS, MAX_RULES_CELLS, Relation, Rule

TOO_LARGE = "valid: the tables of the rules pass 2^24 cells: use rules of fewer columns"

Truth = tuple[int, Booleans]  # a column, and in which of its categories a name holds


def compiled(
    texts: Iterable[str],
    find: Callable[[str], Truth | None],
    sizes: Sequence[int],
    rules: Iterable[Rule] = (),
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
    for rule in rules:
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


Columns = tuple[Column, ...]


@lru_cache(maxsize=64)
def owners(columns: Columns) -> tuple[tuple[int, int], ...]:
    """Return the column of each attribute of all columns, and the attribute's position in it."""
    return tuple((c, i) for c, column in enumerate(columns) for i in range(len(column.attributes)))


@lru_cache(maxsize=8)
def finder(columns: Columns) -> Callable[[str], Truth | None]:
    """Return what tells of a name its column, and in which of its categories it holds; None: unknown."""
    return lru_cache(maxsize=1024)(partial(_truth, columns))


def _truth(columns: Columns, name: str) -> Truth | None:
    attribute = _positions(columns).get(name)
    if attribute is not None:
        c, within = owners(columns)[attribute]
        return c, columns[c].table[:, within].astype(bool)
    for c, column in enumerate(columns):
        if name in column.category_names:
            return c, np.arange(column.size) == column.category_names.index(name)
        if not name.startswith(column.name):
            continue
        rest = name[len(column.name) :].strip()
        for sign in (">=", "<=", "=", ">", "<"):
            if rest.startswith(sign):
                truth = column.holds(sign, rest.removeprefix(sign).strip())
                if truth is not None:
                    return c, truth
                break
    return None


def nearest(columns: Columns, name: str) -> str:
    """Return ``"; did you mean ...?"`` where something has a name like this, or what two columns need."""
    ends = re.split("<=|>=|<|>", name)
    if len(ends) > 1 and {*ends} <= {column.name for column in columns}:
        return ": an order between columns is a rule of valid by itself, and no part of a predicate"
    attributes = [a for column in columns for a in column.attributes]
    categories = [p for column in columns if not column.yes_no for p in column.category_names]
    return suggestion(name, dict.fromkeys([*attributes, *categories]))


def unknown(columns: Columns, texts: Sequence[str], known: Sequence[str] = ()) -> list[str]:
    """Tell what rules name that is not there, or why they are not read."""
    word = "attribute" if all(column.yes_no for column in columns) else "attribute or category"
    if many := too_many(texts):
        return many
    find = finder(columns)
    faults = [
        f"valid names an unknown {word} {shorten(name)!r}{nearest(columns, name)}"
        for name in dict.fromkeys(name for text in texts if text not in known for name in parse(text).names)
        if find(name) is None
    ]
    lost = [f"valid lacks the relation {shorten(text)!r}" for text in known if text not in texts]
    return faults + lost


def repeated(columns: Columns) -> list[str]:
    """Tell which names of columns or attributes stand more than once."""
    others = Counter(column.name for column in columns if not column.yes_no)
    taken = [c.name for c in columns if c.yes_no and c.name in others]
    attributes = Counter(a for column in columns for a in column.attributes)
    wrong = [f"column name {name!r} occurs more than once" for name in _often(others) + taken]
    return wrong + [f"attribute name {name!r} occurs more than once" for name in _often(attributes)]


def _often(names: Counter[str]) -> list[str]:
    return [name for name, times in names.items() if times > 1]


@lru_cache(maxsize=64)
def _positions(columns: Columns) -> dict[str, int]:
    return {a: i for i, a in enumerate(a for column in columns for a in column.attributes)}


MOST = 3  # rules that are told

Valid = str | Iterable[str] | None


class RuledOut(DataError):
    """Rows that cannot exist."""

    def __init__(self, message: str, numbers: Collection[int] = ()) -> None:
        super().__init__(message)
        self.numbers = frozenset(numbers)  # of the rules that they break, from 1


def rule_texts(valid: Valid) -> list[str]:
    """Return the rules as they are stated."""
    return [valid] if isinstance(valid, str) else [*(valid or ())]


def broken(
    valid: Valid,
    find: Callable[[str], Truth | None],
    sizes: Sequence[int],
    codes: npt.NDArray[np.integer],
    relations: Sequence[Relation] = (),
) -> dict[int, Booleans]:
    """Tell which of some rows that cannot exist break each rule that some row breaks: read one by one."""
    inside = np.less(codes, np.array(sizes)).all(axis=1)
    within = np.where(inside[:, None], codes, 0)

    def truth(name: str) -> Booleans:
        named = find(name)
        if named is None:  # a domain knows the names of its rules
            raise ValueError(f"unknown attribute {shorten(name)!r}")
        column, table = named
        held: Booleans = table[within[:, column]]
        return held

    stated = {relation.text: relation for relation in relations}
    rows = {
        number: np.logical_and(
            inside, ~(stated[text].holds(within) if text in stated else parse(text).evaluate(truth))
        )
        for number, text in enumerate(rule_texts(valid), start=1)
    }
    return {number: which for number, which in rows.items() if which.any()}


def ruled_out_message(valid: Valid, numbers: Collection[int]) -> str:
    """Tell that rows cannot exist, and which rules they break, the first few with their texts."""
    texts, shown = rule_texts(valid), sorted(numbers)
    if not shown:
        return "a row is in a cell that valid rules out"
    first = [f"rule {number} ({shorten(texts[number - 1])!r})" for number in shown[:MOST]]
    if len(shown) > MOST:
        first.append(f"{len(shown) - MOST} more")
    return f"rows break {' and '.join(first)} of valid"
