"""Output files that appear whole or not at all; input files that stay as they are."""

import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from smalldb.files.unfinished import unfinished


class Outputs:
    """Files that are written beside their places and moved there together at the end.

    Opening proves that each place can be written, before any work. Leaving the ``with`` block with an
    error (Ctrl-C too) removes what was begun; an existing file is replaced only on success. A place
    that is no regular file (a pipe, a device) is written at the end.

    Parameters
    ----------
    paths
        The places.
    confidential
        Those among them that get mode 0600, whatever stood there; others keep their mode, or the umask's.

    Raises
    ------
    OSError
        From the constructor, with the path: the place cannot be written.
    ValueError
        From the constructor: an empty path, or two paths to one file.
    """

    def __init__(self, paths: Iterable[str], confidential: Collection[str] = ()) -> None:
        self._kept: dict[str, bytes] = {}
        self._begun: dict[str, Path | None] = {}
        try:
            for path in paths:
                if path in self._begun:
                    raise ValueError(f"two outputs cannot go to one place, {path!r}")
                self._begun[path] = _begin(path, confidential=path in confidential)
            places = [os.path.realpath(path) for path, begun in self._begun.items() if begun is not None]
            if len(set(places)) < len(places):
                raise ValueError("two outputs cannot go to one file")
        except (OSError, ValueError):
            self._remove()
            raise

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file's whole content (text in UTF-8) beside its place."""
        begun = self._begun[path]
        raw = content.encode() if isinstance(content, str) else content
        if begun is None:
            self._kept[path] = raw
        else:
            _fill(begun, raw, path)

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                # what is written into a pipe cannot be taken back
                for path, begun in sorted(self._begun.items(), key=lambda item: item[1] is None):
                    if begun is None:
                        with Path(path).open("ab") as file:
                            file.write(self._kept[path])
                    else:
                        begun.replace(os.path.realpath(path))
        finally:
            self._remove()

    def _remove(self) -> None:
        for begun in self._begun.values():
            if begun is not None:
                begun.unlink(missing_ok=True)
                unfinished.discard(begun)


def create(path: str, content: bytes) -> None:
    """Make a file that is whole and durable from its first moment; one that is there already stays.

    Of several processes that do so at once one makes the file.

    Raises
    ------
    OSError
        With the path: the place cannot be written, or is a directory.
    """
    begun = None if os.path.exists(path) else _begin(path)
    if begun is None:
        return
    try:
        _fill(begun, content, path)
        with suppress(FileExistsError), _named(path):
            os.link(begun, os.path.realpath(path))
        sync_folder(begun.parent)
    finally:
        begun.unlink(missing_ok=True)
        unfinished.discard(begun)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Wait until the disk has the names of the files in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def unchanged(path: str) -> Iterator[None]:
    """Refuse, at the end of the ``with`` block, a regular file that was changed meanwhile.

    Raises
    ------
    ValueError
        Its size or time of change is another one.
    """

    def state() -> tuple[int, ...]:
        found = os.stat(path)
        return found.st_ino, found.st_size, found.st_mtime_ns

    before = state()
    yield
    if os.path.isfile(path) and state() != before:
        raise ValueError(f"{path} changed while it was read")


def _begin(path: str, *, confidential: bool = False) -> Path | None:
    """Make an empty file beside the place; None where the place is no regular file."""
    if not path:
        raise ValueError("an output needs a file name")
    place = Path(os.path.realpath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a directory", path)
    if os.path.exists(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "cannot be written", path)
        # what stands under /dev may be a link to a file that others write to as well; /dev/shm is a disk
        if not os.path.isfile(path) or re.match("/(dev/(?!shm/)|proc/)", os.path.abspath(path)):
            return None
    with _named(path):
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o666 & ~_umask()
        handle, begun = tempfile.mkstemp(prefix=f".{place.name}.", suffix=".part", dir=place.parent)
    unfinished.add(Path(begun))
    os.close(handle)
    if not confidential:  # as it was made: mode 0600
        os.chmod(begun, mode)
    return Path(begun)


def _fill(begun: Path, raw: bytes, path: str) -> None:
    """Write the whole content of a begun file durably; errors name the place it is for."""
    with _named(path), begun.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Name the path that the user gave in an error of the operating system."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
