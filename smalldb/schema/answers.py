"""What people answer when they are asked for a key of a schema, as values of TOML, and what that changes."""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from smalldb.schema.column_parsing import ID, IDS, LEARN, SHARED, TOP
from smalldb.schema.drafting import schema_text, toml
from smalldb.schema.kinds import SPECS
from smalldb.schema.parsing import toml_of
from smalldb.schema.related_schema import LINKS, PERSON

LEFT_OUT = "ignore"
LINES = ("valid", "measure_first")  # keys whose texts hold commas: answers have one a line


def answered(kind: str, key: str, answer: str) -> tuple[str, object]:
    """Return the key and the value of TOML that an answer means: ``f, m`` is a list where a list is meant."""
    types = {**TOP, **PERSON, **LINKS, **SHARED, **(SPECS[kind].keys if kind in SPECS else {})}.get(key, str)
    text = answer.strip()
    if types is str:
        return key, text
    listed = types is list or (isinstance(types, tuple) and list in types)
    if not listed or text.startswith("["):
        return key, _value(text)
    if text.startswith("bins "):
        return answered(kind, "bins", text.removeprefix("bins "))
    if key == "missing" and text.lower() in ("y", "yes", "true"):
        return key, True
    if text == LEARN:
        return key, text
    parts = [part.strip() for part in text.split("\n" if key in LINES else ",") if part.strip()]
    whole = kind != "times" and all(part.lstrip("-").isdecimal() for part in parts)
    numbers = key != "missing" and (kind in ("cuts", "integers") or whole)
    return key, [_value(part) if numbers else part for part in parts]


def _value(text: str) -> object:
    """Read a value of TOML; a text, where it is none."""
    try:
        return toml_of(f"x = {text}")["x"]
    except ValueError:
        return text


class Place(NamedTuple):
    """A column of a schema, or a related table."""

    table: str  # empty: there is one table
    column: str  # empty: the table itself, with its keys and links


def columns_of(document: Mapping[str, Any]) -> dict[Place, Mapping[str, Any] | None]:
    """Return the columns of a schema's TOML, behind their table if it is related; None: one is left out."""
    described = dict[Place, Mapping[str, Any] | None]()
    tables = document["tables"] if isinstance(document.get("tables"), dict) else {"": document}
    for table, keys in tables.items():
        if not isinstance(keys, dict):
            continue
        if table:
            described[Place(table, "")] = keys
        columns, left_out = keys.get("columns"), keys.get(LEFT_OUT)
        for name, keys_of_column in columns.items() if isinstance(columns, dict) else ():
            described[Place(table, name)] = keys_of_column if isinstance(keys_of_column, dict) else {}
        for name in left_out if isinstance(left_out, list) else ():
            described.setdefault(Place(table, str(name)), None)
    return described


def changed(text: str, place: Place | None, key: str, answer: str) -> str:
    """Return the TOML of a schema with another answer for a key of a column, or of the whole (None)."""
    document = toml_of(text)
    table = document["tables"][place.table] if place is not None and place.table else document
    if place is not None and key == "kind":
        columns = table.setdefault("columns", {})
        table[LEFT_OUT] = [name for name in table.get(LEFT_OUT, []) if name != place.column]
        if answer == LEFT_OUT:
            columns.pop(place.column, None)
            table[LEFT_OUT].append(place.column)
        else:  # keys that both kinds have stay
            stated = columns.get(place.column, {}).items()
            kept = {name: value for name, value in stated if name in keys_of(answer)}
            columns[place.column] = {**kept, "kind": answer}
    else:
        keys = table if place is None or not place.column else table["columns"][place.column]
        other, value = answered(str(keys.get("kind", "")), key, answer)
        keys.pop(key, None)
        if answer.strip():
            keys[other] = value
    head = [*takewhile(lambda line: line.startswith("#") or not line.strip(), text.splitlines())]
    return "\n".join([*head, schema_text(document)])


def keys_of(kind: str) -> Mapping[str, Any]:
    """Return the keys that a column of a kind can have."""
    return IDS if kind == ID else {**SHARED, **SPECS[kind].keys} if kind in SPECS else {}


def shown(value: object, sign: str = ", ") -> str:
    """Write a value of TOML as it is answered in a form (see `answered`); `sign` parts a list."""
    match value:
        case None:
            return ""
        case str():
            return value
        case True:
            return "yes"
        case list():
            texts = [*map(str, value)]
            if not any(sign.strip(" ") in text or "{" in text for text in texts):
                return sign.join(texts)
    return toml(value)
