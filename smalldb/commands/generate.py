"""`generate`: release a synthetic table from a file."""

import argparse
import json
import os
import sys
from contextlib import ExitStack
from dataclasses import replace

from queries import Rows
from smalldb.commands import HELP
from smalldb.commands.input_files import Source, add_schema, form_of, source_of
from smalldb.commands.options import (
    add_beta,
    add_delta,
    add_size,
    add_table,
    add_verbose,
    integer,
    keep_inputs,
    put,
    text,
)
from smalldb.commands.parsers import Commands
from smalldb.exact.bits import bit_source
from smalldb.exact.numbers import positive
from smalldb.files.outputs import Outputs
from smalldb.mechanisms import Running
from smalldb.planning import Plan, Settings, plan
from smalldb.releasing.budget_ledger import Account, Ledger
from smalldb.releasing.classifying import check_classifying
from smalldb.releasing.evaluation import evaluate
from smalldb.releasing.lasting import Going, begun_beside
from smalldb.releasing.learned_categories import learn, shared
from smalldb.releasing.memory import check_memory
from smalldb.releasing.record import Record, make_record
from smalldb.releasing.release import carried_out, check_size
from smalldb.releasing.released import Release
from smalldb.reporting.page import About, Comparison, page
from smalldb.reporting.words import as_json, brief, tell
from smalldb.schema import Schema
from smalldb.schema.learned import Learned
from smalldb.schema.table_writers import NAMED


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "generate",
        help=HELP["generate"],
        description="Release a synthetic table of yes/no columns, or of any columns that a schema describes, "
        "by the mechanism that suits its size (--mechanism).",
        epilog="example: smalldb generate data.csv --epsilon 1 --queries conjunctions:2 --rows 6 -o out.csv",
    )
    add_table(command, "the schema's, or marginals:2")
    add_schema(command)
    command.add_argument(
        "--epsilon", required=True, metavar="E", help="privacy parameter, exact: 1, 0.1 or 1/3"
    )
    add_delta(command)
    add_size(command)
    add_verbose(command)
    add_beta(command)
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT.csv",
        help=f"where the table goes: {NAMED} (default: stdout, as CSV)",
    )
    command.add_argument(
        "--spelling",
        choices=("0/1", "true/false"),
        help="how yes/no fields are written without --schema (default 0/1); both are read",
    )
    command.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="put an apostrophe before texts and names of CSV that a spreadsheet would run, such as =1+1; "
        "evaluate reads the file only where there are none",
    )
    command.add_argument(
        "--middle",
        action="store_true",
        help="with --schema: write each bin as its middle, not as a value drawn from it; do not shuffle rows",
    )
    command.add_argument(
        "--schema-out",
        metavar="OUT.toml",
        help="where a schema that learns places goes with these written out: public, for evaluate and others",
    )
    command.add_argument("--record", metavar="OUT.json", help="where the public record goes")
    command.add_argument("--report", metavar="OUT.html", help="a page about the release, for publication")
    command.add_argument(
        "--confidential",
        action="store_true",
        help="show in the report how far the release is off from the data, and with --target how well "
        "classifiers do that are trained on it (scikit-learn): NOT for publication",
    )
    command.add_argument("--title", type=text, metavar="TEXT", help="the title of the report")
    command.add_argument(
        "--publisher", type=text, metavar="TEXT", help="who publishes the table, for the report"
    )
    command.add_argument("--table", type=text, metavar="TEXT", help="the name of the data, for the report")
    command.add_argument(
        "--ledger", metavar="FILE", help="the file that keeps the data's privacy budget: spend from it first"
    )
    command.add_argument("--budget", metavar="E", help="make the ledger with this budget, if there is none")
    command.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="keep what is drawn in a private folder of this release alone: killed and started again, it "
        "goes on, and pays no second time; with --ledger by default one beside it, until the outputs stand",
    )
    command.add_argument("--seed", type=integer, metavar="S", help="for experiments: repeatable, NOT private")
    command.add_argument("--json", action="store_true", help="with -o: the public record on stdout")
    command.add_argument("--quiet", action="store_true", help="print no summary on stderr")
    command.set_defaults(run=run_generate)


