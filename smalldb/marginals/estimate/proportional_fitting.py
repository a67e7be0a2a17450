"""Iterative proportional fitting on a junction tree, with ridges: each factor in turn is fitted exactly.

It serves all models of tables: a sweep costs about as much as the probabilities of the tree, and needs
neither a list of cells nor the length of a step. From the coefficients of a model with one table less, few
sweeps are enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.marginals.estimate.junction import Tree, beliefs

CLOSE = 1e-9  # of the total: a change of cells that is of no account


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A table of the model: what was released of it, and how far that is to be believed."""

    base: Floats  # logarithms of weights that are kept as they are; minus infinity is a structural zero
    # what the cells are to hold, and a ridge above 0 for each: a penalty of half of it times the squared
    # coefficient. None: the base is all.
    held: tuple[Floats, Floats] | None


# Proof: docs/proofs/rounds.md, lemma 7.
def fit(
    tree: Tree,
    factors: Sequence[Factor],
    total: float,
    start: Sequence[Floats | None],
    sweeps: int,
    close: float = CLOSE,
) -> list[Floats]:
    """Return coefficients theta, for each factor with counts: maximum entropy, relaxed by normal priors.

    They are where this is greatest ::

        sum of theta counts - total log Z(theta) - sum of ridge theta^2 / 2

    where Z sums exp(base + theta) over all cells. It is concave; at its top, expected counts are the released
    ones less ridge theta: those of maximum entropy that are near the released ones.

    A walk visits every bucket of the tree, and carries on each step what has changed: the table of a bucket
    holds the probabilities of its cells when it is visited (Jirousek and Preucil 1995). There the
    coefficients of each of its factors are moved to where, were all others as they are, this is greatest.
    """
    from scipy.special import wrightomega

    from smalldb.kernels.cell_sums import carry, met, unmet

    total, weights, theta = float(total), [factor.base for factor in factors], list[Floats]()
    at: list[list[tuple[Integers, Floats, Floats, Floats]]] = [[] for _ in tree.buckets]
    for i, (factor, home) in enumerate(zip(factors, tree.homes, strict=True)):
        if factor.held is not None:
            # A ridge keeps coefficients finite where noise made a count 0 or less. Of two cells and 10 rows,
            # one is held at 8 with ridge 1: theta = 0.897, and 7.103 rows are expected. Held at -1: -2.095,
            # and 1.095 rows.
            counts, ridge = factor.held
            known = start[len(theta)]
            inside = tree.lifts[i].inside(factor.base.shape, tree.shape(home))
            theta.append(np.zeros(counts.shape) if known is None else known.copy())
            at[home].append((inside, counts.ravel(), ridge.ravel(), theta[-1].reshape(-1)))
            weights[i] = weights[i] + theta[-1]
    tables = [table.ravel() for table in beliefs(tree, weights)[0]]
    separators, walks = _separators(tree, tables), _walks(tree)
    for _ in range(sweeps):
        moved = 0.0
        for before, position in walks:
            if before >= 0:
                up = tree.buckets[before].parent == position
                shared = separators[before if up else position]
                here, there = (shared.below, shared.above) if up else (shared.above, shared.below)
                carry(tables[before], here, shared.sums, tables[position], there)
            for inside, counts, ridges, coefficients in at[position]:
                expected, logs = unmet(tables[position], inside, total, counts, ridges, coefficients)
                omegas = wrightomega(logs)
                moved = max(
                    moved, met(tables[position], inside, total, expected, omegas, ridges, coefficients)
                )
        if moved <= close * total:
            break
    return theta


@dataclass(frozen=True, slots=True, eq=False)
class _Separator:
    """What two neighbouring buckets share."""

    sums: Floats  # the probabilities of the shared cells; written
    # of each cell of the parent, and of the child, the shared one
    above: Integers
    below: Integers


def _separators(tree: Tree, tables: list[Floats]) -> dict[int, _Separator]:
    """Return what each bucket but the roots shares with its parent, by the bucket."""
    from smalldb.kernels.cell_sums import added_up

    separators = dict[int, _Separator]()
    for child, (bucket, rise) in enumerate(zip(tree.buckets, tree.rises, strict=True)):
        if rise is not None:
            passed = tuple(tree.groupings[c].groups(level) for c, level in bucket.passed)
            above = rise.inside(passed, tree.shape(bucket.parent))
            below = tree.falls[child].inside(passed, tree.shape(child))
            separators[child] = _Separator(added_up(tables[child], below, prod(passed)), above, below)
    return separators


def _walks(tree: Tree) -> list[tuple[int, int]]:
    """Return a walk down and up again through each tree: where from, -1 at a root, and where to."""
    children, walk = tree.children, list[tuple[int, int]]()
    for root in (position for position, bucket in enumerate(tree.buckets) if bucket.parent < 0):
        walk.append((-1, root))
        open_ = [(root, iter(children[root]))]
        while open_:
            position, rest = open_[-1]
            child = next(rest, None)
            if child is None:
                open_.pop()
                if open_:
                    walk.append((position, open_[-1][0]))
            else:
                walk.append((position, child))
                open_.append((child, iter(children[child])))
    return walk
