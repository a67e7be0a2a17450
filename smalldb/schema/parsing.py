"""Schemas as TOML files."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File
from typing import Any

from queries.expressions import joined, parse, shorten
from smalldb.schema.asked import ColumnToLearn, closest, filled
from smalldb.schema.column_parsing import ID, FaultyColumn, column_of, column_to_learn, id_column, what_learns
from smalldb.schema.derived import read_derived
from smalldb.schema.determined import Book, with_book
from smalldb.schema.file_format import FileFormat
from smalldb.schema.keys import (
    DERIVED,
    FILE,
    MOST_FAULTS,
    TOP,
    Fault,
    faults_of,
    texts_of,
)
from smalldb.schema.lines import MAX_TEXT, Faults, Path, item_lines, key_lines, toml_of, with_lines
from smalldb.schema.mapping import (
    MAX_CODED,
    MAX_COLUMNS,
    TOO_LARGE,
    Schema,
    coded_cells,
    too_many_columns,
)
from smalldb.schema.orders import is_order
from smalldb.schema.queries_and_rules import unreadable
from smalldb.schema.schema_columns import Column

MOST_LOCATED = 20  # faults of relations that are told with lines of their own: no more are shown


def read_schema(path: str) -> Schema:
    """Read a schema from a TOML file.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is no TOML in UTF-8 or no schema: names the file, and each column, key and line that is wrong.
    """
    try:
        return parse_schema(schema_text_of(path), os.path.dirname(path))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def schema_text_of(path: str) -> str:
    """Read the text of a schema's file, of one that is too long no more than shows that it is."""
    with File(path).open(encoding="utf-8-sig") as file:
        return file.read(MAX_TEXT + 1)


def parse_schema(text: str, folder: str = "") -> Schema:
    r"""Read a schema from the text of a TOML file; errors as `read_schema`, without the file.

    Files that it names are looked for in `folder`.

    >>> parse_schema('[columns.age]\nkind = "cuts"\ncuts = [18, 65]\nrange = [0, 99]').domain.attributes
    ('age>=18', 'age>=65')
    """
    schema, asked = parsed(text, folder=folder)
    if asked:
        raise ValueError(
            f"column {asked[0].column!r} learns its categories from the data, for a share of epsilon: "
            "that takes smalldb.release(data, schema=...) or generate, whose --schema-out writes them out"
        )
    return schema


def parsed(
    text: str,
    learned: Mapping[str, Sequence[str]] | None = None,
    folder: str = "",
    books: Mapping[str, Book] | None = None,
) -> tuple[Schema, tuple[ColumnToLearn, ...]]:
    """Read the schema of one table, which may have columns that are to learn their categories."""

    def lines() -> dict[Path, int]:
        return key_lines(text) | {("valid", str(i)): line for i, line in enumerate(item_lines(text, "valid"))}

    given = toml_of(text)
    if "unit" in given and "tables" in given:
        raise ValueError(
            "it is a schema of related tables, and one table is given: name both, such as "
            "households=h.csv persons=p.csv"
        )
    if "person" in given:
        raise ValueError(
            "person makes persons of rows, for smalldb.release(table, schema=...), generate and evaluate: "
            "leave out person and fixed for others"
        )
    return table_of(given, lines, learned, folder, books)


