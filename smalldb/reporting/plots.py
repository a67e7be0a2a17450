"""Pictures of a census and of an evaluation, confidential as they are. Extra ``plot``."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from queries import Rows
from queries.arrays import Floats
from smalldb.counting import Census, Law
from smalldb.counting.small import SmallDatabases
from smalldb.exact.numbers import as_text
from smalldb.releasing.distances import joint_shares, pair_distances
from smalldb.reporting.page.pictures import Marginal, marginals
from smalldb.reporting.plots_base import COLOURS, canvas, rendered, short

LEAST = 1e-6  # probability at the foot of the picture
BOUNDS = (  # property of the candidates, line, name
    ("bound", "--", "sharp bound"),
    ("proposition_4_4", "-.", "Proposition 4.4"),
    ("theorem_4_5", ":", "Theorem 4.5, its own rows"),
)
DRAWN = 200  # categories, and columns


def plot_laws(census: Census, drawn: Sequence[SmallDatabases], form: str) -> bytes:
    """Draw P(error > a) for each epsilon, exactly, beside what the theorems prove for any data."""
    figure = canvas()
    axes = figure.subplots()
    end = 0.0
    for position, small in enumerate(drawn):
        epsilon = small.request.epsilon
        colour = COLOURS[position % len(COLOURS)]
        law = census.law(epsilon)
        errors, above = exceedances(law)
        axes.step(errors, above, where="post", color=colour, linewidth=2, label=f"epsilon {as_text(epsilon)}")
        end = max(end, *errors[above > LEAST], 0)
        betas = np.geomspace(LEAST, 0.5, 40).tolist()
        requests = [replace(small.request, beta=Fraction(str(beta))) for beta in betas]
        promises = [replace(small, request=request) for request in requests]
        for bound, style, _ in BOUNDS:
            proven = [getattr(promise, bound) for promise in promises]
            axes.plot(proven, betas, style, color=colour, linewidth=1)
            end = max(end, proven[-1] * 1.15)
    for _, style, name in BOUNDS:
        axes.plot([], [], style, color="0.3", linewidth=1, label=name)
    axes.set(yscale="log", ylim=(LEAST, 1.3), xlim=(0, min(1.0, end * 1.05) or 1.0))
    axes.set(xlabel="a: largest error over the queries", ylabel="P(error > a)")
    total = f"{Decimal(census.total):.3g}"
    axes.set_title(
        f"The exact law of the error over {total} {census.candidates} of {census.rows} rows\n"
        "CONFIDENTIAL: computed from the data",
        fontsize=11,
    )
    axes.grid(True, alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    return rendered(figure, form)


def plot_shares(shown: Sequence[Marginal], form: str) -> bytes:
    """Draw the shares of a table's categories as bars, column below column; of a release it is public."""
    labels = [label if len(shown) == 1 else f"{m.column}: {label}" for m in shown for label in m.labels][
        :DRAWN
    ]
    colours = [COLOURS[2 * (c % 2)] for c, m in enumerate(shown) for _ in m.labels][:DRAWN]
    figure = canvas(8, 1.2 + 0.25 * len(labels))
    axes, positions = figure.subplots(), np.arange(len(labels))
    axes.barh(positions, [s for m in shown for s in m.shares][:DRAWN], color=colours)
    axes.set_yticks(positions, [*map(short, labels)])
    axes.invert_yaxis()
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlabel("share of the synthetic rows")
    return rendered(figure, form)


def plot_evaluation(real: Rows, synthetic: Rows, form: str) -> bytes:
    """Draw the shares of the categories in two tables, and how far each two columns together are off."""
    domain = real.domain
    binary = domain.binary
    labels = list(domain.attributes if binary else (p for c in domain.columns for p in c.category_names))[
        :DRAWN
    ]
    shares, others = ([s for m in marginals(t, binary) for s in m.shares][:DRAWN] for t in (real, synthetic))
    names = [short(name) for name in domain.names[:DRAWN]]
    size = min(24.0, 3 + 0.35 * max(len(names), len(labels) / 2))
    figure = canvas(2 * size, size)
    bars, heat = figure.subplots(1, 2)
    positions = np.arange(len(labels))
    bars.barh(positions - 0.2, shares, height=0.4, color=COLOURS[0], label="real")
    bars.barh(positions + 0.2, others, height=0.4, color=COLOURS[4], label="synthetic")
    bars.set_yticks(positions, [*map(short, labels)])
    bars.invert_yaxis()
    bars.set_xlim(0, 1)
    bars.set_xlabel("share of rows")
    off = (joint_shares(synthetic) - joint_shares(real) if binary else pair_distances(real, synthetic))[
        :DRAWN, :DRAWN
    ]
    reach = max(float(np.nanmax(np.abs(off), initial=0)), 0.01)
    legend = (
        "share of rows with both: synthetic - real" if binary else "distance of the tables of two columns"
    )
    drawn = heat.imshow(off, cmap="PuOr" if binary else "Purples", vmin=-reach if binary else 0, vmax=reach)
    heat.set_xticks(np.arange(len(names)), names, rotation=90)
    heat.set_yticks(np.arange(len(names)), names)
    figure.colorbar(drawn, ax=heat, label=legend)
    figure.legend(loc="outside upper left", ncols=2)
    figure.suptitle("CONFIDENTIAL: computed from the data", fontsize=11)
    return rendered(figure, form)


def exceedances(law: Law) -> tuple[Floats, Floats]:
    """Return the corners of ``P(error > a)``: from 0, then at each error."""
    above = 1 - np.cumsum(law.probabilities)
    return np.concatenate([[0.0], law.errors]), np.concatenate([[1.0], np.maximum(above, 0)])
