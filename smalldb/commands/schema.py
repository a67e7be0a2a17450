"""`schema`: draft what the columns of a table can hold, and show what a schema makes of them."""

import argparse
import os
import sys
from collections.abc import Sequence

from smalldb.commands.options import Commands, keep_inputs
from smalldb.files.outputs import Outputs
from smalldb.schema import Schema, draft_schema, read_schema
from smalldb.schema.tables import read_columns

SHOWN = 24  # places of a column that are listed


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "schema",
        help="draft a schema from column names, or show one",
        description="A schema says what the columns of a table can hold, from public knowledge. It is never "
        "made from the values of the data.",
        epilog="example: smalldb schema init people.csv -o people.toml",
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    init = actions.add_parser(
        "init",
        help="draft one from a table's column names",
        description="Draft a schema from the column names of a CSV file, or from those of a Parquet file and "
        "the types that it declares. No value is read: what a column can hold is for you to say.",
        epilog="example: smalldb schema init people.csv -o people.toml",
    )
    init.add_argument("data", metavar="DATA", help="a CSV file, or a Parquet file (.parquet)")
    init.add_argument(
        "-o", "--output", metavar="SCHEMA.toml", help="where it goes, a new file (default: stdout)"
    )
    init.set_defaults(run=run_init)
    show = actions.add_parser(
        "show",
        help="check one, and show the places of its columns (reads no data)",
        description="Check a schema, and show what each of its columns can hold. No data is read.",
        epilog="example: smalldb schema show people.toml",
    )
    show.add_argument("schema", metavar="SCHEMA.toml")
    show.set_defaults(run=run_show)


def run_init(arguments: argparse.Namespace) -> None:
    """Draft a schema."""
    targets = [] if arguments.output is None else [arguments.output]
    keep_inputs([arguments.data], targets)
    for target in targets:
        if os.path.isfile(target):  # perhaps a schema that was filled in
            raise ValueError(f"{target} exists already: name another file")
    with Outputs(targets) as outputs:
        text = draft_schema(read_columns(arguments.data))
        for target in targets:
            outputs.write(target, text)
    if not targets:
        sys.stdout.write(text)


def run_show(arguments: argparse.Namespace) -> None:
    """Show the attributes of a schema."""
    print(schema_account(read_schema(arguments.schema)))


def schema_account(schema: Schema) -> str:
    """Tell a schema, for people."""
    width = max(len(name) for name in schema.names)
    domain = schema.domain
    lines = [f"{column.name:{width}}  {', '.join(_shown(column.labels))}" for column in domain.columns]
    size = f"{domain.size:,}" if domain.valid_decided else f"up to {domain.product:,}"
    lines.append(f"{len(domain.columns)} columns, {sum(domain.sizes)} places, {size} cells that can exist")
    if schema.queries is not None:
        lines.append(f"queries: {schema.queries}")
    return "\n".join(lines)


def _shown(labels: Sequence[str]) -> Sequence[str]:
    """Return the labels of a column's places, or the first and the last of many."""
    return labels if len(labels) <= SHOWN else [*labels[: SHOWN - 2], "...", labels[-1]]
