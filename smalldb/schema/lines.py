"""Where the keys of a TOML text stand."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    r"""Return the line of each table and key of a text that is TOML, by its path; lines are numbered from 1.

    >>> key_lines('a = 1\n[b.c]\nd = [\n  1]\ne = {f = 1}')
    {('a',): 1, ('b', 'c'): 2, ('b', 'c', 'd'): 3, ('b', 'c', 'e'): 5, ('b', 'c', 'e', 'f'): 5}
    """
    found: dict[Path, int] = {}
    table: Path = ()
    statement, begun = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not statement:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            begun = number
        statement += line + "\n"
        if line.rstrip().endswith((",", "[")):
            continue  # of a list that goes on
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue  # it ends further down
        paths = list(_paths(parsed))
        if statement.lstrip().startswith("["):
            table = paths[-1]
            found.setdefault(table, begun)
        else:
            for path in paths:
                found.setdefault(table + path, begun)
        statement = ""
    return found


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """Return the line of a key, or of the nearest table around it that has one."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _paths(table: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the path of every key, a table before its keys; tables may be as deep as they like."""
    open_tables: list[tuple[Path, Iterator[tuple[str, Any]]]] = [((), iter(table.items()))]
    while open_tables:
        above, items = open_tables[-1]
        for key, value in items:
            yield (*above, key)
            if isinstance(value, dict):
                open_tables.append(((*above, key), iter(value.items())))
                break
        else:
            open_tables.pop()
