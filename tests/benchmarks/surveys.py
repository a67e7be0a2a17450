"""Rejection by name on tables like surveys: processor seconds of a release's draw, median and worst.

    python tests/benchmarks/surveys.py                    # half an hour
    python tests/benchmarks/surveys.py --kinds scale chain --seeds 3 --limit 20

16 strongly correlated attributes of 1,000 rows, epsilon 1, 20 rows, all 1- and 2-way conjunctions: c is 25.
The goal is below 5 s, build and draw together, after compilation.
"""

import argparse
import signal

import frontier
import numpy as np

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--limit", type=float, default=60)
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, frontier._stop)
    frontier.seconds(frontier.latent(np.random.default_rng(0), 4, 40), "conjunctions:2", 4, 1000)  # compiles
    for kind in options.kinds:
        found = []
        for seed in range(options.seeds):
            bits = KINDS[kind](np.random.default_rng(seed))
            taken = frontier.seconds(bits, "conjunctions:2", ROWS, options.limit)
            found.append(options.limit if taken is None else taken)
        met = "met" if max(found) < GOAL else "missed"
        late = sum(taken >= options.limit for taken in found)
        print(
            f"{kind:13} median {np.median(found):5.1f} s, worst {max(found):5.1f} s"
            f" ({late} of {options.seeds} cut off at {options.limit:g} s): goal of {GOAL} s {met}",
            flush=True,
        )


if __name__ == "__main__":
    main()
