"""What a census will cost, from public numbers alone (`docs/decisions/0006-what-a-census-costs.md`).

Enumeration costs the same for all data. What the dynamic program costs depends on them, and a plan must not:
it counts the small databases of made-up tables of several shapes, for few rows, and extends the growth of
the worst.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import log
from time import process_time
from typing import Literal, NamedTuple

import numpy as np

from queries import Workload
from queries.workload import MAX_MATRIX
from smalldb import multisets
from smalldb.counting.dynamic import MAX_KEY_BITS, count_scores, key_bits, state_bytes
from smalldb.counting.enumeration import TABLE_BYTES, TALLIES
from smalldb.counting.scores import MAX_RANKS, Candidates, Integers, Scores

VISITS = 5 * 10**10  # budget of an enumeration: candidates x queries, some seconds
OPERATIONS = 10**9  # budget of a dynamic program: states touched
MEMORY = 2 << 30  # budget of a dynamic program: bytes
EASY = 2 * 10**9  # visits below which enumeration is not worth a rehearsal
VISITS_AN_OPERATION = 100  # as long takes an operation of the dynamic program
VISIT_SECONDS = 2e-10  # only printed
MAX_CELLS = 1 << 12  # of a dynamic program: each is a step

LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # rows of the rehearsals
REHEARSED = 300_000  # operations: the ladder is climbed until a run takes more
MARGIN = 3  # times the worst of the made-up tables: no table of any shape that was tried took more
BEND = 0.5  # the exponent of the growth still rises by about this much
N = 30_011  # rows of a made-up table: a prime, so that few scores coincide


@dataclass(frozen=True, slots=True)
class Work:
    """What a census will take; public.

    Attributes
    ----------
    engine
        "enumeration" or "dynamic".
    operations
        Candidates times queries, or states touched; an estimate from above for the latter.
    memory
        Bytes, with what a draw needs.
    seconds
        Processor time on this machine, roughly; decides nothing.
    """

    engine: Literal["enumeration", "dynamic"]
    operations: int
    memory: int
    seconds: float = field(compare=False)


def work(workload: Workload, rows: int, candidates: Candidates = "multisets") -> Work | None:
    """Choose the engine for a census of `rows` rows and foretell its cost; None where neither can do it.

    A function of public values, the same on every machine but for the seconds.
    """
    cells, queries = workload.domain.size, max(1, workload.size)
    if workload.size * cells > MAX_MATRIX or queries * (rows * workload.denominator + 1) > MAX_RANKS:
        return None
    visits = multisets.count(cells, rows) * queries if candidates == "multisets" else None
    enumeration = None
    if visits is not None and visits <= VISITS:
        enumeration = Work("enumeration", visits, TABLE_BYTES + 8 * TALLIES, visits * VISIT_SECONDS)
    if cells > MAX_CELLS or (enumeration and enumeration.operations <= EASY):
        return enumeration
    dynamic = rehearse(workload, candidates).estimate(rows)
    if dynamic is None or dynamic.memory > MEMORY:
        return enumeration
    if enumeration and enumeration.operations < dynamic.operations * VISITS_AN_OPERATION:
        return enumeration
    return dynamic


class Run(NamedTuple):
    """The largest figures over the made-up tables, for one number of rows."""

    operations: int
    peak: int  # states at a time
    states: int  # of all layers together


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Runs on made-up tables.

    Attributes
    ----------
    workload, candidates
        What was counted.
    runs
        One for each step of `LADDER`, from the first.
    seconds
        Processor time of an operation: differs between machines and decides nothing.
    """

    workload: Workload
    candidates: Candidates
    runs: tuple[Run, ...]
    seconds: float

    def estimate(self, rows: int) -> Work | None:
        """Foretell a census of `rows` rows; None beyond the budget, or where its keys are too wide."""
        if not self.runs:
            return None
        operations, peak, states = (self._extended(figure, rows) for figure in range(3))
        if operations > OPERATIONS:
            return None
        scores = posed(self.workload, np.zeros(self.workload.domain.size, dtype=np.int64), rows)
        if key_bits(scores) > MAX_KEY_BITS:
            return None
        memory = (peak + states) * state_bytes(scores, self.candidates)
        return Work("dynamic", operations, memory, operations * self.seconds)

    def _extended(self, figure: int, rows: int) -> int:
        """Extend a figure to any number of rows, by the power law through its last two runs."""
        figures = [run[figure] for run in self.runs]
        known = LADDER[len(figures) - 1]
        if rows <= known:
            return MARGIN * figures[bisect_left(LADDER, rows)]
        if len(figures) == 1:  # at most as many more as there are more candidates
            cells = self.workload.domain.size
            return MARGIN * figures[0] * multisets.count(cells, rows) // cells
        power = log(figures[-1] / figures[-2]) / log(known / LADDER[len(figures) - 2]) + BEND
        return int(MARGIN * figures[-1] * (rows / known) ** power)


@lru_cache(maxsize=32)
def rehearse(workload: Workload, candidates: Candidates) -> Rehearsal:
    """Count the small databases of made-up tables, until a run takes more than `REHEARSED` operations."""
    runs: list[Run] = []
    while len(runs) < len(LADDER) and (not runs or runs[-1].operations < REHEARSED):
        worst, touched, started = Run(1, 1, 1), 0, process_time()
        for histogram in made_up(workload):
            scores = posed(workload, histogram, LADDER[len(runs)])
            if key_bits(scores) > MAX_KEY_BITS:
                return Rehearsal(workload, candidates, tuple(runs), 0)
            cost = count_scores(scores, candidates=candidates, threads=1).cost
            touched += cost.operations
            peak = -(-cost.peak // state_bytes(scores, candidates))
            worst = Run(*map(max, worst, (cost.operations, peak, cost.states)))
        runs.append(worst)
        seconds = (process_time() - started) / max(1, touched)
    return Rehearsal(workload, candidates, tuple(runs), seconds)


def made_up(workload: Workload) -> Iterator[Integers]:
    """Yield tables of about `N` rows, as counts over the cells: flat, scattered, and concentrated."""
    place = np.arange(workload.domain.size, dtype=np.int64)
    scattered = (place * 40_503 + 12_345) % 65_536  # multiplicative hashing: the same on every machine
    ones = workload.domain.table().sum(axis=1, dtype=np.int64)
    for weights in (np.ones_like(place), scattered * scattered // 65_536 + 1, 4 ** np.maximum(10 - ones, 0)):
        yield weights * N // weights.sum() + (place == 0)


def posed(workload: Workload, histogram: Integers, rows: int) -> Scores:
    """Return the scores against a made-up table."""
    matrix = workload.matrix()
    return Scores.build(matrix, matrix @ histogram, int(histogram.sum()), rows)
