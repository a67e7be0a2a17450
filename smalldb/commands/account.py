"""`account`: the total privacy loss of several releases from one table."""

import argparse
from typing import Any

from smalldb.accounting import Composition, compose, compose_records, per_release
from smalldb.accounting.composing import ASSUMED
from smalldb.commands import HELP, Commands, add_options
from smalldb.commands.options import add_formats, whole_number
from smalldb.exact.numbers import as_fraction, brief, rounded_down, rounded_up
from smalldb.files.outputs import Outputs
from smalldb.releasing.record import LARGE, WARNING, read_record
from smalldb.reporting.plots_base import check_plotting, plot_composition
from smalldb.reporting.words import as_csv, as_json


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "account",
        help=HELP["account"],
        description="Bound what releases from one table lose together, by every method that applies; or "
        "find what each may lose for a total. With a delta, fix the number of releases and "
        "their epsilons before any result is seen.",
        epilog="example: smalldb account --epsilon 0.5 --releases 10 --delta 1e-6 --bounded-range",
    )
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--epsilon", nargs="+", metavar="E", help="of each release: one number, or a list")
    what.add_argument("--total", metavar="E", help="of all releases: shows what each may have")
    what.add_argument("--records", nargs="+", metavar="R.json", help="public records of the releases")
    add_options(
        command,
        {
            "--releases T": "how many releases",
            "--delta D": "the delta of all releases together (default 0: epsilons add up)",
            "--bounded-range": "each release is of bounded range, as its record says (census and rejection "
            "are)",
            "--fixed": "every step of each release was fixed in advance, not only their number and epsilons",
            "--plot FILE.png": "draw the loss of up to 10 times as many releases (png, svg, pdf)",
        },
        releases=whole_number,
        delta={"default": "0"},
    )
    add_formats(command)
    command.set_defaults(run=run_account)


def run_account(arguments: argparse.Namespace) -> None:
    """Account for releases by number, by list or by records; or invert."""
    common = {"delta": arguments.delta, "adaptive": not arguments.fixed}
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    if form is not None and (
        arguments.releases is None or arguments.epsilon is None or len(arguments.epsilon) > 1
    ):
        raise ValueError("--plot needs one --epsilon and --releases")
    if arguments.records is not None:
        if arguments.releases is not None or arguments.bounded_range:
            raise ValueError(
                "--releases and --bounded-range do not go with --records: the records state both"
            )
        total = compose_records([read_record(path) for path in arguments.records], **common)
    elif arguments.total is not None:
        if arguments.releases is None:
            raise ValueError("--total needs --releases")
        common |= {"releases": arguments.releases, "bounded_range": arguments.bounded_range}
        each = per_release(epsilon=arguments.total, **common)
        if arguments.json or arguments.csv:
            print(as_json({"per_release": each}) if arguments.json else as_csv([{"per_release": each}]))
        else:
            written = rounded_down(as_fraction(each, "epsilon"), 10)
            print(f"each of {arguments.releases} releases may have epsilon {written}")
            if as_fraction(arguments.delta, "delta"):
                print(f"assumed:  {ASSUMED}")
        return
    else:
        one = len(arguments.epsilon) == 1 and arguments.releases is not None
        total = compose(
            epsilon=arguments.epsilon[0] if one else arguments.epsilon,
            releases=arguments.releases,
            bounded_range=arguments.bounded_range,
            **common,
        )
    if form is not None:
        with Outputs([arguments.plot]) as outputs:
            equal = {"epsilon": arguments.epsilon[0], "bounded_range": arguments.bounded_range} | common
            picture = plot_composition(
                total, lambda count: compose(releases=count, **equal), arguments.releases, form
            )
            outputs.write(arguments.plot, picture)
    if arguments.csv:
        print(as_csv(total.table.to_dict("records")))
        return
    print(as_json(account_json(total)) if arguments.json else account_text(total))


def account_json(total: Composition) -> dict[str, Any]:
    """Return all that a composition says."""
    return {
        "epsilon": total.epsilon,
        "warning": WARNING if total.epsilon > LARGE else None,
        "assumed": total.assumed,
        "delta": brief(total.delta),
        "method": total.method,
        "table": total.table.to_dict("records"),
    }


def account_text(total: Composition) -> str:
    """Tell a composition, for people: bounds first, the best on top."""
    least = _bound(total, total.method, total.epsilon)
    lines = [
        f"together: ({least}, {brief(total.delta)})-differential privacy, by {total.method}",
        *([] if total.assumed is None else [f"assumed:  {total.assumed}"]),
        *([f"warning: {WARNING}"] if total.epsilon > LARGE else []),
        "",
    ]
    for valid, title in ((True, "bounds"), (False, "no bounds here")):
        rows = total.table[total.table["valid"] == valid].sort_values("epsilon", kind="stable")
        if len(rows):
            lines.append(f"{title:50}{'epsilon':>12}")
        for method, epsilon, note in zip(rows["method"], rows["epsilon"], rows["note"], strict=True):
            lines.append(f"  {method:48}{_bound(total, method, epsilon):>12}  {note}".rstrip())
    return "\n".join(lines)


def _bound(total: Composition, method: str, epsilon: float) -> str:
    """Write a method's epsilon in six digits, rounded up; of a sum, from the sum itself."""
    return rounded_up(total.added if method == "addition" else epsilon, 6)
