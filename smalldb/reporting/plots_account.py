"""The picture of a composition: what releases lose together, by every method, as their number grows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from smalldb.accounting import Composition
from smalldb.reporting.plots_base import COLOURS, bound, canvas, readable, rendered

MOST = 10  # times as many releases as the number asked for


def plot_composition(
    made: Composition, composed: Callable[[int], Composition], releases: int, form: str
) -> bytes:
    """Draw epsilon of 1 to ten times as many releases, a line a method; what is no bound is dotted."""
    counts = sorted({max(1, round(x)) for x in np.geomspace(1, MOST * releases, 13)} | {releases})
    lines: dict[str, list[tuple[int, float]]] = {}
    valid: dict[str, bool] = {}
    for count in counts:
        for row in (made if count == releases else composed(count)).table.to_dict("records"):
            lines.setdefault(row["method"], []).append((count, row["epsilon"]))
            valid[row["method"]] = row["valid"]

    figure = canvas(8, 6)
    axes = figure.subplots()
    for position, (name, points) in enumerate(lines.items()):
        style: dict[str, Any] = {"color": COLOURS[position % len(COLOURS)], "linewidth": 1.6}
        style["linestyle"] = ("-", "--", "-.")[position // len(COLOURS) % 3] if valid[name] else ":"
        label = name if valid[name] else f"{name} (no bound here)"
        axes.plot(*zip(*points, strict=True), label=label, marker="." if len(points) == 1 else None, **style)
    axes.plot(releases, made.epsilon, "o", color="black", markersize=5)
    axes.annotate(
        f"{releases:,}: {bound(made.epsilon)}",
        (releases, made.epsilon),
        xytext=(8, -14),
        textcoords="offset points",
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(counts[0], counts[-1])
    readable(axes.xaxis)
    readable(axes.yaxis)
    axes.set_xlabel("releases")
    axes.set_ylabel("epsilon of all together")
    least = f"{releases:,} releases lose at most epsilon = {bound(made.epsilon)} together, by {made.method}"
    axes.set_title(f"{least}\ndelta = {bound(made.delta)}", fontsize=11)
    axes.grid(True, which="major", alpha=0.25)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return rendered(figure, form)
