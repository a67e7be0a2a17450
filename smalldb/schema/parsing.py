"""Schemas as TOML files."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from queries.expressions import suggestion
from smalldb.schema.columns import Column
from smalldb.schema.kinds import Categories, Cuts, Dates, Flag, Kind
from smalldb.schema.mapping import Schema, unreadable

_Type: TypeAlias = "type | tuple[type, ...]"

_TOP: dict[str, _Type] = {"columns": dict, "valid": (str, list), "queries": str, "ignore": (str, list)}
_SHARED: dict[str, _Type] = {"kind": str, "missing": (bool, list), "unknown": str, "dtype": str}
_KEYS: dict[str, dict[str, _Type]] = {
    "bool": {},
    "categories": {"values": list, "coding": str},
    "cuts": {"cuts": list, "range": list, "coding": str},
    "dates": {"cuts": list, "range": list, "coding": str},
}
_OPTIONAL = {"coding"}
_EXAMPLES = {
    "columns": "[columns.age]",
    "values": 'values = ["north", "south"]',
    "cuts": "cuts = [18, 65]",
    "range": "range = [0, 110]",
}
_NAMED: dict[_Type, str] = {
    dict: "a table",
    str: "a text",
    list: "a list, in square brackets",
    (bool, list): "true, false or a list of texts",
    (str, list): "a text or a list of texts",
}


def read_schema(path: str) -> Schema:
    """Read a schema from a TOML file.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is no TOML in UTF-8 or no schema: names the file, and each column and key that is wrong.
    """
    try:
        return parse_schema(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def parse_schema(text: str) -> Schema:
    r"""Read a schema from the text of a TOML file; errors as `read_schema`, without the file.

    >>> parse_schema('[columns.age]\nkind = "cuts"\ncuts = [18, 65]\nrange = [0, 99]').domain.attributes
    ('age>=18', 'age>=65')
    """
    try:
        given = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not TOML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ValueError("not TOML of a schema: it is nested too deeply") from error
    wrong, columns = _errors(given, _TOP, ("columns",)), []
    tables = given.get("columns")
    for name, described in tables.items() if isinstance(tables, dict) else ():
        try:
            columns.append(_column(name, described))
        except (ValueError, TypeError) as error:
            wrong += [
                part if part.startswith("column ") else f"column {name!r}: {part}" for part in _parts(error)
            ]
    ignored, rules = _texts(given, "ignore", wrong), _texts(given, "valid", wrong)
    queries = given.get("queries")
    if not wrong:
        valid = given.get("valid")
        return Schema(tuple(columns), valid if isinstance(valid, str) else rules, queries, ignored)
    wrong += unreadable(queries if isinstance(queries, str) else None, rules)
    raise ValueError("; ".join(dict.fromkeys(wrong)))


class _Wrong(ValueError):
    """Several errors of one column."""


def _parts(error: Exception) -> Sequence[str]:
    return [*error.args] if isinstance(error, _Wrong) else [str(error)]


def _column(name: str, given: object) -> Column:
    if not isinstance(given, dict):
        raise ValueError("expected a table of what it can hold")
    every = _SHARED | {key: form for keys in _KEYS.values() for key, form in keys.items()}
    wrong, kind = _errors(given, every, ()), given.get("kind")
    if not isinstance(kind, str) or kind not in _KEYS:
        draft = "fill in the draft: " if kind == "" else ""
        near = suggestion(kind, _KEYS) if isinstance(kind, str) else ""
        raise _Wrong(*wrong, f"{draft}kind must be one of {', '.join(_KEYS)}{near}")
    keys = _KEYS[kind]
    wrong += [f"fill in the draft: {key} is empty" for key in keys if given.get(key) == []]
    needed = [key for key in keys if key not in _OPTIONAL]
    wrong += [error for error in _errors(given, _SHARED | keys, needed) if error not in wrong]
    choices = ("missing", "other") if kind == "categories" else ("missing",)
    unknown = given.get("unknown")
    if unknown is not None and unknown not in choices:
        wrong.append(f"unknown must be {' or '.join(map(repr, choices))}, or left out: refused then")
    gaps = () if isinstance(given.get("missing"), bool) else _texts(given, "missing", wrong)
    if wrong:
        raise _Wrong(*wrong)
    return Column(
        name,
        _BUILD[kind](given),
        coding=given.get("coding"),
        missing=given.get("missing", False) is not False,
        gaps=gaps,
        unknown=unknown == "missing",
        dtype=given.get("dtype"),
    )


def _range(given: Mapping[str, Any]) -> list[Any]:
    ends: list[Any] = given["range"]
    if len(ends) != 2:
        raise ValueError("range must be a list of two numbers, the lowest and the highest")
    return ends


_BUILD: dict[str, Callable[[Mapping[str, Any]], Kind]] = {
    "bool": lambda given: Flag(),
    "categories": lambda given: Categories(given["values"], given.get("unknown") == "other"),
    "cuts": lambda given: Cuts(given["cuts"], *_range(given)),
    "dates": lambda given: Dates(given["cuts"], *_range(given)),
}


def _texts(given: Mapping[str, Any], key: str, wrong: list[str]) -> tuple[str, ...]:
    """Return a list of texts (or one), stripped; what is none is added to the errors."""
    found = given.get(key, [])
    texts = [found] if isinstance(found, str) else found
    if isinstance(texts, list) and not all(isinstance(text, str) for text in texts):
        wrong.append(f"{key} must be a list of texts")
        return ()
    return tuple(text.strip() for text in texts) if isinstance(texts, list) else ()


def _errors(given: Mapping[str, Any], keys: Mapping[str, _Type], needed: Sequence[str]) -> list[str]:
    """Tell of an unknown key, a value of another type, a key that is missing."""
    wrong = []
    for key, value in given.items():
        if key not in keys:
            wrong.append(f"unknown key {key!r}{suggestion(key, keys)}: expected one of {', '.join(keys)}")
        elif not isinstance(value, keys[key]):
            wrong.append(f"{key} must be {_NAMED[keys[key]]}")
    return wrong + [
        f"{key} is missing: write, for example, {_EXAMPLES[key]}" for key in needed if key not in given
    ]
