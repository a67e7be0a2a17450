"""
Wide tables beside AIM and MST of dpmm, independent columns and noise on all cells.

    python -m venv peers && peers/bin/pip install dpmm==0.1.9
    peers/bin/python tests/benchmarks/beside.py CODES.csv.gz SIZES.json --ordered age hours-per-week \\
        --target income --smalldb PYTHON --folder FOLDER

CODES.csv.gz and SIZES.json are those that `codes.py` makes, and PYTHON is an interpreter
that has smalldb. Every release is a process of its own; its rows and its cost stay in FOLDER, and it is not
run again where they are there. A process that needs more than ``--limit`` CPU seconds is ended, and told as
unfinished.

Printed: mean total variation distance (TVD) of tables of one, two and three columns of up to 10,000 cells,
the largest of two, the mean error of the correlations of ordered columns, CPU seconds of a
release, and the peak memory of its process. With ``--target`` also areas under the curve (AUC), on the real
rows, of a logistic regression on all categories and of boosted trees, trained on the synthetic rows. "real"
is trained on other real rows than it is tested on, in three folds. "pure+target" and "delta+target" are
releases that name the target; no peer takes one. Noise is for add-remove everywhere; the delta
of what needs one is 1e-9.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from fractions import Fraction
from itertools import combinations
from math import prod
from pathlib import Path
from unittest import mock

# only what both environments have
import numpy as np
import pandas as pd

MOST = {1: 10**6, 2: 10_000, 3: 10_000}
AIMED = ("pure+target", "delta+target")  # where there is a target
OURS = ("pure", "delta", *AIMED, "independent", "cells")
PEERS = ("mst", "aim")
DELTA = Fraction(1, 10**9)
MST = {"n_iters": 1000}
AIM = {"max_model_size": 2, "n_iters": 100, "degree": 2, "max_cells": 10_000}
ROUNDS = 3  # of AIM, times the columns; its own default is 16
LAST_FIT = 1000  # iterations of AIM's last fit


def peer(way, codes, sizes, epsilon, seed):
    """Return rows of AIM or MST."""
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM

    names = [f"c{c}" for c in range(len(sizes))]
    common = {"epsilon": float(epsilon), "delta": float(DELTA), "compress": True, "n_jobs": 1}
    if way == "mst":
        model = MSTGM(**common, **MST)
    else:
        model = AIMGM(**common, **AIM, rounds=ROUNDS * len(names))
        rounds = model.generator._fit

        def with_a_longer_last_fit(*given, **named):
            found = rounds(*given, **named)
            model.generator.n_iters = LAST_FIT
            return found

        model.generator._fit = with_a_longer_last_fit
    model.set_domain(dict(zip(names, sizes, strict=True)))
    model.set_random_state(np.random.RandomState(seed))
    model.fit(pd.DataFrame(codes, columns=names))
    return model.generate(n_records=len(codes))[names].to_numpy().astype(np.int64)


def ours(way, codes, sizes, ordered, epsilon, seed, target):
    """Return rows of a release in rounds, or of a baseline at the same epsilon."""
    import smalldb
    from queries import Column, Domain, Rows
    from smalldb.exact.bits import SeededBits
    from smalldb.mechanisms import Neighbours
    from smalldb.releasing import distances

    kinds = [size if c in ordered else [f"{i}" for i in range(size)] for c, size in enumerate(sizes)]
    rows = Rows.from_codes(Domain([Column(f"c{c}", kind) for c, kind in enumerate(kinds)]), codes)
    if simple := {"independent": distances.INDEPENDENT, "cells": distances.CELLS}.get(way):
        with mock.patch.object(distances, "SeededBits", lambda _: SeededBits(seed)):
            made = distances.baselines(rows, epsilon, Neighbours.ADD_REMOVE)[simple]
        return np.repeat(made.codes(), made.counts, axis=0)
    given = {"mechanism": "marginals", "strategy": "adaptive", "neighbours": "add-remove"}
    given |= {"n_max": len(codes), "rows": len(codes), "delta": DELTA if way.startswith("delta") else None}
    given |= {"target": f"c{target}" if way in AIMED else None}
    return smalldb.release(rows, "marginals:2", epsilon=epsilon, rng=seed, **given).codes


def child(given, frame, sizes, ordered, target):
    """Make the rows of one release; write them and what they cost."""
    way, epsilon, seed, codes = (
        given.child[0],
        Fraction(given.child[1]),
        int(given.child[2]),
        frame.to_numpy(),
    )
    resource.setrlimit(resource.RLIMIT_CPU, (given.limit, given.limit))
    start = time.process_time()
    if way in PEERS:
        rows = peer(way, codes, sizes, epsilon, seed)
    else:
        rows = ours(way, codes, sizes, ordered, epsilon, seed, target)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    file = file_of(given, way, epsilon, seed)
    pd.DataFrame(rows, columns=frame.columns).to_csv(file.with_suffix(".csv.gz"), index=False)
    file.write_text(json.dumps({"seconds": seconds, "GB": memory}), encoding="utf-8")


def share(codes, sizes, table):
    cells = np.ravel_multi_index([codes[:, c] for c in table], [sizes[c] for c in table])
    return np.bincount(cells, minlength=prod(sizes[c] for c in table)) / len(codes)


def distances(one, other, sizes, width):
    tables = [t for t in combinations(range(len(sizes)), width) if prod(sizes[c] for c in t) <= MOST[width]]
    return np.array([np.abs(share(one, sizes, t) - share(other, sizes, t)).sum() / 2 for t in tables])


def correlations(codes, ordered):
    """Return the correlations of each two ordered columns; of one that is constant, 0."""
    chosen = codes[:, ordered].astype(float)
    spread = chosen.std(axis=0)
    scaled = (chosen - chosen.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return (scaled.T @ scaled / len(codes))[np.triu_indices(len(ordered), 1)]


def learners(sizes, target):
    """Return a logistic regression on all categories of the other columns, and boosted trees."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    others = [c for c in range(len(sizes)) if c != target]
    listed = OneHotEncoder(categories=[np.arange(sizes[c]) for c in others])
    chosen = ColumnTransformer([("codes", listed, others)])
    kept = ColumnTransformer([("codes", "passthrough", others)])
    return (
        make_pipeline(chosen, LogisticRegression(max_iter=300)),
        make_pipeline(kept, HistGradientBoostingClassifier(random_state=0, early_stopping=False)),
    )


