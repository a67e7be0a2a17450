"""
Measures of releases over tables of any kind, beside simple ways: before a change, and after it.

    python tests/benchmarks/figures.py TABLE ... --epsilon 1 --delta --releases 3 --save before.json
    python tests/benchmarks/figures.py TABLE ... --epsilon 1 --delta --releases 3 --beside before.json

TABLE is NAME.npz (an array `places`, rows x columns) with NAME.json beside it (`sizes`, and the numbers of
the columns that are `ordered`); or a CSV (.gz) of 0 and 1, with ":16" behind it for its first 16 columns; or
"made:16", a made table of 16 yes/no columns and 5,000 rows.

Printed: each measure of `tests/measures.py`, mean and standard error over the releases, and the CPU seconds
of a release. With ``--beside FILE`` also by how many standard errors of the difference each is above FILE's.
Simple ways are pure: see `accuracy_pins.simply`. Where a strategy cannot make the release, it says why.
"""

import argparse
import json
import sys
import time
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent))

from accuracy_pins import DELTA, simply, tree
from measures import Burt, figures

import smalldb
from queries import Column, Domain, Rows
from smalldb.exact.bits import SeededBits

MADE = 5_000  # rows


def table(text):
    """Return a table's name, domain and places."""
    path, _, first = text.partition(":")
    if path == "made":
        return text, *tree(
            1, MADE, [(f"a{i}", 2, False, 0.2 + 0.5 * i / int(first)) for i in range(int(first))]
        )
    name = Path(path).name.partition(".")[0] + (f":{first}" if first else "")
    if ".csv" in path:
        places = pd.read_csv(path).to_numpy()[:, : int(first) if first else None]
        return name, Domain(places.shape[1]), places
    known = json.loads(Path(path).with_suffix(".json").read_text(encoding="utf-8"))
    columns = [
        f"c{c}"
        if size == 2
        else Column(f"c{c}", size if c in known["ordered"] else [f"{i}" for i in range(size)])
        for c, size in enumerate(known["sizes"])
    ]
    return name, Domain(columns), np.load(path)["places"].astype(np.int64)


def ways(domain, places, epsilon, given):
    """Yield the name of a way, and a function from a seed to its tables of one and two columns."""
    rows, n = Rows.from_places(domain, places), len(places)
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
            draw = plan.chosen.draw
            yield (
                name,
                lambda seed, draw=draw: Burt.of(draw(rows, SeededBits(seed), False).places, domain.sizes),
            )
    if given.simple:
        for name, made in simply(domain, places, epsilon, given.replace_one):
            yield name, made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tables", nargs="+", metavar="TABLE")
    parser.add_argument("--epsilon", nargs="*", type=Fraction, default=[Fraction(1)])
    parser.add_argument("--delta", action="store_true", help="with a delta of 1e-9, too")
    parser.add_argument(
        "--strategies", nargs="*", default=["best"], help="default: that of least expected error"
    )
    parser.add_argument("--target", metavar="COLUMN")
    parser.add_argument("--replace-one", action="store_true")
    parser.add_argument("--simple", action="store_true", help="simple ways, too")
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--save", type=Path, help="a JSON file that the figures are added to")
    parser.add_argument("--beside", type=Path, help="such a file, of the code before")
    given = parser.parse_args()
    before = {} if given.beside is None else json.loads(given.beside.read_text(encoding="utf-8"))
    print("| table | epsilon | way | 1-way | 2-way | conditional | association | missed | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for text in given.tables:
        name, domain, places = table(text)
        real = Burt.of(places, domain.sizes)
        for epsilon in given.epsilon:
            for way, made in ways(domain, places, epsilon, given):
                start = time.process_time()
                found = [figures(real, made(seed), len(places)) for seed in range(given.releases)]
                seconds = (time.process_time() - start) / given.releases
                key, said = f"{name}, {float(epsilon):g}, {way}", {}
                for measure in found[0]:
                    values = [one[measure] for one in found]
                    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
                    said[measure] = (float(np.mean(values)), spread / sqrt(len(values)))
                cells = " | ".join(shown(*value, before.get(key, {}).get(m)) for m, value in said.items())
                print(f"| {name} | {float(epsilon):g} | {way} | {cells} | {seconds:.1f} |", flush=True)
                if given.save is not None:
                    known = json.loads(given.save.read_text(encoding="utf-8")) if given.save.exists() else {}
                    given.save.write_text(json.dumps(known | {key: said}, indent=1) + "\n", encoding="utf-8")


def shown(mean, error, before):
    """Return a figure as it is printed, with how far it is above the one before."""
    text = f"{mean:.4f} ± {error:.4f}"
    if before is None:
        return text
    return f"{text} ({(mean - before[0]) / max(sqrt(error**2 + before[1] ** 2), 1e-12):+.1f} se)"


if __name__ == "__main__":
    main()
