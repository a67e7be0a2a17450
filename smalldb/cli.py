"""The command line: the parser of all commands, and exit codes."""

import atexit
import errno
import gc
import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from traceback import print_exc, walk_tb
from typing import TYPE_CHECKING, NoReturn

from smalldb import signals
from smalldb.commands import BUG, FAILED, HELP, INCOMPLETE, REFUSED, Incomplete, print_failure
from smalldb.files import unfinished
from smalldb.reporting import visible
from smalldb.version import __version__

if TYPE_CHECKING:
    from smalldb.commands import Parser

DONE = 0  # an exit code
LIGHT = ("-h", "--help", "-V", "--version")  # options that need no command
SELDOM = 50_000  # objects made before Python looks for cycles among them; imports make many, which all stay
NAMES = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EINVAL,
)
FILES = ("DATA", "FILE")  # what help calls files, beside all that has a dot: OUT.csv
WELCOME = """\
smalldb: synthetic tables under pure differential privacy. Three commands to begin with:

  smalldb generate data.csv --epsilon 1 -o synthetic.csv   release a synthetic table of yes/no columns
  smalldb schema init data.csv -o schema.toml              draft what other columns hold (generate --schema)
  smalldb plan --attributes 6 --n 5000 --epsilon 1         what a release would do and promise; no data

All commands: smalldb help. One of them: smalldb help generate
"""


@cache
def parser(*chosen: str) -> "Parser":
    """Build the parser of all commands, or with the options of the chosen ones only.

    What they need is imported here: late, as it takes a second, and where Ctrl-C is taken care of already.
    """
    from smalldb.commands import Parser

    top = Parser(
        prog="smalldb",
        description="Synthetic tables under pure differential privacy.",
        epilog="example: smalldb generate data.csv --epsilon 1 -o synthetic.csv",
    )
    top.add_argument("-V", "--version", action="version", version=f"smalldb {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, description in HELP.items():
        if name in (chosen or HELP):
            import_module(f"smalldb.commands.{name}").add(commands)
        else:
            commands.add_parser(name, help=description)
    with suppress(ImportError):
        import shtab  # of the extra "completion"

        shtab.add_argument_to(top, "--print-completion", help="shell completion: bash, zsh or tcsh")
        _complete(top, shtab.FILE, shtab.DIRECTORY)
    return top


def _complete(top: "Parser", file: object, folder: object) -> None:
    """Have the shell complete the names of files and folders; they are known by what help calls them."""
    for action in top._actions:
        if isinstance(action.choices, dict):
            for command in action.choices.values():
                _complete(command, file, folder)
        elif action.metavar == "DIR":
            action.complete = folder  # type: ignore[attr-defined]
        elif isinstance(action.metavar, str) and (action.metavar in FILES or "." in action.metavar):
            action.complete = file  # type: ignore[attr-defined]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0 done, others as `commands` has them."""
    if sys.stderr is None:  # closed by the caller
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
    unfinished.paid, unfinished.folder, unfinished.done = False, "", False
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words:
        sys.stderr.write(WELCOME)
        return REFUSED
    if words[0] == "help":
        words = [*words[1:], "--help"]
    answered = False  # whether standard output has what was asked for: one document, and no second one
    try:
        _run(words)
    except Incomplete as error:
        code, message, answered = INCOMPLETE, str(error), True
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not unfinished.paid:
            return REFUSED
        code, message = REFUSED, "standard output was closed"
    except MemoryError:  # its text may say how much was asked for, which may depend on the data
        code = FAILED
        message = "this machine has too little memory: free some, or use a larger machine"
    except Exception as error:
        library = _library(error)
        if library is not None:
            code, message = FAILED, f"{library} cannot be loaded ({_cause(error)}): reinstall it"
        elif isinstance(error, ImportError) or not isinstance(error, OSError | ValueError | TypeError):
            print_exc()
            code, message = BUG, f"smalldb has a defect ({type(error).__name__}): report the lines above"
        elif isinstance(error, OSError):
            code = REFUSED if error.errno in NAMES else FAILED
            message = f"{_location(error)}: {_reason(error)}"
        else:
            code, message = getattr(error, "exit_code", REFUSED), str(error)
            answered = getattr(error, "answered", False)
    else:
        return DONE
    message = visible(message + unfinished.consequence())
    print(f"smalldb: {message}", file=sys.stderr)
    if "--json" in words and not answered:
        print_failure(message, code)
    return code


def _run(words: Sequence[str]) -> None:
    """Run a command with its options."""
    light = words[0] in (*HELP, *LIGHT)  # others need all: completions, what was mistyped before a command
    parsed = (parser(words[0]) if light else parser()).parse_args(words)
    parsed.run(parsed)


def _library(error: BaseException) -> str | None:
    """Name the library whose import failed; None: it was no import of one."""
    # what a module does when it is imported runs in a frame of this name
    frames = [frame for frame, _ in walk_tb(error.__traceback__) if frame.f_code.co_name == "<module>"]
    names = [str(frame.f_globals.get("__name__")) for frame in frames[-1:]]
    if isinstance(error, ImportError) and error.name is not None:
        names.append(error.name)
    libraries = (name.partition(".")[0] for name in names)
    return next((name for name in libraries if name not in ("__main__", "queries", "smalldb")), None)


def _cause(error: BaseException) -> str:
    """Return the first line of what an import failed for in the first place."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _location(error: OSError) -> str:
    """Say where the operating system refuses."""
    modules = {frame.f_globals.get("__name__") for frame, _ in walk_tb(error.__traceback__)}
    if "numba.core.caching" in modules:
        return "the cache of compiled code (NUMBA_CACHE_DIR names another place)"
    return error.filename or "output"


def _reason(error: OSError) -> str:
    """Say what the operating system has against a file."""
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        folder = os.path.dirname(error.filename)
        if folder and not os.path.isdir(folder):
            return f"no such folder: {folder}"
        if not os.path.lexists(error.filename):
            return f"no such file in {folder or 'this folder'}"
    return (error.strerror or str(error)).lower()


def run() -> NoReturn:
    """Entry point of the console script."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # what others read is UTF-8, whatever the locale
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    warnings.formatwarning = lambda message, *_, **__: visible(f"smalldb: {message}") + "\n"
    gc.set_threshold(SELDOM)
    atexit.register(gc.freeze)  # nor is there any use in looking for them at the end
    signals.take()
    code = main()
    if unfinished.done:
        signals.ignore()
    sys.exit(code)
