"""Releases that go on after they were killed, without paying twice."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from hashlib import sha256
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from queries import Workload
from smalldb.exact.bits import BitSource, SystemBits
from smalldb.files import unfinished
from smalldb.files.checkpoints import GONE, Busy, Checkpoint, Folder, digest_of, identity
from smalldb.files.outputs import all_beside, beside, sync_folder
from smalldb.mechanisms import LOST, Journal
from smalldb.planning import Plan
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.record_keys import RecordedLine

PrivateArray: TypeAlias = npt.NDArray[Any]
"""Numbers of the data. Private."""

BEGUN = "unfinished"  # the ending of a folder beside a ledger
ELSEWHERE = "elsewhere"  # the ending of a file beside a ledger that names a folder of the caller's
FORGET = (
    "it has paid and is not finished; continue with what it was started with, or {}: what it paid stays "
    "paid, and this release then pays for itself"
)


@final
class Transaction:
    """A release that is paid once, and goes on after it was killed from a private folder."""

    # A ticket is saved before it is paid, and the ledger takes it once: a kill leaves either
    # nothing paid, or a folder that knows it. What was drawn and not saved was shown to nobody.
    # `request` is what was asked for, whatever the data are; `run` tells it from others besides.

    def __init__(
        self,
        record: Mapping[str, Any],
        request: str,
        run: Sequence[object],
        *,
        checkpoint: Folder | None,
        ledger: Ledger | None,
        name: str = "",
        outputs: Callable[[], str] = str,
    ) -> None:
        self._ledger, self._record, self._request = ledger, record, request
        self._name, self._outputs = name, outputs
        self._run = identity(json.dumps(record, sort_keys=True), request, *run)
        self._beside_ledger = checkpoint is None and ledger is not None
        self._checkpoint: Checkpoint[Any] | None = None
        if checkpoint is not None:
            self._checkpoint = Checkpoint(checkpoint, self._run, remedy=LOST)
        self._charged = False  # or perhaps so
        self.line: RecordedLine | None = None  # of the ledger, once it is paid
        self._pointer: Path | None = None

    # Proof: docs/proofs/rounds.md, lemma 11.
    @contextmanager
    def opened(self, source: BitSource) -> Iterator[Journal]:
        """Open the journal; a folder beside the ledger goes at the end, but not after a late error."""
        with ExitStack() as stack:
            self._enter(stack)
            checkpoint = self._checkpoint
            self._charged = checkpoint is not None and bool(checkpoint.saved())
            try:
                yield Journal(source, checkpoint)
            except BaseException:
                if self._beside_ledger and not self._charged:
                    self._remove()
                raise
            if self._ledger is not None and self._name:
                self._ledger.finish(self._name, self._outputs())
            # before the folder goes: from then on nothing goes on from there
            unfinished.paid, unfinished.folder = False, ""
            if self._beside_ledger:
                self._remove()
            elif self._pointer is not None:
                self._pointer.unlink(missing_ok=True)
            if self._ledger is not None:
                sweep_ended(self._ledger)

    def _enter(self, stack: ExitStack) -> None:
        """Open the folder, if there is one; beside a ledger the first in which nobody works."""
        if not self._beside_ledger:
            if self._checkpoint is not None:
                stack.enter_context(self._checkpoint.opened())
            return
        what = f"smalldb ledger --abandon {self._name}, and take another name" if self._name else "remove it"
        for folder in self._folders():
            self._checkpoint = Checkpoint(folder, self._run, remedy=LOST, otherwise=FORGET.format(what))
            try:
                stack.enter_context(self._checkpoint.opened())
            except Busy:
                if self._name:  # nobody else may release this
                    raise
                continue
            except OSError:
                with suppress(OSError):
                    os.rmdir(folder)
                raise
            self._begin_anew_if_unpaid(folder, self._checkpoint)
            return

    def _begin_anew_if_unpaid(self, folder: Path, checkpoint: Checkpoint[Any]) -> None:
        """Clear a folder for which nothing was paid: whatever its data were, nothing was drawn."""
        ticket = _ticket_in(folder)
        known = ticket or len(checkpoint.saved()) < 2  # a ticket that cannot be read may be paid
        if known and self._ledger is not None and ticket not in {*self._ledger.read().tickets} - {""}:
            checkpoint.clear()

    def _folders(self) -> Iterator[Path]:
        """Yield the folders of such requests beside the ledger: those that are there, and then new ones."""
        path = self._ledger.path if self._ledger is not None else ""
        wanted = f"release {self._name}" if self._name else self._request
        name = digest_of(wanted, os.path.basename(path))[:16]
        there = [folder for folder in begun_beside(path) if f".{name}-" in folder.name]
        yield from sorted(there)
        for number in count():
            folder = beside(path, f"{name}-{number}.{BEGUN}")
            if folder not in there:
                yield folder

    def _remove(self) -> None:
        with suppress(OSError):
            if self._checkpoint is not None:
                self._checkpoint.remove()

    def bind(self, journal: Journal, *data: PrivateArray) -> None:
        """Bind the release to its data: a salted digest of them is kept in the journal."""
        before = journal.begun
        salted = journal.step(lambda _: _salted(data, f"{SystemBits().bits(256):064x}"))
        if before and salted != _salted(data, salted[0]) and self._checkpoint is not None:
            raise self._checkpoint.another()

    def pay(self, journal: Journal) -> tuple[Account, bool] | None:
        """Pay, if there is a ledger, before the first draw."""
        ledger, record = self._ledger, self._record
        ticket = journal.step(lambda _: "" if ledger is None else f"{SystemBits().bits(128):032x}")
        if (ticket == "") != (ledger is None):
            raise ValueError("checkpoint: the release was started with another ledger, or without one")
        if ledger is None:
            return None
        before = ledger.paid(ticket, record)
        if journal.begun and not before:
            raise ValueError("checkpoint: the release was not paid from this ledger: name that one")
        if self._checkpoint is not None:
            sync_folder(os.path.dirname(os.path.abspath(self._checkpoint.folder)))
            if not self._beside_ledger:
                self._point(ledger.path, ticket)
        self._charged = True
        try:
            account = ledger.spend(record, ticket, self._name)
        except (OSError, ValueError, TypeError):
            self._charged = ledger.paid(ticket, record)
            raise
        self.line = {"checksum": account.checksums[account.tickets.index(ticket)]}
        if self._name:
            self.line["release_id"] = self._name
        if self._checkpoint is not None:
            unfinished.folder = os.fspath(self._checkpoint.folder)
        journal.step(lambda _: None)
        return account, before

    def _point(self, ledger: str, ticket: str) -> None:
        """Say beside the ledger where the folder is that the caller chose: for `unfinished_releases`."""
        if self._checkpoint is not None:
            self._pointer = beside(ledger, f"{ticket}.{ELSEWHERE}")
            with suppress(OSError):  # a folder that takes no files: the caller knows where
                self._pointer.write_text(os.path.abspath(self._checkpoint.folder), encoding="utf-8")


def begun_beside(ledger: str, kind: str = BEGUN) -> list[Path]:
    """Return the folders beside a ledger that keep releases which are not finished."""
    return all_beside(ledger, rf"[0-9a-f]{{16}}-[0-9]+\.{kind}")


def unfinished_releases(path: str, account: Account) -> list[tuple[int, Path]]:
    """Return the releases that were paid and are not finished: numbers from 1, and their folders."""
    chosen = [Path(pointer.read_text(encoding="utf-8")) for pointer in _pointers(path)]
    folders = {_ticket_in(folder): folder for folder in (*begun_beside(path), *chosen)}
    numbered = enumerate(zip(account.tickets, account.names, strict=True), start=1)
    return [
        (number, folders[ticket])
        for number, (ticket, name) in numbered
        if ticket and ticket in folders and name not in account.ended
    ]


def abandon(ledger: Ledger, name: str) -> None:
    """Give up a named release that is paid and not finished: what it paid stays paid."""
    account = ledger.read()
    begun = [
        folder
        for number, folder in unfinished_releases(ledger.path, account)
        if account.names[number - 1] == name
    ]
    with ExitStack() as stack:
        left: list[Checkpoint[Any]] = [Checkpoint(folder, "") for folder in begun]
        for checkpoint in left:
            stack.enter_context(checkpoint.opened())
        ledger.finish(name, "")
        for checkpoint in left:
            checkpoint.remove()


def sweep_ended(ledger: Ledger) -> None:
    """Remove what killed runs left of releases that have ended, and of folders that were being removed."""
    with suppress(OSError, ValueError):  # all is done: nothing may fail any more
        account = ledger.read()
        pairs = zip(account.tickets, account.names, strict=True)
        over = {ticket for ticket, name in pairs if ticket and name in account.ended}
        for pointer in _pointers(ledger.path):
            if pointer.suffixes[-2][1:] in over:
                pointer.unlink(missing_ok=True)
        ended = [folder for folder in begun_beside(ledger.path) if _ticket_in(folder) in over]
        for left in (*ended, *begun_beside(ledger.path, GONE)):
            rmtree(left, ignore_errors=True)


def _pointers(ledger: str) -> list[Path]:
    """Return the files beside a ledger that name folders which callers chose."""
    return all_beside(ledger, rf"[0-9a-f]{{32}}\.{ELSEWHERE}")


def _ticket_in(folder: Path) -> str:
    """Read the ticket of a release; empty: it has none, or none that can be read."""
    with suppress(OSError, ValueError):
        _, run, _ = (folder / "000001.shard").read_bytes().split(b"\n", 2)
        kept: Checkpoint[Any] = Checkpoint(folder, run.decode())
        return str(kept.load(1)[1])
    return ""


def request_of(plan: Plan, learning: str = "") -> str:
    """Return a digest of what was asked for, whatever the number of rows; `learning` is a schema's text."""
    request, domain = plan.request, plan.workload.domain
    keys = [field.name for field in fields(request) if field.name not in ("workload", "n")]
    values = [(key, getattr(request, key)) for key in keys]
    # what is not asked for is left out: a later version may add a field
    kept = [(key, value) for key, value in values if value is not None and value is not False and value != ()]
    shape = tuple((size, column.ordered) for size, column in zip(domain.sizes, domain.columns, strict=True))
    mechanism = plan.mechanism if request.named else ""
    return digest_of(
        kept, mechanism, plan.rows_per_person, domain.names, shape, learning, _queries_of(plan.workload)
    )


def _queries_of(workload: Workload) -> str:
    """Return a digest of the queries themselves: those that are made by hand may share a text."""
    digest = sha256()
    for block in workload.cells:
        digest.update(repr((block.columns, block.cells)).encode() + (block.dropped or b""))
    for query in workload.listed:
        digest.update(repr((query.attributes, query.weights, query.denominator, query.sizes)).encode())
    return digest.hexdigest()


def _salted(data: Sequence[PrivateArray], salt: str) -> list[str]:
    """Return a salt, and the digest of it and of the data."""
    digest = sha256(bytes.fromhex(salt))
    for array in data:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return [salt, digest.hexdigest()]
