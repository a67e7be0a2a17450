"""Pictures as inline SVG, in the colours of the page, so that they are readable in the dark too."""

from collections.abc import Sequence
from math import ceil, floor, isnan

import numpy as np

from queries.arrays import Floats
from smalldb.reporting.page.markup import element, folded, paragraph, scrolling, table, text

WIDTH, STEP, LABEL = 300, 40, 27  # of bars: units of the picture; characters of a label
SHORTER = 7  # characters that whiskers take from it
CELL, MARGIN, NAME = 40, 190, 24  # of a heat map: pixels, pixels, characters of a name
MAX_HEAT = 24  # attributes, and
MAX_COLUMNS = 30  # columns of a heat map
STRONGEST = 0.45  # opacity of a cell: what stands in it stays readable


def percent(share: float) -> str:
    """Write a share as it is shown.

    >>> percent(0.12345), percent(1)
    ('12.3 %', '100.0 %')
    """
    return f"{100 * share:.1f} %"


def bars(
    title: str,
    labels: Sequence[str],
    *series: tuple[str, Sequence[float]],
    whiskers: Sequence[float | None] | None = None,
    anchor: str = "",
) -> str:
    """Draw shares of rows as bars, one for each label and each (one or two) named series.

    Parameters
    ----------
    title
        What the labels are of.
    labels
        What each share is of.
    series
        Name and shares, from 0 to 1.
    whiskers
        How far each share of the first series can be off, None where no bound covers it; None: not shown.
    anchor
        What links to it name; none if empty.
    """
    said, marks = [], []
    for i, label in enumerate(labels):
        values = [shares[i] for _, shares in series]
        spelled = " / ".join(map(percent, values))
        ends = None
        if whiskers is not None:
            bound = whiskers[i]
            ends = None if bound is None else (max(0.0, values[0] - bound), min(1.0, values[0] + bound))
            spelled += " not covered" if ends is None else f" ({_outward(*ends)})"
        said.append(f"{label}: {spelled}")
        top = i * STEP
        short = _short(label, LABEL - (0 if whiskers is None else SHORTER))
        marks.append(element("text", text(short), x=0, y=top + 14))
        marks.append(element("text", text(spelled), x=WIDTH, y=top + 14, class_="value"))
        marks.append(element("rect", x=0, y=top + 20, width=WIDTH, height=12, class_="ground"))
        for j, value in enumerate(values):
            height = 12 // len(values)
            marks.append(
                element(
                    "rect",
                    x=0,
                    y=top + 20 + height * j,
                    width=f"{WIDTH * value:.2f}",
                    height=height,
                    class_=f"bar{j}",
                )
            )
        if ends is not None:
            low, high = (f"{1 + (WIDTH - 2) * end:.2f}" for end in ends)
            line = f"M{low},{top + 26}H{high}M{low},{top + 22}v8M{high},{top + 22}v8"
            marks += [element("path", d=line, class_=kind) for kind in ("halo", "whisker")]
    names = " and ".join(name for name, _ in series)
    picture = element(
        "svg",
        *marks,
        viewBox=f"0 0 {WIDTH} {STEP * len(labels)}",
        role="img",
        aria_label=f"{title}, share of rows ({names}): {'; '.join(said)}",
    )
    given = {"id": anchor} if anchor else {}
    return element("figure", element("figcaption", text(title)), picture, class_="bars", **given)


def _outward(low: float, high: float) -> str:
    """Write the ends of a range in percent, rounded away from each other."""
    return f"{floor(1000 * low) / 10} to {ceil(1000 * high) / 10}"


def pairs(
    title: str, names: Sequence[str], shares: Floats, signed: bool = False, most: int = MAX_HEAT
) -> str:
    """Show a number for each two attributes or columns, shape (d, d), as a heat map and as a table.

    Shares, or with `signed` their differences, in two colours. What is no number stays empty.
    """
    if len(names) > most:
        return paragraph(f"Pairs of attributes are shown for at most {most} of them.")
    head = ("", *(str(j + 1) for j in range(len(names))))
    rows = [
        (f"{i + 1} {name}", *(_points(share, signed) for share in shares[i].tolist()))
        for i, name in enumerate(names)
    ]
    return _heat(title, names, shares, signed) + folded(f"{title}: as a table", table(title, head, rows))


def _heat(title: str, names: Sequence[str], shares: Floats, signed: bool) -> str:
    reach = max(float(np.nanmax(np.abs(shares), initial=0)), 1e-9)
    marks = []
    for i, name in enumerate(names):
        middle = CELL * i + CELL * 1.5
        marks.append(element("text", text(f"{i + 1} {_short(name, NAME)}"), x=0, y=middle + 4))
        marks.append(element("text", text(i + 1), x=MARGIN + middle - CELL, y=CELL * 0.7, class_="middle"))
        for j, share in enumerate(shares[i].tolist()):
            left = MARGIN + CELL * j
            cell = {"x": left, "y": CELL * (i + 1), "width": CELL - 1, "height": CELL - 1}
            marks.append(
                element(
                    "rect",
                    **cell,
                    class_="bar1" if share < 0 else "bar0",
                    fill_opacity=f"{0 if isnan(share) else STRONGEST * abs(share) / reach:.3f}",
                )
            )
            marks.append(
                element(
                    "text", text(_points(share, signed)), x=left + CELL / 2, y=middle + 4, class_="middle"
                )
            )
    width, height = MARGIN + CELL * len(names), CELL * (len(names) + 1)
    picture = element(
        "svg",
        *marks,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=f"{title}; the same numbers stand in the table below",
    )
    return element("figure", element("figcaption", text(title)), scrolling(picture, title), class_="heat")


def _points(share: float, signed: bool) -> str:
    if isnan(share):
        return ""
    if not signed:
        return f"{100 * share:.0f}"
    points = round(100 * share, 1)
    return f"{points:+.1f}" if points else "0"


def _short(label: str, most: int) -> str:
    return label if len(label) <= most else label[: most - 3] + "..."
