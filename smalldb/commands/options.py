"""What the commands share: the parser, options and how numbers are written."""

import argparse
import csv
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from queries import Domain, spec
from smalldb.commands import Parser, add_options
from smalldb.exact.numbers import as_fraction, whole
from smalldb.marginals.mechanism import STRATEGIES
from smalldb.mechanisms.start import ROWS
from smalldb.planning.mechanisms import names
from smalldb.schema import Schema, read_schema
from smalldb.schema.fields import is_text
from smalldb.schema.file_format import FileFormat
from smalldb.schema.reading import read_any
from smalldb.schema.related_schema import RelatedSchema

STATED = ("title", "publisher", "table", "contact", "date", "licence", "citation")  # of a report


def add_table(command: Parser) -> None:
    """Add what says which table, which part of it and which queries."""
    command.add_argument(
        "data",
        metavar="DATA.csv",
        nargs="?",
        help="0/1 or true/false columns, or any with --schema; names in the first line; or the URL of a "
        "database (default: file.url of the schema)",
    )
    command.add_argument("--columns", metavar="A,B,...", help="the columns to use (default: all)")
    _add_workload(command)


def add_file_format(command: Parser) -> None:
    """Add how files are written."""
    add_options(
        command,
        {
            "--separator SIGN": "the separator of CSV files: , ; | tab space (default: the schema's, or a "
            "comma)",
            "--encoding NAME": "of CSV files, such as cp1252 or utf-16 (default: the schema's, or UTF-8)",
            "--sheet NAME": "of a workbook (default: the schema's, or the only one)",
            "--query SQL": "of a database: a query, or the name of a table (default: the schema's, or the "
            "only table)",
        },
    )


def file_format(arguments: argparse.Namespace) -> FileFormat:
    """Return how files are written, as options say; errors as `FileFormat`."""
    options = {name: getattr(arguments, name) for name in ("separator", "encoding", "sheet", "query")}
    return FileFormat(**options)


def add_universe(command: Parser, schema: bool = False) -> None:
    """Add what says which universe and which queries are meant, where no table is read."""
    what = command.add_mutually_exclusive_group(required=True) if schema else command
    what.add_argument(
        "--attributes",
        required=not schema,
        metavar="D|A,B,...",
        help="how many yes/no attributes, or their names",
    )
    if schema:
        what.add_argument("--schema", metavar="SCHEMA.toml", help="or what the columns hold")
    _add_workload(command, "the schema's, or marginals:2" if schema else "marginals:2")


def _add_workload(command: Parser, default: str = "the schema's, or marginals:2") -> None:
    add_options(
        command,
        {
            "--valid PREDICATE": "which rows can exist at all, from public knowledge",
            "--queries SPEC": "target queries (the workload), such as 'conjunctions:2 + parities:3' "
            f"(default: {default}); classes: {', '.join(spec.NAMES)}",
            "--candidates BASE": "what SmallDB draws from: multisets of rows (default of census) or tuples "
            "(ordered rows)",
        },
        candidates=("multisets", "tuples"),
    )


def text(value: str) -> str:
    """Take a text that is to be published: one that UTF-8 can write."""
    if not is_text(value):
        raise argparse.ArgumentTypeError("is not a text in UTF-8")
    return value


def put(content: bytes) -> None:
    """Write bytes on standard output, whatever the locale."""
    sys.stdout.flush()
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:  # a stand-in of a program that called us
        sys.stdout.write(content.decode())
    else:
        raw.write(content)
    sys.stdout.flush()


COMMON = {
    "more NAME=FILE": "related tables: each with its name (persons=p.csv)",
    "--epsilon E": "privacy parameter, exact: 1, 0.1 or 1/3",
    "--delta D": "allow Gaussian noise in marginals, with the guarantee (E, D), such as 1e-9 (default: pure)",
    "--beta B": "failure probability of the bounds (0.05)",
    "--verbose": "also the queries, why this mechanism, and the theorems",
}


def add_common(command: Parser, *chosen: str) -> None:
    """Add options that several commands have alike."""
    options = {names: COMMON[names] for names in chosen}
    add_options(command, options, more={"nargs": "*"}, epsilon={"required": True}, beta={"default": "0.05"})


