"""Draw a share given a column, in the data, by a release with its intervals, and by independent columns.

    python docs/pictures/income.py CODES.csv SIZES.json

CODES.csv holds a row for each person and an integer code for each column, age from 16 years on.
SIZES.json says how many categories each column has. The picture in the docs shows the census table "Adult"
(Becker and Kohavi 1996, doi 10.24432/C5XW20), which is published: the comparison with such data may be shown.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import smalldb
from queries import Column, Domain, Rows

EPSILON, SEED = 1, 1
INCOME, AGE, YOUNGEST = "income>50K", "age", 16
CUTS = (20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75)  # years
ORDERED = {"fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}


def figures(frame, sizes):
    """Return by groups of age the share of high incomes in the data, and its answers by a release; and n."""
    groups = [str(cut) for cut in CUTS]
    labels = [f"below {groups[0]}", *(f"from {cut}" for cut in groups)]
    categories = {name: k if name in ORDERED else [str(i) for i in range(k)] for name, k in sizes.items()}
    domain = Domain([Column(name, labels if name == AGE else categories[name]) for name in frame.columns])
    grouped = frame.assign(**{AGE: np.searchsorted(CUTS, frame[AGE] + YOUNGEST, side="right")})
    release = smalldb.release(
        Rows.from_codes(domain, grouped.to_numpy()),
        "marginals:2",
        epsilon=EPSILON,
        rng=SEED,
        neighbours="add-remove",
        n_max=10**5,
        target=INCOME,
    )
    answers = [release.ask(f"`{INCOME}=1` | `{AGE}={label}`") for label in labels]
    high = frame[INCOME] == 1
    truth = high.groupby(grouped[AGE]).mean()
    return truth.reindex(range(len(labels))).to_numpy(), answers, float(high.mean()), len(frame)


def draw(path, frame, sizes):
    """Draw the three into a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    truth, answers, independent, n = figures(frame, sizes)
    figure = Figure(figsize=(8, 4.2), layout="constrained", facecolor="white", dpi=120)
    FigureCanvasAgg(figure)
    axes, at = figure.subplots(), np.arange(len(truth))
    found = np.array([(one.estimate, one.low, one.high) for one in answers])
    axes.axhline(independent, color="#d55e00", linestyle="--", label="independent columns, without any noise")
    axes.plot(at, truth, "o", color="0.2", ms=9, mfc="none", label="the data")
    reach = np.abs(found[:, 1:] - found[:, :1]).T
    label = f"smalldb, pure epsilon = {EPSILON}: estimate and 95 % interval"
    axes.errorbar(at, found[:, 0], reach, fmt="o", ms=4, capsize=3, color="#0072b2", label=label)
    axes.set_xticks(at, [f"< {CUTS[0]}", *(f"{one} +" for one in CUTS)])
    axes.set(xlabel="age", ylabel="share with an income above 50,000", ylim=(0, None))
    axes.set_title(f"A release of {n:,} people and {len(sizes)} columns", fontsize=11)
    axes.legend(frameon=False)
    figure.savefig(path)
    return truth, found


if __name__ == "__main__":
    table, numbers = sys.argv[1:]
    known, told = draw(
        Path(__file__).with_suffix(".png"), pd.read_csv(table), json.loads(Path(numbers).read_text())
    )
    inside = (told[:, 1] <= known) & (known <= told[:, 2])
    print(f"{inside.sum()} of {len(known)} intervals cover")
