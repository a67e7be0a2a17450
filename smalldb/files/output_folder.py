"""A folder of outputs that appears whole or not at all."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from shutil import rmtree

from smalldb.files import unfinished as open_files
from smalldb.files.outputs import POSIX, beside, fill, lock, named, placing, sweep, sync_folder, take_room
from smalldb.files.unfinished import unfinished

_numbers = count()  # of the folders that are begun


class OutputFolder:
    """
    A new folder of files, written beside its place and moved there at once.

    Opening proves that the place can be written. `close` removes what was begun, unless it was placed. What a
    killed process has begun is removed by the next one that writes there.

    Parameters
    ----------
    path
        The place: nothing, or an empty folder.
    begun
        Whether an earlier run may have placed the folder, and been killed then: see `stands`.

    Raises
    ------
    OSError
        From the constructor, with the path: the place cannot be written.
    ValueError
        From the constructor: something is there, or it is a mount point.
    """

    def __init__(self, path: str, begun: bool = False) -> None:
        if os.path.lexists(path) and not os.path.isdir(path):
            raise ValueError(f"{path!r} is a file: name a folder that is new or empty")
        self._taken = not path or (os.path.isdir(path) and bool(os.listdir(path)))
        self._path, self._standing = path, False
        if not begun or not path:
            self.check_empty()
        if os.path.ismount(path):
            raise ValueError(f"{path!r} is a mount point, which cannot be replaced: name a folder in it")
        with named(path):
            sweep(path, "parts", os.O_RDONLY, partial(rmtree, ignore_errors=True))
            while not self._begins():
                pass

    def _begins(self) -> bool:
        """Make and lock the folder that is written; False: another process swept it in between."""
        self._begun = beside(self._path, f"{os.getpid():x}-{time.time_ns():x}-{next(_numbers)}.parts")
        unfinished.add(self._begun)  # before it is there: a signal may come in between
        self._handle: int | None = None
        try:
            os.mkdir(self._begun)
            with suppress(FileNotFoundError):
                self._handle = os.open(self._begun, os.O_RDONLY) if POSIX else None
        except OSError:
            unfinished.discard(self._begun)
            raise
        if not POSIX or (
            self._handle is not None and lock(self._handle) is not False and self._begun.exists()
        ):
            return True
        if self._handle is not None:
            os.close(self._handle)
        unfinished.discard(self._begun)
        return False

    def check_empty(self) -> None:
        """Refuse a place where something is: ValueError."""
        if self._taken:
            raise ValueError(f"the folder {self._path!r} is not empty: name one that is new or empty")

    def stands(self, files: Mapping[str, str]) -> bool:
        """Tell whether an earlier run has placed the folder, by files of it that no other release has.

        ValueError: something else is there.
        """
        if not self._taken:
            return False
        for name, content in files.items():
            try:
                found = Path(self._path, name).read_bytes()
            except OSError:
                found = b""
            if found != content.encode():
                self.check_empty()
        self._standing = True
        return True

    def reserve(self, name: str, size: int) -> None:
        """Take so many bytes of the disk for a file that will be written; OSError: there is no room."""
        with named(self._path), open(self._begun / name, "ab") as file:
            take_room(file.fileno(), size, self._path)

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file's whole content, durably."""
        with named(self._path):
            (self._begun / name).touch()
        fill(self._begun / name, content.encode() if isinstance(content, str) else content, self._path)

    def remove(self, name: str) -> None:
        """Remove a file that is not written after all."""
        (self._begun / name).unlink(missing_ok=True)

    def place(self) -> None:
        """Move the folder to its place; a command is done then."""
        if self._standing:
            open_files.done = True
            return
        with named(self._path), placing(last=True):
            sync_folder(self._begun)
            if not POSIX and os.path.isdir(self._path):
                os.rmdir(self._path)  # an empty folder in the way is replaced by itself elsewhere
            self._begun.rename(os.path.realpath(self._path))
            unfinished.discard(self._begun)
        with suppress(PermissionError):
            sync_folder(self._begun.parent)

    def close(self) -> None:
        """Let go of it, and remove it unless it was placed."""
        if self._handle is not None:
            os.close(self._handle)
        rmtree(self._begun, ignore_errors=True)
        unfinished.discard(self._begun)
