"""Choosing the tree: the one whose relaxation is smallest at the threshold that matters.

The size of a relaxation is counted, so trees are compared without sampling. Any choice, even one that looks
at the data, leaves the law alone.
"""

from functools import lru_cache
from itertools import combinations
from math import inf, log

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.exact.bits import BitSource, SeededBits
from smalldb.exact.integers import uniform_below
from smalldb.kernels.nodes import WEIGHTS
from smalldb.rejection.relaxation import Relaxer, TooCostly
from smalldb.rejection.target import Target
from smalldb.rejection.tree import Tree, scattered, star


def pair_gains(target: Target, threshold: int) -> Floats:
    """Return by how many nats holding each pair of attributes together cuts the relaxation, shape (d, d)."""
    rows, d = target.rows, target.attributes
    lows, highs = target.bounds(threshold)
    # the rows of a candidate over the four cells of two attributes, and how many columns they stand for
    counts = np.stack(np.meshgrid(*[np.arange(rows + 1)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    counts = counts[counts.sum(axis=1) <= rows]
    counts = np.column_stack([counts, rows - counts.sum(axis=1)])
    columns = WEIGHTS[np.cumsum(counts, axis=1), counts].prod(axis=1)

    @lru_cache(32)  # most pairs have the same few queries
    def answers(weights: tuple[int, ...]) -> Integers:
        return counts @ np.array(weights, dtype=np.int64)

    def log_size(a: int, b: int, *held: tuple[int, ...]) -> float:
        within = np.ones(len(counts), dtype=np.bool_)
        for attributes in held:
            for j in target.by_attributes.get(attributes, ()):
                found = answers(tuple(target.on_cells(j, (a, b)).tolist()))
                within &= (lows[j] <= found) & (found <= highs[j])
        with np.errstate(divide="ignore"):
            return float(np.log(columns[within].sum()))

    gains = np.zeros((d, d))
    alone = [log_size(a, -1, (a,)) - rows * log(2) for a in range(d)]  # beside a column of any kind
    for a, b in combinations(range(d), 2):
        together = log_size(a, b, (a,), (b,), (a, b))
        # an empty pair means an empty relaxation: no pair cuts more
        gains[a, b] = gains[b, a] = alone[a] + alone[b] - together if together > -inf else 1e3
    return gains


def greedy(gains: Floats, width: int) -> Tree:
    """Grow a tree from the strongest pair: the attribute and parents of most gain next."""
    d = len(gains)
    if width == 0 or d == 1:
        return scattered(d)
    first, second = np.unravel_index(int(np.argmax(gains - np.eye(d))), gains.shape)  # a pair, not one twice
    order = [int(first), int(second)]
    parents: list[tuple[int, ...]] = [(), (0,)]
    left = set(range(d)) - set(order)
    best: dict[int, tuple[float, tuple[int, ...]]] = {a: (-inf, ()) for a in left}
    seen = 0
    while left:
        for node in range(seen, len(order)):
            clique = (*parents[node], node)
            for a in left:
                chosen = sorted(clique, key=lambda p: -gains[a, order[p]])[:width]
                gain = float(sum(gains[a, order[p]] for p in chosen))
                if (gain, len(chosen)) > (best[a][0], len(best[a][1])):
                    best[a] = gain, tuple(sorted(chosen))
        seen = len(order)
        a = max(sorted(left), key=lambda a: best[a][0])
        left.remove(a)
        order.append(a)
        parents.append(best[a][1])
    return Tree(tuple(order), tuple(parents))


def held_gain(gains: Floats, tree: Tree) -> float:
    """Return the gains, in nats, of all pairs that lie in a clique."""
    return float(sum(gains[clique[-1], parent] for clique in tree.cliques for parent in clique[:-1]))


def richest_star(gains: Floats, width: int, least: float) -> Tree | None:
    """Return the star of so many hubs that holds the largest gain, if that is large enough."""
    if len(gains) <= width:
        return None
    hubs = np.array(list(combinations(range(len(gains)), width)))
    held = gains.sum(axis=1)[hubs].sum(axis=1)
    for a, b in combinations(range(width), 2):
        held -= gains[hubs[:, a], hubs[:, b]]
    best = int(np.argmax(held))
    return star(hubs[best].tolist(), len(gains)) if held[best] >= least else None


def improve(relaxer: Relaxer, tree: Tree, width: int, threshold: int, budget: int) -> tuple[Tree, int]:
    """Improve a tree by local moves while the budget lasts."""
    # A fixed stream of bits steers the moves, so that the same data give the same tree
    steering = SeededBits(width)
    spent, best = 0, inf
    tried = {tree}
    candidate: Tree | None = tree
    idle = 0
    while spent < budget and idle < 40 * len(tree.order):
        idle += 1
        if candidate is not None:
            found = relaxer.count_all(candidate, [threshold], budget - spent)
            if isinstance(found, TooCostly):
                break
            spent += found.cost + _OVERHEAD * len(tree.order)
            size = float(found.log_sizes[0])
            if size < best:
                tree, best, idle = candidate, size, 0
        candidate = _moved(tree, width, steering)
        if candidate in tried:
            candidate = None
        elif candidate is not None:
            tried.add(candidate)
    return tree, spent


_OVERHEAD = 1000  # what a call of the kernels for one node costs, in ways


def _moved(tree: Tree, width: int, steering: BitSource) -> Tree | None:
    """Return a neighbour of the tree: two attributes swapped, or a leaf hung elsewhere; None: none."""
    d = len(tree.order)
    if uniform_below(3, steering) == 0:
        a, b = uniform_below(d, steering), uniform_below(d, steering)
        order = list(tree.order)
        order[a], order[b] = order[b], order[a]
        return Tree(tuple(order), tree.parents) if a != b else None
    used = {p for parents in tree.parents for p in parents}
    leaves = [node for node in range(width + 1, d) if node not in used]
    if not leaves:
        return None
    leaf = leaves[uniform_below(len(leaves), steering)]
    order = [*tree.order[:leaf], *tree.order[leaf + 1 :], tree.order[leaf]]
    parents = [
        tuple(p - (p > leaf) for p in chosen) for node, chosen in enumerate(tree.parents) if node != leaf
    ]
    holder = uniform_below(d - 1, steering)
    clique = [*parents[holder], holder]
    while len(clique) > width:
        clique.pop(uniform_below(len(clique), steering))
    return Tree(tuple(order), (*parents, tuple(clique)))
