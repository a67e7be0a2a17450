"""Inputs that can be read only once, such as standard input, made such that they can be read again."""

import os
import shutil
import stat
import tempfile

_open: list[int] = []  # for the rest of the process


def rereadable(path: str) -> str:
    """Return a path from which a table can be read several times; "-" is standard input.

    A pipe is copied to a file without a name, which vanishes with the process, however that ends.

    Raises
    ------
    OSError
        It cannot be read.
    """
    if path == "-":
        path = "/dev/stdin"
    if not os.path.exists(path) or not stat.S_ISFIFO(os.stat(path).st_mode):
        return path
    with open(path, "rb") as pipe, tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(pipe, copy)
        copy.flush()
        _open.append(os.dup(copy.fileno()))
    return f"/dev/fd/{_open[-1]}"
