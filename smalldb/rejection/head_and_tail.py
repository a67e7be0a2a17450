"""Exact SmallDB over multisets where a census is too large: its head is counted, its tail is rejected.

The census up to a level costs far less than all of it, and the few candidates there hold most of the mass.
All others are proposed uniformly, as if they stood at the next level, and kept with what their true score
leaves of that weight (`docs/proofs/head-and-tail.md`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from queries import Conjunctions, Marginals, QueryClass, Workload
from queries.arrays import Booleans, Integers, Words
from queries.workload import MAX_MATRIX
from smalldb.counting import multisets
from smalldb.counting.cost import MAX_CELLS, MEMORY, OPERATIONS, overhead
from smalldb.counting.dynamic_engine import Dynamic, count_scores
from smalldb.counting.level_counts import Law
from smalldb.counting.recursion import MAX_KEY_BITS, BeyondLimit, Cost, Limit, key_bits
from smalldb.counting.scores import MAX_RANKS, Scores, largest_score, rank_count, rate_of, too_large
from smalldb.exact.bits import BitSource, SeededBits
from smalldb.exact.coins import Uniform, bernoulli_exp
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level
from smalldb.exact.numbers import Number, positive

TRIAL = 20  # operations of the dynamic program: as long takes a trial
PILOT = 1 << 14  # trials that foretell how many the tail will need,
PILOT_ENTRIES = 1 << 26  # or fewer, of so many entries with all queries and cells
FEWEST, BATCH = 16, 1 << 12  # trials at a time: the first ones, and at most
STEP = 8  # a cut is raised by this part of its score
SHORT = 1 << 10  # cells and rows up to which words of 16 bits choose among them
SURE = 12
MOST_ROWS = 1 << 10  # of what is proposed without a head
# attributes -> query class and the most rows for which all tables that were tried took less than a fourth of
# `OPERATIONS`, trials included, whatever n and epsilon
ROWS: dict[int, tuple[tuple[QueryClass, int], ...]] = {
    4: ((Conjunctions(2), 60), (Marginals(2), 31)),
    5: ((Conjunctions(2), 22),),
    6: ((Conjunctions(2), 11),),
    7: ((Conjunctions(2), 7),),
}
MAX_COINS = 62  # fair coins thrown for all trials of a batch at once; the rest of a probability is one coin
LOG2_E = 1.4426950408889634 * (1 - 1e-9)  # rounded down by far more than the errors of a product of floats
PRECISION = 128


@contextmanager
def clock(shown: bool) -> Iterator[Callable[[], object]]:
    """Show the time elapsed on stderr, brought up to date by each call of what this yields."""
    if not shown:
        yield bool
        return
    from tqdm import tqdm

    with tqdm(bar_format="{elapsed} elapsed") as bar:
        yield bar.refresh


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeadAndTail:
    """The exponential mechanism over all multisets of a few rows; confidential as a whole."""

    scores: Scores  # the score of every candidate
    rate: Fraction  # a candidate of score s has probability proportional to ``exp(-rate s)``
    head: dict[int, int]  # how many candidates stand at each level up to the cut: exact, without zeros
    tail: int | None  # the least level beyond the cut; None: no candidate lies beyond it
    cost: Cost = field(default_factory=Cost)  # what all the counting took
    _counted: Dynamic | None = None
    _shares: dict[int, tuple[Fraction, Fraction]] = field(default_factory=dict)

    # Proof: docs/proofs/head-and-tail.md, lemma 2.
    def draw(self, source: BitSource) -> tuple[Integers, int]:
        """Draw a candidate, as counts (N,) over the domain's cells, and its score."""
        # Each trial ends with a given candidate of score s with probability proportional to exp(-rate s),
        # whatever the cut: from the head by its weight, or from the tail, proposed as if at its best level.
        if self.tail is not None and (kept := self._from_tail(self.tail, source)):
            return kept
        if self._counted is None:
            raise ArithmeticError("a head without candidates has no weight")
        # A level is drawn by the weight of all its candidates, then one of them uniformly, so each has its
        # own weight. With one candidate of score 0, three of score 2 and rate 1, score 2 has probability
        # 3 e^-2 / (1 + 3 e^-2) = 0.289, and each of its three a third of that, 0.096.
        level = draw_level(self.head, self.rate, source)
        rank = int(np.searchsorted(self.scores.levels, level))
        return self._counted.candidate(rank, uniform_below(self.head[level], source)), level

    def tail_share(self, precision: int = PRECISION) -> tuple[Fraction, Fraction]:
        """Enclose the probability that a trial proposes from the tail."""
        if self.tail is None:
            return Fraction(0), Fraction(0)
        if precision not in self._shares:
            weights = (*self.head.values(), multisets.count(len(self.scores.cells), self.scores.rows))
            law = Law(np.array([*self.head, self.tail]), weights, self.rate, 1)
            self._shares[precision] = law.enclosures(precision)[-1]
        return self._shares[precision]

    # Proof: docs/proofs/head-and-tail.md, lemmas 2 and 4.
    def _from_tail(self, tail: int, source: BitSource) -> tuple[Integers, int] | None:
        """Throw trials until one keeps a candidate of the tail, or takes the head (None)."""
        # so many fair coins decide most trials that what is left of each probability is one coin
        # above 1/2
        share = 1 - self.tail_share()[0]
        odds = share.denominator // share.numerator if share else 1 << MAX_COINS
        coins = min(MAX_COINS, odds.bit_length() - 1)
        rate, size = float(min(self.rate, Fraction(MAX_COINS))), FEWEST
        while True:
            proposals = propose(self.scores, size, source)
            gaps = proposals.scores - tail
            depths = np.clip(rate * LOG2_E * gaps, 0, MAX_COINS).astype(np.uint64)
            heads = all_heads(proposals.words[:, 0], np.uint64(coins)) & bool(self.head)
            kept = all_heads(proposals.words[:, 1], depths) & (gaps >= 0)
            for trial in np.flatnonzero(heads | kept):
                if heads[trial] and self._takes_head(coins, source):
                    return None
                if kept[trial] and bernoulli_exp(
                    self.rate * int(gaps[trial]), source, Fraction(2 ** int(depths[trial]))
                ):
                    candidate = np.empty_like(self.scores.cells)
                    candidate[self.scores.cells] = proposals.candidates[trial]
                    return candidate, int(proposals.scores[trial])
            size = min(2 * size, BATCH)

    # Proof: docs/proofs/draw.md, lemma 2; docs/proofs/head-and-tail.md, lemma 4.
    def _takes_head(self, coins: int, source: BitSource) -> bool:
        """Return True with 2^coins times the probability that a trial takes the head."""
        uniform, precision = Uniform(source), PRECISION
        while True:
            least, most = self.tail_share(precision)
            if (1 - most) * 2**coins > 1:
                raise ArithmeticError("the probability of a coin is above 1: this must not happen")
            low, high = uniform.enclosure(precision)
            if high <= (1 - most) * 2**coins:
                return True
            if low >= (1 - least) * 2**coins:
                return False
            precision *= 2