def run_generate(arguments: argparse.Namespace) -> None:
    """Release a synthetic table from a file."""
    if arguments.json and arguments.output is None:
        raise ValueError("--json needs -o: standard output has the table")
    if sys.stdout is None and arguments.output is None:
        raise ValueError("standard output is closed: name a file with -o")
    if arguments.confidential and arguments.report is None:
        raise ValueError("--confidential needs --report")
    for option in ("title", "publisher", "table"):
        if getattr(arguments, option) is not None and arguments.report is None:
            raise ValueError(f"--{option} needs --report")
    if arguments.target is not None and arguments.confidential:
        check_classifying("; or leave out --confidential")
    if arguments.report is not None and not arguments.report.lower().endswith((".html", ".htm")):
        raise ValueError(f"the report is a page: its name must end in .html, not {arguments.report!r}")
    if arguments.spelling is not None and arguments.schema is not None:
        raise ValueError("--spelling is for tables without --schema: the schema says it")
    if arguments.middle and arguments.schema is None:
        raise ValueError("--middle needs --schema: a yes/no field has no middle")
    form, progress = form_of(arguments.output), sys.stderr.isatty() and not arguments.quiet
    # the table last: whoever finds it finds its record
    named = (arguments.record, arguments.schema_out, arguments.report, arguments.output)
    targets = [path for path in named if path is not None]
    keep_inputs([arguments.data, arguments.schema, arguments.ledger], targets)
    source = source_of(arguments, learning=True)
    if source.open is None and arguments.schema_out is not None:
        raise ValueError('--schema-out is for a schema that learns places (values = "learn"): none does')
    choices = {name: getattr(arguments, name) for name in Settings.__annotations__}
    choices["queries"] = source.stated if arguments.queries is None else arguments.queries
    with (
        ExitStack() as opened,  # ends last: what can go on is kept until the outputs stand
        Outputs(targets, confidential=[arguments.report] if arguments.confidential else []) as outputs,
    ):
        # whatever can be refused without the data is refused before they are read; n is one of them
        one = 1 if arguments.neighbours == "replace-one" else None
        learned: tuple[Learned, ...] = ()
        written_out = ""
        if source.open is not None:
            learned, left = shared(source.open, choices)
            choices |= left
        foreseen = replace(plan(source.domain, **choices, n=one), learned=learned)
        check_memory(foreseen)
        length = source.rehearse(form)
        ledger = _ledger(arguments, make_record(foreseen, private=True))
        bits = bit_source(arguments.seed)
        account = None
        kept = {"private": bits.private, "checkpoint": arguments.checkpoint, "ledger": ledger}
        if source.open is not None:
            # what would be refused after learning is refused before it is paid
            table = source.read(progress)
            check_size(table, foreseen.neighbours)
            n = None if one is None else table.n

            def fits(schema: Schema) -> Plan:
                made = plan(schema.domain, **choices, n=n)
                check_memory(made)
                return made

            _reserve(outputs, arguments, length, fits(source.open.outline))
            going = Going(foreseen, asked=source.open.text, **kept)
            journal = opened.enter_context(going.opened(bits))
            going.bind(journal, table)
            account = _told(going.pay(journal), arguments)
            found, planned = learn(
                source.open,
                source.pieces(),
                learned,
                neighbours=foreseen.neighbours,
                source=journal,
                fits=fits,
            )
            planned = replace(planned, learned=learned)
            written_out = source.open.written(found)
            source = source.learned(found)
        table = source.read(progress)
        if not learned:
            check_size(table, foreseen.neighbours)
            choices["queries"] = foreseen.workload
            # n is public, or no part of a plan
            planned = foreseen if foreseen.n is None else plan(source.domain, **choices, n=table.n)
            check_memory(planned)
            _reserve(outputs, arguments, length, planned)
            going = Going(planned, **kept)
            journal = opened.enter_context(going.opened(bits))
        going.bind(journal, table)
        if not learned:
            account = _told(going.pay(journal), arguments)
        how = journal, Running(progress)
        made = carried_out(planned, table, table, source.schema, arguments.middle, *how)
        content = source.content(made, form, arguments.spelling or "0/1", arguments.spreadsheet_safe)
        if arguments.schema_out is not None:
            outputs.write(arguments.schema_out, written_out)
        if arguments.record is not None:
            outputs.write(arguments.record, json.dumps(made.record, indent=2, ensure_ascii=False) + "\n")
        if arguments.report is not None:
            shown = table if arguments.confidential else None
            outputs.write(arguments.report, _report(made, source, shown, arguments, account))
        if arguments.output is None:
            outputs.then(lambda: put(content))
        else:
            outputs.write(arguments.output, content)
    if arguments.json:
        print(as_json(made.record))
    if not arguments.quiet:
        print(tell(made.record, made.plan, verbose=arguments.verbose), file=sys.stderr)
    if not made.record["private"]:
        print("NOT PRIVATE: the randomness came from a seed; for experiments only", file=sys.stderr)


