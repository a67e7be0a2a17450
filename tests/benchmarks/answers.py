"""Accuracy of answers beside general synthesisers: ``python tests/benchmarks/answers.py --data FILE``.

FILE is a CSV (.gz) of 0 and 1; its first 8 and 14 columns, and samples of 1,000 rows and all of them, are
released over several seeds. Max error over all 1- and 2-way conjunctions and over all cells of 3-way tables,
mean over the seeds; median CPU seconds of a release, and the peak memory of a process with its libraries.
"histogram" is Laplace noise on every cell, negative ones cut off. With ``--delta 1e-9`` also "gaussian", this
package's Gaussian noise with that delta. With ``--peer-python PYTHON`` also MWEM, and AIM and MST at delta =
1e-9, of smartnoise-synth in that interpreter's environment:

    python -m venv peers
    peers/bin/pip install smartnoise-synth

Every cell is a process of its own. A peer that needs over ten minutes of CPU time for a release is left out.
"""

import argparse
import json
import resource
import subprocess
import sys
from itertools import combinations, product
from time import process_time

# only what the peers' environment has too up here
import numpy as np
import pandas as pd

WORKLOADS = ("conjunctions:2", "marginals:=3")
ATTRIBUTES = (8, 14)
ROWS = (1_000, None)
EPSILONS = ("0.1", "1")
OURS = ("smalldb", "gaussian")
PEERS = ("mwem", "aim", "mst")
DELTA = 1e-9
SECONDS = 600
GOAL = "conjunctions at d=14: MWEM's error over ours at least 3, AIM's at least 1"


def sample(path: str, d: int, n: int | None, seed: int) -> pd.DataFrame:
    """Return the first columns of the table, and a sample of its rows."""
    frame = pd.read_csv(path).iloc[:, :d]
    return frame if n is None else frame.sample(n, random_state=seed).reset_index(drop=True)


def answers(workload: str, weights: np.ndarray, d: int) -> np.ndarray:
    """Return the answers of a workload on weights over the cells, from their tables."""
    cube, total, found = weights.reshape((2,) * d), weights.sum(), []
    for width in (1, 2) if workload == "conjunctions:2" else (3,):
        for kept in combinations(range(d), width):
            table = cube.sum(axis=tuple(i for i in range(d) if i not in kept)) / total
            found.append(table[(1,) * width] if workload == "conjunctions:2" else table.reshape(-1))
    return np.hstack(found)


def histogram_of(bits: np.ndarray) -> np.ndarray:
    """Count the cells."""
    d = bits.shape[1]
    return np.bincount(bits.astype(np.int64) @ (1 << np.arange(d - 1, -1, -1)), minlength=1 << d).astype(
        float
    )


def smalldb(
    frame: pd.DataFrame, workload: str, epsilon: str, seed: int, delta: str | None = None
) -> np.ndarray:
    """Release by this package; with a delta, Gaussian noise whether or not it is expected to err less."""
    from fractions import Fraction

    from queries import Domain, Rows
    from queries.spec import parse
    from smalldb.exact.bits import SeededBits
    from smalldb.marginals.counts import InMemory
    from smalldb.marginals.curator import Curator, PrivacyFilter
    from smalldb.marginals.strategies.choosing_parities import alternatives
    from smalldb.mechanisms import Journal

    domain, known = Domain(frame.columns), None if delta is None else Fraction(delta)
    public = {"n": len(frame), "epsilon": Fraction(epsilon), "neighbours": "replace-one", "delta": known}
    plans = alternatives(parse(workload).workload(domain), certificate=Fraction(0), **public)
    kind = [plan for plan in plans if plan.delta == known]
    plan = min(kind, key=lambda plan: plan.worst_expected)
    budget = PrivacyFilter(plan.loss.amount, plan.replaced)
    curator = Curator(InMemory(Rows.from_frame(domain, frame)), Journal(SeededBits(seed)), budget)
    return histogram_of(curator.follow(plan.release(len(frame))).codes)


