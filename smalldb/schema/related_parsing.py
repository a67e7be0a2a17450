"""Reading the schema of related tables: of two, or of a long one in which a person has several rows."""

import os
import re

from smalldb.schema.lines import toml_of
from smalldb.schema.parsing import schema_text_of
from smalldb.schema.person_schema import person_schema
from smalldb.schema.related_schema import RelatedSchema, tables_schema

_KEYS = re.compile(r"^\s*(?:unit|person)\s*=|^\s*\[\s*tables\s*\.", re.MULTILINE)


def is_related(text: str) -> bool:
    """Tell whether a schema's text is one of related tables; of a text that is no TOML: no."""
    if _KEYS.search(text) is None:  # so that other schemas are not read twice
        return False
    try:
        return bool({"unit", "tables", "person"} & {*toml_of(text)})
    except ValueError:
        return False


def read_related(path: str) -> RelatedSchema:
    """Read the schema of related tables, or of a long one, from a TOML file."""
    try:
        return parse_related(schema_text_of(path), os.path.dirname(path))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse_related(text: str, folder: str = "") -> RelatedSchema:
    """Read the schema of related tables from its text; errors as `read_related`, without the file."""
    given = toml_of(text)
    if "person" in given and "tables" not in given:
        return person_schema(given, text, folder)
    return tables_schema(given, text, folder)
