"""The table that a command reads, known by its names alone until it is read, and the file that goes out."""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import final

import numpy as np

from queries import Domain, Rows
from queries.domain import Bits
from smalldb.commands.options import add_separator, split_names
from smalldb.commands.parsers import Parser
from smalldb.files.inputs import rereadable
from smalldb.files.outputs import unchanged
from smalldb.releasing.released import Release
from smalldb.schema import Schema, read_schema
from smalldb.schema.arguments import open_or_none
from smalldb.schema.learned import OpenSchema
from smalldb.schema.pieces import Piece
from smalldb.schema.records import agreed
from smalldb.schema.rehearsing import rehearse
from smalldb.schema.tables import (
    chosen,
    is_json_lines,
    read_columns,
    read_csv,
    read_domain,
    read_table,
    table_pieces,
)
from smalldb.schema.writing import NAMED, SUFFIXES, Spelled, spelled_out, written


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
        The schema's columns in the order of the file; of JSON lines, where each row has one, in the schema's.
    open
        What the schema is to learn from the data; `schema` and `domain` hold stand-ins until `learned`.
    separator
        Of fields of CSV files; None: the schema's, or what a file states, or commas.
    """

    path: str
    domain: Domain
    schema: Schema | None = None
    counts: str | None = None
    columns: tuple[str, ...] = ()
    open: OpenSchema | None = None
    separator: str | None = None

    @property
    def stated(self) -> str | None:
        """The queries that the schema states, if it does."""
        return None if self.schema is None else self.schema.queries

    def learned(self, schema: Schema) -> "Source":
        """Return the source with the places that were learned."""
        return replace(self, domain=schema.domain, schema=schema, open=None)

    def pieces(self) -> Iterator[Piece]:
        """Yield the columns of its schema; errors as `smalldb.schema.tables.read_table`."""
        if self.schema is None:
            raise ValueError("places are learned by a schema")
        with unchanged(self.path):
            yield from table_pieces(self.path, self.schema, separator=self.separator)

    def read(self, progress: bool = False) -> Rows:
        """Count its rows; errors as `smalldb.schema.tables.read_csv` and `read_table`."""
        if self.schema is None:
            return read_csv(self.path, self.domain, self.separator)
        return read_table(self.path, self.schema, self.counts, progress, self.separator)

    def rehearse(self, form: str) -> int:
        """Write and read what a release can hold, before anything is paid; errors as `rehearse`.

        Returns about how many bytes a row has at the most.
        """
        if self.schema is not None:
            return rehearse(self.schema, form, self.separator)
        none = np.zeros((1, len(self.domain.sizes)), dtype=np.uint8)
        if form == "parquet":
            return len(written(self.domain.decode(none).astype(bool), form))
        return len(spelled_out(self._flags(none, "true/false"), form))

    def content(self, made: Release, form: str, spelling: str, guard: bool = False) -> bytes:
        """Write released rows as a file of the table's own columns, in their order.

        CSV has the separator that was stated for reading, and with `guard` no text that a spreadsheet runs.
        """
        if self.schema is not None:
            data = made.data[list(self.columns)]
            return written(data, form, self.schema, separator=self.separator, guard=guard)
        if form == "parquet":
            return written(made.data.astype(int if spelling == "0/1" else bool), form)
        return spelled_out(self._flags(made.places, spelling), form, separator=self.separator, guard=guard)

    def _flags(self, bits: Bits, spelling: str) -> Iterator[Spelled]:
        """Yield yes/no columns as they are written, without pandas."""
        fields = ("0", "1") if spelling == "0/1" else ("false", "true")
        for name, column in zip(self.domain.names, bits.T, strict=True):
            yield Spelled(name, column, fields)


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
    add_separator(command)


def source_of(arguments: argparse.Namespace, learning: bool = False) -> Source:
    """Find out which table is meant, from names alone; `learning`: its schema may have places to learn.

    Raises
    ------
    OSError
        A file cannot be read.
    ValueError
        No schema, other columns than the schema's, options that do not go together.
    """
    arguments.data = rereadable(arguments.data)
    if arguments.schema is None:
        if arguments.counts is not None:
            raise ValueError("--counts needs --schema")
        columns = None if arguments.columns is None else split_names(arguments.columns)
        sign = agreed(arguments.separator, None)
        domain = read_domain(arguments.data, columns, arguments.valid, sign)
        return Source(arguments.data, domain, separator=sign)
    for option, given in (("--columns", arguments.columns), ("--valid", arguments.valid)):
        if given is not None:
            raise ValueError(f"{option} is for tables without --schema: the schema says it")
    found = open_or_none(Path(arguments.schema)) if learning else None
    wished = found if isinstance(found, OpenSchema) else None
    if wished is not None and arguments.counts is not None:
        raise ValueError("--counts is for schemas that state all places: what learns them counts rows itself")
    schema = read_schema(arguments.schema) if wished is None else wished.outline
    sign = agreed(arguments.separator, schema.separator)
    names = _names(arguments.data, schema, arguments.counts, sign)
    order = sorted(chosen(arguments.data, names, schema, arguments.counts))
    columns = [names[i].strip() for i in order]
    kept = tuple(name for name in columns if name != arguments.counts)
    return Source(arguments.data, schema.domain, schema, arguments.counts, kept, wished, sign)


def _names(path: str, schema: Schema, counts: str | None, separator: str | None) -> list[str]:
    """Return the column names of a table; of JSON lines, without a look at one, those that each must have."""
    wanted = [*schema.names, *([] if counts is None else [counts])]
    if not is_json_lines(path):
        return list(read_columns(path, separator=separator, known=[*wanted, *schema.ignored]))
    with open(path, "rb"):
        pass  # the usual error where it cannot be read
    return wanted


def form_of(path: str | None) -> str:
    """Return the format that the name of an output asks for; CSV for none, and for stdout.

    Raises
    ------
    ValueError
        Another suffix, or Parquet without pyarrow.
    """
    suffix = "" if path is None else os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"a table is written as {NAMED}, not {path!r}")
    if SUFFIXES[suffix] == "parquet" and find_spec("pyarrow") is None:
        raise ValueError("Parquet files need pyarrow: pip install 'smalldb-dp[parquet]'")
    return SUFFIXES[suffix]
