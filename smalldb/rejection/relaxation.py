"""The relaxation of a set of small databases by a k-tree: counted state by state, ready to be drawn from.

R_t is the set of all m ordered rows on which every query that lies in a clique of the tree is within t of its
target. It holds every candidate of score at most t. With h the histogram of the rows over the parents of node
i, and u how many rows of each cell have a one,

    G_i(h) = sum over u of prod_x C(h_x, u_x) prod over children c of G_c(histogram of (h, u) on P(c)),

so |R_t| is the product of the G of the roots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations
from math import gcd, inf, log
from typing import NamedTuple

import numpy as np

from queries.arrays import Integers, Words
from smalldb.kernels import ktree
from smalldb.rejection.target import Target
from smalldb.rejection.tree import Tree

_WORD = (1 << 64) - 1


class _Block(NamedTuple):
    """The linear forms of one node, and the boxes on each, as `ktree.Nodes` has them."""

    forms: Integers
    boxes: Integers
    scales: Integers
    constants: Integers
    queries: Integers


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Relaxation:
    """R_t for one tree and one threshold.

    Attributes
    ----------
    tree, threshold
        What it is the relaxation for.
    nodes, states
        For the kernels.
    log_size
        The natural logarithm of |R_t|, nearly; -inf where it is empty.
    cost
        Ways visited while it was counted.
    """

    tree: Tree
    threshold: int
    nodes: ktree.Nodes
    states: ktree.States
    log_size: float
    cost: int

    # Proof: docs/proofs/rejection.md, lemma 4.
    @property
    def size(self) -> Fraction:
        """|R_t| as the kernels computed it: the number that each draw is made against; 0 means empty."""
        product = Fraction(1)
        for root in self.tree.roots:
            product *= Fraction(float(self.states.values[self.states.start[root]]))
        return product / Fraction(self.nodes.shrink) ** len(self.tree.order)


class Relaxer:
    """Counts relaxations of one target; what the nodes of different trees share is compiled once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._blocks: dict[tuple[int, ...], _Block] = {}

    # Proof: docs/proofs/rejection.md, lemmas 2 and 3.
    def count(self, tree: Tree, threshold: int, budget: int) -> Relaxation | None:
        """Count R_t; None: it would take more than `budget` ways, or numbers beyond the doubles."""
        bounds = self.target.bounds(threshold)
        blocks = [self._block(clique) for clique in tree.cliques]
        nodes = self._nodes(tree, blocks, bounds)
        rows = np.array([[self.target.rows, 0]], dtype=np.uint64)
        keys: list[Words] = [rows] * len(tree.order)
        slots: list[Integers] = [np.zeros(1, dtype=np.int64)] * len(tree.order)
        spent = 0
        for node, children in enumerate(tree.children):
            for which, child in enumerate(children):
                keys[child], slots[child], cost = ktree.reach(nodes, node, which, keys[node], budget - spent)
                spent += cost
                if spent > budget:
                    return None
        states = ktree.States(
            _starts(keys),
            np.concatenate(keys),
            np.zeros(sum(map(len, keys))),
            _starts(slots),
            np.concatenate(slots),
        )
        for node in reversed(range(len(tree.order))):
            spent += ktree.weigh(nodes, node, states, budget - spent)
            if spent > budget:
                return None
        with np.errstate(divide="ignore"):
            logs = np.log(states.values[states.start[list(tree.roots)]])
        log_size = float(logs.sum()) - log(nodes.shrink) * len(tree.order)
        if not log_size < inf:  # beyond the doubles
            return None
        return Relaxation(tree, threshold, nodes, states, log_size, spent)

    def _block(self, clique: tuple[int, ...]) -> _Block:
        """Compile the queries whose last attribute is the node's and whose others are among its parents."""
        if clique not in self._blocks:
            self._blocks[clique] = _compile(self.target, clique)
        return self._blocks[clique]

    def _nodes(self, tree: Tree, blocks: list[_Block], bounds: tuple[Integers, Integers]) -> ktree.Nodes:
        parents = np.full((len(tree.order), ktree.MOST_PARENTS), -1, dtype=np.int64)
        for node, clique in enumerate(tree.cliques):
            parents[node, : len(clique) - 1] = clique[:-1]
        held = np.concatenate([block.queries for block in blocks])
        children = [(node, child) for node, found in enumerate(tree.children) for child in found]
        bases = np.zeros((len(children), ktree.MOST_CELLS, 2), dtype=np.uint64)
        steps = np.zeros_like(bases)
        for place, (node, child) in enumerate(children):
            bases[place], steps[place] = _projection(tree, node, child)
        return ktree.Nodes(
            np.array(tree.order, dtype=np.int64),
            parents,
            np.array([1 << len(p) for p in tree.parents], dtype=np.int64),
            _starts([block.forms for block in blocks]),
            np.concatenate([block.forms for block in blocks]),
            np.concatenate([[0], np.cumsum(np.concatenate([block.boxes for block in blocks]))]),
            np.concatenate([block.scales for block in blocks]),
            bounds[0][held],
            bounds[1][held],
            np.concatenate([block.constants for block in blocks]),
            _starts(tree.children),
            np.array([child for _, child in children], dtype=np.int64),
            bases,
            steps,
            2.0 ** -(self.target.rows // 2),
        )

    # Proof: docs/proofs/rejection.md, lemma 6.
    def checks(self, tree: Tree, threshold: int) -> ktree.Checks:
        """List what no clique holds, by the last node that it looks at."""
        lows, highs = self.target.bounds(threshold)
        held = {j for clique in tree.cliques for j in self._block(clique).queries.tolist()}
        place = {attribute: node for node, attribute in enumerate(tree.order)}
        found: list[list[int]] = [[] for _ in tree.order]
        for j, table in enumerate(self.target.tables):
            if j not in held:
                found[max(place[a] for a in table.attributes)].append(j)
        queries = np.array(list(chain.from_iterable(found)), dtype=np.int64)
        return ktree.Checks(_starts(found), queries, lows[queries], highs[queries])


def _compile(target: Target, clique: tuple[int, ...]) -> _Block:
    *parents, own = clique
    settings = np.arange(1 << len(parents))
    forms: dict[tuple[int, ...], list[tuple[int, Integers, int]]] = {}
    for some in chain.from_iterable(combinations(parents, size) for size in range(len(clique))):
        attributes = tuple(sorted((*some, own)))
        for j in target.by_attributes.get(attributes, ()):
            values = []
            for bit in (0, 1):
                bits = np.full((len(attributes), len(settings)), bit, dtype=np.int64)
                for row, a in enumerate(attributes):
                    if a != own:
                        bits[row] = settings >> parents.index(a) & 1
                weights = target.tables[j].weights
                values.append(bits.sum(axis=0) % 2 * target.unit if weights is None else weights[tuple(bits)])
            change = values[1] - values[0]
            scale = gcd(*change.tolist()) * (1 if change[change != 0][0] > 0 else -1)
            forms.setdefault(tuple((change // scale).tolist()), []).append((scale, values[0], j))
    boxes = list(chain.from_iterable(forms.values()))
    return _Block(
        _padded(list(forms)),
        np.array([len(found) for found in forms.values()], dtype=np.int64),
        np.array([scale for scale, _, _ in boxes], dtype=np.int64),
        _padded([constants for _, constants, _ in boxes]),
        np.array([j for _, _, j in boxes], dtype=np.int64),
    )


def _padded(rows: Sequence[Sequence[int] | Integers]) -> Integers:
    table = np.zeros((len(rows), ktree.MOST_CELLS), dtype=np.int64)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table


def _projection(tree: Tree, node: int, child: int) -> tuple[Words, Words]:
    """Return what a row in each cell adds to the child's packed state, and what a one of the node changes."""
    bits = {parent: bit for bit, parent in enumerate((*tree.parents[node], node))}
    cells = 1 << len(tree.parents[node])
    packed = []
    for setting in range(2 * cells):
        cell = sum((setting >> bits[parent] & 1) << q for q, parent in enumerate(tree.parents[child]))
        packed.append([1 << 8 * cell & _WORD, 1 << 8 * cell >> 64])
    bases = np.zeros((ktree.MOST_CELLS, 2), dtype=np.uint64)
    steps = np.zeros_like(bases)
    bases[:cells] = packed[:cells]
    steps[:cells] = np.array(packed[cells:], dtype=np.uint64) - bases[:cells]  # wraps, as the kernels do
    return bases, steps


def _starts(parts: Sequence[Sequence[object] | np.ndarray]) -> Integers:
    return np.array([0, *np.cumsum([len(part) for part in parts])], dtype=np.int64)
