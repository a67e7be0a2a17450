"""How many tables, and pairs of columns, a plan will measure: from public numbers alone."""

from math import comb
from typing import NamedTuple

from smalldb.marginals.mechanism import ByMarginals
from smalldb.planning.plans import Plan


class Pairs(NamedTuple):
    """Pairs of columns that are expected to be measured together, those that can be at most, and all."""

    expected: int
    most: int
    every: int


def tables_reached(plan: Plan) -> int:
    """Return how many tables of counts will be measured at most, those of columns too; contrasts are none."""
    return plan.chosen.strategy.most_tables if isinstance(plan.chosen, ByMarginals) else 0


def pairs_reached(plan: Plan) -> Pairs | None:
    """Return how many pairs will be measured together; columns of others are independent, given others."""
    if not isinstance(plan.chosen, ByMarginals):
        return None
    strategy, every = plan.chosen.strategy, comb(len(plan.workload.domain.sizes), 2)
    return Pairs(min(strategy.expected_pairs, every), min(strategy.most_pairs, every), every)
