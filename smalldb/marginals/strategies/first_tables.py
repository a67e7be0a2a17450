"""Tables that are measured before others are selected: of targets with each other column, and named ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, prod

from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.estimate.junction import Scope, cells
from smalldb.marginals.expected_error import of_groups
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.universe import Universe, pairs_of

WHOLE = 1 << 10  # cells of a table that is measured at all categories before anything is known
WIDEST = 1 << 14  # cells of a table that is measured by groups
MOST_COLUMN_NOISE = {False: 0.3, True: 0.06}  # of a table, off by noise alone, that columns are read from
LOUDEST = 0.15  # of a table, off by noise alone in the mean: more than that tells next to nothing
FOLD = {False: 32, True: 3}  # of the noise of a cell, in squares, up to which columns are read: pure, rho
CONCENTRATED = Fraction(3, 5)  # of the budget under rho, for tables that columns are read from
AFTER = Fraction(2, 5)  # of the budget, for tables that are measured after columns
FEW = 2  # tables that get half of what many get
_FINE = 1 << 10  # to which shares are rounded


@dataclass(frozen=True, slots=True)
class FirstTable:
    """A table that is measured before others are selected."""

    columns: tuple[int, ...]  # ascending
    cost: Fraction  # an epsilon, or a rho
    # whether it is measured at all categories before any column, which are then read from it; else after the
    # columns, at the groups that are worth their noise
    whole: bool


def wanted_first(universe: Universe) -> tuple[tuple[int, ...], ...]:
    """Return named tables, then those of targets with each other column that the workload has; none twice."""
    stars = [pair for pair in pairs_of(universe) if set(pair) & set(universe.targets)]
    tables = tuple(dict.fromkeys([*universe.named, *stars]))
    for columns in tables:
        least = prod(universe.sizes[c] if c in universe.targets else 2 for c in columns)
        if least > WIDEST:
            raise ValueError(
                f"a table to measure first has {least} cells or more, at most {WIDEST} are possible: name "
                "targets of fewer categories, or tables of fewer columns"
            )
    return tables


def proportions(sizes: Sequence[int], concentrated: bool) -> list[int]:
    """Return the proportions of costs at which the sum of distances of tables of such sizes is least."""
    return [round(size ** (2 / 3 if concentrated else 1 / 2) * _FINE) for size in sizes]


# Proof: docs/proofs/rounds.md, lemma 6.
def first_tables(
    universe: Universe, law: PrivacyMeasure, budget: Fraction, rows: int
) -> tuple[FirstTable, ...]:
    """Return the tables to measure first, with costs; those of targets unless noise would drown them."""
    stars = wanted_first(universe)
    for wanted in dict.fromkeys((stars, universe.named)):
        if wanted and (shared := _shared(universe, law, budget, rows, wanted)):
            return shared
    return ()


def _shared(
    universe: Universe, law: PrivacyMeasure, budget: Fraction, rows: int, wanted: tuple[tuple[int, ...], ...]
) -> tuple[FirstTable, ...]:
    """Return first tables with what they cost; none where those of targets would drown."""
    sizes = [universe.size(columns) for columns in wanted]
    parts = proportions(sizes, law.concentrated)

    def off(share: Fraction, sizes: Sequence[int]) -> float:
        noise = [law.noise(budget * share * part / sum(parts)).mean_size for part in parts]
        return sum(a * b for a, b in zip(noise, sizes, strict=True)) / (2 * rows * len(sizes))

    share = _share(off(Fraction(1), sizes), law.concentrated)
    readable = max(folds(universe, wanted)) <= FOLD[law.concentrated]
    whole = readable and max(sizes) <= WHOLE and off(share, sizes) <= MOST_COLUMN_NOISE[law.concentrated]
    if not whole:
        share = AFTER
    if not covers(universe, wanted):
        share *= Fraction(len(wanted), len(wanted) + FEW)
    least = [prod(universe.sizes[c] if c in universe.targets else 2 for c in some) for some in wanted]
    if wanted != universe.named and off(share, least) > LOUDEST:
        return ()
    costs = [budget * share * part / sum(parts) for part in parts]
    return tuple(FirstTable(some, cost, whole) for some, cost in zip(wanted, costs, strict=True))


def folds(universe: Universe, tables: Sequence[tuple[int, ...]]) -> list[float]:
    """
    Return how many times the variance of a cell each column's counts would have, were they read from tables.

    A count is a sum of cells, in each of the tables that have the column; these are averaged by precision.

    >>> pairs = ((0, 1), (0, 2))
    >>> [round(one, 2) for one in folds(Universe((6, 2, 3), (False,) * 3, pairs), pairs)]
    [1.2, 6.0, 6.0]
    """
    precisions: dict[int, float] = {}
    for columns in tables:
        for c in columns:
            precision = universe.sizes[c] / universe.size(columns)
            precisions[c] = precisions.get(c, 0.0) + precision
    return [1 / precisions[c] for c in sorted(precisions)]


def covers(universe: Universe, tables: Sequence[tuple[int, ...]]) -> bool:
    """Tell whether every column is in one of the tables."""
    return {c for columns in tables for c in columns} == set(range(len(universe.sizes)))


def _share(columns_error: float, concentrated: bool) -> Fraction:
    """Return the share of the budget of tables that cover all columns; fitted to stars of 10 to 36 tables."""
    if concentrated:
        return CONCENTRATED
    share = min(0.95, max(0.4, 0.7 * (max(columns_error, 1e-12) / 0.024) ** 0.15))
    return Fraction(round(_FINE * share), _FINE)


# Proof: docs/proofs/rounds.md, lemma 6.
def groups_of_first(
    first: FirstTable, universe: Universe, groupings: Sequence[Grouping], law: PrivacyMeasure, rows: int
) -> Scope:
    """Return the groups of smallest expected error; categories of a target are never grouped."""
    noise = law.noise(first.cost).mean_size
    levels = [
        (groupings[c].finest,) if c in universe.targets else range(groupings[c].finest, 0, -1)
        for c in first.columns
    ]

    def error(scope: Scope) -> float:
        if cells(scope, groupings) > WIDEST:
            return inf
        groups = [groupings[c].groups(level) for c, level in scope]
        hidden = [len(groupings[c].order) > many for (c, _), many in zip(scope, groups, strict=True)]
        coarse = [many for many, some in zip(groups, hidden, strict=True) if some]
        return of_groups(noise * prod(groups) / (2 * rows), coarse)

    scopes = [tuple(zip(first.columns, chosen, strict=True)) for chosen in product(*levels)]
    return min(scopes, key=lambda scope: (error(scope), cells(scope, groupings)))
