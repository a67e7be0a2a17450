"""What the commands share: the parser, options and how numbers are written."""

import argparse
import csv
import os
import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from typing import Any, NoReturn, TypeAlias

from queries import Domain, spec
from smalldb.tables import read_domain

REFUSED = 2  # exit code


class Parser(argparse.ArgumentParser):
    """A parser that refuses in one line, and knows no abbreviations."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is; exit 2."""
        self.exit(REFUSED, f"{self.prog}: {message} (see {self.prog} --help)\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def add_table(command: Parser) -> None:
    """Add what says which table, which part of it and which queries."""
    command.add_argument(
        "data", metavar="DATA.csv", help="0/1 or true/false columns; names in the first line"
    )
    command.add_argument("--columns", metavar="A,B,...", help="which columns to take (default: all)")
    command.add_argument(
        "--valid", metavar="PREDICATE", help="which rows can exist at all, from public knowledge"
    )
    command.add_argument(
        "--queries",
        metavar="SPEC",
        help=f"what to answer well, such as 'conjunctions:2 + parities:3' (default: marginals:2); "
        f"classes: {', '.join(spec.NAMES)}",
    )
    command.add_argument(
        "--candidates", metavar="BASE", help="multisets (Algorithm 4, the default) or tuples (ordered rows)"
    )
    command.add_argument(
        "--beta", default="0.05", metavar="B", help="failure probability of the bounds (0.05)"
    )


def table_choices(arguments: argparse.Namespace, targets: Sequence[str]) -> tuple[Domain, dict[str, Any]]:
    """Return the universe of the file, from its first line, and what was chosen for a plan."""
    if any(os.path.exists(path) and os.path.samefile(path, arguments.data) for path in targets):
        raise ValueError("an output would replace the data")
    columns = None if arguments.columns is None else split_names(arguments.columns)
    chosen = ("queries", "rows", "candidates", "beta")
    choices = {name: getattr(arguments, name) for name in chosen}
    return read_domain(arguments.data, columns, arguments.valid), choices


def rounded_up(bound: float) -> str:
    """Write a bound with three digits, never below itself."""
    digits = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(bound).normalize()
    return f"{digits:f}" if bound < 1000 else f"{digits:.2e}"


def split_names(text: str) -> list[str]:
    """Read a list of column names, separated by commas; a name that holds one stands in quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def whole_number(text: str) -> int:
    """Read a whole number of at least 1."""
    if re.fullmatch("[0-9]{1,18}", text) is None or int(text) < 1:
        raise argparse.ArgumentTypeError("expected a whole number of at least 1")
    return int(text)


def integer(text: str) -> int:
    """Read a whole number."""
    if re.fullmatch("-?[0-9]{1,1000}", text) is None:
        raise argparse.ArgumentTypeError("expected a whole number")
    return int(text)
