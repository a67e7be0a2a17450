"""`plan`: what a release would do, cost and promise, before there is any table."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from smalldb.commands import HELP, Commands
from smalldb.commands.options import (
    add_common,
    add_size,
    add_universe,
    described,
    whole_number,
)
from smalldb.exact.numbers import as_text
from smalldb.files.outputs import Outputs
from smalldb.planning import Neighbours, Plan, Settings, plan
from smalldb.planning.plans import pairs_reached
from smalldb.planning.starting import rehearsed, with_start
from smalldb.releasing.memory import check_memory
from smalldb.releasing.record import make_record
from smalldb.reporting.plots_base import check_plotting, plot_plan
from smalldb.reporting.words import as_json, laid_out, tell

REHEARSED = "rehearsed on it, tables of two columns are off by about {:.2g} if the data are like it"
DELTA = "1e-9"  # that pure plans are compared with


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "plan",
        help=HELP["plan"],
        description="Say what a release would do, what it costs and which error to expect, from public "
        "numbers alone, and whether plain noise would do better. No data is read.",
        epilog="example: smalldb plan --attributes 10 --n 5000 --epsilon 1 --queries marginals:2",
    )
    add_universe(command, schema=True)
    command.add_argument("--n", type=whole_number, metavar="N", help="rows of the data (replace-one only)")
    add_common(command, "--epsilon E", "--delta D")
    add_size(command)
    add_common(command, "--beta B")
    command.add_argument("--plot", metavar="PLAN.png", help="draw the expected error (png, svg, pdf)")
    add_common(command, "--verbose")
    command.add_argument("--json", action="store_true", help="everything, for machines")
    command.set_defaults(run=run_plan)


def run_plan(arguments: argparse.Namespace) -> None:
    """Say what a release would do."""
    if arguments.n is None and arguments.neighbours == Neighbours.REPLACE_ONE.value:
        raise ValueError("give --n (public under replace-one), or --neighbours add-remove with --n-max")
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    domain, queries, schema = described(arguments)
    planned = partial(plan, domain if schema is None else None, queries, schema=schema)
    chosen = {name: getattr(arguments, name) for name in ("n", *Settings.__annotations__)}
    chosen = with_start(chosen, schema or domain)
    chosen_plan = planned(**chosen)
    other = _compared(planned, chosen)
    check_memory(chosen_plan)
    if form is not None:
        with Outputs([arguments.plot]) as outputs:
            picture = plot_plan(chosen_plan, lambda epsilon: planned(**chosen | {"epsilon": epsilon}), form)
            outputs.write(arguments.plot, picture)
    if arguments.json:
        print(as_json(plan_json(chosen_plan, other)))
    else:
        print(plan_account(chosen_plan, other, verbose=arguments.verbose))
        if (expected := rehearsed(chosen_plan)) is not None:
            print(laid_out([("start", REHEARSED.format(expected))]))


def _compared(planned: Callable[..., Plan], chosen: dict[str, Any]) -> Plan | str:
    """Return the plan with a delta if it has none, or without its own; or why there is no such plan."""
    try:
        return planned(**chosen | {"delta": DELTA if chosen["delta"] is None else None})
    except ValueError as error:
        return f"none: {error}"


def plan_json(plan: Plan, other: Plan | str) -> dict[str, Any]:
    """Return all that a plan says; the number of candidates is a text: it passes what other readers hold."""
    record, reached = make_record(plan, private=True), pairs_reached(plan)
    return {name: value for name, value in record.items() if name != "private"} | {
        "candidate_count": None if plan.candidate_count is None else str(plan.candidate_count),
        "expected_error": plan.expected_error,
        "expected_range": plan.expected_range,
        "expected_share": plan.expected_share,
        "expected_mean": plan.expected_mean,
        "compared": None
        if isinstance(other, str)
        else {"delta": None if other.delta is None else as_text(other.delta), "error": other.expected_error},
        "rehearsed_error": rehearsed(plan),
        "nothing_expected": plan.nothing_expected,
        "why": plan.why,
        "alternatives": plan.alternatives,
        "cost": plan.chosen.cost,
        "pairs_of_columns": reached
        and {"expected": reached.expected, "measured_at_most": reached.most, "all": reached.every},
    }


def plan_account(plan: Plan, other: Plan | str, *, verbose: bool = False) -> str:
    """Tell a plan, for people."""
    return laid_out(tell(make_record(plan, private=True), plan, verbose=verbose, other=other))
