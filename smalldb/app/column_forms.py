"""Forms for the keys of a schema, from the kinds' own descriptions, and what they change in its TOML."""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from shiny.ui import Tag, TagChild, tags

from smalldb.schema.answers import LINES, answered
from smalldb.schema.column_parsing import DERIVED, ID, IDS, SHARED
from smalldb.schema.drafting import schema_text, toml
from smalldb.schema.kinds import SPECS
from smalldb.schema.parsing import toml_of

LEFT_OUT = "ignore"
ASKED = {"missing": "gaps: yes, or texts that mean one", "description": "description"}


class Place(NamedTuple):
    """A column: the name of its table among related ones (empty: there is one table), and its own."""

    table: str
    column: str


def columns_of(given: Mapping[str, Any]) -> dict[Place, Mapping[str, Any] | None]:
    """Return the columns of a schema's TOML; None: one that is left out."""
    found = dict[Place, Mapping[str, Any] | None]()
    tables = given["tables"] if isinstance(given.get("tables"), dict) else {"": given}
    for table, own in tables.items():
        columns, left = (own.get(key) if isinstance(own, dict) else None for key in ("columns", LEFT_OUT))
        for name, keys in columns.items() if isinstance(columns, dict) else ():
            found[Place(table, name)] = keys if isinstance(keys, dict) else {}
        for name in left if isinstance(left, list) else ():
            found.setdefault(Place(table, str(name)), None)
    return found


def changed(text: str, place: Place | None, key: str, answer: str) -> str:
    """Return the TOML of a schema with another answer for a key of a column, or of the whole (None).

    Comments above the first key stay. ValueError, KeyError: the text is no TOML, or has no such column.
    """
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
        own = given if place is None else table["columns"][place.column]
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


def field(label: str, place: Place | None, number: int, key: str, value: object) -> Tag:
    """Make a field of a form, with room for a fault beside it."""
    box: dict[str, Any] = {"id": f"field-{number}-{key}", "data-key": key}
    box |= {f"data-{name}": own for name, own in (place._asdict() if place else {}).items()}
    box["class"] = "answer form-control form-control-sm"
    if key == "kind":
        named = {"": "choose", **{kind: kind for kind in (*SPECS, ID)}, LEFT_OUT: "leave out"}
        chosen = {value: ""}  # as an attribute, which None leaves out
        options = (tags.option(said, value=own, selected=chosen.get(own)) for own, said in named.items())
        made = tags.select(*options, **box)
    elif key in LINES:
        made = tags.textarea(shown(value, "\n"), rows="2", **box)
    else:
        made = tags.input(value=shown(value), type="text", **box)
    fault = tags.span(id=f"fault-{number}-{key}", class_="fault")
    return tags.div(tags.label(label, {"for": box["id"]}), made, fault, class_="field")


def row(number: int, place: Place, given: Mapping[str, Any] | None) -> Tag:
    """Make the form of one column."""
    kind = LEFT_OUT if given is None else str(given.get("kind", ""))
    spec, asked, given = SPECS.get(kind), dict(ASKED), given or {}
    first: list[str] = []
    if spec is not None:
        asked = {**dict(spec.questions), **ASKED}
        first = [*dict.fromkeys([*(key for choice in spec.needed for key in choice), *asked])]
    keys = DERIVED if "derive" in given else keys_of(kind)
    more = [field(key, place, number, key, given.get(key)) for key in keys if key not in (*first, "kind")]
    parts: list[TagChild] = [] if "derive" in given else [field("kind", place, number, "kind", kind)]
    parts += [field(asked.get(key, key), place, number, key, given.get(key)) for key in first]
    parts += [tags.details(tags.summary("more"), *more)] if more else []
    whole = tags.span(id=f"fault-{number}-", class_="fault")
    return tags.fieldset(tags.legend(": ".join(filter(None, place))), *parts, whole, class_="column")
