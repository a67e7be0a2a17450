"""Cost of a census, by enumeration and by dynamic programming: ``python tests/benchmarks/census.py``.

All 1- and 2-way conjunctions, of a random histogram of 48,842 rows; CPU time of one thread after compilation,
with the tables included, the best of some runs, in processes of their own. Memory is the peak of the process
after the first run, libraries included.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from queries import Conjunctions, Domain
from smalldb.counting.dynamic_engine import count_scores
from smalldb.counting.enumeration_engine import enumerate_scores
from smalldb.counting.scores import Scores, count

N = 48842
REPEATS = 3
ENUMERATED = {4: 14, 5: 8}  # attributes: rows for the enumeration's rate, 6e7 to 8e7 candidates


def scores_of(rows: int, attributes: int = 4) -> Scores:
    """Pose the instance."""
    matrix = Conjunctions(2).workload(Domain([f"a{i}" for i in range(attributes)])).matrix()
    source = np.random.default_rng(0)
    counts = source.multinomial(N, source.dirichlet(np.full(1 << attributes, 0.7)))
    return Scores.build(matrix, matrix @ counts, N, rows)


@njit(nogil=True)
def odometer(weights, offsets, ranks, rows, histogram):
    """Count by a plain loop over all counts, with incremental answers."""
    cells, queries = weights.shape
    counts = np.zeros(cells, np.int64)
    counts[0] = rows
    answers = rows * weights[0]
    while True:
        top = 0
        for j in range(queries):
            top = max(top, ranks[offsets[j] + answers[j]])
        histogram[top] += 1
        moved = counts[cells - 1]
        if moved == rows:
            return
        cell = cells - 2
        while counts[cell] == 0:
            cell -= 1
        counts[cells - 1] = 0
        counts[cell] -= 1
        counts[cell + 1] = moved + 1
        for j in range(queries):
            answers[j] += (
                (moved + 1) * weights[cell + 1, j] - weights[cell, j] - moved * weights[cells - 1, j]
            )


def by_odometer(scores: Scores) -> tuple[int, ...]:
    """Count with `odometer`."""
    histogram = np.zeros(len(scores.levels), dtype=np.int64)
    odometer(scores.weights, scores.offsets, scores.ranks, scores.rows, histogram)
    return tuple(histogram.tolist())


def by_census(scores: Scores) -> tuple[int, ...]:
    """Count with the engine on one thread."""
    return enumerate_scores(scores, threads=1).counts


def seconds(
    program: Callable[[Scores], tuple[int, ...]], scores: Scores, repeats: int
) -> tuple[float, tuple[int, ...]]:
    """Return the least CPU time of some runs, and the histogram."""
    times = []
    for _ in range(repeats):
        start = process_time()
        found = program(scores)
        times.append(process_time() - start)
    return min(times), found


def peak_memory() -> int:
    """Return the peak resident size of this process in bytes (in getrusage a child has its parent's)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


class Measured(NamedTuple):
    """What a census of multisets by dynamic programming took; memory in bytes."""

    seconds: float
    memory: int
    candidates: int


def measure(attributes: int, rows: int) -> Measured:
    """Count after compilation."""
    count_scores(scores_of(3, 3), candidates="multisets", threads=1, keep_layers=True)
    scores, times, memory = scores_of(rows, attributes), [], 0
    for _ in range(REPEATS):
        start = process_time()
        counted = count_scores(scores, candidates="multisets", threads=1, keep_layers=True)
        times.append(process_time() - start)
        memory = memory or peak_memory()
        assert sum(counted.counts) == count(1 << attributes, rows, "multisets")
        del counted  # its layers would stand beside the next
    return Measured(min(times), memory, count(1 << attributes, rows, "multisets"))


def enumeration_rate(attributes: int) -> float:
    """Return how many candidates a second the enumeration looks at, in one thread after compilation."""
    by_census(scores_of(4, attributes))
    time, counts = seconds(by_census, scores_of(ENUMERATED[attributes], attributes), REPEATS)
    return sum(counts) / time


def apart(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


if __name__ == "__main__":
    print("| d | candidates/s, enumerated | m | CPU s, dynamic program | candidates/s | peak MB |")
    print("|---|---|---|---|---|---|")
    for d, sizes in ((4, (8, 12, 16, 20, 24, 30)), (5, (6, 8, 10, 12))):
        rate = apart(enumeration_rate, d)
        for m in sizes:
            took = apart(measure, d, m)
            speed = took.candidates / took.seconds
            print(f"| {d} | {rate:.2g} | {m} | {took.seconds:.3f} | {speed:.2g} | {took.memory / 1e6:.0f} |")
