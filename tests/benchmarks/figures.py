"""
Measures of releases over tables of any kind, beside simple ways and peers: one command for all of them.

    python tests/benchmarks/figures.py TABLE ... --epsilon 1 --delta --simple --releases 3 --save figures.json
    python tests/benchmarks/figures.py TABLE ... --epsilon 1 --delta --releases 3 --beside before.json

TABLE is NAME.npz (an array `places`, rows x columns) with NAME.json beside it (`sizes`, and the numbers of
the columns that are `ordered`); or TABLE.csv=SCHEMA.toml, which smalldb reads; or a CSV (.gz) of 0 and 1,
with ":16" behind it for its first 16 columns; or "made:16", a made table of 16 yes/no columns and 5,000 rows.

Printed: the error that the plan expected, each measure of `tests/measures.py`, mean and standard error over
the releases, and the CPU seconds and the peak memory of a release, which is a process of its own. With
``--beside FILE`` also by how many standard errors of the difference each is above FILE's. With ``--evaluate``
also what `smalldb evaluate` says of releases and peers: the largest distance of a table of two columns, the
mean of tables of three, rank correlations, and the rows whose ``--target`` is predicted. At the end, losses:
where a release is worse than a simple way or a peer, the largest first.
What FILE of ``--save`` has is not made again: whoever is stopped starts the same command once more.
Simple ways are pure: see `accuracy_pins.simply`. Peers are AIM and MST of dpmm, with the settings of
`peers.py`, where ``--peers`` names an interpreter that has it. Where a strategy cannot make the release, it
says why.
"""

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import time
from fractions import Fraction
from functools import partial
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent))

from accuracy_pins import DELTA, simply, tree
from measures import Burt, figures

import smalldb
from queries import Column, Domain, Marginals, Rows
from smalldb.releasing import distances
from smalldb.schema import read_schema
from smalldb.schema.table_readers import read_table

MADE = 5_000  # rows
WORSE = 1.05  # times another's error: a loss
PEERS = {"AIM": "aim", "MST": "mst"}
EVALUATED = {
    "largest 2-way": "tvd_largest_2",
    "3-way": "tvd_mean_3",
    "correlations": "correlation_mean",
    "target": "accuracy",
}


def table(text):
    """Return a table's name, domain and codes."""
    path, _, first = text.partition(":")
    if path == "made":
        return text, *tree(
            1, MADE, [(f"a{i}", 2, False, 0.2 + 0.5 * i / int(first)) for i in range(int(first))]
        )
    path, _, schema = path.partition("=")
    name = Path(path).name.partition(".")[0] + (f":{first}" if first else "")
    if schema:
        rows = read_table(path, read_schema(schema))
        return name, rows.domain, np.repeat(rows.codes(), rows.counts, axis=0)
    if ".csv" in path:
        codes = pd.read_csv(path).to_numpy()[:, : int(first) if first else None]
        return name, Domain(codes.shape[1]), codes
    known = json.loads(Path(path).with_suffix(".json").read_text(encoding="utf-8"))
    columns = [
        f"c{c}"
        if size == 2
        else Column(f"c{c}", size if c in known["ordered"] else [f"{i}" for i in range(size)])
        for c, size in enumerate(known["sizes"])
    ]
    return name, Domain(columns), np.load(path)["places"].astype(np.int64)


def ways(domain, codes, epsilon, given):
    """Yield a way's name, the error that it expects (None: it says none), and its tables by a seed."""
    rows, n = Rows.from_codes(domain, codes), len(codes)
    for wished in given.strategies:
        for delta in (None, DELTA)[: 1 + given.delta]:
            public = {"n": n} if given.replace_one else {"n_max": n, "neighbours": "add-remove"}
            name = wished if delta is None else f"{wished}, delta 1e-9"
            strategy = None if wished == "best" else wished
            public |= {"mechanism": "marginals", "strategy": strategy, "rows": n, "target": given.target}
            try:
                plan = smalldb.plan(domain, "marginals:2", epsilon=epsilon, delta=delta, **public)
            except ValueError as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            yield name, plan.expected_error, partial(ours, plan, rows, domain)
    if given.simple:
        for name, made in simply(domain, codes, epsilon, given.replace_one):
            yield name, None, made
    if given.peers is not None:
        for name, peer in PEERS.items():
            yield name, None, partial(theirs, given.peers, peer, domain, codes, epsilon)


def ours(plan, rows, domain, seed):
    """Return the rows of a release."""
    return Rows.from_codes(domain, smalldb.release(plan, rows, rng=seed).codes)


def theirs(python, peer, domain, codes, epsilon, seed):
    """Return the rows of a peer's release, by an interpreter that has it."""
    with TemporaryDirectory() as folder:
        given, made = Path(folder, "given.npz"), Path(folder, "made.npy")
        np.savez(given, codes=codes, sizes=domain.sizes)
        program = Path(__file__).with_name("peers.py")
        subprocess.run([python, program, given, made, peer, str(float(epsilon)), str(seed)], check=True)
        return Rows.from_codes(Domain(domain.columns), np.load(made))  # peers know no rules


