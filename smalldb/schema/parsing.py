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
    unreadable,
)
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
    found: dict[Path, int] = {}
    table: Path = ()
    for statement, line in _statements(text):
        try:
            paths = list(_paths(tomllib.loads(statement)))
        except tomllib.TOMLDecodeError:  # the text was no TOML
            return found
        if statement.lstrip().startswith("["):
            table = paths[-1]
            found.setdefault(table, line)
        else:
            for path in paths:
                found.setdefault(table + path, line)
    return found


def _statements(text: str) -> Iterator[tuple[str, int]]:
    """Yield each header and each key with its value, and the line where it begins, in one pass."""
    begin, begun, line, depth = 0, 1, 1, 0
    for token in _TOKEN.finditer(text + "\n"):
        sign = token[0]
        if sign in ("[", "{"):
            depth += 1
        elif sign in ("]", "}"):
            depth -= 1
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
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _paths(table: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the path of every key down to the deepest that counts, a table before its keys."""
    open_tables: list[tuple[Path, Iterator[tuple[str, Any]]]] = [((), iter(table.items()))]
    while open_tables:
        above, items = open_tables[-1]
        for key, value in items:
            yield (*above, key)
            if isinstance(value, dict) and len(above) + 1 < DEEPEST:
                open_tables.append(((*above, key), iter(value.items())))
                break
        else:
            open_tables.pop()


def with_lines(wrong: Iterable[Fault], lines: Mapping[Path, int]) -> list[str]:
    """Tell what is wrong, each with its line; of several columns that have the same fault, once."""
    alike: dict[tuple[str, bool], dict[Path, None]] = {}
    for fault in wrong:
        alike.setdefault((fault.message, str(fault) != fault.message), {})[fault.path] = None
    found = []
    for (said, of_column), paths in alike.items():
        names = dict.fromkeys(repr(path[1]) for path in paths) if of_column else ()
        named = f"column{'s' if len(names) > 1 else ''} {', '.join(names)}: " if names else ""
        at = dict.fromkeys(str(line) for path in paths if (line := line_of(lines, path)) is not None)
        located = f" (line{'s' if len(at) > 1 else ''} {', '.join(at)})" if at else ""
        found.append(f"{named}{said}{located}")
    return found


def toml_of(text: str) -> dict[str, Any]:
    """Read the TOML of a schema, with exact decimals; ValueError: it is none."""
    if len(text) > MAX_TEXT:
        raise ValueError(
            "more than 2^21 characters: is this a schema? If so, describe fewer columns or values"
        )
    if too_deep(text):
        raise ValueError("not TOML of a schema: it is nested too deeply")
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        said = " ".join(str(error).split())
        raise ValueError(f"not TOML, the format of a schema (see smalldb schema init): {said}") from error
    except RecursionError as error:
        raise ValueError("not TOML of a schema: it is nested too deeply") from error
    except ValueError as error:  # of Python, which reads no longer integers
        raise ValueError("not TOML of a schema: a number has more digits than are read") from error


def parsed(
    text: str,
    learned: Mapping[str, Sequence[str]] | None = None,
    folder: str = "",
    books: Mapping[str, Book] | None = None,
    given: Mapping[str, Any] | None = None,
) -> tuple[Schema, tuple[ColumnToLearn, ...]]:
    """Read the schema of one table from its text, or `given` its TOML; columns may learn their categories."""

    def lines() -> dict[Path, int]:
        return key_lines(text) | {("valid", str(i)): line for i, line in enumerate(item_lines(text, "valid"))}

    given = toml_of(text) if given is None else given
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
                    raise Faults(faults)
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
        except (ValueError, TypeError) as error:
            several = error.each if isinstance(error, Faults) else [error]
            wrong += [Fault.of(each, "columns", name) for each in several]
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
    if asked and given.get("breaks"):
        wrong.append(Fault("breaks does not go with learned categories: write these out", "breaks"))
    each_person = given.get("rows_per_person")
    if isinstance(each_person, int) and each_person < 1:
        wrong.append(Fault("rows_per_person must be a whole number of at least 1", "rows_per_person"))
    if not wrong:
        try:
            stated = valid if isinstance(valid, str) else rules
            others = file, each_person, tuple(derived), first or (), tuple(ids), given.get("breaks", "")
            return Schema(tuple(columns), stated, queries, ignored or (), *others), tuple(asked)
        except Faults as error:
            wrong = [*error.each]
        except ValueError as error:
            wrong = [Fault.of(error, "valid")]
    else:
        count = len(tables) - len(computed) - len(ids) if isinstance(tables, dict) else 0
        wrong += unreadable(queries if isinstance(queries, str) else None, rules or (), count)
    raise Faults(wrong, joined(with_lines(wrong, lines())) + rest)


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
    return file, [Fault(f"file: {fault.message}", "file", *fault.path) for fault in wrong]
