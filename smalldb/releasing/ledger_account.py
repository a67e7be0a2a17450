"""What a ledger says: the budget of a data set, and what each release from it spent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from smalldb.accounting import Composition, compose_records
from smalldb.accounting.concentrated import rho_of
from smalldb.accounting.recorded_losses import loss_of_record
from smalldb.exact.numbers import (
    Number,
    as_fraction,
    as_text,
    between_0_and_1,
    positive,
    rounded_down,
    rounded_up,
    whole,
)
from smalldb.mechanisms import relation_of

_NAME = r"[\w %;-]+"  # no brace, by which whole lines are known
UNIT = f"{_NAME}/{_NAME}, {_NAME}/{_NAME}"  # `RelatedSchema.protected`
LEAST_DELTA = Fraction(1, 10**300)
LEAST, MOST = Fraction(1, 1 << 40), Fraction(1 << 20)  # epsilon of a budget with a delta
RELEASE_ID = r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,99}"


class OutOfBudget(ValueError):
    """A release would spend more than is left."""

    exit_code = 5  # of commands


@dataclass(frozen=True)
class Account:
    """What a ledger says; public numbers."""

    budget: Fraction  # the epsilon that all releases together may have
    # the privacy of each release, in order, as `smalldb.accounting.compose_records` takes it
    records: tuple[Mapping[str, Any], ...] = ()
    # whether the file ends in an unfinished line: a run was killed before it had spent, so it released
    # nothing, and nothing is counted for it. The next spending removes that line.
    torn: bool = False
    # of each release, the random text that its run paid with; empty: a payment without one
    tickets: tuple[str, ...] = field(default=(), compare=False, repr=False)
    # of each release, the name that the caller gave it (empty: none), and the checksum of its line
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)
    checksums: tuple[str, ...] = field(default=(), compare=False, repr=False)
    # of each named release that has ended, a digest of its outputs; empty: it was abandoned
    ended: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    # what the guarantee may have; None: it is pure, and epsilons add up to the budget. With a delta, a
    # release fits where all are pure and their epsilons add up to no more than the budget, or where their
    # rhos add up to no more than `rho`. Both together make a filter: however each release was chosen after
    # earlier ones were seen, all of them are (budget, delta)-differentially private.
    delta: Fraction | None = None

    @classmethod
    def of(cls, budget: Number, delta: Number | None) -> "Account":
        """Return the account of a budget from which nothing was spent."""
        wanted = positive(budget, "budget")
        if delta is None:
            return cls(wanted)
        allowed = between_0_and_1(delta, "delta of the budget")
        if allowed < LEAST_DELTA or not LEAST <= wanted <= MOST:
            raise ValueError("budget must lie in [2^-40, 2^20], and its delta be at least 1e-300")
        return cls(wanted, delta=allowed)

    @property
    def stated(self) -> str:
        """The budget as a text."""
        budget = as_text(self.budget)
        return budget if self.delta is None else f"({budget}, {as_text(self.delta)})"

    @property
    def pure(self) -> bool:
        """Whether no release had a delta."""
        return all(record["delta"] is None for record in self.records)

    @property
    def spent(self) -> Fraction:
        """The sum of all epsilons: the only filter at delta 0 (Rogers, Roth, Ullman, Vadhan 2016)."""
        epsilons = (as_fraction(record["privacy"]["epsilon"], "epsilon") for record in self.records)
        return sum(epsilons, Fraction(0))

    @property
    def left(self) -> Fraction:
        """What may still be spent of epsilon, by pure releases."""
        return self.budget - self.spent

    @cached_property
    def rho(self) -> Fraction:
        """The rho that proves the budget with its delta: what rhos may add up to; 0 without a delta."""
        return Fraction(0) if self.delta is None else rho_of(self.budget, self.delta)

    @property
    def spent_rho(self) -> Fraction:
        """The sum of all rhos, exactly; as they stand in the lines of a ledger with a delta."""
        rhos = (as_fraction(record["privacy"].get("rho", "0"), "rho") for record in self.records)
        return sum(rhos, Fraction(0))

    @property
    def left_rho(self) -> Fraction:
        """What may still be spent of rho."""
        return max(Fraction(0), self.rho - self.spent_rho)

    @property
    def in_rho(self) -> tuple[str, str, str]:
        """The rho of the budget, what is spent and what is left of it, in four digits on the safe side."""
        return rounded_down(self.rho, 4), rounded_up(self.spent_rho, 4), rounded_down(self.left_rho, 4)

    # Proof: docs/proofs/losses.md, lemma 12.
    def after(self, record: Mapping[str, Any], ticket: str = "", name: str = "") -> "Account":
        """Return the account after one more release, paid with a ticket; nothing is written."""
        if name and name in self.names:
            raise ValueError(f"release {name} {self.outcome(name)}")
        filtered = self.delta is not None
        if compose_records([*self.records, record], delta=0).delta and not filtered:
            raise ValueError("a ledger counts pure privacy: delta of the record must be null")
        records = (*self.records, record_of(entry_of(record, "", filtered)))
        account = replace(self, records=records, tickets=(*self.tickets, ticket), names=(*self.names, name))
        fits = account.left >= 0 and account.pure
        if not fits and not (filtered and account.spent_rho <= account.rho):
            raise OutOfBudget(self._short_of(account))
        for total in (account.spent, account.left, account.spent_rho):  # Python writes no longer numbers
            as_fraction(total, "epsilon, added up with all before it,")
        return account

    def outcome(self, name: str) -> str:
        """Say what became of a named release that was paid."""
        match self.ended.get(name):
            case None:
                return f"is paid and not finished, elsewhere: continue there, or give it up: --abandon {name}"
            case "":
                return "was abandoned: use another name"
            case _:
                return "is finished: use another name for another release"

    def composed(self, delta: Number) -> Composition:
        """Bound what all releases lose together; for information: the budget is kept by sums."""
        return compose_records(self.records, delta=delta)

    def _short_of(self, after: "Account") -> str:
        """Say what a release needs, and what is left of the budget."""
        needed, left = as_text(self.left - after.left), as_text(self.left)
        if self.delta is None:
            return f"epsilon: the release needs {needed}, and {left} of the budget of {self.stated} is left"
        rho = rounded_up(after.spent_rho - self.spent_rho, 4)
        needs = f"rho {rho}, and {self.in_rho[2]} of the budget of {self.stated} is left"
        return f"epsilon: the release needs {needs}" + (f"; or epsilon {needed}" if after.pure else "")


def entry_of(record: Mapping[str, Any], ticket: str, filtered: bool, name: str = "") -> dict[str, Any]:
    """Return what a line says of a release; with its rho and its delta where the budget has a delta."""
    if not re.fullmatch("([0-9a-f]{32})?", ticket):
        raise ValueError("a ticket must be 32 hexadecimal digits")
    if name and not re.fullmatch(RELEASE_ID, name):
        raise ValueError(
            "a release is named by at most 100 letters, digits and . _ : + -, such as 2026-11-28"
        )
    width = record["privacy"]["bounded_range"]
    rows = whole(record["privacy"].get("rows_per_person", 1), "privacy.rows_per_person")
    entry: dict[str, Any] = {
        "epsilon": as_text(positive(record["privacy"]["epsilon"], "privacy.epsilon")),
        "bounded_range": None if width is None else as_text(positive(width, "privacy.bounded_range")),
        "neighbours": relation_of(record["neighbours"]).value,
    }
    if "unit" in record["privacy"]:
        entry["unit"] = unit = str(record["privacy"]["unit"])
        if not re.fullmatch(UNIT, unit):
            raise ValueError("privacy.unit must name two tables, a key and a link")
    if filtered:
        read = loss_of_record(record)
        if read.loss.least_rho is None:
            raise ValueError("the ledger counts rho, and the release states none: leave out its delta")
        entry["rho"] = as_text(read.loss.least_rho)
        if read.delta:
            entry["delta"] = as_text(read.delta)
    entry |= {} if rows == 1 else {"rows_per_person": rows}
    entry |= {"ticket": ticket} if ticket else {}
    return entry | ({"release_id": name} if name else {})


def record_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a record that a line was made from."""
    privacy = {name: entry[name] for name in ("epsilon", "bounded_range")}
    privacy |= {name: entry[name] for name in ("rho", "rows_per_person", "unit") if name in entry}
    delta = entry.get("delta")
    return {"privacy": privacy, "neighbours": entry["neighbours"], "delta": delta, "private": True}
