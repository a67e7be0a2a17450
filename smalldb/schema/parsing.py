"""Reading schemas: from a TOML file or its text, or from tables of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File
from typing import Any

from queries.expressions import joined, shorten
from queries.faults import Fault, Faults
from smalldb.schema.asked import ColumnToLearn, closest, filled
from smalldb.schema.column_parsing import ID, column_of, column_to_learn, id_column, what_learns
from smalldb.schema.derived import read_derived
from smalldb.schema.determined import Book, with_book
from smalldb.schema.file_format import FileFormat
from smalldb.schema.keys import DERIVED, FILE, MOST_FAULTS, TOP, faults_of, lacking, texts_of
from smalldb.schema.lines import MAX_TEXT, Path, item_lines, key_lines, toml_of, with_lines
from smalldb.schema.mapping import (
    MAX_CODED,
    MAX_COLUMNS,
    TOO_LARGE,
    Schema,
    coded_cells,
    too_many_columns,
)
from smalldb.schema.queries_and_rules import unreadable
from smalldb.schema.schema_columns import Column


def schema_text_of(path: str) -> str:
    """Read the text of a schema's file, of one that is too long no more than shows that it is."""
    with File(path).open(encoding="utf-8-sig") as file:
        return file.read(MAX_TEXT + 1)


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
    rest, wrong = "", [*faults_of(given, TOP), *lacking(given, (("columns",),))]
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
                if faults := [*faults_of(described, DERIVED)]:
                    raise Faults(Fault.of(fault, "columns", name) for fault in faults)
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
        except (Fault, Faults) as error:
            wrong += error.each if isinstance(error, Faults) else [error]
        if cells > MAX_CODED:
            raise ValueError(TOO_LARGE)
    derived, faulty = ([], []) if wrong else read_derived(columns, computed)
    wrong += faulty
    ignored, rules, first = (texts_of(given, key) for key in ("ignore", "valid", "measure_first"))
    for key, texts in (("ignore", ignored), ("valid", rules), ("measure_first", first)):
        if texts is None:
            wrong.append(Fault(f"{key} must be a list of texts", key))
    queries, valid = given.get("queries"), given.get("valid")
    file, faults = _file(given.get("file"))
    wrong += faults
    each_person = given.get("rows_per_person")
    if isinstance(each_person, int) and each_person < 1:
        wrong.append(Fault("rows_per_person must be a whole number of at least 1", "rows_per_person"))
    if not wrong:
        try:
            stated = valid if isinstance(valid, str) else rules
            others = file, each_person, tuple(derived), first or (), tuple(ids)
            return Schema(tuple(columns), stated, queries, ignored or (), *others), tuple(asked)
        except Faults as error:
            wrong = [*error.each]
        except ValueError as error:
            wrong = [Fault.of(error, "valid")]
    else:
        count = len(tables) - len(computed) - len(ids) if isinstance(tables, dict) else 0
        wrong += unreadable(queries if isinstance(queries, str) else None, rules or (), count)
    raise ValueError(joined(with_lines(wrong, lines())) + rest)


def _file(given: object) -> tuple[FileFormat, list[Fault]]:
    """Read how files are written, and what is wrong with that, each key by itself."""
    stated = given if isinstance(given, dict) else {}
    wrong = [*faults_of(stated, FILE)]
    for key, value in () if wrong else stated.items():
        try:
            FileFormat(**{key: value})
        except ValueError as error:
            wrong.append(Fault(str(error), key))
    file = FileFormat()
    try:
        file = file if wrong else FileFormat(**stated)
    except ValueError as error:  # of two keys together
        wrong.append(Fault(str(error)))
    return file, [Fault(f"file: {fault.said}", "file", *fault.path) for fault in wrong]
