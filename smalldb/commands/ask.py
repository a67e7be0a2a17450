"""`ask`: shares, conditional shares, means and differences from what a release measured."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from queries import DataError, Rows, Workload
from smalldb.commands import HELP, Commands, Unfit, add_options
from smalldb.commands.options import add_formats
from smalldb.exact.numbers import as_text, between_0_and_1, number_told, promised
from smalldb.inference import Answer, Measurements, ask
from smalldb.inference.answering import ask_related
from smalldb.inference.cross_tables import ERROR, Line, cross_table, known_of
from smalldb.planning import workload_of
from smalldb.releasing.record import read_record, stated_bound, stated_queries, stated_start
from smalldb.releasing.table_source import file_source
from smalldb.reporting import visible
from smalldb.reporting.words import answer_cell, as_csv, as_json
from smalldb.schema import read_schema

SHOWN = 3  # tables that are combined, from which on they are counted
SHOWN_CATEGORIES = 8


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "ask",
        help=HELP["ask"],
        description="Answer questions from public files alone, with an estimate, its interval from the "
        "noise, and what was measured.",
        epilog="""example: smalldb ask record.json "death | age>=80" "mean(income) where sex=f" """.rstrip(),
    )
    command.add_argument(
        "file",
        metavar="RECORD.json",
        help="a record with measurements, or what generate --measurements wrote",
    )
    command.add_argument(
        "questions",
        nargs="*",
        metavar="QUESTION",
        help="such as 'death', 'death | age>=80', 'mean(income) where sex=f', 'median(income)', 'married - "
        "married | age<40'; | means 'given', or 'or' inside parentheses; without a question: the "
        "columns, and what was measured of which pairs",
    )
    add_options(
        command,
        {
            "--by COLUMN": "a table of the answers for all rows and for each category of a column",
            "--table1": "the first table of a paper: shares, means and medians of all columns, or of those "
            "that you name",
            "--synthetic OUT.csv": "the synthetic table, whose value is shown as an assumption if a "
            "quantity was not measured",
            "--schema SCHEMA.toml": "with --synthetic: what its columns hold (default: yes or no)",
            "--population": "intervals for the population from which the rows are a random sample, not for "
            "the table itself",
        },
    )
    chance = command.add_mutually_exclusive_group()
    chance.add_argument("--level", metavar="P", help="the probability that an interval covers (0.95)")
    chance.add_argument("--beta", metavar="B", help="or the probability that it does not (0.05)")
    formats = add_formats(command, "the answers, as CSV")
    formats.add_argument(
        "--markdown", action="store_true", help="with --by or --table1: the table, as Markdown"
    )
    command.set_defaults(run=run_ask)


def run_ask(arguments: argparse.Namespace) -> None:
    """Answer questions from a record; what is wrong with one of them stands in its place."""
    level = arguments.level or "0.95"
    if arguments.beta is not None:
        level = as_text(1 - between_0_and_1(arguments.beta, "beta"))
    record = read_record(arguments.file)
    answer = partial(_answering(arguments, record), level=level, population=arguments.population)
    if arguments.table1 or arguments.by is not None or not arguments.questions:
        if "tables" in record:
            *_, walks = Measurements.of_tables(record).values()
            names = ", ".join(walks.domain.names)
            raise ValueError(
                f"of related tables ask questions, without --by and --table1, on columns {names}"
            )
        measurements = Measurements.from_record(record)
        if not (arguments.table1 or arguments.by is not None):
            return _print_known(arguments, known_of(measurements))
        if not (arguments.table1 or arguments.questions):
            raise ValueError("--by needs questions, or --table1 for all columns")
        return _print_table(arguments, *cross_table(measurements, arguments.questions, arguments.by, answer))
    if arguments.markdown:
        raise ValueError("--markdown is for a table: add --by COLUMN or --table1")
    answers, faults = list[Answer](), list[ValueError]()
    for question in arguments.questions:
        try:
            answers.append(answer(question))
        except ValueError as error:
            faults.append(error)
            unread = Answer(question, ERROR, None, None, None, float(level), arguments.population)
            answers.append(replace(unread, note=str(error)))
    if len(faults) == len(answers):  # of one question, or a fault of them all
        raise faults[0]
    if arguments.json:
        print(as_json([each.as_json() for each in answers]))
    elif arguments.csv:
        print(as_csv([each.flat() for each in answers]))
    else:
        print("\n\n".join(map(answer_account, answers)))
    if faults:
        raise Unfit(f"{len(faults)} of {len(answers)} questions have an error, in their place")


def _answering(arguments: argparse.Namespace, record: Mapping[str, Any]) -> Callable[..., Answer]:
    """Return what answers a question from a record: ValueError, it holds no measurements."""
    try:
        if "tables" in record:
            if arguments.synthetic is not None:
                raise ValueError("--synthetic is for a record of one table: leave it out")
            return partial(ask_related, Measurements.of_tables(record))
        measurements = Measurements.from_record(record)
    except ValueError as error:
        raise ValueError(f"{arguments.file}: {error}") from error
    bound = stated_bound(record)
    workload = None if bound is None else _workload(record, measurements)
    rows = _synthetic(arguments, measurements)
    start = stated_start(record)
    return partial(ask, measurements, rows=rows, bound=bound, workload=workload, start=start)


def _print_table(arguments: argparse.Namespace, groups: Sequence[str], lines: Sequence[Line]) -> None:
    faults = [answer for line in lines for answer in line.answers if answer.known == ERROR]
    if len(faults) == sum(len(line.answers) for line in lines):
        raise ValueError(faults[0].note)
    if arguments.json:
        print(as_json([line.as_json(groups) for line in lines]))
    elif arguments.csv:
        print(as_csv([row for line in lines for row in line.flat(groups)]))
    else:
        cells = [["", *map(visible, groups)]]
        cells += [
            [visible(line.label), *(answer_cell(a, percent=line.percent) for a in line.answers)]
            for line in lines
        ]
        if arguments.markdown:
            cells = [[cell.replace("|", "\\|") for cell in row] for row in cells]
            rows = [f"| {' | '.join(row)} |" for row in cells]
            print("\n".join([rows[0], "|---" * len(cells[0]) + "|", *rows[1:]]))
        else:
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            padded = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
            print("\n".join(padded))
        answers = [answer for line in lines for answer in line.answers]
        legend = f"\nlevel {answers[0].level:.4g} of each interval"
        if any(answer.guess_low is not None for answer in answers):
            legend += "; *: a guess, if the mean of a bin is the same in every group"
        if any(answer.assumed is not None for answer in answers):
            legend += "; +: in the synthetic table, an assumption"
        print(legend)
    if faults:
        raise Unfit(f"{len(faults)} cells have an error: {faults[0].note}")


def _print_known(arguments: argparse.Namespace, known: Mapping[str, Any]) -> None:
    """Print the columns and what is known of pairs of them."""
    if arguments.json:
        print(as_json(known))
        return
    if arguments.csv:
        print(as_csv([{**each, "categories": "; ".join(each["categories"])} for each in known["columns"]]))
        return
    for each in known["columns"]:
        categories = ", ".join(map(visible, each["categories"][:SHOWN_CATEGORIES]))
        more = len(each["categories"]) - SHOWN_CATEGORIES
        categories += f" and {more} more" if more > 0 else ""
        groups = each["measured_groups"]
        measured = "" if groups >= len(each["categories"]) else f"; measured at {groups} groups"
        means = "; its means are measured" if each["means"] else ""
        print(f"{visible(each['column'])}: {each['kind']}: {categories}{measured}{means}")
    print()
    for pair in known["pairs"]:
        groups = ", ".join(" x ".join(map(str, sizes)) for sizes in pair["groups"])
        print(f"{' x '.join(map(visible, pair['columns']))}: {pair['known']}; at {groups} groups")
    print(f"{known['pairs_not_measured']} pairs of columns were not measured together")


def _workload(record: Mapping[str, Any], measurements: Measurements) -> Workload | None:
    """Return the queries of a record; None: they name attributes of one's own, which no record holds."""
    try:
        return workload_of(stated_queries(record), measurements.domain)
    except ValueError:
        return None