def areas(training, testing, sizes, target):
    """Return the AUC of each learner; 1/2 where there is nothing to learn."""
    from sklearn.metrics import roc_auc_score

    if np.ptp(training[:, target]) == 0:
        return [0.5, 0.5]
    found = []
    for learner in learners(sizes, target):
        learner.fit(training, training[:, target])
        found.append(roc_auc_score(testing[:, target], learner.predict_proba(testing)[:, 1]))
    return found


def areas_of_real(codes, sizes, target):
    """Return the AUC of real rows, of which each third is told by a model of the others."""
    fold = np.random.default_rng(0).permutation(len(codes)) % 3
    return np.mean(
        [areas(codes[fold != part], codes[fold == part], sizes, target) for part in range(3)], axis=0
    )


def told(codes, made, sizes, ordered, target):
    """Return the figures of one release."""
    one, two, three = (distances(codes, made, sizes, width) for width in (1, 2, 3))
    found = [one.mean(), two.mean(), two.max(), three.mean()]
    if len(ordered) > 1:
        found.append(np.abs(correlations(codes, ordered) - correlations(made, ordered)).mean())
    return found + (areas(made, codes, sizes, target) if target is not None else [])


def file_of(given, way, epsilon, seed):
    """Return where the cost of a release is kept; its rows are beside it."""
    return given.folder / f"{way}-{float(epsilon):g}-{seed}.json"


def run(given, way, epsilon, seed):
    """Make a release in a process of its own, unless it is there."""
    file = file_of(given, way, epsilon, seed)
    if file.exists():
        return
    python = sys.executable if way in PEERS else given.smalldb
    arguments = [given.codes, given.sizes, "--ordered", *given.ordered, "--folder", str(given.folder)]
    arguments += ["--limit", str(given.limit), "--child", way, str(epsilon), str(seed)]
    if given.target is not None:
        arguments += ["--target", given.target]
    if subprocess.run([python, __file__, *arguments], check=False).returncode:
        file.write_text("{}", encoding="utf-8")  # unfinished


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("codes")
    parser.add_argument("sizes")
    parser.add_argument("--ordered", nargs="*", default=[], help="columns whose categories have an order")
    parser.add_argument("--target", help="a yes/no column that classifiers tell")
    parser.add_argument("--smalldb", default=sys.executable, help="an interpreter that has smalldb")
    parser.add_argument("--folder", type=Path, default=Path("beside"))
    parser.add_argument("--ways", nargs="*", default=[*OURS, *PEERS])
    parser.add_argument(
        "--epsilon", nargs="*", type=Fraction, default=[Fraction(1, 10), Fraction(1), Fraction(10)]
    )
    parser.add_argument("--releases", type=int, default=3, help="of each way that is not a peer's")
    parser.add_argument("--limit", type=int, default=480, help="CPU seconds of a release")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    frame = pd.read_csv(given.codes)
    known = json.loads(Path(given.sizes).read_text(encoding="utf-8"))
    names, sizes = list(frame.columns), [known[name] for name in frame.columns]
    ordered = [c for c, name in enumerate(names) if name in given.ordered]
    target = None if given.target is None else names.index(given.target)
    if given.child:
        child(given, frame, sizes, ordered, target)
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    ways = [way for way in given.ways if way != "cells" or prod(sizes) <= 1 << 20]
    ways = [way for way in ways if way not in AIMED or target is not None]
    codes = frame.to_numpy()
    heads = ["1-way", "2-way", "largest", "3-way"] + ["corr."] * (len(ordered) > 1)
    heads += [] if target is None else ["AUC lr", "AUC trees"]
    print(f"{'epsilon':>8} {'way':12}", *(f"{head:>9}" for head in heads), "   CPU s     GB", flush=True)
    if target is not None:
        real = "".join(f" {value:9.4f}" for value in areas_of_real(codes, sizes, target))
        print(f"{'':8} {'real':12}{'':{10 * (len(heads) - 2)}}{real}", flush=True)
    for epsilon in given.epsilon:
        for way in ways:
            print(
                f"{float(epsilon):8g} {way:12}",
                row(given, way, epsilon, codes, sizes, ordered, target),
                flush=True,
            )


def row(given, way, epsilon, codes, sizes, ordered, target):
    """Return the mean figures of a way at one epsilon, as text."""
    found, costs = [], []
    for seed in range(1 if way in PEERS else given.releases):
        run(given, way, epsilon, seed)
        file = file_of(given, way, epsilon, seed)
        cost = json.loads(file.read_text(encoding="utf-8"))
        if not cost:
            return f"unfinished after {given.limit} CPU s"
        made = pd.read_csv(file.with_suffix(".csv.gz")).to_numpy()
        found.append(told(codes, made, sizes, ordered, target))
        costs.append((cost["seconds"], cost["GB"]))
    seconds, memory = np.mean(costs, axis=0)
    return " ".join(f"{value:9.4f}" for value in np.mean(found, axis=0)) + f" {seconds:8.1f} {memory:6.2f}"


if __name__ == "__main__":
    main()
