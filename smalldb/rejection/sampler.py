"""The samplers: trials until one is kept, with layers refined meanwhile; and the two that need no layers."""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate
from math import comb
from operator import mul

import numpy as np
import numpy.typing as npt

from queries import Workload
from queries.arrays import Integers, Words
from smalldb.counting.scores import rate_of
from smalldb.exact.bits import BitSource
from smalldb.exact.coins import bernoulli_exp
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level
from smalldb.kernels.stars import star_trials
from smalldb.kernels.trials import IMPOSSIBLE, OUT_OF_WORDS, PAUSED, SURVIVED, Leaves, tree_trials
from smalldb.kernels.ways import ShareTables
from smalldb.rejection.building import Builder, Tick
from smalldb.rejection.layers import LANES, Mixture
from smalldb.rejection.relaxation import in_threads
from smalldb.rejection.star_trees import StarRelaxation, in_any_order
from smalldb.rejection.target import Bits, Target, uniform_words

BATCH = 5_000_000  # work of one call of the kernel: a fraction of a second
WORDS, MOST_WORDS = 1 << 6, 1 << 14  # drawn from the source at a time, for a lane
FIRST = 8_000_000  # ways that are visited before the first trial: a second
FEW, MANY = 1 << 5, 1 << 17  # trials that are made at first, and at most, at a time
ALONE = 1 << 12  # up to so many trials are made in one lane


class Flat:
    """SmallDB over ordered rows where ``rate n m D <= 1``: a uniform candidate is kept with at least 1/e."""

    # confidential as a whole: computed from the data

    def __init__(self, target: Target, rate: Fraction) -> None:
        self.trials = 0
        self._target, self._rate = target, rate

    def __repr__(self) -> str:
        return "<Flat: computed from the data>"

    # Proof: docs/proofs/rejection.md, lemma 9.
    def draw(self, source: BitSource) -> tuple[Bits, int]:
        """Draw m ordered rows, shape (m, d), and their score, in proportion to exp(-rate score)."""
        target = self._target
        while True:
            self.trials += 1
            columns = uniform_words(source, target.attributes) & target.everyone
            score = target.score(columns)
            if bernoulli_exp(self._rate * score, source):
                return target.bits(columns), score


class Factored:
    """SmallDB over ordered rows where the score is a maximum over single columns; confidential."""

    # N(s), the number of candidates of score at most s, is the product over the columns of how many
    # columns have score at most s. No trials are needed.

    trials = 0

    def __init__(self, target: Target, rate: Fraction) -> None:
        self._rows, self._rate = target.rows, rate
        self._scores = _column_scores(target)
        self._levels = _levels(self._scores, target.rows)

    def __repr__(self) -> str:
        return "<Factored: computed from the data>"

    # Proof: docs/proofs/rejection.md, lemma 9.
    def draw(self, source: BitSource) -> tuple[Bits, int]:
        """Draw m ordered rows, shape (m, d), and their score, in proportion to exp(-rate score)."""
        score = draw_level(self._levels, self._rate, source)
        return self.candidate(score, uniform_below(self._levels[score], source)), score

    def candidate(self, score: int, position: int) -> Bits:
        """Return the candidate at a position among those of a score, as rows: shape (m, d)."""
        below = [_counts(scores, score - 1, self._rows) for scores in self._scores]
        upto = [_counts(scores, score, self._rows) for scores in self._scores]
        # candidates of this score, by the first column that has it
        totals = [(sum(some.values()), sum(more.values())) for some, more in zip(below, upto, strict=True)]
        after = [*accumulate((more for _, more in totals[:0:-1]), mul, initial=1)][::-1]
        first, before = 0, 1
        while position >= (here := before * (totals[first][1] - totals[first][0]) * after[first]):
            position, before, first = position - here, before * totals[first][0], first + 1
        exactly = {c: ways for c, ways in upto[first].items() if c not in below[first]}
        columns = []
        for choices in (*below[:first], exactly, *upto[first + 1 :]):
            position, index = divmod(position, sum(choices.values()))
            columns.append(_column(choices, index, self._rows))
        return np.array(columns, dtype=np.uint8).T


def _column_scores(target: Target) -> list[list[int]]:
    """Return the score of each column by its number of ones, cut off: d lists of m + 1."""
    scores = [[0] * (target.rows + 1) for _ in range(target.attributes)]
    for table, answer in zip(target.tables, target.answers.tolist(), strict=True):
        weights = (0, target.unit) if table.weights is None else table.weights.tolist()
        column = scores[table.attributes[0]]
        for ones in range(target.rows + 1):
            total = weights[0] * (target.rows - ones) + weights[1] * ones
            gap = abs(target.rows * answer - target.n * total)
            column[ones] = max(column[ones], min(gap, target.largest_score))
    return scores


def _levels(scores: list[list[int]], rows: int) -> dict[int, int]:
    """Return how many candidates have each score."""
    steps = sorted(
        (score, a, comb(rows, ones)) for a, column in enumerate(scores) for ones, score in enumerate(column)
    )
    columns, missing, before = [0] * len(scores), len(scores), 0
    product, levels = 1, {}
    for position, (score, a, ways) in enumerate(steps):
        if columns[a]:
            product = product // columns[a] * (columns[a] + ways)
        else:
            product, missing = product * ways, missing - 1
        columns[a] += ways
        if not missing and (position + 1 == len(steps) or steps[position + 1][0] > score):
            levels[score], before = product - before, product
    return levels


def _counts(scores: list[int], most: int, rows: int) -> dict[int, int]:
    """Return how many columns have each number of ones, among those of score at most `most`."""
    return {ones: comb(rows, ones) for ones, score in enumerate(scores) if score <= most}


