"""The picture of the bounds on an error along an axis; public numbers only."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from smalldb.bounds.comparing import Bound, comparison
from smalldb.exact.numbers import as_text, rounded_down
from smalldb.reporting.plots_base import COLOURS, canvas, number, readable, rendered
from smalldb.reporting.plots_base import bound as above

CEILING = 3.0  # errors from 1 on say nothing
LEAST_SPAN = 30.0  # of the axis of the error
STYLES = {  # kind -> line, width
    "printed": ("--", 1.4),
    "proved": ("-", 2.2),
    "mean": ("-.", 1.6),
    "other": (":", 1.8),
    "lower": ("-", 1.4),
}
TITLES = {"n": "n: rows of the data", "epsilon": "epsilon", "rows": "m: rows of the small database"}
OWN_ROWS = "Theorem 4.5"


@dataclass(frozen=True, slots=True)
class Setting:
    """What the picture is of."""

    given: dict[str, Any]  # n, cells, queries, epsilon, beta
    rows: int | None = None  # of the small database; None: the best everywhere
    # as for `bounds.comparison`
    candidates: str = "multisets"
    method: str = "least"
    apart: int = 1
    name: str = "any class"  # the workload, for the title

    def table(self, **changed: Any) -> list[Bound]:
        """Return all bounds, with some numbers changed."""
        rows = changed.pop("rows", self.rows)
        chosen: dict[str, Any] = {"candidates": self.candidates, "method": self.method, "apart": self.apart}
        return comparison(**self.given | changed, rows=rows, **chosen)

    def title(self, axis: str) -> str:
        """Return the title: the workload, and all numbers but the one on the axis."""
        told = {
            "|Q|": f"{self.given['queries']:,}",
            "N": number(self.given["cells"]),
            "n": f"{self.given['n']:,}",
            "epsilon": as_text(Fraction(self.given["epsilon"])),
            "beta": as_text(Fraction(self.given["beta"])),
            "m": "the best" if self.rows is None else f"{self.rows:,}",
        }
        told.pop("m" if axis == "rows" else axis)
        return f"{self.name}\n" + ",  ".join(f"{name} = {value}" for name, value in told.items())


def plot_bounds(setting: Setting, axis: str, form: str) -> bytes:
    """Draw all bounds from a tenth to ten times the setting, which is marked."""
    return rendered(drawn_bounds(setting, axis), form)


def drawn_bounds(setting: Setting, axis: str) -> Any:
    """Return the figure of `plot_bounds`."""
    best = [bound.rows for bound in setting.table() if bound.kind == "proved"][-1]
    centre: Any = best if axis == "rows" else setting.given[axis]
    steps = [Fraction(round(10 ** (i / 20) * 1000), 1000) for i in range(-20, 21)]
    positions = sorted({centre * s if axis == "epsilon" else max(1, round(centre * s)) for s in steps})
    tables = [setting.table(**{axis: position}) for position in positions]

    figure = canvas(9, 6.4)
    axes = figure.subplots()
    shown = [float(position) for position in positions]
    floor = CEILING / LEAST_SPAN
    colours = iter(COLOURS * 2)
    for number_of, bound in enumerate(tables[0]):
        errors = [table[number_of].error for table in tables]
        style, width = STYLES[bound.kind]
        colour = "black" if bound.kind == "lower" else next(colours)
        line: dict[str, Any] = {"color": colour, "linewidth": width, "linestyle": style}
        if min(errors) >= CEILING:
            axes.plot([], [], label=f"{bound.name}: above {rounded_down(min(errors))} everywhere", **line)
            continue
        floor = min(floor, *(error for error in errors if error > 0), CEILING)
        if axis == "rows" and bound.name == OWN_ROWS:
            label = f"{bound.name}: {above(bound.error)} at its own {bound.rows:,} rows"
            axes.plot([bound.rows], [bound.error], "o", color=colour, label=label)
            continue
        axes.plot(shown, errors, label=bound.name, **line)
        if bound.kind == "lower":
            axes.fill_between(shown, errors, 0, color="black", alpha=0.08, linewidth=0)
    _mark(axes, shown, tables, axis, float(centre))
    axes.axhline(1, color="0.4", linewidth=1, label="vacuous from here on")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(shown[0], shown[-1])
    axes.set_ylim(max(floor * 0.8, 1e-9), CEILING)
    readable(axes.xaxis)
    readable(axes.yaxis)
    axes.set_xlabel(TITLES[axis])
    axes.set_ylabel("largest error over the queries")
    axes.set_title(setting.title(axis), fontsize=11)
    axes.grid(True, which="major", alpha=0.25)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _mark(
    axes: Any, positions: Sequence[float], tables: Sequence[Sequence[Bound]], axis: str, centre: float
) -> None:
    """Mark the least sharp bound along the rows; along another axis, what is bounded at the setting."""
    column = max(i for i, bound in enumerate(tables[0]) if bound.kind == "proved")
    errors = [table[column].error for table in tables]
    least = min(
        range(len(positions)), key=lambda i: errors[i] if axis == "rows" else abs(positions[i] - centre)
    )
    if errors[least] >= CEILING:
        return
    rows = "" if axis == "rows" else f", m = {tables[least][column].rows:,}"
    axes.plot(positions[least], errors[least], "o", color="black", markersize=5)
    # a larger epsilon than the bound was made for has no larger one
    position = above(positions[least]) if axis == "epsilon" else f"{positions[least]:,.0f}"
    axes.annotate(
        f"{axis if axis != 'rows' else 'm'} = {position}{rows}: {above(errors[least])}",
        (positions[least], errors[least]),
        xytext=(8, 8),
        textcoords="offset points",
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )
