"""What a census will cost, from public numbers alone (`docs/architecture.md`, decision 6).

Enumeration costs the same for all data. What the dynamic program costs depends on them, and a plan must not:
it counts the small databases of made-up tables of several shapes, for few rows, and extends the growth of
the worst.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, log
from time import process_time
from typing import Literal, NamedTuple

import numpy as np

from queries import Workload
from queries.arrays import Integers
from queries.workload import MAX_MATRIX
from smalldb.counting import multisets
from smalldb.counting.dynamic_engine import count_scores
from smalldb.counting.enumeration_engine import TABLE_BYTES, TALLIES
from smalldb.counting.recursion import MAX_KEY_BITS, key_bits, state_bytes
from smalldb.counting.scores import MAX_RANKS, Candidates, Scores, rank_count

VISITS = 5 * 10**10  # budget of an enumeration: candidates x queries, some seconds
OPERATIONS = 10**9  # budget of a dynamic program: states touched
MEMORY = 2 << 30  # budget of a dynamic program: bytes
EASY = 2 * 10**9  # visits below which enumeration is not worth a rehearsal
VISITS_AN_OPERATION = 100  # as long takes an operation of the dynamic program
VISIT_SECONDS = 2e-10  # only printed
MAX_CELLS = 1 << 10  # of a dynamic program: each is as many steps as there are layers
STEP = 500  # operations: as long takes a step that meets no state
PAIR = 100  # operations: as long takes it to add up two layers that hold no state

LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # rows of the rehearsals
REHEARSED = 300_000  # states touched: the ladder is climbed until a run takes more
REHEARSED_STEPS = 4_000_000  # operations that stand for its steps
MARGIN = 3  # times the worst of the made-up tables: no table of any shape that was tried took more
N = 30_011  # rows of a made-up table: a prime, so that few scores coincide


@dataclass(frozen=True, slots=True)
class Work:
    """What a census will take; public."""

    engine: Literal["enumeration", "dynamic"]
    operations: int  # candidates times queries, or states touched; an estimate from above for the latter
    memory: int  # bytes, with what a draw needs
    seconds: float = field(compare=False)  # processor time on this machine, roughly; decides nothing


def work(workload: Workload, rows: int, candidates: Candidates = "multisets") -> Work | None:
    """Choose the engine for a census, and foretell its cost, from public values alone; None: neither can."""
    cells, queries = workload.domain.size, max(1, workload.size)
    if workload.size * cells > MAX_MATRIX or rank_count(workload, rows) > MAX_RANKS:
        return None
    enumeration = None
    # C(N + m - 1, m) >= 2^min(m, N - 1): not worth computing where that is beyond the budget
    if candidates == "multisets" and 1 << min(rows, cells - 1, 99) <= VISITS:
        visits = multisets.count(cells, rows) * queries
        if visits <= VISITS:
            enumeration = Work("enumeration", visits, TABLE_BYTES + 8 * TALLIES, visits * VISIT_SECONDS)
    if enumeration and enumeration.operations <= EASY:
        return enumeration
    if cells > MAX_CELLS or overhead(workload, rows, candidates) > OPERATIONS:
        return enumeration
    dynamic = rehearse(workload, candidates).estimate(rows)
    if dynamic is None or dynamic.memory > MEMORY:
        return enumeration
    if enumeration and enumeration.operations < dynamic.operations * VISITS_AN_OPERATION:
        return enumeration
    return dynamic


def overhead(workload: Workload, rows: int, candidates: Candidates) -> int:
    """Return the operations that a dynamic program takes whatever states it meets."""
    cells, ranks = workload.domain.size, workload.size * (rows * workload.denominator + 1)
    step = STEP + ranks // 16
    if candidates == "multisets":
        return 2 * cells * (rows + 1) * step
    return cells * (rows + 1) * (step + PAIR * (rows + 2) // 2)


class Run(NamedTuple):
    """The largest figures over the made-up tables, for one number of rows."""

    operations: int  # states touched in merging and settling
    peak: int  # the most states at a time
    states: int  # of all layers together


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Runs on made-up tables."""

    workload: Workload
    candidates: Candidates
    runs: tuple[Run, ...]  # one for each step of `LADDER`, from the first
    seconds: float  # processor time of an operation: differs between machines and decides nothing

    def estimate(self, rows: int) -> Work | None:
        """Foretell a census of `rows` rows; None beyond the budget, or where its keys are too wide."""
        if not self.runs:
            return None
        met, peak, states = (self._extended(figure, rows) for figure in range(3))
        if met > OPERATIONS:
            return None
        matrix = self.workload.matrix()
        empty = np.zeros(matrix.shape[1], dtype=np.int64)
        scores, known = posed(matrix, empty, rows), posed(matrix, empty, LADDER[len(self.runs) - 1])
        if key_bits(scores) > MAX_KEY_BITS:
            return None
        state = state_bytes(scores, self.candidates)
        wider = max(1, -(-state // state_bytes(known, self.candidates)))  # counts in more words
        operations = overhead(self.workload, rows, self.candidates) + met * wider
        if operations > OPERATIONS:
            return None
        return Work("dynamic", operations, (peak + states) * state, operations * self.seconds)

    def _extended(self, figure: int, rows: int) -> int:
        """Extend a figure to any number of rows: it grows like a power of the number of multisets."""
        # the power is that of the last two runs (one run: 1), and falls as the rows grow
        figures = [run[figure] for run in self.runs]
        known = LADDER[len(figures) - 1]
        if rows <= known:
            return MARGIN * figures[bisect_left(LADDER, rows)]

        def growth(m: int, earlier: int) -> float:
            cells = self.workload.domain.size
            return log(multisets.count(cells, m)) - log(multisets.count(cells, earlier))

        power = 1.0
        if len(figures) > 1:
            earlier = LADDER[len(figures) - 2]
            power = log(figures[-1] / figures[-2]) / max(growth(known, earlier), log(known / earlier))
        exponent = log(figures[-1]) + power * max(growth(rows, known), log(rows / known))
        # to three digits, so that no last bit of a logarithm can make a difference between machines
        return int(float(f"{MARGIN * exp(min(exponent, 99)):.2e}"))


@lru_cache(maxsize=32)
def rehearse(workload: Workload, candidates: Candidates) -> Rehearsal:
    """Count the small databases of made-up tables, for more and more rows until that takes long."""
    runs: list[Run] = []
    matrix, seconds = workload.matrix(), 0.0
    for rows in LADDER:
        steps = overhead(workload, rows, candidates)
        if rank_count(workload, rows) > MAX_RANKS or steps > REHEARSED_STEPS:
            break
        worst = Run(1, 1, 1)
        for histogram in made_up(workload):
            scores = posed(matrix, histogram, rows)
            if key_bits(scores) > MAX_KEY_BITS:
                return Rehearsal(workload, candidates, tuple(runs), seconds)
            started = process_time()
            cost = count_scores(scores, candidates=candidates, threads=1).cost
            seconds = (process_time() - started) / (cost.operations + steps)
            peak = -(-cost.peak // state_bytes(scores, candidates))
            worst = Run(*map(max, worst, (cost.operations, peak, cost.states)))
        runs.append(worst)
        if worst.operations > REHEARSED:
            break
    return Rehearsal(workload, candidates, tuple(runs), seconds)


def made_up(workload: Workload) -> Iterator[Integers]:
    """Yield tables of about `N` rows, as counts over the cells: flat, scattered, and concentrated."""
    position = np.arange(workload.domain.size, dtype=np.int64)
    scattered = (position * 40_503 + 12_345) % 65_536  # multiplicative hashing: the same on every machine
    ones = workload.domain.table().sum(axis=1, dtype=np.int64)
    for weights in (
        np.ones_like(position),
        scattered * scattered // 65_536 + 1,
        4 ** np.maximum(10 - ones, 0),
    ):
        yield weights * N // weights.sum() + (position == 0)


def posed(matrix: Integers, histogram: Integers, rows: int) -> Scores:
    """Return the scores against a made-up table."""
    return Scores.build(matrix, matrix @ histogram, int(histogram.sum()), rows)
