"""How many tables, and pairs of columns, a plan will measure at most: from public numbers alone."""

from itertools import combinations
from math import comb

from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.marginals.strategies.contrasts import Contrasts
from smalldb.marginals.strategies.dependence import DependenceTested
from smalldb.marginals.universe import pairs_of
from smalldb.planning.plans import Plan


def tables_reached(plan: Plan) -> int:
    """Return how many tables of counts will be measured at most, those of columns too; contrasts are none."""
    if not isinstance(plan.chosen, ByMarginals):
        return 0
    strategy, columns = plan.chosen.strategy, len(plan.workload.domain.sizes)
    at_once = columns + comb(columns, 2)
    if isinstance(strategy, Contrasts):
        return 0 if strategy.parities.cells is None else 1
    if isinstance(strategy, AllCells):
        return 1
    if isinstance(strategy, Adaptive):
        return strategy.most_tables
    return max(at_once, strategy.adaptive.most_tables) if isinstance(strategy, DependenceTested) else at_once


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
    return len(first) + min(len({*asked} - first), strategy.most_rounds * comb(widest, 2)), every
