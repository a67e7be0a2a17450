"""From released counts to a model: which factors it has, and how far each is believed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from queries.arrays import Codes, Floats, splitmix64
from smalldb.marginals.estimate.column_estimates import signal, without_margins
from smalldb.marginals.estimate.grouping import Grouping, halved
from smalldb.marginals.estimate.junction import Scope, Tree, beliefs, build, cells, junction_tree
from smalldb.marginals.estimate.proportional_fitting import CLOSE, Factor, fit
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.universe import Rule, Universe

Fixed: TypeAlias = tuple[Scope, Floats]

COLUMN_RIDGE = 1.0  # ridge of a column's own coefficients: its margin was reconciled before, and is to be met

_TINY = 1e-12  # of all mass, what a category of known columns has at least


# Proof: docs/proofs/rounds.md, lemma 7; docs/proofs/related.md, lemma 5.
def model_rows(
    tree: Tree, tables: Sequence[Floats], rows: int, seed: int, known: Codes | None = None
) -> Codes:
    """Return rows as codes, int32, shape (C, rows): counts of all buckets' cells are met to about one row."""
    # from the roots down, each bucket refines the groups of one column, given its other columns; rows that
    # agree in what is given are taken in a random order, and get their groups by systematic rounding
    from smalldb.kernels.nearby_rows import refine

    columns = len(tree.groupings)
    level = [0] * columns
    groups = np.zeros((columns, rows), dtype=np.int32)  # of each column at its present level
    for position in reversed(range(len(tree.buckets))):
        bucket = tree.buckets[position]
        column, levels = bucket.column, dict(bucket.scope)
        grouping, fine = tree.groupings[column], levels[column]
        if known is not None and column < len(known):
            groups[column], level[column] = grouping.of_categories(fine)[known[column]], fine
            continue
        context = np.zeros(rows, dtype=np.int32)
        for c, lev in bucket.scope:
            if c != column:
                other = tree.groupings[c]
                at = groups[c] if level[c] == lev else other.parents(lev, level[c])[groups[c]]
                context *= other.groups(lev)
                context += at.astype(np.int32)
        axis = [c for c, _ in bucket.scope].index(column)
        weights = tables[position]
        if known is not None:  # which may be where the model has no mass: others then keep their own law
            known_axes = tuple(a for a, (c, _) in enumerate(bucket.scope) if c < len(known))
            weights = weights + _TINY * weights.sum(axis=known_axes, keepdims=True)
        table = np.moveaxis(weights, axis, -1).reshape(-1, grouping.groups(fine))
        starts = np.append(grouping.inside(level[column], fine), grouping.groups(fine))
        row_seed = (seed + 2 * position) % (1 << 64)
        words = splitmix64(len(table) * (len(starts) - 1), (row_seed + 1) % (1 << 64)) >> np.uint64(11)
        offsets = words.astype(np.float64).reshape(len(table), -1) * 2.0**-53
        table = np.maximum(table, 0.0, order="C")  # of one order: another has a kernel of its own
        refine(context, groups[column], table, starts, splitmix64(rows, row_seed), offsets)
        level[column] = fine
    for c, grouping in enumerate(tree.groupings):
        groups[c] = grouping.order[groups[c]]
    return groups


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A distribution over the universe: exact tables of a junction tree."""

    tree: Tree  # the tree, and the groupings of all columns
    tables: tuple[Floats, ...]  # the probabilities of its buckets
    coefficients: tuple[Floats, ...]  # of the columns, then of each measured table in the order of measuring

    def rows(self, count: int, seed: int, known: Codes | None = None) -> Codes:
        """Return so many rows of the model as codes, shape (C, count); see `model_rows`."""
        return model_rows(self.tree, self.tables, count, seed, known)


# Proof: docs/proofs/rounds.md, lemma 9.
def zeros_of(rules: Iterable[Rule], groupings: Sequence[Grouping]) -> tuple[Fixed, ...]:
    """Return the factors of the rules: minus infinity where no row can be."""
    zeros = []
    for columns, allowed in rules:
        ranked = allowed[np.ix_(*[groupings[c].order for c in columns])]
        scope = tuple((c, groupings[c].finest) for c in columns)
        zeros.append((scope, np.where(ranked, 0.0, -np.inf)))
    return tuple(zeros)


def cells_of_rules(universe: Universe) -> int:
    """Return how many cells the tables of a model have that keeps the rules, and knows nothing else."""
    groupings = [halved(np.ones(size), True, levels=0) for size in universe.sizes]
    return cells_of([], groupings, zeros_of(universe.rules, groupings))


def cells_of(
    tables: Sequence[Scope], groupings: Sequence[Grouping], fixed: Sequence[Fixed], last: int = 0
) -> int:
    """Return how many cells the tables of a model of such tables have; `last` as in `junction_tree`."""
    tree = junction_tree(scopes_of(range(len(groupings)), groupings, tables, fixed), groupings, last)
    return sum(cells(bucket.scope, groupings) for bucket in tree)


def scopes_of(
    columns: Iterable[int], groupings: Sequence[Grouping], tables: Sequence[Scope], fixed: Sequence[Fixed]
) -> list[Scope]:
    """Return the scopes of a model's factors: columns, measured tables, what is fixed."""
    alone: list[Scope] = [((c, groupings[c].finest),) for c in columns]
    return [*alone, *tables, *(scope for scope, _ in fixed)]


