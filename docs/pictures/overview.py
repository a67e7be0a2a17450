"""Draw the picture of the README: one release beside its data, and the exact law of its error.

    python docs/pictures/overview.py

The people aboard the Titanic are long since public: the comparison with such data may be shown.
"""

from pathlib import Path

import numpy as np
import pandas as pd

import smalldb
from queries import Conjunctions

ROOT = Path(__file__).parent.parent.parent
COLUMNS = ["first_class", "female", "child", "survived"]
ROWS, SEED = 12, 3
EPSILONS = {"0.2": "#009e73", "0.1": "#0072b2", "0.05": "#cc79a7"}  # each with its colour
SHOWN = "0.1"


def figures():
    """Return a release, the shares that it is compared by, and for each epsilon the law of the error."""
    frame = pd.read_csv(ROOT / "examples" / "titanic.csv")[COLUMNS]
    release = smalldb.release(frame, Conjunctions(2), epsilon=SHOWN, rows=ROWS, rng=SEED)
    laws = {epsilon: release.confidential.census.law(epsilon) for epsilon in EPSILONS}
    shares = {}
    for label in release.plan.workload.labels:
        names = [name.strip() for name in label.split("&")]
        shares[" and ".join(names)] = [
            float(table[names].astype(bool).all(axis=1).mean()) for table in (frame, release.data)
        ]
    return release, shares, laws


def draw(path):
    """Draw both parts into an SVG file."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    release, shares, laws = figures()
    matplotlib.rcParams.update({"svg.hashsalt": "smalldb", "font.size": 10})
    figure = Figure(figsize=(11, 4.4), layout="constrained", facecolor="white")
    FigureCanvasSVG(figure)
    bars, steps = figure.subplots(1, 2, width_ratios=[1, 1.15])

    positions = np.arange(len(shares))
    real, synthetic = np.array(list(shares.values())).T
    bars.barh(positions - 0.2, real, height=0.4, color="#0072b2", label="2201 people")
    bars.barh(positions + 0.2, synthetic, height=0.4, color="#e69f00", label=f"{ROWS} synthetic rows")
    bars.set_yticks(positions, [name.replace("_", " ") for name in shares])
    bars.invert_yaxis()
    bars.set_xlabel("share of rows")
    bars.set_title(f"One release, epsilon = {SHOWN}", fontsize=11)
    bars.legend(frameon=False)

    for epsilon, law in laws.items():
        colour = EPSILONS[epsilon]
        errors = np.concatenate([[0.0], law.errors])
        above = np.concatenate([[1.0], np.maximum(1 - np.cumsum(law.probabilities), 0)])
        steps.step(errors, above, where="post", color=colour, linewidth=2, label=f"epsilon = {epsilon}")
        plan = smalldb.plan(
            release.plan.workload.domain, release.plan.workload, n=release.plan.n, epsilon=epsilon, rows=ROWS
        )
        steps.plot([plan.bound], [0.05], "o", color=colour)
        steps.plot([plan.theorem_4_5], [0.05], "s", color=colour)
    steps.plot([], [], "o", color="0.4", label="provable for any data")
    steps.plot([], [], "s", color="0.4", label="Theorem 4.5 of the lecture")
    steps.set_yscale("log")
    steps.set_ylim(1e-4, 1.5)
    steps.set_xlim(0, 1.05)
    steps.set_xlabel("a: largest error over all queries")
    steps.set_ylabel("P(error > a)")
    steps.set_title(
        f"The exact law of the error: {release.plan.candidate_count:,} tables of {ROWS} rows", fontsize=11
    )
    steps.legend(frameon=False)
    for axes in (bars, steps):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".svg"))
