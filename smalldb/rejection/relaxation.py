"""The relaxation of a set of small databases by a k-tree: counted state by state, ready to be drawn from.

R_t is the set of all m ordered rows on which every query that lies in a clique of the tree is within t of its
target. It holds every candidate of score at most t. With h the histogram of the rows over the parents of node
i, and u how many rows of each cell have a one,

    G_i(h) = sum over u of prod_x C(h_x, u_x) prod over children c of G_c(histogram of (h, u) on P(c)),

so |R_t| is the product of the G of the roots. The R_t of one tree grow with t, so one pass over the
ways counts them for many thresholds: a way adds its product from the first threshold on that holds it.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain, combinations
from math import gcd, inf, log
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from queries.arrays import Floats, Integers, Words
from smalldb.kernels.checks import Checks
from smalldb.kernels.leaves import MOST_ROWS_OF_LEAVES, weigh_leaves
from smalldb.kernels.nodes import MOST_CELLS, MOST_PARENTS, Nodes
from smalldb.kernels.states import States, reach, slots_for, weigh_states
from smalldb.rejection.star_trees import StarRelaxation, has_own_trials
from smalldb.rejection.target import Target
from smalldb.rejection.tree import Tree

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

PARTS = 64  # of the states of broad leaves: the first foretells what all cost, threads share the others
_WORD = (1 << 64) - 1


def in_threads(function: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """Apply a function to each part; the results are in the order of the parts."""
    if len(parts) < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, parts))


class NodeForms(NamedTuple):
    """The linear forms of one node, and the boxes on each, as `Nodes` has them."""

    forms: Integers  # shape (forms, `MOST_CELLS`): what a one in each cell of the parents adds to the form
    # shape (forms,): how many queries have the form; theirs follow one another in what follows
    boxes: Integers
    scales: Integers  # shape (queries,): by how much an answer moves where the form moves by 1
    # shape (queries, `MOST_CELLS`): what a row in each cell adds to the answer where the node has a
    # zero
    constants: Integers
    queries: Integers  # shape (queries,): which ones they are


def forms_of(target: Target, clique: tuple[int, ...]) -> NodeForms:
    """Return the queries of a node: of its own attribute, the last of its clique, and parents."""
    # An answer on the rows moves by a form of u, how many rows of each cell of the parents have a one.
    # Queries that have the same form, but for a factor, are bounds on one number.
    *parents, attribute = clique
    settings = np.arange(1 << len(parents))
    forms: dict[tuple[int, ...], list[tuple[int, Integers, int]]] = {}
    for some in chain.from_iterable(combinations(parents, size) for size in range(len(clique))):
        attributes = tuple(sorted((*some, attribute)))
        for j in target.by_attributes.get(attributes, ()):
            values = []
            for bit in (0, 1):
                bits = np.full((len(attributes), len(settings)), bit, dtype=np.int64)
                for row, a in enumerate(attributes):
                    if a != attribute:
                        bits[row] = settings >> parents.index(a) & 1
                weights = target.tables[j].weights
                values.append(bits.sum(axis=0) % 2 * target.unit if weights is None else weights[tuple(bits)])
            change = values[1] - values[0]
            scale = gcd(*change.tolist()) * (1 if change[change != 0][0] > 0 else -1)
            forms.setdefault(tuple((change // scale).tolist()), []).append((scale, values[0], j))
    boxes = list(chain.from_iterable(forms.values()))
    return NodeForms(
        _padded(list(forms)),
        np.array([len(group) for group in forms.values()], dtype=np.int64),
        np.array([scale for scale, _, _ in boxes], dtype=np.int64),
        _padded([constants for _, constants, _ in boxes]),
        np.array([j for _, _, j in boxes], dtype=np.int64),
    )


def _padded(rows: Sequence[Sequence[int] | Integers]) -> Integers:
    table = np.zeros((len(rows), MOST_CELLS), dtype=np.int64)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Relaxation:
    """R_t for one tree and one threshold; `StarRelaxation` serves stars whose trials are quick."""

    # tree, threshold: what it is the relaxation for
    tree: Tree
    threshold: int
    # nodes, states: for the kernels
    nodes: Nodes
    states: States
    log_size: float  # the natural logarithm of |R_t|, nearly; -inf where it is empty
    # that of ``tree.narrow``, of which the columns of broad leaves are drawn; None: they are not
    narrow: "Relaxation | None" = None

    @property
    def state_count(self) -> int:
        """How many states there are, of all nodes."""
        return len(self.states.keys)

    # Proof: docs/proofs/rejection.md, lemma 4.
    @property
    def size(self) -> Fraction:
        """|R_t| as the kernels computed it: the number that each draw is made against; 0 means empty."""
        product = Fraction(1)
        for root in self.tree.roots:
            product *= Fraction(float(self.states.values[self.states.start[root]]))
        return product / Fraction(self.nodes.shrink) ** len(self.tree.order)


Layer: TypeAlias = Relaxation | StarRelaxation


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Counted:
    """R_t for one tree and ascending thresholds, counted in one pass."""

    # target, tree, thresholds: what they are the relaxations for
    target: Target
    tree: Tree
    thresholds: tuple[int, ...]
    queries: Integers  # shape (boxes,): the query of each
    # nodes, states: with the boxes of the last threshold, and all states that are reached within them;
    # without values
    nodes: Nodes
    states: States
    values: Floats  # shape (states, thresholds)
    # shape (thresholds,): the natural logarithm of each |R_t|, nearly; -inf where it is empty, inf
    # where it is beyond the doubles
    log_sizes: Floats
    cost: int  # ways visited
    narrow: "Counted | None"  # of ``tree.narrow``, where there are broad leaves
    starred: bool  # whether `StarRelaxation` serves the tree

    # Proof: docs/proofs/rejection.md, lemmas 3 and 11.
    def relaxation(self, position: int) -> Layer:
        """Return one of the relaxations, with its own boxes: if it can be and is quick, that of a star."""
        if self.starred and -inf < self.log_sizes[position] < inf:
            hubs = slice(*self.states.start[len(self.tree.hubs) :][:2])
            counted = self._boxes(position), self.states.keys[hubs], self.values[hubs, position]
            star = StarRelaxation.build(self.target, self.tree, self.thresholds[position], *counted)
            if star.quick:
                return star
        return self._walked(position)

    # Proof: docs/proofs/rejection.md, lemma 3.
    def _walked(self, position: int) -> Relaxation:
        """Return one of the relaxations with the states of each node that have a value in it."""
        held, start = self.values[:, position] > 0, self.states.start
        held[start[list(self.tree.roots)]] = True
        nodes = range(len(self.tree.order))
        keys = [self.states.keys[start[i] : start[i + 1]][held[start[i] : start[i + 1]]] for i in nodes]
        slots = [slots_for(node_keys, max(64, 2 << len(node_keys).bit_length())) for node_keys in keys]
        values = self.values[held, position]
        states = States(_starts(keys), np.concatenate(keys), values, _starts(slots), np.concatenate(slots))
        threshold, size = self.thresholds[position], float(self.log_sizes[position])
        narrow = None if self.narrow is None else self.narrow._walked(position)
        return Relaxation(self.tree, threshold, self._boxes(position), states, size, narrow)

    def _boxes(self, position: int) -> Nodes:
        lows, highs = self.target.bounds(self.thresholds[position])
        return self.nodes._replace(lows=lows[self.queries], highs=highs[self.queries])


@dataclass(frozen=True, slots=True)
class TooCostly:
    """A count that was given up."""

    spent: int  # ways visited
    needed: int  # ways that it takes: as foretold from a part of the states, or else twice those visited


class Relaxer:
    """Counts relaxations of one target; what the nodes of different trees share is compiled once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._blocks: dict[tuple[int, ...], NodeForms] = {}
        self._checks: dict[tuple[Tree, Tree | None], tuple[Integers, Integers]] = {}

    def count(self, tree: Tree, threshold: int, budget: int) -> Layer | None:
        """Count R_t alone."""
        counted = self.count_all(tree, [threshold], budget)
        if isinstance(counted, TooCostly) or counted.log_sizes[0] == inf:
            return None
        return counted.relaxation(0)

    # Proof: docs/proofs/rejection.md, lemmas 2 and 3.
    def count_all(
        self, tree: Tree, thresholds: Sequence[int], budget: int, alike: bool = True
    ) -> Counted | TooCostly:
        """Count R_t for ascending thresholds in one pass, if that takes no more than about `budget` ways."""
        # The states and ways are those of the last threshold. A way counts from the first threshold
        # on that none of its gaps exceeds.
        broad = tree.broad if self.target.rows <= MOST_ROWS_OF_LEAVES else ()
        blocks = [self._block(clique) for clique in tree.cliques]
        together = _alike(tree, blocks, broad) if alike else []
        left_out = {leaf for leaves in together for leaf in leaves[1:].tolist()}
        children = [[child for child in offspring if child not in left_out] for offspring in tree.children]
        nodes = self._nodes(tree, blocks, children, thresholds[-1])
        queries = np.concatenate([block.queries for block in blocks])
        levels = np.array([self.target.widened(threshold) for threshold in thresholds], dtype=np.int64)
        rows = np.array([[self.target.rows, 0]], dtype=np.uint64)
        keys: list[Words] = [rows] * len(tree.order)
        slots: list[Integers] = [np.zeros(1, dtype=np.int64)] * len(tree.order)
        for leaf in left_out:
            keys[leaf] = rows[:0]
        spent = 0
        for node, offspring in enumerate(children):
            same: dict[tuple[int, ...], int] = {}  # children with the same parents have the same states
            for which, child in enumerate(offspring):
                like = same.setdefault(tree.parents[child], child)
                if like != child:
                    keys[child], slots[child] = keys[like], slots[like]
                    continue
                keys[child], slots[child], cost = reach(nodes, node, which, keys[node], budget - spent)
                spent += cost
                if spent > budget:
                    return TooCostly(spent, 4 * spent)
        states = States(
            _starts(keys), np.concatenate(keys), np.zeros(0), _starts(slots), np.concatenate(slots)
        )
        spent += len(states.keys) * (len(thresholds) - 1)  # the budget bounds the memory, too
        if spent > budget:
            return TooCostly(spent, 2 * spent)
        values = np.zeros((len(states.keys), len(thresholds)))
        first = np.zeros(len(states.keys), dtype=np.int64)
        for leaves in together:
            left = budget - spent
            weigh = partial(weigh_leaves, nodes, leaves, states, levels, values, first, left)
            parts = max(1, min(PARTS, len(keys[leaves[0]])))
            costs = _shared(weigh, parts, left)
            if min(costs) < 0:
                return self.count_all(tree, thresholds, left, alike=False)
            if len(costs) < parts or max(costs) > left:  # not foretold, or a part ended before its time
                return TooCostly(spent + sum(costs), spent + max(costs) * parts)
            spent += sum(costs)
            budget = max(budget, 2 * spent)  # what was foretold is nearly all
        weighed = left_out | {int(leaves[0]) for leaves in together}
        for node in reversed(range(len(tree.order))):
            if node not in weighed:
                spent += weigh_states(nodes, node, states, levels, values, first, budget - spent)
            if spent > budget:
                return TooCostly(spent, 2 * spent)
        with np.errstate(divide="ignore"):
            logs = np.log(values[states.start[list(tree.roots)]]).sum(axis=0)
        sizes = logs - log(nodes.shrink) * len(tree.order)
        sizes[~(sizes < inf)] = inf  # beyond the doubles
        narrow = None
        if broad:
            counted = self.count_all(tree.narrow, thresholds, budget - spent)
            if isinstance(counted, TooCostly):
                return TooCostly(spent + counted.spent, spent + counted.needed)
            narrow, spent = counted, spent + counted.cost
        whole = len(together) == 1 and len(together[0]) == len(broad)  # a value is that of all leaves
        counts = queries, nodes, states, values, sizes, spent, narrow
        starred = whole and has_own_trials(self.target, tree)
        return Counted(self.target, tree, tuple(thresholds), *counts, starred)

    def _block(self, clique: tuple[int, ...]) -> NodeForms:
        """Compile the queries whose last attribute is the node's and whose others are among its parents."""
        if clique not in self._blocks:
            self._blocks[clique] = forms_of(self.target, clique)
        return self._blocks[clique]

    def _nodes(
        self, tree: Tree, blocks: list[NodeForms], children_of: Sequence[Sequence[int]], threshold: int
    ) -> Nodes:
        parents = np.full((len(tree.order), MOST_PARENTS), -1, dtype=np.int64)
        for node, clique in enumerate(tree.cliques):
            parents[node, : len(clique) - 1] = clique[:-1]
        held = np.concatenate([block.queries for block in blocks])
        lows, highs = self.target.bounds(threshold)
        children = [(node, child) for node, offspring in enumerate(children_of) for child in offspring]
        bases = np.zeros((len(children), MOST_CELLS, 2), dtype=np.uint64)
        steps = np.zeros_like(bases)
        for position, (node, child) in enumerate(children):
            bases[position], steps[position] = _projection(tree, node, child)
        return Nodes(
            np.array(tree.order, dtype=np.int64),
            parents,
            np.array([1 << len(p) for p in tree.parents], dtype=np.int64),
            _starts([block.forms for block in blocks]),
            np.concatenate([block.forms for block in blocks]),
            np.concatenate([[0], np.cumsum(np.concatenate([block.boxes for block in blocks]))]),
            np.concatenate([block.scales for block in blocks]),
            lows[held],
            highs[held],
            np.concatenate([block.constants for block in blocks]),
            _starts(children_of),
            np.array([child for _, child in children], dtype=np.int64),
            bases,
            steps,
            self.target.rows * self.target.answers[held],
            self.target.n,
            2.0 ** -(self.target.rows // 2),
        )

    # Proof: docs/proofs/rejection.md, lemma 6.
    def checks(self, tree: Tree, threshold: int, within: Tree | None = None) -> Checks:
        """List what no clique holds, by the last node that a query looks at."""
        if (tree, within) not in self._checks:
            held = self._held(tree)
            wanted = set(range(len(self.target.tables))) if within is None else self._held(within)
            position = {attribute: node for node, attribute in enumerate(tree.order)}
            by_node: list[list[int]] = [[] for _ in tree.order]
            for j, table in enumerate(self.target.tables):
                if j in wanted and j not in held:
                    by_node[max(position[a] for a in table.attributes)].append(j)
            listed = np.array(list(chain.from_iterable(by_node)), dtype=np.int64)
            self._checks[tree, within] = _starts(by_node), listed
        starts, queries = self._checks[tree, within]
        lows, highs = self.target.bounds(threshold)
        return Checks(starts, queries, lows[queries], highs[queries])

    def _held(self, tree: Tree) -> set[int]:
        """The queries that lie in a clique."""
        return {j for clique in tree.cliques for j in self._block(clique).queries.tolist()}


def _alike(tree: Tree, blocks: Sequence[NodeForms], broad: Sequence[int]) -> list[Integers]:
    """Return broad leaves with the same parents and forms, all of zeros and ones, together."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for leaf in broad:
        forms = blocks[leaf].forms
        if len(forms) and ((forms == 0) | (forms == 1)).all():
            groups.setdefault((tree.parents[leaf], forms.tobytes()), []).append(leaf)
    return [np.array(leaves, dtype=np.int64) for leaves in groups.values()]


def _shared(weigh: Callable[[int, int], int], parts: int, budget: int) -> list[int]:
    """Do a work in threads; return what each part costs, or the first where all would pass a budget."""
    costs = [weigh(0, parts)]
    if 0 <= costs[0] * parts <= budget:
        costs += in_threads(lambda part: weigh(part, parts), range(1, parts))
    return costs


def _projection(tree: Tree, node: int, child: int) -> tuple[Words, Words]:
    """Return what a row in each cell adds to the child's packed state, and what a one of the node changes."""
    bits = {parent: bit for bit, parent in enumerate((*tree.parents[node], node))}
    cells = 1 << len(tree.parents[node])
    packed = []
    for setting in range(2 * cells):
        cell = sum((setting >> bits[parent] & 1) << q for q, parent in enumerate(tree.parents[child]))
        packed.append([1 << 8 * cell & _WORD, 1 << 8 * cell >> 64])
    bases = np.zeros((MOST_CELLS, 2), dtype=np.uint64)
    steps = np.zeros_like(bases)
    bases[:cells] = packed[:cells]
    steps[:cells] = np.array(packed[cells:], dtype=np.uint64) - bases[:cells]  # wraps, as the kernels do
    return bases, steps


def _starts(parts: Sequence[Sequence[object] | np.ndarray]) -> Integers:
    return np.array([0, *np.cumsum([len(part) for part in parts])], dtype=np.int64)
