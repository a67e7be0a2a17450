"""`evaluate`: what a synthetic table answers beside the real one; confidential."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from smalldb.commands.account import read_record
from smalldb.commands.options import Commands, split_names
from smalldb.files.outputs import Outputs
from smalldb.planning import workload_of
from smalldb.releasing.distances import Distances, Floats
from smalldb.releasing.evaluation import Evaluation, evaluate
from smalldb.reporting.plots import plot_evaluation
from smalldb.reporting.plots_base import check_plotting
from smalldb.reporting.words import as_json, rounded_up
from smalldb.schema import read_schema
from smalldb.schema.tables import read_csv, read_domain, read_table

LISTED, WORST = 10_000, 1_000  # queries: up to so many, JSON lists all; beyond, those farthest off
SHOWN = 60  # columns
ANSWER = ("query", "real", "synthetic", "error")


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "evaluate",
        help="for the curator: how far a synthetic table is off (confidential)",
        description="Answer every query on the real and on the synthetic table, exactly. Show where they "
        "differ most, and how far the tables of one to three columns are apart. Computed from the data: "
        "CONFIDENTIAL.",
        epilog="example: smalldb evaluate data.csv out.csv --record out.json --plot compared.png",
    )
    command.add_argument("real", metavar="REAL.csv", help="the data")
    command.add_argument("synthetic", metavar="SYNTHETIC.csv", help="what was released")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--columns", metavar="A,B,...", help="which yes/no columns to compare (default: all)")
    what.add_argument("--schema", metavar="SCHEMA.toml", help="what other columns hold")
    command.add_argument(
        "--queries", metavar="SPEC", help="default: the record's, then the schema's, then marginals:2"
    )
    command.add_argument(
        "--counts", metavar="COLUMN", help="says how often each row of REAL occurs (with --schema)"
    )
    command.add_argument("--record", metavar="OUT.json", help="its bound is shown beside the errors")
    command.add_argument("--plot", metavar="COMPARED.png", help="draw both tables (png, svg, pdf)")
    command.add_argument("--json", action="store_true", help="everything, for machines")
    command.set_defaults(run=run_evaluate)


def run_evaluate(arguments: argparse.Namespace) -> None:
    """Compare a synthetic table with the real one."""
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    record = None if arguments.record is None else read_record(arguments.record)
    schema = None if arguments.schema is None else read_schema(arguments.schema)
    if arguments.counts is not None and schema is None:
        raise ValueError("--counts needs --schema")
    columns = None if arguments.columns is None else split_names(arguments.columns)
    stated = [arguments.queries, *_stated(record), None if schema is None else schema.queries]
    queries = next((text for text in stated if text is not None), None)
    plots = [] if arguments.plot is None else [arguments.plot]
    with Outputs(plots, confidential=plots) as outputs:
        domain = read_domain(arguments.real, columns) if schema is None else schema.domain
        workload = workload_of(queries, domain)
        if schema is None:
            real, synthetic = (read_csv(path, domain) for path in (arguments.real, arguments.synthetic))
        else:
            real = read_table(arguments.real, schema, arguments.counts, progress=sys.stderr.isatty())
            synthetic = read_table(arguments.synthetic, schema)
        made = evaluate(real, synthetic, workload)
        if form is not None:
            outputs.write(arguments.plot, plot_evaluation(real, synthetic, form))
    bound = None
    if record is not None and workload.text in _stated(record):
        bound = _bound(record)
    if arguments.json:
        print(as_json(evaluation_json(made, bound)))
    else:
        print(evaluation_account(made, bound))


def evaluation_json(made: Evaluation, bound: float | None) -> dict[str, Any]:
    """Return all that an evaluation says; of many queries the answers that are farthest off."""
    size = made.workload.size
    if size <= LISTED:
        answers = zip(made.workload.labels, made.real, made.synthetic, made.errors, strict=True)
    else:
        answers = zip(*(made.worst(WORST)[column] for column in ANSWER), strict=True)
    return {
        "confidential": True,
        "queries": made.workload.text,
        "max_error": float(made.max_error),
        "mean_error": float(made.mean_error),
        "bound": bound,
        "answers": [
            {"query": label, "real": float(real), "synthetic": float(synthetic), "error": float(error)}
            for label, real, synthetic, error in answers
        ],
        "answers_left_out": 0 if size <= LISTED else size - WORST,
        "distances": [_distances_json(found) for found in made.distances()],
    }


def _distances_json(found: Distances) -> dict[str, Any]:
    names = found.domain.names
    every = {"mean": _mean(found.tvd), "largest": _largest(found.tvd)}
    by_column = {
        name: {"mean": _mean(found.of_column(c)), "largest": _largest(found.of_column(c))}
        for c, name in enumerate(names)
    }
    yardstick = {"mean": _mean(found.independent), "largest": _largest(found.independent)}
    return {
        "columns": found.width,
        "tables": len(found.tables),
        "left_out": found.left_out,
        **every,
        "largest_cell": _largest(found.largest),
        "independent_columns": yardstick,
        "by_column": by_column,
    }


def evaluation_account(made: Evaluation, bound: float | None) -> str:
    """Tell an evaluation, for people."""
    worst = made.worst()
    width = max([len("query"), *map(len, worst["query"])])
    lines = [
        "CONFIDENTIAL: computed from the data, not for publication",
        f"{made.workload.text}: {made.workload.size} queries after reduction",
        f"largest error {float(made.max_error):.4f}, mean {float(made.mean_error):.4f}"
        + ("" if bound is None else f"; the record promises at most {rounded_up(bound)}"),
        "",
        f"{'query':{width}}{'real':>9}{'synthetic':>11}{'error':>9}",
    ]
    for row in worst.itertuples():
        lines.append(f"{row.query:{width}}{row.real:9.4f}{row.synthetic:11.4f}{row.error:9.4f}")
    return "\n".join([*lines, *_distances_account(made.distances())])


def _distances_account(found: Sequence[Distances]) -> list[str]:
    """Tell the distances of tables: mean and largest, by column."""
    shown = [each for each in found if each.tables]
    if not shown:
        return []
    names, rest = shown[0].domain.names, len(shown[0].domain.names) - SHOWN
    tables = ", ".join(f"{len(each.tables)} tables of {each.width}" for each in shown)
    rows = [(name, [each.of_column(c) for each in shown]) for c, name in enumerate(names[:SHOWN])]
    rows += [("all", [each.tvd for each in shown])]
    rows += [("independent columns", [each.independent for each in shown])]
    width = max(len(name) for name, _ in rows)
    lines = [
        "",
        f"distance of tables, mean and largest: {tables} columns",
        "(half the sum over a table's cells of how far its shares of rows are apart; independent columns:",
        "the same for the product of the real columns' own shares, a yardstick)",
        f"{'tables with':{width}}" + "".join(f"{f'{each.width}: mean':>11}{'largest':>9}" for each in shown),
    ]
    for name, values in rows:
        figures = (f"{_told(_mean(each)):>11}{_told(_largest(each)):>9}" for each in values)
        lines.append(f"{name:{width}}" + "".join(figures))
    left = [f"{each.left_out} of {each.width}" for each in shown if each.left_out]
    lines += [f"and {rest} more columns"] if rest > 0 else []
    return lines + ([f"left out, for too many cells: {', '.join(left)} columns"] if left else [])


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _largest(values: Floats) -> float | None:
    return float(values.max()) if len(values) else None


def _told(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _stated(record: Mapping[str, Any] | None) -> list[str | None]:
    """Return the queries that a record states, if it does."""
    queries = {} if record is None else record.get("queries")
    return [queries.get("text")] if isinstance(queries, dict) else []


def _bound(record: Mapping[str, Any]) -> float | None:
    """Return the error that a record promises, if it does."""
    bounds = record.get("bounds")
    found = bounds.get("released", bounds.get("sharp")) if isinstance(bounds, dict) else None
    # of whole numbers no other is a promise, and no float may hold it
    return float(found) if isinstance(found, float) or found in (0, 1) else None
