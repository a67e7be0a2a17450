"""Iterative proportional fitting on a junction tree, with ridges: each factor in turn is fitted exactly."""

from collections.abc import Sequence

import numpy as np

from queries.arrays import Floats
from smalldb.marginals.estimate.belief_propagation import Tree, steps_between, summed

CLOSE = 1e-9  # of the total: a change of cells that is of no account


# Proof: docs/proofs/rounds.md, lemma 7.
def scaled(
    tree: Tree,
    tables: Sequence[Floats],
    held: Sequence[tuple[Floats, Floats] | None],
    coefficients: Sequence[Floats],
    total: float,
    sweeps: int,
    close: float = CLOSE,
) -> list[Floats]:
    """
    Return coefficients nearer to those of `fitting.fit`, after so many sweeps over all factors.

    A walk visits every bucket of the tree, and carries on each step what has changed: the table of a bucket
    holds the probabilities of its cells when it is visited (Jirousek and Preucil 1995). There the
    coefficients theta of each of its factors are moved to where, were all others as they are, expected counts
    are ``counts - ridge theta``.

    Parameters
    ----------
    tables
        The probabilities of the buckets, from `passing.beliefs`.
    held
        Of each factor of the tree, counts and ridges above 0; None: it stays as it is.
    coefficients
        Of each factor that is held, in order.
    close
        Sweeps end early where none of them changes an expected count by more than this share of the total.
    """
    from scipy.special import wrightomega

    beliefs = [table.copy() for table in tables]
    shared = [np.asarray(summed(t, path)) for t, path in zip(beliefs, tree.gathered, strict=True)]
    theta = [part.copy() for part in coefficients]
    free = [i for i, pair in enumerate(held) if pair is not None]
    at: list[list[tuple[int, int]]] = [[] for _ in beliefs]
    for number, i in enumerate(free):
        at[tree.homes[i]].append((number, i))
    walks = _walks(tree)
    for _ in range(sweeps):
        moved = 0.0
        for before, place in walks:
            if before >= 0:
                _carry(tree, beliefs, shared, before, place)
            for number, i in at[place]:
                pair = held[i]
                if pair is None:
                    continue
                table = beliefs[place]
                here = summed(table, tree.sums[i]) * (total / table.sum())
                # x + ridge ln x = wanted + ridge ln here has one solution above 0, by the function omega of
                # Wright. One cell of 1 row, held at 3 with ridge 1: x + ln x = 3, x = 2.208 = 3 - ln x.
                counts, ridge = pair
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
