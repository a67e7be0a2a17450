"""Head and tail over tables of many kinds.

python tests/benchmarks/head_and_tail.py [--data FILE.csv ...]

For each instance the worst and the median over all tables: the work, operations of the dynamic program and
trials together; seconds to prepare and to draw once, in one thread, after compilation; and states met. How
`smalldb.rejection.head_and_tail.ROWS` was made: docs/performance.md. An instance
is let in where the worst stays below a fourth of the budget.
"""

import argparse
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from statistics import median
from time import process_time
from typing import NamedTuple

import numpy as np
import pandas as pd

from queries import Conjunctions, Domain, Marginals, Rows
from smalldb.counting.cost import OPERATIONS
from smalldb.exact.bits import SeededBits
from smalldb.rejection.head_and_tail import PILOT, ROWS, TRIAL, expected_trials, multiset_sampler, propose

N = 1000
SCALES = (4, 10, 25, 60, 150)  # c = epsilon n / 2m


class Measured(NamedTuple):
    """What one table took."""

    work: float
    trials: float
    states: int
    prepared: float
    drawn: float


def tables(attributes: int, rows: int, seed: int, files: list[pd.DataFrame]) -> Iterator[np.ndarray]:
    """Yield tables of `N` rows: coins, latent classes, nearly constant ones, and samples."""
    generator = np.random.default_rng(seed)
    shape = N, attributes
    yield generator.random(shape) < 0.5
    yield generator.random(shape) < (rows // 2 + 0.5) / rows  # ones: halfway between whole numbers
    yield generator.random(shape) < generator.random(attributes)
    classes = generator.beta(0.5, 0.5, (4, attributes))
    yield generator.random(shape) < classes[generator.integers(0, 4, N)]
    yield (generator.random(shape) < 0.5) | (np.arange(N) >= N // 20)[:, None]
    yield generator.random(shape) < 0.03
    for frame in files:
        if frame.shape[1] >= attributes:
            columns = generator.choice(frame.shape[1], attributes, replace=False)
            yield frame.iloc[generator.choice(len(frame), N), columns].to_numpy()


def measure(queries: Conjunctions | Marginals, table: np.ndarray, rows: int, scale: int) -> Measured:
    """Prepare a sampler for one table and draw once."""
    frame = pd.DataFrame(table.astype(int), columns=[f"x{i}" for i in range(table.shape[1])])
    data = Rows.from_frame(Domain(frame.columns), frame)
    workload = queries.workload(data.domain)
    started = process_time()
    found = multiset_sampler(workload, workload.answers(data), N, rows, Fraction(2 * rows * scale, N))
    prepared = process_time() - started
    trials = expected_trials(found, propose(found.scores, PILOT, SeededBits(1)).scores)
    cost = found.cost
    started = process_time()
    if trials < 1e7:
        found.draw(SeededBits(2))
    drawn = process_time() - started
    return Measured(cost.operations + TRIAL * trials, trials, cost.states, prepared, drawn)


def main() -> None:
    """Print a line for each instance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="*", default=["examples/autoworkers.csv", "examples/titanic.csv"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--back", type=int, default=2, help="how many numbers of rows below the most")
    arguments = parser.parse_args()
    files = [pd.read_csv(file) for file in arguments.data]
    titles = "queries", "d", "m", "c", "median work", "worst", "trials", "states", "prepare", "draw"
    print("{:>16}{:>4}{:>5}{:>6}{:>12}{:>10}{:>9}{:>9}{:>9}{:>8}".format(*titles))
    for d, kinds in ROWS.items():
        for kind, most in kinds:
            for rows, scale in product(range(most - arguments.back, most + 1), SCALES):
                found = [
                    measure(kind, table, rows, scale)
                    for seed in range(arguments.seeds)
                    for table in tables(d, rows, seed, files)
                ]
                work, trials, states, prepared, drawn = map(max, zip(*found, strict=True))
                print(
                    f"{kind.text:>16}{d:4}{rows:5}{scale:6}{median(m.work for m in found):12.1e}{work:10.1e}"
                    f"{trials:9.1e}{states:9.1e}{prepared:9.2f}{drawn:8.2f}"
                    f"{'' if work < OPERATIONS / 4 else '  beyond the margin'}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
