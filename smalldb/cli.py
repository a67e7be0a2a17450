"""The command line: one library call a command."""

import argparse
import csv
import json
import os
import re
import sys
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from typing import Any, NoReturn

from queries import Domain, spec
from smalldb.counting.scores import count
from smalldb.files import Outputs
from smalldb.planning import plan
from smalldb.recording import Record
from smalldb.releasing import release
from smalldb.tables import read_csv, read_domain, to_csv
from smalldb.version import __version__

DONE, REFUSED, INTERRUPTED = 0, 2, 130


class Parser(argparse.ArgumentParser):
    """A parser that refuses in one line, and knows no abbreviations."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is; exit 2."""
        self.exit(REFUSED, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> Parser:
    """Build the parser of all commands."""
    top = Parser(prog="smalldb", description="Synthetic tables under pure differential privacy.")
    top.add_argument("--version", action="version", version=f"smalldb {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_generate(commands)
    return top


def _add_generate(commands: "argparse._SubParsersAction[Parser]") -> None:
    command = commands.add_parser(
        "generate",
        help="release a synthetic table from a CSV file",
        description="Release a synthetic table from a CSV file of yes/no columns, by the SmallDB mechanism.",
        epilog="example: smalldb generate data.csv --epsilon 1 --queries conjunctions:2 --rows 6 -o out.csv",
    )
    command.add_argument(
        "data", metavar="DATA.csv", help="0/1 or true/false columns; names in the first line"
    )
    command.add_argument(
        "--epsilon", required=True, metavar="E", help="privacy parameter, exact: 1, 0.1 or 1/3"
    )
    command.add_argument("--columns", metavar="A,B,...", help="which columns to release (default: all)")
    command.add_argument(
        "--valid", metavar="PREDICATE", help="which rows can exist at all, from public knowledge"
    )
    command.add_argument(
        "--queries",
        metavar="SPEC",
        help=f"what to answer well, such as 'conjunctions:2 + parities:3' (default: marginals:2); "
        f"classes: {', '.join(spec.NAMES)}",
    )
    size = command.add_mutually_exclusive_group()
    size.add_argument(
        "--rows", type=_whole, metavar="M", help="rows of the synthetic table (default: planned)"
    )
    size.add_argument("--alpha", metavar="A", help="instead of --rows: ceil(ln |queries| / A^2) rows")
    command.add_argument(
        "--neighbours",
        default="replace-one",
        metavar="RELATION",
        help="replace-one (n is public, the default) or add-remove (n is private)",
    )
    command.add_argument(
        "--beta", default="0.05", metavar="B", help="failure probability of the bounds (0.05)"
    )
    command.add_argument(
        "--candidates", metavar="BASE", help="multisets (Algorithm 4, the default) or tuples (ordered rows)"
    )
    command.add_argument("-o", "--output", metavar="OUT.csv", help="where the table goes (default: stdout)")
    command.add_argument(
        "--spelling",
        choices=("0/1", "true/false"),
        default="0/1",
        help="how the fields are written (default 0/1); read are both",
    )
    command.add_argument("--record", metavar="OUT.json", help="where the public record goes")
    command.add_argument(
        "--seed", type=_integer, metavar="S", help="for experiments: repeatable, NOT private"
    )
    command.add_argument("--quiet", action="store_true", help="no account on stderr")
    command.set_defaults(run=run_generate)


def run_generate(arguments: argparse.Namespace) -> None:
    """Release a synthetic table from a CSV file."""
    if sys.stdout is None and arguments.output is None:
        raise ValueError("standard output is closed: name a file with -o")
    targets = [path for path in (arguments.output, arguments.record) if path is not None]
    if any(os.path.exists(path) and os.path.samefile(path, arguments.data) for path in targets):
        raise ValueError("an output would replace the data")
    columns = None if arguments.columns is None else split_names(arguments.columns)
    domain = read_domain(arguments.data, columns, arguments.valid)
    choices = {
        "queries": arguments.queries,
        "epsilon": arguments.epsilon,
        "alpha": arguments.alpha,
        "rows": arguments.rows,
        "neighbours": arguments.neighbours,
        "candidates": arguments.candidates,
        "beta": arguments.beta,
    }
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
        print(account(made.record, planned), file=sys.stderr)
    if not made.record["private"]:
        print("NOT PRIVATE: the randomness came from a seed; for experiments only", file=sys.stderr)


def account(record: Record, planned: bool) -> str:
    """Tell a release in a few lines; public numbers only."""
    n, queries, bounds = record.get("n"), record["queries"], record.get("bounds")
    cells = Domain(record["universe"]["attributes"], record["universe"]["valid"]).size
    candidates = f"{count(cells, record['rows'], record['candidates']):,} {record['candidates']}"
    lines = [
        f"mechanism: SmallDB by {record['mechanism']}, drawn exactly from all {candidates} "
        f"of {record['rows']} rows over {cells} cells",
        f"queries:   {queries['text']} ({queries['stated']} stated, {queries['reduced']} after reduction)",
        f"guarantee: {record['privacy']['epsilon']}-differential privacy, {record['neighbours']} neighbours, "
        + ("n is private" if n is None else f"n = {n} is public"),
    ]
    if bounds is None:
        lines.append("error:     a provable bound would depend on n, which is private")
        return "\n".join(lines)
    lines.append(
        f"error:     at most {rounded_up(bounds['sharp'])} on every query, "
        f"with probability 1 - {bounds['beta']}\n"
        f"           (Proposition 4.4: {rounded_up(bounds['proposition_4_4'])}; "
        f"Theorem 4.5, with its own number of rows: {rounded_up(bounds['theorem_4_5'])})"
    )
    if bounds["sharp"] > 0.5:
        lines.append(
            "           a provable error above one half is of little use; more data, a larger epsilon,\n"
            "           fewer attributes or fewer queries would improve it"
            + ("" if planned else ", perhaps planned rows (name none)")
        )
    return "\n".join(lines)


def rounded_up(bound: float) -> str:
    """Write a bound with three digits, never below itself."""
    return f"{Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(bound).normalize():f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0 done, 2 refused, 130 interrupted."""
    if sys.stderr is None:  # closed by the caller
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
    parsed = parser().parse_args(arguments)
    try:
        parsed.run(parsed)
    except KeyboardInterrupt:
        print("smalldb: interrupted, nothing was written", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return REFUSED
    except OSError as error:
        print(
            f"smalldb: {error.filename or 'output'}: {(error.strerror or str(error)).lower()}",
            file=sys.stderr,
        )
        return REFUSED
    except (ValueError, TypeError) as error:
        print(f"smalldb: {error}", file=sys.stderr)
        return REFUSED
    return DONE


def run() -> NoReturn:
    """Entry point of the console script."""
    sys.exit(main())


def split_names(text: str) -> list[str]:
    """Read a list of column names, separated by commas; a name that holds one stands in quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def _whole(text: str) -> int:
    if re.fullmatch("[0-9]{1,18}", text) is None or int(text) < 1:
        raise argparse.ArgumentTypeError("expected a whole number of at least 1")
    return int(text)


def _integer(text: str) -> int:
    if re.fullmatch("-?[0-9]{1,1000}", text) is None:
        raise argparse.ArgumentTypeError("expected a whole number")
    return int(text)