def add_size(command: Parser) -> None:
    """Add what says how many rows the small database has, and who is whose neighbour."""
    size = command.add_mutually_exclusive_group()
    size.add_argument(
        "--rows", type=whole_number, metavar="M", help="rows of the synthetic table (default: planned)"
    )
    size.add_argument("--alpha", metavar="A", help="instead of --rows: ceil(ln |queries| / A^2) rows")
    add_options(
        command,
        {
            "--neighbours RELATION": "replace-one (n is public, the default) or add-remove (n is private)",
            "--n-max N": "under add-remove: a public guess of the most rows that the data can have",
            "--rows-per-person K": "the most rows that one person has, from public knowledge (default: the "
            "schema's); epsilon and delta cover all of them together; without it, they protect rows and not "
            "people",
            "--certificate SHARE": "share of epsilon that marginals spend on a bound for every query, where "
            "not all are measured (default 1/20; 0: no bound)",
            "--column-share SHARE": "share of the budget of single columns, where marginals measure tables "
            "in rounds: more for columns is less for pairs (default: by expected errors; 1: columns alone)",
            "--means SHARE": "share of epsilon that marginals spend on the means of numbers in their bins, "
            "for means and drawn values (default 1/25 where the noise leaves something of them; 0: none)",
            "--target COLUMN": "a column that classifiers of the table will predict: marginals measure its "
            "tables first; repeatable",
            "--measure-first TABLE": "a table such as 'age x sex' that marginals measure before others "
            "(default: the schema's); repeatable",
            "--mechanism NAME": f"{', '.join(names()[1:])}, or auto (the default): if you give a size, the "
            "first that can draw it; otherwise the one with the smallest expected error",
            "--strategy NAME": f"what marginals measure: {', '.join(STRATEGIES)} (default: the one of "
            "smallest expected error)",
            "--start PUBLIC": "a PUBLIC table with the columns of the data, from which marginals start: of "
            "other people, or released under differential privacy; never rows of the data, which would "
            "break the guarantee",
            "--start-is WORDS": "what the start is, and so why it is public: 'release of 2025, epsilon 1'. "
            "The record and the page repeat it; needed with --start",
            "--start-rows": "with --start: rows are rows of the start (the default), or made from its "
            "tables (model)",
            "--refine RECORD.json": "a record, with its measurements, of an earlier release of the same "
            "data: marginals and ask combine them with the new ones; both epsilons add up",
            "--calibrated": "run a census at the larger internal epsilon that loses exactly E: the error is "
            "smaller, but several releases lose more together",
        },
        neighbours={"default": "replace-one"},
        n_max=whole_number,
        rows_per_person=whole_number,
        target={"action": "append"},
        measure_first={"action": "append"},
        mechanism={"default": "auto"},
        start_rows=ROWS,
    )


def described(
    arguments: argparse.Namespace,
) -> tuple[Domain, str | None, Schema | RelatedSchema | None]:
    """Return the universe, the queries that are stated, and the schema, where one is given."""
    if arguments.schema is None:
        return universe(arguments), arguments.queries, None
    if arguments.valid is not None:
        raise ValueError("--valid goes with --attributes: a schema says it in its key valid")
    schema = read_any(Path(arguments.schema))
    if isinstance(schema, RelatedSchema):
        return schema.domain, arguments.queries, schema
    schema = read_schema(schema)
    queries = schema.queries if arguments.queries is None else arguments.queries
    return schema.domain, queries, schema


def universe(arguments: argparse.Namespace) -> Domain:
    """Build the universe of `add_universe`; attributes that are only counted are called x1, x2, ..."""
    text = arguments.attributes
    if re.fullmatch("[0-9]{1,4}", text):
        return Domain(whole(int(text), "attributes"), arguments.valid)
    if _is_number(text):
        raise ValueError("attributes must be a whole number from 1 to 9999, or names separated by commas")
    return Domain(split_names(text), arguments.valid)


def _is_number(text: str) -> bool:
    """Tell whether a text reads as a number, which nobody means for a name."""
    try:
        as_fraction(text, "attributes")
    except ValueError:
        return False
    return True


def keep_inputs(inputs: Iterable[str | None], targets: Iterable[str]) -> None:
    """Refuse outputs that would replace an input, or what is yet to be made in its place: ValueError."""

    def same(path: str, kept: str) -> bool:
        if os.path.exists(path) and os.path.exists(kept):
            return os.path.samefile(path, kept)
        # there are systems on which case does not count
        return os.path.realpath(path).casefold() == os.path.realpath(kept).casefold()

    if any(same(path, kept) for path in targets for kept in inputs if kept is not None):
        raise ValueError("an output would replace an input: name another file")


def split_names(text: str) -> list[str]:
    """Read a list of column names, separated by commas; a name that holds one stands in quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def whole_number(text: str) -> int:
    """Read a whole number of at least 1."""
    if re.fullmatch("[0-9]{1,18}", text) is None or int(text) < 1:
        raise argparse.ArgumentTypeError("expected a whole number of at least 1, in up to 18 digits")
    return int(text)


def integer(text: str) -> int:
    """Read a whole number."""
    if re.fullmatch("-?[0-9]{1,1000}", text) is None:
        raise argparse.ArgumentTypeError("expected a whole number")
    return int(text)


def add_formats(command: Parser, table: str = "the table alone, as CSV") -> argparse._MutuallyExclusiveGroup:
    """Add the formats for machines; `table` says what is written as CSV."""
    formats = command.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="everything, for machines")
    formats.add_argument("--csv", action="store_true", help=table)
    return formats