# Proof: docs/proofs/rounds.md, lemma 7.
def fitted(
    groupings: Sequence[Grouping],
    columns: Mapping[int, Floats],
    tables: Sequence[NoisyTable],
    fixed: Sequence[Fixed],
    total: int,
    start: Sequence[Floats],
    sweeps: int,
    close: float = CLOSE,
    last: int = 0,
) -> Model:
    """Fit the model to expected counts of columns and released counts of tables."""
    tree = build(scopes_of(columns, groupings, [t.scope for t in tables], fixed), groupings, last)
    ranked = {c: mass[groupings[c].order] for c, mass in columns.items()}
    factors = [factor_of_column(mass, total) for mass in ranked.values()]
    factors += [factor_of(table, ranked, groupings, total) for table in tables]
    factors += [Factor(weights, None) for _, weights in fixed]
    return fitted_to(tree, factors, total, start, sweeps, close)


def fitted_to(
    tree: Tree, factors: Sequence[Factor], total: int, start: Sequence[Floats], sweeps: int, close: float
) -> Model:
    """Fit a model to factors, those that are kept as they are last."""
    held = sum(factor.held is not None for factor in factors)
    known = [*start, *[None] * (held - len(start))]
    coefficients = fit(tree, factors, total, known, sweeps, close)
    weights = [f.base + t for f, t in zip(factors, coefficients, strict=False)]
    weights += [factor.base for factor in factors[len(coefficients) :]]
    probabilities, _ = beliefs(tree, weights)
    return Model(tree, tuple(probabilities), tuple(coefficients))


def factor_of_column(counts: Floats, total: int) -> Factor:
    """Return the factor of the expected counts of a column."""
    return Factor(np.log(counts / total), (counts, np.full(len(counts), COLUMN_RIDGE)))


# Proof: docs/proofs/rounds.md, lemma 7.
def factor_of(
    table: NoisyTable, columns: Mapping[int, Floats], groupings: Sequence[Grouping], total: int
) -> Factor:
    """Return the factor of a measured table: its counts with the margins of columns, and the ridge.

    The counts mu of independent columns move by about mu times a coefficient. With noise of variance v, and a
    prior variance s of what is there beyond mu, the mean of that is the share s / (s + v) of what was seen;
    with a ridge it is mu / (mu + ridge). So the ridge is mu v / s.
    """
    sums = [np.add.reduceat(columns[c], groupings[c].starts[level]) for c, level in table.scope]
    independent = total * reduce(np.multiply.outer, [part / total for part in sums])
    beyond = without_margins(table.counts - independent)
    noise = max(table.variance, 1e-9)
    floor = np.maximum(independent, 1.0)
    ridge = floor * noise / signal(beyond, floor, noise)
    # below 0 nothing can be met: coefficients would only run away where ridges are small
    return Factor(np.zeros(beyond.shape), (np.maximum(independent + beyond, 0.0), ridge))
