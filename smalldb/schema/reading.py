"""The one way to read a schema: of one table, of one that learns, or of related tables."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, final

from queries import Domain, Rows
from queries.frames import as_frame, rows_of, universe_of, without_index
from smalldb.schema.column_parsing import ColumnToLearn, filled
from smalldb.schema.column_relations import Book, with_book
from smalldb.schema.drafting import schema_text
from smalldb.schema.kinds import Categories
from smalldb.schema.mapping import Schema
from smalldb.schema.parsing import MAX_TEXT, parsed, toml_of
from smalldb.schema.related_schema import RelatedSchema, person_schema, tables_schema

Values = Mapping[str, Sequence[str]]
"""By column, the values or the cuts that were learned, as texts."""


@final
@dataclass(frozen=True, slots=True)
class Learned:
    """What the categories of a column cost, and how many there are; public."""

    column: str  # its name
    what: str  # "values" or "cuts"
    # of learning them; exact. The delta of cuts is None: they are pure.
    epsilon: Fraction
    delta: Fraction | None = None


@final
@dataclass(frozen=True, slots=True)
class OpenSchema:
    """A schema some of whose columns learn their categories: ``values = "learn"``, ``cuts = "learn"``."""

    text: str  # of the TOML file
    folder: str = ""  # where files that it names are looked for; they are read once, here
    to_learn: tuple[ColumnToLearn, ...] = field(init=False)
    # the schema with a stand-in for what is learned: its names, gaps and what it ignores are true
    outline: Schema = field(init=False, repr=False)

    def __post_init__(self) -> None:
        outline, to_learn = parsed(self.text, folder=self.folder)
        spent = sum((each.share for each in to_learn), Fraction(0))
        if spent >= 1:
            raise ValueError("share: the shares of all columns that learn must add up to less than 1")
        ruled = {outline.names[c] for rule in outline.domain.rules for c in rule.columns}
        for each in to_learn:  # a row that keeps the rule now must keep it with the categories learned
            if each.column in ruled:
                raise ValueError(
                    f"valid: no rule can use column {each.column!r}, whose categories are learned"
                )
        object.__setattr__(self, "outline", outline)
        object.__setattr__(self, "to_learn", to_learn)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.outline.names

    @property
    def _books(self) -> dict[str, Book]:
        return {column.name: column.determines for column in self.outline.columns if column.determines}

    def learned(self, categories: Values) -> Schema:
        """Return the schema with the learned categories; errors as `smalldb.schema.parse_schema`."""
        return parsed(self.text, categories, books=self._books)[0]

    def written(self, learned: Schema) -> str:
        """Write the TOML text with the categories that a schema has `learned`; as public as they are."""
        document = tomllib.loads(self.text, parse_float=Decimal)
        for name, book in self._books.items():
            document["columns"][name] = with_book(document["columns"][name], book)
        for column in self.to_learn:
            kind = learned.columns[learned.names.index(column.column)].kind
            categories = kind.listed if isinstance(kind, Categories) else map(Decimal, kind.cut_texts)
            document["columns"][column.column] = filled(
                document["columns"][column.column], column.what, [*categories]
            )
        return schema_text(document)


SchemaLike: TypeAlias = Schema | OpenSchema | RelatedSchema | str | os.PathLike[str] | Mapping[str, Any]
"""A schema, the path of its file, its text, or the tables of its text."""

_LEARNS = (
    "learns its categories from the data, for a share of epsilon: that takes smalldb.release(data, "
    "schema=...) or generate, whose --schema-out writes them out"
)
OF_RELATED = (
    "it is a schema of related tables, and one table is given: name both, such as "
    "households=h.csv persons=p.csv, or {'households': ..., 'persons': ...}"
)
_OF_PERSONS = (
    "person makes persons of rows, for smalldb.release(table, schema=...), generate and evaluate: "
    "leave out person and fixed for others"
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
    read = read_any(given)
    if isinstance(read, OpenSchema):
        raise ValueError(f"column {read.to_learn[0].column!r} {_LEARNS}")
    if isinstance(read, RelatedSchema):
        raise ValueError(OF_RELATED if read.whole is None else _OF_PERSONS)
    return read


def read_any(schema: object) -> Schema | OpenSchema | RelatedSchema:
    """Read a schema of one table or of related ones; errors as `read_schema`."""
    if isinstance(schema, Schema | OpenSchema | RelatedSchema):
        return schema
    if isinstance(schema, Mapping):
        return _parsed(schema_text(schema), "")
    text, path = _text_of(schema)
    try:
        return _parsed(text, "" if path is None else os.path.dirname(path))
    except (ValueError, TypeError) as error:
        raise error if path is None else ValueError(f"{path}: {error}") from error


def _parsed(text: str, folder: str) -> Schema | OpenSchema | RelatedSchema:
    """Read a text; files that it names are looked for in a folder."""
    document = toml_of(text)
    if "person" in document and "tables" not in document:
        return person_schema(document, text, folder)
    if {"unit", "tables"} & {*document}:
        return tables_schema(document, text, folder)
    schema, to_learn = parsed(text, folder=folder, document=document)
    return OpenSchema(text, folder) if to_learn else schema


def check_alone(schema: object, domain: object) -> None:
    """Refuse a domain beside a schema, and a schema in place of a domain: TypeError."""
    if isinstance(domain, Schema):
        raise TypeError("domain is a queries.Domain: give a schema as schema=...")
    if schema is not None and domain is not None:
        raise TypeError("pass domain or schema, not both")


def _text_of(schema: object) -> tuple[str, str | None]:
    """Return the text of a schema, and the path of its file if it has one."""
    if not isinstance(schema, str | os.PathLike):
        raise TypeError(
            f"schema must be a Schema, the path of its file or its text, not {type(schema).__name__}"
        )
    path = os.fspath(schema)
    if isinstance(schema, str) and re.search(r"[\n=]", schema) and not os.path.exists(schema):
        return schema, None
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read(MAX_TEXT + 1), path  # of one that is too long no more than shows that it is
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8") from error


def parse_schema(text: str, folder: str = "") -> Schema:
    """Read a schema from the text of a TOML file; files that it names are looked for in `folder`."""
    return read_schema(_parsed(text, folder))


def counted(data: object, domain: Domain | None, schema: Schema | None) -> Rows:
    """Count the rows of a table of any library."""
    if isinstance(data, Rows):
        universe_of(data, domain if schema is None else schema.domain)
        return data.checked()
    if schema is not None:
        return schema.encode(as_frame(data))
    table = without_index(as_frame(data), domain)
    return rows_of(table, universe_of(table, domain))
