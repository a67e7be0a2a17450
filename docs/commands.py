"""Write the reference of the command line from its parser.

python docs/commands.py
"""

import argparse
from pathlib import Path

from smalldb.cli import parser

HEAD = """\
# Command line

Every command with all its options, as `smalldb COMMAND --help` shows them. If a command is refused or fails, one line on
standard error says why; with `--json`, a line of JSON on standard output does, too (`error`, `exit_code`, `paid`). The
exit code says what to do:

| code | meaning | what to do |
|---|---|---|
| 0 | Done. | |
| 1 | Partly answered: one of several questions has no answer, or `schema check` says that a table does not fit. | Correct the question, the schema or the data. |
| 2 | Refused: an argument, a schema, a missing file, or the data. | Correct what the message names. |
| 3 | This machine cannot do it now: memory, a library, disk space, a permission, a database that is locked or cannot be reached, another process that works on this release. | Remove the cause, or wait, and repeat the command. If it had paid, it continues and does not pay again. |
| 4 | The release is paid and written, but several tables could not be drawn from it. | Use it as it is: another run would pay again. |
| 5 | The budget of the ledger is too small. Nothing is spent. | Use a smaller epsilon, or stop. |
| 70 | A defect of smalldb; standard error says where. | Report it. If it had paid, keep the folder beside the ledger. |
| 128 + number | A signal ended it: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP. (A signal after the last output changes nothing, and the code is 0.) | Repeat the command. |

smalldb reads no file of defaults, so that every epsilon and neighbouring relation is visible in the command. The schema
holds what belongs to a table (`queries`, `valid`), and the ledger its budget. An output that is there already is
replaced, when the new one is whole; an input never is.

This page is written by `docs/commands.py` from the parser.
"""


def said(text):
    """Return a help text as a table's cell holds it."""
    return (text or "").replace("%%", "%").replace("|", "\\|").replace("\n", " ")


def names_of(action):
    """Return how an option or argument is written."""
    value = action.metavar or ("" if action.nargs == 0 else (action.dest or "").upper())
    if action.choices and action.metavar is None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    value = " ".join(value) if isinstance(value, tuple) else value
    if not action.option_strings:
        return f"`{value}`"
    shown = f"{', '.join(action.option_strings)} {value}".strip().replace("|", "\\|")
    return f"`{shown}`"


def described(title, command, depth):
    """Return the part about a command, with those of its own commands."""
    parts = [f"\n{'#' * depth} `{title}`\n\n{said(command.description)}\n"]
    if command.epilog:
        parts.append(f"\n```console\n$ {command.epilog.removeprefix('example: ')}\n```\n")
    groups = (argparse._SubParsersAction, argparse._HelpAction)
    own = [action for action in command._actions if not isinstance(action, groups)]
    shown = [action for action in own if action.help is not argparse.SUPPRESS]
    if shown:
        parts.append("\n| option | what it does |\n|---|---|\n")
    parts += [f"| {names_of(action)} | {said(action.help)} |\n" for action in shown]
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                parts.append(described(f"{title} {name}", below, depth + 1))
    return "".join(parts)


def text():
    """Return the page."""
    top = parser()
    commands = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    return HEAD + "".join(
        described(f"smalldb {name}", command, 2) for name, command in commands.choices.items()
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(text(), encoding="utf-8")
