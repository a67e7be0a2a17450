"""How often intervals from several tables cover, and how wide they are, over simulated people.

    python tests/benchmarks/table_coverage.py tree --epsilon 1 --runs 40

Settings: `cells`, three yes/no columns of which all cells are measured; `tree`, five columns of 2 to 5
categories of which four pairs are measured; `pairs`, the same, of which all are measured at once; `adaptive`,
eight columns, of which the release chooses what it measures; `contrasts`, eight yes/no columns on a tree, or
25 (`wide`), of which all parities of one and two columns are measured. Each run draws fresh people, releases
them, draws 20 tables, and pools. Intervals are at 95 %: of the table itself, and of the population (Rubin's
rule); beside them those of one table that is taken as if it were real, and of the data themselves.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import smalldb
from queries import Column, Domain, Rows
from smalldb.inference import combine
from smalldb.mechanisms import Marginal, Parity

TABLES, POPULATION, NORMAL = 20, 2_000_000, 1.959964
Asked = dict[str, tuple[tuple[str, ...], Callable[[np.ndarray], tuple[float, float]]]]


class Setting(NamedTuple):
    """What is simulated, released and asked."""

    domain: Domain
    people: Callable[[int, np.random.Generator], np.ndarray]
    release: dict[str, Any]
    asked: Asked


def share(hits: np.ndarray, among: np.ndarray) -> tuple[float, float]:
    """Return a share among some rows, and its squared standard error."""
    count = max(int(among.sum()), 1)
    found = float((hits & among).sum() / count)
    return found, max(found * (1 - found), 1e-9) / count


def shares(names: Sequence[str], *columns: int, one: str = "") -> Asked:
    """The shares of columns at their second category, which is called " = 1" where there are others."""
    return {
        f"P({names[c]}{one})": ((names[c],), lambda t, c=c: share(t[:, c] == 1, t[:, c] >= 0))
        for c in columns
    }


def differences(names: Sequence[str], *pairs: tuple[int, int], one: str = "") -> Asked:
    """How far such a share is apart between rows whose other column is at 1, and those where it is not."""
    asked: Asked = {}
    for a, b in pairs:

        def statistic(t: np.ndarray, a: int = a, b: int = b) -> tuple[float, float]:
            sides = share(t[:, b] == 1, t[:, a] == 1), share(t[:, b] == 1, t[:, a] != 1)
            return sides[0][0] - sides[1][0], sides[0][1] + sides[1][1]

        other = f"{names[a]} not 1" if one else f"not {names[a]}"
        text = f"P({names[b]}{one} | {names[a]}{one}) - P({names[b]}{one} | {other})"
        asked[text] = (names[a], names[b]), statistic
    return asked


def mean(values: np.ndarray, among: np.ndarray) -> tuple[float, float]:
    """Return a mean among some rows, and its squared standard error."""
    own = values[among].astype(float)
    return float(own.mean()), float(own.var() / len(own))


def slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the slope of y on x by least squares, and its squared standard error."""
    x, y = x - x.mean(), y - y.mean()
    found = float(x @ y / (x @ x))
    residual = y - found * x
    return found, float(residual @ residual / (len(x) - 2) / (x @ x))


def logistic(table: np.ndarray, code: int) -> tuple[float, float]:
    """Return a coefficient of the logistic regression of the last column on the others."""
    design, y = np.column_stack([np.ones(len(table)), table[:, :-1]]), table[:, -1]
    weights = np.zeros(design.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-design @ weights))
        information = (design * (p * (1 - p))[:, None]).T @ design
        weights = weights + np.linalg.solve(information, design.T @ (y - p))
    return float(weights[code]), float(np.linalg.inv(information)[code, code])


def cells() -> Setting:
    """Three yes/no columns, the third by a logistic law of the others."""

    def people(n: int, coins: np.random.Generator) -> np.ndarray:
        a = coins.random(n) < 0.4
        b = coins.random(n) < np.where(a, 0.6, 0.3)
        c = coins.random(n) < 1 / (1 + np.exp(1 - a - 0.7 * b))
        return np.column_stack([a, b, c]).astype(np.int64)

    asked = {
        **shares("abc", 2),
        **differences("abc", (0, 2)),
        "logistic coefficient of a": (("a", "b", "c"), lambda t: logistic(t, 1)),
        "logistic coefficient of b": (("a", "b", "c"), lambda t: logistic(t, 2)),
    }
    release = {"queries": "marginals:3", "strategy": "cells"}
    return Setting(Domain(["a", "b", "c"]), people, release, asked)


