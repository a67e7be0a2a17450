"""The sampler: trials until a candidate is kept, with layers that are refined while the trials go on."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from queries import Workload
from smalldb.counting.scores import rate_of
from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.kernels import ktree
from smalldb.rejection.building import Builder, Tick
from smalldb.rejection.factored import Factored
from smalldb.rejection.flat import Flat
from smalldb.rejection.target import Bits, Target, uniform_words

FIRST = 8_000_000  # ways that are visited before the first trial: a second
BATCH = 5_000_000  # work of one call of the kernel: a fraction of a second
FEW, MANY = 1 << 8, 1 << 13  # words drawn from the source at first, and at most, at a time


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
        target = self._target
        columns = np.zeros(target.attributes, dtype=np.uint64)
        shares = np.zeros(target.attributes, dtype=np.uint64)
        ways = np.zeros(target.attributes, dtype=np.int64)
        words, start, fresh = np.zeros(0, dtype=np.uint64), 0, FEW
        while True:
            mixture = self._mixture
            status, layer, start, made, work = ktree.trials(
                mixture.nodes,
                mixture.states,
                target.queries,
                mixture.checks,
                mixture.tables,
                mixture.leaves,
                mixture.sums,
                words,
                start,
                target.everyone,
                columns,
                shares,
                ways,
                BATCH,
            )
            if status == ktree.IMPOSSIBLE:
                raise ArithmeticError("a trial met a state or shares that cannot be: this must not happen")
            self._tick()
            self.trials += made
            self.work += work
            if status == ktree.OUT_OF_WORDS or len(words) - start <= target.attributes:
                words, start = np.concatenate([words[start:], uniform_words(source, fresh)]), 0
                fresh = min(2 * fresh, MANY)
            if status == ktree.SURVIVED:
                score = target.score(columns)
                factor = mixture.factor(layer, score, shares, ways)
                if bernoulli_exp(self._rate * (score - mixture.envelope.lowest), source, factor):
                    return target.bits(columns), score
            # never in the midst of a trial: whether it is made again must not depend on its own words
            if status != ktree.OUT_OF_WORDS and self.work > self._builder.again and not self._finished:
                self._refine(self.work)

    def _refine(self, budget: int) -> None:
        self._builder.refine(budget, self._tick)
        self._mixture, self._finished = self._builder.mixture(), self._builder.done


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
