"""Inputs: what their names say, how far reading is, and how what is read once is read again."""

import glob
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self


class NoBar:
    """A bar that nobody sees: `tqdm` makes locks even for such, which takes longer than a small table."""

    total: float | None = None
    n = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, done: float = 1) -> None:
        """Show nothing."""


def progress_bar(shown: bool, **options: Any) -> Any:
    """Return a bar of `tqdm`, made with its options; `tqdm` is imported only for one that is shown."""
    if not shown:
        return NoBar()
    from tqdm import tqdm

    return tqdm(**options)


LONGEST = 1 << 24  # bytes of a first line
TOO_LONG = f"its first line is longer than {LONGEST:,} bytes: a table has a line for each row"

_open: list[int] = []  # for the rest of the process
_names: dict[str, str] = {}  # of what was copied
PARQUET = (".parquet", ".pq")
_PATTERN = re.compile(r"[*?[]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+._-]+://", re.ASCII)
_PLAIN_URL = re.compile(
    r"(?P<scheme>[^:/]+://)(?:[^/@:?#]*(?::[^/@:?#]*)?@)?(?P<where>[^/@:?#]*(?::[0-9]*)?(?:/[^@?#]*)?)"
    r"(?:\?[^@#]*)?"
)


def rereadable(path: str, lines: bool = True) -> str:
    """Return a path from which a table, of `lines` or not, can be read several times; "-": standard input."""
    # a pipe is copied to a file without a name, which vanishes with the process, however that ends
    if path == "-":
        path = "/dev/stdin"
    if is_url(path) or not os.path.exists(path) or not stat.S_ISFIFO(os.stat(path).st_mode):
        return path
    with open(path, "rb") as pipe, _named_folder(), tempfile.TemporaryFile() as copy:
        begun = pipe.read(LONGEST + 1)
        if len(begun) > LONGEST and not {*b"\r\n"} & {*begun} and lines:
            raise ValueError(f"{path}: {TOO_LONG}")
        copy.write(begun)
        shutil.copyfileobj(pipe, copy)
        copy.flush()
        _open.append(os.dup(copy.fileno()))
    copied = f"/dev/fd/{_open[-1]}"
    _names[copied] = path
    return copied


def name_of(path: str) -> str:
    """Return the name of a file, whose suffix says its format; of the copy of a pipe that of the pipe."""
    return _names.get(path, path)


def is_url(path: str) -> bool:
    """Tell whether a name is the URL of a database, and of no file."""
    return _URL.match(path) is not None


def shown(path: str) -> str:
    """Return the name of an input for people: a URL without its user, its password and its options."""
    if not is_url(path):
        return name_of(path)
    plain = _PLAIN_URL.fullmatch(path)  # where it is not, a password could end anywhere
    return f"{path.partition('://')[0]}://***" if plain is None else plain["scheme"] + plain["where"]


def files_of(path: str) -> list[str]:
    """Return the files that a name means, sorted: one, those of Parquet in a folder, or of a pattern."""
    # as programs that write such folders agree, what begins with a dot or an underscore is none of the table
    if is_url(path):
        return []
    if os.path.isdir(path):
        paths = glob.glob(os.path.join(glob.escape(path), "**", "*"), recursive=True)
        paths = [each for each in paths if each.lower().endswith(PARQUET)]
    elif _PATTERN.search(path) and not os.path.exists(path):
        paths = glob.glob(path, recursive=True)
    else:
        return [path]
    return sorted(each for each in paths if os.path.isfile(each) and os.path.basename(each)[0] not in "._")


def folders_of(path: str, file: str) -> list[str]:
    """Return the names of the folders that lead to one of the `files_of` a name, from what it leaves open."""
    fixed = _PATTERN.split(path)[0] if not os.path.isdir(path) else os.path.join(path, "")
    return file[len(os.path.dirname(fixed)) :].lstrip(os.sep).split(os.sep)[:-1]


def record_in(path: str | os.PathLike[str]) -> Any:
    """Read the JSON of a record, or of its measurements; ValueError: it is none, and what to give."""
    name = os.fspath(path)
    if os.path.isfile(inside := os.path.join(name, "record.json")):
        raise ValueError(f"{name!r} is a folder: give the record in it, {inside}")
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{name!r} is not a record: expected JSON, as --record or --measurements wrote it"
        ) from error


@contextmanager
def _named_folder() -> Iterator[None]:
    """Name the folder of temporary files in an error that names nothing: it may be full."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, error.filename or tempfile.gettempdir()) from error
