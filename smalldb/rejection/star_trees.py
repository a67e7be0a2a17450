"""Relaxations by a star, for quick trials: one table of all states of the hubs, and the columns of leaves.

The hubs of a star are the parents of all its other attributes, its leaves. With h the histogram of the rows
over the cells of the hubs, |R_t| is the sum over h of m! / prod_x h_x! times the columns of each leaf.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb, log, prod

import numpy as np
import numpy.typing as npt

from queries.arrays import Floats, Integers, Words
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_permutation
from smalldb.kernels.bitwise import CELL_MASK
from smalldb.kernels.checks import CONJUNCTION
from smalldb.kernels.leaves import fitting_each
from smalldb.kernels.nodes import WEIGHTS, Nodes
from smalldb.kernels.stars import MOST_ROWS, SIZE, Star
from smalldb.kernels.states import States
from smalldb.kernels.ways import SHARE
from smalldb.rejection.target import Bits, Target
from smalldb.rejection.tree import Tree

MOST_DRAWS = 24  # of a leaf's column until it fits
STRATA = 2  # states that stand for all, each for as much of the weight


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StarRelaxation:
    """R_t for one star and one threshold."""

    # tree, threshold: what it is the relaxation for
    tree: Tree
    threshold: int
    nodes: Nodes  # with the boxes of the threshold, to count the columns of a leaf
    # shape (states, cells): of the rows over the cells of the hubs, where there is a way to go on
    histograms: npt.NDArray[np.uint8]
    log_size: float  # the natural logarithm of |R_t|, nearly
    size: Fraction  # |R_t| as computed: the number that each draw is made against
    star: Star  # for the kernel

    narrow = None  # no table of narrow leaves is read

    @property
    def states(self) -> States:
        """The states of the nodes, as `Relaxation` has them: none, for those of the hubs are in one table."""
        none = np.zeros(len(self.tree.order) + 1, dtype=np.int64)
        return States(none, np.zeros((0, 2), dtype=np.uint64), np.zeros(0), none, none[:0])

    @property
    def state_count(self) -> int:
        """How many states the hubs have."""
        return len(self.histograms)

    # Proof: docs/proofs/rejection.md, lemma 11.
    @classmethod
    def build(
        cls, target: Target, tree: Tree, threshold: int, nodes: Nodes, keys: Words, values: Floats
    ) -> "StarRelaxation":
        """Weigh the states of the hubs."""
        lows, highs = target.bounds(threshold)
        positions = np.arange(1 << len(tree.hubs), dtype=np.uint64)
        states = (keys[:, positions // 8] >> positions % 8 * 8 & CELL_MASK).astype(np.int64)
        held = values > 0
        hubs = [tree.order[hub] for hub in tree.hubs]
        for j, table in enumerate(target.tables):
            if table.attributes and set(table.attributes) <= set(hubs):
                answers = states @ target.on_cells(j, hubs)
                held &= (lows[j] <= answers) & (answers <= highs[j])
        states, values = states[held], values[held]
        rows = np.cumsum(states, axis=1)
        weights = values * nodes.shrink ** len(hubs) * WEIGHTS[rows, states].prod(axis=1)
        total = float(weights.sum())
        # a quotient may underflow; its state is drawn now and then all the same
        shares = np.maximum(1, np.ceil(weights / total * SHARE)).astype(np.uint64)
        if int(shares.sum()) >= 1 << 63:
            raise ArithmeticError("the shares of the states exceed their whole: this must not happen")
        return cls(
            tree,
            threshold,
            nodes,
            states.astype(np.uint8),
            log(total) - len(tree.order) * log(nodes.shrink),
            Fraction(total) / Fraction(nodes.shrink) ** len(tree.order),
            _arrays(target, tree, (lows, highs), np.cumsum(shares), _columns(states)),
        )

    # Proof: docs/proofs/rejection.md, lemma 11.
    def chosen(self, state: int) -> tuple[list[int], list[int]]:
        """Return shares out of 2^63 and numbers of columns, whose quotient is the density of a proposal."""
        before = int(self.star.sums[state - 1]) if state else 0
        counts = self.histograms[state].tolist()
        ways = [prod(comb(sum(counts[: x + 1]), count) for x, count in enumerate(counts))]
        return [int(self.star.sums[state]) - before], ways + self.fitting(state).tolist()

    def fitting(self, state: int) -> Integers:
        """Return how many columns each leaf can have in a state, exactly."""
        return fitting_each(self.nodes, len(self.tree.hubs), self.histograms[state].astype(np.int64))

    @property
    def quick(self) -> bool:
        """Whether columns of leaves fit soon: after `MOST_DRAWS` in the mean over some states, by weight."""
        sums, drawn = self.star.sums, self.star.leaves[:, SIZE].astype(np.int64)
        positions = [int(sums[-1]) * (2 * stratum + 1) // (2 * STRATA) for stratum in range(STRATA)]
        states = np.searchsorted(sums, np.array(positions, dtype=np.uint64), side="right")
        means = np.mean([drawn / self.fitting(int(state)) for state in states], axis=0)
        return bool(means.max() <= MOST_DRAWS)


# Proof: docs/proofs/rejection.md, lemma 11.
def has_own_trials(target: Target, tree: Tree) -> bool:
    """Whether `StarRelaxation` serves a tree: a star of few rows, whose leaves are in conjunctions alone."""
    hubs = {tree.order[hub] for hub in tree.hubs}
    return (
        bool(hubs)
        and target.rows <= MOST_ROWS
        and all(
            kind == CONJUNCTION or hubs.issuperset(table.attributes)
            for kind, table in zip(target.queries.kinds, target.tables, strict=True)
        )
    )


# Proof: docs/proofs/rejection.md, lemma 11.
def in_any_order(bits: Bits, source: BitSource) -> Bits:
    """Put the rows of a candidate in an order of which all are equally likely."""
    return bits[uniform_permutation(len(bits), source)]


def _columns(states: Integers) -> Words:
    """Return the columns of the hubs, shape (states, hubs): the rows are sorted by their cells."""
    ends = np.cumsum(states, axis=1).astype(np.uint64)
    one, starts = np.uint64(1), ends - states.astype(np.uint64)
    masks = (one << ends) - (one << starts)
    cells = np.arange(states.shape[1])
    hubs = range(states.shape[1].bit_length() - 1)
    return np.stack([np.bitwise_or.reduce(masks[:, cells >> hub & 1 > 0], axis=1) for hub in hubs], axis=1)


def _arrays(
    target: Target, tree: Tree, bounds: tuple[Integers, Integers], sums: Words, hub_columns: Words
) -> Star:
    """Write the leaves and conjunctions as the kernel reads them."""
    low_bits = (target.rows + 1) // 2
    high_bits = target.rows - low_bits
    (low_words, low_starts), (high_words, high_starts) = _words(low_bits), _words(high_bits)
    leaves: list[list[int]] = []
    ways: list[tuple[int, int, int]] = []  # `LOWS`, `LOW_START`, `HIGH_START`
    way_sums: list[int] = []
    conjunctions: list[list[int]] = []
    literals: list[tuple[int, int]] = []
    queries = _by_leaf(target, tree)
    for leaf, (alone, fits, checks) in queries.items():
        first, size = len(ways), 0
        held = np.arange(target.rows + 1)  # numbers of ones
        for j in alone:
            answers = target.on_cells(j, [leaf]) @ np.stack([target.rows - held, held])
            held = held[(bounds[0][j] <= answers) & (answers <= bounds[1][j])]
        for high in range(high_bits + 1):
            start, end = (
                low_starts[min(max(ones - high, 0), low_bits + 1)]
                for ones in (int(held[0]), int(held[-1]) + 1)
            )
            if start < end:
                size += (end - start) * (high_starts[high + 1] - high_starts[high])
                ways.append((end - start, start, high_starts[high]))
                way_sums.append(size)
        positions = []
        for some in (fits, checks):
            positions.append(len(conjunctions))
            for j in some:
                row, others = _conjunction(target, j, leaf, bounds)
                conjunctions.append([*row, len(literals), len(literals) + len(others)])
                literals += others
        leaves.append([leaf, size, (1 << 32) % size, first, len(ways), *positions, len(conjunctions)])
    return Star(
        sums,
        np.array([tree.order[hub] for hub in tree.hubs], dtype=np.uint64),
        hub_columns,
        np.array(leaves, dtype=np.uint64),
        np.array(ways, dtype=np.uint64),
        np.array(way_sums, dtype=np.uint64),
        low_words,
        high_words.astype(np.uint64) << np.uint64(low_bits),
        np.array(conjunctions, dtype=np.uint64).reshape(-1, 7),
        np.array(literals, dtype=np.uint64).reshape(-1, 2),
        target.everyone,
    )


def _by_leaf(target: Target, tree: Tree) -> dict[int, tuple[list[int], list[int], list[int]]]:
    """Return the queries that end with each leaf: on it alone, with hubs, and with leaves before it."""
    position = {attribute: node for node, attribute in enumerate(tree.order)}
    first = len(tree.hubs)
    queries: dict[int, tuple[list[int], list[int], list[int]]] = {a: ([], [], []) for a in tree.order[first:]}
    for j, table in enumerate(target.tables):
        *others, last = sorted(position[a] for a in table.attributes) or [-1]  # a constant looks at none
        if last >= first:
            queries[tree.order[last]][0 if not others else 1 if others[-1] < first else 2].append(j)
    return queries


def _conjunction(
    target: Target, j: int, leaf: int, bounds: tuple[Integers, Integers]
) -> tuple[list[int], Sequence[tuple[int, int]]]:
    """Return a row of `Star.conjunctions` up to its span, and the literals beyond the other one."""
    queries = target.queries
    factor, offset = int(queries.factors[j]), int(queries.offsets[j])
    low, high = (int(bound[j]) - offset for bound in bounds)
    if factor < 0:
        factor, low, high = -factor, -high, -low
    least, most = max(0, -(-low // factor)), min(target.rows, high // factor)
    if least > most:  # no number of rows is within the threshold, so that none is allowed
        least = most = target.rows + 1
    positions = range(queries.position_start[j], queries.position_start[j + 1])
    flips = {int(queries.positions[position]): int(queries.flips[position]) for position in positions}
    leaf_flip = flips.pop(leaf)
    (other, flip), *others = flips.items()
    return [leaf_flip, other, flip, least, most - least], others


@cache
def _words(bits: int) -> tuple[npt.NDArray[np.uint32], list[int]]:
    """Return all words of so many bits by their number of ones, and where those of each number start."""
    words = np.arange(1 << bits, dtype=np.uint32)
    starts = np.cumsum([0, *(comb(bits, ones) for ones in range(bits + 1))]).tolist()
    return words[np.argsort(np.bitwise_count(words), kind="stable")], starts