def evaluated(real, made, target):
    """Return what the evaluation says of rows beside the real ones, by the names that are printed."""
    domain = made.domain
    real, workload = Rows.from_codes(domain, real.codes(), real.counts), Marginals(1).workload(domain)
    target = None if target is None else domain.names.index(target)
    measures = distances.summary(distances.overview(real, {"": made}, workload, target))[""]
    return {name: float(measures[key]) for name, key in EVALUATED.items() if key in measures}


def apart(real, made, seed, further):
    """Return the measures of one release, its CPU seconds and its gigabytes: of a process of its own."""
    fork = multiprocessing.get_context("fork")
    receiving, sending = fork.Pipe(duplex=False)

    def run():
        start = time.process_time()
        release = made(seed)
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds = time.process_time() - start + used[1].ru_utime + used[1].ru_stime
        cost = {"CPU s": seconds, "GB": max(one.ru_maxrss for one in used) / 1e6}
        more = further(release) if further is not None and isinstance(release, Rows) else {}
        sending.send(figures(tables(real), tables(release), real.n) | cost | more)

    child = fork.Process(target=run)
    child.start()
    sending.close()
    try:
        return receiving.recv()
    except EOFError:
        raise SystemExit("a release did not end: see above") from None
    finally:
        child.join()


def tables(release):
    """Return the tables of one and two columns of rows; of a simple way, they are what it returns."""
    if isinstance(release, Burt):
        return release
    return Burt.of(release.codes(), release.domain.sizes, release.counts)


def losses(known, ours):
    """Return ratio, setting, release, other way and measure where a release (of `ours`) errs more than it."""
    settings, found = {}, []
    for key, said in known.items():
        *setting, way = key.split(", ", 2)
        settings.setdefault(", ".join(setting), {})[way] = said
    for setting, by_way in settings.items():
        for way in set(by_way) & set(ours):
            for other in set(by_way) - set(ours):
                for measure in ("1-way", "2-way"):
                    mine, its = by_way[way][measure][0], by_way[other][measure][0]
                    if mine > WORSE * its:
                        found.append((mine / its if its else float("inf"), setting, way, other, measure))
    return sorted(found, reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tables", nargs="+", metavar="TABLE")
    parser.add_argument("--epsilon", nargs="*", type=Fraction, default=[Fraction(1)])
    parser.add_argument("--delta", action="store_true", help="with a delta of 1e-9, too")
    parser.add_argument(
        "--strategies", nargs="*", default=["best"], help="default: that of least expected error"
    )
    parser.add_argument("--target", metavar="COLUMN")
    parser.add_argument("--evaluate", action="store_true", help="also what smalldb evaluate says")
    parser.add_argument("--replace-one", action="store_true")
    parser.add_argument("--simple", action="store_true", help="simple ways, too")
    parser.add_argument("--peers", metavar="PYTHON", help="AIM and MST, by an interpreter that has dpmm")
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--save", type=Path, help="a JSON file that figures are kept in, and taken from")
    parser.add_argument("--beside", type=Path, help="such a file, of the code before")
    given = parser.parse_args()
    before = {} if given.beside is None else json.loads(given.beside.read_text(encoding="utf-8"))
    known, own = {}, set()
    if given.save is not None and given.save.exists():
        known = json.loads(given.save.read_text(encoding="utf-8"))
    heads = ["table", "epsilon", "way", "expected", "1-way", "2-way", "conditional", "association", "missed"]
    heads += ["CPU s", "GB", *(EVALUATED if given.evaluate else {})]
    print("|", " | ".join(heads), "|")
    print("|" + "---|" * len(heads))
    for text in given.tables:
        name, domain, codes = table(text)
        real = Rows.from_codes(domain, codes)
        further = partial(evaluated, real, target=given.target) if given.evaluate else None
        for epsilon in given.epsilon:
            for way, expected, made in ways(domain, codes, epsilon, given):
                key = f"{name}, {float(epsilon):g}, {way}"
                if expected is not None:
                    own.add(way)
                if key not in known:
                    found = [apart(real, made, seed, further) for seed in range(given.releases)]
                    known[key] = {"expected": [expected, 0.0]} | {
                        measure: summary([one[measure] for one in found]) for measure in found[0]
                    }
                    if given.save is not None:
                        given.save.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
                cells = [shown(*value, before.get(key, {}).get(m)) for m, value in known[key].items()]
                print("|", " | ".join([name, f"{float(epsilon):g}", way, *cells]), "|", flush=True)
    for ratio, setting, way, other, measure in losses(known, own):
        print(f"{setting}: {way} errs {ratio:.2f} times as much as {other}, {measure}")


def summary(values):
    """Return the mean of values and its standard error."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return [float(np.mean(values)), spread / sqrt(len(values))]


def shown(mean, error, before):
    """Return a figure as it is printed, with how far it is above the one before."""
    if mean is None:
        return ""
    text = f"{mean:.4f} ± {error:.4f}" if error else f"{mean:.4f}"
    if before is None or before[0] is None:
        return text
    return f"{text} ({(mean - before[0]) / max(sqrt(error**2 + before[1] ** 2), 1e-12):+.1f} se)"


if __name__ == "__main__":
    main()
