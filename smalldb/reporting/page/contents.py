"""What a page shows of the synthetic data: the shares of every column, with whiskers, and the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from re import sub

from queries import Workload
from queries.frames import as_frame
from queries.late import pd
from smalldb.exact.numbers import as_text
from smalldb.releasing.evaluation import joint_shares
from smalldb.releasing.record import Record
from smalldb.releasing.released import Release
from smalldb.reporting.page.markup import element, folded, paragraph, section, table, text
from smalldb.reporting.page.pictures import MAX_COLUMNS, STEP, bars, heights, pairs
from smalldb.reporting.page.shares import Marginal, association, marginals, pairs_covered, uncovered
from smalldb.schema import Schema

SHOWN_ROWS, SHOWN_PLACES, SHOWN_COLUMNS = 20, 60, 200
TOGETHER = 20  # shares of short labels in one card, which fits on a sheet of paper
FEW, TURNED = 6, 5  # columns that stand side by side; rows of wider tables, which are turned
INDEXED = 9  # columns from which there is an index


def bound_of(record: Record) -> float | None:
    """Return the bound that a record states for the shares of this release, if it does."""
    bounds = record.get("bounds") or {}
    found = bounds.get("released", bounds.get("sharp"))
    return None if found is None else float(found)


def contents(release: Release, schema: Schema | None) -> str:
    """Show the synthetic data's own marginals and first rows; public, as the data are."""
    synthetic, workload, bound = release.rows, release.plan.workload, bound_of(release.record)
    domain, found = synthetic.domain, marginals(synthetic, schema is None)
    said = "Shares of the synthetic rows. They are public, as the rows are. "
    if bound is None:
        said += "No bound covers them."
    else:
        certain = as_text(1 - release.plan.beta)
        said += (
            "The line across a bar shows where the share in the data lies, for all of them together with "
            f"probability {certain} at least; the numbers in brackets are its ends, in percent. "
            "A share without a line is not covered by a bound."
        )
    if domain.binary:
        title, shares = "Synthetic rows with both of two attributes, in percent", joint_shares(synthetic)
        picture = pairs(title, domain.attributes, shares)
        marked = bound is not None and not pairs_covered(workload)
        note = "Of these shares, some are not covered by a bound." if marked else ""
    else:
        names = domain.names[:MAX_COLUMNS]
        title = "How strongly two columns go together in the synthetic rows: Cramer's V, from 0 to 100"
        picture = pairs(title, names, association(synthetic, len(names)), most=MAX_COLUMNS)
        note = "0: the two are independent; 100: one determines the other. No bound covers these numbers."
        if len(names) < len(domain.names):
            note += f" The first {len(names)} columns are shown."
    return section(
        "The synthetic data",
        "data",
        paragraph(said),
        cards(("synthetic", found), covered=_covered(workload, found, bound), anchored=True),
        picture,
        *([paragraph(note)] if note else []),
        _rows(release, schema),
    )


def cards(
    *tables: tuple[str, Sequence[Marginal]],
    covered: Sequence[Sequence[float | None]] | None = None,
    anchored: bool = False,
) -> str:
    """Draw the marginals of one or two named tables of the same columns; anchored, with an index of them.

    `covered` has for each column the bounds on its shares, None where there is none.
    """
    found, drawn, index = tables[0][1], [], []
    for c, columns in enumerate(zip(*(own for _, own in tables), strict=True)):
        if c == SHOWN_COLUMNS:
            break
        labels = columns[0].labels
        most = SHOWN_COLUMNS if len(found) == 1 else SHOWN_PLACES
        parts = _parts(heights(labels[:most], covered is not None))
        for part in parts:
            begin = part.start
            title, anchor = columns[0].column, f"column{c + 1}-{begin + 1}"
            if len(parts) > 1:
                title += f" ({begin + 1} to {part.stop} of {len(labels)})"
            series = [(name, own.shares[part]) for (name, _), own in zip(tables, columns, strict=True)]
            whiskers = None if covered is None else covered[c][part]
            drawn.append(
                bars(title, labels[part], *series, whiskers=whiskers, anchor=anchor if anchored else "")
            )
            if len(found) == 1:
                index += [(label, anchor) for label in labels[part]]
            elif begin == 0:
                index.append((columns[0].column, anchor))
    left = [f"the first {SHOWN_COLUMNS} columns"] if len(found) > SHOWN_COLUMNS else []
    most = SHOWN_COLUMNS if len(found) == 1 else SHOWN_PLACES
    left += [f"the first {most} places of a column"] if max(len(own.labels) for own in found) > most else []
    more = [paragraph(f"Of more, {' and '.join(left)} are drawn.")] if left else []
    listed = [_index(index)] if anchored and len(index) >= INDEXED else []
    return "".join([*listed, element("div", *drawn, class_="cards"), *more])


def _parts(high: Sequence[int]) -> list[slice]:
    """Share out places of these heights among cards that are alike high."""
    parts, begin, filled = [], 0, 0
    for i, height in enumerate(high):
        if filled + height > TOGETHER * STEP:
            parts.append(slice(begin, i))
            begin, filled = i, 0
        filled += height
    return [*parts, slice(begin, len(high))]


def _index(anchors: Sequence[tuple[str, str]]) -> str:
    """List the columns from A to Z, each with a link to its card."""
    # numbers by their size: 2 before 10
    ordered = sorted(anchors, key=lambda pair: sub(r"\d+", lambda m: m[0].zfill(12), pair[0].casefold()))
    links = [element("li", element("a", text(name), href=f"#{anchor}")) for name, anchor in ordered]
    inner = element("nav", element("ul", *links), aria_label="Columns from A to Z", class_="index")
    return folded(f"Find a column: all {len(links)} from A to Z", inner)


def _covered(workload: Workload, found: Sequence[Marginal], bound: float | None) -> list[list[float | None]]:
    """Return the bound on each share of each card, None where none covers it."""
    left = uncovered(workload)
    if len(found) == 1 and len(left) > 1:  # one card, a share for each column
        return [[None if places else bound for places in left]]
    return [
        [None if place in places else bound for place in range(len(column.labels))]
        for column, places in zip(found, left, strict=True)
    ]


def _rows(release: Release, schema: Schema | None) -> str:
    """Show the first rows; of a wide table fewer of them, side by side."""
    if schema is None or release.schema is not None:
        data = as_frame(release.data)
    else:
        data = schema.decode(release.places[:SHOWN_ROWS], middle=True)
    names, rows = list(map(str, data.columns)), data[:SHOWN_ROWS].itertuples(index=False)
    fields = [list(map(_field, row)) for row in rows]
    if len(names) <= FEW:
        rest = [(i + 1, *row) for i, row in enumerate(fields)]
        return folded(f"The first {len(rest)} rows", table("First rows", ("row", *names), rest))
    kept = fields[:TURNED]
    turned = list(zip(names, *kept, strict=True))
    head = ("column", *(f"row {i + 1}" for i in range(len(kept))))
    return folded(f"The first {len(kept)} rows", table("First rows, side by side", head, turned))


def _field(value: object) -> str:
    """Write a field of a released table."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return "missing"
    return str(value.date()) if isinstance(value, pd.Timestamp) else str(value)
