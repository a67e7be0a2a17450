"""The one way to read a schema: of one table, of one that learns, or of related tables."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from queries import Domain, Rows
from queries.frames import as_frame, rows_of, universe_of, without_index
from smalldb.schema.drafting import schema_text
from smalldb.schema.learned import OpenSchema
from smalldb.schema.lines import toml_of
from smalldb.schema.mapping import Schema
from smalldb.schema.parsing import parsed, schema_text_of
from smalldb.schema.person_schema import person_schema
from smalldb.schema.related_schema import RelatedSchema, tables_schema

SchemaLike: TypeAlias = Schema | OpenSchema | str | os.PathLike[str] | Mapping[str, Any]
"""A schema, the path of its file, its text, or the tables of its text."""

_S = TypeVar("_S")
_LEARNS = (
    "learns its categories from the data, for a share of epsilon: that takes smalldb.release(data, "
    "schema=...) or generate, whose --schema-out writes them out"
)


def read_schema(given: SchemaLike) -> Schema:
    r"""Read a schema that states all categories.

    Parameters
    ----------
    given
        The path of a TOML file; its text; what the text holds, as a mapping; or a schema, as it is.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is no TOML in UTF-8 or no schema of one table: names the file, and each column, key and line that
        is wrong.
    TypeError
        None of these.

    Examples
    --------
    >>> read_schema('[columns.age]\nkind = "cuts"\ncuts = [18, 65]\nrange = [0, 99]').domain.attributes
    ('age>=18', 'age>=65')
    """
    read = read_open(given)
    if isinstance(read, OpenSchema):
        raise ValueError(f"column {read.asked[0].column!r} {_LEARNS}")
    return read


def read_open(given: SchemaLike) -> Schema | OpenSchema:
    """Read a schema that may have columns that are to learn their categories; errors as `read_schema`."""
    if isinstance(given, Schema | OpenSchema):
        return given
    if isinstance(given, Mapping):
        given = schema_text({"columns": {}, **given})
    text, path = text_of(given)
    return _named(path, lambda folder: _one(text, folder))


def read_any(given: object) -> Schema | OpenSchema | RelatedSchema:
    """Read a schema of one table or of related ones; errors as `read_schema`."""
    if isinstance(given, RelatedSchema):
        return given
    if isinstance(given, str | os.PathLike):
        text, path = text_of(given)
        if is_related(text):
            return _named(path, lambda folder: parse_related(text, folder))
    return read_open(given)  # type: ignore[arg-type]


def schema_or_none(given: SchemaLike | None, domain: object = None) -> Schema | None:
    """Read the schema of an argument, which is alone; errors as `read_schema` and `check_alone`."""
    check_alone(given, domain)
    return None if given is None else read_schema(given)


def check_alone(given: object, domain: object) -> None:
    """Refuse a domain beside a schema, and a schema in place of a domain: TypeError."""
    if isinstance(domain, Schema):
        raise TypeError("domain is a queries.Domain: give a schema as schema=...")
    if given is not None and domain is not None:
        raise TypeError("give domain or schema, not both")


def text_of(given: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Return the text of a schema, and the path of its file if it has one."""
    if not isinstance(given, str | os.PathLike):
        raise TypeError(
            f"schema must be a Schema, the path of its file or its text, not {type(given).__name__}"
        )
    path = os.fspath(given)
    if isinstance(given, str) and re.search(r"[\n=]", given) and not os.path.exists(given):
        return given, None
    try:
        return schema_text_of(path), path
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8") from error


def _named(path: str | None, read: Callable[[str], _S]) -> _S:
    """Read a schema; files that it names are looked for in its folder, and what is wrong names its file."""
    try:
        return read("" if path is None else os.path.dirname(path))
    except (ValueError, TypeError) as error:
        raise error if path is None else ValueError(f"{path}: {error}") from error


def _one(text: str, folder: str) -> Schema | OpenSchema:
    schema, asked = parsed(text, folder=folder)
    return OpenSchema(text, folder) if asked else schema


def parse_schema(text: str, folder: str = "") -> Schema:
    """Read a schema from the text of a TOML file; files that it names are looked for in `folder`."""
    return read_schema(_one(text, folder))


def is_related(text: str) -> bool:
    """Tell whether a schema's text is one of related tables; of a text that is no TOML: no."""
    if re.search(r"^\s*(?:unit|person)\s*=|^\s*\[\s*tables\s*\.", text, re.MULTILINE) is None:
        return False  # so that other schemas are not read twice
    try:
        return bool({"unit", "tables", "person"} & {*toml_of(text)})
    except ValueError:
        return False


def parse_related(text: str, folder: str = "") -> RelatedSchema:
    """Read the schema of related tables, or of a long one, from its text; errors as `read_schema`."""
    given = toml_of(text)
    if "person" in given and "tables" not in given:
        return person_schema(given, text, folder)
    return tables_schema(given, text, folder)


def counted(data: object, domain: Domain | None, schema: Schema | None) -> Rows:
    """Count the rows of a table of any library."""
    if isinstance(data, Rows):
        universe_of(data, domain if schema is None else schema.domain)
        return data.checked()
    if schema is not None:
        return schema.encode(as_frame(data))
    table = without_index(as_frame(data), domain)
    return rows_of(table, universe_of(table, domain))
