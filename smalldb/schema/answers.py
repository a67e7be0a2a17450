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
    """A column: the name of its table among related ones (empty: there is one table), and its own.

    Without a name of its own it is that table itself, with its keys and links.
    """

    table: str
    column: str


def columns_of(given: Mapping[str, Any]) -> dict[Place, Mapping[str, Any] | None]:
    """Return the columns of a schema's TOML, behind their table if it is related; None: one is left out."""
    found = dict[Place, Mapping[str, Any] | None]()
    tables = given["tables"] if isinstance(given.get("tables"), dict) else {"": given}
    for table, own in tables.items():
        if table and isinstance(own, dict):
            found[Place(table, "")] = own
        columns, left = (own.get(key) if isinstance(own, dict) else None for key in ("columns", LEFT_OUT))
        for name, keys in columns.items() if isinstance(columns, dict) else ():
            found[Place(table, name)] = keys if isinstance(keys, dict) else {}
        for name in left if isinstance(left, list) else ():
            found.setdefault(Place(table, str(name)), None)
    return found


def changed(text: str, place: Place | None, key: str, answer: str) -> str:
    """Return the TOML of a schema with another answer for a key of a column, or of the whole (None)."""
    given = toml_of(text)
    table = given["tables"][place.table] if place is not None and place.table else given
    if place is not None and key == "kind":
        columns = table.setdefault("columns", {})
        table[LEFT_OUT] = [name for name in table.get(LEFT_OUT, []) if name != place.column]
        if answer == LEFT_OUT:
            columns.pop(place.column, None)
            table[LEFT_OUT].append(place.column)
        else:  # keys that both kinds have stay
            kept = {key: own for key, own in columns.get(place.column, {}).items() if key in keys_of(answer)}
            columns[place.column] = {**kept, "kind": answer}
    else:
        own = table if place is None or not place.column else table["columns"][place.column]
        other, value = answered(str(own.get("kind", "")), key, answer)
        own.pop(key, None)
        if answer.strip():
            own[other] = value
    head = [*takewhile(lambda line: line.startswith("#") or not line.strip(), text.splitlines())]
    return "\n".join([*head, schema_text(given)])


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
