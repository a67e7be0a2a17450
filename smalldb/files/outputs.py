"""Output files and folders that appear whole or not at all; input files that stay as they are."""

import errno
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
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
    """Files that are written beside their places and moved there together at the end, in the order given."""

    # Opening proves that each place can be written, before any work; an error removes what was begun. A pipe
    # or a device is written at the end. A process that is killed while files are moved leaves the first ones
    # new: name last what nobody may find without the others. What it has begun is removed by the next one
    # that writes there. `confidential` files get mode 0600; others keep their mode, or the umask's. A link is
    # followed once, when it is opened; `below` a folder none is: ValueError, OSError.

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
        """Take so many bytes of the disk for a file, where the system can do that; OSError: no room."""
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
                    file.folder.replace(file.temporary, file.name)
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
    """Make a file that is whole from its first moment, by one of several processes; one there stays."""
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
            begun.folder.link(begun.temporary, begun.name)
            begun.folder.sync()
    finally:
        _drop(begun)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Wait until the disk has the names of the files in a folder, where the file system can tell."""
    with named(os.fspath(folder)), OpenFolder(folder or ".") as opened:
        opened.sync()


def beside(path: str, ending: str) -> Path:
    """Return a hidden place in the folder of a file, named after it as far as a name may be long."""
    target = Path(os.path.realpath(path))
    return target.with_name(hidden(target.name, ending))


def hidden(name: str, ending: str) -> str:
    """Return a hidden name after another one, as far as a name may be long."""
    shown = os.fsencode(name)[: MOST_BYTES - ENDING_BYTES].decode("utf-8", "ignore")
    return f".{shown}.{ending}"


def all_beside(path: str, endings: str) -> list[Path]:
    """Return what stands `beside` a file, by a regular expression for the endings."""
    begin = beside(path, "")
    pattern = re.compile(re.escape(begin.name) + f"(?:{endings})")
    return [begin.with_name(name) for name in os.listdir(begin.parent) if pattern.fullmatch(name)]


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
        states = map(os.stat, files_of(path))
        return tuple(part for each in states for part in (each.st_ino, each.st_size, each.st_mtime_ns))

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
    temporary: str

    @property
    def file(self) -> Path:
        return self.folder.path / self.temporary

    def opened(self) -> int:
        """Return a handle of it, to be closed."""
        held = _held.get(self.file)
        return os.dup(held) if held is not None else self.folder.open(self.temporary, os.O_WRONLY)


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
        begun = _Begun(folder, name, hidden(name, f"{unique()}.part"))
        unfinished.add(begun.file)  # before it is there: a signal may come in between
        try:
            handle = folder.open(begun.temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except OSError:
            unfinished.discard(begun.file)
            raise
        if not POSIX:  # a file that is held could not be moved
            os.close(handle)
            return begun
        _held[begun.file] = handle
        if lock(handle) is not False and folder.stat(begun.temporary) is not None:
            return begun
        _let_go(begun)  # another process has swept it in the moment before it was locked


def unique() -> str:
    """Return a text that no other process and no other call makes."""
    return f"{os.getpid():x}-{time.time_ns():x}-{next(_numbers)}"


def _let_go(begun: _Begun) -> None:
    """Let go of a begun file, and remove it unless it was moved to its place."""
    handle = _held.pop(begun.file, None)
    if handle is not None:
        os.close(handle)
    begun.folder.unlink(begun.temporary)
    unfinished.discard(begun.file)


def _drop(begun: _Begun) -> None:
    with begun.folder:
        _let_go(begun)


def _sweep_files(folder: OpenFolder) -> None:
    sweep(folder, "part", os.O_WRONLY | UNWAITING, folder.unlink)


def sweep(folder: OpenFolder, ending: str, flags: int, remove: Callable[[str], None]) -> None:
    """Remove what killed processes of this user have begun in a folder, for any place: nobody holds it."""
    pattern = re.compile(rf"\..+\.[0-9a-f]+-[0-9a-f]+-[0-9]+\.{ending}")
    with suppress(OSError):  # a folder that cannot be listed
        for name in filter(pattern.fullmatch, os.listdir(folder.path)):
            with suppress(OSError):  # another process was faster
                handle = folder.open(name, flags)
                try:
                    if lock(handle) and os.fstat(handle).st_uid == os.geteuid():
                        remove(name)
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
