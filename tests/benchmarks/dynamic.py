"""Cost of the census by dynamic programming: ``python tests/benchmarks/dynamic.py [--data FILE.csv]``.

Data: a random histogram of 48,842 rows, or the first columns of a CSV of 0/1 columns. Each instance runs in a
process of its own, in one thread, after compilation; memory is the process's peak, libraries included.
"""

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from math import comb
from multiprocessing import get_context

import numpy as np
import pandas as pd

from queries import Conjunctions, Domain
from smalldb.counting.dynamic import count_scores, key_bits, settling_order
from smalldb.counting.scores import Scores

GOALS = {(4, 20, 2): "0.5 s", (5, 20, 1): "2 s", (4, 30, 2): "1 GB"}
INSTANCES = [  # attributes, rows, width of the conjunctions
    *GOALS,
    *((4, rows, 2) for rows in (8, 12, 16, 24)),
    *((4, 16, width) for width in (1, 3, 4)),
    *((5, rows, 2) for rows in (6, 8, 10, 12)),
    *((5, rows, 1) for rows in (10, 15)),
]
TUPLES = [(4, 12, 2), (4, 16, 2), (5, 16, 1)]
ENUMERATED = {4: 14, 5: 8}  # attributes: rows for the enumeration's rate, 6e7 to 8e7 candidates
HEAD = (
    "d | m | k | candidates | number | key bits | CPU s | operations | ns each | states kept | peak MB "
    "| draw ms | candidates/s | times enumeration | goal"
)


def histogram(attributes: int, data: str | None) -> np.ndarray:
    """Return counts over the cells, first attribute most significant."""
    cells = 1 << attributes
    if data is None:
        generator = np.random.default_rng(0)
        return generator.multinomial(48842, generator.dirichlet(np.full(cells, 0.7)))
    columns = pd.read_csv(data).iloc[:, :attributes].to_numpy(dtype=np.int64)
    return np.bincount(columns @ (1 << np.arange(attributes)[::-1]), minlength=cells)


def scores_of(attributes: int, rows: int, width: int, data: str | None) -> Scores:
    """Build the scores of all conjunctions, cells in settling order."""
    domain = Domain([f"a{i}" for i in range(attributes)])
    matrix = Conjunctions(width).workload(domain).matrix()
    counts = histogram(attributes, data)
    scores = Scores.build(matrix, matrix @ counts, int(counts.sum()), rows)
    order = settling_order(scores.weights.T)
    return replace(scores, cells=scores.cells[order], weights=scores.weights[order])


def measure(
    attributes: int, rows: int, width: int, candidates: str, data: str | None, rate: float | None
) -> str:
    """Count once after compilation and draw ten candidates; return one row of the table."""
    warm = count_scores(scores_of(3, 3, 2, None), candidates=candidates, threads=1, keep_layers=True)
    warm.candidate(int(np.flatnonzero(warm.counts)[0]), 0)
    scores = scores_of(attributes, rows, width, data)
    start = time.process_time()
    counted = count_scores(scores, candidates=candidates, threads=1, keep_layers=True)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    best = next(rank for rank, count in enumerate(counted.counts) if count)
    common = max(range(len(counted.counts)), key=counted.counts.__getitem__)
    start = time.perf_counter()
    for i in range(5):
        for rank in (best, common):
            counted.candidate(rank, (counted.counts[rank] - 1) * i // 4)
    draw = (time.perf_counter() - start) / 10
    total = sum(counted.counts)
    cells = 1 << attributes
    assert total == (comb(cells + rows - 1, rows) if candidates == "multisets" else cells**rows)
    columns = [
        str(attributes),
        str(rows),
        str(scores.weights.shape[1]),
        candidates,
        f"{total:.2g}",
        str(key_bits(scores)),
        f"{seconds:.2f}",
        f"{counted.cost.operations:.3g}",
        f"{1e9 * seconds / counted.cost.operations:.0f}",
        f"{counted.cost.states:.3g}",
        f"{memory:.0f}",
        f"{1000 * draw:.1f}",
        f"{total / seconds:.2g}",
        f"{total / seconds / rate:.2g}" if rate else "",
        GOALS.get((attributes, rows, width), ""),
    ]
    return " | ".join(columns)


def enumeration_rate(attributes: int, width: int, data: str | None) -> float:
    """Return how many candidates a second the enumeration looks at, in one thread after compilation."""
    from smalldb.counting.enumeration import enumerate_scores

    enumerate_scores(scores_of(attributes, 4, width, data), threads=1)
    scores = scores_of(attributes, ENUMERATED[attributes], width, data)
    start = time.process_time()
    counted = enumerate_scores(scores, threads=1)
    return sum(counted.counts) / (time.process_time() - start)


def apart(function, *arguments):  # type: ignore[no-untyped-def]
    """Call a function in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="CSV whose first columns are 0 or 1")
    data = parser.parse_args().data
    rates = {
        (attributes, width): apart(enumeration_rate, attributes, width, data)
        for attributes, width in sorted({(attributes, width) for attributes, _, width in INSTANCES})
    }
    print(f"| {HEAD} |")
    print("|" + "---|" * (HEAD.count("|") + 1))
    for attributes, rows, width in INSTANCES:
        rate = rates[attributes, width]
        print("|", apart(measure, attributes, rows, width, "multisets", data, rate), "|", flush=True)
    for instance in TUPLES:
        print("|", apart(measure, *instance, "tuples", data, None), "|", flush=True)
    print("\nEnumeration, candidates/s:")
    for (attributes, width), rate in rates.items():
        print(f"d={attributes} m={ENUMERATED[attributes]}, up to {width}-way: {rate:.2g}")


if __name__ == "__main__":
    main()
