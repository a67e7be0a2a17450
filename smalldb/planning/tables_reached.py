"""How many tables, and pairs of columns, a plan will measure at most: from public numbers alone."""

from math import comb

from smalldb.marginals.mechanism import ByMarginals
from smalldb.planning.plans import Plan


def tables_reached(plan: Plan) -> int:
    """Return how many tables of counts will be measured at most, those of columns too; contrasts are none."""
    return plan.chosen.strategy.most_tables if isinstance(plan.chosen, ByMarginals) else 0


def pairs_reached(plan: Plan) -> tuple[int, int] | None:
    """
    Return how many pairs of columns will be measured together at most, and how many there are.

    Columns of other pairs are independent in the synthetic table, given others: an assumption.
    """
    if not isinstance(plan.chosen, ByMarginals):
        return None
    every = comb(len(plan.workload.domain.sizes), 2)
    return min(plan.chosen.strategy.most_pairs, every), every
