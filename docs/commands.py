"""Write the reference of the command line from its parser.

python docs/commands.py
"""

import argparse
from pathlib import Path

from smalldb.cli import parser

HEAD = """\
# Command line

Every command with all its options, as `smalldb COMMAND --help` says. Written by `docs/commands.py` from the
parser. Exit codes: 0 done; 2 refused; 3 this machine cannot (its memory does not suffice, or a library cannot
be loaded); 4 the release is paid and stands, but several tables could not be drawn from it (another run would
pay again); 128 and the number of the signal that ended it: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP. One line on
standard error says why.

smalldb reads no file of defaults: an epsilon or a neighbouring relation that nobody sees on the command
line is easily forgotten. The schema keeps what belongs to a table (`queries`, `valid`), the ledger its
budget, and a script of your own the rest.
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
