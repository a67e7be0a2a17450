"""The commands: most files add one to the parser and run it; the others have what several share."""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NoReturn, TypeAlias

from smalldb.files import unfinished
from smalldb.reporting import visible

# exit codes: what was asked for, or the data; and what the same command may do later or on another machine:
# for lack of memory, of a library, of room on the disk, of permissions, of a database
REFUSED, FAILED = 2, 3
BUG = 70  # an exit code: smalldb itself is wrong
INCOMPLETE = 4  # an exit code: the release is paid and stands, without all that was asked of it


class Unfit(ValueError):
    """What was asked is answered, and the answer is no: some question has none, or a table does not fit."""

    exit_code, answered = 1, True


class Incomplete(Exception):
    """What was paid for stands, without all that was asked of it: once more would be paid once more."""


def print_failure(message: str, code: int) -> None:
    """Say on standard output, for machines, why a command failed."""
    if sys.stdout is not None:
        print(json.dumps({"error": message, "exit_code": code, "paid": unfinished.paid}))


# the commands, with what the list of them says of each: known before the command's own file is imported
HELP = {
    "generate": "release a synthetic table from a file",
    "ask": "answer questions from a release's measurements, with intervals (reads no data)",
    "tables": "several tables from a release's public files, for intervals of any statistic (reads no data)",
    "plan": "what a release would do, cost and promise (reads no data)",
    "bounds": "what each theorem promises, and what it needs (reads no data)",
    "account": "total privacy loss of several releases from one table (reads no data)",
    "census": "for the curator: the exact law of the error (confidential)",
    "evaluate": "for the curator: how far a synthetic table is off (confidential)",
    "audit": "the exact worst privacy loss of a small instance (reads no data)",
    "schema": "draft a schema from column names, show one, or check a table by one",
    "ledger": "what was spent of a privacy budget (reads no data)",
    "app": "a page in the browser, from a file to a release",
}


class Help(argparse.HelpFormatter):
    """Help whose examples stay on one line, as they are typed."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("example: ") else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """A parser that refuses in one line, knows no abbreviations, and says what may have been meant."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=Help, **keywords)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse what is known; what is not is refused here, where the options of the command are known."""
        self._for_machines = "--json" in (args or ())
        if self._subparsers is None:  # before what is required: a mistyped option is often that
            self._refuse([*filter(self._is_unknown, takewhile("--".__ne__, args))])
        parsed, unknown = super().parse_known_args(args, namespace)
        many = [each.dest for each in self._get_positional_actions() if each.nargs == "*"]
        if many and not any(each.startswith("-") for each in unknown):  # what stands behind options
            getattr(parsed, many[0]).extend(unknown)
            unknown = []
        self._refuse(unknown)
        return parsed, unknown

    def _is_unknown(self, argument: str) -> bool:
        name = argument.partition("=")[0]
        return argument.startswith("--") and " " not in argument and name not in self._option_string_actions

    def _refuse(self, unknown: Sequence[str]) -> None:
        if unknown:
            option = unknown[0].partition("=")[0]
            # without dashes, which all of them have
            from queries.expressions import suggestion

            known = {name.lstrip("-"): name for name in self._option_string_actions}
            close = suggestion(option.lstrip("-"), known) if option.startswith("--") else ""
            near = re.sub("'(.*)'", lambda match: repr(known[match[1]]), close)
            self.error(f"unrecognized arguments: {' '.join(map(without_password, unknown))}{near}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from queries.expressions import suggestion

            known = [str(choice) for choice in action.choices]
            near = suggestion(str(value), known)
            choice = f"{without_password(str(value))!r}{near}"
            raise argparse.ArgumentError(action, f"invalid choice: {choice}; choose from {', '.join(known)}")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is; exit 2."""
        line = visible(f"{self.prog}: {message} (see {self.prog} --help)")
        if self._for_machines:
            print_failure(line, REFUSED)
        self.exit(REFUSED, f"{line}\n")


def add_options(command: argparse._ActionsContainer, options: Mapping[str, str], **how: Any) -> None:
    """Add options, each with what its value is called and its help; `how` has a type, choices or more."""
    for names, description in options.items():
        flags = [each for each in names.split() if each.startswith("-")] or names.split()[:1]
        settings = how.get(flags[-1].strip("-").replace("-", "_"), {})
        if not isinstance(settings, dict):
            settings = {"choices" if isinstance(settings, tuple) else "type": settings}
        if metavar := names.removeprefix(" ".join(flags)).strip():
            settings = {"metavar": metavar, **settings}
        command.add_argument(*flags, help=description, **(settings or {"action": "store_true"}))


def without_password(argument: str) -> str:
    """Return an argument as it was given, but for the password that a URL in it may hold."""
    from smalldb.files.inputs import shown

    url = re.search(r"[A-Za-z][A-Za-z0-9+._-]+://", argument, re.ASCII)
    return argument if url is None else argument[: url.start()] + shown(argument[url.start() :])


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
