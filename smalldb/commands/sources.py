"""The table that a command reads, known by its names alone until it is read, and the file that goes out."""

import argparse
import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import final

import pandas as pd

from queries import Domain, Rows
from smalldb.commands.options import Parser, split_names
from smalldb.schema import Schema, read_schema
from smalldb.schema.tables import chosen, read_columns, read_csv, read_domain, read_table, to_csv, written

FORMS = {"": "csv", ".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A table of yes/no columns, or of any columns that a schema describes.

    Attributes
    ----------
    path
        The file.
    domain
        The universe of its rows.
    schema
        What its columns hold; None: yes or no.
    counts
        Column that says how often each row occurs; None: once.
    columns
        The schema's columns in the order of the file.
    """

    path: str
    domain: Domain
    schema: Schema | None = None
    counts: str | None = None
    columns: tuple[str, ...] = ()

    @property
    def stated(self) -> str | None:
        """The queries that the schema states, if it does."""
        return None if self.schema is None else self.schema.queries

    def read(self, progress: bool = False) -> Rows:
        """Count its rows; errors as `smalldb.schema.tables.read_csv` and `read_table`."""
        if self.schema is None:
            return read_csv(self.path, self.domain)
        return read_table(self.path, self.schema, self.counts, progress)

    def content(self, data: pd.DataFrame, form: str, spelling: str) -> bytes:
        """Write a released table as a file of the table's own columns, in their order."""
        if self.schema is not None:
            return written(self.schema.decode(self.domain.encode(data))[list(self.columns)], form)
        if form == "csv":
            return to_csv(data, spelling).encode()
        return written(data if spelling == "0/1" else data.astype(bool), form)


def add_schema(command: Parser) -> None:
    """Add what says what the columns hold, where they are not all yes/no."""
    command.add_argument(
        "--schema",
        metavar="SCHEMA.toml",
        help="what the columns hold (see smalldb schema); CSV, JSON lines or Parquet then",
    )
    command.add_argument(
        "--counts", metavar="COLUMN", help="with --schema: says how often each row of DATA occurs"
    )


def source_of(arguments: argparse.Namespace) -> Source:
    """Find out which table is meant, from names alone.

    Raises
    ------
    OSError
        A file cannot be read.
    ValueError
        No schema, other columns than the schema's, options that do not go together.
    """
    if arguments.schema is None:
        if arguments.counts is not None:
            raise ValueError("--counts needs --schema")
        columns = None if arguments.columns is None else split_names(arguments.columns)
        return Source(arguments.data, read_domain(arguments.data, columns, arguments.valid))
    for option, given in (("--columns", arguments.columns), ("--valid", arguments.valid)):
        if given is not None:
            raise ValueError(f"{option} is for tables without --schema: the schema says it")
    schema = read_schema(arguments.schema)
    names = list(read_columns(arguments.data))
    order = sorted(chosen(arguments.data, names, schema, arguments.counts))
    columns = [names[i].strip() for i in order]
    kept = tuple(name for name in columns if name != arguments.counts)
    return Source(arguments.data, schema.domain, schema, arguments.counts, kept)


def form_of(path: str | None) -> str:
    """Return the format that the name of an output asks for; CSV for none, and for stdout.

    Raises
    ------
    ValueError
        Another suffix, or Parquet without pyarrow.
    """
    suffix = "" if path is None else os.path.splitext(path)[1].lower()
    if suffix not in FORMS:
        raise ValueError(f"a table is written as .csv, .jsonl or .parquet, not {path!r}")
    if FORMS[suffix] == "parquet" and find_spec("pyarrow") is None:
        raise ValueError("Parquet files need pyarrow: pip install 'smalldb[parquet]'")
    return FORMS[suffix]
