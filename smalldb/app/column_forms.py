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
    """Make the form of one column, or of the keys and links of a related table."""
    kind = LEFT_OUT if given is None else str(given.get("kind", ""))
    spec, asked, given = SPECS.get(kind), dict(ASKED), given or {}
    first: list[str] = []
    if spec is not None:
        asked = {**dict(spec.questions), **ASKED}
        first = [*dict.fromkeys([*(key for choice in spec.needed for key in choice), *asked])]
    if linked := place.table != "" and not place.column:
        first = [key for key in LINKS if key not in OF_CHILDREN or "parent" in given]
    keys = DERIVED if "derive" in given else keys_of(kind)
    more = [field(key, place, number, key, given.get(key)) for key in keys if key not in (*first, "kind")]
    fixed = linked or "derive" in given
    parts: list[TagChild] = [] if fixed else [field("kind", place, number, "kind", kind)]
    parts += [field(asked.get(key, key), place, number, key, given.get(key)) for key in first]
    parts += [tags.details(tags.summary("more"), *more)] if more else []
    whole = tags.span(id=f"fault-{number}-", class_="fault")
    return tags.fieldset(tags.legend(": ".join(filter(None, place))), *parts, whole, class_="column")
