"""The command line: one library call a command."""

import argparse
import csv
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, NoReturn

from queries import DataError, Domain, spec
from smalldb.arguments import positive
from smalldb.counting import Census, census
from smalldb.counting.scores import count
from smalldb.exact import as_text
from smalldb.files import Outputs, abandon
from smalldb.planning import Plan, plan
from smalldb.recording import Record, bounds_of
from smalldb.releasing import release
from smalldb.report import check_plotting, plot_laws
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
    _add_census(commands)
    return top


def _add_table(command: Parser) -> None:
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


def _add_generate(commands: "argparse._SubParsersAction[Parser]") -> None:
    command = commands.add_parser(
        "generate",
        help="release a synthetic table from a CSV file",
        description="Release a synthetic table from a CSV file of yes/no columns, by the SmallDB mechanism.",
        epilog="example: smalldb generate data.csv --epsilon 1 --queries conjunctions:2 --rows 6 -o out.csv",
    )
    _add_table(command)
    command.add_argument(
        "--epsilon", required=True, metavar="E", help="privacy parameter, exact: 1, 0.1 or 1/3"
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


def _add_census(commands: "argparse._SubParsersAction[Parser]") -> None:
    command = commands.add_parser(
        "census",
        help="for the curator: the exact law of the error (confidential)",
        description="Count the small databases at each error, exactly, and say what follows for the error of "
        "a release beside what the theorems prove. Computed from the data: CONFIDENTIAL.",
        epilog="example: smalldb census data.csv --queries conjunctions:2 --rows 12 --epsilon 0.1 1",
    )
    _add_table(command)
    command.add_argument("--rows", type=_whole, required=True, metavar="M", help="rows of a small database")
    command.add_argument(
        "--epsilon", nargs="+", default=[], metavar="E", help="privacy parameters, exact: 1, 0.1 or 1/3"
    )
    command.add_argument("--plot", metavar="LAW.png", help="draw the law beside the bounds (png, svg, pdf)")
    command.add_argument("--json", action="store_true", help="everything, for machines")
    command.set_defaults(run=run_census)


def run_census(arguments: argparse.Namespace) -> None:
    """Count the small databases at each error, and tell the law of the error."""
    epsilons = [positive(text, "epsilon") for text in arguments.epsilon]
    targets = [] if arguments.plot is None else [arguments.plot]
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    if form is not None and not epsilons:
        raise ValueError("a picture needs --epsilon")
    domain, choices = table_choices(arguments, targets)
    with Outputs(targets) as outputs:
        choices |= {"epsilon": 1}  # each one is put in its place below
        plan(domain, **choices, n=1)
        table = read_csv(arguments.data, domain)
        if table.n == 0:
            raise DataError("the table has no rows")
        planned = plan(domain, **choices, n=table.n)
        found = census(
            table,
            planned.workload,
            rows=planned.rows,
            candidates=planned.candidates,
            engine=planned.work.engine,
            progress=sys.stderr.isatty(),
        )
        if form is not None:
            outputs.write(arguments.plot, plot_laws(found, planned, epsilons, form))
    plans = [replace(planned, epsilon=epsilon) for epsilon in epsilons]
    if arguments.json:
        print(json.dumps(census_json(found, plans)))
    else:
        print(census_account(found, plans))


def census_json(found: Census, plans: Sequence[Plan]) -> dict[str, Any]:
    """Return all that a census says; levels and counts are texts: they pass what other readers can hold."""
    laws = []
    for planned in plans:
        law = found.law(planned.epsilon)
        laws.append(
            {
                "epsilon": as_text(planned.epsilon),
                "probabilities": law.probabilities.tolist(),
                "mean": law.mean(),
                "quantiles": [
                    {"probability": as_text(q), "error": law.quantile(q)}
                    for q in (Fraction(1, 2), 1 - planned.beta, Fraction(99, 100))
                ],
                "bounds": bounds_of(planned),
            }
        )
    return {
        "confidential": True,
        "candidates": found.candidates,
        "rows": found.rows,
        "n": found.n,
        "total": str(found.total),
        "levels": [str(level) for level in found.levels],
        "errors": [float(found.error(level)) for level in found.levels],
        "counts": [str(count) for count in found.counts],
        "laws": laws,
    }


def census_account(found: Census, plans: Sequence[Plan]) -> str:
    """Tell what a census says, for people."""
    least, most = (float(found.error(level)) for level in found.levels[[0, -1]])
    lines = [
        "CONFIDENTIAL: computed from the data, not for publication",
        f"{found.total:,} {found.candidates} of {found.rows} rows, at {len(found.levels)} levels of error",
        f"least error {least:.4g} ({found.counts[0]:,} of them), largest {most:.4g}",
    ]
    if plans:
        beta = as_text(plans[0].beta)
        lines += [
            "",
            f"{'':10}{'exact law of the error':^36}   {f'proven for any data, beta {beta}':^36}",
            f"{'epsilon':10}{'mean':>9}{'median':>9}{f'1-{beta}':>9}{'0.99':>9}   "
            f"{'sharp':>12}{'Prop. 4.4':>12}{'Thm 4.5':>12}",
        ]
    for planned in plans:
        law = found.law(planned.epsilon)
        exact = [law.mean(), *(law.quantile(q) for q in ("1/2", 1 - planned.beta, "0.99"))]
        proven = [planned.bound, planned.proposition_4_4, planned.theorem_4_5]
        lines.append(
            f"{as_text(planned.epsilon):9} "
            + "".join(f"{error:9.4f}" for error in exact)
            + "   "
            + "".join(f" {rounded_up(bound or 0.0):>11}" for bound in proven)
        )
    return "\n".join(lines)


def table_choices(arguments: argparse.Namespace, targets: Sequence[str]) -> tuple[Domain, dict[str, Any]]:
    """Return the universe of the file, from its first line, and what was chosen for a plan."""
    if any(os.path.exists(path) and os.path.samefile(path, arguments.data) for path in targets):
        raise ValueError("an output would replace the data")
    columns = None if arguments.columns is None else split_names(arguments.columns)
    chosen = ("queries", "rows", "candidates", "beta")
    choices = {name: getattr(arguments, name) for name in chosen}
    return read_domain(arguments.data, columns, arguments.valid), choices


def run_generate(arguments: argparse.Namespace) -> None:
    """Release a synthetic table from a CSV file."""
    if sys.stdout is None and arguments.output is None:
        raise ValueError("standard output is closed: name a file with -o")
    targets = [path for path in (arguments.output, arguments.record) if path is not None]
    domain, choices = table_choices(arguments, targets)
    choices |= {name: getattr(arguments, name) for name in ("epsilon", "alpha", "neighbours")}
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
    digits = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(bound).normalize()
    return f"{digits:f}" if bound < 1000 else f"{digits:.2e}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0 done, 2 refused."""
    if sys.stderr is None:  # closed by the caller
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
    parsed = parser().parse_args(arguments)
    try:
        parsed.run(parsed)
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
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    sys.exit(main())


def stop(*_: object) -> NoReturn:
    """Leave at Ctrl-C with nothing behind, at once: an exception can drown in compiled code."""
    abandon()
    os.write(2, b"smalldb: interrupted, nothing was written\n")
    os._exit(INTERRUPTED)


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
