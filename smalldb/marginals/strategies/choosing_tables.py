"""Which tables to measure, and how: the strategy of least expected error, from public numbers."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import inf

from smalldb.marginals.expected_error import USUAL, as_read, of_columns
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.marginals.strategies.all_pairs import AllPairs
from smalldb.marginals.strategies.dependence import (
    LEVELS,
    LOUD,
    QUIET,
    SHARES,
    DependenceTested,
    Way,
    loudness,
)
from smalldb.marginals.strategies.first_tables import wanted_first
from smalldb.marginals.strategies.strategy import CERTIFICATE, MEMORY, Setting, TableStrategy
from smalldb.marginals.universe import Universe, pairs_of

# of the error of a plan: below it, one is taken that costs single columns, or time and memory; or a pure one
# though a delta is allowed
CLEARLY = 0.85
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
    column_share: Fraction | None = None,
) -> TableStrategy:
    """Return the strategy of least expected error, or the one of a name; ValueError: none can do it.

    `rows` is the public n under replace-one, else a public guess of it; `certificate` a share of the budget.
    """
    setting = Setting(
        universe=universe,
        law=PrivacyMeasure(concentrated=False, replaced=replaced),
        epsilon=epsilon,
        rows=rows,
        memory=memory,
        certificate=certificate,
        column_share=column_share,
    )
    if setting.law.drowns(epsilon * (1 - certificate)):
        raise ValueError(DROWNED)
    aimed = bool(wanted_first(universe))
    if aimed and strategy not in (None, Adaptive.name):
        raise ValueError(FIRST.format(strategy))
    for kind in AT_ONCE:
        if strategy == kind.name:
            if (plan := kind.planned(setting)) is None:
                raise ValueError(kind.refusal)
            return plan
    cells = None if column_share else AllCells.planned(setting)
    gaussian = replace(setting, law=replace(setting.law, concentrated=True), delta=delta)
    settings = [setting] if delta is None else [gaussian, setting]
    if aimed or strategy == Adaptive.name:
        shared = [Adaptive.shared(each, halves=True) for each in settings]
        adaptive = _audible(shared[_first_unless(shared, CLEARLY)])
        if cells is None or strategy is not None or universe.named:
            return adaptive
        # all cells may tell about as much of the tables of targets, and more of others
        return cells if cells.expected < adaptive.to_beat else adaptive
    best: list[TableStrategy] = [_way(each) for each in settings]
    times = CLEARLY if isinstance(best[-1], Adaptive) else 1.0  # noise on all pairs costs columns, too
    if cells is not None and cells.expected <= times * best[-1].expected:
        best[-1] = cells
    law = _first_unless(best, CLEARLY)
    return best[law] if best[law] is cells else _asking(settings[law], _audible(best[law]))


def _first_unless(plans: Sequence[TableStrategy], times: float) -> int:
    """Return which is taken: the first, unless a later one errs less than so many times the best before."""
    best = 0
    for number, plan in enumerate(plans):
        if _error(plan) < times * _error(plans[best]):
            best = number
    return best


def _way(setting: Setting, dependence: float = USUAL) -> Way:
    """Return what is measured by one law where pairs are so far from independent columns."""
    shared = partial(Adaptive.shared, setting, dependence=dependence)
    ways = [shared(alone=True), shared()]
    # rounds under rho cost columns little
    best = ways[_first_unless(ways, 1.0 if setting.law.concentrated else CLEARLY)]
    in_turn = setting.law.concentrated or setting.column_share  # columns, then tables
    at_once = None if in_turn else AllPairs.planned(setting, dependence)
    return best if at_once is None or _product(best) <= _product(at_once) else at_once


def _error(way: TableStrategy) -> float:
    """Return the error that ways are compared by: that of the tables that were asked for."""
    return inf if _drowned(way) else float(way.expected)


def _product(way: Way) -> float:
    """Return the product of the errors of columns, of tables, and of conditional shares, as tables'."""
    return _error(way) ** 2 * as_read(of_columns(way.universe, way.column_variances, way.rows))


# Proof: docs/proofs/rounds.md, lemma 13.
def _asking(setting: Setting, best: TableStrategy) -> TableStrategy:
    """Return the question before what is best at each answer; the best itself where it decides nothing."""
    costs = [share * (setting.budget - setting.certifying) for share in SHARES]
    cost = next((cost for cost in costs if loudness(setting, cost) <= QUIET), costs[-1])
    if not pairs_of(setting.universe) or loudness(setting, cost) > LOUD:
        return best
    after = replace(setting, spent=cost)
    tested = DependenceTested.before(setting, [_way(after, level) for level in LEVELS], cost)
    return tested if len(tested.ways) > 1 else best


def _audible(plan: TableStrategy) -> TableStrategy:
    """Return the plan, unless noise would drown it."""
    if _drowned(plan):
        raise ValueError(DROWNED)
    return plan


def _drowned(plan: TableStrategy) -> bool:
    """Whether something would get noise above 2^40, or be selected at an epsilon that rounds down to 0."""
    if not isinstance(plan, Adaptive):
        return False
    selects_nothing = plan.rounds and not plan.law.selecting(plan.selecting)
    return selects_nothing or plan.law.drowns(min(plan.costs_of_tables))
