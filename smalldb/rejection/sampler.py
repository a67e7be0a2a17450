"""The sampler: trials until a candidate is kept, with layers that are refined while the trials go on."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from queries import Workload
from queries.arrays import Integers, Words
from smalldb.counting.scores import rate_of
from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.kernels import ktree
from smalldb.rejection.building import Builder, Tick
from smalldb.rejection.factored import Factored
from smalldb.rejection.flat import Flat
from smalldb.rejection.layers import LANES, Mixture
from smalldb.rejection.target import Bits, Target, uniform_words

FIRST = 8_000_000  # ways that are visited before the first trial: a second
BATCH = 5_000_000  # work of one call of the kernel: a fraction of a second
FEW, MANY = 1 << 5, 1 << 17  # trials that are made at first, and at most, at a time
WORDS, MOST_WORDS = 1 << 6, 1 << 14  # drawn from the source at a time, for a lane
ORDERED = 1 << 12  # after twice as many, trials are made layer by layer: some of them in vain


@dataclass(slots=True, eq=False, repr=False)
class _Lane:
    """Trials of some layers, made one after the other with words of their own.

    Attributes
    ----------
    target, mixture, layers
        What all lanes have: the layer of each trial.
    order, turn
        The trials of this lane as they are made, and how many were made.
    tables, leaves
        The mixture's, with room that no other lane writes to; slots are those of its layers.
    columns, shares, ways
        What the last trial wrote.
    words, start
        Uniform words, and the first one that was not read.
    work
        What the last call of the kernel cost.
    """

    target: Target
    mixture: Mixture
    layers: Integers
    order: Integers
    tables: ktree.ShareTables
    leaves: ktree.Leaves
    columns: Words
    shares: Words
    ways: Integers
    words: Words
    turn: int = 0
    start: int = 0
    work: int = 0

    @classmethod
    def several(
        cls, target: Target, mixture: Mixture, layers: Integers, order: Integers, count: int
    ) -> list["_Lane"]:
        """Return so many lanes for trials of these layers, in this order; without those that have none."""
        blank = np.zeros(target.attributes, dtype=np.uint64)
        rooms = mixture.rooms if count > 1 else [max(mixture.rooms, key=_left)]
        return [
            cls(
                target,
                mixture,
                layers,
                mine,
                *rooms[lane],
                blank.copy(),
                blank.copy(),
                blank.astype(np.int64),
                blank[:0],
            )
            for lane in range(count)
            if len(mine := order[layers[order] % count == lane])
        ]

    def go_on(self, end: int) -> int:
        """Make trials below `end` until the kernel stops; return its status."""
        status, self.turn, self.start, self.work = ktree.trials(
            self.mixture.nodes,
            self.mixture.states,
            self.target.queries,
            self.mixture.checks,
            self.tables,
            self.leaves,
            len(self.mixture.sums) - 1,
            self.layers,
            self.order,
            self.turn,
            end,
            self.words,
            self.start,
            self.target.everyone,
            self.columns,
            self.shares,
            self.ways,
            BATCH,
        )
        return status

    def add(self, source: BitSource) -> None:
        """Draw further words: enough for most trials left, or as many again as the present one has had."""
        left, had = (len(self.order) - self.turn) * self.target.attributes // 2, self.words[self.start :]
        fresh = uniform_words(source, max(min(max(WORDS, left), MOST_WORDS), len(had)))
        self.words, self.start = np.concatenate([had, fresh]), 0


def _left(room: tuple[ktree.ShareTables, ktree.Leaves]) -> int:
    """Return how many entries a lane may still write."""
    tables, _ = room
    return len(tables.sums) - int(tables.used[0])


class Sampler:
    """SmallDB over ordered rows, drawn exactly by rejection.

    Computed from the data: confidential as a whole.

    Attributes
    ----------
    trials, work
        Trials made so far, and what they cost, in ways visited.
    """

    def __init__(self, target: Target, rate: Fraction, tick: Tick = bool) -> None:
        self.trials = self.work = 0
        self._tick = tick
        self._target, self._rate = target, rate
        self._builder = Builder(target, rate)
        self._refine(FIRST)

    def __repr__(self) -> str:
        return "<Sampler: computed from the data>"

    # Proof: docs/proofs/rejection.md, lemmas 6 and 7.
    def draw(self, source: BitSource) -> tuple[Bits, int]:
        """Draw m ordered rows, shape (m, d), and their score: probability proportional to exp(-rate score).

        Each trial keeps a candidate with a probability proportional to that, given all trials before it, so
        the first one kept has that law, whatever was refined between trials (`docs/proofs/rejection.md`).
        """
        kept, made, worked = None, 0, 0
        while kept is None:
            left = self._again - self.work
            if left < 0 and not self._finished:
                self._refine(self.work)
                left = self._again - self.work
            ordered = made >= 2 * ORDERED
            trials = max(FEW, min(made // 2, MANY) if ordered else min(made, ORDERED))
            if not self._finished and worked:
                trials = max(FEW, min(trials, 1 + left * made // worked))
            worked -= self.work
            kept = self._first_kept(trials, ordered, source)
            made += trials
            worked += self.work
        return kept

    # Proof: docs/proofs/rejection.md, lemma 7.
    def _first_kept(self, trials: int, ordered: bool, source: BitSource) -> tuple[Bits, int] | None:
        """Make so many trials; return the candidate of the first one that is kept.

        If `ordered`, they are made layer by layer, so that what they look up is at hand, and in threads. Once
        one is kept, no later one is made.
        """
        target, mixture = self._target, self._mixture
        layers = mixture.choose(uniform_words(source, trials))
        order = np.argsort(layers, kind="stable") if ordered else np.arange(trials)
        lanes = _Lane.several(target, mixture, layers, order, LANES if ordered else 1)
        kept, end = None, trials
        with ThreadPoolExecutor(os.cpu_count() if ordered else 1) as pool:
            apply = pool.map if len(lanes) > 1 else map
            while lanes:
                found = list(apply(partial(_Lane.go_on, end=end), lanes))
                for lane, status in zip(lanes, found, strict=True):
                    self._tick()
                    self.work += lane.work
                    if status == ktree.IMPOSSIBLE:
                        raise ArithmeticError(
                            "a trial met a state or shares that cannot be: this must not happen"
                        )
                    if status == ktree.OUT_OF_WORDS:
                        lane.add(source)
                    if status == ktree.SURVIVED:
                        place, lane.turn = int(lane.order[lane.turn]), lane.turn + 1
                        score = target.score(lane.columns)
                        factor = mixture.factor(layers[place], score, lane.shares, lane.ways)
                        gap = score - mixture.envelope.lowest
                        if place < end and bernoulli_exp(self._rate * gap, source, factor):
                            kept, end = (target.bits(lane.columns), score), place
                lanes = [lane for lane in lanes if (lane.order[lane.turn :] < end).any()]
        self.trials += trials if kept is None else end + 1
        return kept

    def _refine(self, budget: int) -> None:
        self._builder.refine(budget, self._tick)
        self._mixture, self._finished = self._builder.mixture(), self._builder.done
        self._again = max(self._builder.again, 2 * self.work)


def tuple_sampler(
    workload: Workload,
    answers: npt.NDArray[np.int64],
    n: int,
    rows: int,
    epsilon: Fraction,
    tick: Tick = bool,
    n_max: int | None = None,
) -> Sampler | Factored | Flat:
    """Make ready to draw for data of n rows with these answers (D times the sums of the queries).

    At most 64 rows, n rows D below 2^62, no structural zeros, and, unless each query looks at one attribute,
    at most 2000 entries of a candidate and epsilon n / (2 rows) at most 10^6 (the caller's guard). `tick` is
    called now and then. `n_max`, where n is private: see `counting.scores.largest_score`.
    """
    target = Target.build(workload, answers, n, rows, n_max)
    rate = rate_of(epsilon, rows, workload.denominator)
    if rate * target.largest_score <= 1:
        return Flat(target, rate)
    if all(len(table.attributes) == 1 for table in target.tables):
        return Factored(target, rate)
    return Sampler(target, rate, tick)