def table_of(
    given: Mapping[str, Any],
    lines: Callable[[], Mapping[Path, int]],
    learned: Mapping[str, Sequence[str]] | None = None,
    folder: str = "",
    books: Mapping[str, Book] | None = None,
) -> tuple[Schema, tuple[ColumnToLearn, ...]]:
    """Read the schema of one table from its TOML, as `parsed` does."""
    rest = ""
    wrong: list[tuple[str, tuple[str, ...]]] = []  # with the path of the key
    wrong += [(said, (key or "",)) for said, key in faults_of(given, TOP, (("columns",),))]
    columns, asked, computed, ids = [], [], dict[str, Mapping[str, Any]](), list[Column]()
    tables = given.get("columns")
    if isinstance(tables, dict) and len(tables) > MAX_COLUMNS:
        raise ValueError(too_many_columns(len(tables)))
    cells = 0
    for name, described in tables.items() if isinstance(tables, dict) else ():
        if len(wrong) > MOST_FAULTS:
            rest = f"; columns from {shorten(name)!r} on were not read"
            break
        try:
            if isinstance(described, dict) and "derive" in described:
                if faults := [*faults_of(described, DERIVED, ())]:
                    raise FaultyColumn(*faults)
                computed[name] = described
                continue
            if isinstance(described, dict) and described.get("kind") == ID:
                ids.append(id_column(name, described))
                continue
            if isinstance(described, dict) and (what := what_learns(described)) is not None:
                asked.append(column_to_learn(name, described, what))
                described = filled(described, what, (learned or {}).get(name))
            if name in (books or {}):
                described = with_book(described, (books or {})[name])
            columns.append(column_of(name, described, folder))
            if asked and asked[-1].column == name and what == "cuts" and learned is None:
                column_of(name, filled(described, what, closest(columns[-1])), folder)
            cells += coded_cells(columns[-1])
            if cells > MAX_CODED:
                raise ValueError(TOO_LARGE)
        except FaultyColumn as error:
            for said, key in error.faults:
                told = said.removeprefix(f"column {name!r}: ")
                wrong.append((told, ("columns", name, key or "")))
    if not wrong:
        derived, faulty = read_derived(columns, computed)
        wrong += [(said, ("columns", name, "derive")) for name, said in faulty]
    ignored, rules, first = (texts_of(given, key) for key in ("ignore", "valid", "measure_first"))
    wrong += [
        (f"{key} must be a list of texts", (key,))
        for key, texts in (("ignore", ignored), ("valid", rules), ("measure_first", first))
        if texts is None
    ]
    queries, valid = given.get("queries"), given.get("valid")
    file, faults = _file(given.get("file"))
    wrong += [(f"file: {said}", ("file", key or "")) for said, key in faults]
    each_person = given.get("rows_per_person")
    if isinstance(each_person, int) and each_person < 1:
        wrong.append(("rows_per_person must be a whole number of at least 1", ("rows_per_person",)))
    readable, count = not wrong, len(tables) - len(computed) - len(ids) if isinstance(tables, dict) else 0
    if isinstance(queries, str):
        wrong += [(said, ("queries",)) for said in unreadable(queries, (), count)]
    if readable:
        try:
            stated = valid if isinstance(valid, str) else rules
            queried = None if wrong else queries
            others = file, each_person, tuple(derived), first or (), tuple(ids)
            schema = Schema(tuple(columns), stated, queried, ignored or (), *others)
            if not wrong:
                return schema, tuple(asked)
        except ValueError as error:
            each = error.each if isinstance(error, Faults) else (str(error),)
            wrong += [(said, _path_of(said, tables, rules or ())) for said in each[:MOST_LOCATED]]
            wrong += [(said, ("valid",)) for said in each[MOST_LOCATED:]]
    else:
        unread = unreadable(None, rules or ())
        wrong += [(said, _path_of(said, {}, rules or ())) for said in unread[:MOST_LOCATED]]
        wrong += [(said, ("valid",)) for said in unread[MOST_LOCATED:]]
    raise ValueError(joined(with_lines(wrong, lines())) + rest)


def _path_of(said: str, tables: object, rules: Sequence[str]) -> tuple[str, ...]:
    """Return the path of the key that a fault of the whole schema is about."""
    for name, given in tables.items() if isinstance(tables, dict) else ():
        if said.startswith(f"column {name!r}: "):
            key = said.removeprefix(f"column {name!r}: ").split(" ")[0].rstrip(":")
            return ("columns", name, *([key] if key in given else []))
    if said.startswith("measure_first"):
        return ("measure_first",)
    for i, rule in enumerate(rules):
        named = [] if is_order(rule) or unreadable(None, [rule]) else parse(rule).names
        if any(repr(shorten(word)) in said for word in (rule, *named)):
            return ("valid", str(i))
    return ("valid",)


def _file(given: object) -> tuple[FileFormat, list[Fault]]:
    """Read how files are written, and what is wrong with that, each key by itself."""
    stated = given if isinstance(given, dict) else {}
    wrong = [*faults_of(stated, FILE, ())]
    if wrong:
        return FileFormat(), wrong
    for key, value in stated.items():
        try:
            FileFormat(**{key: value})
        except ValueError as error:
            wrong.append(Fault(str(error), key))
    try:
        return FileFormat() if wrong else FileFormat(**stated), wrong
    except ValueError as error:  # of two keys together
        return FileFormat(), [Fault(str(error))]
