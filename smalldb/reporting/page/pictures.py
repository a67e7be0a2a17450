"""Pictures as inline SVG, in the colours of the page, and the shares that they show."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor, isnan
from unicodedata import east_asian_width

import numpy as np

from queries import Column, Rows, Workload
from queries.arrays import Booleans, Codes, Floats, Integers
from queries.rows import tabulated
from smalldb.marginals.estimate.packed_pairs import cramers_v
from smalldb.reporting.page.markup import element, folded, paragraph, scrolling, table, text

WIDTH, STEP = 300, 40  # of bars: units of the picture
LINE, BESIDE, SHORTER = 38, 26, 8  # characters of a line, of one beside a number, and less beside whiskers
LINES, HIGH = 4, 16  # of a label at most, with the one that has the number; units of the picture
CELL, SIGNED = 28, 40  # of a heat map: pixels of a cell, and of one whose number has a sign
MARGIN, NAME = 190, 24  # of a heat map: pixels, characters of a name
MAX_HEAT = 24  # attributes, and
MAX_COLUMNS = 30  # columns of a heat map
NOT_KNOWN = "not measured"
STRONGEST = 0.45  # opacity of a cell: what stands in it stays readable


def percent(share: float) -> str:
    """Write a share as it is shown, such as 12.3 %."""
    return f"{100 * share:.1f} %"


def bars(
    title: str,
    labels: Sequence[str],
    *series: tuple[str, Sequence[float]],
    whiskers: Sequence[tuple[float, float] | None] | None = None,
    anchor: str = "",
) -> str:
    """Draw shares of rows as bars, one for each label and each (one or two) named series."""
    descriptions, marks = [], []
    *tops, whole = accumulate(heights(labels, whiskers is not None), initial=0)
    for i, label in enumerate(labels):
        values = [shares[i] for _, shares in series]
        spelled = " / ".join(map(percent, values))
        ends = None
        if whiskers is not None:
            ends = whiskers[i]
            spelled += " not covered" if ends is None else f" ({_outward(*ends)})"
        descriptions.append(f"{label}: {spelled}")
        lines = _lines(label, whiskers is not None)
        for position, part in enumerate(lines):
            if part:
                marks.append(element("text", text(part), x=0, y=tops[i] + HIGH * position + 14))
        top = tops[i] + HIGH * (len(lines) - 1)
        marks.append(element("text", text(spelled), x=WIDTH, y=top + 14, class_="value"))
        marks.append(element("rect", x=0, y=top + 20, width=WIDTH, height=12, class_="ground"))
        height = 12 // len(values)
        for j, value in enumerate(values):
            size = {"width": f"{WIDTH * value:.2f}", "height": height}
            marks.append(element("rect", x=0, y=top + 20 + height * j, **size, class_=f"bar{j}"))
        if ends is not None:
            low, high = (f"{1 + (WIDTH - 2) * end:.2f}" for end in ends)
            line = f"M{low},{top + 26}H{high}M{low},{top + 22}v8M{high},{top + 22}v8"
            marks += [element("path", d=line, class_=kind) for kind in ("halo", "whisker")]
    names = " and ".join(name for name, _ in series)
    picture = element(
        "svg",
        *marks,
        viewBox=f"0 0 {WIDTH} {whole}",
        role="img",
        aria_label=f"{title}, share of rows ({names}): {'; '.join(descriptions)}",
    )
    attributes = {"id": anchor} if anchor else {}
    return element("figure", element("figcaption", text(title)), picture, class_="bars", **attributes)


def heights(labels: Sequence[str], whiskers: bool) -> list[int]:
    """Return how high the bar of each label is, with the label: units of the picture."""
    return [STEP + HIGH * (len(_lines(label, whiskers)) - 1) for label in labels]


def _lines(label: str, whiskers: bool) -> list[str]:
    """Break a label into lines; beside the last there is room for its number."""
    lines, rest = [], label
    while _columns(rest) > LINE:
        end = max(i for i in range(1, LINE + 1) if _columns(rest[:i]) <= LINE)
        space = rest.rfind(" ", 1, end + 1)
        end = end if space < 0 else space
        lines.append(rest[:end])
        rest = rest[end:].lstrip()
    lines += [rest] if _columns(rest) <= BESIDE - SHORTER * whiskers else [rest, ""]
    return lines if len(lines) <= LINES else [*lines[: LINES - 2], lines[LINES - 2] + "...", ""]


def _columns(line: str) -> int:
    """Return the width of a text: most letters of East Asia are as wide as two others."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in line)


