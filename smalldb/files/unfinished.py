"""Files that are begun and not yet in their places; light, so that Ctrl-C finds it from the first moment."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

unfinished: "set[Path]" = set()
paid = False  # whether a ledger holds what this process has not released yet


def abandon() -> None:
    """Remove what all open `smalldb.files.outputs.Outputs` have begun: for a process that is about to end."""
    for begun in unfinished:
        begun.unlink(missing_ok=True)
