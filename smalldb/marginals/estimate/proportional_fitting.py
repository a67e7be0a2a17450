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
from smalldb.marginals.estimate.belief_propagation import Lift, Tree, beliefs

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
    tree
        The junction tree of the factors.
    factors
        The tables of the model, with what each is to hold.
    total
        What all cells add up to: the number of rows.
    start
        Coefficients to start from, for each factor with counts; None: 0.
    sweeps
        Over all factors, at most.
    close
        Sweeps end early where none of them changes an expected count by more than this share of the total.
    """
    from scipy.special import wrightomega

    from smalldb.kernels.adding_up import added_up, multiply

    weights, theta = [factor.base for factor in factors], list[Floats]()
    at: list[list[tuple[int, Integers, Floats, Floats]]] = [[] for _ in tree.buckets]
    for i, (factor, home) in enumerate(zip(factors, tree.homes, strict=True)):
        if factor.held is not None:
            # A ridge keeps coefficients finite where noise made a count 0 or less. Of two cells and 10 rows,
            # one is held at 8 with ridge 1: theta = 0.897, and 7.103 rows are expected. Held at -1: -2.095,
            # and 1.095 rows.
            counts, ridge = factor.held
            known = start[len(theta)]
            inside = _inside(tree.lifts[i], factor.base.shape, tree.shape(home))
            at[home].append((len(theta), inside, counts, ridge))
            theta.append(np.zeros(counts.shape) if known is None else known.copy())
            weights[i] = weights[i] + theta[-1]
    tables = [table.ravel() for table in beliefs(tree, weights)[0]]
    separators, walks = _separators(tree, tables), _walks(tree)
    for _ in range(sweeps):
        moved = 0.0
        for before, position in walks:
            if before >= 0:
                up = tree.buckets[before].parent == position
                separators[before if up else position].carry(up, tables[before], tables[position])
            for number, inside, counts, ridge in at[position]:
                here = added_up(tables[position], inside, counts.size).reshape(counts.shape) * total
                # x + ridge ln x = wanted + ridge ln here has one solution above 0, by the function omega of
                # Wright. One cell of 1 row, held at 3 with ridge 1: x + ln x = 3, x = 2.208 = 3 - ln x.
                wanted = counts - ridge * theta[number]
                with np.errstate(divide="ignore"):
                    there = ridge * wrightomega(np.log(here / ridge) + wanted / ridge)
                ratio = np.divide(there, here, out=np.ones_like(here), where=(here > 0) & (there > 0))
                theta[number] += np.log(ratio)
                multiply(tables[position], inside, ratio.ravel() * (total / (here * ratio).sum()))
                moved = max(moved, float(np.abs(there - here).max()))
        if moved <= close * total:
            break
    return theta


@dataclass(slots=True, eq=False)
class _Separator:
    """
    What two neighbouring buckets share: its probabilities, and the cell of each of theirs.

    Attributes
    ----------
    above, below
        Of each cell of the parent, and of the child, the shared one.
    """

    shared: Floats
    above: Integers
    below: Integers

    def carry(self, up: bool, source: Floats, target: Floats) -> None:
        """Bring the table of the parent, or else of the child, up to date with that of its neighbour."""
        from smalldb.kernels.adding_up import added_up, multiply

        here, there = (self.below, self.above) if up else (self.above, self.below)
        now = added_up(source, here, self.shared.size)
        ratios = np.divide(now, self.shared, out=np.zeros_like(now), where=self.shared > 0)
        multiply(target, there, ratios)
        self.shared = now


def _separators(tree: Tree, tables: list[Floats]) -> dict[int, _Separator]:
    """Return what each bucket but the roots shares with its parent, by the bucket."""
    from smalldb.kernels.adding_up import added_up

    found = dict[int, _Separator]()
    for child, (bucket, rise) in enumerate(zip(tree.buckets, tree.rises, strict=True)):
        if rise is not None:
            passed = tuple(tree.groupings[c].groups(level) for c, level in bucket.passed)
            above = _inside(rise, passed, tree.shape(bucket.parent))
            below = _inside(tree.falls[child], passed, tree.shape(child))
            found[child] = _Separator(added_up(tables[child], below, prod(passed)), above, below)
    return found


def _inside(lift: Lift, coarse: tuple[int, ...], fine: tuple[int, ...]) -> Integers:
    """Return of each cell of a fine table the coarse one that it is in, shape (cells,)."""
    numbers = np.arange(prod(coarse), dtype=np.float64).reshape(coarse)
    return np.broadcast_to(lift(numbers), fine).ravel().astype(np.int32)


def _walks(tree: Tree) -> list[tuple[int, int]]:
    """Return a walk down and up again through each tree: where from, -1 at a root, and where to."""
    children: list[list[int]] = [[] for _ in tree.buckets]
    roots: list[int] = []
    for position, bucket in enumerate(tree.buckets):
        (roots if bucket.parent < 0 else children[bucket.parent]).append(position)
    found: list[tuple[int, int]] = []
    for root in roots:
        found.append((-1, root))
        open_ = [(root, iter(children[root]))]
        while open_:
            position, rest = open_[-1]
            child = next(rest, None)
            if child is None:
                open_.pop()
                if open_:
                    found.append((position, open_[-1][0]))
            else:
                found.append((position, child))
                open_.append((child, iter(children[child])))
    return found
