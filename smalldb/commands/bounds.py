"""`bounds`: what each theorem promises for public numbers, and what it needs."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from queries import spec
from smalldb import bounds
from smalldb.bounds.comparing import MANY, SHARP_QUERIES, needs, promises, vapnik, whole
from smalldb.commands import HELP, Commands
from smalldb.commands.options import add_common, add_formats, described, whole_number
from smalldb.exact.numbers import between_0_and_1, brief, positive, rounded_down, rounded_up
from smalldb.files.outputs import Outputs
from smalldb.planning import workload_of
from smalldb.reporting.plots_base import check_plotting, rendered
from smalldb.reporting.plots_bounds import Setting, drawn_bounds
from smalldb.reporting.words import as_csv, as_json

AXES = ("n", "epsilon", "rows")
UP = Context(prec=3, rounding=ROUND_CEILING)


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "bounds",
        help=HELP["bounds"],
        description="Say what error each theorem promises with probability 1 - beta for public numbers, and "
        "what an error needs. All logarithms are natural; bounds are rounded up.",
        epilog="example: smalldb bounds --attributes 4 --size 10 --n 1000 --epsilon 1 --error 0.1",
    )
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--attributes", metavar="D|A,B,...", help="how many yes/no attributes, or their names")
    what.add_argument("--schema", metavar="SCHEMA.toml", help="or what the columns hold")
    command.add_argument("--valid", metavar="PREDICATE", help="which rows can exist at all")
    size = command.add_mutually_exclusive_group()
    size.add_argument(
        "--queries",
        metavar="SPEC",
        help=f"a query class (default: the schema's, or marginals:2): {', '.join(spec.NAMES)}",
    )
    size.add_argument("--size", type=whole_number, metavar="J", help="or just how many distinct queries")
    command.add_argument("--n", type=whole_number, required=True, metavar="N", help="rows of the data")
    add_common(command, "--epsilon E", "--beta B")
    command.add_argument(
        "--rows", type=whole_number, metavar="M", help="rows of the small database (default: best)"
    )
    command.add_argument("--candidates", default="multisets", metavar="BASE", help="multisets or tuples")
    command.add_argument("--error", metavar="A", help="also say what this error needs")
    command.add_argument("--plot", metavar="FILE.png", help="draw the error (png, svg, pdf)")
    command.add_argument("--against", choices=AXES, help="what the axis of the picture is (default n)")
    add_formats(command)
    command.set_defaults(run=run_bounds)


def run_bounds(arguments: argparse.Namespace) -> None:
    """Evaluate every bound, and the inverses for an error."""
    if arguments.against is not None and arguments.plot is None:
        raise ValueError("--against is for --plot")
    domain, stated, _ = described(arguments)
    cells = domain.product if domain.valid is None else domain.size
    vc, method, apart = None, "least", 1
    if arguments.size is None:
        workload, vc = workload_of(stated, domain), vapnik(stated, domain)
        queries, text = workload.size, workload.text
        method, apart = bounds.class_method(domain, stated), bounds.cells_apart(workload)
    else:
        queries, text = arguments.size, "any class"
    beta, epsilon = between_0_and_1(arguments.beta, "beta"), positive(arguments.epsilon, "epsilon")
    numbers = {"n": arguments.n, "cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
    error = None if arguments.error is None else between_0_and_1(arguments.error, "error")
    promised = promises(numbers, arguments.rows, arguments.candidates)
    setting = Setting(numbers, arguments.rows, arguments.candidates, method, apart, text)
    needed = None if error is None else needs(numbers, error, arguments.candidates, vc, arguments.rows)
    beside = besides(setting)
    if arguments.plot is not None:
        form = check_plotting(arguments.plot)
        with Outputs([arguments.plot]) as outputs:
            figure = drawn_bounds(setting, arguments.against or "n")
            outputs.write(arguments.plot, rendered(figure, form))
    if arguments.csv:
        kinds = ("promise", "error", promised), ("beside", "error", beside), ("need", "value", needed or [])
        table = [
            {"kind": row.get("kind", kind), "name": row["name"].strip(), "value": row[value]}
            | {"rows": row.get("rows"), "note": row.get("note")}
            for kind, value, rows in kinds
            for row in rows
        ]
        print(as_csv(table))
        return
    if arguments.json:
        everything = {
            "cells": str(cells),
            "queries": queries,
            "beta": brief(beta),
            "vc": vc,
            "promises": [row | {"name": row["name"].strip()} for row in promised],
            "besides": beside,
        }
        print(as_json(everything if error is None else everything | {"error": brief(error), "needs": needed}))
        return
    print(
        f"{text}: {queries} distinct queries on {Decimal(cells):.4g} cells; n = {arguments.n}, "
        f"epsilon {brief(epsilon)}"
    )
    title = f"{f'error, with probability 1 - {brief(beta)}':64}{'error':>14}{'rows':>10}"
    for heading, rows in ((title, promised), ("beside these, with the same probability", beside)):
        print(f"\n{heading}")
        for row in rows:
            written = (rounded_down if row.get("kind") == "lower" else rounded_up)(row["error"], 8)
            size = "" if row["rows"] is None else whole(row["rows"])
            vacuous = "  vacuous" if row["error"] >= 1 else ""
            print(f"{row['name']:64}{written:>14}{size:>10}{vacuous}{_note(row)}")
    if error is not None and needed is not None:
        print(f"\nwhat an error of {brief(error)} needs")
        for row in needed:
            print(f"{row['name']:64}{_need(row['name'], row['value']):>20}{_note(row)}")


def _note(row: Mapping[str, Any]) -> str:
    return f"  {row['note']}" if row.get("note") else ""


def _need(name: str, value: float | int | None) -> str:
    """Write what an error needs: rounded up, but for how many queries it can serve."""
    if value is None:
        return "nothing will do"
    if name == SHARP_QUERIES:
        return "any number" if value >= MANY else str(value)
    if isinstance(value, int):
        return str(value) if value < MANY else f"{UP.create_decimal(value):.2e}"
    return rounded_up(value, 8) if value else "any"


def besides(setting: Setting) -> list[dict[str, Any]]:
    """Return what the class of the queries is promised, what other mechanisms promise, and what none can."""
    return [
        asdict(bound)
        for bound in setting.table()
        if bound.kind in ("other", "lower") or bound.name == f"sharp, {setting.method}"
    ]