def histogram(frame: pd.DataFrame, workload: str, epsilon: str, seed: int) -> np.ndarray:
    """Add Laplace noise to every cell; replacing a row moves two."""
    noise = np.random.default_rng(seed).laplace(scale=2 / float(epsilon), size=1 << frame.shape[1])
    return np.maximum(histogram_of(frame.to_numpy()) + noise, 0)


def peer(frame: pd.DataFrame, name: str, epsilon: str, seed: int) -> np.ndarray:
    """Release by a synthesiser of smartnoise-synth, all its settings as they come."""
    from snsynth import Synthesizer

    np.random.seed(seed)  # noqa: NPY002 (theirs draws from numpy's global generator)
    more = {} if name == "mwem" else {"delta": DELTA}
    if name == "mwem":  # one histogram over all attributes is what conjunctions of them ask for
        more = {"split_factor": frame.shape[1], "q_count": 500}
    made = Synthesizer.create(name, epsilon=float(epsilon), **more)
    made.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
    return histogram_of(made.sample(len(frame)).to_numpy().astype(int))


def one(arguments: argparse.Namespace) -> dict[str, float]:
    """Measure one synthesiser on one case, over the seeds."""
    errors: dict[str, list[float]] = {workload: [] for workload in WORKLOADS}
    seconds = []
    for seed in range(arguments.seeds):
        frame = sample(arguments.data, arguments.attributes, arguments.rows, seed)
        truth = histogram_of(frame.to_numpy())
        for workload in WORKLOADS if arguments.step in OURS else ("all",):
            start = process_time()
            if arguments.step == "smalldb":
                found = smalldb(frame, workload, arguments.epsilon, seed)
            elif arguments.step == "gaussian":
                found = smalldb(frame, workload, arguments.epsilon, seed, arguments.delta)
            elif arguments.step == "histogram":
                found = histogram(frame, workload, arguments.epsilon, seed)
            else:
                found = peer(frame, arguments.step, arguments.epsilon, seed)
            seconds.append(process_time() - start)
            for scored in WORKLOADS if workload == "all" else (workload,):
                gap = answers(scored, truth, arguments.attributes) - answers(
                    scored, found, arguments.attributes
                )
                errors[scored].append(float(np.abs(gap).max()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    means = {workload: float(np.mean(some)) for workload, some in errors.items()}
    return {**means, "seconds": float(np.median(seconds)), "MB": peak}


def limit() -> None:
    """Keep a child from taking more time than it may."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="a CSV of 0 and 1")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--delta", help="also release with this delta allowed, such as 1e-9")
    parser.add_argument("--peer-python", help="interpreter of an environment with smartnoise-synth")
    for hidden, kind in (("step", str), ("attributes", int), ("rows", int), ("epsilon", str)):
        parser.add_argument(f"--{hidden}", type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(one(arguments)))
        return
    steps = ["smalldb", *(["gaussian"] if arguments.delta else []), "histogram"]
    steps += PEERS if arguments.peer_python else ()
    print(GOAL)
    print("| d | n | epsilon | by |", " | ".join(WORKLOADS), "| s | MB |")
    print("|" + "---|" * 8)
    for d, n, epsilon in product(ATTRIBUTES, ROWS, EPSILONS):
        for step in steps:
            python = arguments.peer_python if step in PEERS else sys.executable
            command = [python, __file__, "--data", arguments.data, "--seeds", str(arguments.seeds)]
            command += ["--step", step, "--attributes", str(d), "--epsilon", epsilon]
            command += [] if n is None else ["--rows", str(n)]
            command += [] if arguments.delta is None else ["--delta", arguments.delta]
            done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
            label = f"| {d} | {n or 'all'} | {epsilon} | {step} |"
            if done.returncode:
                print(
                    label, (done.stderr.strip().splitlines() or ["over the time"])[-1][:80], "|", flush=True
                )
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            values = [f"{found[workload]:.4f}" for workload in WORKLOADS]
            print(label, " | ".join(values), f"| {found['seconds']:.1f} | {found['MB']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
