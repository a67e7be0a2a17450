"""`audit`: the exact worst privacy loss of a small instance."""

import argparse
import os
import sys
from typing import Any

from smalldb.auditing import Accuracy, Audit, accuracy, audit, profile
from smalldb.commands import HELP, Commands, add_options
from smalldb.commands.options import add_formats, add_universe, universe, whole_number
from smalldb.exact.numbers import brief, float_above, positive, rounded_up
from smalldb.files.checkpoints import check_running
from smalldb.files.outputs import Outputs
from smalldb.planning import Neighbours
from smalldb.reporting.plots_base import check_plotting
from smalldb.reporting.plots_bounds import plot_audit
from smalldb.reporting.words import as_csv, as_json


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "audit",
        help=HELP["audit"],
        description="Compare the exact law of a release on every database of N rows with that on each of its "
        "neighbours, and show the worst privacy loss beside the bounds of the theory. No data is read.",
        epilog="example: smalldb audit --attributes 2 --queries conjunctions:2 --rows 2 --epsilon 1 --n 6",
    )
    add_universe(command)
    add_options(
        command,
        {
            "--n N": "rows of the databases",
            "--epsilon E": "privacy parameter, exact: 1, 0.1 or 1/3",
            "--rows M": "rows of a small database (census)",
            "--mechanism NAME": "census (the default), or select: the query with the largest count",
            "--method": "of a selection: exponential (default), permute-and-flip, noisy-max or top-k",
            "--k K": "how many to select by top-k",
            "--neighbours RELATION": "replace-one or add-remove (default: both)",
            "--checkpoint DIR": "a folder for this run only, from which a killed command continues when you "
            "repeat it",
            "--error": "also the worst error over all tables of N rows (census)",
            "--plot FILE.png": "draw delta of every epsilon, the trade-off curve and the worst error "
            "(census; png, svg, pdf)",
        },
        n={"type": whole_number, "required": True},
        epsilon={"required": True},
        rows=whole_number,
        mechanism={"default": "census"},
        method=("exponential", "permute-and-flip", "noisy-max", "top-k"),
        k=whole_number,
    )
    add_formats(command, "a row for each relation, with the worst error if asked for")
    command.set_defaults(run=run_audit)


def run_audit(arguments: argparse.Namespace) -> None:
    """Audit under one relation or both."""
    check_running(None, arguments.checkpoint)
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    if arguments.mechanism != "census" and (arguments.error or form is not None):
        raise ValueError("--error and --plot are for an audit of the census")
    relations = [relation.value for relation in Neighbours]
    if arguments.neighbours is not None:
        relations = [arguments.neighbours]
    chosen = ("queries", "n", "epsilon", "rows", "candidates", "mechanism", "method", "k")
    choices = {name: getattr(arguments, name) for name in chosen}
    domain, progress = universe(arguments), sys.stderr.isatty()
    audits = {
        relation: audit(
            domain,
            **choices,
            neighbours=relation,
            checkpoint=arguments.checkpoint and os.path.join(arguments.checkpoint, relation),
            progress=progress,
        )
        for relation in relations
    }
    census = {name: choices[name] for name in ("queries", "n", "epsilon", "rows", "candidates")}
    worst = accuracy(domain, **census) if arguments.error or form is not None else None
    if worst is not None and form is not None:
        with Outputs([arguments.plot]) as outputs:
            profiles = {relation: profile(domain, **census, neighbours=relation) for relation in relations}
            outputs.write(arguments.plot, plot_audit(profiles, worst, _title(arguments, worst), form))
    if arguments.json:
        results: dict[str, Any] = {relation: audit_json(result) for relation, result in audits.items()}
        print(as_json(results if worst is None else results | {"error": error_json(worst)}))
        return
    if arguments.csv:
        errors = {} if worst is None else error_json(worst)
        rows = [
            {"neighbours": relation, **result.to_frame().to_dict("records")[0], **errors}
            for relation, result in audits.items()
        ]
        print(as_csv(rows))
        return
    print(f"{'neighbours':14}{'loss':>22}{'cap':>10}{'range':>10}{'databases':>12}{'pairs':>12}")
    for relation, result in audits.items():
        cap = "" if result.cap is None else rounded_up(result.cap, 6)
        # of (low, high), which agree to 25 digits, the low end: a loss of just 1 is not written as above 1
        print(
            f"{relation:14}{rounded_up(result.loss[0], 16):>22}{cap:>10}{rounded_up(result.range[0], 6):>10}"
            f"{result.databases:12,}{result.pairs:12,}"
        )
    for relation, result in audits.items():
        x, other, outcome = result.pair
        print(f"worst under {relation}: {outcome} is drawn from {x} more often than from {other}")
    if worst is not None:
        print(f"\nerror over all {worst.databases:,} tables of {worst.n} rows, with probability 0.95")
        for name, figure in error_json(worst).items():
            print(f"{name:40}{rounded_up(figure, 8):>14}")


def audit_json(audit: Audit) -> dict[str, Any]:
    """Return all that an audit says."""
    x, other, outcome = audit.pair
    return {
        "loss": audit.worst_loss,
        "cap": None if audit.cap is None else brief(audit.cap),
        "range": audit.worst_range,
        "pair": [list(x), list(other)],
        "outcome": outcome,
        "databases": audit.databases,
        "pairs": audit.pairs,
    }


def error_json(worst: Accuracy) -> dict[str, float]:
    """Return the worst error and what is proved of it, for beta 0.05."""
    return worst.promised() | {"best small database": float_above(worst.optimum)}


def _title(arguments: argparse.Namespace, worst: Accuracy) -> str:
    text = arguments.queries or "marginals:2"
    numbers = f"|Q| = {worst.queries:,},  N = {worst.cells},  n = {worst.n},  m = {worst.rows}"
    epsilon = brief(positive(arguments.epsilon, "epsilon"))
    return f"{text}: {numbers},  epsilon = {epsilon}, {worst.candidates}"