def _column(choices: dict[int, int], index: int, rows: int) -> list[int]:
    """Return the column at a position among those with the given numbers of ones."""
    ends = list(accumulate(choices.values()))
    position = bisect_right(ends, index)
    ones = list(choices)[position]
    index -= ends[position] - choices[ones]
    column = []
    for left in range(rows - 1, -1, -1):
        without = comb(left, ones)
        column.append(int(index >= without))
        if index >= without:
            index, ones = index - without, ones - 1
    return column


@dataclass(slots=True, eq=False, repr=False)
class Lane:
    """Trials of some layers, made one after the other with words of their own."""

    # target, mixture, layers: what all lanes have: the layer of each trial
    target: Target
    mixture: Mixture
    layers: Integers
    # order, turn: the trials of this lane as they are made, and how many were made
    order: Integers
    # tables, leaves: the mixture's, with room that no other lane writes to; slots are those of its
    # layers
    tables: ShareTables
    leaves: Leaves
    ends: Integers  # where trials of other kinds begin: of other stars, or of trees
    # columns, shares, ways: what the last trial wrote
    columns: Words
    shares: Words
    ways: Integers
    # words, start: uniform words, and the first one that was not read
    words: Words
    state: int = 0  # the state of the hubs, if it was one of a star
    turn: int = 0
    start: int = 0
    # status, work: what the last call of the kernel returned, and what it cost
    status: int = PAUSED
    work: int = 0

    @classmethod
    def several(
        cls, target: Target, mixture: Mixture, layers: Integers, order: Integers, count: int
    ) -> list["Lane"]:
        """Return so many lanes for trials of these layers, in this order; without those that have none."""
        blank = np.zeros(target.attributes, dtype=np.uint64)
        rooms = mixture.rooms if count > 1 else [max(mixture.rooms, key=_left)]
        lanes = layers[order] % count
        return [
            cls(
                target,
                mixture,
                layers,
                mine,
                *rooms[lane],
                _ends(mixture, layers[mine]),
                blank.copy(),
                blank.copy(),
                blank.astype(np.int64),
                blank[:0],
            )
            for lane in range(count)
            if len(mine := order[lanes == lane])
        ]

    @property
    def position(self) -> int:
        """The trial whose turn it is."""
        return int(self.order[self.turn])

    def left(self, end: int) -> bool:
        """Whether trials below `end` are to be made."""
        return bool((self.order[self.turn :] < end).any())

    @property
    def star(self) -> StarRelaxation | None:
        """The star of the trial whose turn it is, if it is one of a star."""
        return self.mixture.stars.get(int(self.layers[self.position]))

    def chosen(self) -> tuple[list[int], list[int]]:
        """Return the shares of the survivor, whose turn it is, and how many columns have them."""
        star = self.star
        return (self.shares.tolist(), self.ways.tolist()) if star is None else star.chosen(self.state)

    # Proof: docs/proofs/rejection.md, lemma 7.
    def go_on(self, end: int) -> None:
        """Make trials below `end` until a candidate survives, words run out, or it was a batch's work."""
        if self.status == OUT_OF_WORDS and self.position >= end:  # no trial reads what another has looked at
            self.start = len(self.words)
        self.status, self.work = PAUSED, 0
        while self.status == PAUSED and self.turn < len(self.order) and self.work <= BATCH:
            stop = int(self.ends[np.searchsorted(self.ends, self.turn, side="right")])
            star = self.star
            self.work += self._tree_trials(stop, end) if star is None else self._star_trials(star, stop, end)

    def _star_trials(self, star: StarRelaxation, stop: int, end: int) -> int:
        self.status, self.turn, self.start, work, state = star_trials(
            star.star, self.order, self.turn, stop, end, self.words, self.start, self.columns, BATCH
        )
        self.state = int(state)
        return int(work)

    def _tree_trials(self, stop: int, end: int) -> int:
        self.status, self.turn, self.start, work = tree_trials(
            self.mixture.nodes,
            self.mixture.states,
            self.target.queries,
            self.mixture.checks,
            self.tables,
            self.leaves,
            len(self.mixture.sums) - 1,
            self.layers,
            self.order[:stop],
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
        return int(work)

    def add(self, source: BitSource) -> None:
        """Draw further words: enough for most trials left, or as many again as the present one has had."""
        left, had = (len(self.order) - self.turn) * self.target.attributes // 2, self.words[self.start :]
        fresh = uniform_words(source, max(min(max(WORDS, left), MOST_WORDS), len(had)))
        self.words, self.start = np.concatenate([had, fresh]), 0


def _ends(mixture: Mixture, layers: Integers) -> Integers:
    """Return where trials of other kinds than those before begin, and the end."""
    kinds = np.where(np.isin(layers, list(mixture.stars)), layers, -1)
    return np.append(np.flatnonzero(np.diff(kinds)) + 1, len(layers))


def _left(room: tuple[ShareTables, Leaves]) -> int:
    """Return how many entries a lane may still write."""
    tables, _ = room
    return len(tables.sums) - int(tables.used[0])


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
        # the first candidate kept has that law, whatever was refined between trials
        kept, count, before = None, 0, self.work
        while kept is None:
            if self.work > self._again and not self._finished:
                self._refine(self.work)
            trials = max(FEW, min(count // 2, MANY))  # some of them are in vain
            if self.work > before and not self._finished:  # up to the work that refines layers
                allowed = 1 + (self._again - self.work) * count // (self.work - before)
                trials = max(FEW, min(trials, allowed))
            kept = self._first_kept(trials, source)
            count += trials
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
                    if lane.position < end and (candidate := self._tossed(lane, source)):
                        kept, end = candidate, lane.position
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