def _synthetic(arguments: argparse.Namespace, measurements: Measurements) -> Rows | None:
    """Read the synthetic table, if it is given: ValueError where it is none of this release."""
    if arguments.synthetic is None:
        if arguments.schema is not None:
            raise ValueError("--schema needs --synthetic: a record knows its own columns")
        return None
    schema = None if arguments.schema is None else read_schema(Path(arguments.schema))
    binary = all(size == 2 for size in measurements.domain.sizes)
    if schema is None and not binary:
        raise ValueError(
            "--synthetic: name the schema of the release with --schema, for not all columns are yes/no"
        )
    try:
        rows = file_source(arguments.synthetic, schema).read()
    except DataError as error:  # of a public table
        raise ValueError(
            f"{arguments.synthetic}: it does not fit {arguments.schema or 'yes/no columns'}: name the table "
            "of that release, and with --schema what its columns hold"
        ) from error
    measured, synthetic = (
        [(column.name, column.labels) for column in domain.columns]
        for domain in (measurements.domain, rows.domain)
    )
    if measured != synthetic:
        raise ValueError(
            f"{arguments.synthetic}: other columns or categories than those of {arguments.file}: name the "
            "table of that release, and with --schema what its columns hold"
        )
    return rows


def answer_account(answer: Answer) -> str:
    """Tell an answer in a few lines."""
    lines = [visible(answer.question)]
    whose = "the population" if answer.population else "the table"
    if answer.known == ERROR:
        return f"{lines[0]}\n  error: {visible(answer.note)}"
    if answer.known != "measured":
        lines.append("  not measured")
    elif answer.low is None:
        lines.append("  no interval")
    else:
        ends = answer.low, answer.high
        estimate, low, high = (number_told(value, ends) for value in (answer.estimate, *ends))
        sure = f"level {answer.level:.4g}, for {whose}"
        if answer.estimate is None:
            span = f"{low} to {high}" if high else f"{low} on"
            lines.append(f"  from {span}, wherever numbers lie in their bins ({sure})")
        else:
            lines.append(f"  {estimate} ({low} to {high}, {sure})")
    if answer.of:
        first, *others = answer.of
        named = "; ".join(others) if len(others) < SHOWN else f"{len(others)} others (--json names them)"
        lines.append(
            f"  measured: {visible(first)}" + (f"; combined with {visible(named)}" if others else "")
        )
    if answer.within is not None:
        low, high = (number_told(end, answer.within) for end in answer.within)
        by = "by what was measured of its columns and by rules"
        lines.append(f"  but from {low} to {high}, {by} (level {answer.level:.4g}, for {whose})")
    if answer.guess is not None:
        sure, guessed = "it has no level", (answer.guess_low, answer.guess_high)
        guess, low, high = (number_told(value, guessed) for value in (answer.guess, *guessed))
        if answer.guess_low is not None:
            sure = f"{low} to {high} under this assumption"
        lines.append(f"  a guess: {guess} ({sure})")
    if answer.note:
        lines.append(f"  {visible(answer.note)}")
    if answer.assumed is not None:
        lines.append(
            f"  {number_told(answer.assumed)} in the synthetic table: an assumption, not a measurement"
        )
    if answer.bound is not None:
        lines.append(f"  by its bound, the synthetic table is off by at most {promised(answer.bound)}")
    elif answer.known != "measured" and answer.within is None:
        lines.append("  no bound holds for this question")
    return "\n".join(lines)
