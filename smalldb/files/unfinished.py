"""What is begun and not yet in its place; light, so that a signal finds it from the first moment."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

unfinished: "set[Path]" = set()
paid = False  # whether a ledger holds what this process has not released yet
folder = ""  # from which a release that was paid goes on
placing = False  # whether files are being moved to their places: all are, before a signal ends the process
pending_signal = 0  # the signal that waits for it
done = False  # whether all outputs of the process are in their places: it ends well, whatever signal comes


def abandon() -> None:
    """Remove all files and folders of outputs that were begun: for a process that is about to end."""
    for begun in list(unfinished):
        if begun.is_dir():
            from shutil import rmtree

            rmtree(begun, ignore_errors=True)
        else:
            begun.unlink(missing_ok=True)


def consequence() -> str:
    """Say what becomes of a payment, behind the reason why the process ends."""
    if not paid:
        return ""
    if folder:
        return f"; the ledger is paid: the same command goes on from {folder}, and pays no second time"
    return "; what the ledger says is spent stays spent"