def tree() -> Setting:
    """Five columns on a tree, whose edges are measured."""
    sizes, edges = (2, 4, 3, 5, 2), ((0, 1), (1, 2), (1, 3), (0, 4))
    draws, laws = np.random.default_rng(11), {}
    for parent, child in ((None, 0), *edges):
        laws[child] = draws.dirichlet(np.full(sizes[child], 2.0), 1 if parent is None else sizes[parent])

    def people(n: int, coins: np.random.Generator) -> np.ndarray:
        found = np.zeros((n, 5), dtype=np.int64)
        for parent, child in ((None, 0), *edges):
            given = np.zeros(n, dtype=np.int64) if parent is None else found[:, parent]
            law = laws[child][given].cumsum(axis=1)
            found[:, child] = (law < coins.random((n, 1))).sum(axis=1).clip(0, sizes[child] - 1)
        return found

    names = "abcde"
    asked = {
        **shares(names, 4),
        **differences(names, (0, 4)),
        "P(c = 1 | a), across b": (("a", "b", "c"), lambda t: share(t[:, 2] == 1, t[:, 0] == 1)),
        "mean of d given b": (("b", "d"), lambda t: mean(t[:, 3], t[:, 1] == 2)),
        "slope of c on d, across b": (("b", "c", "d"), lambda t: slope(t[:, 3].astype(float), t[:, 2])),
    }
    domain = Domain([Column(name, size) for name, size in zip(names, sizes, strict=True)])
    first = [f"{names[one]} x {names[other]}" for one, other in edges]
    release = {"queries": "marginals:1", "strategy": "adaptive", "measure_first": first}
    return Setting(domain, people, release, asked)


def pairs() -> Setting:
    """The tree, of which all pairs are measured at once."""
    return tree()._replace(release={"queries": "marginals:2", "strategy": "pairs"})


