"""Rejection from a k-tree relaxation: time to build, time and trials a draw, memory, on one core.

    python tests/benchmarks/rejection.py --data FILE      # a 0/1 table of at least 14 columns and 1000 rows

Seconds are processor time after compilation. Each line is a workload of all 1- and 2-way conjunctions on
subsamples of a table (the median over them, and the worst); tables of 16, 24 and 48 attributes are made here,
from a seed. Each line runs in a process of its own, so that the peak of its memory is known.
"""

import argparse
import math
import resource
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from census import apart

from queries import Conjunctions, Domain, Rows
from smalldb.exact.bits import SeededBits
from smalldb.rejection.sampler import tuple_sampler

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "autoworkers.csv"
LINES = [  # table, attributes, n, epsilon, rows
    *(("data", d, 1000, "1", 20) for d in (8, 10, 12, 14)),
    *(("data", d, 1000, "1/5", 20) for d in (8, 10, 12, 14)),
    *(("data", d, 1000, "1", 30) for d in (8, 10, 12, 14)),
    ("autoworkers", 6, None, "1", 20),
    ("autoworkers", 6, None, "1", 30),
    ("latent", 16, 1000, "3/5", 20),
    ("latent", 24, 1000, "2/5", 20),
    ("latent", 48, 1000, "1/5", 20),
]


def latent(attributes, rows, seed):
    """Rows of three classes, each with its own rates."""
    draws = np.random.default_rng(seed)
    rates = draws.uniform(0.1, 0.9, (3, attributes))
    return (draws.random((rows, attributes)) < rates[draws.integers(0, 3, rows)]).astype(np.uint8)


def table(name, attributes, n, seed, data):
    """A subsample."""
    if name == "latent":
        frame = pd.DataFrame(latent(attributes, n, seed), columns=[f"a{i}" for i in range(attributes)])
    else:
        frame = pd.read_csv(EXAMPLE if name == "autoworkers" else data).iloc[:, :attributes]
    return frame if n is None or len(frame) == n else frame.sample(n, random_state=seed)


def measure(name, attributes, n, epsilon, rows, seed, draws, data):
    """One subsample: build, then draws until there are enough or a minute has passed."""
    frame = table(name, attributes, n, seed, data)
    domain = Domain(list(frame.columns))
    workload = Conjunctions(2).workload(domain)
    answers = workload.answers(Rows.from_frame(domain, frame))
    arguments = workload, answers, len(frame), rows, Fraction(epsilon)
    source = SeededBits(seed)
    tuple_sampler(workload, answers, len(frame), rows, Fraction(4, len(frame))).draw(source)  # compiles
    start = time.process_time()
    made = tuple_sampler(*arguments)
    built = time.process_time() - start
    times, errors = [], []
    while len(times) < draws and sum(times) < 60:
        start = time.process_time()
        errors.append(made.draw(source)[1] / len(frame) / rows)
        times.append(time.process_time() - start)
    return {
        "c": float(Fraction(epsilon) * len(frame) / (2 * rows)),
        "build": built,
        "first": times[0],
        "draw": float(np.median(times)),
        "mean": float(np.mean(times)),
        "trials": made.trials / len(times),
        "error": float(np.mean(errors)),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="a CSV of 0/1 columns; without it only the other tables are measured")
    parser.add_argument("--subsamples", type=int, default=5)
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    print(f"{'table':12}{'d':>3}{'m':>4}{'c':>6}{'log10 |R|':>10}{'build':>7}{'draw':>8}{'worst':>8}", end="")
    print(f"{'trials':>9}{'|R| / s':>9}{'error':>8}{'MiB':>6}")
    for line in LINES:
        name, attributes, _, _, rows = line
        if name == "data" and not options.data:
            continue
        found = [
            apart(measure, *line, seed, options.draws, options.data) for seed in range(options.subsamples)
        ]
        middle = {key: float(np.median([one[key] for one in found])) for key in found[0]}
        size = attributes * rows * math.log10(2)
        print(
            f"{name:12}{attributes:3}{rows:4}{middle['c']:6.1f}{size:10.0f}{middle['build']:7.2f}"
            f"{middle['draw']:8.4f}{max(one['draw'] for one in found):8.4f}{middle['trials']:9.0f}"
            f"   1e{size - math.log10(middle['mean']):<4.0f}{middle['error']:8.4f}"
            f"{max(one['peak'] for one in found):6.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
