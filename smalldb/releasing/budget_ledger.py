"""The privacy budget of a data set: a file of all that was spent, which no release can overrun."""

import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from itertools import starmap
from typing import Any, Literal, NamedTuple, final

from smalldb.exact.numbers import Number, as_text
from smalldb.files import unfinished
from smalldb.files.outputs import create, named, sync_folder
from smalldb.releasing.ledger_account import Account, entry_of, record_of

FORMAT, FILTER = 1, 2  # of a budget of epsilon alone, and of one with a delta


@final
class Ledger:
    """The ledger of a data set: a file that states what its releases spent; each use locks and reads it anew.

    Spend first, then release. What was spent is on the disk when `spend` returns, and is never given back.

    Each line holds a checksum of itself and of all before it. A file that was changed is refused. One whose
    last lines were cut off, or an old copy in its place, lacks the lines that the records of releases name.

    Parameters
    ----------
    path
        The file; made, if a budget is given and there is none.
    budget, delta
        Exact, as `epsilon` and `delta` of a release; they stand in the file for good. None: the ledger must
        exist, or has no delta. With a delta it is kept as `Account` says, for releases that are chosen after
        earlier ones were seen, and how many there are, too.

    Raises
    ------
    OSError
        The file cannot be made, read or written.
    ValueError
        The file is damaged or no ledger, or has another budget; or the system has no file locks.

    Examples
    --------
    >>> import tempfile
    >>> from queries import Domain
    >>> from smalldb.planning import plan
    >>> from smalldb.releasing.record import make_record
    >>> planned = plan(Domain(["a", "b"]), n=100, epsilon="0.4", rows=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(f"{folder}/people.ledger", budget=1)
    ...     account = ledger.spend(make_record(planned, private=True))
    >>> account.spent, account.left
    (Fraction(2, 5), Fraction(3, 5))
    """

    def __init__(
        self,
        path: "str | os.PathLike[str]",
        budget: Number | None = None,
        delta: Number | None = None,
    ) -> None:
        self._path = os.fspath(path)
        if budget is None and delta is not None:
            raise ValueError("delta is of a budget: give both")
        wanted = None if budget is None else Account.of(budget, delta)
        try:
            import fcntl  # noqa: F401
        except ImportError as error:
            raise ValueError(
                "ledger: this system has no file locks: two releases could spend the same budget"
            ) from error
        if wanted is not None:
            create(self._path, _line("", _head(wanted)))
        account = self.read()
        if wanted is not None and (wanted.budget, wanted.delta) != (account.budget, account.delta):
            raise ValueError(f"budget: that of {self._path} is {account.stated}, for good")

    @classmethod
    def within(
        cls, path: str, budget: Number | None, delta: Number | None, record: Mapping[str, Any]
    ) -> "Ledger":
        """Open a ledger for a release that is foreseen, or make one that could pay for it; errors as both."""
        if budget is not None and not os.path.exists(path):
            Account.of(budget, delta).after(record)
        return cls(path, budget, delta)

    def __repr__(self) -> str:
        return f"Ledger({self._path!r})"

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def read(self) -> Account:
        """Return what the file says now."""
        with self._locked("r") as handle:
            return _parsed(_content(handle), self._path).account

    def spend(self, record: Mapping[str, Any], ticket: str = "", name: str = "") -> Account:
        """Spend the privacy of a release, before it is made.

        Parameters
        ----------
        record
            Of the release, or of its plan (`smalldb.releasing.record.make_record`): its keys privacy,
            neighbours, delta and private count.
        ticket
            32 random hexadecimal digits that the run keeps: who comes again with them has paid already, and
            nothing more is spent. A killed run so learns whether it had paid. Empty: each call spends.
        name
            What the caller calls the release: it is paid once, whoever comes with it. Empty: it has no name.

        Returns
        -------
        Account
            After it; `torn` if an unfinished line was removed.

        Raises
        ------
        OutOfBudget, ValueError, TypeError
            As `Account.after`; the file stays as it was.
        OSError
            The file cannot be written, say on a full disk. It stays as it was, or says more than was spent.
        """
        with self._locked("r+") as handle:
            read = _parsed(_content(handle), self._path)
            if _holds(read.account, ticket, record):
                account = replace(read.account, torn=False)
            else:
                account = read.account.after(record, ticket, name)
                entry = entry_of(account.records[-1], ticket, account.delta is not None, name)
                account = replace(account, checksums=(*account.checksums, self._append(handle, read, entry)))
        unfinished.paid = True
        return account

    def finish(self, name: str, outputs: str) -> None:
        """Note that a named release stands, with a digest of its outputs; empty: that it is abandoned.

        Raises
        ------
        ValueError
            No release of this name was paid, or it has ended otherwise.
        OSError
            The file cannot be written; it stays as it was.
        """
        with self._locked("r+") as handle:
            read = _parsed(_content(handle), self._path)
            account = read.account
            if name not in account.names:
                raise ValueError(f"release {name}: the ledger has none of this name")
            if account.ended.get(name) == outputs:
                return
            if name in account.ended:
                raise ValueError(f"release {name} {account.outcome(name)}")
            self._append(handle, read, _end(name, outputs))

    def _append(self, handle: int, read: "_Parsed", entry: Mapping[str, Any]) -> str:
        """Write a line durably behind the last whole one, or nothing; return its checksum."""
        line = _line(read.last, entry)
        try:
            os.ftruncate(handle, read.end)
            raw = line if read.terminated else b"\n" + line
            while raw:
                raw = raw[os.write(handle, raw) :]
            os.fsync(handle)
            sync_folder(os.path.dirname(os.path.realpath(self._path)))  # who made it may have been killed
        except BaseException as error:
            with suppress(OSError):
                os.ftruncate(handle, read.end)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror, self._path) from error
            raise
        return line[:64].decode()

    def paid(self, ticket: str, record: Mapping[str, Any]) -> bool:
        """Tell whether such a release was paid with a ticket."""
        return _holds(self.read(), ticket, record)

    @contextmanager
    def _locked(self, mode: Literal["r", "r+"]) -> Iterator[int]:
        """Open the file and wait for its lock, shared to read; processes and threads exclude each other."""
        import fcntl  # not on every system

        if os.path.exists(self._path) and not os.path.isfile(self._path):
            raise ValueError(f"{self._path} is not a ledger: it is not a regular file")
        handle = os.open(self._path, os.O_RDONLY if mode == "r" else os.O_RDWR | os.O_APPEND)
        try:
            with named(self._path):  # a file system that has no locks
                _lock(handle, self._path, shared=mode == "r")
            if not os.path.samestat(os.fstat(handle), os.stat(self._path)):
                raise ValueError(f"{self._path} was replaced while it was opened: nothing was spent")
            yield handle
        finally:
            with suppress(OSError):  # a process that was forked meanwhile has the file open, too
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


