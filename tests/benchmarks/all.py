"""
Ratios that show a slower commit on any machine: ``python tests/benchmarks/all.py --quick``.

Each figure is what smalldb needs over what a yardstick needs in the same run: CPU seconds, memory, or the
error of a release. They are written as JSON, and compared with those of the last run that was kept
(`ratios.json`). A figure that seems worse is measured again, up to twice, and the least counts. The exit code
is 1 if one is still worse: by half for seconds, by a tenth for memory and errors. With ``--quick`` tables are
small, and all of it takes less than ten minutes. To keep the figures of a run as the last ones:

    python tests/benchmarks/all.py --quick --save tests/benchmarks/ratios.json
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import census
import many_columns
import million
import numpy as np
import reading
import rejection
import selection

import smalldb
from queries import Column, Domain, Rows
from smalldb.mechanisms import Neighbours
from smalldb.releasing.distances import INDEPENDENT, baselines

sys.path.insert(0, str(Path(__file__).parent.parent))
import yardstick
from measures import Burt

LAST = Path(__file__).with_name("ratios.json")
WORSE = {"CPU s": 1.5, "MB": 1.1, "error": 1.1}  # times the last ratio, beyond what noise does
AGAIN = 2


class Figure(NamedTuple):
    """What smalldb needs, and what a yardstick needs, in the same unit."""

    name: str
    unit: str
    ours: float
    yardstick: float

    @property
    def key(self) -> str:
        return f"{self.name}, {self.unit}"

    @property
    def ratio(self) -> float:
        return self.ours / self.yardstick


def beside_work(name: str, call: Callable[[], object], repeats: int = 3) -> Figure:
    """Return the least CPU seconds of a call, and of the tests' piece of fixed work, taking turns."""
    taken = []
    for _ in range(repeats):
        times = [time.process_time()]
        for each in (call, yardstick.work):
            each()
            times.append(time.process_time())
        taken.append(np.diff(times))
    return Figure(f"{name} / fixed work", "CPU s", *np.min(taken, axis=0).tolist())


def enumerated(quick: bool) -> Iterator[Figure]:
    seconds = []
    for program, rows in ((census.by_census, 14 if quick else 16), (census.by_odometer, 10)):
        program(census.scores_of(4))  # compile
        took, counts = census.seconds(program, census.scores_of(rows), 5)
        seconds.append(took / sum(counts))
    yield Figure("a candidate of the census / of a plain compiled loop", "CPU s", *seconds)


def dynamic_program(quick: bool) -> Iterator[Figure]:
    took = census.apart(census.measure, 4, 20 if quick else 30)
    each, alone = took.seconds / took.candidates, 1 / census.apart(census.enumeration_rate, 4)
    yield Figure("a candidate of the dynamic program / enumerated", "CPU s", each, alone)
    libraries = census.apart(census.peak_memory)
    yield Figure("the dynamic program / its libraries", "MB", took.memory / 1e6, libraries / 1e6)


def selected(quick: bool) -> Iterator[Figure]:
    size, ways = 2_000_000 if quick else 10_000_000, ("smalldb exponential", "numpy, noise of floats")
    taken = [[selection.measured(way, size, "flat")["CPU"] for way in ways] for _ in range(3)]
    yield Figure("one of many scores / by noise of floats", "CPU s", *np.min(taken, axis=0).tolist())


WIDE = Domain([Column(f"c{i}", [str(p) for p in range(size)]) for i, size in enumerate(million.SIZES)])


def planned(quick: bool) -> Iterator[Figure]:
    yield beside_work("a plan", lambda: smalldb.plan(WIDE, "marginals:2", n=50_000, epsilon=1))


def drawn(quick: bool) -> Iterator[Figure]:
    def both() -> None:
        for attributes, epsilon in ((24, "2/5"), (48, "1/5")):
            rejection.measure("latent", attributes, 1000, epsilon, 20, 1, 5 if quick else 20, None)

    both()  # compile
    yield beside_work("rejection, built and drawn", both)


def in_rounds(quick: bool) -> Iterator[Figure]:
    _, codes, _ = million.made(20_000 if quick else 200_000)
    rows, made = Rows.from_codes(WIDE, codes), []
    public = {"n_max": len(codes), "rows": len(codes), "neighbours": "add-remove"}
    plan = smalldb.plan(WIDE, "marginals:2", epsilon=1, mechanism="marginals", **public)

    def once() -> None:
        made.append(smalldb.release(plan, rows, rng=1).codes)

    once()  # compile
    yield beside_work("a release of 14 columns", once)
    alone = baselines(rows, Fraction(1), Neighbours.ADD_REMOVE)[INDEPENDENT]
    others = [Burt.of(made[0], WIDE.sizes), Burt.of(alone.codes(), WIDE.sizes, alone.counts)]
    errors = [many_columns.distance(Burt.of(codes, WIDE.sizes), other) for other in others]
    yield Figure("tables of two columns / of independent ones", "error", *map(float, errors))