# Proof: docs/proofs/head-and-tail.md, lemma 5.
def capable(workload: Workload, n: int, rows: int, epsilon: Number) -> bool:
    """Say whether draws will end soon, from public numbers alone."""
    # no score exceeds n m D (n_max under add-remove), so no candidate weighs less than exp(-epsilon n / 2)
    privacy = positive(epsilon, "epsilon")
    if too_large(n, rows, workload.denominator) or not possible(workload, rows):
        return False
    if privacy * n <= 2 * SURE:
        return True
    d = len(workload.domain.attributes)
    return workload.domain.valid is None and any(
        rows <= most
        and {(q.attributes, q.weights) for q in workload.queries}
        == {(q.attributes, q.weights) for q in kind.workload(workload.domain).queries}
        for kind, most in ROWS.get(d, ())
    )


def possible(workload: Workload, rows: int) -> bool:
    """Say whether there is room for the score tables, and for what is proposed."""
    cells, queries = workload.domain.size, workload.size
    if cells > MAX_CELLS or queries * cells > MAX_MATRIX:
        return False
    return rows <= MOST_ROWS and rank_count(workload, rows) <= MAX_RANKS


class Proposals(NamedTuple):
    """Uniform candidates, one a trial."""

    scores: Integers  # shape (trials,)
    candidates: Integers  # shape (trials, N): counts in the processing order of the cells
    words: Words  # shape (trials, 2): 64 random bits each, which coins are thrown with


