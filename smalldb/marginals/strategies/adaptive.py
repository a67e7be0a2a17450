"""Tables selected by what was released before, and measured, round by round."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import comb, prod, sqrt
from typing import ClassVar, Protocol, Self, TypeAlias

import numpy as np

from queries import Workload
from queries.arrays import Booleans, Floats
from smalldb.marginals.asks import Noisy, Worst, columns_at_once
from smalldb.marginals.counts import Linear
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.column_estimates import pairs_within, read_margins, whole
from smalldb.marginals.estimate.earlier_tables import columns_of, with_earlier
from smalldb.marginals.estimate.estimation import Estimator, Known
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.estimate.packed_pairs import association_weights
from smalldb.marginals.estimate.refitting import at_first
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.noise_bounds import Whole, cells_of_tables
from smalldb.marginals.strategies.all_pairs import PAIRS_UNDRAWABLE, halves_of, modelled, read_halves
from smalldb.marginals.strategies.budgets import MANY_COLUMNS, RoundsBudget, column_groups, shares_of_columns
from smalldb.marginals.strategies.first_tables import groups_of_first, wanted_first
from smalldb.marginals.strategies.strategy import Estimate, measured, table_of, whole_table
from smalldb.marginals.universe import pairs_of
from smalldb.mechanisms import Measurement
from smalldb.noise.cone import ConeDifference
from smalldb.noise.k_norm import KNorm
from smalldb.noise.privacy_loss import Loss, rounded_up

# what may go on after columns, and first tables of all categories, in another way: an estimate, or None
Beginning: TypeAlias = Callable[[Estimator, Sequence[NoisyTable]], Steps]

PENALTY = 0.8  # of the noise that a table would get, what its score is reduced by

LEAST_UNINFORMATIVE = 4  # tables one after another without information, at least, when rounds end
PER_INFORMATIVE = 3  # as many of them as informative tables, at least
RAISED = Fraction(2)  # times the cost of a round, after each table without information; once one had some
MOST_RAISED = Fraction(64)
LEAST = Fraction(1, 8)  # of what columns cost, what is worth measuring them again
_DEVIATIONS = 2.0
_LEAST = 1e-9  # a variance below which noise does not count
_SPREAD = {False: 5.0, True: 2.0}  # variance of squared noise, by its squared variance: geometric, Gaussian


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """What decides whether rounds go on: how many released tables were informative, that is beyond noise."""

    informative: int = 0  # how many were
    uninformative: int = 0  # how many after the last of these were not
    # how many times what the plan says the next round costs: noise hid what the tables hold, if anything
    cost_factor: Fraction = Fraction(1)
    rounds: int = 0  # how many there were

    def after(self, informative: bool) -> "StoppingRule":
        """Return the state after one more table."""
        if informative:
            return StoppingRule(self.informative + 1, 0, self.cost_factor, self.rounds + 1)
        raised = min(MOST_RAISED, self.cost_factor * RAISED) if self.informative else self.cost_factor
        return StoppingRule(self.informative, self.uninformative + 1, raised, self.rounds + 1)

    @property
    def met(self) -> bool:
        """Whether little is to be gained of more tables."""
        return self.uninformative >= max(LEAST_UNINFORMATIVE, PER_INFORMATIVE * self.informative)


def beyond_noise(table: NoisyTable, expected: Floats, concentrated: bool) -> bool:
    """Whether a released table is farther from what was expected than noise alone would be.

    Of N cells, the sum of squares over the variance of the noise is N in the mean; it is looked at whether
    it is larger by more than two of its deviations.
    """
    squares = float(((table.counts - expected) ** 2).sum()) / max(table.variance, _LEAST)
    return squares - expected.size > _DEVIATIONS * sqrt(_SPREAD[concentrated] * expected.size)


class Room(Protocol):
    """What has room for some tables."""

    tables: list[NoisyTable]

    def lacking(self, name: Scope) -> Scope | None:
        """Return what has no room of a candidate; None: it has."""


class ModelCapacity(Room):
    """For which candidates the model has room, in one round.

    There is room for a table where the model, with it or with any coarser candidate of its columns, stays
    within its memory. That follows from released numbers alone, whichever candidates are looked at.
    """

    def __init__(self, estimator: Estimator, tables: list[NoisyTable]) -> None:
        self._estimator, self.tables = estimator, tables
        self._known: dict[Scope, bool] = {}

    # Proof: docs/proofs/rounds.md, lemma 5.
    def lacking(self, name: Scope) -> Scope | None:
        """Return the first table, from the coarsest to the given one, that has no room; None: all have."""
        for levels in product(*[range(1, level + 1) for _, level in name]):
            coarser = tuple((c, level) for (c, _), level in zip(name, levels, strict=True))
            if coarser not in self._known:
                self._known[coarser] = self._estimator.fits(self.tables, coarser)
            if not self._known[coarser]:
                return coarser
        return None


def as_fine(name: Scope, other: Scope) -> bool:
    """Tell whether a table is of the same columns as another, and at least as fine in each."""
    return len(name) == len(other) and all(
        a == b and m >= k for (a, m), (b, k) in zip(name, other, strict=True)
    )


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
            tables = f"{self._named} ({float(self.share_of_first):.0%} of the budget)"
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
        return PAIRS_UNDRAWABLE if self.halved else None

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
        """The loss of steps that are chosen as rounds go on, and of columns measured again at their end.

        The rho of a step is convex in its cost, and 0 at no cost. So all of them lose no more for their cost
        than the largest that there can be: one step of the whole budget, or columns at once of their share.
        """
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
        own = replace(self, earlier=tuple(earlier), halved=False)
        known = {c for c, _ in columns_of(earlier, self.universe.sizes)}
        if not self.rounds or known != {*range(len(self.columns))} or self.first:
            return own
        each = (sum(self.columns) + self.for_rounds) / self.rounds
        part = self.selecting / (self.selecting + self.measuring)
        return replace(
            own,
            columns=(Fraction(0),) * len(self.columns),
            together=(),
            selecting=each * part,
            measuring=each * (1 - part),
        )

    # Proof: docs/proofs/rounds.md, lemmas 5, 6 and 12.
    def steps(self, known: Known | None = None, beginning: Beginning | None = None) -> Steps:
        """Ask for columns and first tables; then, round by round, for the worst table."""
        universe, law = self.universe, self.law
        whole, sizes = {table.columns: table for table in self.first if table.whole}, universe.sizes
        before = [] if known is None else [*known.tables]
        first = list[NoisyTable]()
        for columns, one in whole.items():
            scope = tuple((c, 0) for c in columns)
            first.append(
                (yield from measured(law, scope, whole_table(columns, [sizes[c] for c in columns]), one.cost))
            )
        known_before = [table for _, table in columns_of(self.earlier, sizes)]
        columns = yield from self.of_columns(self.together, self.columns, [*before, *known_before, *first])
        estimator = Estimator.of(self, columns, known)
        alone: Whole = {(c,): (one.counts, one.noise) for c, one in enumerate(columns)}
        if beginning is not None and (found := (yield from beginning(estimator, first))) is not None:
            return found
        if self.halved:
            halves, noise = halves_of(universe, self.for_rounds, law.replaced, estimator.groupings)
            values = yield Noisy(halves, ((noise, noise.count),))
            return modelled(self, estimator, read_halves(values, noise, estimator), alone)
        earlier = list[NoisyTable]()
        if self.earlier:
            estimator, earlier = with_earlier(estimator, columns, self.earlier)
        first = [estimator.ranked(table) for table in first]
        given = [] if known is None else [estimator.ranked(table) for table in known.pairs]
        estimator = replace(estimator, read_from=frozenset([*first, *given]))
        learned, beside = at_first(estimator), list[NoisyTable]()
        for pair in given:
            if estimator.fits(learned.tables, pair.scope):
                learned = learned.after(pair)
        for grouped in self.first:
            if not grouped.whole:
                scope = groups_of_first(grouped, universe, estimator.groupings, law, self.rows)
                of = table_of(scope, estimator.groupings)
                first.append((yield from measured(law, scope, of, grouped.cost)))
        for table in [*earlier, *first]:
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
            worst = worst_of(step, estimator, capacity, expected, beside, left, counted)
            if worst is None:
                break
            chosen = estimator.names[(yield worst)]
            cost = step.cost_of(prod(estimator.candidates.shape(chosen)))
            table = yield from measured(law, chosen, table_of(chosen, estimator.groupings), cost)
            left -= step.selecting + cost
            stopping = stopping.after(
                beyond_noise(table, estimator.layout.chosen(expected, chosen), law.concentrated)
            )
            if capacity.lacking(chosen) is None:
                learned = learned.after(table)
            else:
                beside.append(table)
        if stopping.met and left >= LEAST * (self.for_first + sum(self.columns)):
            groups = column_groups(sizes, range(estimator.last, len(sizes)), law.concentrated)
            costs = [left * share for share in shares_of_columns(sizes, groups, law.concentrated)]
            again = yield from self.of_columns(groups, costs, before)
            estimator = estimator.again(again)
        model = learned.last(estimator)
        making = partial(estimator.rows, model, beside)
        tables = tuple(learned.tables), tuple(beside), again
        return Estimate(self, estimator.total, model, making, columns, *tables, whole=alone)

    def of_columns(
        self, groups: Sequence[tuple[int, ...]], costs: Sequence[Fraction], tables: Sequence[NoisyTable]
    ) -> Steps:
        """Ask for columns, group by group; the others are read from released tables."""
        law, sizes, found = self.law, self.universe.sizes, dict[int, NoisyTable]()
        for group in groups:
            of = [whole_table((c,), (sizes[c],)) for c in group]
            if len(group) == 1:
                found[group[0]] = yield from measured(law, ((group[0], 0),), of[0], costs[group[0]])
                continue
            own = tuple(sizes[c] for c in group)
            cost = sum((costs[c] for c in group), Fraction(0))
            noise, values = law.noise_of_columns(own, cost), (yield columns_at_once(of, law, cost))
            counts = np.split(values, np.cumsum(own)[:-1])
            for c, one, cell in zip(group, counts, first_cells(own), strict=True):
                found[c] = NoisyTable(((c, 0),), one, costs[c], noise, noise.variance(cell))
        return tuple(found[c] if c in found else read_margins(tables, c) for c in range(len(sizes)))


def first_cells(sizes: Sequence[int]) -> list[Floats]:
    """Return weights that pick the first cell of each column, shape (sum of sizes,) each."""
    return list(np.eye(sum(sizes))[np.cumsum([0, *sizes[:-1]])])


def worst_of(
    plan: RoundsBudget,
    estimator: Estimator,
    capacity: Room,
    expected: list[Floats],
    beside: list[NoisyTable],
    left: Fraction,
    counted: Linear,
) -> Worst | None:
    """Ask for the table furthest from what is expected, in noise that it would get; None: there is none."""
    candidates, layout, names, law = estimator.candidates, estimator.layout, estimator.names, plan.law
    sizes, which = np.unique(estimator.sizes, return_inverse=True)
    costs = {size: plan.cost_of(size) for size in sizes.tolist()}
    noise = {size: PENALTY * law.noise(cost).mean_size for size, cost in costs.items() if cost}
    payable = np.array([cost + plan.selecting <= left for cost in costs.values()], dtype=bool)[which]
    weights = candidates.weights
    if len(plan.universe.sizes) > MANY_COLUMNS:
        weights = association_weights(layout, expected, [*capacity.tables, *beside])
    foretold = [whole(table, estimator.total) for table in expected]

    def refused(number: int) -> Booleans | None:
        lacking = None if len(names[number]) == 2 else capacity.lacking(names[number])
        return None if lacking is None else np.array([as_fine(name, lacking) for name in names])

    those = (names[number] for number in np.flatnonzero(payable).tolist())
    if not any(len(name) == 2 or capacity.lacking(name) is None for name in those):
        return None  # what has no answer is not asked for: it would cost something
    return Worst(
        of=counted,
        scores=lambda counts: layout.scores(counts, foretold, weights, noise.__getitem__),
        moved=law.moved * law.unit * max(weights, default=1),
        law=law,
        cost=plan.selecting,
        possible=payable,
        refused=refused,
    )
