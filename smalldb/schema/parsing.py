"""Schemas from the text of a TOML file: what its keys hold, their lines, and what is wrong."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from queries.expressions import Fault, Faults, joined, shorten
from smalldb.schema.column_parsing import (
    DERIVED,
    FILE,
    ID,
    MOST_FAULTS,
    TOP,
    ColumnToLearn,
    closest,
    column_of,
    column_to_learn,
    faults_of,
    filled,
    id_column,
    lacking,
    texts_of,
    what_learns,
)
from smalldb.schema.column_relations import Book, with_book
from smalldb.schema.derived import read_derived
from smalldb.schema.file_format import FileFormat
from smalldb.schema.mapping import (
    MAX_CODED,
    MAX_COLUMNS,
    TOO_LARGE,
    Schema,
    coded_cells,
    too_many_columns,
)
from smalldb.schema.row_rules import unreadable
from smalldb.schema.schema_columns import Column

Path = tuple[str, ...]

MAX_TEXT = 1 << 21  # characters of a schema
DEEPEST = 5  # keys of a path: a schema has none that are deeper
MANY_DOTS = 16  # of a key, which tomllib takes long to read

# Quotes that are never closed are read to the end: no hostile text is searched again from each of its quotes.
# No group has *+, which Python before 3.11.5 reads wrongly.
_TOKEN = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*(?:"{3,5})?'
    r"|'{3}(?:[^']++|'(?!''))*(?:'{3,5})?"
    r"""|"(?:[^"\\\n]++|\\.)*"?|'[^'\n]*'?|\#[^\n]*|[][{}\n]""",
    re.DOTALL,
)


def key_lines(text: str) -> dict[Path, int]:
    r"""Return the line of each table and key of a text that is TOML, by its path; lines are numbered from 1.

    >>> key_lines('a = 1\n[b.c]\nd = [\n  1]\ne = {f = 1}')
    {('a',): 1, ('b', 'c'): 2, ('b', 'c', 'd'): 3, ('b', 'c', 'e'): 5, ('b', 'c', 'e', 'f'): 5}
    """
    lines: dict[Path, int] = {}
    table: Path = ()
    for statement, line in _statements(text):
        try:
            paths: list[Path] = [*_paths(tomllib.loads(statement))]
        except tomllib.TOMLDecodeError:  # the text was no TOML
            return lines
        if statement.lstrip().startswith("["):
            table, paths = paths[-1], [()]
        for path in paths:
            lines.setdefault(table + path, line)
    return lines


def _statements(text: str) -> Iterator[tuple[str, int]]:
    """Yield each header and each key with its value, and the line where it begins, in one pass."""
    begin, begun, line, depth = 0, 1, 1, 0
    for token in _TOKEN.finditer(text + "\n"):
        sign = token[0]
        depth += (sign in ("[", "{")) - (sign in ("]", "}"))
        line += sign.count("\n")
        if sign == "\n" and depth == 0:
            statement = text[begin : token.start()].rstrip("\r")
            if statement.strip() and not statement.lstrip().startswith("#"):
                yield statement, begun
            begin, begun = token.end(), line


def too_deep(text: str) -> bool:
    """Tell whether a key of a TOML text has very many parts, before the text is read."""
    bare = _TOKEN.sub(lambda token: token[0] if len(token[0]) == 1 else "", text)
    return any(part.count(".") > MANY_DOTS for part in re.split(r"[][{}=,\n]", bare))


def item_lines(text: str, key: str) -> list[int]:
    r"""Return the lines of the texts in the list that a key of the top table holds.

    >>> item_lines('a = [ # "no"\n  "b",\n  "c"]', "a")
    [2, 3]
    """
    for statement, line in _statements(text):
        if re.match(rf"\s*{re.escape(key)}\s*=", statement):
            tokens = _TOKEN.finditer(statement)
            return [line + statement[: each.start()].count("\n") for each in tokens if each[0][0] in "\"'"]
        if statement.lstrip().startswith("["):
            break
    return []


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """Return the line of a key, or of the nearest table around it that has one."""
    around = (path[:length] for length in range(len(path), 0, -1))
    return next((lines[each] for each in around if each in lines), None)


def _paths(table: Mapping[str, Any], above: Path = ()) -> Iterator[Path]:
    """Yield the path of every key down to the deepest that counts, a table before its keys."""
    for key, value in table.items():
        path = (*above, key)
        yield path
        if isinstance(value, dict) and len(path) < DEEPEST:
            yield from _paths(value, path)


def with_lines(wrong: Iterable[Fault], lines: Mapping[Path, int]) -> list[str]:
    """Tell what is wrong, each with its line; of several columns that have the same fault, once."""
    alike: dict[tuple[str, bool], dict[Path, None]] = {}
    for fault in wrong:
        alike.setdefault((fault.message, str(fault) != fault.message), {})[fault.path] = None
    messages = []
    for (problem, of_column), paths in alike.items():
        names = dict.fromkeys(repr(path[1]) for path in paths) if of_column else ()
        named = f"column{'s' if len(names) > 1 else ''} {', '.join(names)}: " if names else ""
        at = dict.fromkeys(str(line) for path in paths if (line := line_of(lines, path)) is not None)
        located = f" (line{'s' if len(at) > 1 else ''} {', '.join(at)})" if at else ""
        messages.append(f"{named}{problem}{located}")
    return messages


