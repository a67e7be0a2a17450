"""SmallDB as a user of a general library writes it: ``python tests/benchmarks/peers.py --python PATH``.

diffprivlib's exponential mechanism and OpenDP's noisy max choose one of a list of utilities, so every small
database needs a position in that list. PATH is the interpreter of an environment that has them:

    python -m venv peers
    peers/bin/pip install diffprivlib opendp numpy 'scikit-learn<1.8'

(diffprivlib 0.6.6 fails to import beside scikit-learn 1.9.) All 1- and 2-way conjunctions of four attributes,
a random histogram of 48,842 rows. Each step runs in a fresh process: making the list (numpy, in chunks), a
draw by each peer from the finished list, a whole release by this package after compilation. CPU time, and the
process's peak memory with libraries. A peer is not tried on longer lists once its process needs over a minute
of CPU time or over 8 GB of address space.
"""

import argparse
import resource
import signal
import subprocess
import sys
from itertools import combinations_with_replacement
from math import comb
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

# only the standard library up here: the peers' environment need have nothing of this package

ROWS = (8, 10, 12, 13, 14, 15, 16, 20)
CELLS = 16
SECONDS = 60
MEMORY = 8 * 10**9
EPSILON = 1.0


def utilities(rows: int, path: str) -> float:
    """Write n m - s(y) for all multisets of rows; return the seconds."""
    import numpy as np
    from enumeration import N, scores_of

    scores = scores_of(rows, None)
    start = process_time()
    ranks, half = N * rows - scores.levels.astype(np.int32)[scores.ranks], CELLS // 2
    origins = scores.offsets[:-1]

    def answers(cells: slice, number: int) -> np.ndarray:
        """Return the answers of all multisets of a number of rows over some cells."""
        positions = [*combinations_with_replacement(range(half), number)]
        return scores.weights[cells][np.array(positions, dtype=np.int64)].sum(axis=1)

    found = np.empty(comb(CELLS + rows - 1, rows), dtype=np.int32)
    position = 0
    for number in range(rows + 1):
        parts = answers(slice(half), number), answers(slice(half, CELLS), rows - number)
        few, many = sorted(parts, key=len)
        for answer in few:
            found[position : position + len(many)] = ranks[many + (origins + answer)].min(axis=1)
            position += len(many)
    seconds = process_time() - start
    np.save(path, found)
    return seconds


def diffprivlib(rows: int, path: str) -> float:
    """Draw by the exponential mechanism; return the seconds."""
    import numpy as np
    from diffprivlib.mechanisms import Exponential

    found = np.load(path)
    start = process_time()
    Exponential(epsilon=EPSILON, sensitivity=rows, utility=found.tolist()).randomise()
    return process_time() - start


def opendp(rows: int, path: str) -> float:
    """Draw by noisy max; return the seconds."""
    import numpy as np
    import opendp.prelude as dp

    dp.enable_features("contrib")
    found = np.load(path)
    start = process_time()
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.linf_distance(T="i32")
    choose = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2 * rows / EPSILON)
    if choose.map(rows) != EPSILON:
        raise ValueError("not the same epsilon")
    choose(found)
    return process_time() - start


def smalldb(rows: int, path: str) -> float:
    """Release from the table of people; return the seconds."""
    import numpy as np
    from enumeration import ATTRIBUTES, histogram

    from queries import Conjunctions, Domain
    from smalldb import release

    domain = Domain([f"a{i}" for i in range(ATTRIBUTES)])
    cells = np.repeat(np.arange(CELLS), histogram(ATTRIBUTES, None))
    frame = domain.decode(domain.table()[cells])
    times = []
    for number in (4, rows):  # the first compiles
        start = process_time()
        release(frame, Conjunctions(2), epsilon=1, rows=number)
        times.append(process_time() - start)
    return times[-1]


def limit() -> None:
    """Keep a child from taking more time and memory than a step may."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def apart(python: str, step: str, rows: int, path: str) -> tuple[str, bool]:
    """Run a step in a fresh process; return its two table entries, and whether it finished."""
    command = [python, __file__, "--step", step, "--rows", str(rows), "--list", path]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    if done.returncode == 0:
        return done.stdout.strip(), True
    if done.returncode == -signal.SIGXCPU:
        return f"over {SECONDS} |", False
    if "MemoryError" in done.stderr or "memory allocation" in done.stderr:
        return f"| over {MEMORY // 10**6}", False
    raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", help="interpreter of an environment with the peers")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--list", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        steps = {step.__name__: step for step in (utilities, diffprivlib, opendp, smalldb)}
        seconds = steps[arguments.step](arguments.rows, arguments.list)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(f"{seconds:.2f} | {peak / 1e6:.0f}")
        return
    if not arguments.python:
        parser.error("--python is needed: see --help")

    peers = []
    for peer in ("diffprivlib", "opendp"):
        program = f"import {peer}; from importlib.metadata import version; print(version({peer!r}))"
        probe = subprocess.run([arguments.python, "-c", program], capture_output=True, text=True)
        if probe.returncode:
            print(f"{peer} skipped: {probe.stderr.strip().splitlines()[-1]}")
        else:
            print(f"{peer} {probe.stdout.strip()}")
            peers.append(peer)
    steps = ["smalldb", "utilities", *peers]
    print("\n| m | candidates |", " | ".join(f"{step} s | MB" for step in steps), "|")
    print("|" + "---|" * (2 + 2 * len(steps)))
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "utilities.npy")
        stopped: set[str] = set()
        for rows in ROWS:
            values = []
            for step in steps:
                if step in stopped or (step == "utilities" and stopped.issuperset(peers)):
                    values.append("|")
                    continue
                value, done = apart(arguments.python if step in peers else sys.executable, step, rows, path)
                values.append(value)
                if not done:
                    stopped.update(steps[1:] if step == "utilities" else [step])
            print(f"| {rows} | {comb(CELLS + rows - 1, rows):,} |", " | ".join(values), "|", flush=True)


if __name__ == "__main__":
    main()
