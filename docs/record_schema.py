"""Write what the record's JSON schema says of strategies, of noise and of laws from their types.

python docs/record_schema.py
"""

import json
import re
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

from smalldb.marginals.mechanism import STRATEGIES
from smalldb.noise.distributions import KINDS
from smalldb.noise.privacy_loss import LAWS
from smalldb.planning.plans import RELATED

HOME = Path(__file__).parent.parent / "smalldb" / "releasing" / "record.schema.json"
EXACT = {"$ref": "#/$defs/exact"}
WRITTEN = {Fraction: EXACT, int: {"type": "integer", "minimum": 1}, bool: {"type": "boolean"}}


def written_type(hint):
    """Return the schema of a value of a type: whole numbers in a tuple may be 0."""
    if get_origin(hint) is not tuple:
        return WRITTEN[hint]
    inner = get_args(hint)[0]
    return {"$ref": "#/$defs/whole"} if inner is int else {"type": "array", "items": written_type(inner)}


def law():
    """Return the schema of a law of losses: its name, its numbers, and how often."""
    own = {key: WRITTEN[field.type] for law in LAWS for key, field in zip(law.keys, fields(law), strict=True)}
    keys = sorted({law.keys for law in LAWS})
    return {
        "type": "object",
        "required": ["law", "times"],
        "properties": {"law": {"enum": [law.law for law in LAWS]}, **own, "times": WRITTEN[int]},
        "oneOf": [{"required": [*some]} for some in keys],
        "additionalProperties": False,
    }


def noise(kind):
    """Return the schema of a noise: its name, and its fields."""
    hints = get_type_hints(kind)
    own = {field.name: written_type(hints[field.name]) for field in fields(kind)}
    return {
        "description": kind.__doc__.strip().splitlines()[0],
        "type": "object",
        "required": ["name", *own],
        "properties": {"name": {"const": kind.name}, **own},
        "additionalProperties": False,
    }


def written(text):
    """Return the schema's text with these parts anew."""
    text = re.sub(
        r'"strategy": \{ "enum": \[.*?\] \}',
        f'"strategy": {{ "enum": {json.dumps([*STRATEGIES, RELATED])} }}',
        text,
    )
    text = re.sub(
        r'(\n    "law": ).*?(,\n    "exact": )',
        lambda found: found[1] + json.dumps(law()) + found[2],
        text,
        flags=re.DOTALL,
    )
    noises = ",\n".join(f"        {json.dumps(noise(kind))}" for kind in KINDS)
    return re.sub(
        r'("noise": \{\n      "oneOf": \[\n).*?(\n      \]\n    \})',
        lambda found: found[1] + noises + found[2],
        text,
        count=1,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    HOME.write_text(written(HOME.read_text(encoding="utf-8")), encoding="utf-8")