def _outward(low: float, high: float) -> str:
    """Write the ends of a range in percent, rounded away from each other."""
    return f"{floor(1000 * low) / 10} to {ceil(1000 * high) / 10}"


def pairs(
    title: str,
    names: Sequence[str],
    shares: Floats,
    signed: bool = False,
    most: int = MAX_HEAT,
    unknown: Booleans | None = None,
) -> str:
    """Show a number for each two attributes or columns as a heat map and as a table."""
    if len(names) > most:
        return paragraph(f"Pairs of attributes are shown for at most {most} of them.")
    grey = np.zeros(shares.shape, dtype=bool) if unknown is None else unknown
    head = ("", *(str(j + 1) for j in range(len(names))))
    cells = [
        [NOT_KNOWN if blank else _points(share, signed) for share, blank in zip(*row, strict=True)]
        for row in zip(shares.tolist(), grey.tolist(), strict=True)
    ]
    rows = [(f"{i + 1} {name}", *cells[i]) for i, name in enumerate(names)]
    picture = _heat(title, names, np.where(grey, 0, shares), grey, cells, SIGNED if signed else CELL)
    return picture + folded(f"{title}: as a table", table(title, head, rows))


def _heat(
    title: str,
    names: Sequence[str],
    shares: Floats,
    grey: Booleans,
    cells: Sequence[Sequence[str]],
    cell: int,
) -> str:
    """Draw the cells, and beside them the names, which stay where they are while the cells scroll."""
    reach = max(float(np.nanmax(np.abs(shares), initial=0)), 1e-9)
    marks, heads = [], []
    for i, name in enumerate(names):
        middle = cell * i + cell * 1.5
        short = name if len(name) <= NAME else f"{name[: NAME - 3]}..."
        heads.append(element("text", text(f"{i + 1} {short}"), x=0, y=middle + 4))
        marks.append(element("text", text(i + 1), x=middle - cell, y=cell * 0.7, class_="middle"))
        for j, share in enumerate(shares[i].tolist()):
            shown: dict[str, object] = {"class_": "bar1" if share < 0 else "bar0"}
            shown["fill_opacity"] = f"{0 if isnan(share) else STRONGEST * abs(share) / reach:.3f}"
            if grey[i, j]:
                shown = {"class_": "unknown"}
            position = {"x": cell * j, "y": cell * (i + 1), "width": cell - 1, "height": cell - 1}
            marks.append(element("rect", **position, **shown))
            if not grey[i, j]:
                at = {"x": cell * (j + 0.5), "y": middle + 4, "class_": "middle"}
                marks.append(element("text", text(cells[i][j]), **at))
    width, height = cell * len(names), cell * (len(names) + 1)
    beside = element(
        "svg",
        *heads,
        viewBox=f"0 0 {MARGIN} {height}",
        width=MARGIN,
        height=height,
        preserveAspectRatio="xMinYMin slice",
        style=f"--part:{MARGIN}",
        class_="names",
        aria_hidden="true",
    )
    picture = element(
        "svg",
        *marks,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        style=f"--part:{width}",
        role="img",
        aria_label=f"{title}; the same numbers stand in the table below",
    )
    whole = scrolling(beside + picture, title)
    caption = element("figcaption", text(title))
    return element("figure", caption, whole, class_="heat", style=f"--whole:{MARGIN + width}")


