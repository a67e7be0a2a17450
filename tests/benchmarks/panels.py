"""Panels, several rows a person: how far off tables of two columns are, and which strong pairs are learned.

    python tests/benchmarks/panels.py FOLDER [--epsilon 1 4] [--releases 3] [--rounds]

FOLDER holds Wages.csv, Males.csv and LaborSupply.csv of the R package plm. Epsilon is that of a person.
--rounds: loud rounds go on, as they did before all pairs in halves took their place.
"""

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import smalldb
from smalldb.marginals.strategies import budgets
from smalldb.schema import parse_schema

FLAG = 'kind = "bool"\ntrue = ["yes", "1"]\nfalse = ["no", "0"]'
STRONGEST = 9


def cuts(cuts, low, high, decimals=0):
    return f'kind = "cuts"\ncuts = {cuts}\nrange = [{low}, {high}]\ndecimals = {decimals}'


PANELS = {  # rows of a person, and columns; None: the categories of the help page, which all occur
    "Wages": (
        7,
        {
            "exp": cuts([5, 10, 20, 30, 40], 0, 60),
            "wks": cuts([40, 45, 48, 50], 0, 52),
            **dict.fromkeys(("bluecol", "ind", "south", "smsa", "married", "union", "black"), FLAG),
            "sex": None,
            "ed": cuts([9, 12, 13, 16], 4, 17),
            "lwage": cuts([6, 6.4, 6.8, 7.2], 4, 9, 3),
        },
    ),
    "Males": (
        8,
        {
            "year": 'kind = "integers"\nrange = [1980, 1987]',
            "school": cuts([10, 12, 13, 16], 0, 20),
            "exper": cuts([3, 6, 9, 12], 0, 20),
            **dict.fromkeys(("union", "married", "health"), FLAG),
            **dict.fromkeys(("ethn", "occupation", "residence")),
            "wage": cuts([1, 1.4, 1.8, 2.2], -4, 5, 3),
        },
    ),
    "LaborSupply": (
        10,
        {
            "lnhr": cuts([7.3, 7.6, 7.7, 7.9], 2, 9, 2),
            "lnwg": cuts([2, 2.4, 2.8, 3.2], -1, 5, 2),
            "kids": cuts([1, 2, 3, 4], 0, 8),
            "age": cuts([30, 35, 40, 45, 50], 20, 65),
            "disab": FLAG,
            "year": 'kind = "integers"\nrange = [1979, 1988]',
        },
    ),
}


def read(folder, name):
    """The table and its schema's text."""
    rows, columns = PANELS[name]
    table = pd.read_csv(Path(folder, f"{name}.csv"), keep_default_na=False)[[*columns]]
    lines = ['ignore = ["*"]', f"rows_per_person = {rows}"]
    for column, said in columns.items():
        texts = ", ".join(f'"{text}"' for text in sorted(map(str, table[column].unique())))
        lines.append(f"[columns.{column}]\n{said or f'kind = {chr(34)}categories{chr(34)}'}")
        lines += [] if said else [f"values = [{texts}]"]
    return table, "\n".join(lines)


def pairs(rows):
    """The shares of the table of each two columns."""
    codes, sizes, shares = rows.codes().astype(int), rows.domain.sizes, rows.counts / rows.n
    found = {}
    for a, b in combinations(range(len(sizes)), 2):
        cells = np.bincount(codes[:, a] * sizes[b] + codes[:, b], shares, sizes[a] * sizes[b])
        found[rows.domain.names[a], rows.domain.names[b]] = cells.reshape(sizes[a], sizes[b])
    return found


def main(given=None):
    """Print a line for each panel and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--epsilon", nargs="+", default=["1", "4"])
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--rounds", action="store_true")
    asked = parser.parse_args(given)
    if asked.rounds:
        budgets.MOST_WIDE = 0
    for name in PANELS:
        table, text = read(asked.folder, name)
        real = pairs(parse_schema(text).encode(table))
        apart = {at: np.abs(t - np.outer(t.sum(1), t.sum(0))).sum() / 2 for at, t in real.items()}
        strongest = sorted(apart, key=apart.get)[-STRONGEST:]
        for epsilon in asked.epsilon:
            off, learned = [], []
            for seed in range(asked.releases):
                made = smalldb.release(table, schema=text, epsilon=epsilon, certificate=0, rng=seed)
                found = pairs(made.rows)
                off.append(np.mean([np.abs(found[at] - real[at]).sum() / 2 for at in real]))
                known = {pair.columns: pair.known for pair in made.measurements.pairs()}
                learned.append(sum(known[at] == "learned" for at in strongest))
            told = f"{np.mean(off):.4f}, independent columns {np.mean([*apart.values()]):.4f}"
            print(f"{name:12} {epsilon:>4} {told}, learned {np.mean(learned):.1f} of {STRONGEST}", flush=True)


if __name__ == "__main__":
    main()
