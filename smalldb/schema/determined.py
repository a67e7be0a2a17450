"""Columns that follow from another by a public code book: the country of a city."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from queries.arrays import Booleans
from queries.expressions import joined, shorten, suggestion
from queries.faults import Fault
from queries.relations import Relation
from queries.rules import MAX_RULE_CELLS, Rule
from smalldb.schema.kinds import Binned, Categories
from smalldb.schema.schema_columns import Column

Book: TypeAlias = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""By the column that follows, pairs of texts: a value of the first column, and the one that goes with it."""

MAX_BOOK = 1 << 24  # characters


def read_book(name: str, given: object, folder: str = "") -> Book:
    """
    Read what a column determines: a table of tables by column, or the path of a CSV file in a folder.

    The file's first column has the name of the column, and each other one that of a column that follows.
    """
    if isinstance(given, Mapping):
        books = [(column, pairs) for column, pairs in given.items() if isinstance(pairs, Mapping)]
        if (
            not given
            or len(books) < len(given)
            or any(not isinstance(v, str | int) for _, p in books for v in p.values())
        ):
            raise Fault('determines must be a file, or such as { country = { Leeds = "UK" } }', "determines")
        return tuple((column, tuple((k, str(v)) for k, v in pairs.items())) for column, pairs in books)
    path = Path(folder, str(given))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = file.read(MAX_BOOK + 1)
        rows = [[field.strip() for field in row] for row in csv.reader(text.splitlines(), strict=True) if row]
    except OSError as error:
        said = f"determines: {given}: {(error.strerror or 'it cannot be read').lower()}"
        raise Fault(said, "determines") from error
    except (ValueError, csv.Error) as error:
        raise Fault(f"determines: {given} is no CSV file in UTF-8", "determines") from error
    if len(text) > MAX_BOOK:
        raise Fault(f"determines: {given} has more than 2^24 characters", "determines")
    if len(rows) < 2 or rows[0][0] != name or len(rows[0]) < 2 or any(len(r) != len(rows[0]) for r in rows):
        raise Fault(
            f"determines: {given} needs a first line of {name!r} and the columns that follow, and "
            "as many fields in every line",
            "determines",
        )
    return tuple(
        (column, tuple((row[0], row[i]) for row in rows[1:])) for i, column in enumerate(rows[0]) if i
    )


def with_book(given: Mapping[str, Any], book: Book) -> dict[str, Any]:
    """Return the table of a column with what it determines, in place of the file that says so."""
    return {**given, "determines": {name: dict(pairs) for name, pairs in book}}


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
    """Return what is wrong with a code book, and which categories can stand together.

    Beside a gap, and beside "other", any can.
    """
    shape = left.universe.size, right.universe.size
    allowed = np.ones(shape if shape[0] * shape[1] <= MAX_RULE_CELLS else (0, 0), dtype=bool)
    faults = [
        f"column {column.name!r} has bins: a code book is for categories, yes/no and integers"
        for column in (left, right)
        if isinstance(column.kind, Binned)
    ]
    if not allowed.size:
        faults.append(f"columns {left.name!r} and {right.name!r} have more than 2^20 pairs of categories")
    if faults:
        return faults, allowed
    found: dict[int, int] = {}
    rest = left.kind.listed.index("other") if isinstance(left.kind, Categories) and left.kind.other else None
    for text, value in pairs:
        code, follows = left.kind.code(text), right.kind.code(value)
        if code is None or code == rest:
            continue  # it cannot occur, or counts as "other" with many more
        if follows is None:
            faults.append(f"{shorten(value)!r} is no value of column {right.name!r}")
        elif found.setdefault(code, follows) != follows:
            faults.append(f"{shorten(text)!r} has two values of column {right.name!r}")
    values = [str(v).lower() if isinstance(v, bool) else str(v) for v in left.kind.values()]
    lacking = [repr(value) for code, value in enumerate(values) if code not in found and code != rest]
    if lacking and not faults:
        faults.append(f"no value of column {right.name!r} stands beside {joined(lacking)}")
    for code, follows in found.items():
        allowed[code, : right.kind.size] = np.arange(right.kind.size) == follows
    return faults, allowed
