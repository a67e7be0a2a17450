"""Select one of ten million integer scores: time and peak memory, beside diffprivlib and OpenDP, and the
naive way: Gumbel noise of floats.

python tests/benchmarks/selection.py [--size 10000000] [--peer-python PYTHON]

Each case runs in a process of its own and reports the wall time of the selection alone and the peak memory of
the process above what the scores and the imports take. The peers run under a Python that has them.
"""

import argparse
import json
import subprocess
import sys

MAKE = """
import json, resource, sys, time
import numpy as np
size, kind = int(sys.argv[1]), sys.argv[2]
generator = np.random.default_rng(1)
scores = generator.integers(0, 1_000_000, size) if kind == "flat" else generator.binomial(2000, 0.3, size)
"""
REPORT = """
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
started, worked = time.perf_counter(), time.process_time()
run()
seconds, worked = time.perf_counter() - started, time.process_time() - worked
print(json.dumps({"seconds": seconds, "CPU": worked, "MiB": peak() - before}))
"""
OURS = """
import smalldb
def run():
    return smalldb.select(scores, epsilon=1, sensitivity=1, method=%r).index
smalldb.select(scores[:10], epsilon=1, sensitivity=1)
"""
CASES = {
    "numpy, noise of floats": """
def run():
    return int(np.argmax(scores / 2 + generator.gumbel(size=size)))
""",
    "smalldb exponential": OURS % "exponential",
    "smalldb permute-and-flip": OURS % "permute-and-flip",
    "smalldb noisy-max": OURS % "noisy-max",
    "diffprivlib Exponential": """
from diffprivlib.mechanisms import Exponential
def run():
    return Exponential(epsilon=1, sensitivity=1, utility=scores.tolist()).randomise()
""",
    "OpenDP noisy max": """
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64")
measurement = dp.m.make_noisy_max(*space, dp.max_divergence(), 2.0)
listed = scores.astype(float).tolist()
def run():
    return measurement(listed)
""",
}


def measured(name: str, size: int, kind: str, python: str = sys.executable) -> dict[str, float]:
    """Return the seconds and the MiB of one selection, in a process of its own."""
    command = [python, "-c", MAKE + CASES[name] + REPORT, str(size), kind]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=10_000_000)
    parser.add_argument("--peer-python", default=sys.executable)
    arguments = parser.parse_args()
    print(f"{'':28}{'scores':>10}{'seconds':>10}{'MiB':>10}")
    for kind in ("binomial", "flat"):
        for name in CASES:
            own = name.startswith(("smalldb", "numpy"))
            try:
                found = measured(name, arguments.size, kind, sys.executable if own else arguments.peer_python)
            except ValueError as failure:
                print(f"{name:28}{kind:>10}   failed: {failure}")
                continue
            print(f"{name:28}{kind:>10}{found['seconds']:10.2f}{found['MiB']:10.0f}", flush=True)


if __name__ == "__main__":
    main()
