"""Building layers as far as they pay: which thresholds, and how wide a tree for each, and which.

All budgets are in ways visited, so that the same data give the same layers on every machine. What is built
may depend on the data, and on how many trials were rejected: the law does not depend on it.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import exp, expm1, floor, inf, log
from typing import TypeAlias

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.exact.bits import BitSource, SeededBits
from smalldb.exact.integers import uniform_below
from smalldb.kernels.nodes import MOST_PARENTS, WEIGHTS
from smalldb.rejection.layers import Envelope, Mixture
from smalldb.rejection.relaxation import Counted, Layer, Relaxer, TooCostly
from smalldb.rejection.target import Target
from smalldb.rejection.tree import BROAD, Tree, scattered, star

_OVERHEAD = 1000  # what a call of the kernels for one node costs, in ways
WIDEST = MOST_PARENTS  # parents of a node
STEP = Fraction(4, 5)  # nats between thresholds
TAIL = log(1e-4)  # of the mass, that the last layer may have
WORTH = log(1e-3)  # of the mass, that a layer must have to be refined
WORTH_STAR = log(0.02)  # the same for stars, whose counts cost more
ROUGH = log(0.2)  # of the largest layer's, while the tree is being chosen
ROUGH_STAR = log(0.05)  # the same for stars, of which more thresholds cost next to nothing
FINE_STAR = log(0.003)  # of the mass: layers below others that are counted anyway
LEAST_SHARE = 0.1  # of the mass: for less, no part of a costly count is made
OVERSHOOT = 1.08  # the threshold that a tree is chosen for, over the mode of the mass at the width below
GAIN = 0.2  # in ln: so much smaller another tree must make its layer (another star: the mass) to be taken
STAR = 0.8  # the gains of a star, over those of a greedy tree, from which on the star is taken
SEARCH = 12  # the part of a budget that goes to the choice of a tree: one in so many
MOST_STATES = 8_000_000  # of all layers: 350 MB
LAYER = 8 * MOST_STATES  # ways that one count may visit
ROOM = 1 << 23  # entries of the tables of ways: 200 MB
UNLIMITED = 1 << 62
Tick: TypeAlias = Callable[[], object]  # called now and then, for a clock


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
                values = answers(tuple(target.on_cells(j, (a, b)).tolist()))
                within &= (lows[j] <= values) & (values <= highs[j])
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
            counted = relaxer.count_all(candidate, [threshold], budget - spent)
            if isinstance(counted, TooCostly):
                break
            spent += counted.cost + _OVERHEAD * len(tree.order)
            size = float(counted.log_sizes[0])
            if size < best:
                tree, best, idle = candidate, size, 0
        candidate = _moved(tree, width, steering)
        if candidate in tried:
            candidate = None
        elif candidate is not None:
            tried.add(candidate)
    return tree, spent


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


class Builder:
    """The layers of one target, which are made narrower step by step."""

    # `again` is the work of trials from which on it pays to refine further

    def __init__(self, target: Target, rate: Fraction) -> None:
        self.spent = self.again = 0
        self._target, self._rate = target, rate
        self._relaxer = Relaxer(target)
        self._lowest = target.least_score()
        self._layers: list[Layer] = []
        self._width, self._tree = 0, scattered(target.attributes)
        self._starred = False  # the present tree is a star
        self._before = inf  # the mass when it was chosen
        self._settled = True  # no other tree of this width cuts the largest layer by much
        self._refined: set[int] = set()
        self._cover()

    @property
    def done(self) -> bool:
        """Nothing is left to refine."""
        widest = min(WIDEST, self._target.attributes - 1)
        return self._width == widest and self._settled and not self._next()

    def mixture(self) -> Mixture:
        """Return the present layers, ready for trials."""
        envelope = Envelope.build(self._rate, self._lowest, [layer.threshold for layer in self._layers])
        checks = [self._relaxer.checks(layer.tree, layer.threshold) for layer in self._layers]
        again = [
            self._relaxer.checks(layer.tree.narrow, layer.threshold, layer.tree) for layer in self._layers
        ]
        return Mixture.build(envelope, self._layers, checks, again, self._target.candidates, ROOM)

    def refine(self, budget: int, tick: Tick = bool) -> None:
        """Count the layers that matter most with wider trees, for about so many ways."""
        end = self.spent + budget
        while self.spent < end and not self.done:
            tick()
            positions = self._next()
            if not positions:
                self._choose((end - self.spent) // SEARCH)
            elif not self._count(positions, budget, end):
                return
        self.again = self.spent

    def _count(self, positions: list[int], budget: int, end: int) -> bool:
        """Count some layers; of a star, where that costs too much, the lower ones with half of the mass."""
        # if all that is put off, return False: `again` is then the work from which on the first of
        # it pays
        later: list[int] = []
        while positions and self.spent < end:
            thresholds = [self._layers[position].threshold for position in positions]
            share = self._share(positions) if self._starred else 1.0
            if later and share < LEAST_SHARE:
                break
            allowed = min(end - self.spent, LAYER, int(share * budget))
            counted = self._relaxer.count_all(self._tree, thresholds, allowed)
            if not isinstance(counted, TooCostly):
                self.spent += counted.cost
                self._refined.update(thresholds)
                self._replace(positions, counted)
                self._cover()
                return True
            self.spent += counted.spent
            if counted.needed >= LAYER:  # never: the lower ones may do
                self._refined.update(thresholds[len(thresholds) // 2 :])
                positions = positions[: len(positions) // 2]
                continue
            later.append(int(counted.needed / share))
            positions = self._lower(positions) if self._starred else []
        self.again = max(self.spent, min(later, default=0))
        return not later and self.spent < end

    def _lower(self, positions: list[int]) -> list[int]:
        """Return the lowest of some layers, ascending, that hold nearly half of their mass."""
        masses = self._masses()
        held = np.cumsum(np.exp([masses[position] - masses[positions[0]] for position in positions]))
        return positions[: int(np.searchsorted(held, held[-1] / 2))]

    def _replace(self, positions: list[int], counted: Counted) -> None:
        """Put what was counted in the place of layers that are larger; drop layers that are empty."""
        for position, size in enumerate(counted.log_sizes):
            old = self._layers[positions[position]]
            if size < old.log_size:
                new = counted.relaxation(position)
                states = sum(layer.state_count for layer in self._layers)
                if states - old.state_count + new.state_count <= MOST_STATES:
                    self._layers[positions[position]] = new
        empty = [i for i, layer in enumerate(self._layers) if layer.log_size == -inf]
        if empty:
            self._lowest = self._layers[empty[-1]].threshold + 1
            del self._layers[: empty[-1] + 1]

    def _cover(self) -> None:
        """Add layers until the last one, everything, hardly matters or has no scores of its own."""
        step = max(1, floor(STEP / self._rate))
        while self._tail() > TAIL:
            threshold = (self._layers[-1].threshold if self._layers else self._lowest - 1) + step
            if self._layers and threshold >= self._target.largest_score:
                return
            layer = self._relaxer.count(scattered(self._target.attributes), threshold, UNLIMITED)
            assert layer is not None
            if layer.log_size > -inf:
                self._layers.append(layer)
            else:
                self._lowest = threshold + 1

    def _next(self) -> list[int]:
        """Return the layers of most mass, ascending, of those not yet counted with the present tree."""
        # What a count costs grows with its last threshold, so layers of little mass come later, if
        # they pay. Of a star, they come later too than another star for the largest layer, once
        # that one is counted.
        masses = self._masses()
        open_ = [i for i, layer in enumerate(self._layers) if layer.threshold not in self._refined]
        most, mode = max((masses[i] for i in open_), default=-inf), self._mode()
        if self._starred and not self._settled and mode not in open_:
            return []
        whole = np.logaddexp.reduce(masses)
        worth = WORTH_STAR if self._starred else WORTH
        if most < (whole + worth if self._settled else masses[mode] + ROUGH):
            return []
        if not self._starred:
            return [i for i in open_ if masses[i] >= most + ROUGH]
        last = max(i for i in open_ if masses[i] >= most + (ROUGH_STAR if self._settled else ROUGH))
        return [i for i in open_ if i <= last and masses[i] >= whole + FINE_STAR]

    def _choose(self, budget: int) -> None:
        """Choose another tree for the scores at which the candidates seem to be: as wide, or else wider."""
        # A tree cuts the layers that it was chosen for most, so the mass moves to others. Trees are
        # chosen until one for the largest layer hardly cuts it; then all layers are counted with
        # the last of them.
        mode = self._layers[self._mode()]
        if self._settled:
            self._width += 1
            self._take(self._searched(floor(mode.threshold * OVERSHOOT), budget))
            self._settled = self._width == 1  # hardly worth the search
            return
        if self._starred:
            hardly, tree = self._total() > self._before - GAIN, self._tree
            if not hardly:
                tree = self._searched(mode.threshold, budget)
        else:
            tree = self._searched(mode.threshold, budget)
            counted = self._relaxer.count_all(tree, [mode.threshold], LAYER)
            self.spent += counted.spent if isinstance(counted, TooCostly) else counted.cost
            hardly = isinstance(counted, TooCostly) or counted.log_sizes[0] > mode.log_size - GAIN
        self._settled = hardly or tree == self._tree
        if not self._settled:
            self._take(tree)

    def _searched(self, threshold: int, budget: int) -> Tree:
        """Return a tree of the present width whose relaxation at a threshold is small."""
        gains = pair_gains(self._target, threshold)
        first = greedy(gains, self._width)
        if self._width == 1:
            return first
        width = max(BROAD, self._width)
        star = richest_star(gains, width, STAR * held_gain(gains, greedy(gains, width)))
        self._starred = star is not None and self._width == width
        if star is not None:  # a narrower tree only shows where the candidates are: no search for it
            return star if self._starred else first
        tree, spent = improve(self._relaxer, first, self._width, threshold, budget)
        self.spent += spent
        return tree

    def _take(self, tree: Tree) -> None:
        self._tree, self._before = tree, self._total()
        self._refined.clear()

    def _masses(self) -> list[float]:
        """Return log((Q_i - Q_{i+1}) |R_i|) of each layer, nearly."""
        rate, masses, low = float(self._rate), [], self._lowest
        for layer in self._layers:
            drop = rate * (layer.threshold + 1 - low)
            masses.append(layer.log_size - rate * (low - self._lowest) + log(-expm1(-drop)))
            low = layer.threshold + 1
        return masses

    def _mode(self) -> int:
        """Return the position of the layer of most mass."""
        return int(np.argmax(self._masses()))

    def _total(self) -> float:
        """Return the logarithm of the mass of all layers but the last, relative to a score of 0."""
        return float(np.logaddexp.reduce(self._masses())) - float(self._rate) * self._lowest

    def _tail(self) -> float:
        """Return the mass of the last layer, everything, over that of all others, in nats."""
        if not self._layers:
            return inf
        beyond = float(self._rate) * (self._layers[-1].threshold + 1 - self._lowest)
        everything = log(2) * self._target.attributes * self._target.rows
        return float(everything - beyond - np.logaddexp.reduce(self._masses()))

    def _share(self, positions: list[int]) -> float:
        """Return the mass of some layers over that of all."""
        masses = self._masses()
        return exp(np.logaddexp.reduce([masses[i] for i in positions]) - np.logaddexp.reduce(masses))
