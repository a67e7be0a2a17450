"""Kill a census with a checkpoint 50 times, at least 10 of them inside a write; every result is the same.

    nice -n 10 python tests/kills.py [KILLS] [SECONDS]

Not run in CI: it takes about KILLS times SECONDS. Each time the census starts in an empty folder, is killed
after a number of finished parts (spread over all of them, of a fixed seed), every other time as soon as a
file is then seen half-written, and is started again, to its end.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import smalldb
from queries import Conjunctions

PARTS = 400
CODE = "import sys, kills; kills.work(int(sys.argv[1]), sys.argv[2])"


def same(found, expected):
    """Whether two censuses are the same to the last count."""
    return found.levels.tolist() == expected.levels.tolist() and found.counts == expected.counts


def work(rows, folder=None):
    """Enumerate, in one thread, the small databases of that many rows over 16 cells."""
    table = np.random.default_rng(3).integers(0, 2, (1000, 4))
    frame = pd.DataFrame(table, columns=list("abcd"))
    given = {"rows": rows, "engine": "enumeration", "threads": 1, "shards": PARTS}
    return smalldb.census(frame, Conjunctions(2), checkpoint=folder, **given)


def state(folder):
    """How many parts are finished, and whether one is half-written."""
    names = os.listdir(folder) if folder.exists() else []
    return sum(name.endswith(".shard") for name in names), any(name.endswith(".part") for name in names)


def killed(command, folder, at, into_a_write):
    """Start a command, kill it after `at` more parts; return whether in a write, or None if it ended."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    at += state(folder)[0]
    child = subprocess.Popen([sys.executable, "-c", *command], env=environment)
    while child.poll() is None:
        done, writing = state(folder)
        if done >= at and (writing or not into_a_write):
            break
        time.sleep(0 if done >= at else 0.002)
    child.send_signal(signal.SIGKILL)
    if child.wait() == 0:
        return None
    if child.returncode != -signal.SIGKILL:
        raise RuntimeError("the work failed before it was killed")
    return state(folder)[1]


def main(kills, seconds):
    """Find a census that takes so long; kill it, go on, compare."""
    rows, took = 9, 0.0
    while took < seconds:
        rows += 1
        expected = work(rows)
        with tempfile.TemporaryDirectory() as within:
            begun = time.monotonic()
            work(rows, Path(within, "kept"))
            took = time.monotonic() - begun
    print(f"{rows} rows, {expected.total:,} candidates, {took:.0f} s undisturbed", flush=True)
    chance, inside, equal = random.Random(7), 0, 0
    for number in range(kills):
        with tempfile.TemporaryDirectory() as within:
            folder = Path(within, "kept")
            at = (number * (PARTS - 1) + chance.randrange(PARTS - 1)) // kills
            half = killed([CODE, str(rows), str(folder)], folder, at, into_a_write=number % 2 == 1)
            if half is None:
                raise SystemExit("the census ended before it was killed")
            inside += half
            left = PARTS - state(folder)[0]
            equal += same(work(rows, folder), expected)
        print(f"{number + 1} kills ({left} parts left), {inside} inside a write, {equal} equal", flush=True)
    raise SystemExit(0 if equal == kills and inside >= kills // 5 else 1)


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*given, *[50, 20][len(given) :])
