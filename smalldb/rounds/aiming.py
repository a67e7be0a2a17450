"""The tables of a target column: a classifier of it learns most from them, so they are measured first."""

from fractions import Fraction
from math import prod

from smalldb.rounds.junction import Scope
from smalldb.rounds.plan import RoundsPlan
from smalldb.rounds.selecting import Candidates

LEVEL = 4  # of the other columns, at most: up to 16 groups
LOUD = 1 / 40  # of a table, off by noise alone: coarser groups are taken, so that it is no more
TIMES = Fraction(3, 2)  # what such a table costs, where one that was selected costs 1
MOST = Fraction(1, 2)  # of the budget of rounds, for all of them


# Proof: docs/proofs/rounds.md, lemma 6.
def aimed(plan: RoundsPlan, candidates: Candidates) -> list[tuple[Scope, Fraction]]:
    """
    Return the tables of the target with each other column, and what each costs; none without a target.

    Nothing is selected, so the measurement is all that is paid for.

    Parameters
    ----------
    candidates
        From released columns.
    """
    target = plan.universe.target
    tables = [table for table in candidates.tables if len(table) == 2 and target in table]
    if not tables or not plan.rounds:
        return []
    scopes = [_scope(plan, candidates, table) for table in tables]
    costs = [_cost(plan, prod(candidates.shape(scope))) for scope in scopes]
    kept = min(Fraction(1), MOST * plan.rounds * (plan.selecting + plan.measuring) / sum(costs))
    return [(scope, kept * cost) for scope, cost in zip(scopes, costs, strict=True)]


def _scope(plan: RoundsPlan, candidates: Candidates, table: tuple[int, ...]) -> Scope:
    """Return a table of the target at its finest places, and at groups of the other column."""
    finest = tuple(zip(table, candidates.levels(table), strict=True))
    for level in range(LEVEL, 0, -1):
        scope = tuple((c, most if c == plan.universe.target else min(level, most)) for c, most in finest)
        cells = prod(candidates.shape(scope))
        if plan.law.size(_cost(plan, cells)) * cells <= LOUD * 2 * plan.rows:
            break
    return scope


def _cost(plan: RoundsPlan, cells: int) -> Fraction:
    return TIMES * plan.cost_of(cells)