def _points(share: float, signed: bool) -> str:
    if isnan(share):
        return ""
    if not signed:
        return f"{100 * share:.0f}"
    points = round(100 * share, 1)
    return f"{points:+.1f}" if points else "0"


SHORT = 18  # characters of a label that stands beside its share


@dataclass(frozen=True, slots=True)
class Marginal:
    """A column, the labels of its categories, and the share of rows in each."""

    column: str  # its name, or "Attributes" where yes/no columns stand together
    labels: tuple[str, ...]  # of its categories, or the yes/no columns
    # from 0 to 1, one for each label; those of yes/no columns together do not add up to 1
    shares: tuple[float, ...]


def marginals(rows: Rows, together: bool = False) -> list[Marginal]:
    """Return the marginals of the columns."""
    domain, (codes, n) = rows.domain, _unpacked(rows)
    counts = [tabulated(domain, codes, rows.counts, (c,)) for c in range(len(domain.sizes))]
    if together and domain.binary:
        return [Marginal("Attributes", domain.attributes, tuple(int(yes) / n for _, yes in counts))]
    return [
        Marginal(column.name, labels_of(column), tuple((numbers / n).tolist()))
        for column, numbers in zip(domain.columns, counts, strict=True)
    ]


def labels_of(column: Column) -> tuple[str, ...]:
    """Return the labels of a column's categories; of bins, where they are long, without the column's name."""
    if not column.cuts or max(map(len, column.labels)) <= SHORT:
        return column.labels
    named = re.compile(f"(^|<=){re.escape(column.name)}(?=<|>=)")
    return tuple(named.sub(r"\1...", label) for label in column.labels)


def association(rows: Rows, columns: int) -> Floats:
    """Return Cramer's V of each two of the first columns, shape (columns, columns); see `cramers_v`."""
    domain, (codes, n) = rows.domain, _unpacked(rows)
    strengths = np.eye(columns)
    for a in range(columns):
        for b in range(a):
            shape = domain.sizes[a], domain.sizes[b]
            table = tabulated(domain, codes, rows.counts, (a, b)).reshape(shape)
            strengths[a, b] = strengths[b, a] = cramers_v(table / n)
    return strengths


def uncovered(workload: Workload) -> list[tuple[int, ...]]:
    """Return the categories whose share no query asks for, up to sign and constant: no bound covers them."""
    domain = workload.domain
    whole = {block.columns for block in workload.cells}
    covered: list[set[int]] = [set() for _ in domain.sizes]
    for query in workload.listed:
        columns = query.columns(domain)
        if len(columns) == 1:
            covered[columns[0]].update(_standing_out(query.over_columns(domain), query.denominator))
    left = [{*range(k)} - covered[c] for c, k in enumerate(domain.sizes)]
    return [() if (c,) in whole else tuple(sorted(codes)) for c, codes in enumerate(left)]


def pairs_covered(workload: Workload) -> bool:
    """Tell whether a workload of yes/no columns asks of each two of them for the rows with both."""
    domain = workload.domain
    conjunction = ((0, 0, 0, 1), 1)
    both = {each.attributes for each in workload.listed if (each.weights, each.denominator) == conjunction}
    both |= {block.columns for block in workload.cells if len(block.columns) == 2}
    return len(both) == len(domain.sizes) * (len(domain.sizes) - 1) // 2


def _standing_out(values: Integers, denominator: int) -> list[int]:
    """Return the categories that stand out: a query is one number elsewhere, and all of 1 apart there."""
    codes = []
    for code, value in enumerate(values.tolist()):
        others = {*np.delete(values, code).tolist()}
        if len(others) == 1 and abs(value - others.pop()) == denominator:
            codes.append(code)
    return codes


def _unpacked(rows: Rows) -> tuple[Codes, int]:
    return np.asfortranarray(rows.codes()), rows.n