def _reserve(outputs: Outputs, arguments: argparse.Namespace, length: int, planned: Plan) -> None:
    """Take about the room on the disk that the outputs need, before anything is paid."""
    rows = length * planned.foreseen_rows
    sizes = {"record": 1 << 14, "schema_out": 1 << 14, "report": 1 << 18, "output": rows}
    for name, size in sizes.items():
        if getattr(arguments, name) is not None:
            outputs.reserve(getattr(arguments, name), size)


def _ledger(arguments: argparse.Namespace, record: Record) -> Ledger | None:
    """Return the ledger to spend from, if one is named; made only where its budget allows the release."""
    if arguments.ledger is None:
        if arguments.budget is not None:
            raise ValueError("--budget needs --ledger")
        return None
    if arguments.delta is not None:
        raise ValueError("--ledger counts pure privacy: leave out --delta")
    if arguments.seed is not None:
        raise ValueError("--ledger is for private releases: what --seed makes is not private at any epsilon")
    if not os.path.exists(arguments.ledger):
        if arguments.budget is None:
            raise ValueError(f"{arguments.ledger}: no ledger yet: add --budget E to make it")
        Account(positive(arguments.budget, "budget")).after(record)
    ledger = Ledger(arguments.ledger, arguments.budget)
    if arguments.checkpoint is None and not begun_beside(arguments.ledger):  # else it may be paid already
        ledger.read().after(record)
    return ledger


def _told(paid: tuple[Account, bool] | None, arguments: argparse.Namespace) -> Account | None:
    """Tell what is spent, if there is a ledger; it stays so if the release fails."""
    if paid is None:
        return None
    account, before = paid
    spent, budget, number = brief(account.spent), brief(account.budget), len(account.records)
    which = "this release was paid before" if before else f"with this release, number {number}"
    lines = [f"ledger:    {spent} of {budget} spent, {which}"]
    if account.torn:
        lines.append("           (an unfinished line of a run that released nothing was removed)")
    if not arguments.quiet:
        print("\n".join(lines), file=sys.stderr)
    return account


def _report(
    made: Release,
    source: Source,
    real: Rows | None,
    arguments: argparse.Namespace,
    account: Account | None,
) -> str:
    """Write the page about a release; with the real rows it is confidential."""
    about = About(arguments.title, arguments.publisher, arguments.table, account)
    if real is None:
        return page(made, source.schema, about=about)
    # an empty table is a neighbour of one that can be compared: neither may be refused
    found = evaluate(real, made.rows, made.plan.workload) if real.n else None
    return page(made, source.schema, Comparison(real, found, arguments.target), about)
