"""Which column a name of a predicate speaks of, and in which of its categories it holds."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from queries.columns import Column
from queries.expressions import parse, shorten, suggestion, too_many
from queries.rule_tables import Truth

Columns = tuple[Column, ...]


@lru_cache(maxsize=64)
def owners(columns: Columns) -> tuple[tuple[int, int], ...]:
    """Return the column of each attribute of all columns, and the attribute's position in it."""
    return tuple((c, i) for c, column in enumerate(columns) for i in range(len(column.attributes)))


@lru_cache(maxsize=1024)
def find(columns: Columns, name: str) -> Truth | None:
    """Return the column that a name speaks of, and in which of its categories it holds; None: unknown."""
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
    """Return ``"; did you mean ...?"`` where an attribute or a category has a name like this.

    A comparison of two columns is told to be a rule of its own.
    """
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
    faults = [
        f"valid names an unknown {word} {shorten(name)!r}{nearest(columns, name)}"
        for name in dict.fromkeys(name for text in texts if text not in known for name in parse(text).names)
        if find(columns, name) is None
    ]
    lost = [f"valid lacks the relation {shorten(text)!r}" for text in known if text not in texts]
    return faults + lost


def repeated(columns: Columns) -> list[str]:
    """Tell which names of columns or attributes stand more than once."""
    others = Counter(column.name for column in columns if not column.yes_no)
    taken = [c.name for c in columns if c.yes_no and c.name in others]
    attributes = Counter(a for column in columns for a in column.attributes)
    wrong = [f"column name {name!r} stands more than once" for name in _often(others) + taken]
    return wrong + [f"attribute name {name!r} stands more than once" for name in _often(attributes)]


def _often(names: Counter[str]) -> list[str]:
    return [name for name, times in names.items() if times > 1]


@lru_cache(maxsize=64)
def _positions(columns: Columns) -> dict[str, int]:
    return {a: i for i, a in enumerate(a for column in columns for a in column.attributes)}
