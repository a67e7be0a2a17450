"""Releases from a public start, from scratch, the start as it is, and independent columns without noise.

python tests/benchmarks/public_start.py DATA [TABLE ...]: DATA is a folder with adult_columns.csv.gz and
tables/. Tables: adult (three starts: the same law, shifted, a release of others), years (flchain: two years
are public), sectors (adult: the private sector is public) and countries (adult: the largest country is
public). refine: two releases of 1/2, the second refining the first, beside one of 1 (adult; and with the
strategy adaptive, which measures pairs in the first one). Environment: ROWS, EPSILONS, SEEDS, STARTS. Rows
are printed as Markdown, errors as tables / shares: the mean total variation distance of tables of two
columns, and the root mean square error of P(last column's last category | category), over categories that 2
% of rows have.
"""

import itertools
import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import smalldb
from smalldb.schema import read_schema


def two_way(codes, sizes, pair):
    a, b = pair
    return np.bincount(codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b]) / len(codes)


def errors(codes, others, sizes):
    """Of rows, beside those of the data."""
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    off = [np.abs(two_way(codes, sizes, p) - two_way(others, sizes, p)).sum() / 2 for p in pairs]
    squares = []
    for c in range(len(sizes) - 1):
        own, real = (two_way(x, sizes, (c, len(sizes) - 1)).reshape(sizes[c], -1) for x in (codes, others))
        for one, true in zip(own, real, strict=True):
            if true.sum() >= 0.02:
                squares.append((true[-1] / true.sum() - (one[-1] / one.sum() if one.sum() else 0.0)) ** 2)
    return float(np.mean(off)), float(np.sqrt(np.mean(squares)))


def adult(folder):
    sizes = json.loads(Path(f"{folder}/adult_columns.json").read_text())
    table = pd.read_csv(f"{folder}/adult_columns.csv.gz")
    return table.to_numpy(), [*table.columns], [sizes[name] for name in table.columns]


def split(codes, names, sizes, column, public):
    """Rows of some categories of a column are public; the column is left out."""
    at = names.index(column)
    kept = [c for c in range(len(names)) if c != at]
    chosen = public(codes[:, at])
    rest = [names[c] for c in kept], [sizes[c] for c in kept]
    return codes[~chosen][:, kept], codes[chosen][:, kept], *rest


def cases(name, folder, n, seed):
    """Yield the data and a start, by its name; starts of one data set come together."""
    rng = np.random.default_rng(seed)
    if name == "adult":
        codes, names, sizes = adult(folder)
        codes = codes[rng.permutation(len(codes))]
        data, rest = codes[:n], codes[n:]
        z = (rest - rest.mean(0)) / np.maximum(rest.std(0), 1e-9)
        tilt = np.exp(0.4 * (z[:, 0] + z[:, 1] - z[:, 2]))
        m = min(10_000, len(rest) // 2)
        same = rest[rng.choice(len(rest), m, replace=False)]
        starts = {
            "same law": same,
            "shifted": rest[rng.choice(len(rest), m, replace=False, p=tilt / tilt.sum())],
        }
        if "release" in os.environ.get("STARTS", "release"):
            starts["release of others"] = released(same, names, sizes, "1")[0]
        return data, names, sizes, starts
    if name == "years":
        schema = read_schema(f"{folder}/tables/flchain.toml")
        rows = schema.encode(pd.read_csv(f"{folder}/tables/flchain.csv.gz", dtype=str, keep_default_na=False))
        codes, names = np.repeat(rows.codes(), rows.counts, axis=0).astype(int), [*schema.domain.names]
        codes, start, names, sizes = split(
            codes, names, schema.domain.sizes, "sample.yr", lambda year: year < 2
        )
        order = [c for c in range(len(names)) if names[c] != "death"] + [names.index("death")]
        data, start = codes[rng.permutation(len(codes))[:n]][:, order], start[:, order]
        return data, [names[c] for c in order], [sizes[c] for c in order], {"years before": start}
    codes, names, sizes = adult(folder)
    column, public = {
        "sectors": ("workclass", lambda own: own == np.bincount(own).argmax()),
        "countries": ("native-country", lambda own: own == np.bincount(own).argmax()),
    }[name]
    others, start, names, sizes = split(codes, names, sizes, column, public)
    data = others[rng.permutation(len(others))[:n]]
    return data, names, sizes, {name: start[rng.permutation(len(start))[:10_000]]}


def released(codes, names, sizes, epsilon, start=None, **given):
    """Return the rows of a release, whether its start was believed, and the release."""
    toml = "".join(
        f'[columns."{x}"]\nkind = "integers"\nrange = [0, {k - 1}]\n'
        for x, k in zip(names, sizes, strict=True)
    )
    if start is not None:
        given |= {"start": pd.DataFrame(start, columns=names), "start_is": "a benchmark"}
    made = smalldb.release(pd.DataFrame(codes, columns=names), schema=toml, epsilon=epsilon, **given)
    return made.data.to_numpy().astype(int), made.record.get("start", {}).get("believed"), made


def refining(folder):
    """Print the errors of a half, of two halves and of a whole."""
    for n in map(int, os.environ.get("ROWS", "3000 10000 30000").split()):
        for given in ({}, {"strategy": "adaptive"}):
            found = []
            for seed in range(int(os.environ.get("SEEDS", "3"))):
                data, names, sizes, _ = cases("adult", folder, n, seed)
                half, _, first = released(data, names, sizes, "1/2", **given)
                both, one = (
                    released(data, names, sizes, epsilon, **own)[0]
                    for epsilon, own in (("1/2", {"refine": first}), ("1", given))
                )
                found.append([errors(rows, data, sizes) for rows in (half, both, one)])
            told = " | ".join(f"{a:.3f} / {b:.3f}" for a, b in np.mean(found, axis=0))
            print(f"| adult, {n:,} rows {given.get('strategy', '')} | {told} |", flush=True)


def main(folder, *tables):
    if tables == ("refine",):
        return refining(folder)
    ratios = []
    for name in tables or ("adult",):
        for n in map(int, os.environ.get("ROWS", "1000 3000 10000 30000").split()):
            for seed in range(int(os.environ.get("SEEDS", "1"))):
                data, names, sizes, starts = cases(name, folder, n, seed)
                rng = np.random.default_rng(seed)
                alone = np.column_stack([rng.permutation(column) for column in data.T])
                free = errors(alone, data, sizes)
                for epsilon in os.environ.get("EPSILONS", "0.3 1").split():
                    scratch = errors(released(data, names, sizes, epsilon)[0], data, sizes)
                    for which, start in starts.items():
                        as_is = errors(start, data, sizes)
                        rows, believed, _ = released(data, names, sizes, epsilon, start)
                        found = errors(rows, data, sizes)
                        best = [min(sides) for sides in zip(free, scratch, as_is, strict=True)]
                        ratios.append([one / other for one, other in zip(found, best, strict=True)])
                        told = " | ".join(f"{a:.3f} / {b:.3f}" for a, b in (scratch, as_is, free, found))
                        left = "" if believed else ", left"
                        print(f"| {name}, {which}{left} | {len(data):,} | {epsilon} | {told} |", flush=True)
    print(
        "times the best of the three: mean",
        np.mean(ratios, axis=0).round(3),
        "worst",
        np.max(ratios, axis=0).round(3),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
