"""Cost of the census by enumeration: ``python tests/benchmarks/enumeration.py [--data FILE.csv]``.

All 1- and 2-way conjunctions of four attributes; a random histogram of 48,842 rows, or the first columns of a
CSV of 0/1 columns. Rates are CPU time of one thread, after compilation, with the tables included, the best of
some runs. The ratios are taken within one run, on an instance that the two slow programs can do; all must
give the same histogram.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from numba import njit

from queries import Conjunctions, Domain
from smalldb.counting import multisets
from smalldb.counting.enumeration_engine import enumerate_scores
from smalldb.counting.scores import Scores

ATTRIBUTES = 4
N = 48842


def histogram(attributes: int, data: str | None) -> np.ndarray:
    """Return counts over the cells, first attribute most significant."""
    cells = 1 << attributes
    if data is None:
        source = np.random.default_rng(0)
        return source.multinomial(N, source.dirichlet(np.full(cells, 0.7)))
    columns = pd.read_csv(data).iloc[:, :attributes].to_numpy(dtype=np.int64)
    return np.bincount(columns @ (1 << np.arange(attributes)[::-1]), minlength=cells)


def scores_of(rows: int, data: str | None, attributes: int = ATTRIBUTES, width: int = 2) -> Scores:
    """Pose the instance: all conjunctions up to a width."""
    matrix = Conjunctions(width).workload(Domain([f"a{i}" for i in range(attributes)])).matrix()
    counts = histogram(attributes, data)
    return Scores.build(matrix, matrix @ counts, int(counts.sum()), rows)


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
    """Return the least CPU time of some runs, and the histogram."""
    times = []
    for _ in range(repeats):
        start = process_time()
        found = program(scores)
        times.append(process_time() - start)
    return min(times), found


def memory(rows: int, data: str | None) -> None:
    """Print the peak memory of this process in bytes, before a census and after it."""
    by_census(scores_of(4, data))  # load and compile
    before = peak_memory()
    by_census(scores_of(rows, data))
    print(before, peak_memory())


def peak_memory() -> int:
    """Return the peak resident size of this process in bytes (in getrusage a child has its parent's)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="CSV whose first columns are 0 or 1")
    parser.add_argument("--rows", type=int, default=16, help="rows of the timed census")
    parser.add_argument("--short", type=int, default=12, help="rows of the census that should be instant")
    parser.add_argument("--small", type=int, default=10, help="rows of the comparison")
    parser.add_argument("--large", type=int, default=18, help="rows of the census whose memory is measured")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory is not None:
        memory(arguments.memory, arguments.data)
        return

    command = [sys.executable, __file__, "--memory", str(arguments.large)]
    if arguments.data is not None:
        command += ["--data", arguments.data]
    sizes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    libraries, peak = (int(size) / 1e6 for size in sizes)

    print("| program | m | candidates | CPU s | candidates/s | times odometer | times numpy |")
    print("|" + "---|" * 7)
    for program in (by_census, by_odometer):
        program(scores_of(4, arguments.data))  # compile
    rates: dict[str, float] = {}
    histograms = set()

    def measure(name: str, program: Callable[[Scores], tuple[int, ...]], rows: int) -> tuple[float, float]:
        time, found = seconds(program, scores_of(rows, arguments.data), arguments.repeats)
        total = multisets.count(1 << ATTRIBUTES, rows)
        rates[name] = total / time
        if rows == arguments.small:
            histograms.add(found)
        ratios = [
            f"{rates[name] / rates[other]:.0f}" if other in rates else ""
            for other in ("plain njit odometer", "chunked numpy")
        ]
        print(f"| {name} | {rows} | {total:,} | {time:.3f} | {rates[name]:.3g} |", " | ".join(ratios), "|")
        return time, rates[name]

    measure("chunked numpy", by_numpy, arguments.small)
    measure("plain njit odometer", by_odometer, arguments.small)
    measure("census", by_census, arguments.small)
    if len(histograms) != 1:
        sys.exit("the histograms differ")
    short, _ = measure("census", by_census, arguments.short)
    _, rate = measure("census", by_census, arguments.rows)

    print("\n| goal | allowed | measured | |")
    print("|---|---|---|---|")
    odometers, chunks = rate / rates["plain njit odometer"], rate / rates["chunked numpy"]
    large = f"MB that {multisets.count(1 << ATTRIBUTES, arguments.large):,} candidates add to the libraries"
    for what, least, found, met in [
        (f"candidates/s, m={arguments.rows}", "at least 5e8", f"{rate:.3g}", rate >= 5e8),
        ("times plain njit odometer", "at least 8", f"{odometers:.0f}", odometers >= 8),
        ("times chunked numpy", "at least 300", f"{chunks:.0f}", chunks >= 300),
        (f"CPU s, m={arguments.short}", "below 0.2", f"{short:.3f}", short < 0.2),
        (large, "below 100", f"{peak - libraries:.0f} to {libraries:.0f}", peak - libraries < 100),
    ]:
        print(f"| {what} | {least} | {found} | {'met' if met else 'missed'} |")


if __name__ == "__main__":
    main()
