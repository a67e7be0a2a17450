"""The commands: most files add one to the parser and run it; the others have what several share."""

import json
import sys

from smalldb.files import unfinished

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


def print_failure(said: str, code: int) -> None:
    """Say on standard output, for machines, why a command failed."""
    if sys.stdout is not None:
        print(json.dumps({"error": said, "exit_code": code, "paid": unfinished.paid}))


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
