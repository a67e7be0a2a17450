"""`generate`: release a synthetic table from a file."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

from smalldb.commands import HELP, Commands, Incomplete, add_options
from smalldb.commands.input_files import add_schema, schema_of, source_of
from smalldb.commands.options import (
    STATED,
    add_common,
    add_size,
    add_table,
    integer,
    text,
    whole_number,
)
from smalldb.commands.output_files import Files
from smalldb.exact.bits import bit_source
from smalldb.planning import Settings
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.distances import check_classifying
from smalldb.releasing.pipeline import carry_out
from smalldb.reporting import visible
from smalldb.reporting.words import SEEDED, as_json, laid_out, tell
from smalldb.schema.related_schema import RelatedSchema
from smalldb.schema.table_writers import NAMED

MOST_TABLES = 1000
NOT_KEPT = "the record has the learned categories, and --schema-out OUT.toml writes them as a schema"


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "generate",
        help=HELP["generate"],
        description="Release a synthetic table of yes/no columns, or of any columns that a schema "
        "describes, by the mechanism that suits its size (--mechanism). For two related "
        "tables, name both (homes=h.csv persons=p.csv), and -o is a folder.",
        epilog="example: smalldb generate data.csv --epsilon 1 --queries conjunctions:2 --rows 6 -o out.csv",
    )
    add_table(command)
    add_common(command, "more NAME=FILE")
    add_schema(command)
    add_common(command, "--epsilon E", "--delta D")
    add_size(command)
    add_common(command, "--verbose", "--beta B")
    add_options(
        command,
        {
            "-o --output OUT.csv": f"where the table goes: {NAMED} (default: stdout, as CSV); with "
            "--tables a folder",
            "--tables N": "with -o DIR: a new folder with N tables for intervals (multiple imputations, "
            "paid once), the best single table, the record, the measurements, and how the tables were drawn",
            "--table-rows M": "with --tables: at most M rows of each, a random sample of each draw "
            "(default: as many as DATA)",
            "--spelling": "how yes/no fields are written without --schema (default 0/1); both are read",
            "--spreadsheet-safe": "in CSV, put an apostrophe before texts and names that a spreadsheet "
            "would run, such as =1+1; evaluate cannot read a file with such texts",
            "--middle": "with --schema: write the middle of each bin, not a value drawn from it; do not "
            "shuffle rows",
            "--schema-out OUT.toml": "where to write the schema with the categories that it learned: "
            "public, for evaluate and other commands",
            "--record OUT.json": "where to write the public record",
            "--measurements OUT.json": "where to write the record with all noisy numbers, however many: "
            "public, for smalldb ask and others (--record holds them if they are few)",
            "--report OUT.html": "a page about the release, for publication",
            "--confidential": "show in the report the errors against the data and, with --target, the "
            "scores of classifiers (scikit-learn): NOT for publication",
            "--title TEXT": "the title of the report",
            "--publisher TEXT": "who publishes the table, for the report",
            "--table TEXT": "the name of the data, for the report",
            "--contact TEXT": "whom to ask about the table, for the report",
            "--date TEXT": "when the table was published, for the report",
            "--licence TEXT": "under which the table may be used, for the report",
            "--citation TEXT": "how to cite the table (default: publisher, date, title), for the report",
            "--ledger FILE": "the file with the privacy budget of the data, which this release spends from",
            "--budget E": "create the ledger with this budget, if there is none",
            "--budget-delta D": "create it with a budget of (E, D): the ledger then also adds up rhos",
            "--release-id ID": "with --ledger and -o: the name of this release, such as 2026-11-28. It is "
            "paid once: a repeated command continues it, or does nothing if it is finished",
            "--checkpoint DIR": "a private folder for this release only, from which a killed command "
            "continues when you repeat it, without paying again (default with --ledger: a folder beside it)",
            "--even-if-empty": "spend epsilon even if nothing useful is expected of the table (otherwise "
            "refused, or asked on a terminal)",
            "--schema-unseen": "state in the record that the schema was written without a look at the data",
            "--seed S": "for experiments: repeatable, NOT private",
            "--json": "with -o: the public record on stdout",
            "--quiet": "print no summary on stderr",
        },
        tables=whole_number,
        table_rows=whole_number,
        spelling=("0/1", "true/false"),
        seed=integer,
        **dict.fromkeys(STATED, text),
    )
    command.set_defaults(run=run_generate)


def run_generate(arguments: argparse.Namespace) -> None:
    """Release a synthetic table from a file, or two related tables."""
    schema = schema_of(arguments, [arguments.data, *arguments.more])
    _check(arguments, isinstance(schema, RelatedSchema))
    files = Files(arguments, schema)
    if files.finished():
        return _tell_that_it_stands(arguments, files)
    source = source_of(arguments, schema)
    if source.learns is None and arguments.schema_out is not None:
        raise ValueError('--schema-out is for a schema that learns categories (values = "learn")')
    try:
        release = carry_out(
            source,
            arguments.queries,
            {name: getattr(arguments, name) for name in Settings.__annotations__},
            middle=arguments.middle,
            bits=bit_source(arguments.seed),
            progress=sys.stderr.isatty() and not arguments.quiet,
            checkpoint=arguments.checkpoint,
            ledger=None
            if arguments.ledger is None
            else partial(Ledger.within, arguments.ledger, arguments.budget, arguments.budget_delta),
            release_id=arguments.release_id or "",
            unseen=arguments.schema_unseen,
            destination=files,
        )
    except ValueError:
        if files.finished():  # by another process, meanwhile
            return _tell_that_it_stands(arguments, files)
        raise
    if arguments.json:
        print(as_json(release.record))
    if not arguments.quiet:
        lines = tell(release.record, release.plan, release.measurements, verbose=arguments.verbose)
        if source.learns is not None and arguments.schema_out is None:
            lines.append(("schema", NOT_KEPT))
        print(laid_out(lines), file=sys.stderr)
        if files.folder is not None and files.folder.summary:
            print(visible(files.folder.summary, "\n"), file=sys.stderr)
    if not release.record["private"]:
        print(SEEDED, file=sys.stderr)
    if files.folder is not None and files.folder.refused is not None:
        raise Incomplete(files.folder.refused)


def _tell_that_it_stands(arguments: argparse.Namespace, files: Files) -> None:
    """Tell that a named release is finished, and nothing is left to do."""
    if arguments.json:
        print(as_json(files.standing_record()))
    if not arguments.quiet:
        print(f"release {arguments.release_id} stands already: nothing is paid", file=sys.stderr)


def _check(arguments: argparse.Namespace, related: bool) -> None:
    """Refuse options that do not go together: ValueError."""
    if arguments.json and arguments.output is None:
        raise ValueError("--json needs -o: standard output has the table")
    if sys.stdout is None and arguments.output is None:
        raise ValueError("standard output is closed: name a file with -o")
    if arguments.tables is not None:
        if arguments.output is None:
            raise ValueError("--tables needs -o DIR: a new folder")
        if not 2 <= arguments.tables <= MOST_TABLES:
            raise ValueError(f"--tables must be from 2 to {MOST_TABLES}: 25 are usual")
        if arguments.middle:
            raise ValueError("--middle is for one table: leave it out, or leave out --tables")
    elif arguments.table_rows is not None:
        raise ValueError("--table-rows needs --tables: --rows says how many rows one table has")
    for option in ("confidential", *STATED):
        if getattr(arguments, option) and arguments.report is None and not related:
            of_database = ", of which it names the data; --query names a table of a database"
            raise ValueError(f"--{option} needs --report{of_database if option == 'table' else ''}")
    if arguments.target is not None and arguments.confidential:
        check_classifying("; or leave out --confidential")
    if arguments.report is not None and not arguments.report.lower().endswith((".html", ".htm")):
        raise ValueError(f"the report is an HTML page: its name must end in .html, not {arguments.report!r}")
    if arguments.spelling is not None and arguments.schema is not None:
        raise ValueError("--spelling is for tables without --schema: the schema says it")
    if arguments.schema_unseen and arguments.schema is None:
        raise ValueError("--schema-unseen needs --schema: it is about that")
    if arguments.middle and arguments.schema is None:
        raise ValueError("--middle needs --schema: a yes/no field has no middle")
    if arguments.release_id is not None and (arguments.ledger is None or arguments.output is None):
        raise ValueError("--release-id needs --ledger, which pays for it once, and -o")
    if arguments.ledger is None:
        if arguments.budget is not None:
            raise ValueError("--budget needs --ledger")
        if arguments.budget_delta is not None:
            raise ValueError("--budget-delta needs --ledger and --budget")
    elif arguments.budget_delta is not None and arguments.budget is None:
        raise ValueError("--budget-delta needs --budget")
    elif arguments.seed is not None:
        raise ValueError("--ledger is for private releases: what --seed makes is not private at any epsilon")
    elif not os.path.exists(arguments.ledger):
        if arguments.budget is None:
            raise ValueError(f"{arguments.ledger}: no ledger yet: add --budget E to make it")
        if arguments.delta is not None and arguments.budget_delta is None:
            raise ValueError("--ledger counts pure privacy: leave out --delta, or add --budget-delta D")
