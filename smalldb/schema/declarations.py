"""What a data class says of columns: its fields and their types, which are code, and so public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

from smalldb.schema.codebook import Described

_KINDS: Mapping[object, str] = {
    **{bool: "bool", int: "cuts", float: "cuts", Decimal: "cuts", str: "categories"},
    **{date: "dates", datetime: "dates", time: "times", timedelta: "times"},
}


def declared_fields(given: type) -> dict[str, Described]:
    """Return what the fields of a data class can hold, by their names.

    A ``Literal`` and an ``Enum`` list their values, and ``None`` beside a type says that there are gaps. Of
    other types the kind is known, at most.
    """
    hints = get_type_hints(given)
    return {each.name: _described(hints[each.name]) for each in fields(given)}


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
