"""How many pairs of columns a plan will measure together at most: from public numbers alone."""

from itertools import combinations
from math import comb

from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.contrasts import Contrasts
from smalldb.marginals.universe import pairs_of
from smalldb.planning.plans import Plan

SMALLEST = 4  # cells of a table


def pairs_reached(plan: Plan) -> tuple[int, int] | None:
    """
    Return how many pairs of columns will be measured together at most, and how many there are.

    Columns of other pairs are independent in the synthetic table, given others: an assumption.

    Returns
    -------
    tuple of int or None
        None: the mechanism measures nothing.
    """
    if not isinstance(plan.chosen, ByMarginals):
        return None
    strategy, every = plan.chosen.strategy, comb(len(plan.workload.domain.sizes), 2)
    if isinstance(strategy, Contrasts) and strategy.parities.cells is None:
        sets = (some for part in strategy.parities.parts for some in part.sets)
        found = {pair for some in sets for pair in combinations(some, 2)}
        return min(len(found), every), every
    if not isinstance(strategy, Adaptive):
        return every, every
    first = {pair for table in strategy.first for pair in combinations(table.columns, 2)}
    asked = pairs_of(strategy.universe)
    widest = max(map(len, strategy.universe.tables))
    # a table of two groups of each column is the cheapest: so many are paid for at most
    cheapest = strategy.selecting + strategy.cost_of(SMALLEST)
    tables = strategy.for_rounds // cheapest if strategy.rounds else 0
    return len(first) + min(len({*asked} - first), tables * comb(widest, 2)), every
