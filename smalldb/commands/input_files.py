"""The options that say which file a command reads and what its columns hold."""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smalldb.commands import Parser, add_options
from smalldb.commands.options import add_file_format, file_format, split_names
from smalldb.files.inputs import rereadable
from smalldb.releasing.table_source import LinkedSource, Source, file_source, table_source
from smalldb.schema import Schema
from smalldb.schema.linked_rows import check_names
from smalldb.schema.readers.compressed import parted
from smalldb.schema.readers.registry import has_lines
from smalldb.schema.reading import OpenSchema, read_any
from smalldb.schema.related_schema import RelatedSchema

NO_DATA = "name the table: DATA, or file.url of a schema, which is the URL of a database"


def add_schema(command: Parser) -> None:
    """Add what says what the columns hold, where they are not all yes/no."""
    add_options(
        command,
        {
            "--schema SCHEMA.toml": "what the columns hold (see smalldb schema); tables of any format then",
            "--counts COLUMN": "with --schema: the column with the number of times that each row of DATA "
            "occurs",
            "--count-in-database": "with --schema: the database counts the rows by bins (schema sql), and "
            "only counts are read",
        },
    )
    add_file_format(command)


def schema_of(
    arguments: argparse.Namespace, tables: Sequence[str | None] = ()
) -> Schema | OpenSchema | RelatedSchema | None:
    """Read the schema that an option names; ValueError: several tables are given, and it is of one."""
    schema = None if arguments.schema is None else read_any(Path(arguments.schema))
    if not isinstance(schema, RelatedSchema) and sum(text is not None for text in tables) > 1:
        raise ValueError(
            "several tables need a --schema with unit and [tables.NAME]: smalldb schema init drafts one"
        )
    return schema


def source_of(
    arguments: argparse.Namespace, schema: Schema | OpenSchema | RelatedSchema | None
) -> Source | LinkedSource:
    """Find out which table is meant, or which related ones, from names alone."""
    if isinstance(schema, RelatedSchema):
        paths = tables_of_schema([arguments.data, *arguments.more], schema)
        paths = {name: rereadable(path, has_lines(path)) for name, path in paths.items()}
        return table_source(as_tables(paths, schema), None, schema)
    file, inside = file_format(arguments), arguments.count_in_database
    counting = {"--counts": arguments.counts is not None, "--count-in-database": inside}
    if schema is None:
        for option, needed in counting.items():
            if needed:
                raise ValueError(f"{option} needs --schema")
        columns = None if arguments.columns is None else split_names(arguments.columns)
        if arguments.data is None:
            raise ValueError(NO_DATA)
        return file_source(arguments.data, columns=columns, valid=arguments.valid, file=file)
    for option, value in (("--columns", arguments.columns), ("--valid", arguments.valid)):
        if value is not None:
            raise ValueError(f"{option} is for tables without --schema: the schema says it")
    if all(counting.values()):
        raise ValueError("--count-in-database counts each row once: leave out --counts")
    for option, needed in counting.items():
        if isinstance(schema, OpenSchema) and needed:
            raise ValueError(
                f"{option} is for schemas that state all categories: what learns them counts rows itself"
            )
    known = schema.outline if isinstance(schema, OpenSchema) else schema
    table = table_of(arguments, known)
    return file_source(table, schema, counts=arguments.counts, file=file, inside=inside)


def table_of(arguments: argparse.Namespace, schema: Schema) -> str:
    """Return the path of a table, or the URL of its database, which a schema may state; ValueError: none."""
    path: str | None = schema.file.url if arguments.data is None else arguments.data
    if path is None:
        raise ValueError(NO_DATA)
    return path


def named(texts: Sequence[str | None]) -> dict[str, str]:
    """Read tables that are named, such as persons=p.csv; ValueError: one is not, or a name stands twice."""
    paths = dict[str, str]()
    for text in texts:
        name, sign, path = (text or "").partition("=")
        if not sign or not name or not path:
            raise ValueError("related tables are named: write NAME=FILE, such as persons=p.csv")
        if name in paths:
            raise ValueError(f"table {name!r} is named twice")
        paths[name] = path
    return paths


def related_files(
    arguments: argparse.Namespace, schema: RelatedSchema, taken: Sequence[str], texts: Sequence[str] = ()
) -> dict[str, str]:
    """Return related tables by their names; ValueError: not those of the schema, or options of one table."""
    refuse_others(arguments, taken)
    return tables_of_schema(texts or [arguments.data, *arguments.more], schema)


def refuse_others(arguments: argparse.Namespace, taken: Sequence[str]) -> None:
    """Refuse options that related tables do not take: ValueError."""
    others = [name for name, value in vars(arguments).items() if value and name not in taken]
    if others:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in others)
        raise ValueError(f"related tables do not take {options} yet: leave it out")


def tables_of_schema(texts: Sequence[str | None], schema: RelatedSchema) -> dict[str, str]:
    """Return the tables of a schema by their names, the one long table by that of its file: ValueError."""
    if schema.whole is None:
        tables = named(texts)
        check_names([*tables], schema)
        return tables
    paths = [path for path in texts if path is not None]
    if len(paths) != 1:
        raise ValueError("person in a schema is for one table: name one file")
    stem = os.path.basename(parted(paths[0])[0])
    return {os.path.splitext(stem)[0]: paths[0]}


def as_tables(tables: Mapping[str, str], schema: RelatedSchema) -> Any:
    """Return tables as the library takes them: by their names, or the long one."""
    return tables if schema.whole is None else next(iter(tables.values()))
