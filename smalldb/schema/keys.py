"""The keys of a schema's tables: of which types they are, which are needed, and what is wrong with them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any

from queries.expressions import suggestion
from queries.faults import Fault
from smalldb.schema.file_format import FileFormat
from smalldb.schema.kinds.kind import Type as Type
from smalldb.schema.kinds.number_format import SIGNS

TOP: dict[str, Type] = {
    **{"columns": dict, "valid": (str, list), "queries": str, "ignore": (str, list)},
    **{"file": dict, "rows_per_person": int, "measure_first": (str, list)},
}
FILE: dict[str, Type] = {each.name: str for each in fields(FileFormat)}
SHARED: dict[str, Type] = {
    **{"kind": str, "missing": (bool, list), "unknown": str, "dtype": str},
    **{"missing_with": (str, list), "only_if": str, "determines": (str, dict)},
    **{"description": str, "unit": str},
}
IDS: dict[str, Type] = {"kind": str, "dtype": str}
DERIVED: dict[str, Type] = {
    **{"derive": str, "decimals": int, "missing": (bool, list), "dtype": str},
    **{"description": str, "unit": str},
    **SIGNS,
}
EXAMPLES = {
    "columns": "[columns.age]",
    "values": 'values = ["north", "south"]',
    "cuts": "cuts = [18, 65]",
    "range": "range = [0, 110]",
}
NAMED: dict[Type, str] = {
    dict: "a table",
    str: "a text",
    int: "a whole number",
    list: "a list, in square brackets",
    (bool, list): "true, false or a list of texts",
    (str, dict): 'a file, or such as { country = { Leeds = "UK" } }',
    (str, list): "a text or a list of texts",
    (int, str): 'a whole number, or such as "quarter"',
    (str, int, Decimal): 'a share of epsilon, such as "1/20"',
}
LEARN, MAX_LEARNED = "learn", 64  # bins
MOST_FAULTS = 200  # that are looked for before the rest is left unread
MOST_NEAR = 8  # unknown keys of a table for which a near one is looked for


def texts_of(given: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    """Return a list of texts (or one), stripped; None: it holds others."""
    found = given.get(key, [])
    texts = [found] if isinstance(found, str) else found
    if isinstance(texts, list) and not all(isinstance(text, str) for text in texts):
        return None
    return tuple(text.strip() for text in texts) if isinstance(texts, list) else ()


def faults_of(given: Mapping[str, Any], keys: Mapping[str, Type]) -> Iterator[Fault]:
    """Tell of an unknown key, or a value of another type."""
    unknown = 0
    for key, value in given.items():
        if key not in keys:
            unknown += 1
            near = suggestion(key, keys) if unknown <= MOST_NEAR else ""
            yield Fault(f"unknown key {key!r}{near}: expected one of {', '.join(keys)}", key)
        elif not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is int):
            yield Fault(f"{key} must be {NAMED[keys[key]]}", key)


def lacking(given: Mapping[str, Any], needed: Sequence[Sequence[str]]) -> Iterator[Fault]:
    """Tell of a key that is missing."""
    for choice in needed:
        if not any(key in given for key in choice):
            others = "".join(f" (or {key})" for key in choice[1:])
            yield Fault(f"{choice[0]} is missing: write, for example, {EXAMPLES[choice[0]]}{others}")
