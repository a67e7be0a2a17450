"""`generate`: release a synthetic table from a CSV file."""

import argparse
import json
import sys

from smalldb.commands.options import (
    Commands,
    add_beta,
    add_size,
    add_table,
    integer,
    table_choices,
)
from smalldb.commands.telling import tell
from smalldb.files import Outputs
from smalldb.planning import plan
from smalldb.releasing import release
from smalldb.tables import read_csv, to_csv


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "generate",
        help="release a synthetic table from a CSV file",
        description="Release a synthetic table from a CSV file of yes/no columns, by the SmallDB mechanism.",
        epilog="example: smalldb generate data.csv --epsilon 1 --queries conjunctions:2 --rows 6 -o out.csv",
    )
    add_table(command)
    command.add_argument(
        "--epsilon", required=True, metavar="E", help="privacy parameter, exact: 1, 0.1 or 1/3"
    )
    add_size(command)
    add_beta(command)
    command.add_argument("-o", "--output", metavar="OUT.csv", help="where the table goes (default: stdout)")
    command.add_argument(
        "--spelling",
        choices=("0/1", "true/false"),
        default="0/1",
        help="how the fields are written (default 0/1); read are both",
    )
    command.add_argument("--record", metavar="OUT.json", help="where the public record goes")
    command.add_argument("--seed", type=integer, metavar="S", help="for experiments: repeatable, NOT private")
    command.add_argument("--quiet", action="store_true", help="no account on stderr")
    command.set_defaults(run=run_generate)


def run_generate(arguments: argparse.Namespace) -> None:
    """Release a synthetic table from a CSV file."""
    if sys.stdout is None and arguments.output is None:
        raise ValueError("standard output is closed: name a file with -o")
    targets = [path for path in (arguments.output, arguments.record) if path is not None]
    domain, choices = table_choices(arguments, targets)
    more = ("epsilon", "alpha", "neighbours", "n_max", "mechanism")
    choices |= {name: getattr(arguments, name) for name in more}
    with Outputs(targets) as outputs:
        # whatever can be refused without the data is refused before they are read; n is one of them
        plan(domain, **choices, n=1 if arguments.neighbours == "replace-one" else None)
        made = release(
            read_csv(arguments.data, domain),
            **choices,
            rng=arguments.seed,
            progress=sys.stderr.isatty() and not arguments.quiet,
        )
        text = to_csv(made.data, arguments.spelling)
        if arguments.record is not None:
            outputs.write(arguments.record, json.dumps(made.record, indent=2, ensure_ascii=False) + "\n")
        if arguments.output is not None:
            outputs.write(arguments.output, text)
    if arguments.output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    if not arguments.quiet:
        planned = arguments.rows is None and arguments.alpha is None
        print(tell(made.record, made.plan, planned), file=sys.stderr)
    if not made.record["private"]:
        print("NOT PRIVATE: the randomness came from a seed; for experiments only", file=sys.stderr)
