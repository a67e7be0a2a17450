"""`app`: a page in the browser, from a file to a release."""

import argparse
from pathlib import Path

from smalldb.app.serving import serve
from smalldb.commands import HELP, Commands


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "app",
        help=HELP["app"],
        description="Serve a page to the browser of this machine, with five steps: choose a table, "
        "describe its columns, see what a budget buys, release, ask. Each step shows the "
        "command and the Python that do the same. It sends nothing to other machines. Ctrl-C "
        "stops it; a release that was started continues.",
        epilog="example: smalldb app survey",
    )
    command.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        default=".",
        help="the folder of the tables and the releases (default: here)",
    )
    command.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    command.set_defaults(run=run_app)


def run_app(arguments: argparse.Namespace) -> None:
    """Serve the page."""
    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder: make it, and put your tables there")
    serve(folder.resolve(), browser=not arguments.no_browser)
