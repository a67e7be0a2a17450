"""Rounds, or all pairs of columns at once, as one released number decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import pi, sqrt
from typing import ClassVar, Self

import numpy as np

from queries import Workload
from queries.domain import Integers
from smalldb.marginals.asks import Number
from smalldb.marginals.curator import Steps
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_pairs import AllPairs, tables_measured
from smalldb.marginals.strategies.strategy import Strategy, TableStrategy
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Dependence
from smalldb.noise.privacy_loss import Loss

ASKING = Fraction(1, 64)  # of all but the certificate, for asking whether most pairs depend

MOVED = 4  # by how much the distance of a table from independent columns moves with a row, at most
DEPENDENT_SHARE = 2 / 5  # of the largest number that can be released: from there on, most pairs depend
_NOISES_AT_TOP = 3  # times the noise of a table, beyond which its distance counts no further
_MOST_NOISE_SHARE = 1 / 4  # of the largest number: its mean noise, at most
_PLAIN = 1 << 30  # rows up to which products of counts, and their sums, fit int64

Pairs = Mapping[tuple[int, int], float]


def tops(universe: Universe, noise: Pairs) -> dict[tuple[int, int], int]:
    """Return up to which distance, in rows, each pair counts: some times what such noise puts its table off.

    Columns that are nearer to independent than noise are better left alone than measured with it.
    """
    return {pair: round(_NOISES_AT_TOP * sqrt(v * 2 / pi) * universe.size(pair)) for pair, v in noise.items()}


def answerable(universe: Universe, noise: Pairs, law: PrivacyMeasure, cost: Fraction) -> bool:
    """Whether the number at that cost is not lost in its own noise."""
    most = tops(universe, noise)
    return law.noise(cost / (MOVED * len(most))).mean_size <= _MOST_NOISE_SHARE * sum(most.values())


# Proof: docs/proofs/rounds.md, lemma 13.
def distance(counts: Integers) -> int:
    """
    Return how far the counts of a table are from those of independent columns with its margins, rounded down.

    The sum over cells of abs(count - row sum x column sum / n), in exact integers.

    >>> distance(np.array([[3, 0], [0, 3]]))
    6
    """
    n = int(counts.sum())
    if not n:
        return 0
    exact = counts if n < _PLAIN else counts.astype(object)
    return int(np.abs(n * exact - np.outer(exact.sum(axis=1), exact.sum(axis=0))).sum()) // n


# Proof: docs/proofs/rounds.md, lemma 13.
def summed(most: Sequence[int], counts: Sequence[Integers]) -> int:
    """Return the sum of the distances of tables, each up to its top; a row moves it by `MOVED` for each."""
    return sum(min(top, distance(table)) for top, table in zip(most, counts, strict=True))


def mostly(released: int, universe: Universe, noise: Pairs) -> bool:
    """Tell whether that number says that most pairs depend."""
    return released >= DEPENDENT_SHARE * sum(tops(universe, noise).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DependenceTested(TableStrategy):
    """Ask first whether most pairs of columns depend; where they do, all are measured at once. It is pure."""

    name: ClassVar[str] = "adaptive"

    asking: Fraction  # the epsilon of the number that tells
    # what is done then; each has what asking leaves
    adaptive: Adaptive
    at_once: AllPairs

    @classmethod
    def before(cls, adaptive: Adaptive, at_once: AllPairs) -> Self:
        """Return the question before two ways; the better one is expected, if the answer is right."""
        asking, expected = at_once.measuring * ASKING, min(at_once.expected, adaptive.expected)
        after = adaptive.after(asking), at_once.after(asking)
        return cls.of(adaptive, expected=expected, asking=asking, adaptive=after[0], at_once=after[1])

    @property
    def cost(self) -> Fraction:
        """What all steps cost together, at most."""
        return self.asking + max(self.adaptive.cost, self.at_once.cost)

    @property
    def ways(self) -> tuple[Strategy, ...]:
        """Both."""
        return self.adaptive, self.at_once

    def saved(self, workload: Workload, beta: Fraction) -> Self:
        """Return it with all pairs without a certificate, if there is an answer then."""
        tested = replace(self, at_once=self.at_once.saved(workload, beta))
        return tested if tested.answerable else self

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
    def expected_pairs(self) -> int:
        """Those of rounds: whether most depend is not public."""
        return self.adaptive.expected_pairs

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
        return answerable(self.universe, self.at_once.noise.variances[1], self.at_once.law, self.asking)

    # Proof: docs/proofs/rounds.md, lemma 13.
    def steps(self) -> Steps:
        """Ask whether most pairs of columns depend, and follow the answer."""
        universe, law = self.universe, self.law
        _, noise = self.at_once.noise.variances
        answer = yield ask(universe, noise, law, self.asking)
        found = yield from (self.at_once if mostly(answer, universe, noise) else self.adaptive).steps()
        return replace(found, dependence=answer)


# Proof: docs/proofs/rounds.md, lemma 13.
def ask(universe: Universe, noise: Pairs, law: PrivacyMeasure, cost: Fraction) -> Number:
    """Ask how far pairs of columns depend: the sum of the distances of their tables, each up to its top."""
    most = tops(universe, noise)
    return Number(
        of=[table for table in tables_measured(universe) if len(table.columns) == 2],
        function=partial(summed, [*most.values()]),
        moved=MOVED * len(most),
        noise=law.noise_of_number(cost, law.moved * law.unit * MOVED * len(most)),
        part=Dependence(tuple(most), tuple(most.values())),
    )
