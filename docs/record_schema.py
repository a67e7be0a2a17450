"""Write what the record's JSON schema says of strategies and of noise from their types.

python docs/record_schema.py
"""

import json
import re
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import get_type_hints

from smalldb.marginals.mechanism import STRATEGIES
from smalldb.noise.distributions import KINDS
from smalldb.planning.plans import RELATED

HOME = Path(__file__).parent.parent / "smalldb" / "releasing" / "record.schema.json"
WRITTEN = {
    Fraction: {"$ref": "#/$defs/exact"},
    int: {"type": "integer", "minimum": 1},
    bool: {"type": "boolean"},
    tuple[int, ...]: {"$ref": "#/$defs/whole"},
    tuple[tuple[int, int], ...]: {"type": "array", "items": {"$ref": "#/$defs/whole"}},
}


def noise(kind):
    """Return the schema of a noise: its name, and its fields."""
    hints = get_type_hints(kind)
    own = {field.name: WRITTEN[hints[field.name]] for field in fields(kind)}
    return {
        "description": kind.__doc__.strip().splitlines()[0],
        "type": "object",
        "required": ["name", *own],
        "properties": {"name": {"const": kind.name}, **own},
        "additionalProperties": False,
    }


def written(text):
    """Return the schema's text with both parts anew."""
    text = re.sub(
        r'"strategy": \{ "enum": \[.*?\] \}',
        f'"strategy": {{ "enum": {json.dumps([*STRATEGIES, RELATED])} }}',
        text,
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
