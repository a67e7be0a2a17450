"""Output files and folders that appear whole or not at all; input files that stay as they are."""

import errno
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from shutil import rmtree
from stat import S_IMODE, S_ISDIR, S_ISREG
from types import TracebackType
from typing import final

from smalldb.files import unfinished as open_files
from smalldb.files.inputs import files_of
from smalldb.files.open_folders import POSIX, UNWAITING, OpenFolder
from smalldb.files.unfinished import unfinished

MOST_BYTES = 255  # of a file's name
ENDING_BYTES = 64  # of these, kept for the ending of what stands beside a file, and two points

_numbers = count()  # of the files that are begun
_held: dict[Path, int] = {}  # these files, open and locked: of a process that died, none is


class Outputs:
    """Files that are written beside their places and moved there together at the end, in the order given.

    Opening proves that each place can be written, before any work. Leaving the ``with`` block with an
    error (Ctrl-C too) removes what was begun; an existing file is replaced only on success. A place
    that is not a regular file (a pipe, a device) is written at the end.

    A process that is killed while files are moved leaves the first ones new and the others as they were: name
    last what nobody may find without the others. Then the folders are synced. What a killed process has begun
    is removed by the next one that writes there. Those that are `confidential` get mode 0600, whatever stood
    there; others keep their mode, or the umask's.

    A path that is a link is followed once, when it is opened; what is put there or on the way later is not.
    `below` a folder no link is followed: ValueError, OSError.
    """

    def __init__(
        self,
        paths: Iterable[str],
        confidential: Collection[str] = (),
        *,
        last: bool = False,
        below: Path | None = None,
    ) -> None:
        self._kept: dict[str, bytes] = {}
        self._ends = last
        self._last: Callable[[], None] | None = None
        self._begun: dict[str, _Begun | None] = {}
        try:
            for path in paths:
                if path in self._begun:
                    raise ValueError(f"two outputs cannot go to one place, {path!r}")
                self._begun[path] = _begin(path, below, confidential=path in confidential)
            targets = [begun.folder.path / begun.name for begun in self._begun.values() if begun is not None]
            if len(set(targets)) < len(targets):
                raise ValueError("two outputs cannot go to one file")
        except BaseException:
            self._remove()
            raise

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file's whole content (text in UTF-8) beside its place."""
        begun = self._begun[path]
        raw = content.encode() if isinstance(content, str) else content
        if begun is None:
            self._kept[path] = raw
        else:
            fill(begun.opened(), raw, path)

    def reserve(self, path: str, size: int) -> None:
        """Take so many bytes of the disk for a file that will be written, where the system can do that.

        OSError: there is no room.
        """
        begun = self._begun[path]
        if begun is not None and begun.file in _held:
            take_room(_held[begun.file], size, path)

    def then(self, last: Callable[[], None]) -> None:
        """Do something once all files are in their places: say, write to standard output."""
        self._last = last

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._place()
        finally:
            self._remove()

    def _place(self) -> None:
        """Move all to their places; a signal that comes meanwhile waits."""
        begun = {path: file for path, file in self._begun.items() if file is not None}
        with placing(last=self._ends and not self._kept and self._last is None):
            for path, file in begun.items():
                with named(path):
                    file.folder.replace(file.own, file.name)
        folders = {file.folder.path: (path, file.folder) for path, file in begun.items()}
        for path, folder in folders.values():
            with named(path):
                folder.sync()
        for path, raw in self._kept.items():  # what is written into a pipe cannot be taken back
            with named(path), Path(path).open("ab") as pipe:
                pipe.write(raw)
        if self._last is not None:
            self._last()
        open_files.done |= self._ends

    def _remove(self) -> None:
        for begun in self._begun.values():
            if begun is not None:
                _drop(begun)


