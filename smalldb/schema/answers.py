"""What people answer when they are asked for a key of a schema, as values of TOML."""

from smalldb.schema.column_parsing import LEARN, SHARED, TOP
from smalldb.schema.kinds import SPECS
from smalldb.schema.parsing import toml_of
from smalldb.schema.related_schema import PERSON

LINES = ("valid", "measure_first")  # keys whose texts hold commas: answers have one a line


def answered(kind: str, key: str, answer: str) -> tuple[str, object]:
    """Return the key and the value of TOML that an answer means: ``f, m`` is a list where a list is meant.

    What is not of the key's type stays a text: the schema says what is wrong with it.
    """
    types = {**TOP, **PERSON, **SHARED, **(SPECS[kind].keys if kind in SPECS else {})}.get(key, str)
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
