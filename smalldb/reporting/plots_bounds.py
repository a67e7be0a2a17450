"""The pictures of bounds along a parameter, and of an audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1
from typing import Any

import numpy as np

from smalldb.auditing import Accuracy, Profile
from smalldb.bounds.comparing import Bound, comparison
from smalldb.exact.numbers import as_text, rounded_down
from smalldb.reporting.plots_base import COLOURS, bound, canvas, finish, mark, number, readable, rendered

POINTS = 60


def plot_audit(profiles: Mapping[str, Profile], error: Accuracy, title: str, form: str) -> bytes:
    """Draw delta of every epsilon, the trade-off curve, and the worst error's probability over all tables."""
    figure = canvas(13, 4.4)
    privacy, tests, errors = figure.subplots(1, 3)
    (epsilon,) = {float(profile.epsilon) for profile in profiles.values()}
    spent = np.linspace(0, epsilon * 1.02, POINTS)
    alphas = np.linspace(0, 1, POINTS)
    for colour, (name, profile) in zip(COLOURS, profiles.items(), strict=False):
        deltas = [profile.delta(float(e)) for e in spent]
        privacy.plot(spent, deltas, color=colour, linewidth=2, label=f"{name}, exactly")
        tests.plot(alphas, [profile.tradeoff(float(a)) for a in alphas], color=colour, linewidth=2)
    # what epsilon alone guarantees is randomised response
    promised = [max(0.0, -expm1(e - epsilon) / (1 + exp(-epsilon))) for e in spent]
    privacy.plot(spent, promised, color="0.3", linestyle="--", label="guaranteed by epsilon alone")
    guaranteed = [max(0.0, 1 - exp(epsilon) * a, exp(-epsilon) * (1 - a)) for a in alphas]
    tests.plot(alphas, guaranteed, color="0.3", linestyle="--")
    tests.plot([0, 1], [1, 0], color="0.7", linewidth=1, linestyle=":", label="nothing can be told")
    privacy.set(xlabel="epsilon'", ylabel="delta(epsilon')", xlim=(0, spent[-1]))
    privacy.set_ylim(bottom=0)
    tests.set(
        xlabel="error of the first kind", ylabel="least error of the second kind", xlim=(0, 1), ylim=(0, 1)
    )

    positions = [0.0, *map(float, error.errors)]
    above = [1.0, *(float(high) for _, high in error.exceedances)]
    errors.step(positions, above, where="post", color=COLOURS[2], linewidth=2, label="worst table, exactly")
    promises = error.promised()
    for name, line in (("sharp", "--"), ("theorem 4.5", ":")):
        errors.axvline(
            promises[name], color="0.3", linestyle=line, label=f"{name}, beta 0.05: {bound(promises[name])}"
        )
    errors.axhline(0.05, color="0.8", linewidth=1)
    errors.set(xlabel="a: largest error over the queries", ylabel="P(error > a)", yscale="log")
    errors.set(ylim=(1e-4, 1.3), xlim=(0, min(1.02, max(promises["theorem 4.5"], positions[-1]) * 1.05)))
    readable(errors.yaxis)
    for axes in (privacy, tests, errors):
        axes.grid(True, which="major", alpha=0.25)
        if axes is not tests:
            axes.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return rendered(figure, form)


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

    numbers: dict[str, Any]  # n, cells, queries, epsilon, beta
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
        return comparison(**self.numbers | changed, rows=rows, **chosen)

    def title(self, axis: str) -> str:
        """Return the title: the workload, and all numbers but the one on the axis."""
        stated = {
            "|Q|": f"{self.numbers['queries']:,}",
            "N": number(self.numbers["cells"]),
            "n": f"{self.numbers['n']:,}",
            "epsilon": as_text(Fraction(self.numbers["epsilon"])),
            "beta": as_text(Fraction(self.numbers["beta"])),
            "m": "the best" if self.rows is None else f"{self.rows:,}",
        }
        stated.pop("m" if axis == "rows" else axis)
        return f"{self.name}\n" + ",  ".join(f"{name} = {value}" for name, value in stated.items())


def drawn_bounds(setting: Setting, axis: str) -> Any:
    """Draw all bounds from a tenth to ten times the setting, which is marked: a figure, to be `rendered`."""
    best = [row.rows for row in setting.table() if row.kind == "proved"][-1]
    centre: Any = best if axis == "rows" else setting.numbers[axis]
    steps = [Fraction(round(10 ** (i / 20) * 1000), 1000) for i in range(-20, 21)]
    positions = sorted({centre * s if axis == "epsilon" else max(1, round(centre * s)) for s in steps})
    tables = [setting.table(**{axis: position}) for position in positions]

    figure = canvas(9, 6.4)
    axes = figure.subplots()
    shown = [float(position) for position in positions]
    floor = CEILING / LEAST_SPAN
    colours = iter(COLOURS * 2)
    for number_of, each in enumerate(tables[0]):
        errors = [table[number_of].error for table in tables]
        style, width = STYLES[each.kind]
        colour = "black" if each.kind == "lower" else next(colours)
        line: dict[str, Any] = {"color": colour, "linewidth": width, "linestyle": style}
        if min(errors) >= CEILING:
            axes.plot([], [], label=f"{each.name}: above {rounded_down(min(errors))} everywhere", **line)
            continue
        floor = min(floor, *(error for error in errors if error > 0), CEILING)
        if axis == "rows" and each.name == OWN_ROWS:
            label = f"{each.name}: {bound(each.error)} at its own {each.rows:,} rows"
            axes.plot([each.rows], [each.error], "o", color=colour, label=label)
            continue
        axes.plot(shown, errors, label=each.name, **line)
        if each.kind == "lower":
            axes.fill_between(shown, errors, 0, color="black", alpha=0.08, linewidth=0)
    _mark(axes, shown, tables, axis, float(centre))
    axes.axhline(1, color="0.4", linewidth=1, label="vacuous from here on")
    axes.set(xlim=(shown[0], shown[-1]), xlabel=TITLES[axis], ylabel="largest error over the queries")
    finish(figure, axes, setting.title(axis), 3)
    axes.set_ylim(max(floor * 0.8, 1e-9), CEILING)
    return figure


def _mark(
    axes: Any, positions: Sequence[float], tables: Sequence[Sequence[Bound]], axis: str, centre: float
) -> None:
    """Mark the least sharp bound along the rows; along another axis, what is bounded at the setting."""
    column = max(i for i, row in enumerate(tables[0]) if row.kind == "proved")
    errors = [table[column].error for table in tables]
    least = min(
        range(len(positions)), key=lambda i: errors[i] if axis == "rows" else abs(positions[i] - centre)
    )
    if errors[least] >= CEILING:
        return
    rows = "" if axis == "rows" else f", m = {tables[least][column].rows:,}"
    # a larger epsilon than the bound was made for has no larger one
    position = bound(positions[least]) if axis == "epsilon" else f"{positions[least]:,.0f}"
    label = f"{axis if axis != 'rows' else 'm'} = {position}{rows}: {bound(errors[least])}"
    mark(axes, positions[least], errors[least], label, -8)
