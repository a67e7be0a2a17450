"""Measure the census by enumeration on 1- and 2-way conjunctions of four attributes.

Rates are of one thread, after compilation, with the tables included. The ratios are taken within one
run, on an instance that the two slow programs can do; all three must give the same histogram.
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations, product
from time import perf_counter

import numpy as np
from numba import njit

from smalldb import multisets
from smalldb.counting.enumeration import enumerate_scores
from smalldb.counting.scores import Scores

ATTRIBUTES = 4
N = 48842


def scores_of(rows: int) -> Scores:
    """Pose the instance: all 1- and 2-way conjunctions, a fixed random histogram."""
    cells = np.array(list(product((0, 1), repeat=ATTRIBUTES)))
    chosen = [c for width in (1, 2) for c in combinations(range(ATTRIBUTES), width)]
    matrix = np.array([cells[:, c].all(axis=1) for c in chosen]).astype(np.int64)
    source = np.random.default_rng(0)
    data = source.multinomial(N, source.dirichlet(np.full(len(cells), 0.7)))
    return Scores.build(matrix, matrix @ data, N, rows)


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


def by_numpy(scores: Scores, chunk: int = 1 << 14) -> tuple[int, ...]:
    """Count with numpy, a chunk of multisets at a time: the same order, found by binomials."""
    cells, rows = len(scores.cells), scores.rows
    total = multisets.count(cells, rows)
    spread = [[multisets.count(c, r) for r in range(rows + 1)] for c in range(1, cells)]
    sizes = np.array([[1] + [0] * rows, *spread])  # by how many cells are left, and rows
    histogram = np.zeros(len(scores.levels), dtype=np.int64)
    for start in range(0, total, chunk):
        index = np.arange(start, min(start + chunk, total))
        left = np.full(len(index), rows)
        answers = np.zeros((len(index), scores.weights.shape[1]), dtype=np.int64)
        for cell in range(cells):
            ends = np.cumsum(sizes[cells - cell - 1])  # the more copies of this cell, the earlier
            rest = np.searchsorted(ends, index, side="right")
            index = index - np.concatenate(([0], ends))[rest]
            answers += (left - rest)[:, None] * scores.weights[cell]
            left = rest
        top = scores.ranks[scores.offsets[:-1] + answers].max(axis=1)
        histogram += np.bincount(top, minlength=len(histogram))
    return tuple(histogram.tolist())


def by_census(scores: Scores) -> tuple[int, ...]:
    """Count with the engine on one thread."""
    return enumerate_scores(scores, threads=1).counts


def seconds(
    program: Callable[[Scores], tuple[int, ...]], scores: Scores, repeats: int
) -> tuple[float, tuple[int, ...]]:
    """Return the least time of some runs, and the histogram."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        found = program(scores)
        times.append(perf_counter() - start)
    return min(times), found


def memory(rows: int) -> None:
    """Print the peak memory of this process in bytes, and by how much one census raised it."""
    by_census(scores_of(4))  # load and compile
    before = peak_memory()
    by_census(scores_of(rows))
    print(peak_memory(), peak_memory() - before)


def peak_memory() -> int:
    """Return the peak resident size of this process (Linux: a child starts at its parent's)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=16, help="rows of the timed census")
    parser.add_argument("--short", type=int, default=12, help="rows of the census that should be instant")
    parser.add_argument("--small", type=int, default=10, help="rows of the comparison")
    parser.add_argument("--large", type=int, default=18, help="rows of the census whose memory is measured")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory is not None:
        memory(arguments.memory)
        return

    def total(rows: int) -> int:
        return multisets.count(1 << ATTRIBUTES, rows)

    def line(what: str, candidates: int, value: str) -> None:
        print(f"{what:<28}{candidates:>14,}  {value}")

    # first of all, while this process is small
    command = [sys.executable, __file__, "--memory", str(arguments.large)]
    sizes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    peak, grown = (f"{int(size) / 1e6:.0f} MB" for size in sizes)
    print(f"{'':<28}{'candidates':>14}")
    line(f"census, m={arguments.large}", total(arguments.large), f"peak memory {peak}, raised by {grown}")
    for program in (by_census, by_odometer):
        program(scores_of(4))  # compile
    slowest = {}
    for name, program, repeats in [
        ("numpy, in chunks", by_numpy, 1),
        ("plain odometer", by_odometer, arguments.repeats),
        ("census", by_census, arguments.repeats),
    ]:
        time, found = seconds(program, scores_of(arguments.small), repeats)
        slowest[name] = time, found
        line(f"{name}, m={arguments.small}", total(arguments.small), f"{total(arguments.small) / time:.3g}/s")
    if len({found for _, found in slowest.values()}) != 1:
        sys.exit("the histograms differ")
    for rows in (arguments.short, arguments.rows):
        time, _ = seconds(by_census, scores_of(rows), arguments.repeats)
        rate = total(rows) / time
        ratios = ", ".join(
            f"{rate * slowest[name][0] / total(arguments.small):.0f} x {name}"
            for name in ("plain odometer", "numpy, in chunks")
        )
        line(f"census, m={rows}", total(rows), f"{time:.3f} s, {rate:.3g}/s, {ratios}")


if __name__ == "__main__":
    main()
