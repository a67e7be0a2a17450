"""Rounds, or all pairs of columns at once, as one released number decides."""

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import ClassVar

import numpy as np

from smalldb.exact.bits import BitSource
from smalldb.marginals.adaptive.dependence_test import MOVED, answerable, ask, mostly, tops
from smalldb.marginals.counted_rows import CountedRows, counted
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_pairs import AllPairs, counts_of, variances
from smalldb.marginals.strategies.outcome import Fitted, Progress, TableStrategy
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Dependence, Journal, Measurement
from smalldb.noise.privacy_loss import Loss

ASKING = Fraction(1, 64)  # of all but the certificate, for asking whether most pairs depend


@dataclass(frozen=True, slots=True)
class DependenceTested(TableStrategy):
    """
    Asked first, whether most pairs of columns depend; where they do, all are measured at once. It is pure.

    Attributes
    ----------
    asking
        The epsilon of the number that tells.
    adaptive, at_once
        What is done then; each has what asking leaves.
    """

    name: ClassVar[str] = "adaptive"

    asking: Fraction
    adaptive: Adaptive
    at_once: AllPairs

    @property
    def universe(self) -> Universe:
        """The columns, the rules and the workload."""
        return self.adaptive.universe

    @property
    def epsilon(self) -> Fraction:
        """Of the guarantee, all together."""
        return self.asking + self.adaptive.epsilon

    @property
    def delta(self) -> Fraction | None:
        """None: it is pure."""
        return None

    @property
    def law(self) -> PrivacyMeasure:
        """How the costs of rounds are counted."""
        return self.adaptive.law

    @property
    def certifying(self) -> Fraction:
        """What the certificate costs after rounds."""
        return self.adaptive.certifying

    @property
    def expected(self) -> float:
        """About the mean distance of the workload's tables: of the better way, if the answer is right."""
        return min(self.at_once.expected, self.adaptive.expected)

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def loss(self) -> Loss:
        """That of the question, and of the way that loses more."""
        return self.law.loss_of_number(self.asking).together(self.adaptive.loss.either(self.at_once.loss))

    @property
    def most_tables(self) -> int:
        """How many tables of counts are measured at most, whatever is answered."""
        return max(self.adaptive.most_tables, self.at_once.most_tables)

    @property
    def most_pairs(self) -> int:
        """All of them, if most depend."""
        return self.at_once.most_pairs

    @property
    def most_rows(self) -> int:
        """How many rows are made at most where their number is read from what was released."""
        return self.adaptive.most_rows

    @property
    def method(self) -> str:
        """What it is called."""
        return self.adaptive.method

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        return f"{self.adaptive.described}; or all pairs of columns at once, if most depend"

    @property
    def public(self) -> tuple[object, ...]:
        """What decides what is done."""
        return (self.asking, *self.adaptive.public, *self.at_once.public)

    # Proof: docs/proofs/rounds.md, lemma 13.
    @property
    def answerable(self) -> bool:
        """Whether there is an answer to hear."""
        _, noise = variances(self.universe, self.at_once.measuring, self.law.replaced)
        return answerable(self.universe, noise, self.at_once.law, self.asking)

    # Proof: docs/proofs/rounds.md, lemma 13.
    def fit(
        self, rows: CountedRows, journal: Journal, progress: Progress | None, executor: Executor | None
    ) -> Fitted:
        """Ask whether most pairs of columns depend, and follow the answer."""
        universe, law = self.universe, self.law
        _, noise = variances(universe, self.at_once.measuring, law.replaced)
        # of all columns and pairs; not where all was released before
        tables = cache(lambda: counted(rows, partial(counts_of, universe), executor))

        def draw(coins: BitSource) -> int:
            return ask(universe, tables()[len(universe.sizes) :], noise, law, self.asking, coins)

        answer = journal.step(draw)
        if mostly(answer, universe, noise):
            found = self.at_once.fit_counted(tables, journal, progress)
        else:
            del tables
            found = self.adaptive.fit(rows, journal, progress, executor)
        history = replace(found.history, dependence=answer)
        most = tops(universe, noise)
        told = Measurement(
            (Dependence(tuple(most), tuple(most.values())),),
            np.array([answer]),
            law.noise_of_number(self.asking, law.moved * MOVED * len(most)),
            self.asking,
        )
        measurements = (told, *found.measurements)
        return replace(found, history=history, spent=found.spent + self.asking, measurements=measurements)
