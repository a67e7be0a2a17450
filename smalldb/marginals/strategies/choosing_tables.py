"""Which tables to measure, and how: the strategy of least expected error, from public numbers."""

from dataclasses import replace
from fractions import Fraction

from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.marginals.strategies.all_pairs import AllPairs
from smalldb.marginals.strategies.dependence import DependenceTested
from smalldb.marginals.strategies.first_tables import wanted_first
from smalldb.marginals.strategies.strategy import CERTIFICATE, MEMORY, Setting, TableStrategy
from smalldb.marginals.universe import Universe

# of the error of rounds, below which all pairs at once are taken
PAIRS_BELOW = 0.6
# an error above which it is asked first, if it can be: columns that hardly depend may be near to independent
ASK_ABOVE = 0.01
# of the error of rounds, below which it is asked: they are farther off than expected where most pairs depend
ASK_BELOW = 1.5
DROWNED = "noise of more than 2^40 would be added to every count: epsilon is too small"
FIRST = (
    "the strategy {} measures everything alike, and cannot prefer a target or named tables: "
    "take the strategy adaptive, or leave them out"
)

AT_ONCE = (AllCells, AllPairs)


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
) -> TableStrategy:
    """Return the strategy of least expected error, or the one of a name; ValueError: none can do it.

    `rows` is the public n under replace-one, else a public guess of it; `certificate` a share of the budget.
    """
    if not 0 <= certificate < 1:
        raise ValueError("certificate must be a share of at least 0 and below 1")
    if rows < 1:
        raise ValueError("rows must be at least 1")
    setting = Setting(
        universe=universe,
        law=PrivacyMeasure(concentrated=False, replaced=replaced),
        epsilon=epsilon,
        rows=rows,
        memory=memory,
        certificate=certificate,
    )
    if setting.law.drowns(epsilon * (1 - certificate)):
        raise ValueError(DROWNED)
    aimed = bool(wanted_first(universe))
    if aimed and strategy not in (None, Adaptive.name):
        raise ValueError(FIRST.format(strategy))
    for kind in AT_ONCE:
        if strategy == kind.name:
            if (made := kind.planned(setting)) is None:
                raise ValueError(kind.refusal)
            return made
    cells, at_once = AllCells.planned(setting), AllPairs.planned(setting)
    pure, adaptive = _rounds(setting, delta)
    if strategy == Adaptive.name or universe.named:
        return _audible(adaptive)
    if aimed:
        # all cells may tell about as much of the tables of targets, and more of others
        return cells if cells is not None and cells.expected < adaptive.to_beat else _audible(adaptive)
    if adaptive.delta is not None and _drowned(pure):
        return _audible(adaptive)
    best = _least(cells, at_once, _audible(pure))
    return adaptive if adaptive.delta and _beats(adaptive, best) else best


def _least(cells: AllCells | None, at_once: AllPairs | None, adaptive: Adaptive) -> TableStrategy:
    """Return the pure strategy of least expected error."""
    # both are 0 where epsilon is huge: cells are then exact, a model is not
    if cells is not None and cells.expected <= adaptive.expected:
        return at_once if at_once is not None and at_once.expected < cells.expected else cells
    if at_once is None or at_once.expected >= ASK_BELOW * adaptive.expected:
        return adaptive
    taken = at_once.expected < PAIRS_BELOW * adaptive.expected
    if taken and at_once.expected < ASK_ABOVE:
        return at_once
    tested = DependenceTested.before(adaptive, at_once)
    if tested.answerable:
        return tested
    return at_once if taken else adaptive


def _rounds(setting: Setting, delta: Fraction | None) -> tuple[Adaptive, Adaptive]:
    """Return pure rounds; and those with the allowed delta where they pay, else the pure ones again."""
    pure = Adaptive.shared(setting)
    if delta is None:
        return pure, pure
    rounds = Adaptive.shared(replace(setting, law=replace(setting.law, concentrated=True), delta=delta))
    pays = not _drowned(rounds) and (_drowned(pure) or _beats(rounds, pure))
    return pure, rounds if pays else pure


def _beats(rounds: Adaptive, pure: TableStrategy) -> bool:
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
