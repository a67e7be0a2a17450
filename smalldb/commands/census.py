"""`census`: the exact law of the error, for the curator."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from queries import DataError
from smalldb.commands import HELP, Commands
from smalldb.commands.input_files import add_schema, source_of
from smalldb.commands.options import add_common, add_formats, add_table, keep_inputs, whole_number
from smalldb.counting import Census, census
from smalldb.counting.small import SmallDatabases
from smalldb.exact.numbers import as_text, positive, rounded_up
from smalldb.files.outputs import Outputs
from smalldb.planning import plan
from smalldb.releasing.table_source import Source
from smalldb.reporting.plots import plot_laws
from smalldb.reporting.plots_base import check_plotting
from smalldb.reporting.words import CONFIDENTIAL, as_csv, as_json
from smalldb.schema import read_schema


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "census",
        help=HELP["census"],
        description="Count the small databases at each error, exactly, and compare the error of a release"
        " with what the theorems prove. Computed from the data: CONFIDENTIAL.",
        epilog="example: smalldb census data.csv --queries conjunctions:2 --rows 12 --epsilon 0.1 1",
    )
    add_table(command)
    add_schema(command)
    add_common(command, "--beta B")
    command.add_argument(
        "--rows", type=whole_number, required=True, metavar="M", help="rows of a small database"
    )
    command.add_argument(
        "--epsilon", nargs="+", default=[], metavar="E", help="privacy parameters, exact: 1, 0.1 or 1/3"
    )
    command.add_argument("--plot", metavar="LAW.png", help="draw the law beside the bounds (png, svg, pdf)")
    command.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="a private folder for this run only, from which a killed command continues when you repeat it",
    )
    add_formats(command, "the law as a table: a row for each level of error")
    command.set_defaults(run=run_census)


def run_census(arguments: argparse.Namespace) -> None:
    """Count the small databases at each error, and tell the law of the error."""
    epsilons = [positive(text, "epsilon") for text in arguments.epsilon]
    targets = [] if arguments.plot is None else [arguments.plot]
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    if form is not None and not epsilons:
        raise ValueError("a picture needs --epsilon")
    keep_inputs([arguments.data, arguments.schema], targets)
    source = source_of(arguments, None if arguments.schema is None else read_schema(Path(arguments.schema)))
    assert isinstance(source, Source)
    domain = source.domain
    choices = {name: getattr(arguments, name) for name in ("rows", "candidates", "beta")}
    choices["queries"] = source.queries if arguments.queries is None else arguments.queries
    with Outputs(targets, confidential=targets) as outputs:
        choices |= {"epsilon": 1, "mechanism": "census"}  # each epsilon is put in its place below
        plan(domain, **choices, n=1)
        table = source.read(sys.stderr.isatty())
        if table.n == 0:
            raise DataError("the table has no rows")
        request = plan(domain, **choices, n=table.n).request
        counted = census(
            table,
            request.workload,
            rows=arguments.rows,
            candidates=arguments.candidates or "multisets",
            checkpoint=arguments.checkpoint,
            progress=sys.stderr.isatty(),
        )
        drawn = [
            SmallDatabases(replace(request, epsilon=epsilon), counted.rows, counted.candidates)
            for epsilon in epsilons
        ]
        if form is not None:
            outputs.write(arguments.plot, plot_laws(counted, drawn, form))
    if arguments.json:
        print(as_json(census_json(counted, drawn)))
    elif arguments.csv:
        print(CONFIDENTIAL, file=sys.stderr)
        print(as_csv(census_rows(counted, drawn)))
    else:
        print(census_account(counted, drawn))


def census_json(census: Census, drawn: Sequence[SmallDatabases]) -> dict[str, Any]:
    """Return all that a census says; levels and counts are texts: they pass what other readers can hold."""
    laws = []
    for small in drawn:
        law = census.law(small.request.epsilon)
        laws.append(
            {
                "epsilon": as_text(small.request.epsilon),
                "probabilities": law.probabilities.tolist(),
                "mean": law.mean(),
                "quantiles": [
                    {"probability": as_text(q), "error": law.quantile(q)}
                    for q in (Fraction(1, 2), 1 - small.request.beta, Fraction(99, 100))
                ],
                "bounds": small.recorded(None),
            }
        )
    return {
        "confidential": True,
        "candidates": census.candidates,
        "rows": census.rows,
        "n": census.n,
        "total": str(census.total),
        "levels": [str(level) for level in census.levels],
        "errors": [float(census.error(level)) for level in census.levels],
        "counts": [str(count) for count in census.counts],
        "laws": laws,
    }


def census_rows(census: Census, drawn: Sequence[SmallDatabases]) -> list[dict[str, object]]:
    """Return a row for each level: its error, how many candidates stand there, and their probabilities."""
    laws = {
        f"probability at epsilon {as_text(small.request.epsilon)}": census.law(
            small.request.epsilon
        ).probabilities.tolist()
        for small in drawn
    }
    return [
        {
            "level": int(level),
            "error": float(census.error(level)),
            "count": count,
            **{name: probabilities[i] for name, probabilities in laws.items()},
        }
        for i, (level, count) in enumerate(zip(census.levels, census.counts, strict=True))
    ]


def census_account(census: Census, drawn: Sequence[SmallDatabases]) -> str:
    """Tell what a census says, for people."""
    least, most = (float(census.error(level)) for level in census.levels[[0, -1]])
    lines = [
        CONFIDENTIAL,
        f"{census.total:,} {census.candidates} of {census.rows} rows, "
        f"at {len(census.levels)} levels of error",
        f"least error {least:.4g} ({census.counts[0]:,} of them), largest {most:.4g}",
    ]
    if drawn:
        beta = as_text(drawn[0].request.beta)
        lines += [
            "",
            f"{'':10}{'exact law of the error':^36}   {f'proven for any data, beta {beta}':^36}",
            f"{'epsilon':10}{'mean':>9}{'median':>9}{f'1-{beta}':>9}{'0.99':>9}   "
            f"{'sharp':>12}{'Prop. 4.4':>12}{'Thm 4.5':>12}",
        ]
    for small in drawn:
        law = census.law(small.request.epsilon)
        exact = [law.mean(), *(law.quantile(q) for q in ("1/2", 1 - small.request.beta, "0.99"))]
        proven = [small.bound, small.proposition_4_4, small.theorem_4_5]
        lines.append(
            f"{as_text(small.request.epsilon):9} "
            + "".join(f"{error:9.4f}" for error in exact)
            + "   "
            + "".join(f" {rounded_up(bound or 0.0):>11}" for bound in proven)
        )
    return "\n".join(lines)
