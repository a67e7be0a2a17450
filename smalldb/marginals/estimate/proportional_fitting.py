"""Iterative proportional fitting on a junction tree, with ridges: each factor in turn is fitted exactly.

It serves all models of tables: a sweep costs about as much as the probabilities of the tree, and needs
neither a list of cells nor the length of a step. From the coefficients of a model with one table less, few
sweeps are enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from queries.arrays import Floats
from smalldb.marginals.estimate.belief_propagation import Tree, beliefs, steps_between, summed

CLOSE = 1e-9  # of the total: a change of cells that is of no account


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """
    A table of the model: what was released of it, and how far that is to be believed.

    Attributes
    ----------
    base
        Logarithms of weights that are kept as they are; minus infinity is a structural zero.
    held
        What the cells are to hold, and a ridge above 0 for each: a penalty of half of it times the squared
        coefficient. None: the base is all.
    """

    base: Floats
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
    """
    Return coefficients theta, for each factor with counts: maximum entropy, relaxed by normal priors.

    They are where this is greatest ::

        sum of theta counts - total log Z(theta) - sum of ridge theta^2 / 2

    where Z sums exp(base + theta) over all cells. It is concave; at its top, expected counts are the released
    ones less ridge theta: those of maximum entropy that are near the released ones.

    A walk visits every bucket of the tree, and carries on each step what has changed: the table of a bucket
    holds the probabilities of its cells when it is visited (Jirousek and Preucil 1995). There the
    coefficients of each of its factors are moved to where, were all others as they are, this is greatest.

    Parameters
    ----------
    start
        Coefficients to start from, for each factor with counts; None: 0.
    sweeps
        Over all factors, at most.
    close
        Sweeps end early where none of them changes an expected count by more than this share of the total.
    """
    from scipy.special import wrightomega

    weights, theta = [factor.base for factor in factors], list[Floats]()
    at: list[list[tuple[int, int, Floats, Floats]]] = [[] for _ in tree.buckets]
    for i, factor in enumerate(factors):
        if factor.held is not None:
            # A ridge keeps coefficients finite where noise made a count 0 or less. Of two cells and 10 rows,
            # one is held at 8 with ridge 1: theta = 0.897, and 7.103 rows are expected. Held at -1: -2.095,
            # and 1.095 rows.
            counts, ridge = factor.held
            known = start[len(theta)]
            at[tree.homes[i]].append((len(theta), i, counts, ridge))
            theta.append(np.zeros(counts.shape) if known is None else known.copy())
            weights[i] = weights[i] + theta[-1]
    tables, _ = beliefs(tree, weights)
    shared = [np.asarray(summed(t, path)) for t, path in zip(tables, tree.gathered, strict=True)]
    walks = _walks(tree)
    for _ in range(sweeps):
        moved = 0.0
        for before, place in walks:
            if before >= 0:
                _carry(tree, tables, shared, before, place)
            for number, i, counts, ridge in at[place]:
                table = tables[place]
                here = summed(table, tree.sums[i]) * (total / table.sum())
                # x + ridge ln x = wanted + ridge ln here has one solution above 0, by the function omega of
                # Wright. One cell of 1 row, held at 3 with ridge 1: x + ln x = 3, x = 2.208 = 3 - ln x.
                wanted = counts - ridge * theta[number]
                with np.errstate(divide="ignore"):
                    there = ridge * wrightomega(np.log(here / ridge) + wanted / ridge)
                ratio = np.divide(there, here, out=np.ones_like(here), where=(here > 0) & (there > 0))
                theta[number] += np.log(ratio)
                table *= tree.lifts[i](ratio)
                table /= table.sum()
                moved = max(moved, float(np.abs(there - here).max()))
        if moved <= close * total:
            break
    return theta


def _carry(tree: Tree, beliefs: list[Floats], shared: list[Floats], before: int, place: int) -> None:
    """Bring a bucket's table up to date with that of its neighbour in the tree."""
    up = tree.buckets[before].parent == place
    child = before if up else place
    path = tree.gathered[child] if up else steps_between(tree, child)
    now = np.asarray(summed(beliefs[before], path))
    ratio = np.divide(now, shared[child], out=np.zeros_like(now), where=shared[child] > 0)
    spread = tree.rises[child] if up else tree.falls[child]
    if spread is not None:
        beliefs[place] *= spread(ratio)
    shared[child] = now


def _walks(tree: Tree) -> list[tuple[int, int]]:
    """Return a walk down and up again through each tree: where from, -1 at a root, and where to."""
    children: list[list[int]] = [[] for _ in tree.buckets]
    roots: list[int] = []
    for place, bucket in enumerate(tree.buckets):
        (roots if bucket.parent < 0 else children[bucket.parent]).append(place)
    found: list[tuple[int, int]] = []
    for root in roots:
        found.append((-1, root))
        open_ = [(root, iter(children[root]))]
        while open_:
            place, rest = open_[-1]
            child = next(rest, None)
            if child is None:
                open_.pop()
                if open_:
                    found.append((place, open_[-1][0]))
            else:
                found.append((place, child))
                open_.append((child, iter(children[child])))
    return found
