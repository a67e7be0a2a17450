"""The tables of a target column: a classifier of it learns most from them, so they are measured first."""

from fractions import Fraction
from math import prod

from smalldb.rounds.junction import Scope
from smalldb.rounds.plan import RoundsPlan
from smalldb.rounds.selecting import Candidates

LEVEL = 4  # of the other columns, at most: up to 16 groups
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
    scopes = [
        tuple(
            (c, level if c == target else min(level, LEVEL))
            for c, level in zip(table, candidates.levels(table), strict=True)
        )
        for table in candidates.tables
        if len(table) == 2 and target in table
    ]
    if not scopes or not plan.rounds:
        return []
    costs = [TIMES * plan.cost_of(prod(candidates.shape(scope))) for scope in scopes]
    kept = min(Fraction(1), MOST * plan.rounds * (plan.selecting + plan.measuring) / sum(costs))
    return [(scope, kept * cost) for scope, cost in zip(scopes, costs, strict=True)]
