"""What pictures share; the pictures of a plan, along epsilon, and of a ledger."""

import io
from collections.abc import Callable
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np

from smalldb.accounting import Composition
from smalldb.exact.numbers import as_text, rounded_up
from smalldb.files import of_extra
from smalldb.planning import Plan
from smalldb.reporting import visible

FORMATS = ("png", "svg", "pdf")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
LABEL = 40  # characters
UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same picture, byte for byte


def check_plotting(path: str) -> str:
    """Return the format that a path asks for; ValueError for another one, or without matplotlib."""
    form = path.rpartition(".")[2].lower()
    if form not in FORMATS:
        raise ValueError(f"a picture must be named .{', .'.join(FORMATS)}, not {path!r}")
    with of_extra("matplotlib", "plot", "pictures"):
        import matplotlib  # noqa: F401 - only whether it is there
    return form


def canvas(width: float = 8, height: float = 5) -> Any:
    """Return an empty figure that needs no screen, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def rendered(figure: Any, form: str) -> bytes:
    """Return a figure in one of `FORMATS`; text stays text in SVG and PDF."""
    import matplotlib

    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "smalldb", "pdf.fonttype": 42}):
        figure.savefig(picture, format=form, dpi=150, metadata=UNDATED[form])
    return picture.getvalue()


def readable(axis: Any) -> None:
    """Write the ticks of a logarithmic axis as plain numbers: 1, 2, 5 where they fit, else powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    decades = max(high / low, 1.0) if low > 0 else 10.0
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 3000 else (1,), numticks=30))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(NullFormatter())


def finish(figure: Any, axes: Any, title: str, columns: int = 2) -> None:
    """Finish a picture of lines on two logarithmic axes: plain ticks, a title, and a legend below."""
    axes.set(xscale="log", yscale="log")
    readable(axes.xaxis)
    readable(axes.yaxis)
    axes.set_title(title, fontsize=11)
    axes.grid(True, which="major", alpha=0.25)
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def mark(axes: Any, x: float, y: float, label: str, down: int) -> None:
    """Mark a point of a picture, with a label `down` points below it."""
    axes.plot(x, y, "o", color="black", markersize=5)
    axes.annotate(
        label,
        (x, y),
        xytext=(8, -down),
        textcoords="offset points",
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )


def short(label: str) -> str:
    """Return a label of at most `LABEL` characters, all seen: a long one without its middle."""
    half, label = (LABEL - 3) // 2, visible(label)
    return (
        label if len(label) <= LABEL else f"{label[: LABEL - 3 - half].rstrip()}...{label[-half:].lstrip()}"
    )


def bound(value: float | Fraction) -> str:
    """Write a bound in three digits, never below itself."""
    return number(float(rounded_up(value)))


def number(value: float) -> str:
    """Write a number of an axis or a legend: 0.05, 20,000, 1e9."""
    if 1000 <= abs(value) < 10**7:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


MOST = 10  # times as many releases as the number asked for


def plot_composition(
    total: Composition, composed: Callable[[int], Composition], releases: int, form: str
) -> bytes:
    """Draw epsilon of 1 to ten times as many releases, a line a method; what is no bound is dotted."""
    counts = sorted({max(1, round(x)) for x in np.geomspace(1, MOST * releases, 13)} | {releases})
    lines: dict[str, list[tuple[int, float]]] = {}
    valid: dict[str, bool] = {}
    for count in counts:
        for row in (total if count == releases else composed(count)).table.to_dict("records"):
            lines.setdefault(row["method"], []).append((count, row["epsilon"]))
            valid[row["method"]] = row["valid"]

    figure = canvas(8, 6)
    axes = figure.subplots()
    for position, (name, points) in enumerate(lines.items()):
        style: dict[str, Any] = {"color": COLOURS[position % len(COLOURS)], "linewidth": 1.6}
        style["linestyle"] = ("-", "--", "-.")[position // len(COLOURS) % 3] if valid[name] else ":"
        label = name if valid[name] else f"{name} (no bound here)"
        axes.plot(*zip(*points, strict=True), label=label, marker="." if len(points) == 1 else None, **style)
    mark(axes, releases, total.epsilon, f"{releases:,}: {bound(total.epsilon)}", 14)
    least = f"{releases:,} releases lose at most epsilon = {bound(total.epsilon)} together, by {total.method}"
    title = f"{least}\ndelta = {bound(total.delta)}"
    axes.set(xlabel="releases", ylabel="epsilon of all together", xlim=(counts[0], counts[-1]))
    finish(figure, axes, title)
    return rendered(figure, form)


STEPS = tuple(Fraction(round(10 ** (i / 6) * 1000), 1000) for i in range(-6, 7))
SHARE, MEAN = "the share of a category, by noise", "the mean of a number, by noise, over its range"
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
        expected |= {SHARE: rescaled.expected_share, MEAN: rescaled.expected_mean}
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
    label = f"{plan.mechanism}: {number(plan.expected_error)}"
    mark(axes, float(plan.epsilon), plan.expected_error, label, -8)
    axes.axhline(1, color="0.4", linewidth=1, label="vacuous from here on")
    axes.set_yscale("log")
    axes.set_ylim(top=min(3.0, axes.get_ylim()[1]))
    rows = "" if plan.request.rows is None else f",  m = {plan.request.rows:,}"
    cells = number(plan.workload.domain.size)
    numbers = f"|Q| = {plan.workload.size:,},  N = {cells},  n = {plan.n:,}{rows}"
    axes.set(xlabel="epsilon", ylabel="expected error")
    finish(figure, axes, f"{visible(plan.workload.text)}\n{numbers}")
    return rendered(figure, form)
