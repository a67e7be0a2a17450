"""Which tables to measure, and how: the strategy of least expected error, from public numbers."""

from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.marginals.strategies.all_pairs import AllPairs
from smalldb.marginals.strategies.budgets import CERTIFICATE, MEMORY
from smalldb.marginals.strategies.dependence import ASKING, DependenceTested
from smalldb.marginals.strategies.first_tables import wanted_first
from smalldb.marginals.universe import Universe

# of the error of rounds, below which all pairs at once are taken
PAIRS_BELOW = 0.6
# an error above which it is asked first, if it can be: columns that hardly depend may be near to independent
ASK_ABOVE = 0.01
# of the error of rounds, below which it is asked: they are farther off than expected where most pairs depend
ASK_BELOW = 1.5
DROWNED = "noise of more than 2^40 would be added to every count: epsilon is too small"
FIRST = (
    "the strategy {} measures everything alike, and would take no notice of a target or of named tables: "
    "take the strategy adaptive, or leave them out"
)

OfTables: TypeAlias = AllCells | AllPairs | Adaptive | DependenceTested


# Proof: docs/proofs/rounds.md, lemma 8.
def plan_tables(
    universe: Universe,
    epsilon: Fraction,
    delta: Fraction | None,
    replaced: bool,
    rows: int,
    *,
    memory: int = MEMORY,
    certificate: Fraction = CERTIFICATE,
    strategy: str | None = None,
) -> OfTables:
    """
    Return the strategy of least expected error, or the one of a name; ValueError: none can do it.

    `rows` is the public n under replace-one, else a public guess of it; `certificate` a share of the budget.
    """
    if not 0 <= certificate < 1:
        raise ValueError("certificate must be a share of at least 0 and below 1")
    if rows < 1:
        raise ValueError("rows must be at least 1")
    if PrivacyMeasure(concentrated=False, replaced=replaced).drowns(epsilon * (1 - certificate)):
        raise ValueError(DROWNED)
    aimed = bool(wanted_first(universe))
    if aimed and strategy not in (None, Adaptive.name):
        raise ValueError(FIRST.format(strategy))
    cells = AllCells.planned(universe, epsilon, replaced, rows, memory, certificate)
    at_once = AllPairs.planned(universe, epsilon, replaced, rows, memory, certificate)
    if strategy == AllCells.name:
        if cells is None:
            raise ValueError(
                "the strategy cells is for up to 2^20 cells: leave out strategy, or use fewer columns"
            )
        return cells
    if strategy == AllPairs.name:
        if at_once is None:
            raise ValueError(
                "the strategy pairs is for tables of two columns, one of 3 categories or more and none of "
                "more than 64: use another strategy"
            )
        return at_once
    pure, adaptive = _rounds(universe, epsilon, delta, replaced, rows, memory, certificate)
    if strategy == Adaptive.name or universe.named:
        return _audible(adaptive)
    if aimed:
        # all cells may tell about as much of the tables of targets, and more of others
        return cells if cells is not None and cells.expected < adaptive.to_beat else _audible(adaptive)
    if adaptive.delta is not None and _drowned(pure):
        return _audible(adaptive)
    best = _least(cells, at_once, _audible(pure))
    return adaptive if adaptive.delta and _beats(adaptive, best) else best


def _least(cells: AllCells | None, at_once: AllPairs | None, adaptive: Adaptive) -> OfTables:
    """Return the pure strategy of least expected error."""
    # both are 0 where epsilon is huge: cells are then exact, a model is not
    if cells is not None and cells.expected <= adaptive.expected:
        return at_once if at_once is not None and at_once.expected < cells.expected else cells
    if at_once is None or at_once.expected >= ASK_BELOW * adaptive.expected:
        return adaptive
    taken = at_once.expected < PAIRS_BELOW * adaptive.expected
    if taken and at_once.expected < ASK_ABOVE:
        return at_once
    asking = at_once.measuring * ASKING
    tested = DependenceTested(asking, adaptive.after(asking), at_once.after(asking))
    if tested.answerable:
        return tested
    return at_once if taken else adaptive


def _rounds(
    universe: Universe,
    epsilon: Fraction,
    delta: Fraction | None,
    replaced: bool,
    rows: int,
    memory: int,
    certificate: Fraction,
) -> tuple[Adaptive, Adaptive]:
    """Return pure rounds; and those with the allowed delta where they pay, else the pure ones again."""
    law = PrivacyMeasure(concentrated=False, replaced=replaced)
    pure = Adaptive.shared(universe, law, epsilon, None, rows, memory, certificate)
    if delta is None:
        return pure, pure
    rho = replace(law, concentrated=True)
    rounds = Adaptive.shared(universe, rho, epsilon, delta, rows, memory, certificate)
    pays = not _drowned(rounds) and (_drowned(pure) or _beats(rounds, pure))
    return pure, rounds if pays else pure


def _beats(rounds: Adaptive, pure: OfTables) -> bool:
    """Whether rounds with a delta expect a smaller error, or tell of pairs where a pure plan does not."""
    columns_alone = isinstance(pure, Adaptive) and not pure.rounds
    return rounds.expected < pure.expected or (columns_alone and rounds.rounds > 0)


def _drowned(plan: Adaptive) -> bool:
    """Whether something would get noise above 2^40, or be selected at an epsilon that rounds down to 0."""
    selects_nothing = plan.rounds and not plan.law.selecting(plan.selecting)
    return selects_nothing or plan.law.drowns(min(plan.costs_of_tables))


def _audible(plan: Adaptive) -> Adaptive:
    """Return the plan, unless noise would drown it."""
    if _drowned(plan):
        raise ValueError(DROWNED)
    return plan
