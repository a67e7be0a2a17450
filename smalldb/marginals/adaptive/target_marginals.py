"""The tables of a target column: a classifier of it learns most from them, so they are measured first."""

from fractions import Fraction
from math import prod

from smalldb.marginals.adaptive.candidate_tables import Candidates
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.strategies.budgets import RoundsBudget, put_off
from smalldb.marginals.universe import Universe, pairs_of

LEVEL = 4  # of the other columns, at most: up to 16 groups
LOUD = 1 / 40  # of a table, off by noise alone at its full cost: groups are as coarse as that needs
TIMES = Fraction(3, 2)  # what such a table costs, where one that was selected costs 1
MOST = Fraction(1, 2)  # of the budget of rounds, for all of them
LOUDEST = 0.15  # of a table, off by noise alone at the cost that is paid: more than that would harm its model


def tables_of(universe: Universe) -> list[tuple[int, int]]:
    """Return the tables of the target with each other column that the workload has; none without a target."""
    target = universe.target
    return [] if target is None else [pair for pair in pairs_of(universe) if target in pair]


# Proof: docs/proofs/rounds.md, lemma 6.
def aimed(plan: RoundsBudget, candidates: Candidates) -> list[tuple[Scope, Fraction]]:
    """
    Return the tables of the target with each other column, and what each costs; none without a target.

    Nothing is selected, so the measurement is all that is paid for. Where all of them together would cost
    more than their share, each costs less; what is then too loud is left out, the loudest first.

    Parameters
    ----------
    candidates
        From released columns.
    """
    scopes = [_scope(plan, candidates, table) for table in tables_of(plan.universe)] if plan.rounds else []
    while scopes:
        cells = [prod(candidates.shape(scope)) for scope in scopes]
        full = TIMES * sum(plan.cost_of(size) for size in cells)
        times = TIMES * min(Fraction(1), MOST * plan.for_rounds / full)
        off = put_off(plan, cells, times)
        if (worst := max(off)) <= LOUDEST:
            return [(scope, times * plan.cost_of(size)) for scope, size in zip(scopes, cells, strict=True)]
        del scopes[off.index(worst)]
    return []


def _scope(plan: RoundsBudget, candidates: Candidates, table: tuple[int, ...]) -> Scope:
    """
    Return a table of the target at the finest groups that noise allows.

    Groups of the other column get coarser first, and then those of the target.
    """
    finest = candidates.levels(table)
    axis = table.index(plan.universe.target)
    of_target, of_other = finest[axis], min(LEVEL, finest[1 - axis])
    finer = [(of_target, level) for level in range(of_other, 0, -1)]
    for mine, other in (*finer, *((level, 1) for level in range(of_target - 1, 0, -1))):
        scope = tuple((c, mine if at == axis else other) for at, c in enumerate(table))
        if put_off(plan, [prod(candidates.shape(scope))], TIMES)[0] <= LOUD:
            break
    return scope
