"""`ledger`: what was spent of the privacy budget of a data set."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smalldb.commands import HELP, Commands, add_options
from smalldb.commands.account import account_json, account_text
from smalldb.exact.numbers import as_fraction, as_text, brief
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.record import read_record
from smalldb.releasing.transaction import abandon, unfinished_releases
from smalldb.reporting import visible
from smalldb.reporting.words import as_json

Unfinished = Sequence[tuple[int, Path]]


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "ledger",
        help=HELP["ledger"],
        description="Check the ledger of a data set, and show what its releases spent and which of them "
        "are paid and not finished. 'smalldb generate --ledger FILE --budget E' writes it.",
        epilog="example: smalldb ledger people.ledger",
    )
    command.add_argument("ledger", metavar="FILE", help="the ledger")
    add_options(
        command,
        {
            "--delta D": "also show a bound on their loss together as (epsilon, D)",
            "--records RECORD.json": "public records: check that the ledger has the line that paid for each "
            "(an old copy of the ledger does not)",
            "--abandon ID": "give up a release named by --release-id that is paid and not finished: what it "
            "paid stays paid",
            "--json": "everything, for machines",
        },
        records={"nargs": "+"},
    )
    command.set_defaults(run=run_ledger)


def run_ledger(arguments: argparse.Namespace) -> None:
    """Show what was spent."""
    ledger = Ledger(arguments.ledger)
    if arguments.abandon is not None:
        abandon(ledger, arguments.abandon)
    account = ledger.read()
    for path in arguments.records or ():
        _check_line(read_record(path), path, account)
    unfinished = unfinished_releases(arguments.ledger, account)
    if arguments.json:
        print(as_json(ledger_json(account, unfinished, arguments.delta)))
    else:
        print(ledger_text(account, unfinished, arguments.delta))


def _check_line(record: Mapping[str, Any], path: str, account: Account) -> None:
    """Refuse a ledger that lacks the line by which a release was paid: ValueError."""
    line = record.get("ledger")
    if not isinstance(line, dict):
        raise ValueError(f"{path}: the record names no line of a ledger")
    if line.get("checksum") not in account.checksums:
        raise ValueError(f"{path}: this ledger did not pay for it, or it was replaced by an older copy")


def ledger_json(account: Account, unfinished: Unfinished, delta: str | None) -> dict[str, object]:
    """Return all that a ledger says, and which of its releases are not finished."""
    together = None if delta is None else account_json(account.composed(delta))
    numbers = "budget", "spent", "left", *(() if account.delta is None else ("delta", "rho", "spent_rho"))
    return {
        **{name: as_text(getattr(account, name)) for name in numbers},
        "releases": [
            {**record, "release_id": name} if name else record
            for record, name in zip(account.records, account.names, strict=True)
        ],
        "finished": [name for name, outputs in account.ended.items() if outputs],
        "abandoned": [name for name, outputs in account.ended.items() if not outputs],
        "torn": account.torn,
        "unfinished": [{"release": number, "folder": str(folder)} for number, folder in unfinished],
        "composed": together,
    }


def ledger_text(account: Account, unfinished: Unfinished, delta: str | None) -> str:
    """Tell what a ledger says, for people, and how its unfinished releases go on."""
    relations = {record["neighbours"] for record in account.records}
    number_of_releases = len(account.records)
    budget, spent, left = brief(account.budget), brief(account.spent), brief(account.left)
    if account.delta is not None:
        rho, of_rho, left_rho = account.in_rho
        alone = f", or epsilon {left}" if account.pure and account.left > 0 else ""
        budget = account.stated
        spent, left = f"rho {of_rho} of {rho}, epsilon {spent}", f"rho {left_rho}{alone}"
    lines = [
        f"budget:    {budget}" + "".join(f", {name} neighbours" for name in relations),
        f"spent:     {spent}, by {number_of_releases} release{'' if number_of_releases == 1 else 's'}",
        f"left:      {left}",
    ]
    if account.torn:
        lines.append("unfinished: the last line, of a run that ended before it spent and released nothing")
    for number, folder in unfinished:
        epsilon = brief(as_fraction(account.records[number - 1]["privacy"]["epsilon"], "epsilon"))
        name = account.names[number - 1]
        lines += [
            f"unfinished: release {name or number}, of epsilon {epsilon}, in {visible(str(folder))}:",
            "            the smalldb generate --ledger ... that began it goes on, and pays no second time",
        ]
    if delta is not None:
        lines += ["", account_text(account.composed(delta))]
    return "\n".join(lines)
