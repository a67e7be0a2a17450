"""One number first: how far pairs of columns are from independent; what is measured then follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import pi, sqrt
from typing import ClassVar, Self, TypeAlias

import numpy as np

from queries import Workload
from queries.domain import Integers
from smalldb.marginals.asks import Number
from smalldb.marginals.curator import Steps
from smalldb.marginals.expected_error import USUAL
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_pairs import AllPairs
from smalldb.marginals.strategies.strategy import Setting, TableStrategy
from smalldb.marginals.universe import Universe, pairs_of
from smalldb.mechanisms import Dependence, Marginal
from smalldb.noise.privacy_loss import Loss

LEVELS = (0.02, 0.04, 0.065, USUAL, 0.13, 0.2, 0.35)  # mean distances of pairs from independent columns
SPREAD = 0.07  # of distances of data sets around the usual one, as a standard deviation
SKEWED = 0.75  # of what sampling adds to distances of columns whose categories are all alike
# of all but the certificate, for the number: the first that is heard
SHARES = (Fraction(1, 100), Fraction(1, 50), Fraction(1, 30))
QUIET = 0.02  # noise of the number, as a distance, that is little
LOUD = 0.06  # noise that leaves nothing to hear
GROUPS = 8  # runs of categories that a column is counted by, at most
MOST_PAIRS = 1 << 9  # of all, evenly
# by how much a row that is added or removed moves the distance of a table from independent columns, at most;
# and half of what a row that is replaced does
MOVED = {False: 4, True: 3}
Way: TypeAlias = Adaptive | AllPairs
_PLAIN = 1 << 30  # rows up to which products of counts, and their sums, fit int64


def dependence_tables(universe: Universe) -> list[Marginal]:
    """Return the tables that the number is about: of all pairs of columns, or evenly some."""
    groups = [tuple(code * min(size, GROUPS) // size for code in range(size)) for size in universe.sizes]
    pairs = pairs_of(universe)
    return [Marginal((a, b), (groups[a], groups[b])) for a, b in pairs[:: 1 + (len(pairs) - 1) // MOST_PAIRS]]


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
def summed(counts: Sequence[Integers]) -> int:
    """Return the sum of the distances of tables."""
    return sum(map(distance, counts))


# Proof: docs/proofs/rounds.md, lemma 13.
def ask(universe: Universe, law: PrivacyMeasure, cost: Fraction) -> Number:
    """Ask how far pairs of columns depend: the sum of the distances of their tables."""
    of = dependence_tables(universe)
    moved = MOVED[law.replaced] * len(of)
    return Number(
        of=of,
        function=summed,
        moved=moved,
        noise=law.noise_of_number(cost, law.moved * law.unit * moved),
        part=Dependence(tuple((a, b) for a, b in (table.columns for table in of)), groups=GROUPS),
    )


def loudness(setting: Setting, cost: Fraction) -> float:
    """Return the mean size of the noise of a number of that cost, as a mean distance."""
    law = setting.law
    return law.noise_of_number(cost, law.moved * law.unit * MOVED[law.replaced]).mean_size / (
        2 * setting.rows
    )


def level_of(answer: int, setting: Setting, cost: Fraction) -> int:
    """Return the level that is nearest to what the number tells, less what sampling adds to distances."""
    tables, rows = dependence_tables(setting.universe), setting.rows
    free = [(a - 1) * (b - 1) for a, b in (table.shape for table in tables)]
    sampled = sum(map(sqrt, free)) / len(free) / sqrt(2 * pi * rows)
    apart = answer / (2 * rows * len(tables))
    apart = sqrt(max(0.0, apart * abs(apart) - (SKEWED * sampled) ** 2))
    loud = sqrt(pi / 2) * loudness(setting, cost)
    apart = USUAL + (apart - USUAL) / (1 + (loud / SPREAD) ** 2)
    return min(range(len(LEVELS)), key=lambda level: abs(np.log(LEVELS[level] / max(apart, 1e-9))))


@dataclass(frozen=True, slots=True, kw_only=True)
class DependenceTested(TableStrategy):
    """Ask first how far pairs of columns depend, and go on by the answer."""

    name: ClassVar[str] = "adaptive"

    asking: Fraction  # what the number costs
    choices: tuple[Way, ...]  # what is done at each of `LEVELS`, of what asking leaves

    @classmethod
    def before(cls, setting: Setting, choices: Sequence[Way], asking: Fraction) -> Self:
        """Return the question before what is done at each level; the error at the usual one is expected."""
        return cls.of(
            setting, expected=choices[LEVELS.index(USUAL)].expected, asking=asking, choices=tuple(choices)
        )

    @property
    def costs(self) -> tuple[object, ...]:
        """Of the number, and of what is done then."""
        return (self.asking, *(part for way in self.ways for part in way.public))

    @property
    def cost(self) -> Fraction:
        """What all steps cost together, at most."""
        return self.asking + max(way.cost for way in self.ways)

    @property
    def ways(self) -> tuple[Way, ...]:
        """All that may be done, from what is done where least depends."""
        return tuple({(way.name, way.costs): way for way in self.choices}.values())

    @property
    def spread(self) -> tuple[float, float]:
        """What is expected of the ways."""
        expected = [way.expected for way in self.choices]
        return min(expected), max(expected)

    def saved(self, workload: Workload, beta: Fraction) -> Self:
        """Return it with all pairs without a certificate."""
        return replace(self, choices=tuple(way.saved(workload, beta) for way in self.choices))

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def loss(self) -> Loss:
        """That of the number, and of the way that loses most."""
        ways = reduce(Loss.either, (way.loss for way in self.ways))
        return self.law.loss_of_number(self.asking).together(ways)

    @property
    def usual(self) -> Way:
        """What is done at the usual level."""
        return self.choices[LEVELS.index(USUAL)]

    @property
    def column_variances(self) -> Mapping[int, float]:
        """Those of what is usual."""
        return self.usual.column_variances

    @property
    def expected_pairs(self) -> int:
        """Those of what is usual."""
        return self.usual.expected_pairs

    @property
    def method(self) -> str:
        """What it is called."""
        return self.usual.method

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        usual = self.usual.described
        others = [text for text in dict.fromkeys(way.described for way in self.ways) if text != usual]
        return "; or ".join([f"how far columns depend decides: {usual}", *others])

    # Proof: docs/proofs/rounds.md, lemma 13.
    def steps(self) -> Steps:
        """Ask how far pairs of columns depend, and follow the answer."""
        answer = yield ask(self.universe, self.law, self.asking)
        estimate = yield from self.choices[level_of(answer, self, self.asking)].steps()
        return replace(estimate, dependence=answer)
