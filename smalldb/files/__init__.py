"""What is written: whole files or none, and parts of long runs."""

from collections.abc import Iterator
from contextlib import contextmanager


class LibraryMissing(ValueError):
    """A library is not installed: once it is, the same command goes."""

    exit_code = 3  # of commands


@contextmanager
def of_extra(package: str, extra: str, what: str, instead: str = "") -> Iterator[None]:
    """Import an optional package within; `instead`: what else could be done."""
    try:
        yield
    except ImportError as error:
        raise LibraryMissing(f"{what} need {package}: pip install 'smalldb-dp[{extra}]'{instead}") from error
