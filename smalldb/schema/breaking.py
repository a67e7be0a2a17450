"""What becomes of a row of data that breaks a rule: each row by itself."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from queries.arrays import Booleans, Integers
from queries.expressions import shorten
from queries.faults import Fault
from queries.rules import Rule
from smalldb.schema.fields import Fields
from smalldb.schema.schema_columns import Column

GAPS, DROP = "missing", "drop"
SAID = {GAPS: "become gaps", DROP: "are left out"}


class Breaking(NamedTuple):
    """What becomes of rows that break a rule."""

    how: str  # GAPS or DROP
    columns: tuple[int, ...]  # those that get a gap


def read_breaks(given: str | Mapping[str, str], texts: Sequence[str]) -> tuple[dict[int, str], list[Fault]]:
    """Return what becomes of rows by the number of a rule, from 1, and what is wrong with that."""
    stated = dict.fromkeys(texts, given) if isinstance(given, str) else given
    found, wrong = dict[int, str](), list[Fault]()
    for text, how in stated.items():
        if how not in SAID:
            wrong.append(Fault('breaks must be "missing" or "drop", or a table of them by rule', "breaks"))
        elif text not in texts:
            wrong.append(Fault(f"breaks: {shorten(text)!r} is not a rule of the schema", "breaks"))
        else:
            found[texts.index(text) + 1] = how
    if not texts:
        wrong.append(Fault("breaks: the schema has no rule: leave it out", "breaks"))
    return found, [*dict.fromkeys(wrong)]


def gaps_of(columns: Sequence[Column], text: str, seen: Sequence[int], rules: Sequence[Rule]) -> Breaking:
    """Return which of the columns that a rule looks at get gaps; Fault: a row with these may break it."""
    own = tuple(c for c in seen if columns[c].missing)
    for rule in rules:
        at = tuple(columns[c].kind.size if c in own else slice(None) for c in rule.columns)
        if not np.all(rule.allowed[at]):
            named = ", ".join(columns[c].name for c in seen if c not in own) or "none"
            said = f"columns without a category for gaps: {named}" if len(own) < len(seen) else "beside gaps"
            raise Fault(f"breaks: a row with gaps can break the rule {shorten(text)!r} ({said})", "breaks")
    return Breaking(GAPS, own)


def with_gaps(column: Column, fields: Fields, rows: Booleans) -> Fields:
    """Return the fields of a column, with gaps in some rows."""
    if not rows.any():
        return fields
    inverse, distinct = column.spelled(fields)
    found = np.array([*distinct, ""], dtype=object)[np.where(rows, len(distinct), inverse)]
    return np.asarray(found)


def mended(
    columns: Sequence[Column], codes: Integers, broken: Mapping[int, Integers], ways: Mapping[int, Breaking]
) -> tuple[Integers, Booleans]:
    """Return the codes with gaps in place of what breaks a rule, and which rows are left out."""
    codes, left = codes.copy(), np.zeros(len(codes), dtype=bool)
    for number, rows in broken.items():
        if number in ways:
            left[rows] |= ways[number].how == DROP
            for c in ways[number].columns:
                codes[rows, c] = columns[c].kind.size
    return codes, left
