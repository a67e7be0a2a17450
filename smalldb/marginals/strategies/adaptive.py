"""Tables selected by what was released before, and measured, round by round."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations
from math import comb, prod
from typing import ClassVar, Self

import numpy as np

from queries import Rows, Workload
from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.marginals.adaptive.association_weights import association_weights
from smalldb.marginals.adaptive.candidate_tables import Candidates
from smalldb.marginals.adaptive.model_capacity import ModelCapacity, selected
from smalldb.marginals.adaptive.packed_pairs import PackedPairs
from smalldb.marginals.adaptive.stopping_rule import LEAST, StoppingRule, beyond_noise
from smalldb.marginals.counted_rows import CountedRows, counted
from smalldb.marginals.estimate.column_estimates import pairs_within, read_margins, whole
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.estimate.known_columns import Known
from smalldb.marginals.estimate.refitting import at_first
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.noise_bound import bound, sums_of_columns
from smalldb.marginals.strategies.budgets import MANY_COLUMNS, RoundsBudget
from smalldb.marginals.strategies.column_groups import column_groups, shares_of_columns
from smalldb.marginals.strategies.first_tables import FirstTable, groups_of_first, wanted_first
from smalldb.marginals.strategies.outcome import (
    PROGRESS,
    Fitted,
    History,
    Progress,
    TableStrategy,
    published,
    published_columns,
    released_columns,
    released_table,
)
from smalldb.marginals.universe import pairs_of
from smalldb.mechanisms import Journal, Measurement
from smalldb.noise.privacy_loss import Loss, rounded_up

PENALTY = 0.8  # of the noise that a table would get, what its score is reduced by


@dataclass(frozen=True, slots=True)
class Adaptive(RoundsBudget, TableStrategy):
    """Every column first; then rounds, each of which selects a table, measures it, and fits a model."""

    name: ClassVar[str] = "adaptive"

    @property
    def method(self) -> str:
        """What it is called."""
        return f"adaptive marginals (at most {self.rounds} rounds)" if self.rounds else "marginals of columns"

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        steps = ["columns"] if any(self.columns) else []
        if self.first:
            tables = f"{self._named} ({float(self.share_of_first):.0%} of the budget)"
            if self.first[0].whole:
                steps = [tables, *(f"other {step}" for step in steps)]
            else:
                steps.append(tables)
        if self.rounds:
            steps.append(f"tables selected in up to {self.rounds} rounds")
        drowned = "; tables of the target would drown in it" if self._drowned else ""
        return f"{', then '.join(steps)}, with {self._noise}{drowned}"

    @property
    def _noise(self) -> str:
        """What its noise is called: that of columns at once, and that of all other tables."""
        if self.delta is not None:
            return "Gaussian noise"
        at_once = [group for group in self.together if len(group) > 1]
        others = self.rounds or self.first or len(at_once) < len(self.together)
        kinds = [*(["K-norm"] if at_once else []), *(["geometric"] if others else [])]
        return f"{' and '.join(kinds)} noise"

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
        single = not workload.listed and all(len(block.columns) == 1 for block in workload.cells)
        return single and all(self.columns)

    @property
    def most_tables(self) -> int:
        """How many tables are measured at most, columns too: a table of two groups each is the cheapest."""
        columns = sum(map(bool, self.columns))
        if not self.rounds:
            return len(self.first) + columns
        return len(self.first) + columns + self.most_rounds + len(self.columns)  # they may come again

    @property
    def most_pairs(self) -> int:
        """How many pairs of columns are measured together at most: those of first tables, and of rounds."""
        first = {pair for table in self.first for pair in combinations(table.columns, 2)}
        widest = max(map(len, self.universe.tables))
        return len(first) + min(len({*pairs_of(self.universe)} - first), self.most_rounds * comb(widest, 2))

    @property
    def most_rounds(self) -> int:
        """How many tables of four cells the budget pays for."""
        return int(self.for_rounds // (self.selecting + self.cost_of(4))) if self.rounds else 0

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def loss(self) -> Loss:
        """That of first tables and columns, of the certificate, and of the worst that rounds may be."""
        if self.law.concentrated:
            return Loss.concentrated(self.cost)
        found = self.law.loss_of_certificate(self.certifying)
        for table in self.first:
            found = found.together(self.law.loss_of_table(table.cost))
        for group in self.together:
            cost = sum((self.columns[c] for c in group), Fraction(0))
            found = found.together(Loss.pure(cost) if len(group) > 1 else self.law.loss_of_table(cost))
        return found.together(self._loss_of_rounds)

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def _loss_of_rounds(self) -> Loss:
        """
        The loss of steps that are chosen as rounds go on, and of columns measured again at their end.

        The rho of a step is convex in its cost, and 0 at no cost. So all of them lose no more for their cost
        than the largest that there can be: one step of the whole budget, or columns at once of their share.
        """
        budget = self.for_rounds
        if not budget:
            return Loss.none()
        sizes = self.universe.sizes
        groups = column_groups(sizes, range(len(sizes)), False)
        shares = shares_of_columns(sizes, groups, False)
        largest = budget * max(sum((shares[c] for c in group), Fraction(0)) for group in groups)
        losses = [
            self.law.loss_of_table(budget),
            self.law.loss_of_selection(budget),
            Loss.pure(largest),
        ]
        most = max(loss.rho / loss.epsilon for loss in losses if loss.rho and loss.epsilon)
        return Loss(budget, rounded_up(budget * most))

    # Proof: docs/proofs/certificate.md, "Columns".
    def uncertified(self) -> Self:
        """Return the strategy with all of epsilon for columns, where nothing else is measured."""
        return self.shared(
            self.universe, self.law, self.epsilon, self.delta, self.rows, self.memory, Fraction(0)
        )

    def bound(
        self, history: History, workload: Workload, n: int | None, finished: Rows, beta: Fraction
    ) -> float:
        """Return the bound that follows from the noise alone, where every query is a cell of a column."""
        return bound(workload, finished, sums_of_columns(workload, history.columns, n, beta))

    # Proof: docs/proofs/rounds.md, lemma 6.
    def fit(
        self,
        rows: CountedRows,
        journal: Journal,
        progress: Progress | None,
        executor: Executor | None,
        known: Known | None = None,
    ) -> Fitted:
        """
        Select a table and measure it, round by round; some tables come first, and are not selected.

        After a table that told nothing, rounds cost more (`stopping_rule`), while the budget pays for it.
        Where all of them tell nothing, rounds end, and the columns get what is left. The first columns may be
        `known`: nothing of them is measured by itself.

        Parameters
        ----------
        known
            What is known of the first columns, and of how many rows; None: nothing.
        """
        earlier = () if known is None else known.tables
        before = [_whole(self, rows, journal, table) for table in self.first if table.whole]
        columns, told = _columns(self, rows, journal, self.together, self.columns, [*earlier, *before])
        estimator = Estimator.of(self, columns, known)
        first = [estimator.ranked(table) for table in before]
        given = [] if known is None else [estimator.ranked(table) for table in known.pairs]
        estimator = replace(estimator, read_from=frozenset([*first, *given]))
        layout = estimator.layout
        count = cache(lambda: counted(rows, layout.count, executor))  # not where all was released before
        learned, beside = at_first(estimator), list[NoisyTable]()
        measurements = [*(published(self.law, table, None) for table in before), *told]
        for pair in given:
            if estimator.fits(learned.tables, pair.scope):
                learned = learned.after(pair)
        for table in self.first:
            if not table.whole:
                first.append(_grouped(self, rows, journal, table, estimator))
                measurements.append(published(self.law, first[-1], estimator.groupings))
        for released in first:
            if estimator.fits(learned.tables, released.scope):
                learned = learned.after(released)
            else:
                beside += pairs_within(released)
        budget = left = self.for_rounds
        stopping, again = StoppingRule(), tuple[NoisyTable, ...]()
        while self.rounds and not stopping.met:
            capacity = ModelCapacity(estimator, learned.tables)
            expected = estimator.moved(learned.predicted(), beside)
            # under rho rounds are many and cheap: none may take more than an equal share of what is left
            ahead = max(1, self.rounds - stopping.rounds) if self.law.concentrated else 1
            most = left / (ahead * (self.selecting + self.measuring))
            step = self.raised(min(stopping.cost_factor, max(Fraction(1), most)))
            select = partial(_selected, step, estimator, capacity, expected, beside, left, count)
            chosen = journal.step(select, list_of, scope_of)
            if chosen is None:
                break
            cost = step.cost_of(prod(estimator.candidates.shape(chosen)))
            left -= step.selecting
            shape = estimator.candidates.shape(chosen)
            released = released_table(
                self.law, journal, chosen, shape, cost, partial(_counts, layout, chosen, count)
            )
            left -= cost
            measurements.append(published(self.law, released, estimator.groupings, step.selecting))
            stopping = stopping.after(
                beyond_noise(released, layout.chosen(expected, chosen), self.law.concentrated)
            )
            if capacity.lacking(chosen) is None:
                learned = learned.after(released)
            else:
                beside.append(released)
            if progress is not None:
                progress(int((1 - left / budget) * PROGRESS), PROGRESS)
        spent = self.for_first + sum(self.columns, budget - left)
        if stopping.met and left >= LEAST * (self.for_first + sum(self.columns)):
            sizes, concentrated = self.universe.sizes, self.law.concentrated
            groups = column_groups(sizes, range(estimator.last, len(sizes)), concentrated)
            costs = [left * share for share in shares_of_columns(sizes, groups, concentrated)]
            again, told = _columns(self, rows, journal, groups, costs, earlier)
            estimator = estimator.again(again)
            measurements += told
            spent += left
        model = learned.last(estimator)
        history = History(columns, tuple(learned.tables), tuple(beside), again)
        made = partial(estimator.rows, model, beside)
        return Fitted(self, history, estimator.total, model, made, spent, tuple(measurements))


def _columns(
    plan: RoundsBudget,
    rows: CountedRows,
    journal: Journal,
    groups: Sequence[tuple[int, ...]],
    costs: Sequence[Fraction],
    tables: Sequence[NoisyTable],
) -> tuple[tuple[NoisyTable, ...], list[Measurement]]:
    """Measure columns, group by group; the others are read from released tables. Also as published."""
    sizes, found, told = plan.universe.sizes, dict[int, NoisyTable](), list[Measurement]()
    for group in groups:
        own = [sizes[c] for c in group]
        count = partial(_counts_of_columns, rows, group, own)
        if len(group) > 1:
            columns = released_columns(plan.law, journal, group, own, [costs[c] for c in group], count)
        else:
            scope = ((group[0], 0),)
            columns = [released_table(plan.law, journal, scope, tuple(own), costs[group[0]], count)]
        found |= zip(group, columns, strict=True)
        told.append(published_columns(plan.law, columns))
    every = (found[c] if c in found else read_margins(tables, c) for c in range(len(sizes)))
    return tuple(every), told


def _counts_of_columns(rows: CountedRows, columns: Sequence[int], sizes: Sequence[int]) -> Integers:
    """Return the counts of columns, one after another."""
    return np.concatenate([rows.table((c,), (size,)) for c, size in zip(columns, sizes, strict=True)])


def _whole(plan: RoundsBudget, rows: CountedRows, journal: Journal, table: FirstTable) -> NoisyTable:
    """Measure a first table at all categories."""
    shape = tuple(plan.universe.sizes[c] for c in table.columns)
    scope = tuple((c, 0) for c in table.columns)
    return released_table(
        plan.law, journal, scope, shape, table.cost, partial(rows.table, table.columns, shape)
    )


def _grouped(
    plan: RoundsBudget, rows: CountedRows, journal: Journal, table: FirstTable, estimator: Estimator
) -> NoisyTable:
    """Measure a first table at the groups that are worth their noise."""
    scope = groups_of_first(table, plan.universe, estimator.groupings, plan.law, plan.rows)
    groups = [estimator.groupings[c].of_categories(level) for c, level in scope]
    shape = tuple(estimator.groupings[c].groups(level) for c, level in scope)
    return released_table(
        plan.law, journal, scope, shape, table.cost, partial(rows.table_of_groups, table.columns, groups)
    )


def _selected(
    plan: RoundsBudget,
    estimator: Estimator,
    capacity: ModelCapacity,
    expected: list[Floats],
    beside: list[NoisyTable],
    left: Fraction,
    count: Callable[[], list[Integers]],
    coins: BitSource,
) -> Scope | None:
    """Select the next table; None: what is left of the budget pays for none."""
    candidates = estimator.candidates
    sizes, which = np.unique(estimator.sizes, return_inverse=True)
    costs = [plan.cost_of(size) for size in sizes.tolist()]
    noise = {
        size: PENALTY * plan.law.noise(cost).mean_size
        for size, cost in zip(sizes.tolist(), costs, strict=True)
        if cost
    }
    payable = np.array([cost + plan.selecting <= left for cost in costs], dtype=bool)[which]
    weights = candidates.weights
    if len(plan.universe.sizes) > MANY_COLUMNS:
        weights = association_weights(estimator.layout, expected, [*capacity.tables, *beside])
    foretold = [whole(table, estimator.total) for table in expected]
    scores = estimator.layout.scores(count(), foretold, weights, noise.__getitem__)
    return selected(plan, capacity, estimator.names, max(weights, default=1), scores, payable, coins)


def _counts(layout: Candidates | PackedPairs, scope: Scope, count: Callable[[], list[Integers]]) -> Integers:
    """Return the counts of a table at its levels."""
    return layout.chosen(count(), scope)


def list_of(scope: Scope | None) -> list[list[int]] | None:
    """Return a selected table as JSON can hold it."""
    return None if scope is None else [list(part) for part in scope]


def scope_of(packed: list[list[int]] | None) -> Scope | None:
    """Return a selected table as it was before `list_of`."""
    return None if packed is None else tuple((column, level) for column, level in packed)
