"""Where the keys of a TOML text stand."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from queries.faults import Fault

Path = tuple[str, ...]

MAX_TEXT = 1 << 21  # characters of a schema
DEEPEST = 5  # keys of a path: a schema has none that are deeper
MANY_DOTS = 16  # of a key, which tomllib takes long to read

_TOKEN = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}'
    r"|'{3}(?:[^']++|'(?!''))*+'{3,5}"
    r"""|"(?:[^"\\\n]++|\\.)*+"|'[^'\n]*+'|\#[^\n]*+|[][{}\n]""",
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
        alike.setdefault((fault.said, str(fault) != fault.said), {})[fault.path] = None
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
        raise ValueError("a schema may have up to 2^21 characters: describe fewer columns or values")
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
