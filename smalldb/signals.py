"""Signals that end a command; light, so that they are taken care of before anything else is imported."""

import os
import signal
from contextlib import suppress

from smalldb.files import unfinished
from smalldb.reporting import visible

SIGNALLED = 128  # an exit code: added to the number of the signal
ENDINGS = {
    "SIGINT": "interrupted",
    "SIGTERM": "terminated",
    "SIGHUP": "hung up",
}  # SIGHUP: not on every system


def take() -> None:
    """Leave at these signals; what the caller has ignored (nohup, a shell without job control) stays so."""
    for name in ENDINGS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, stop)


def ignore() -> None:
    """Let the process end well: a signal would kill it once Python has taken its handlers away."""
    for name in ENDINGS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def stop(number: int, *_: object) -> None:
    """Leave at a signal with nothing behind, at once: an exception can drown in compiled code.

    Where all is done, only the end is left, and a retry would pay again: the signal is ignored.
    """
    if unfinished.done:
        return
    if unfinished.placing:
        unfinished.pending_signal = number
        return
    unfinished.abandon()
    ending = ENDINGS[signal.Signals(number).name]
    line = visible(f"smalldb: {ending}; unfinished files were removed{unfinished.consequence()}")
    with suppress(OSError):  # a terminal that hung up takes no line
        os.write(2, f"{line}\n".encode())
    os._exit(SIGNALLED + number)
