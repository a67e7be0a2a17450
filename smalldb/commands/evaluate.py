"""`evaluate`: what a synthetic table answers beside the real one; confidential."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from smalldb.commands import HELP, Commands, add_options
from smalldb.commands.input_files import as_tables, related_files, schema_of
from smalldb.commands.options import add_file_format, add_formats, file_format, split_names
from smalldb.exact.numbers import brief, positive
from smalldb.files.inputs import rereadable
from smalldb.files.outputs import Outputs
from smalldb.mechanisms import Neighbours, column_named, relation_of
from smalldb.planning import workload_of
from smalldb.releasing.distances import check_classifying
from smalldb.releasing.evaluation import (
    NumberCounts,
    evaluate,
    evaluate_related,
    gather_numbers,
    number_summaries,
)
from smalldb.releasing.record import read_record, stated_bound, stated_epsilon, stated_queries
from smalldb.releasing.table_source import file_source
from smalldb.reporting.evaluated import evaluation_account, evaluation_json, pairs_account
from smalldb.reporting.plots import plot_evaluation
from smalldb.reporting.plots_base import check_plotting
from smalldb.reporting.words import CONFIDENTIAL, as_json
from smalldb.schema import read_schema
from smalldb.schema.fields import Piece
from smalldb.schema.readers.registry import has_lines
from smalldb.schema.related_schema import RelatedSchema
from smalldb.schema.table_writers import form_like

EVALUATED = ("real", "synthetic", "more", "schema", "json", "run")  # options of related tables


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "evaluate",
        help=HELP["evaluate"],
        description="Answer every query on the real and on the synthetic table, exactly. Show where they "
        "differ most, and the distance of the tables of one to three columns. Computed from "
        "the data: CONFIDENTIAL.",
        epilog="example: smalldb evaluate data.csv out.csv --record out.json --plot compared.png",
    )
    command.add_argument("real", metavar="REAL.csv", help="the data")
    command.add_argument("synthetic", metavar="SYNTHETIC.csv", help="the synthetic table")
    command.add_argument(
        "more", metavar="NAME=FILE", nargs="*", help="related tables: named files, then the folder"
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument("--columns", metavar="A,B,...", help="which yes/no columns to compare (default: all)")
    what.add_argument("--schema", metavar="SCHEMA.toml", help="what other columns hold")
    command.add_argument(
        "--queries", metavar="SPEC", help="default: the record's, then the schema's, then marginals:2"
    )
    command.add_argument(
        "--counts",
        metavar="COLUMN",
        help="the column with the number of times that each row of REAL occurs (with --schema)",
    )
    add_file_format(command)
    add_options(
        command,
        {
            "--record OUT.json": "its bound is shown beside the errors",
            "--epsilon E": "epsilon of the baselines: independent columns, noise on cells (default: the "
            "record's)",
            "--target COLUMN": "train classifiers of this column on each table, and test them on real rows "
            "(scikit-learn)",
            "--plot COMPARED.png": "draw both tables (png, svg, pdf)",
        },
    )
    add_formats(command, "every measure of every column, as a table")
    command.set_defaults(run=run_evaluate)


def run_evaluate(arguments: argparse.Namespace) -> None:
    """Compare a synthetic table with the real one, or two related tables with a folder of them."""
    read = schema_of(arguments, [arguments.real, *arguments.more])
    if isinstance(read, RelatedSchema):
        return evaluate_folder(arguments, read)
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    record = None if arguments.record is None else read_record(arguments.record)
    schema = None if read is None else read_schema(read)
    if arguments.counts is not None and schema is None:
        raise ValueError("--counts needs --schema")
    columns = None if arguments.columns is None else split_names(arguments.columns)
    stated = stated_queries(record or {})
    named = [arguments.queries, stated, None if schema is None else schema.queries]
    queries = next((text for text in named if text is not None), None)
    epsilon, relation = stated_epsilon(record or {}), Neighbours.REPLACE_ONE
    if record is not None and epsilon is not None:
        relation = relation_of(record["neighbours"])
    if arguments.epsilon is not None:
        epsilon = positive(arguments.epsilon, "epsilon")
    if arguments.target is not None:
        check_classifying()
    plots = [] if arguments.plot is None else [arguments.plot]
    with Outputs(plots, confidential=plots) as outputs:
        source = file_source(
            arguments.real, schema, columns=columns, counts=arguments.counts, file=file_format(arguments)
        )
        workload = workload_of(queries, source.domain)
        if arguments.target is not None:
            column_named(source.domain, arguments.target)
        numbers: tuple[NumberCounts, NumberCounts] = {}, {}

        def watch(number: int) -> Callable[[Iterator[Piece]], Iterator[Piece]]:
            counts = None if number else arguments.counts
            return iter if schema is None else partial(gather_numbers, schema, counts, numbers[number])

        real = source.read(sys.stderr.isatty(), watch(0))
        synthetic = replace(
            source, table=rereadable(arguments.synthetic, has_lines(arguments.synthetic)), counts=None
        ).read(False, watch(1))
        evaluation = evaluate(real, synthetic, workload)
        if schema is not None:
            evaluation = replace(evaluation, numbers=number_summaries(*numbers))
        if form is not None:
            outputs.write(arguments.plot, plot_evaluation(real, synthetic, form))
    known = None if record is None else pairs_account(record.get("pairs"), len(workload.domain.sizes))
    bound = stated_bound(record) if record is not None and workload.text == stated else None
    long = evaluation.by_column(epsilon=epsilon, neighbours=relation, target=arguments.target)
    if arguments.json:
        print(as_json(evaluation_json(evaluation, bound, long) | {"pairs": (record or {}).get("pairs")}))
    elif arguments.csv:
        print(CONFIDENTIAL, file=sys.stderr)
        print(long.to_csv(index=False), end="")
    else:
        print(evaluation_account(evaluation, bound, long, None if epsilon is None else brief(epsilon)))
        if known is not None:
            print(f"\n{known}")


def evaluate_folder(arguments: argparse.Namespace, schema: RelatedSchema) -> None:
    """Compare the tables in a folder with the data; confidential."""
    real: list[str] = [arguments.real, arguments.synthetic, *arguments.more]
    folder = real.pop()
    tables = related_files(arguments, schema, EVALUATED, real)
    synthetic = {name: os.path.join(folder, f"{name}.{form_like(path)}") for name, path in tables.items()}
    evaluation = evaluate_related(as_tables(tables, schema), as_tables(synthetic, schema), schema)
    long = evaluation.to_frame()
    if arguments.json:
        summary = {"confidential": True, "tables": long.to_dict("records"), "rows": dict(evaluation.rows)}
        print(as_json(summary | {"number_similarity": evaluation.number_similarity}))
        return
    lines = [
        CONFIDENTIAL,
        "mean total variation distance of tables; baseline: independent columns of the data, without noise",
        f"{'tables':12}{'released':>10}{'baseline':>10}",
    ]
    lines += [f"{row.tables:12}{row.tvd:10.3f}{row.independent:10.3f}" for row in long.itertuples()]
    lines.append(f"similarity of numbers of {schema.child}: {evaluation.number_similarity:.3f} (1: the same)")
    print("\n".join(lines))
