"""A new folder of output files, which appears whole or not at all."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import final

from smalldb.files import unfinished as open_files
from smalldb.files.open_folders import POSIX, OpenFolder
from smalldb.files.outputs import fill, hidden, lock, named, placing, sweep, take_room, unique
from smalldb.files.unfinished import unfinished


@final
class OutputFolder:
    """A new folder of files, written beside its place and moved there at once; as `Outputs`."""

    def __init__(self, path: str, begun: bool = False) -> None:
        if os.path.lexists(path) and not os.path.isdir(path):
            raise ValueError(f"{path!r} is a file: name a folder that is new or empty")
        self._taken = not path or (os.path.isdir(path) and bool(os.listdir(path)))
        self._path, self._standing = path, False
        if not begun or not path:
            self.check_empty()
        if os.path.ismount(path):
            raise ValueError(f"{path!r} is a mount point, which cannot be replaced: name a folder in it")
        place = Path(os.path.realpath(path))
        with named(path):
            self._outer, self._name = OpenFolder(place.parent), place.name
            try:
                sweep(self._outer, "parts", os.O_RDONLY, self._remove)
                while not self._begins():
                    pass
            except BaseException:
                self._outer.close()
                raise

    def _begins(self) -> bool:
        """Make and lock the folder that is written; False: another process swept it in between."""
        self._temporary = hidden(self._name, f"{unique()}.parts")
        begun = self._outer.path / self._temporary
        unfinished.add(begun)  # before it is there: a signal may come in between
        try:
            os.mkdir(self._outer.at(self._temporary), dir_fd=self._outer.handle)
            with suppress(FileNotFoundError):
                self._files = OpenFolder(self._temporary, self._outer)
                handle = self._files.handle
                if handle is None or (
                    lock(handle) is not False and self._outer.stat(self._temporary) is not None
                ):
                    return True
                self._files.close()
        except OSError:
            unfinished.discard(begun)
            raise
        unfinished.discard(begun)
        return False

    def _remove(self, name: str) -> None:
        rmtree(self._outer.at(name), ignore_errors=True, dir_fd=self._outer.handle)

    def check_empty(self) -> None:
        """Refuse a place where something is: ValueError."""
        if self._taken:
            raise ValueError(f"the folder {self._path!r} is not empty: name one that is new or empty")

    def stands(self, files: Mapping[str, str]) -> bool:
        """Tell whether an earlier run has placed the folder, by files of its own; ValueError: another has."""
        if not self._taken:
            return False
        for name, content in files.items():
            try:
                present = Path(self._path, name).read_bytes()
            except OSError:
                present = b""
            if present != content.encode():
                self.check_empty()
        self._standing = True
        return True

    def reserve(self, name: str, size: int) -> None:
        """Take so many bytes of the disk for a file that will be written; OSError: there is no room."""
        with named(self._path):
            handle = self._files.open(name, os.O_CREAT | os.O_WRONLY, 0o666)
        with os.fdopen(handle, "wb"):
            take_room(handle, size, self._path)

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file's whole content, durably."""
        with named(self._path):
            handle = self._files.open(name, os.O_CREAT | os.O_WRONLY, 0o666)
        fill(handle, content.encode() if isinstance(content, str) else content, self._path)

    def remove(self, name: str) -> None:
        """Remove a file that is not written after all."""
        self._files.unlink(name)

    def place(self) -> None:
        """Move the folder to its place; a command is done then."""
        if self._standing:
            open_files.done = True
            return
        with named(self._path), placing(last=True):
            self._files.sync()
            if not POSIX and os.path.isdir(self._path):
                os.rmdir(self._path)  # an empty folder in the way is replaced by itself elsewhere
            self._outer.replace(self._temporary, self._name)
            unfinished.discard(self._outer.path / self._temporary)
        with named(self._path):
            self._outer.sync()

    def close(self) -> None:
        """Let go of it, and remove it unless it was placed."""
        self._files.close()
        self._remove(self._temporary)
        unfinished.discard(self._outer.path / self._temporary)
        self._outer.close()
