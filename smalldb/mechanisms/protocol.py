"""What a mechanism is: the one protocol that planning, releasing and reporting know it by."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

from queries.domain import Bits
from smalldb.accounting.concentrated import rho_of
from smalldb.mechanisms.request import Request
from smalldb.noise.privacy_loss import Amount, Loss


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The privacy that a release has, exactly."""

    epsilon: Fraction  # that asked for, or less
    delta: Fraction | None = None  # None: the guarantee is pure, also where a delta was allowed
    # what is known besides: a rho, and laws of the loss, which compose better than epsilon. None: nothing.
    loss: Loss | None = None
    # the epsilon that the exponential mechanism is run with, where it is not the one that is stated
    internal: Fraction | None = None
    pure: Fraction = Fraction(0)  # beside a delta: what of epsilon is for answers that are pure

    def __post_init__(self) -> None:
        """Refuse, as a defect, to lose more than is charged; what has a delta has proofs of its own."""
        if self.delta is None and not (self.stated.epsilon or 0) <= self.epsilon:
            raise AssertionError(f"{self.stated.epsilon} is lost where {self.epsilon} is paid")

    @property
    def stated(self) -> Loss:
        """The loss; of what is only known to be pure, that of epsilon."""
        if self.loss is not None:
            return self.loss
        return Loss.pure(self.epsilon) if self.delta is None else Loss(None, None)

    # Proof: docs/proofs/curator.md, "Theorem".
    @property
    def paid(self) -> Amount:
        """Up to what a curator may answer: what is stated, where epsilon and delta prove it."""
        if self.delta is None:
            return Amount(self.stated.epsilon or Fraction(0))
        proved = rho_of(self.epsilon - self.pure, self.delta)
        return Amount(self.pure, proved if self.stated.rho is None else min(proved, self.stated.rho))


@dataclass(frozen=True, slots=True)
class Facts:
    """What a mechanism will do, in words that `reporting` lays out; public."""

    method: str  # what it is called, and its most telling number: "adaptive marginals (at most 28 rounds)"
    known: str  # what will be known of the data, as a phrase
    described: str  # what it does, for readers who do not know its name: a sentence without a full stop
    cost: str  # the time and memory that it will take, as a phrase


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """What a mechanism drew."""

    codes: Bits  # the synthetic rows, shape (m, d), in the order in which they are released
    # the error that is not exceeded with probability 1 - beta, where it is known only with the release; made
    # of released numbers alone
    bound: float | None = None
    # what that bound covers, in words; public. Empty: every query of the workload.
    covers: tuple[str, ...] = ()
    # what the curator may look at and must not publish, by name
    confidential: Mapping[str, Any] = field(default_factory=dict)
    # whether the table is made from a public start, and without which column of it; None: there was none
    from_start: Mapping[str, Any] | None = None


class Promise(Protocol):
    """What is known of the error, from public numbers alone."""

    @property
    def bound(self) -> float | None:
        """The provable error: not exceeded with probability 1 - beta; None: not known before the release."""
        return None

    @property
    def expected_error(self) -> float | None:
        """The mean error that mechanisms are compared by; None: it would depend on a private n."""

    @property
    def proved(self) -> bool:
        """Whether the mean error is provably not larger than `expected_error`, which else is an estimate."""
        return False

    @property
    def theorems(self) -> Mapping[str, float]:
        """What published theorems state about this release, by name."""
        return {}

    def recorded(self, drawn: Drawn | None) -> dict[str, Any] | None:
        """Return the entry `bounds` of the record, before a release (None) or of one; None: there is none."""


@runtime_checkable
class Resumable(Protocol):
    """A mechanism that asks a curator step by step: a killed release goes on after its last step."""

    @property
    def public(self) -> Sequence[object]:
        """What decides its steps, for `files.checkpoints.identity`: public texts, numbers and arrays."""

    def steps(self) -> Generator[Any, Any, Drawn]:
        """Ask for what it wants to know; return what was drawn."""


class Mechanism(Protocol):
    """A mechanism that was asked for a release and can do it: a frozen value, public as a whole.

    A new mechanism is a class of this shape in a room of its own, and a line in `planning.mechanisms`. It is
    `Resumable`, or draws a small database at once by a method `draw`: see `marginals.asks.SmallDatabase`.
    """

    name: ClassVar[str]  # its name in records, arguments and words
    # whether the arguments of these names are for it
    takes_candidates: ClassVar[bool] = False
    takes_delta: ClassVar[bool] = False
    takes_target: ClassVar[bool] = False
    takes_start: ClassVar[bool] = False

    @classmethod
    def planned(cls, request: Request) -> "Mechanism | str":
        """Return the mechanism with the rows asked for, or with rows of its own choice; or why it cannot."""

    @classmethod
    def least_error(cls, request: Request) -> float:
        """Return what `Promise.expected_error` of a plan is at least, at little cost; 0: nothing is known."""
        return 0.0

    @classmethod
    def remedy(cls, request: Request) -> str:
        """Return what could be done where the rows asked for cannot: ``"; ..."``; empty: nothing to add."""
        return ""

    @property
    def rows(self) -> int | None:
        """m, the rows of the synthetic table; None: the release will tell."""

    @property
    def candidates(self) -> str | None:
        """The base measure; None: there are no candidates."""
        return None

    @property
    def candidate_count(self) -> int | None:
        """|R|, the number of candidates; None: there are none."""
        return None

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of the release."""

    @property
    def promise(self) -> Promise:
        """What is known of its error."""

    @property
    def cost(self) -> Mapping[str, Any] | None:
        """What it will take, for machines; None: not known from public numbers."""
        return None

    @property
    def facts(self) -> Facts:
        """What it will do, for people."""
