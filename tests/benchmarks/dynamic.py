"""Cost of the census by dynamic programming: ``python tests/benchmarks/dynamic.py [--data FILE.csv]``.

Data: a random histogram of 48,842 rows, or the first columns of a CSV of 0/1 columns. Each instance runs in a
process of its own, in one thread, after compilation, with the layers kept for draws. CPU time is the best of
three runs; memory is the process's peak after the first, libraries included; a draw is the slowest of twenty
after the first, in CPU time.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from enumeration import by_census, peak_memory, scores_of, seconds

from smalldb.counting.dynamic_engine import count_scores
from smalldb.counting.recursion import key_bits
from smalldb.counting.scores import count
from smalldb.exact.bits import bit_source
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level

REPEATS = 3
DRAWS = 20
ENUMERATED = {4: 14, 5: 8}  # attributes: rows for the enumeration's rate, 6e7 to 8e7 candidates


class Instance(NamedTuple):
    """Small databases of some rows over some attributes, and all conjunctions up to a width."""

    attributes: int
    rows: int
    width: int
    candidates: str = "multisets"

    @property
    def total(self) -> int:
        """|R|."""
        return count(1 << self.attributes, self.rows, self.candidates)


class Measured(NamedTuple):
    """What an instance took; memory in bytes."""

    queries: int
    bits: int
    seconds: float
    operations: int
    states: int
    memory: int
    draw: float


TABLES = {
    "Growth with m": [Instance(4, rows, 2) for rows in (8, 12, 16, 20, 24, 30)],
    "Growth with k": [Instance(4, 16, width) for width in (1, 2, 3, 4)],
    "Five attributes": [
        *(Instance(5, rows, 1) for rows in (10, 15, 20)),
        *(Instance(5, rows, 2) for rows in (6, 8, 10, 12)),
    ],
    "Ordered rows": [Instance(*shape, "tuples") for shape in ((4, 12, 2), (4, 16, 2), (5, 16, 1))],
}
HEAD = (
    "| d | m | width | k | candidates | CPU s | operations | ns each | states kept | key bits | peak MB "
    "| draw ms | candidates/s | times enumeration |"
)


def measure(instance: Instance, data: str | None) -> Measured:
    """Count after compilation, and draw."""
    draws(Instance(3, 3, 2, instance.candidates), None, 1)
    scores = scores_of(instance.rows, data, instance.attributes, instance.width)
    times, (states, operations, draw) = [], draws(instance, data, DRAWS)
    memory = peak_memory()
    for _ in range(REPEATS):
        start = process_time()
        counted = count_scores(scores, candidates=instance.candidates, threads=1, keep_layers=True)
        times.append(process_time() - start)
        assert sum(counted.counts) == instance.total
        del counted  # its layers would stand beside the next
    queries = scores.weights.shape[1]
    return Measured(queries, key_bits(scores), min(times), operations, states, memory, draw)


def draws(instance: Instance, data: str | None, number: int) -> tuple[int, int, float]:
    """Count once; return states, operations and the longest CPU time of some draws, level and candidate."""
    scores = scores_of(instance.rows, data, instance.attributes, instance.width)
    counted = count_scores(scores, candidates=instance.candidates, threads=1, keep_layers=True)
    source, times = bit_source(0), []
    for _ in range(1 + number):
        start = process_time()
        levels = {level: n for level, n in zip(scores.levels.tolist(), counted.counts, strict=True) if n}
        level = draw_level(levels, Fraction(1, 2 * instance.rows), source)
        rank = int(np.searchsorted(scores.levels, level))
        counted.candidate(rank, uniform_below(levels[level], source))
        times.append(process_time() - start)
    return counted.cost.states, counted.cost.operations, max(times[1:])


def enumeration_rate(attributes: int, width: int, data: str | None) -> float:
    """Return how many candidates a second the enumeration looks at, in one thread after compilation."""
    by_census(scores_of(4, data, attributes, width))
    scores = scores_of(ENUMERATED[attributes], data, attributes, width)
    time, counts = seconds(by_census, scores, REPEATS)
    return sum(counts) / time


def apart(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="CSV whose first columns are 0 or 1")
    data = parser.parse_args().data

    rates: dict[tuple[int, int], float] = {}
    found: dict[Instance, Measured] = {}
    gains: dict[Instance, float] = {}
    for title, instances in TABLES.items():
        print(f"\n{title}\n\n{HEAD}\n|{'---|' * (HEAD.count('|') - 1)}")
        for instance in instances:
            attributes, rows, width, candidates = instance
            if instance not in found:
                found[instance] = apart(measure, instance, data)
            took = found[instance]
            rate = instance.total / took.seconds
            if candidates == "multisets":
                if (attributes, width) not in rates:
                    rates[attributes, width] = apart(enumeration_rate, attributes, width, data)
                gains[instance] = rate / rates[attributes, width]
            values = [
                *(str(value) for value in (attributes, rows, width, took.queries)),
                f"{instance.total:.2g}",
                f"{took.seconds:.3f}",
                f"{took.operations:.2g}",
                f"{1e9 * took.seconds / took.operations:.0f}",
                f"{took.states:.2g}",
                str(took.bits),
                f"{took.memory / 1e6:.0f}",
                f"{1000 * took.draw:.1f}",
                f"{rate:.2g}",
                f"{gains[instance]:.2g}" if instance in gains else "",
            ]
            print(f"| {' | '.join(values)} |", flush=True)

    print("\nEnumeration\n\n| d | m | width | candidates/s |\n|---|---|---|---|")
    for (attributes, width), rate in rates.items():
        print(f"| {attributes} | {ENUMERATED[attributes]} | {width} | {rate:.2g} |")

    spent = 1e8 / rates[4, 2]
    allowed = max(0.5, 3 * spent)
    four, five = found[Instance(4, 20, 2)].seconds, found[Instance(5, 20, 1)].seconds
    large = found[Instance(4, 30, 2)].memory / 1e6
    least = min(gain for instance, gain in gains.items() if instance.total >= 10**9)
    slowest = 1000 * max(took.draw for took in found.values())
    print("\n| goal | allowed | measured | |\n|---|---|---|---|")
    for what, limit, value, met in [
        (
            f"CPU s, d=4 m=20 width 2 (enumerating 1e8 candidates: {spent:.2f})",
            f"at most {allowed:.2f}",
            f"{four:.3f}",
            four <= allowed,
        ),
        ("CPU s, d=5 m=20 width 1", "at most 2", f"{five:.3f}", five <= 2),
        ("peak MB, d=4 m=30 width 2", "below 1000", f"{large:.0f}", large < 1000),
        ("times enumeration, from 1e9 candidates up", "at least 10", f"{least:.2g}", least >= 10),
        ("draw, ms", "below 50", f"{slowest:.1f}", slowest < 50),
    ]:
        print(f"| {what} | {limit} | {value} | {'met' if met else 'missed'} |")


if __name__ == "__main__":
    main()
