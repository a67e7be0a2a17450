"""Schemas as TOML files."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from queries.expressions import suggestion
from smalldb.schema.columns import Column
from smalldb.schema.kinds import Categories, Cuts, Dates, Flag, Kind
from smalldb.schema.mapping import Schema

_Type: TypeAlias = "type | tuple[type, ...]"

_TOP: dict[str, _Type] = {"columns": dict, "valid": str, "queries": str, "ignore": list}
_SHARED: dict[str, _Type] = {"kind": str, "missing": (bool, list), "unknown": str, "dtype": str}
_KEYS: dict[str, dict[str, _Type]] = {
    "bool": {},
    "categories": {"values": list, "coding": str},
    "cuts": {"cuts": list, "range": list, "coding": str},
    "dates": {"cuts": list, "range": list, "coding": str},
}
_OPTIONAL = {"coding"}
_NAMED: dict[_Type, str] = {
    dict: "a table",
    str: "a text",
    list: "a list",
    (bool, list): "true, false or a list of texts",
}


def read_schema(path: str) -> Schema:
    """Read a schema from a TOML file.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is no TOML in UTF-8 or no schema: names the file, the column and the key.
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
    _check(given, _TOP, ("columns",))
    columns = []
    for name, described in given["columns"].items():
        try:
            columns.append(_column(name, described))
        except (ValueError, TypeError) as error:
            named = str(error).startswith("column ")
            raise ValueError(f"{'' if named else f'column {name!r}: '}{error}") from error
    return Schema(
        tuple(columns),
        valid=given.get("valid"),
        queries=given.get("queries"),
        ignored=_texts(given, "ignore"),
    )


def _column(name: str, given: object) -> Column:
    if not isinstance(given, dict):
        raise ValueError("expected a table of what it can hold")
    _check(given, _SHARED | {key: form for keys in _KEYS.values() for key, form in keys.items()}, ())
    kind = given.get("kind")
    if kind not in _KEYS:
        draft = "fill in the draft: " if kind == "" else ""
        near = suggestion(kind, _KEYS) if isinstance(kind, str) else ""
        raise ValueError(f"{draft}kind must be one of {', '.join(_KEYS)}{near}")
    keys = _KEYS[kind]
    for key in keys:
        if given.get(key) == []:
            raise ValueError(f"fill in the draft: {key} is empty")
    _check(given, _SHARED | keys, [key for key in keys if key not in _OPTIONAL])
    choices = ("missing", "other") if kind == "categories" else ("missing",)
    unknown = given.get("unknown")
    if unknown is not None and unknown not in choices:
        raise ValueError(f"unknown must be {' or '.join(map(repr, choices))}, or left out: refused then")
    return Column(
        name,
        _BUILD[kind](given),
        coding=given.get("coding"),
        missing=given.get("missing", False) is not False,
        gaps=() if given.get("missing") in (True, False) else _texts(given, "missing"),
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


def _texts(given: Mapping[str, Any], key: str) -> tuple[str, ...]:
    texts = given.get(key, [])
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{key} must be a list of texts")
    return tuple(text.strip() for text in texts)


def _check(given: Mapping[str, Any], keys: Mapping[str, _Type], needed: Sequence[str]) -> None:
    """Refuse an unknown key, a value of another type, a key that is missing."""
    for key, value in given.items():
        if key not in keys:
            raise ValueError(f"unknown key {key!r}{suggestion(key, keys)}: expected one of {', '.join(keys)}")
        if not isinstance(value, keys[key]):
            raise ValueError(f"{key} must be {_NAMED[keys[key]]}")
    for key in needed:
        if key not in given:
            raise ValueError(f"{key} is missing")
