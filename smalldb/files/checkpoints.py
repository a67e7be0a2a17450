"""Long work in parts: on any executor, and kept in a folder so that it survives being killed."""

import json
import os
import re
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import IO, Any, Generic, TypeAlias, TypeVar, final

import numpy as np

from smalldb.files.outputs import named, sync_folder
from smalldb.version import __version__

P = TypeVar("P")
R = TypeVar("R")
Folder: TypeAlias = str | os.PathLike[str]

MARK = "smalldb checkpoint 1. CONFIDENTIAL: computed from the data, not for publication"
ELSEWHERE = "name a new folder"
GONE = "gone"  # the ending of a folder that is being removed
BATCHES = 64  # that an executor is sent at most: what a part needs is sent with each

_NAMES = re.compile(r"lock|([0-9]{6}|[1-9][0-9]{6,})\.(part|shard)")
_busy: set[tuple[int, int, int]] = set()  # process, and device and number of the folder
_guard = Lock()


class Busy(ValueError):
    """Another call or process works in a folder."""

    exit_code = 3  # of commands: the same one may do it later


@final
@dataclass(frozen=True, slots=True)
class Checkpoint(Generic[R]):
    """A folder of finished parts, private: each a file of JSON that appears whole or not at all."""

    # checksums find accidents; whoever may write to the folder is trusted

    folder: Folder
    run: str
    pack: Callable[[R], Any] = lambda result: result
    unpack: Callable[[Any], R] = lambda packed: packed
    remedy: str = "remove it, and its part is done again"
    otherwise: str = ELSEWHERE

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Prepare the folder, and keep it to this call inside the ``with`` block."""
        try:
            import fcntl
        except ImportError as error:
            raise ValueError("checkpoint: this system has no file locks and modes") from error

        folder = os.fspath(self.folder)
        os.makedirs(folder, 0o700, exist_ok=True)
        state = os.stat(folder)
        if state.st_uid != os.geteuid():
            raise ValueError(f"checkpoint: {folder} is another user's: name a new folder")
        if stat.S_IMODE(state.st_mode) & 0o077:
            raise ValueError(f"checkpoint: others may enter {folder}: chmod 700 it, or name a new folder")
        if not all(map(_NAMES.fullmatch, os.listdir(folder))):
            raise ValueError(f"checkpoint: {folder} holds other things: name a new folder")
        # a lock of this process, not of its children, which may outlive it
        with (
            _alone((os.getpid(), state.st_dev, state.st_ino), folder),
            open(os.path.join(folder, "lock"), "a", opener=_private) as lock,
        ):
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:
                raise Busy(f"checkpoint: another process works in {folder}") from error
            if not _stands(lock):
                raise Busy(f"checkpoint: another process has just removed {folder}: start again")
            yield

    def remove(self) -> None:
        """Remove the open folder, in one step: nobody goes on from half of it."""
        gone = Path(self.folder).with_suffix(f".{GONE}")
        shutil.rmtree(gone, ignore_errors=True)  # of a run that was killed while it did so
        os.rename(self.folder, gone)
        shutil.rmtree(gone, ignore_errors=True)

    def clear(self) -> None:
        """Remove the parts of the open folder, from the last to the first: what is left is whole."""
        for index in reversed(self.saved()):
            self._path(index, "shard").unlink()

    def another(self, run: str = "") -> ValueError:
        """Return the error that the folder is of other work: of the run that was found in it."""
        version, version_of_run, _ = run.partition(":")
        which = "another run (other data or parameters)"
        if version_of_run and version != __version__:
            which = f"smalldb {version}, and this is smalldb {__version__}"
        return ValueError(f"checkpoint: {os.fspath(self.folder)} is of {which}: {self.otherwise}")

    def saved(self) -> list[int]:
        """Return the indices of the finished parts."""
        return sorted(
            int(name.removesuffix(".shard")) for name in os.listdir(self.folder) if name.endswith(".shard")
        )

    def load(self, index: int) -> R:
        """Read a finished part."""
        path = self._path(index, "shard")
        damaged = ValueError(f"checkpoint: {path} is damaged: {self.remedy}")
        with open(path, "rb", opener=_private) as file:
            *lines, last = file.read().split(b"\n")
        if last or len(lines) != 5 or lines.pop() != _checksum(lines):
            raise damaged
        if lines[:3] != [MARK.encode(), self.run.encode(), b"%d" % index]:
            raise self.another(lines[1].decode(errors="replace"))
        try:
            packed = json.loads(lines[3])
        except (ValueError, RecursionError):
            raise damaged from None
        return self.unpack(packed)

    def save(self, index: int, result: R) -> None:
        """Write a finished part: beside its place, to the disk, and then there."""
        packed = json.dumps(self.pack(result), allow_nan=False)
        lines = [MARK.encode(), self.run.encode(), b"%d" % index, packed.encode()]
        begun = self._path(index, "part")
        begun.unlink(missing_ok=True)  # of a run that was killed; whatever it is, it is not written to
        try:
            with named(os.fspath(begun)), open(begun, "xb", opener=_private) as file:
                file.write(b"\n".join([*lines, _checksum(lines), b""]))
                file.flush()
                os.fsync(file.fileno())
            begun.replace(self._path(index, "shard"))
        except OSError:
            begun.unlink(missing_ok=True)
            raise
        sync_folder(self.folder)

    def _path(self, index: int, suffix: str) -> Path:
        return Path(self.folder, f"{index:06}.{suffix}")


def check_running(executor: object, checkpoint: object) -> None:
    """Refuse, by name, what is no executor and no path (None is neither)."""
    if not isinstance(executor, Executor | None):
        raise TypeError(f"executor must be a concurrent.futures.Executor, not {type(executor).__name__}")
    if not isinstance(checkpoint, str | os.PathLike | None):
        raise TypeError(f"checkpoint must be a path, not {type(checkpoint).__name__}")
    if checkpoint == "":
        raise ValueError("checkpoint needs a folder's name")


def identity(*values: object) -> str:
    """Return what tells a run from any other: the version, and a digest of arrays and of exact `repr`s."""
    return f"{__version__}:{digest_of(*values)}"


def digest_of(*values: object) -> str:
    """Return a digest of arrays, and of exact `repr`s; of any version."""
    digest = sha256()
    for value in values:
        described = (str(value.dtype), value.shape) if isinstance(value, np.ndarray) else value
        raw = np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else b""
        head = repr(described).encode()
        digest.update(b"%d %d " % (len(head), len(raw)) + head + raw)
    return digest.hexdigest()


def finished(
    function: Callable[[P], R],
    parts: Sequence[P],
    *,
    executor: Executor | None = None,
    threads: int | None = None,
    checkpoint: Checkpoint[R] | None = None,
) -> Iterator[tuple[int, R]]:
    """Yield the index and the result of each part, each exactly once, in any order."""
    if checkpoint is None:
        yield from _run(function, list(enumerate(parts)), executor, threads)
        return
    with checkpoint.opened():
        known = checkpoint.saved()
        for index in known:
            yield index, checkpoint.load(index)
        left = [(index, parts[index]) for index in sorted({*range(len(parts))}.difference(known))]
        for index, result in _run(function, left, executor, threads):
            checkpoint.save(index, result)
            yield index, result


def _run(
    function: Callable[[P], R],
    todo: Sequence[tuple[int, P]],
    executor: Executor | None,
    threads: int | None,
) -> Iterator[tuple[int, R]]:
    if executor is None:
        pool: Executor = ThreadPoolExecutor(os.cpu_count() if threads is None else threads)
    else:
        pool = executor
    size = 1 if executor is None else max(1, -(-len(todo) // BATCHES))
    waiting: dict[Future[list[R]], Sequence[tuple[int, P]]] = {}
    done = SimpleQueue[Future[list[R]]]()  # `as_completed` never hears of a future that a shutdown cancels
    lost: list[tuple[int, P]] = []
    reason = ""
    try:
        for batch in (todo[first : first + size] for first in range(0, len(todo), size)):
            try:
                future = pool.submit(_each, function, [part for _, part in batch])
            except Exception as error:
                if executor is None:
                    raise
                lost, reason = [*lost, *batch], type(error).__name__
                continue
            waiting[future] = batch
            future.add_done_callback(done.put)
        while waiting:
            future = done.get()
            batch = waiting.pop(future)
            try:
                results = future.result()
            except Exception as error:
                if executor is None:
                    raise
                lost, reason = [*lost, *batch], type(error).__name__
                continue
            yield from zip((index for index, _ in batch), results, strict=True)
    finally:
        for future in waiting:
            future.cancel()
        if executor is None:
            pool.shutdown(cancel_futures=True)
    if lost:
        warnings.warn(
            f"the executor lost {len(lost)} of {len(todo)} parts ({reason}): they are run again here",
            RuntimeWarning,
            stacklevel=2,
        )
        yield from _run(function, lost, None, threads)


def _each(function: Callable[[P], R], parts: Sequence[P]) -> list[R]:
    return [function(part) for part in parts]


@contextmanager
def _alone(key: tuple[int, int, int], folder: str) -> Iterator[None]:
    """Keep other calls of this process out: they would share its lock, and drop it when they close it."""
    with _guard:
        if key in _busy:
            raise Busy(f"checkpoint: another call works in {folder}")
        _busy.add(key)
    try:
        yield
    finally:
        _busy.discard(key)


def _private(path: str, flags: int) -> int:
    """Open a regular file, made with mode 0600; what else stands there is neither followed nor waited for."""
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError(f"checkpoint: {path} is not a regular file: remove it")
    return handle


def _stands(file: IO[Any]) -> bool:
    """Tell whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(file.name))
    except FileNotFoundError:
        return False


def _checksum(lines: Sequence[bytes]) -> bytes:
    return sha256(b"\n".join(lines)).hexdigest().encode()
