"""Forms for the keys of a schema, from the kinds' own descriptions."""

from collections.abc import Mapping
from typing import Any

from shiny.ui import Tag, TagChild, tags

from smalldb.schema.answers import LEFT_OUT, LINES, Place, keys_of, shown
from smalldb.schema.column_parsing import DERIVED, ID
from smalldb.schema.kinds import SPECS
from smalldb.schema.related_schema import LINKS, OF_CHILDREN

ASKED = {"missing": "gaps: yes, or texts that mean one", "description": "description"}


def field(label: str, place: Place | None, number: int, key: str, value: object) -> Tag:
    """Make a field of a form, with room for a fault beside it."""
    box: dict[str, Any] = {"id": f"field-{number}-{key}", "data-key": key}
    box |= {f"data-{part}": name for part, name in (place._asdict() if place else {}).items()}
    box["class"] = "answer form-control form-control-sm"
    if key == "kind":
        named = {"": "choose", **{kind: kind for kind in (*SPECS, ID)}, LEFT_OUT: "leave out"}
        chosen = {value: ""}  # as an attribute, which None leaves out
        options = (tags.option(text, value=kind, selected=chosen.get(kind)) for kind, text in named.items())
        control = tags.select(*options, **box)
    elif key in LINES:
        control = tags.textarea(shown(value, "\n"), rows="2", **box)
    else:
        control = tags.input(value=shown(value), type="text", **box)
    fault = tags.span(id=f"fault-{number}-{key}", class_="fault")
    return tags.div(tags.label(label, {"for": box["id"]}), control, fault, class_="field")


def row(number: int, place: Place, entries: Mapping[str, Any] | None) -> Tag:
    """Make the form of one column, or of the keys and links of a related table."""
    kind = LEFT_OUT if entries is None else str(entries.get("kind", ""))
    spec, questions, entries = SPECS.get(kind), dict(ASKED), entries or {}
    first: list[str] = []
    if spec is not None:
        questions = {**dict(spec.questions), **ASKED}
        first = [*dict.fromkeys([*(key for choice in spec.needed for key in choice), *questions])]
    if linked := place.table != "" and not place.column:
        first = [key for key in LINKS if key not in OF_CHILDREN or "parent" in entries]
    keys = DERIVED if "derive" in entries else keys_of(kind)
    more = [field(key, place, number, key, entries.get(key)) for key in keys if key not in (*first, "kind")]
    fixed = linked or "derive" in entries
    parts: list[TagChild] = [] if fixed else [field("kind", place, number, "kind", kind)]
    parts += [field(questions.get(key, key), place, number, key, entries.get(key)) for key in first]
    parts += [tags.details(tags.summary("more"), *more)] if more else []
    whole = tags.span(id=f"fault-{number}-", class_="fault")
    return tags.fieldset(tags.legend(": ".join(filter(None, place))), *parts, whole, class_="column")