class _Parsed(NamedTuple):
    """An account, where its last whole line ends, the checksum of that line, whether a break ends it."""

    account: Account
    end: int
    last: str
    terminated: bool


def _parsed(raw: bytes, path: str) -> _Parsed:
    """Read the content of a ledger; an unfinished last line belongs to a run that released nothing."""
    *lines, tail = raw.split(b"\n")
    if b"}" in tail:
        lines.append(tail)
        tail = b""
    last, read = "", {}
    try:
        for line in lines:
            text = line.decode("ascii")
            last = _checksum(last, text[65:])
            if text[:65] != f"{last} ":
                raise ValueError("a checksum is wrong")
            read[last] = json.loads(text[65:])
        head, *rest = read.values()
        entries = {checksum: entry for checksum, entry in read.items() if "epsilon" in entry}
        ends = [entry for entry in rest if "epsilon" not in entry]
        account = replace(
            Account.of(head["budget"], head.get("delta")),
            records=tuple(map(record_of, entries.values())),
            torn=bool(tail),
            tickets=tuple(str(entry.get("ticket", "")) for entry in entries.values()),
            names=tuple(str(entry.get("release_id", "")) for entry in entries.values()),
            checksums=tuple(entries),
            ended={str(end["release_id"]): str(end["outputs"]) for end in ends},
        )
        counted = [account.delta is not None] * len(entries)
        if head != _head(account):
            raise ValueError("another format")
        spelled = map(entry_of, account.records, account.tickets, counted, account.names)
        if [*spelled, *starmap(_end, account.ended.items())] != [*entries.values(), *ends]:
            raise ValueError("a line is not spelled as it would be written")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, or no ledger: nothing can be spent from it") from error
    end = len(raw) - len(tail)
    return _Parsed(account, end, last, raw[end - 1 : end] == b"\n")


def _holds(account: Account, ticket: str, record: Mapping[str, Any]) -> bool:
    """Tell whether a payment was made for such a record with a ticket; ValueError: for another record."""
    paid = dict(zip(account.tickets, account.records, strict=True)).get(ticket) if ticket else None
    if paid is not None and paid != record_of(entry_of(record, "", account.delta is not None)):
        raise ValueError("the ledger was paid for another release by this run: name a new folder")
    return paid is not None


def _lock(handle: int, path: str, *, shared: bool) -> None:
    """Wait for the lock of an open ledger; after about a second say so, once."""
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    for _ in range(50):
        with suppress(BlockingIOError):
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return
        time.sleep(0.02)
    warnings.warn(f"{path}: another process holds the ledger; waiting for it", RuntimeWarning, stacklevel=2)
    fcntl.flock(handle, kind)


def _head(account: Account) -> dict[str, Any]:
    if account.delta is None:
        return {"budget": as_text(account.budget), "ledger": FORMAT}
    return {"budget": as_text(account.budget), "delta": as_text(account.delta), "ledger": FILTER}


def _end(name: str, outputs: str) -> dict[str, Any]:
    """Return what a line says of the end of a named release."""
    return {"release_id": name, "outputs": outputs}


def _line(last: str, entry: Mapping[str, Any]) -> bytes:
    """Write a line that follows the one with the checksum `last`; it holds one closing brace, at its end."""
    text = json.dumps(entry, sort_keys=True)
    return f"{_checksum(last, text)} {text}\n".encode("ascii")


def _checksum(last: str, text: str) -> str:
    return sha256(f"{last} {text}".encode("ascii")).hexdigest()


def _content(handle: int) -> bytes:
    with os.fdopen(os.dup(handle), "rb") as file:
        return file.read()
