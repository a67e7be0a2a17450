"""`evaluate`: what a synthetic table answers beside the real one; confidential."""

import argparse
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from smalldb.commands import HELP
from smalldb.commands.account import read_record
from smalldb.commands.options import add_formats, add_separator, split_names
from smalldb.commands.parsers import Commands
from smalldb.exact.numbers import as_fraction, positive, whole
from smalldb.files.inputs import rereadable
from smalldb.files.outputs import Outputs
from smalldb.mechanisms import Neighbours, column_named, relation_of
from smalldb.planning import workload_of
from smalldb.releasing.classifying import check_classifying
from smalldb.releasing.evaluation import evaluate
from smalldb.reporting.evaluated import evaluation_account, evaluation_json
from smalldb.reporting.plots import plot_evaluation
from smalldb.reporting.plots_base import check_plotting
from smalldb.reporting.words import CONFIDENTIAL, as_json, brief
from smalldb.schema import read_schema
from smalldb.schema.tables import read_csv, read_domain, read_table


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "evaluate",
        help=HELP["evaluate"],
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
    add_separator(command)
    command.add_argument("--record", metavar="OUT.json", help="its bound is shown beside the errors")
    command.add_argument(
        "--epsilon",
        metavar="E",
        help="epsilon of the baselines: independent columns, noise on cells (default: the record's)",
    )
    command.add_argument(
        "--target",
        metavar="COLUMN",
        help="train classifiers of this column on each table, and test them on real rows (scikit-learn)",
    )
    command.add_argument("--plot", metavar="COMPARED.png", help="draw both tables (png, svg, pdf)")
    add_formats(command, "every measure of every column, as a table")
    command.set_defaults(run=run_evaluate)


def run_evaluate(arguments: argparse.Namespace) -> None:
    """Compare a synthetic table with the real one."""
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    record = None if arguments.record is None else read_record(arguments.record)
    schema = None if arguments.schema is None else read_schema(arguments.schema)
    if arguments.counts is not None and schema is None:
        raise ValueError("--counts needs --schema")
    arguments.real, arguments.synthetic = map(rereadable, (arguments.real, arguments.synthetic))
    columns = None if arguments.columns is None else split_names(arguments.columns)
    stated = [arguments.queries, *_stated(record), None if schema is None else schema.queries]
    queries = next((text for text in stated if text is not None), None)
    epsilon, relation = _simple(arguments.epsilon, record)
    if arguments.target is not None:
        check_classifying()
    sign = arguments.separator
    plots = [] if arguments.plot is None else [arguments.plot]
    with Outputs(plots, confidential=plots) as outputs:
        domain = read_domain(arguments.real, columns, separator=sign) if schema is None else schema.domain
        workload = workload_of(queries, domain)
        if arguments.target is not None:
            column_named(domain, arguments.target)
        if schema is None:
            paths = arguments.real, arguments.synthetic
            real, synthetic = (read_csv(path, domain, sign) for path in paths)
        else:
            bar = sys.stderr.isatty()
            real = read_table(arguments.real, schema, arguments.counts, bar, separator=sign)
            synthetic = read_table(arguments.synthetic, schema, separator=sign)
        made = evaluate(real, synthetic, workload)
        if form is not None:
            outputs.write(arguments.plot, plot_evaluation(real, synthetic, form))
    bound = None
    if record is not None and workload.text in _stated(record):
        bound = _bound(record)
    long = made.by_column(epsilon=epsilon, neighbours=relation, target=arguments.target)
    if arguments.json:
        print(as_json(evaluation_json(made, bound, long)))
    elif arguments.csv:
        print(CONFIDENTIAL, file=sys.stderr)
        print(long.to_csv(index=False), end="")
    else:
        print(evaluation_account(made, bound, long, None if epsilon is None else brief(epsilon)))


def _simple(given: str | None, record: Mapping[str, Any] | None) -> tuple[Fraction | None, Neighbours]:
    """Return the epsilon of the simple ways and their relation: as given, or as the record says."""
    privacy = None if record is None else record.get("privacy")
    relation = Neighbours.REPLACE_ONE
    if record is None or not isinstance(privacy, dict):
        return None if given is None else positive(given, "epsilon"), relation
    relation = relation_of(record.get("neighbours", relation))
    if given is not None:
        return positive(given, "epsilon"), relation
    # each row gets its part of what a person has
    rows = whole(privacy.get("rows_per_person", 1), "privacy.rows_per_person")
    return positive(
        as_fraction(privacy.get("epsilon"), "privacy.epsilon"), "privacy.epsilon"
    ) / rows, relation


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
