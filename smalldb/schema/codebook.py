"""Code books, table descriptors and data classes: what is public of what columns can hold."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, final, get_args, get_origin, get_type_hints

_COLUMN = ("column", "variable", "field", "name")
_VALUE = ("value", "values", "code")
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, csv.Error)


@final
@dataclass(frozen=True, slots=True)
class Described:
    """What a public file says of a column."""

    kind: str | None = None  # of a schema, if it says that
    values: tuple[str | int, ...] = ()  # what there can be, if it lists that
    # the range, if it says that
    low: object = None
    high: object = None
    label: str = ""  # what the column is, for people
    form: str | None = None  # how dates are written, if it says that
    # categories with the codes that stand for them, if it lists these
    groups: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    # texts that mean a gap, of a column that can have gaps; None: it does not say
    gaps: tuple[str, ...] | None = None
    fault: str = ""  # why nothing can be made of its labels; empty: nothing is wrong


def read_codebook(path: str) -> dict[str, Described]:
    """Read a code book, or a Table Schema or Data Package (Frictionless): by column, what it can hold."""
    # a CSV file with the columns `column` and `value`, a line a value; or JSON: lists of values by column
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        return _from_json(json.loads(text)) if path.lower().endswith(".json") else _from_csv(text)
    except _UNREADABLE as error:
        problem = error if isinstance(error, _NoCodeBook) else "expected CSV (column, value) or JSON in UTF-8"
        raise ValueError(f"{path} is not a code book: {problem}") from error


def read_table_schema(path: str) -> dict[str, Described]:
    """Read a Table Schema or Data Package, no other JSON, which might be data; as `read_codebook`."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        if "fields" in content or "resources" in content:
            return _from_json(content)
    except _UNREADABLE as error:
        raise ValueError(f"{path} is not a Table Schema: expected its JSON in UTF-8") from error
    raise ValueError(f"{path} is not a Table Schema: it has no fields")


class _NoCodeBook(ValueError):
    """What a code book lacks."""


def _from_csv(text: str) -> dict[str, Described]:
    first, *lines = csv.reader(text.splitlines(), strict=True)
    names = [name.strip().lower() for name in first]
    known = [[names.index(name) for name in wanted if name in names] for wanted in (_COLUMN, _VALUE)]
    if not all(known):
        raise _NoCodeBook("its first line must name the columns column and value")
    column, value = (positions[0] for positions in known)
    listed: dict[str, list[str]] = {}
    for line in filter(None, lines):
        listed.setdefault(line[column].strip(), []).append(line[value].strip())
    return {name: Described(values=_typed(values)) for name, values in listed.items() if name}


def _from_json(content: Any) -> dict[str, Described]:
    if "resources" in content:  # a data package
        content = content["resources"][0]["schema"]
    if "fields" in content:  # a table schema
        return {field["name"]: _field(field) for field in content["fields"]}
    described = {}
    for name, values in content.items():
        if isinstance(values, Mapping):  # value: label
            values = list(values)
        if not isinstance(values, list):
            raise _NoCodeBook("a JSON object must hold a list of values for each column")
        described[name] = Described(values=_typed(values))
    return described


def _field(field: Mapping[str, Any]) -> Described:
    """Read a field of a Table Schema."""
    limits = field.get("constraints", {})
    kinds = {"boolean": "bool", "integer": "cuts", "number": "cuts", "string": "categories", "year": "cuts"}
    kinds |= {"date": "dates", "datetime": "dates", "time": "times"}
    values = field.get("categories", limits.get("enum", ()))
    values = [each["value"] if isinstance(each, Mapping) else each for each in values]
    form = field.get("format")
    return Described(
        "categories" if values else kinds.get(field.get("type", "")),
        _typed(values),
        limits.get("minimum"),
        limits.get("maximum"),
        str(field.get("title", "")),
        form if isinstance(form, str) and "%" in form else None,
    )


def _typed(values: Iterable[object]) -> tuple[str | int, ...]:
    """Return distinct values as texts, or as whole numbers where all are."""
    distinct = list(dict.fromkeys(filter(None, map(str, values))))
    numbers = [int(value) for value in distinct if value.lstrip("-").isdecimal() and str(int(value)) == value]
    return tuple(numbers) if len(numbers) == len(distinct) else tuple(distinct)


_KINDS: Mapping[object, str] = {
    **{bool: "bool", int: "cuts", float: "cuts", Decimal: "cuts", str: "categories"},
    **{date: "dates", datetime: "dates", time: "times", timedelta: "times"},
}


def declared_fields(data_class: type) -> dict[str, Described]:
    """Return what the fields of a data class can hold, by their names: values, or the kind at most."""
    hints = get_type_hints(data_class)
    return {each.name: _described(hints[each.name]) for each in fields(data_class)}


def _described(hint: object) -> Described:
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    gaps = () if NoneType in parts else None
    left = [part for part in parts if part is not NoneType]
    if len(left) != 1:
        return Described(gaps=gaps)
    listed: tuple[object, ...] = ()
    if get_origin(left[0]) is Literal:
        listed = get_args(left[0])
        gaps, listed = (() if None in listed else gaps), tuple(each for each in listed if each is not None)
    elif isinstance(left[0], type) and issubclass(left[0], Enum):
        listed = tuple(each.value for each in left[0])
    values = tuple(each for each in listed if isinstance(each, str | int) and not isinstance(each, bool))
    if listed:
        fits = len(values) == len(listed) and len({*map(type, values)}) == 1
        return Described("categories", values if fits else (), gaps=gaps)
    return Described(_KINDS.get(left[0]), gaps=gaps)
