"""The sampler: trials until a candidate is kept, with layers that are refined while the trials go on."""

from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from queries import Workload
from smalldb.counting.scores import rate_of
from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.kernels.trials import IMPOSSIBLE, OUT_OF_WORDS, SURVIVED
from smalldb.rejection.building import Builder, Tick
from smalldb.rejection.factored import Factored
from smalldb.rejection.flat import Flat
from smalldb.rejection.lanes import Lane
from smalldb.rejection.layers import LANES
from smalldb.rejection.star_trees import in_any_order
from smalldb.rejection.target import Bits, Target, uniform_words
from smalldb.rejection.threads import in_threads

FIRST = 8_000_000  # ways that are visited before the first trial: a second
FEW, MANY = 1 << 5, 1 << 17  # trials that are made at first, and at most, at a time
ALONE = 1 << 12  # up to so many trials are made in one lane


class Sampler:
    """SmallDB over ordered rows, drawn exactly by rejection; confidential."""

    # `work` is what the trials cost, in ways visited; `tick` is called now and then, for a clock

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
        """Draw m ordered rows, shape (m, d), and their score, of probability as exp(-rate score)."""
        # each trial keeps a candidate with a probability proportional to that, given all trials
        # before it, so the first one kept has that law, whatever was refined between trials
        # (`docs/proofs/rejection.md`)
        kept, made, before = None, 0, self.work
        while kept is None:
            if self.work > self._again and not self._finished:
                self._refine(self.work)
            trials = max(FEW, min(made // 2, MANY))  # some of them are in vain
            if self.work > before and not self._finished:  # up to the work that refines layers
                allowed = 1 + (self._again - self.work) * made // (self.work - before)
                trials = max(FEW, min(trials, allowed))
            kept = self._first_kept(trials, source)
            made += trials
        return kept

    # Proof: docs/proofs/rejection.md, lemma 7.
    def _first_kept(self, trials: int, source: BitSource) -> tuple[Bits, int] | None:
        """Make so many trials; return the candidate of the first one that is kept."""
        # They are made layer by layer, so that what they look up is at hand, and if they are many,
        # in threads. Once one is kept, no later one is made.
        layers = self._mixture.choose(uniform_words(source, trials))
        small = np.min_scalar_type(len(self._mixture.sums))  # small integers are sorted several times as fast
        order = np.argsort(layers.astype(small), kind="stable")
        count = LANES if trials > ALONE else 1
        lanes = Lane.several(self._target, self._mixture, layers, order, count)
        kept, end = None, trials
        while lanes:
            in_threads(partial(Lane.go_on, end=end), lanes)
            for lane in lanes:
                self._tick()
                self.work += lane.work
                if lane.status == IMPOSSIBLE:
                    raise ArithmeticError(
                        "a trial met a state or shares that cannot be: this must not happen"
                    )
                if lane.status == OUT_OF_WORDS:
                    lane.add(source)
                if lane.status == SURVIVED:
                    if lane.position < end and (found := self._tossed(lane, source)):
                        kept, end = found, lane.position
                    lane.turn += 1
            lanes = [lane for lane in lanes if lane.left(end)]
        self.trials += trials if kept is None else end + 1
        return kept

    # Proof: docs/proofs/rejection.md, lemma 6.
    def _tossed(self, lane: Lane, source: BitSource) -> tuple[Bits, int] | None:
        """Toss the coin of a lane's survivor; return the candidate if it is kept."""
        score = self._target.score(lane.columns)
        factor = self._mixture.factor(lane.layers[lane.position], score, *lane.chosen())
        if not bernoulli_exp(self._rate * (score - self._mixture.envelope.lowest), source, factor):
            return None
        bits = self._target.bits(lane.columns)
        return (bits if lane.star is None else in_any_order(bits, source)), score

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
    """Make ready to draw ordered rows."""
    target = Target.build(workload, answers, n, rows, n_max)
    rate = rate_of(epsilon, rows, workload.denominator)
    if rate * target.largest_score <= 1:
        return Flat(target, rate)
    if all(len(table.attributes) == 1 for table in target.tables):
        return Factored(target, rate)
    return Sampler(target, rate, tick)