def toml_of(text: str) -> dict[str, Any]:
    """Read the TOML of a schema, with exact decimals; ValueError: it is none."""
    if len(text) > MAX_TEXT:
        raise ValueError(
            "more than 2^21 characters: is this a schema? If so, describe fewer columns or values"
        )
    try:
        if too_deep(text):
            raise RecursionError
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"not TOML, the format of a schema (see smalldb schema init): {problem}") from error
    except RecursionError as error:
        raise ValueError("not TOML of a schema: it is nested too deeply") from error
    except ValueError as error:  # of Python, which reads no longer integers
        raise ValueError("not TOML of a schema: a number has more digits than are read") from error


def parsed(
    text: str,
    learned: Mapping[str, Sequence[str]] | None = None,
    folder: str = "",
    books: Mapping[str, Book] | None = None,
    document: Mapping[str, Any] | None = None,
) -> tuple[Schema, tuple[ColumnToLearn, ...]]:
    """Read the schema of one table from its text or `document`; columns may learn their categories."""

    def lines() -> dict[Path, int]:
        return key_lines(text) | {("valid", str(i)): line for i, line in enumerate(item_lines(text, "valid"))}

    document = toml_of(text) if document is None else document
    return table_of(document, lines, learned, folder, books)


def table_of(
    document: Mapping[str, Any],
    lines: Callable[[], Mapping[Path, int]],
    learned: Mapping[str, Sequence[str]] | None = None,
    folder: str = "",
    books: Mapping[str, Book] | None = None,
) -> tuple[Schema, tuple[ColumnToLearn, ...]]:
    """Read the schema of one table from its TOML, as `parsed` does."""
    rest, wrong = "", [*faults_of(document, TOP), *lacking(document, (("columns",),))]
    columns, to_learn, computed, ids = [], [], dict[str, Mapping[str, Any]](), list[Column]()
    described = document.get("columns")
    tables: Mapping[str, Any] = described if isinstance(described, dict) else {}
    if len(tables) > MAX_COLUMNS:
        raise ValueError(too_many_columns(len(tables)))
    cells = 0
    for name, table in tables.items():
        if len(wrong) > MOST_FAULTS:
            rest = f"; columns from {shorten(name)!r} on were not read"
            break
        try:
            if not isinstance(table, dict):
                raise Fault("expected a table that describes it")
            if "derive" in table:
                if faults := [*faults_of(table, DERIVED)]:
                    raise Faults(faults)
                computed[name] = table
                continue
            if table.get("kind") == ID:
                ids.append(id_column(name, table))
                continue
            if (what := what_learns(table)) is not None:
                to_learn.append(column_to_learn(name, table, what))
                table = filled(table, what, (learned or {}).get(name))
            if books and name in books:
                table = with_book(table, books[name])
            columns.append(column_of(name, table, folder))
            if what == "cuts" and learned is None:
                column_of(name, filled(table, what, closest(columns[-1])), folder)
            cells += coded_cells(columns[-1])
        except (ValueError, TypeError) as error:
            several = error.each if isinstance(error, Faults) else [error]
            wrong += [Fault.of(each, "columns", name) for each in several]
        if cells > MAX_CODED:
            raise ValueError(TOO_LARGE)
    derived, faulty = ([], []) if wrong else read_derived(columns, computed)
    wrong += faulty
    ignored, rules, first = (texts_of(document, key, wrong) for key in ("ignore", "valid", "measure_first"))
    queries, valid = document.get("queries"), document.get("valid")
    file, faults = _file(document.get("file"))
    wrong += faults
    if to_learn and document.get("breaks"):
        wrong.append(Fault("breaks does not go with learned categories: write these out", "breaks"))
    each_person = document.get("rows_per_person")
    if isinstance(each_person, int) and each_person < 1:
        wrong.append(Fault("rows_per_person must be a whole number of at least 1", "rows_per_person"))
    if not wrong:
        try:
            stated = valid if isinstance(valid, str) else rules
            others = file, each_person, tuple(derived), first, tuple(ids), document.get("breaks", "")
            return Schema(tuple(columns), stated, queries, ignored, *others), tuple(to_learn)
        except Faults as error:
            wrong = [*error.each]
        except ValueError as error:
            wrong = [Fault.of(error, "valid")]
    else:
        count = len(tables) - len(computed) - len(ids)
        wrong += unreadable(queries if isinstance(queries, str) else None, rules, count)
    raise Faults(wrong, joined(with_lines(wrong, lines())) + rest)


def _file(table: object) -> tuple[FileFormat, list[Fault]]:
    """Read how files are written, and what is wrong with that, each key by itself."""
    stated = table if isinstance(table, dict) else {}
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
    return file, [Fault(f"file: {fault.message}", "file", *fault.path) for fault in wrong]