def started(quick: bool) -> Iterator[Figure]:
    table = str(Path(__file__).parents[2] / "examples" / "titanic.csv")
    given = ["--columns", "first_class,female,child,survived", "--epsilon", "1", "--rows", "12", "--quiet"]
    programs = [
        ["-m", "smalldb", "--version"],
        ["-m", "smalldb", "generate", table, *given, "-o", "/dev/null"],
        ["-c", "import pandas"],
    ]
    taken = [[million.measured(*words) for words in programs] for _ in range(4)]
    version, generate, pandas = np.min(taken, axis=0).tolist()
    for name, each in {"the version told": version, "a small table released": generate}.items():
        for unit, ours, yardstick_ in zip(("CPU s", "MB"), each, pandas, strict=True):
            yield Figure(f"{name} / pandas imported", unit, ours, yardstick_)


def tables_read(quick: bool) -> Iterator[Figure]:
    for name in reading.TABLES:
        reading.measured(name, 100_000, ["smalldb"])  # compile
        _, found = reading.measured(name, 500_000 if quick else 10_000_000, ["smalldb", "pandas"])
        for unit, ours, pandas in zip(("CPU s", "MB"), found["smalldb"], found["pandas"], strict=False):
            yield Figure(f"a CSV file of {name} columns / pandas", unit, ours, pandas)


def from_file_to_file(quick: bool) -> Iterator[Figure]:
    found = million.compared(100_000 if quick else 1_000_000)
    for unit, ours, pandas in zip(("CPU s", "MB"), found["release"], found["pandas"], strict=True):
        yield Figure("many rows released / pandas", unit, ours, pandas)


CASES = {
    case.__name__: case
    for case in (
        enumerated,
        dynamic_program,
        selected,
        planned,
        drawn,
        in_rounds,
        started,
        tables_read,
        from_file_to_file,
    )
}


def is_worse(figure: Figure, last: dict[str, dict[str, float]]) -> bool:
    """Return whether a figure is worse than in the last run, beyond what noise does."""
    return figure.key in last and figure.ratio > WORSE[figure.unit] * last[figure.key]["ratio"]


def measured(
    case: Callable[[bool], Iterator[Figure]], quick: bool, last: dict[str, dict[str, float]]
) -> list[Figure]:
    """Measure a case, and again while it seems worse than it was; return the least of each figure."""
    found = list(case(quick))
    for _ in range(AGAIN):
        if any(is_worse(figure, last) for figure in found):
            found = [min(pair, key=lambda f: f.ratio) for pair in zip(found, case(quick), strict=True)]
    return found


def main() -> int:
    """Measure, and compare with the last run."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--quick", action="store_true", help="small tables")
    options.add_argument("--only", nargs="+", choices=CASES)
    options.add_argument("--last", type=Path, default=LAST, help="JSON of the run to compare with")
    options.add_argument("--save", type=Path, help="where the JSON goes; without it, to standard output")
    given = options.parse_args()
    size = "quick" if given.quick else "full"
    kept = json.loads(given.last.read_text(encoding="utf-8")) if given.last.exists() else {}
    last, found = kept.get(size, {}).get("figures", {}), []
    for name in given.only or CASES:
        for figure in measured(CASES[name], given.quick, last):
            found.append(figure)
            told = f"{figure.ratio:9.3g}"
            if figure.key in last:
                told += f"  {figure.ratio / last[figure.key]['ratio']:.2f} times the last"
            print(f"{figure.key:62} {told}", file=sys.stderr, flush=True)
    new = {f.key: {"ratio": f.ratio, "ours": f.ours, "yardstick": f.yardstick} for f in found}
    machine = f"Python {platform.python_version()}, {platform.machine()}"
    run = {**kept, size: {"machine": machine, "figures": {**last, **new}}}
    text = json.dumps(run, indent=1) + "\n"
    if given.save:
        given.save.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    slower = [figure.key for figure in found if is_worse(figure, last)]
    for key in slower:
        print(f"worse than the last run: {key}", file=sys.stderr)
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
