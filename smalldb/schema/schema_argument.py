"""The argument `schema` of public functions."""

import os
import re
from typing import TypeAlias

from queries import Domain, Rows
from queries.frames import as_frame, rows_of, universe_of, without_index
from smalldb.schema.learned import OpenSchema
from smalldb.schema.mapping import Schema
from smalldb.schema.parsing import parse_schema, read_schema, schema_text_of

SchemaLike: TypeAlias = Schema | OpenSchema | str | os.PathLike[str]
"""A schema, the path of its file, or its text."""


def as_schema(given: SchemaLike) -> Schema:
    """Return a schema, read from the path of its file or from its text if it is none yet.

    Errors as `read_schema`; TypeError: neither.
    """
    if isinstance(given, Schema):
        return given
    if isinstance(given, OpenSchema):
        return parse_schema(given.text)  # says why not
    if not isinstance(given, str | os.PathLike):
        raise TypeError(
            f"schema must be a Schema, the path of its file or its text, not {type(given).__name__}"
        )
    return read_schema(os.fspath(given)) if _is_path(given) else parse_schema(os.fspath(given))


def open_or_none(given: SchemaLike | None, domain: object = None) -> Schema | OpenSchema | None:
    """Return the schema of an argument, which may have columns that are to learn their categories.

    Errors as `schema_or_none`.
    """
    if isinstance(given, OpenSchema) and domain is None:
        return given
    if isinstance(given, str | os.PathLike) and domain is None:
        path = os.fspath(given) if _is_path(given) else None
        try:
            text = os.fspath(given) if path is None else schema_text_of(path)
        except UnicodeDecodeError:
            text = ""  # told below
        if re.search(r"=\s*[\"']learn[\"']", text):
            try:
                made = OpenSchema(text, "" if path is None else os.path.dirname(path))
            except ValueError as error:
                raise ValueError(str(error) if path is None else f"{path}: {error}") from error
            if made.asked:
                return made
    return schema_or_none(given, domain)


def _is_path(given: str | os.PathLike[str]) -> bool:
    return not isinstance(given, str) or re.search(r"[\n=]", given) is None or os.path.exists(given)


def schema_or_none(given: SchemaLike | None, domain: object = None) -> Schema | None:
    """Return the schema of an argument; beside one there may be no domain.

    Errors as `as_schema`; TypeError: both, or a schema in place of a domain.
    """
    if isinstance(domain, Schema):
        raise TypeError("domain is a queries.Domain: give a schema as schema=...")
    if given is not None and domain is not None:
        raise TypeError("give domain or schema, not both")
    return None if given is None else as_schema(given)


def counted(data: object, domain: Domain | None, schema: Schema | None) -> Rows:
    """Count the rows of a table of any library."""
    if isinstance(data, Rows):
        universe_of(data, domain if schema is None else schema.domain)
        return data.checked()
    if schema is not None:
        return schema.encode(as_frame(data))
    table = without_index(as_frame(data), domain)
    return rows_of(table, universe_of(table, domain))
