"""Tables selected by what was released before, and measured, round by round."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import comb
from typing import ClassVar, Self, TypeAlias

import numpy as np

from queries import Workload
from smalldb.marginals.asks import Noisy, columns_at_once
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.column_estimates import pairs_within, read_margins
from smalldb.marginals.estimate.earlier_tables import columns_of, with_earlier
from smalldb.marginals.estimate.estimation import Estimator, Known
from smalldb.marginals.estimate.refitting import at_first
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.noise_bounds import Whole, cells_of_tables
from smalldb.marginals.strategies.all_pairs import PAIRS_UNDRAWABLE, halves_of, modelled, read_halves
from smalldb.marginals.strategies.budgets import RoundsBudget, column_groups, shares_of_columns
from smalldb.marginals.strategies.first_tables import groups_of_first, wanted_first
from smalldb.marginals.strategies.rounds import ModelCapacity, StoppingRule, one_round
from smalldb.marginals.strategies.strategy import Estimate, measured, table_of, whole_table
from smalldb.marginals.universe import pairs_of
from smalldb.mechanisms import Measurement
from smalldb.noise.cone import ConeDifference
from smalldb.noise.k_norm import KNorm
from smalldb.noise.privacy_loss import Loss, rounded_up

LEAST = Fraction(1, 8)  # of what columns cost, what is worth measuring them again

# what may go on after columns, and first tables of all categories, in another way: an estimate, or None
Beginning: TypeAlias = Callable[[Estimator, Sequence[NoisyTable]], Steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive(RoundsBudget):
    """Every column first; then rounds, each of which selects a table, measures it, and fits a model."""

    name: ClassVar[str] = "adaptive"

    @property
    def method(self) -> str:
        """What it is called."""
        if self.halved:
            return "marginals of columns, and of all pairs of columns in halves"
        return f"adaptive marginals (at most {self.rounds} rounds)" if self.rounds else "marginals of columns"

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        steps = ["columns"] if any(self.columns) else []
        if self.first:
            share = float(self.for_first / (self.cost - self.certifying))
            tables = f"{self._named} ({share:.0%} of the budget)"
            if self.first[0].whole:
                steps = [tables, *(f"other {step}" for step in steps)]
            else:
                steps.append(tables)
        if self.halved:
            steps.append("all pairs of columns, each in two groups of categories, at once")
        elif self.rounds:
            steps.append(f"tables selected in up to {self.rounds} rounds")
        drowned = "; tables of the target would be hidden by noise" if self._drowned else ""
        return f"{', then '.join(steps)}, with {self._noise}{drowned}"

    @property
    def _noise(self) -> str:
        """What its noise is called: that of columns at once, and that of all other tables."""
        at_once = [group for group in self.together if len(group) > 1]
        others = self.rounds or self.first or len(at_once) < len(self.together)
        if self.halved:
            others = len(at_once) < len(self.together)
        words = [KNorm.word] * bool(at_once) + [self.law.noise(Fraction(1)).word] * bool(others)
        return f"{' and '.join([*words, *[ConeDifference.word] * self.halved])} noise"

    @property
    def _drowned(self) -> bool:
        """Whether tables of a target are wanted, and left out because noise would drown them."""
        return len(self.first) < len(wanted_first(self.universe))

    @property
    def _named(self) -> str:
        """What the first tables are called."""
        of_target = "tables of the target" if len(self.universe.targets) < 2 else "tables of the targets"
        stars = {first.columns for first in self.first} - set(self.universe.named)
        return " and ".join(["named tables"] * bool(self.universe.named) + [of_target] * bool(stars))

    def measures_all(self, workload: Workload) -> bool:
        """Whether every query is a cell of a column, and all columns are measured by themselves."""
        return cells_of_tables(workload, 1) and all(self.columns)

    @property
    def most_tables(self) -> int:
        """How many tables are measured at most, columns too: a table of two groups each is the cheapest."""
        columns = sum(map(bool, self.columns))
        if not self.rounds:
            return len(self.first) + columns
        if self.halved:
            return 2 * len(self.columns) + self.most_pairs
        return len(self.first) + columns + self.most_rounds + len(self.columns)  # they may come again

    @property
    def most_pairs(self) -> int:
        """How many pairs of columns are measured together at most: those of first tables, and of rounds."""
        if self.halved:
            return len(pairs_of(self.universe))
        widest = max(map(len, self.universe.tables))
        return self._pairs_after(self.most_rounds * comb(widest, 2))

    @property
    def expected_pairs(self) -> int:
        """How many are expected: one a round; in 19 releases of real tables, .65 to 1.3 times that."""
        return self.most_pairs if self.halved else self._pairs_after(self.rounds)

    def _pairs_after(self, of_rounds: int) -> int:
        """Return how many pairs first tables and rounds measure, if rounds have so many new ones."""
        first = {pair for table in self.first for pair in combinations(table.columns, 2)}
        return len(first) + min(len({*pairs_of(self.universe)} - first), of_rounds)

    @property
    def most_rounds(self) -> int:
        """How many tables of four cells the budget pays for."""
        return int(self.for_rounds // (self.selecting + self.cost_of(4))) if self.rounds else 0

    def undrawable(self, n: int | None) -> str | None:
        """Say why several tables cannot be drawn, where pairs are measured at once: no refit is known."""
        return f"{PAIRS_UNDRAWABLE}: add --measure-first, or leave out --tables" if self.halved else None

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def loss(self) -> Loss:
        """That of first tables and columns, of the certificate, and of the worst that rounds may be."""
        if self.law.concentrated:
            return Loss.concentrated(self.cost)
        loss = self.law.loss_of_certificate(self.certifying)
        for table in self.first:
            loss = loss.together(self.law.loss_of_table(table.cost))
        for group in self.together:
            cost = sum((self.columns[c] for c in group), Fraction(0))
            loss = loss.together(Loss.pure(cost) if len(group) > 1 else self.law.loss_of_table(cost))
        return loss.together(self._loss_of_rounds)

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def _loss_of_rounds(self) -> Loss:
        """The loss of steps that are chosen as rounds go on, and of columns measured again at their end."""
        # the rho of a step is convex in its cost: none loses more for it than the largest that there can be
        budget = self.for_rounds
        if not budget:
            return Loss.none()
        if self.halved:
            return Loss.pure(budget)
        sizes = self.universe.sizes
        groups = column_groups(sizes, range(len(sizes)), False)
        shares = shares_of_columns(sizes, groups, False)
        largest = budget * max(sum((shares[c] for c in group), Fraction(0)) for group in groups)
        losses = [self.law.loss_of_table(budget), self.law.loss_of_selection(budget), Loss.pure(largest)]
        most = max(loss.rho / loss.epsilon for loss in losses if loss.rho and loss.epsilon)
        return Loss(budget, rounded_up(budget * most))

    @property
    def targeted(self) -> bool:
        """Whether tables of targets are measured with less noise than others."""
        return True

    # Proof: docs/proofs/certificate.md, "Columns".
    def saved(self, workload: Workload, beta: Fraction) -> Self:
        """Return it with all of epsilon for columns, where a certificate has nothing left to say."""
        if not self.certifying or not self.measures_all(workload):
            return self
        return self.shared(replace(self, certificate=Fraction(0)))

    # Proof: docs/proofs/start.md, "Theorem".
    def refining(self, earlier: Sequence[Measurement]) -> Self:
        """Return rounds alone, beside what was measured before; columns come again with what they leave."""
        rounds = replace(self, earlier=tuple(earlier), halved=False)
        known = {c for c, _ in columns_of(earlier, self.universe.sizes)}
        if not self.rounds or known != {*range(len(self.columns))} or self.first:
            return rounds
        each = (sum(self.columns) + self.for_rounds) / self.rounds
        part = self.selecting / (self.selecting + self.measuring)
        return replace(
            rounds,
            columns=(Fraction(0),) * len(self.columns),
            together=(),
            selecting=each * part,
            measuring=each * (1 - part),
        )

    # Proof: docs/proofs/rounds.md, lemmas 5, 6 and 12.
    def steps(self, known: Known | None = None, beginning: Beginning | None = None) -> Steps:
        """Ask for columns and first tables; then, round by round, for the worst table."""
        universe, law = self.universe, self.law
        sizes, before = universe.sizes, [] if known is None else [*known.tables]
        first = list[NoisyTable]()
        for table in self.first:
            if table.whole:
                scope = tuple((c, 0) for c in table.columns)
                of = whole_table(table.columns, [sizes[c] for c in table.columns])
                first.append((yield from measured(law, scope, of, table.cost)))
        known_before = [table for _, table in columns_of(self.earlier, sizes)]
        columns = yield from self.of_columns(self.together, self.columns, [*before, *known_before, *first])
        estimator = Estimator.of(self, columns, known)
        alone: Whole = {(c,): (column.counts, column.noise) for c, column in enumerate(columns)}
        if beginning is not None and (begun := (yield from beginning(estimator, first))) is not None:
            return begun
        if self.halved:
            halves, noise = halves_of(universe, self.for_rounds, law.replaced, estimator.groupings)
            values = yield Noisy(halves, ((noise, noise.count),))
            return modelled(self, estimator, read_halves(values, noise, estimator), alone)
        earlier = list[NoisyTable]()
        if self.earlier:
            estimator, earlier = with_earlier(estimator, columns, self.earlier)
        first = [estimator.ranked(table) for table in first]
        known_pairs = [] if known is None else [estimator.ranked(table) for table in known.pairs]
        estimator = replace(estimator, read_from=frozenset([*first, *known_pairs]))
        learned, beside = at_first(estimator), list[NoisyTable]()
        for pair in known_pairs:
            if estimator.fits(learned.tables, pair.scope):
                learned = learned.after(pair)
        grouped = yield from self.grouped_first(estimator)
        for table in [*earlier, *first, *grouped]:
            if estimator.fits(learned.tables, table.scope):
                learned = learned.after(table)
            else:
                beside += pairs_within(table)
        left = self.for_rounds
        stopping, again, counted = StoppingRule(), tuple[NoisyTable, ...](), estimator.layout.linear()
        while self.rounds and not stopping.met:
            capacity = ModelCapacity(estimator, learned.tables)
            expected = estimator.moved(learned.predicted(), beside)
            # under rho rounds are many and cheap: none may take more than an equal share of what is left
            ahead = max(1, self.rounds - stopping.rounds) if law.concentrated else 1
            most = left / (ahead * (self.selecting + self.measuring))
            step = self.raised(min(stopping.cost_factor, max(Fraction(1), most)))
            of_round = yield from one_round(
                step, estimator, [*learned.tables, *beside], capacity, expected, left, counted
            )
            if of_round is None:
                break
            table, informative = of_round
            left -= step.selecting + table.cost
            stopping = stopping.after(informative)
            if capacity.lacking(table.scope) is None:
                learned = learned.after(table)
            else:
                beside.append(table)
        if stopping.met and left >= LEAST * (self.for_first + sum(self.columns)):
            again = yield from self.columns_again(left, range(estimator.last, len(sizes)), before)
            estimator = estimator.again(again)
        model = learned.last(estimator)
        making = partial(estimator.rows, model, beside)
        tables = tuple(learned.tables), tuple(beside), again
        return Estimate(self, estimator.total, model, making, columns, *tables, whole=alone)

    def grouped_first(self, estimator: Estimator) -> Steps:
        """Ask for the first tables that are measured by groups of what the columns are."""
        tables = list[NoisyTable]()
        for table in self.first:
            if not table.whole:
                scope = groups_of_first(table, self.universe, estimator.groupings, self.law, self.rows)
                of = table_of(scope, estimator.groupings)
                tables.append((yield from measured(self.law, scope, of, table.cost)))
        return tables

    def columns_again(self, budget: Fraction, among: Sequence[int], tables: Sequence[NoisyTable]) -> Steps:
        """Ask for some columns once more, with all of a budget."""
        sizes, concentrated = self.universe.sizes, self.law.concentrated
        groups = column_groups(sizes, among, concentrated)
        costs = [budget * share for share in shares_of_columns(sizes, groups, concentrated)]
        return (yield from self.of_columns(groups, costs, tables))

    def of_columns(
        self, groups: Sequence[tuple[int, ...]], costs: Sequence[Fraction], tables: Sequence[NoisyTable]
    ) -> Steps:
        """Ask for columns, group by group; the others are read from released tables."""
        law, sizes, columns = self.law, self.universe.sizes, dict[int, NoisyTable]()
        for group in groups:
            of = [whole_table((c,), (sizes[c],)) for c in group]
            if len(group) == 1:
                columns[group[0]] = yield from measured(law, ((group[0], 0),), of[0], costs[group[0]])
                continue
            group_sizes = tuple(sizes[c] for c in group)
            cost = sum((costs[c] for c in group), Fraction(0))
            noise, values = law.noise_of_columns(group_sizes, cost), (yield columns_at_once(of, law, cost))
            counts = np.split(values, np.cumsum(group_sizes)[:-1])
            first_cells = np.eye(sum(group_sizes))[np.cumsum([0, *group_sizes[:-1]])]
            for c, of_column, cell in zip(group, counts, first_cells, strict=True):
                columns[c] = NoisyTable(((c, 0),), of_column, costs[c], noise, noise.variance(cell))
        return tuple(columns[c] if c in columns else read_margins(tables, c) for c in range(len(sizes)))
