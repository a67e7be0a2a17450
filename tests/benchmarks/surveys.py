"""Rejection by name on tables like surveys: seconds of a release's build and draw, over tables and draws.

    python tests/benchmarks/surveys.py                    # a quarter of an hour
    python tests/benchmarks/surveys.py --kinds scale chain --seeds 3 --draws 2
    python tests/benchmarks/surveys.py --trials           # of stars, beside those of trees: a minute

16 strongly correlated attributes of 1,000 rows, epsilon 1, 20 rows, all 1- and 2-way conjunctions: c is 25.
The goal is below 5 s, after compilation. Bits are the system's, as in a release, so each run draws others.
"""

import argparse
import time
from fractions import Fraction

import frontier
import numpy as np
import pandas as pd

from queries import Domain, Rows
from queries.spec import parse
from smalldb.exact.bits import SystemBits
from smalldb.rejection import relaxation
from smalldb.rejection.sampler import MANY, tuple_sampler
from smalldb.rejection.star_trees import has_own_trials

ATTRIBUTES, N, ROWS, GOAL = 16, 1000, 20, 5


def turned(draws, bits, part):
    """Some entries turned over."""
    return bits ^ (draws.random((N, ATTRIBUTES)) < part)


def factors(draws, hidden, spread):
    """Items that are agreed to where a hidden number and noise pass each one's height."""
    noise = draws.normal(size=(N, ATTRIBUTES)) * spread
    return hidden + noise > draws.normal(size=ATTRIBUTES) * 0.6


def chain(draws):
    """Each attribute is the one before it in most rows."""
    bits = draws.random((N, ATTRIBUTES)) < 0.5
    for i in range(1, ATTRIBUTES):
        bits[:, i] = np.where(draws.random(N) < 0.1, bits[:, i], bits[:, i - 1])
    return bits


def classes(draws):
    """Two classes of rows, each with its own rates."""
    rates = draws.uniform(0.1, 0.9, (2, ATTRIBUTES))
    return draws.random((N, ATTRIBUTES)) < rates[draws.integers(0, 2, N)]


KINDS = {
    "scale": lambda draws: turned(draws, draws.random((N, 1)) > np.linspace(0.1, 0.9, ATTRIBUTES), 0.03),
    "factor": lambda draws: factors(draws, draws.normal(size=(N, 1)), 0.7),
    "blocks": lambda draws: factors(draws, 1.5 * draws.normal(size=(N, 4)).repeat(4, axis=1), 0.6),
    "chain": chain,
    "nearly equal": lambda draws: turned(draws, draws.random((N, 1)) < 0.4, 0.05),
    "two classes": classes,
}


def counted(bits):
    """Return the workload and the answers of the data."""
    domain = Domain([f"x{i}" for i in range(ATTRIBUTES)])
    workload = parse("conjunctions:2").workload(domain)
    frame = pd.DataFrame(bits, columns=list(domain.attributes)).astype(np.uint8)
    return workload, workload.answers(Rows.from_frame(domain, frame))


def taken(bits):
    """Build and draw once: seconds of the clock and of the processors."""
    workload, answers = counted(bits)
    clock, worked = time.perf_counter(), time.process_time()
    tuple_sampler(workload, answers, N, ROWS, Fraction(1)).draw(SystemBits())
    return time.perf_counter() - clock, time.process_time() - worked


def trials(kind, seed):
    """Microseconds of a trial, all layers counted: where stars have trials of their own, and as trees."""
    workload, answers = counted(KINDS[kind](np.random.default_rng(seed)))
    samplers, seconds = [], {}
    for own in (has_own_trials, lambda target, tree: False):
        relaxation.has_own_trials = own
        sampler = tuple_sampler(workload, answers, N, ROWS, Fraction(1))
        for _ in range(2):
            sampler._refine(10_000_000)
        sampler._finished, sampler._tossed = True, lambda lane, source: None  # no candidate ends the batch
        samplers.append(sampler)
    for _ in range(7):
        for position, sampler in enumerate(samplers):
            clock = time.perf_counter()
            sampler._first_kept(MANY, SystemBits())
            seconds.setdefault(position, []).append(time.perf_counter() - clock)
    own, other = (np.median(times[1:]) / MANY * 1e6 for times in seconds.values())
    layers = len(samplers[0]._mixture.stars)
    print(f"{kind}: {layers} layers of stars; {own:.2f} us a trial, {other:.2f} as trees: {own / other:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--trials", action="store_true")
    options = parser.parse_args()
    frontier.seconds(frontier.latent(np.random.default_rng(0), 4, 40), "conjunctions:2", 4, 1000)  # compiles
    taken(KINDS["nearly equal"](np.random.default_rng(0)))  # compiles what stars take
    if options.trials:
        trials("two classes", 4)
        trials("nearly equal", 1)
        return
    for kind in options.kinds:
        tables = [KINDS[kind](np.random.default_rng(seed)) for seed in range(options.seeds)]
        clock, worked = np.array([taken(bits) for bits in tables for _ in range(options.draws)]).T
        print(
            f"{kind:13} {len(clock)} releases: median {np.median(clock):4.1f} s, mean {clock.mean():4.1f} s, "
            f"nine of ten within {np.quantile(clock, 0.9):4.1f} s, worst {clock.max():4.1f} s; "
            f"CPU in the mean {worked.mean():4.1f} s; {(clock >= GOAL).sum()} miss the goal of {GOAL} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
