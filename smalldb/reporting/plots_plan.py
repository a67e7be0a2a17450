"""The picture of a plan: the expected error of all that could do it, along epsilon."""

from collections.abc import Callable
from fractions import Fraction
from math import nan

from smalldb.exact.numbers import as_text
from smalldb.planning import Plan
from smalldb.reporting.escaping import visible
from smalldb.reporting.plots_base import COLOURS, canvas, number, readable, rendered

STEPS = tuple(Fraction(round(10 ** (i / 6) * 1000), 1000) for i in range(-6, 7))
NOISE = {"answers": "Laplace noise on each answer", "histogram": "Laplace noise on each cell"}


def plot_plan(plan: Plan, planned: Callable[[Fraction], Plan], form: str) -> bytes:
    """Draw the expected error from a tenth to ten times epsilon, the plan marked; public numbers only."""
    if plan.expected_error is None:
        raise ValueError("a picture of a plan needs an expected error: give --n under replace-one")
    share = f"provable with probability {as_text(1 - plan.beta)}"
    lines: dict[str, list[float]] = {}  # a gap where a mechanism is neither the first nor the second
    for position, step in enumerate(STEPS):
        rescaled = plan if step == 1 else planned(plan.epsilon * step)
        both = [other for other in (rescaled, rescaled.runner_up) if other is not None]
        expected = {other.mechanism: other.expected_error for other in both} | {share: rescaled.bound}
        expected |= {NOISE[name]: error for name, error in (rescaled.alternatives or {}).items()}
        for name, error in expected.items():
            if error is not None:
                lines.setdefault(name, [nan] * len(STEPS))[position] = error

    figure = canvas()
    axes = figure.subplots()
    epsilons = [float(plan.epsilon * step) for step in STEPS]
    for colour, (name, errors) in zip(COLOURS, sorted(lines.items()), strict=False):
        plain = name in NOISE.values()
        style = ":" if plain else "--" if name == share else "-"
        width = 1.6 if style != "-" else 2.2
        axes.plot(epsilons, errors, style, color=colour, linewidth=width, marker=".", label=name)
    centre = float(plan.epsilon)
    axes.plot(centre, plan.expected_error, "o", color="black", markersize=6)
    axes.annotate(
        f"{plan.mechanism}: {number(plan.expected_error)}",
        (centre, plan.expected_error),
        xytext=(8, 8),
        textcoords="offset points",
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )
    axes.axhline(1, color="0.4", linewidth=1, label="vacuous from here on")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(top=min(3.0, axes.get_ylim()[1]))
    readable(axes.xaxis)
    readable(axes.yaxis)
    axes.set_xlabel("epsilon")
    axes.set_ylabel("expected largest error over the queries")
    rows = "" if plan.request.rows is None else f",  m = {plan.request.rows:,}"
    cells = number(plan.workload.domain.size)
    axes.set_title(
        f"{visible(plan.workload.text)}\n|Q| = {plan.workload.size:,},  N = {cells},  n = {plan.n:,}{rows}",
        fontsize=11,
    )
    axes.grid(True, which="major", alpha=0.25)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return rendered(figure, form)
