"""From a public start: rows of it get weights, if one released number says that it is near enough."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, log
from typing import ClassVar, Self

import numpy as np

from queries.arrays import Booleans, Floats
from queries.domain import Integers
from smalldb.marginals.asks import Number, Worst
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.estimation import LARGE, Estimator
from smalldb.marginals.estimate.weighted_rows import Started
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.budgets import MOST_NOISE, SMALL, put_off
from smalldb.marginals.strategies.rounds import StoppingRule, one_round
from smalldb.marginals.strategies.strategy import (
    Estimate,
    Strategy,
    TableStrategy,
    whole_table,
)
from smalldb.marginals.universe import Universe, pairs_of
from smalldb.mechanisms import Dependence, Marginal
from smalldb.mechanisms.known_pairs import independent
from smalldb.mechanisms.start import Start
from smalldb.noise.gaussian import DiscreteGaussian
from smalldb.noise.geometric import Geometric
from smalldb.noise.privacy_loss import Loss

ASKING = Fraction(3, 40)  # of epsilon, for what is asked about the start
NUMBER = Fraction(2, 3)  # of that, for the number that says whether it is believed; the rest selects a column
PARTNERS = 3  # pairs of a column, the most dependent ones, that tell whether it is as in the data
MARGIN = 2.0  # in logarithms: a column that is selected stands out by that, and by the number of columns
MOST_PAIRS = 1 << 9  # whose tables that number is about
FEW = 64  # categories of a column that is measured once more
UNINFORMATIVE = 2  # tables, after which rounds end


def start_pairs(universe: Universe) -> tuple[tuple[int, int], ...]:
    """Return the pairs of columns whose tables say how near a start is: all of them, or evenly some."""
    pairs = [pair for pair in pairs_of(universe) if universe.size(pair) <= LARGE]
    return tuple(pairs[:: 1 + (len(pairs) - 1) // MOST_PAIRS] if pairs else ())


@lru_cache(maxsize=4)
def start_tables(universe: Universe) -> tuple[Marginal, ...]:
    """Return the tables of these pairs: the same ones for both questions, so that they are counted once."""
    return tuple(whole_table(pair, [universe.sizes[c] for c in pair]) for pair in start_pairs(universe))


# Proof: docs/proofs/start.md, lemma 1.
def apart(expected: Sequence[Integers], counts: Sequence[Integers]) -> int:
    """Return how far tables are from those expected, in rows: a row moves it by 1 for each table."""
    return sum(int(np.abs(table - other).sum()) for table, other in zip(counts, expected, strict=True))


def audible(plan: Adaptive) -> bool:
    """Whether a small table of a round is not lost in its noise."""
    return put_off(plan, [SMALL], Fraction(1))[0] <= MOST_NOISE


@dataclass(frozen=True, slots=True, kw_only=True)
class FromStart(TableStrategy):
    """Measure columns, ask whether a start is near with weights by them, and go on; else from scratch."""

    name: ClassVar[str] = Adaptive.name

    start: Start
    asking: Fraction  # the epsilon of both questions
    adaptive: Adaptive  # what is done from the start, and without it: of what asking leaves
    other: Strategy | None = None  # what is done without the start where that is not rounds: asked at once

    @classmethod
    def before(
        cls, start: Start, asking: Fraction, adaptive: Adaptive, other: Strategy, expected: float
    ) -> Self:
        """Return the question before what would be done without a start, whose error a rehearsal expects."""
        # what is independent in a start makes its rehearsal too good; the plan itself knows no law
        other_way = None if isinstance(other, Adaptive) else other
        whole = replace(adaptive, epsilon=adaptive.epsilon + asking)
        parts = {"start": start, "asking": asking, "adaptive": adaptive, "other": other_way}
        return cls.of(whole, expected=(expected + other.expected) / 2, **parts)

    @property
    def certifying(self) -> Fraction:
        """What the certificate costs."""
        return self.adaptive.certifying

    @property
    def cost(self) -> Fraction:
        """What all steps cost together, at most."""
        return self.asking + self.adaptive.cost

    @property
    def ways(self) -> tuple[Strategy, ...]:
        """From the start, or without it."""
        return (self.adaptive,) if self.other is None else (self.adaptive, self.other)

    # Proof: docs/proofs/losses.md, lemma 8; docs/proofs/start.md, "Theorem".
    @property
    def loss(self) -> Loss:
        """That of the questions, and of the way that loses more."""
        after = self.adaptive.loss if self.other is None else self.adaptive.loss.either(self.other.loss)
        number, rest = self.asking * NUMBER, self.asking * (1 - NUMBER)
        questions = self.law.loss_of_number(number).together(self.law.loss_of_selection(rest))
        return questions.together(after)

    @property
    def most_tables(self) -> int:
        """How many tables of counts are measured at most, whatever is answered."""
        return max(way.most_tables for way in self.ways) + len(self.universe.sizes)

    @property
    def expected_pairs(self) -> int:
        """How many are expected to be."""
        return self.adaptive.expected_pairs

    @property
    def method(self) -> str:
        """What it is called."""
        return f"{self.adaptive.method}, from a public start"

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        question = "two questions that decide whether the public start is used"
        return f"{self.adaptive.described}; and {question}"

    @property
    def public(self) -> tuple[object, ...]:
        """What decides what is done."""
        ways = [part for way in self.ways for part in way.public]
        return (self.asking, self.start.digest, self.start.rows, *ways)

    # Proof: docs/proofs/start.md, "Theorem".
    def release(self, count: int | None) -> Steps:
        """Ask at once where nothing else would be measured first; else as `TableStrategy.release`."""
        if self.other is not None:
            start = Started.of(self.start, self.universe, self.rows)
            if not self.believes((yield self.question(start)), self.rows):
                return (yield from self.other.release(count))
        return (yield from TableStrategy.release(self, count))

    def steps(self) -> Steps:
        """Measure columns, ask, and go on from the start or without it."""
        return (yield from self.adaptive.steps(beginning=self._begun))

    # Proof: docs/proofs/start.md, lemma 1.
    def question(self, start: Started) -> Number:
        """Ask how far the data are from a start with weights: the sum of the distances of tables of pairs."""
        pairs = start_pairs(self.universe)
        expected = [np.rint(start.table(pair)).astype(np.int64) for pair in pairs]
        return Number(
            of=start_tables(self.universe),
            function=partial(apart, expected),
            moved=len(pairs),
            noise=self._noise(len(pairs)),
            part=Dependence(pairs, of_start=True),
        )

    # Proof: docs/proofs/start.md, lemma 1.
    def believes(self, answer: int, total: int) -> bool:
        """Whether tables of the start are nearer than is expected without it, or noise may hide that."""
        pairs = len(start_pairs(self.universe))
        return answer < self.expected * 2 * total * pairs + self._noise(pairs).mean_size

    # Proof: docs/proofs/start.md, lemma 2.
    def worst_column(self, start: Started) -> Worst:
        """
        Ask which column the data relate to others least as a start does; the last answer: none stands out.

        A row agrees with the start on a pair of columns where it is in a cell that one half of the start's
        rows hold more often than if the columns were independent. The other half says how often it should be.
        """
        pairs, sizes, cost = start_pairs(self.universe), self.universe.sizes, self.asking * (1 - NUMBER)
        halves, signs, expected = start.halves(), list[Booleans](), list[list[float]]()
        for pair in pairs:
            one, other = (half.table(pair) for half in halves)
            signs.append(one > independent(one))
            expected.append([float((table * signs[-1]).sum()) for table in (other, independent(other))])
        related, chance = np.array(expected).T
        order = np.argsort(chance - related, kind="stable").tolist()
        partners = [[p for p in order if c in pairs[p]][:PARTNERS] for c in range(len(sizes))]
        middle = [round(float((related + chance)[pairs_of_column].sum()) / 2) for pairs_of_column in partners]
        margin = ceil(2 * PARTNERS / cost * (log(len(sizes)) + MARGIN))

        def scores(counts: list[Integers]) -> Integers:
            agree = [int((table * sign).sum()) for table, sign in zip(counts, signs, strict=True)]
            agreeing = [sum(agree[p] for p in pairs_of_column) for pairs_of_column in partners]
            return np.array([*(half - rows for half, rows in zip(middle, agreeing, strict=True)), margin])

        fixed = {c for columns, _ in self.universe.rules for c in columns}
        return Worst(
            of=start_tables(self.universe),
            scores=scores,
            moved=PARTNERS,
            law=self.law,
            cost=cost,
            possible=np.array([c not in fixed for c in range(len(sizes) + 1)]),
        )

    def _noise(self, pairs: int) -> Geometric | DiscreteGaussian:
        """Return the noise of a number about so many pairs."""
        return self.law.noise_of_number(self.asking * NUMBER, self.law.moved * pairs)

    def _begun(self, estimator: Estimator, first: Sequence[NoisyTable]) -> Steps:
        """Ask, and go on from the start; None: it is not believed."""
        plan, universe, columns = self.adaptive, self.universe, estimator.columns
        sizes, ordered = universe.sizes, universe.ordered

        def weighted(start: Start) -> tuple[Started, Started]:
            shares: list[Floats] | None = None
            for _ in range(2):  # independent rows have the columns of the start, and then those of the data
                from_start = Started.of(start, universe, estimator.total, shares)
                now = from_start.with_columns([[one] for one in columns], ordered)
                shares = [now.targets[((c,),)][1] for c in range(len(sizes))]
            for table in first:
                now = now.after(table, [np.arange(sizes[c]) for c, _ in table.scope])
            return from_start, now

        from_start, now = weighted(self.start)
        if (wrong := (yield self.worst_column(now))) < len(sizes):
            from_start, now = weighted(self.start.without(wrong, now.targets[((wrong,),)][1]))
        if self.other is None and not self.believes((yield self.question(now)), estimator.total):
            return None
        read = [np.rint(now.table((c,))).astype(np.int64) for c in range(len(sizes))]
        known = tuple(replace(one, counts=n, variance=1.0) for one, n in zip(columns, read, strict=True))
        estimator = Estimator.of(plan, known)
        grouped = yield from plan.grouped_first(estimator)
        tables = [*(estimator.ranked(table) for table in first), *grouped]
        for table in grouped:
            now = now.after(table, estimator.groups_of(table))
        left, rules, counted = plan.for_rounds, StoppingRule(), estimator.layout.linear()
        while plan.rounds and audible(plan) and rules.uninformative < UNINFORMATIVE:
            expected = now.predicted(counted)
            of_round = yield from one_round(plan, estimator, tables, None, expected, left, counted)
            if of_round is None:
                break
            table, informative = of_round
            left -= plan.selecting + table.cost
            rules = rules.after(informative)
            if informative:
                now = now.after(table, estimator.groups_of(table))
            tables.append(table)
        again = tuple[NoisyTable, ...]()
        if left:
            # what the start tells of many categories is smooth: of few, noise is heard
            few = [c for c, size in enumerate(sizes) if size <= FEW] or range(len(sizes))
            again = yield from plan.columns_again(left, few, columns)
            both = [
                [first_time, second] if c in few else [first_time]
                for c, (first_time, second) in enumerate(zip(columns, again, strict=True))
            ]
            now = replace(from_start, targets=now.targets).fitted() if tables else from_start
            now = now.with_columns(both, ordered)
        pairs = [pair for pair in pairs_of(universe) if universe.size(pair) <= LARGE]
        fixed = frozenset(c for columns, _ in universe.rules for c in columns)
        making = partial(now.rows, pairs, fixed)
        measures, left_out = (columns, tuple(tables), (), again), wrong if wrong < len(sizes) else None
        return Estimate(plan, estimator.total, None, making, *measures, from_start=True, left_out=left_out)