# Proof: docs/proofs/head-and-tail.md, lemma 3.
def propose(scores: Scores, size: int, source: BitSource) -> Proposals:
    """Draw uniform candidates, exactly; fewer than `size` where a word cannot be split evenly."""
    cells, rows = scores.weights.shape[0], scores.rows
    chosen, width = min(rows, cells - 1), 2 if cells + rows <= SHORT else 4
    raw = source.bits(8 * size * (16 + width * chosen)).to_bytes(size * (16 + width * chosen), "little")
    words = np.frombuffer(raw, f"<u{width}", offset=16 * size).astype(np.int64).reshape(chosen, size)
    choices = np.arange(cells + rows - chosen, cells + rows)[:, None]
    even = (words < (1 << 8 * width) // choices * choices).all(axis=0)
    candidates = multisets_of(words[:, even] % choices, cells, rows)
    # integers far below 2^53: floats are exact, and their product is compiled
    answers = (candidates.astype(np.float64) @ scores.weights.astype(np.float64)).astype(np.int64)
    ranks = scores.ranks[answers + scores.offsets[:-1]].max(axis=1, initial=0)
    fair = np.frombuffer(raw, "<u8", 2 * size).reshape(size, 2)[even]
    return Proposals(scores.levels[ranks], candidates, fair)


# Proof: docs/proofs/head-and-tail.md, lemma 3.
def multisets_of(positions: Integers, cells: int, rows: int) -> Integers:
    """Map tuples of numbers to multisets of rows, equally many to each."""
    # A multiset is a choice of the positions of its rows among cells + rows - 1, the others being bars
    # between the cells. Of rows and bars the fewer ones, k of them, are chosen by Floyd's method
    # (Bentley and Floyd 1987): a position that is taken is replaced by the largest.
    (chosen, trials), positions_each = positions.shape, cells + rows - 1
    taken = np.zeros(trials * positions_each, dtype=np.bool_)
    starts = np.arange(trials) * positions_each
    for i in range(chosen):
        wanted = starts + positions[i]
        taken[np.where(taken[wanted], starts + positions_each - chosen + i, wanted)] = True
    stars = np.flatnonzero(taken if chosen == rows else ~taken).reshape(trials, rows)
    # a row with so many positions before it in its trial, rows among them, stands in the cell of the
    # difference
    stars -= (np.arange(trials) * (rows - 1))[:, None] + np.arange(rows)
    return np.bincount(stars.ravel(), minlength=trials * cells).reshape(trials, cells)


def all_heads(words: Words, coins: Words | np.uint64) -> Booleans:
    """Throw so many fair coins each, at most 64: whether all of them show heads."""
    tails: Booleans = words & ((np.uint64(1) << coins) - np.uint64(1)) > 0
    return ~tails


# Proof: docs/proofs/head-and-tail.md, lemma 6.
def multiset_sampler(
    workload: Workload,
    answers: Integers,
    n: int,
    rows: int,
    epsilon: Number,
    *,
    n_max: int | None = None,
    progress: bool = False,
) -> HeadAndTail:
    """Count the head of the census, as far as that takes less time than the tail without it."""
    if too_large(n, rows, workload.denominator):
        raise ValueError("rows of the data x rows x common denominator of the queries reach 2^62")
    most = largest_score(n_max, rows, workload.denominator)
    scores = Scores.build(workload.matrix(), answers, n, rows, most)
    rate = rate_of(positive(epsilon, "epsilon"), rows, workload.denominator)
    pilot = pilot_scores(scores)
    least = max((int(scores.ranks[a:b].min()) for a, b in pairwise(scores.offsets)), default=0)
    sampler, cut, spent = HeadAndTail(scores, rate, {}, int(scores.levels[least])), least, TRIAL * len(pilot)
    cost, countable, steps = Cost(), key_bits(scores) <= MAX_KEY_BITS, overhead(workload, rows, "multisets")
    with clock(progress) as tick:
        while countable and (needed := TRIAL * expected_trials(sampler, pilot)) > spent:
            limit = Limit(int(min(needed, OPERATIONS - spent)) - steps, MEMORY // 2)
            try:
                counted = count_scores(scores.cut(cut), keep_layers=True, threads=1, limit=limit)
            except BeyondLimit:
                break
            tick()
            cost.add(counted.cost)
            spent += counted.cost.operations + steps
            sampler = head_and_tail(scores, rate, cut, counted, cost)
            higher = scores.levels[cut] + scores.levels[cut] // STEP
            cut = max(cut + 1, int(np.searchsorted(scores.levels, higher, side="right")) - 1)
    return sampler


# Proof: docs/proofs/head-and-tail.md, lemma 6.
def pilot_scores(scores: Scores) -> Integers:
    """Return the scores of some uniform candidates, always the same ones."""
    source, entries = SeededBits(0), sum(scores.weights.shape) + scores.rows
    size = min(PILOT, max(BATCH // 16, PILOT_ENTRIES // entries))
    some = min(size, max(FEWEST, PILOT_ENTRIES // 16 // entries))
    return np.concatenate([propose(scores, some, source).scores for _ in range(-(-size // some))])


# Proof: docs/proofs/head-and-tail.md, lemma 1.
def head_and_tail(scores: Scores, rate: Fraction, cut: int, counted: Dynamic, cost: Cost) -> HeadAndTail:
    """Return the sampler whose head was counted up to the rank of the cut."""
    numbers = zip(scores.levels[: cut + 1].tolist(), counted.counts, strict=False)
    beyond = sum(counted.counts[cut + 1 :]) > 0
    tail = int(scores.levels[cut + 1]) if beyond else None
    head = {level: number for level, number in numbers if number}
    return HeadAndTail(scores, rate, head, tail, cost, counted)


def expected_trials(sampler: HeadAndTail, pilot: Integers) -> float:
    """Estimate the trials of a draw, from the scores of some uniform candidates; 0 without a tail."""
    if sampler.tail is None:
        return 0.0
    gaps = pilot[pilot >= sampler.tail] - sampler.tail
    kept = np.exp(-float(min(sampler.rate, Fraction(MAX_COINS))) * gaps).sum() / len(pilot)
    head = float(1 - sampler.tail_share()[0])
    success = head + (1 - head) * kept
    return float(1 / success) if success > 0 else inf