def create(path: str, content: bytes) -> None:
    """Make a file that is whole and durable from its first moment; one that is there already stays.

    Of several processes that do so at once one makes the file.
    """
    if os.path.exists(path):
        with OpenFolder(os.path.dirname(os.path.realpath(path))) as folder:
            _sweep_files(folder)
        return
    begun = _begin(path)
    if begun is None:
        return
    try:
        fill(begun.opened(), content, path)
        with named(path):
            begun.folder.link(begun.own, begun.name)
            begun.folder.sync()
    finally:
        _drop(begun)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Wait until the disk has the names of the files in a folder, where the file system can tell."""
    with named(os.fspath(folder)), OpenFolder(folder or ".") as opened:
        opened.sync()


def beside(path: str, ending: str) -> Path:
    """Return a hidden place in the folder of a file, named after it as far as a name may be long.

    >>> beside("/data/people.csv", "part").name
    '.people.csv.part'
    >>> len(beside("/data/" + "x" * 255, "part").name)
    197
    """
    target = Path(os.path.realpath(path))
    return target.with_name(_hidden(target.name, ending))


def _hidden(name: str, ending: str) -> str:
    shown = os.fsencode(name)[: MOST_BYTES - ENDING_BYTES].decode("utf-8", "ignore")
    return f".{shown}.{ending}"


def all_beside(path: str, endings: str) -> list[Path]:
    """Return what stands `beside` a file, by a regular expression for the endings."""
    begin = beside(path, "")
    name = re.compile(re.escape(begin.name) + f"(?:{endings})")
    return [begin.with_name(found) for found in os.listdir(begin.parent) if name.fullmatch(found)]


@contextmanager
def placing(last: bool) -> Iterator[None]:
    """Have signals wait for the ``with`` block; if it is the `last` that a command does, they are ignored."""
    open_files.placing = True
    try:
        yield
        open_files.done |= last
    finally:
        open_files.placing = False
        waiting, open_files.pending_signal = open_files.pending_signal, 0
        if waiting:
            os.kill(os.getpid(), waiting)


@contextmanager
def unchanged(path: str) -> Iterator[None]:
    """Refuse, at the end of the ``with`` block, a regular file that was changed meanwhile, or several."""

    def state() -> tuple[int, ...]:
        found = map(os.stat, files_of(path))
        return tuple(part for file in found for part in (file.st_ino, file.st_size, file.st_mtime_ns))

    before = state()  # of a database none: it sees to it itself that a query sees one state
    yield
    if all(map(os.path.isfile, files_of(path))) and state() != before:
        raise ValueError(f"{path} changed while it was read")


@final
@dataclass(frozen=True, slots=True)
class _Begun:
    """A file beside the place that bears a name in an open folder; its own name, until it is moved there."""

    folder: OpenFolder
    name: str
    own: str

    @property
    def file(self) -> Path:
        return self.folder.path / self.own

    def opened(self) -> int:
        """Return a handle of it, to be closed."""
        held = _held.get(self.file)
        return os.dup(held) if held is not None else self.folder.open(self.own, os.O_WRONLY)


def _begin(path: str, below: Path | None = None, *, confidential: bool = False) -> _Begun | None:
    """Make an empty file beside the place; None where the place is not a regular file."""
    if not path:
        raise ValueError("an output needs a file name")
    # what stands under /dev may be a link to a file that others write to as well; /dev/shm is a disk
    special = not os.path.isfile(path) or re.match("/(dev/(?!shm/)|proc/)", os.path.abspath(path))
    if below is None and special and os.path.exists(path) and not os.path.isdir(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "cannot be written", path)
        return None
    with named(path):
        if below is None:
            place = Path(os.path.realpath(path))
            folder, name = OpenFolder(place.parent), place.name
        else:
            *above, name = path.split("/")
            folder = OpenFolder.below(below, *above)
        try:
            return _begun_in(folder, name, path, confidential)
        except BaseException:
            folder.close()
            raise


def _begun_in(folder: OpenFolder, name: str, path: str, confidential: bool) -> _Begun:
    """Make an empty file beside a place in a folder, with the mode that it is to have."""
    there = folder.stat(name)
    if not name or (there is not None and S_ISDIR(there.st_mode)):
        raise IsADirectoryError(21, "is a directory", path)
    if there is not None:
        if not S_ISREG(there.st_mode):
            raise ValueError(f"{path} is a link, or no file: put the file itself into the folder")
        if not os.access(folder.at(name), os.W_OK, dir_fd=folder.handle):
            raise PermissionError(13, "cannot be written", path)
    mode = 0o666 & ~_umask() if there is None else S_IMODE(there.st_mode) & 0o777
    _sweep_files(folder)
    begun = _held_file(folder, name)
    if not confidential:  # as it was made: mode 0600
        os.chmod(_held.get(begun.file, begun.file), mode)
    return begun


def _held_file(folder: OpenFolder, name: str) -> _Begun:
    """Make an empty file beside a place, and hold it, so that no other process takes it for abandoned."""
    while True:
        begun = _Begun(folder, name, _hidden(name, f"{_unique()}.part"))
        unfinished.add(begun.file)  # before it is there: a signal may come in between
        try:
            handle = folder.open(begun.own, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except OSError:
            unfinished.discard(begun.file)
            raise
        if not POSIX:  # a file that is held could not be moved
            os.close(handle)
            return begun
        _held[begun.file] = handle
        if lock(handle) is not False and folder.stat(begun.own) is not None:
            return begun
        _let_go(begun)  # another process has swept it in the moment before it was locked


def _unique() -> str:
    return f"{os.getpid():x}-{time.time_ns():x}-{next(_numbers)}"


def _let_go(begun: _Begun) -> None:
    """Let go of a begun file, and remove it unless it was moved to its place."""
    handle = _held.pop(begun.file, None)
    if handle is not None:
        os.close(handle)
    begun.folder.unlink(begun.own)
    unfinished.discard(begun.file)


def _drop(begun: _Begun) -> None:
    """Let go of a begun file and of its folder."""
    with begun.folder:
        _let_go(begun)


def _sweep_files(folder: OpenFolder) -> None:
    _sweep(folder, "part", os.O_WRONLY | UNWAITING, folder.unlink)


def _sweep(folder: OpenFolder, ending: str, flags: int, remove: Callable[[str], None]) -> None:
    """Remove what killed processes of this user have begun in a folder: nobody holds it.

    Whatever place it was for: a name with a date in it does not come again.
    """
    name = re.compile(rf"\..+\.[0-9a-f]+-[0-9a-f]+-[0-9]+\.{ending}")
    with suppress(OSError):  # a folder that cannot be listed
        for found in filter(name.fullmatch, os.listdir(folder.path)):
            with suppress(OSError):  # another process was faster
                handle = folder.open(found, flags)
                try:
                    if lock(handle) and os.fstat(handle).st_uid == os.geteuid():
                        remove(found)
                finally:
                    os.close(handle)


def take_room(handle: int, size: int, path: str) -> None:
    """Reserve bytes of the disk for an open file, where the system can."""
    if size <= 0 or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise OSError(error.errno, error.strerror, path) from error


def lock(handle: int) -> bool | None:
    """Lock an open file; False: another one holds it; None: this system has no such locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def fill(handle: int, raw: bytes, path: str) -> None:
    """Write the whole content of an open file durably, and close it."""
    with named(path), os.fdopen(handle, "wb") as file:
        file.seek(0)
        file.write(raw)
        file.truncate()  # what was reserved and is not needed
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def named(path: str) -> Iterator[None]:
    """Name the path that the user gave in an error of the operating system."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class OutputFolder:
    """A new folder of files, written beside its place and moved there at once.

    Opening proves that the place can be written. `close` removes what was begun, unless it was placed. What a
    killed process has begun is removed by the next one that writes there.
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
        place = Path(os.path.realpath(path))
        with named(path):
            self._outer, self._name = OpenFolder(place.parent), place.name
            try:
                _sweep(self._outer, "parts", os.O_RDONLY, self._remove)
                while not self._begins():
                    pass
            except BaseException:
                self._outer.close()
                raise

    def _begins(self) -> bool:
        """Make and lock the folder that is written; False: another process swept it in between."""
        self._own = _hidden(self._name, f"{_unique()}.parts")
        begun = self._outer.path / self._own
        unfinished.add(begun)  # before it is there: a signal may come in between
        try:
            os.mkdir(self._outer.at(self._own), dir_fd=self._outer.handle)
            with suppress(FileNotFoundError):
                self._files = OpenFolder(self._own, self._outer)
                handle = self._files.handle
                if handle is None or (lock(handle) is not False and self._outer.stat(self._own) is not None):
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
            self._outer.replace(self._own, self._name)
            unfinished.discard(self._outer.path / self._own)
        with named(self._path):
            self._outer.sync()

    def close(self) -> None:
        """Let go of it, and remove it unless it was placed."""
        self._files.close()
        self._remove(self._own)
        unfinished.discard(self._outer.path / self._own)
        self._outer.close()
