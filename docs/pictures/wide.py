"""Draw the release of a wide table beside its data: one point for each cell of its tables of two columns.

    python docs/pictures/wide.py CODES.csv SIZES.json

CODES.csv holds a row for each person and an integer code for each column. SIZES.json says how many
categories each column has. The picture in the docs shows the census table "Adult" (Becker and Kohavi 1996,
doi 10.24432/C5XW20), which is published: the comparison with such data may be shown.
"""

import json
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import smalldb
from queries import Column, Domain, Rows

EPSILON, SEED, MOST_CELLS = 1, 1, 10_000
ORDERED = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
LEAST = 5e-4  # shares below this are not drawn


def share(codes, pair, sizes):
    """Return the share of rows in each cell of a table of two columns."""
    shape = [sizes[c] for c in pair]
    cells = np.ravel_multi_index(codes[:, pair].T, shape)
    return np.bincount(cells, minlength=np.prod(shape)) / len(codes)


def figures(frame, sizes):
    """Return shares in the data, in a release and by independent columns, the mean distances, and n."""
    categories = {name: k if name in ORDERED else [str(i) for i in range(k)] for name, k in sizes.items()}
    domain = Domain([Column(name, categories[name]) for name in frame.columns])
    real = frame.to_numpy()
    rows = Rows.from_codes(domain, real)
    release = smalldb.release(rows, epsilon=EPSILON, rng=SEED, neighbours="add-remove", n_max=10**5)
    released, counts = (
        np.asarray(release.categories).astype(np.int64),
        [sizes[name] for name in frame.columns],
    )
    singles = [np.bincount(real[:, c], minlength=k) / len(real) for c, k in enumerate(counts)]
    shares, distances = [], []
    for pair in combinations(range(len(counts)), 2):
        if counts[pair[0]] * counts[pair[1]] <= MOST_CELLS:
            truth, ours = share(real, pair, counts), share(released, pair, counts)
            independent = np.outer(singles[pair[0]], singles[pair[1]]).ravel()
            shares.append(np.stack([truth, ours, independent]))
            distances.append([np.abs(truth - other).sum() / 2 for other in (ours, independent)])
    return np.concatenate(shares, axis=1), np.mean(distances, axis=0), len(real)


def draw(path, frame, sizes):
    """Draw both comparisons into a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    (truth, ours, independent), (distance, other), n = figures(frame, sizes)
    figure = Figure(figsize=(10, 4.8), layout="constrained", facecolor="white", dpi=120)
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    drawn = (
        (ours, f"smalldb, pure epsilon = {EPSILON}", distance, "#0072b2"),
        (independent, "independent columns, without any noise", other, "#d55e00"),
    )
    for axes, (shares, title, mean, colour) in zip(panels, drawn, strict=True):
        kept = (truth >= LEAST) | (shares >= LEAST)
        axes.plot([LEAST, 1], [LEAST, 1], color="0.4", linewidth=1)
        axes.plot(
            np.maximum(truth[kept], LEAST),
            np.maximum(shares[kept], LEAST),
            ".",
            ms=3,
            alpha=0.3,
            color=colour,
            mec="none",
        )
        axes.set(xscale="log", yscale="log", xlim=(LEAST, 1), ylim=(LEAST, 1), xlabel="share in the data")
        axes.set_title(f"{title}\nmean total variation distance {mean:.3f}", fontsize=11)
        axes.set_aspect("equal")
    panels[0].set_ylabel("share in the synthetic table")
    figure.suptitle(
        f"{n:,} people, {len(sizes)} columns: cells of tables of two columns, from a share of {LEAST:.2%}",
        fontsize=11,
    )
    figure.savefig(path)


if __name__ == "__main__":
    table, numbers = sys.argv[1:]
    draw(Path(__file__).with_suffix(".png"), pd.read_csv(table), json.loads(Path(numbers).read_text()))
