"""The curator: the one holder of the data, of random bits and of the journal of a release.

A strategy is a generator. It yields what it wants to know, is sent what was released, and returns an
estimate. It never holds the data, so whatever it does with what it was sent is post-processing.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from smalldb.exact.bits import BitSource
from smalldb.marginals.asks import Ask, Order, SmallDatabase, Worst
from smalldb.marginals.counts import Counts
from smalldb.mechanisms import Drawn, Journal, Measurement, Resumable
from smalldb.noise.privacy_loss import Amount

Steps: TypeAlias = Generator[Ask, Any, Any]
Progress: TypeAlias = Callable[[int, int], None]
SHOWN = 1000  # of a bar: all that was paid


class Unpaid(AssertionError):
    """A strategy asks for more than was paid: a defect of the strategy. Nothing was drawn."""


@dataclass(eq=False)
class PrivacyFilter:
    """What was paid for a release and what of it is spent, whoever spends it (Rogers et al. 2016)."""

    paid: Amount
    replaced: bool  # whether neighbours have a row replaced; else it is added or removed
    spent: Amount = field(default_factory=Amount)

    # Proof: docs/proofs/curator.md, "Theorem".
    def spend(self, lost: Amount) -> None:
        """Add what an answer loses, before it is drawn; refuse what was not paid."""
        spent = self.spent.plus(lost)
        if not spent.within(self.paid):
            both = (", ".join(f"{part:g}" for part in map(float, each)) for each in (spent, self.paid))
            raise Unpaid("(epsilon, rho, delta) would be ({}), and ({}) is paid".format(*both))
        self.spent = spent

    @property
    def share(self) -> Fraction:
        """About which part is spent."""
        parts = [part / whole for part, whole in zip(self.spent, self.paid, strict=True) if whole]
        return sum(parts, Fraction(0)) / max(1, len(parts))


@dataclass(eq=False)
class Curator:
    """It answers a strategy: it counts, draws, keeps what was released, and refuses what is not paid."""

    data: Counts
    journal: Journal
    budget: PrivacyFilter
    progress: Progress | None = None
    measurements: list[Measurement] = field(default_factory=list)
    _selecting: Fraction | None = None  # what was paid for choosing what is measured next

    # Proof: docs/proofs/curator.md, "Theorem".
    def follow(self, steps: Steps) -> Any:
        """Answer a strategy step by step, and return what it makes of the answers."""
        answer = None
        while True:
            try:
                ask = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = self.answer(ask)

    def run(self, mechanism: Any, progress: bool) -> Drawn:
        """Draw a release by a mechanism: step by step, or a small database at once."""
        if isinstance(mechanism, Resumable):
            drawn: Drawn = self.follow(mechanism.steps())
        else:
            drawn = self.answer(SmallDatabase(mechanism, progress))
        return drawn

    # Proof: docs/proofs/curator.md, "Theorem"; docs/proofs/rounds.md, lemma 11.
    def answer(self, ask: Ask) -> Any:
        """Draw an answer and keep it; what was drawn before is read, and the data are not looked at again."""
        lost = ask.lost(self.budget.replaced, self.data.unit)
        self.budget.spend(lost)
        if self.progress is not None:
            self.progress(int(SHOWN * self.budget.share), SHOWN)
        if isinstance(ask, Order):
            return ask.draw(None, self.journal.postprocessing_bits())
        answer = self.journal.step(lambda coins: self.draw(ask, coins), ask.pack, ask.unpack)
        self.measurements += ask.measurements(answer, lost.epsilon + lost.rho, self._selecting)
        self._selecting = ask.cost if isinstance(ask, Worst) else None
        return answer

    def draw(self, ask: Ask, coins: BitSource) -> Any:
        """Draw an answer: of what a release shows, here alone the data meet random bits."""
        return ask.draw(ask.exact(self.data), coins)
