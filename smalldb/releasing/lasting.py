"""Releases that go on after they were killed, without paying twice."""

import json
import os
from concurrent.futures import Executor
from dataclasses import dataclass

from smalldb.files.checkpoints import check_running, identity
from smalldb.mechanisms import Lasting, Running
from smalldb.planning import Plan
from smalldb.releasing.ledger import Ledger
from smalldb.releasing.record import Record, make_record


@dataclass(frozen=True, slots=True)
class LedgerPayment:
    """What a release costs, paid from a ledger; a `mechanisms.Payment`.

    Attributes
    ----------
    ledger
        The budget of the data.
    record
        Of the plan.
    """

    ledger: Ledger
    record: Record

    def made(self) -> str:
        """Spend it, and return the mark of the ledger's line."""
        return self.ledger.pay(self.record)

    def check(self, mark: str) -> None:
        """Refuse a mark that is of no such payment in this ledger."""
        if not self.ledger.paid(mark, self.record):
            raise ValueError("checkpoint: the release was not paid from this ledger: name that one")


def running_of(
    plan: Plan,
    *,
    private: bool,
    progress: bool,
    executor: Executor | None,
    checkpoint: str | os.PathLike[str] | None,
    ledger: Ledger | None,
) -> Running:
    """
    Say how a release runs; nothing of it depends on the data.

    Raises
    ------
    TypeError, ValueError
        No executor or no path; a mechanism that takes neither; a source that is not private, and a ledger.
    """
    check_running(executor, checkpoint)
    chosen = plan.chosen
    if not isinstance(chosen, Lasting):
        for name, given in (("executor", executor), ("checkpoint", checkpoint)):
            if given is not None:
                raise ValueError(f"{name} is for rounds: {plan.mechanism} take none")
    if ledger is None and checkpoint is None:
        return Running(progress=progress, executor=executor)
    record = make_record(plan, private=private)
    if ledger is not None and not private:
        raise ValueError("a ledger is for private releases: what a seed makes is not private at any epsilon")
    run = ""
    if checkpoint is not None and isinstance(chosen, Lasting):
        run = identity(json.dumps(record, sort_keys=True), *chosen.public)
    payment = None if ledger is None else LedgerPayment(ledger, record)
    return Running(payment, progress, executor, checkpoint, run)
