"""The sampler: trials until a candidate is kept, with layers that are refined while the trials go on."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from queries import Workload
from queries.arrays import Words
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
FEW, MANY = 1 << 5, 1 << 17  # trials that are made at first, and at most, at a time
WORDS, MOST_WORDS = 1 << 8, 1 << 13  # drawn from the source at a time


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
        kept, made, worked, words = None, 0, 0, uniform_words(source, 0)
        while kept is None:
            left = self._builder.again - self.work
            if left < 0 and not self._finished:
                self._refine(self.work)
                left = self._builder.again - self.work
            trials = min(max(FEW, made // 2), MANY)
            if not self._finished and worked:
                trials = max(FEW, min(trials, 1 + left * made // worked))
            worked -= self.work
            kept, words = self._first_kept(trials, words, source)
            made += trials
            worked += self.work
        return kept

    # Proof: docs/proofs/rejection.md, lemma 7.
    def _first_kept(
        self, trials: int, words: Words, source: BitSource
    ) -> tuple[tuple[Bits, int] | None, Words]:
        """Make so many trials; return the candidate of the first one that is kept, and the words left over.

        They are made layer by layer, so that what they look up is at hand. Once one is kept, no later one is.
        """
        target, mixture = self._target, self._mixture
        columns = np.zeros(target.attributes, dtype=np.uint64)
        shares = np.zeros(target.attributes, dtype=np.uint64)
        ways = np.zeros(target.attributes, dtype=np.int64)
        layers = mixture.choose(uniform_words(source, trials))
        order = np.argsort(layers, kind="stable")
        kept, end, turn, start = None, trials, 0, 0
        while turn < trials:
            status, turn, start, work = ktree.trials(
                mixture.nodes,
                mixture.states,
                target.queries,
                mixture.checks,
                mixture.tables,
                mixture.leaves,
                len(mixture.sums) - 1,
                layers,
                order,
                turn,
                end,
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
            self.work += work
            if status == ktree.OUT_OF_WORDS:
                fresh = min(max(WORDS, 4 * (trials - turn)), MOST_WORDS)
                words, start = np.concatenate([words[start:], uniform_words(source, fresh)]), 0
            if status == ktree.SURVIVED:
                score = target.score(columns)
                factor = mixture.factor(layers[order[turn]], score, shares, ways)
                if bernoulli_exp(self._rate * (score - mixture.envelope.lowest), source, factor):
                    kept, end = (target.bits(columns), score), int(order[turn])
                turn += 1
        self.trials += trials if kept is None else end + 1
        return kept, words[start:]

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