def adaptive() -> Setting:
    """Eight columns that hang on one another in a row, and two that hang on nothing."""
    sizes, names = (3, 2, 4, 2, 3, 2, 2, 3), "abcdefgh"

    def people(n: int, coins: np.random.Generator) -> np.ndarray:
        hidden, found = coins.random(n), np.zeros((n, 8), dtype=np.int64)
        for c, size in enumerate(sizes):
            fresh = coins.random(n)
            hidden = np.where(coins.random(n) < (0.75 if c < 6 else 0.0), hidden, fresh)
            found[:, c] = (hidden * size).astype(np.int64)
        return found

    pairs = (0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (0, 7)
    asked = {**shares(names, 1, 6, one=" = 1"), **differences(names, *pairs, one=" = 1")}
    domain = Domain([Column(name, size) for name, size in zip(names, sizes, strict=True)])
    return Setting(domain, people, {"queries": "marginals:2", "strategy": "adaptive"}, asked)


def contrasts(d: int = 8) -> Setting:
    """Yes/no columns, each of which hangs on another one."""

    def people(n: int, coins: np.random.Generator) -> np.ndarray:
        found = np.zeros((n, d), dtype=np.int64)
        found[:, 0] = coins.random(n) < 0.4
        for c in range(1, d):
            rise = 0.05 * (c % 8)
            likely = np.where(
                coins.random(n) < 0.3 + rise, found[:, (c - 1) // 2], coins.random(n) < 0.2 + rise
            )
            found[:, c] = likely
        return found

    names = [f"c{i}" for i in range(d)]
    asked = {
        **shares(names, 7),
        "slope of c5 on c2": (("c2", "c5"), lambda t: slope(t[:, 2].astype(float), t[:, 5])),
        **differences(names, (0, 1), (3, 7), (3, 4)),
    }
    return Setting(Domain(names), people, {"queries": "marginals:2", "strategy": "contrasts"}, asked)


SETTINGS = {
    "cells": cells,
    "tree": tree,
    "pairs": pairs,
    "adaptive": adaptive,
    "contrasts": contrasts,
    "wide": lambda: contrasts(25),
}


def known(release: smalldb.Release, columns: tuple[str, ...]) -> bool:
    """Whether two columns were measured together at all their categories; of others the design decides."""
    if len(columns) != 2:
        return True
    domain = release.measurements.domain
    at = {domain.names.index(name) for name in columns}
    parts = [part for each in release.measurements for part in each.of]
    return any(isinstance(part, Parity) and {*part.columns} == at for part in parts) or any(
        at <= {*part.columns} and all(part.shape[part.columns.index(c)] == domain.sizes[c] for c in at)
        for part in parts
        if isinstance(part, Marginal)
    )


def run(
    setting: Setting, epsilon: str, n: int, seed: int, real: dict[str, float], neighbours: str
) -> Iterator[tuple[str, str, bool, float]]:
    """Yield for each quantity and kind of interval whether it covers, and how wide it is."""
    coins = np.random.default_rng(seed)
    table = setting.people(n, coins)
    release = smalldb.release(
        Rows.from_codes(setting.domain, table),
        epsilon=epsilon,
        mechanism="marginals",
        seed=seed,
        neighbours=neighbours,
        **({} if neighbours == "replace-one" else {"n_max": n}),
        **setting.release,
    )
    drawn = release.tables(TABLES, rng=seed)
    tables = [drawn.codes(k) for k in range(TABLES)]
    for name, (columns, statistic) in setting.asked.items():
        if not known(release, columns):
            yield name, "refused", True, 0.0
            continue
        estimates, variances = zip(*map(statistic, tables), strict=True)
        own, error = statistic(table)
        first, wrong = statistic(tables[0])
        ends = {
            "table": (*combine(estimates).interval(), own),
            "population": (*combine(estimates, variances).interval(), real[name]),
            "as if real": (first - NORMAL * sqrt(wrong), first + NORMAL * sqrt(wrong), real[name]),
            "data": (own - NORMAL * sqrt(error), own + NORMAL * sqrt(error), real[name]),
        }
        for kind, (low, high, truth) in ends.items():
            yield name, kind, low - 1e-12 <= truth <= high + 1e-12, high - low


def main() -> None:
    """Simulate, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setting", choices=SETTINGS)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--neighbours", default="replace-one")
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="of CPU, after which no run begins"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    setting = SETTINGS[given.setting]()
    everybody = setting.people(POPULATION, np.random.default_rng(1))
    real = {name: statistic(everybody)[0] for name, (_, statistic) in setting.asked.items()}
    found: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    refused, done = 0, 0
    for seed in range(1, given.runs + 1):
        if process_time() > given.seconds:
            break
        done += 1
        try:
            for name, kind, covers, width in run(
                setting, given.epsilon, given.n, seed, real, given.neighbours
            ):
                found.setdefault((name, kind), []).append((covers, width))
        except ValueError:
            refused += 1
    seconds = process_time() / max(done, 1)
    print(
        f"{given.setting}, epsilon {given.epsilon}, n {given.n}, {given.neighbours}: {done} runs, "
        f"{seconds:.1f} CPU s each"
    )
    print(f"refused: {refused}")
    print(
        "| quantity | not told | table | population | widths | one table as if real | width of the data's |"
    )
    print("|---|---|---|---|---|---|---|")
    kinds = ("table", "population", "as if real", "data")
    for name in setting.asked:
        untold = len(found.get((name, "refused"), []))
        if (name, "table") not in found:
            print(f"| {name} | {untold} | | | | | |")
            continue
        covered, wide = (
            {kind: float(np.mean([pair[i] for pair in found[name, kind]])) for kind in kinds} for i in (0, 1)
        )
        print(
            f"| {name} | {untold} | {covered['table']:.3f} | {covered['population']:.3f} "
            f"| {wide['table']:.3f}, {wide['population']:.3f} | {covered['as if real']:.3f} "
            f"| {wide['data']:.3f} |"
        )


if __name__ == "__main__":
    main()
