"""Inputs that can be read only once, made such that they can be read again; lines that end."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TextIO, final

from queries import DataError

LONGEST = 1 << 24  # characters of a line, or of a record of several lines
TOO_LONG = f"a line is longer than {LONGEST:,} characters: a table has a line for each row"
BINARY = (".parquet", ".pq")  # files that have no lines

_open: list[int] = []  # for the rest of the process


@final
class Bounded:
    """The lines of a text file, one after another; a device may have one that never ends.

    Attributes
    ----------
    read
        Characters of the record so far: the reader sets it to 0 where one ends.
    """

    def __init__(self, file: TextIO) -> None:
        self._file, self._line, self.read = file, file.readline, 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._line(LONGEST + 1)
        if not line:
            raise StopIteration
        self.read += len(line)
        if self.read > LONGEST:
            raise DataError(f"{getattr(self._file, 'name', 'the table')}: {TOO_LONG}")
        return line


def rereadable(path: str) -> str:
    """Return a path from which a table can be read several times; "-" is standard input.

    A pipe is copied to a file without a name, which vanishes with the process, however that ends.

    Raises
    ------
    OSError
        It cannot be read, or there is no room for it.
    ValueError
        Its first line does not end.
    """
    if path == "-":
        path = "/dev/stdin"
    if not os.path.exists(path) or not stat.S_ISFIFO(os.stat(path).st_mode):
        return path
    with open(path, "rb") as pipe, _named_folder(), tempfile.TemporaryFile() as copy:
        begun = pipe.read(LONGEST + 1)
        if len(begun) > LONGEST and not {*b"\r\n"} & {*begun} and not path.lower().endswith(BINARY):
            raise ValueError(f"{path}: {TOO_LONG}")
        copy.write(begun)
        shutil.copyfileobj(pipe, copy)
        copy.flush()
        _open.append(os.dup(copy.fileno()))
    return f"/dev/fd/{_open[-1]}"


@contextmanager
def _named_folder() -> Iterator[None]:
    """Name the folder of temporary files in an error that names nothing: it may be full."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, error.filename or tempfile.gettempdir()) from error
