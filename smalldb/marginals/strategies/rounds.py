"""One round: the table that is worst by what was released before, its counts, and whether rounds go on."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product
from math import sqrt

import numpy as np

from queries.arrays import Booleans, Floats
from smalldb.marginals.asks import Worst
from smalldb.marginals.counts import Linear
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.column_estimates import whole
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.estimate.packed_pairs import association_weights
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.strategies.budgets import MANY_COLUMNS, RoundsBudget
from smalldb.marginals.strategies.strategy import measured, table_of

PENALTY = 0.8  # of the noise that a table would get, what its score is reduced by

LEAST_UNINFORMATIVE = 4  # tables one after another without information, at least, when rounds end
PER_INFORMATIVE = 3  # as many of them as informative tables, at least
RAISED = Fraction(2)  # times the cost of a round, after each table without information; once one had some
MOST_RAISED = Fraction(64)
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
    """Whether a released table is farther from what was expected than noise alone, by two deviations."""
    squares = float(((table.counts - expected) ** 2).sum()) / max(table.variance, _LEAST)
    return squares - expected.size > _DEVIATIONS * sqrt(_SPREAD[concentrated] * expected.size)


class ModelCapacity:
    """For which candidates the model has room, with all coarser ones of the same columns, in one round."""

    def __init__(self, estimator: Estimator, tables: list[NoisyTable]) -> None:
        self._fits = cache(partial(estimator.fits, tables))

    # Proof: docs/proofs/rounds.md, lemma 5.
    def lacking(self, name: Scope) -> Scope | None:
        """Return the first table, from the coarsest to the given one, that has no room; None: all have."""
        for levels in product(*[range(1, level + 1) for _, level in name]):
            coarser = tuple((c, level) for (c, _), level in zip(name, levels, strict=True))
            if not self._fits(coarser):
                return coarser
        return None


def as_fine(name: Scope, other: Scope) -> bool:
    """Tell whether a table is of the same columns as another, and at least as fine in each."""
    return len(name) == len(other) and all(
        a == b and m >= k for (a, m), (b, k) in zip(name, other, strict=True)
    )


def worst_of(
    plan: RoundsBudget,
    estimator: Estimator,
    tables: list[NoisyTable],
    capacity: ModelCapacity | None,  # None: there is room for all
    expected: list[Floats],
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
        weights = association_weights(layout, expected, tables)
    foretold = [whole(table, estimator.total) for table in expected]

    def lacking(number: int) -> Scope | None:
        """Return what of a candidate has no room: a pair always has."""
        pair = len(names[number]) == 2
        return None if pair or capacity is None else capacity.lacking(names[number])

    def refused(number: int) -> Booleans | None:
        full = lacking(number)
        return None if full is None else np.array([as_fine(name, full) for name in names])

    if all(lacking(number) is not None for number in np.flatnonzero(payable).tolist()):
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


def one_round(
    plan: RoundsBudget,
    estimator: Estimator,
    tables: list[NoisyTable],
    capacity: ModelCapacity | None,
    expected: list[Floats],
    left: Fraction,
    counted: Linear,
) -> Steps:
    """Ask for the worst table, and measure it; return it, and whether it was informative; None: none left."""
    worst = worst_of(plan, estimator, tables, capacity, expected, left, counted)
    if worst is None:
        return None
    scope = estimator.names[(yield worst)]
    of = table_of(scope, estimator.groupings)
    table = yield from measured(plan.law, scope, of, plan.cost_of(of.size))
    return table, beyond_noise(table, estimator.layout.chosen(expected, scope), plan.law.concentrated)
