"""Learn a halfspace from a synthetic table: nearly the one that the data would have taught.

python examples/halfspaces.py [--plot FILE.png]

That a halfspace h of the features predicts the label z is no halfspace of features and label, but two:
"h and z", and "neither h nor z". So if none of those errs by more than E, no accuracy errs by more than 2 E.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd

import smalldb
from queries import Domain, Halfspaces, Rows

FEATURES, LABEL = ("smoker", "older", "active"), "cough"
PEOPLE, ROWS, EPSILON, SEED = 3000, 8, 1, 5


def table() -> pd.DataFrame:
    """Return people who cough where smoker + older - active >= 1, but for one in eight."""
    generator = np.random.default_rng(SEED)
    frame = pd.DataFrame({name: generator.integers(0, 2, PEOPLE) for name in FEATURES})
    coughs = frame["smoker"] + frame["older"] - frame["active"] >= 1
    frame[LABEL] = (coughs ^ (generator.random(PEOPLE) < 1 / 8)).astype(int)
    return frame


def accuracies(frame: pd.DataFrame) -> pd.Series:
    """Return the share of rows whose label each halfspace of the features predicts, by its text."""
    bits = frame[list(FEATURES)].to_numpy(dtype=np.uint8)
    found = {
        halfspace.label: float((halfspace.values(bits) == frame[LABEL]).mean())
        for halfspace in Halfspaces().queries(Domain(FEATURES))
    }
    return pd.Series(found)


def largest_error(frame: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    """Return the largest error of a halfspace of features and label."""
    workload = Halfspaces().workload(Domain(frame.columns))
    real, small = (workload.answers(Rows.from_frame(workload.domain, rows)) for rows in (frame, synthetic))
    return float(abs(real / len(frame) - small / len(synthetic)).max())


def plot(real: pd.Series, small: pd.Series, error: float, path: str) -> None:
    """Draw the accuracy of every halfspace on both tables, and what the error allows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots()
    ends = np.array([0.0, 1.0])
    axes.fill_between(ends, ends - 2 * error, ends + 2 * error, color="0.92", label="2 E about the diagonal")
    axes.plot(ends, ends, color="0.6", linewidth=1)
    axes.plot(real, small, "o", color="#0072b2", alpha=0.5, label=f"each of {len(real)} halfspaces")
    for best, marker, size, colour, source in (
        (real.idxmax(), "s", 18, "#d55e00", "the data"),
        (small.idxmax(), "D", 11, "#009e73", "the synthetic table"),
    ):
        text = f"learnt from {source}:\n{best}"
        style = {"color": colour, "markersize": size, "fillstyle": "none", "markeredgewidth": 2}
        axes.plot(real[best], small[best], marker, label=text, **style)
    axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal")
    axes.set_xlabel(f"accuracy on the {PEOPLE} people")
    axes.set_ylabel(f"accuracy on the {ROWS} synthetic rows")
    axes.set_title(f"Predicting {LABEL!r} by halfspaces (seeded: not private)")
    axes.legend(loc="upper left", frameon=False, labelspacing=0.8)
    figure.savefig(path, dpi=120)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE.png", help="draw all halfspaces (needs matplotlib)")
    path = parser.parse_args(arguments).plot

    frame = table()
    synthetic = smalldb.generate(frame, Halfspaces(), epsilon=EPSILON, rows=ROWS, rng=SEED)
    real, small = accuracies(frame), accuracies(synthetic)
    learnt = {"the data": real.idxmax(), "the synthetic table": small.idxmax()}
    error = largest_error(frame, synthetic)

    print(f"{PEOPLE} people, {ROWS} synthetic rows at epsilon {EPSILON}; seeded, so this is not private\n")
    for source, best in learnt.items():
        print(f"learnt from {source}: {best}, right on {real[best]:.3f} of the people")
    loss = real.max() - real[small.idxmax()]
    print("\nconfidential, since it is computed from the data:")
    print(f"E, the largest error of a halfspace of all {frame.shape[1]} attributes: {error:.3f}")
    print(f"the largest error of an accuracy: {abs(real - small).max():.3f}, at most 2 E")
    print(f"accuracy lost by learning from the synthetic table: {loss:.3f}, at most 4 E")
    if path:
        plot(real, small, error, path)


if __name__ == "__main__":
    main()
