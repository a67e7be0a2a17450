"""`evaluate`: what a synthetic table answers beside the real one; confidential."""

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from smalldb.commands.account import read_record
from smalldb.commands.options import Commands, split_names
from smalldb.files.outputs import Outputs
from smalldb.planning import workload_of
from smalldb.releasing.evaluation import Evaluation, evaluate
from smalldb.reporting.plots import check_plotting, plot_evaluation
from smalldb.reporting.words import as_json, rounded_up
from smalldb.schema import read_schema
from smalldb.schema.tables import read_csv, read_domain, read_table


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "evaluate",
        help="for the curator: how far a synthetic table is off (confidential)",
        description="Answer every query on the real and on the synthetic table, exactly, and show where they "
        "differ most. Computed from the data: CONFIDENTIAL.",
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
    """Return all that an evaluation says."""
    return {
        "confidential": True,
        "queries": made.workload.text,
        "max_error": float(made.max_error),
        "mean_error": float(made.mean_error),
        "bound": bound,
        "answers": [
            {"query": label, "real": float(real), "synthetic": float(synthetic), "error": float(error)}
            for label, real, synthetic, error in zip(
                made.workload.labels, made.real, made.synthetic, made.errors, strict=True
            )
        ],
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
    return "\n".join(lines)


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
