"""What a page shows of the synthetic data: the shares of every column, with whiskers, and the first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import zip_longest
from re import sub
from typing import Any

from queries import Workload
from queries.arrays import pd
from queries.expressions import quote
from queries.frames import as_frame
from smalldb.exact.numbers import as_text
from smalldb.inference import ask
from smalldb.inference.cross_tables import cross_table, is_number
from smalldb.mechanisms import Measurements
from smalldb.releasing.distances import joint_shares
from smalldb.releasing.record import stated_bound
from smalldb.releasing.released import Release
from smalldb.reporting.page.markup import element, folded, paragraph, section, table, text
from smalldb.reporting.page.pictures import (
    MAX_COLUMNS,
    STEP,
    Marginal,
    association,
    bars,
    heights,
    marginals,
    pairs,
    pairs_covered,
    uncovered,
)
from smalldb.reporting.page.uses import Ends, measured_shares, unknown_pairs
from smalldb.reporting.words import answer_cell
from smalldb.schema import Column, Schema
from smalldb.schema.table_writers import plainly

SHOWN_ROWS, SHOWN_CATEGORIES, SHOWN_COLUMNS = 20, 60, 200
TOGETHER = 20  # shares of short labels in one card, which fits on a sheet of paper
FEW, TURNED = 6, 5  # columns that stand side by side; rows of wider tables, which are turned
LEVEL = Fraction(19, 20)  # of the interval of a share
OWN_INTERVALS = 100  # columns whose shares have them: each takes a moment
OWN_NUMBERS = 12  # columns whose means have them, which takes longer
OF_NUMBERS = {
    **{"mean": "mean({})", "lower quartile": "quantile({}, 0.25)"},
    **{"median": "median({})", "upper quartile": "quantile({}, 0.75)"},
}
INDEXED = 9  # columns from which there is an index


def contents(release: Release, schema: Schema | None) -> str:
    """Show the synthetic data's own marginals and first rows; public, as the data are."""
    synthetic, workload, bound = release.rows, release.plan.workload, stated_bound(release.record)
    domain, shown = synthetic.domain, marginals(synthetic, schema is None)
    meanings = {} if schema is None else {column.name: column.meaning for column in schema.columns}
    ends = _ends(workload, shown, bound, measured_shares(release.measurements, LEVEL, OWN_INTERVALS))
    explanation = "Shares of the synthetic rows, which are public, like the rows. "
    explanation += _explained(ends, as_text(1 - release.plan.beta))
    if domain.binary:
        title, shares = "Synthetic rows with both of two attributes, in percent", joint_shares(synthetic)
        unknown = unknown_pairs(release.measurements, len(domain.attributes))
        picture = pairs(title, domain.attributes, shares, unknown=unknown)
        marked = bound is not None and not pairs_covered(workload)
        note = "No bound covers some of these shares. " if marked else ""
    else:
        names = domain.names[:MAX_COLUMNS]
        title = "How strongly two columns depend in the synthetic rows: Cramer's V, from 0 to 100"
        unknown = unknown_pairs(release.measurements, len(names))
        strengths = association(synthetic, len(names))
        picture = pairs(title, names, strengths, most=MAX_COLUMNS, unknown=unknown)
        note = "0: independent; 100: each determines the other. No bound covers these numbers. "
        if len(names) < len(domain.names):
            note += f"The first {len(names)} columns are shown. "
    if unknown is not None and unknown.any():
        note += "Grey: the two were not measured together, so the rows do not show how they depend on each "
        note += "other, except where a rule connects them." if domain.rules else "other."
    return section(
        "The synthetic data",
        "data",
        paragraph(explanation),
        cards(("synthetic", shown), covered=[line for line, _ in ends], anchored=True, meanings=meanings),
        *_numbers(release.measurements),
        picture,
        *([paragraph(note)] if note else []),
        _rows(release, schema),
    )


def _numbers(measured: Measurements) -> list[str]:
    """Show the means and quartiles of the data's numbers that were measured, with their intervals."""
    names = [column.name for column in measured.domain.columns if is_number(measured, column)]
    rows = []
    for name in names[:OWN_NUMBERS]:
        questions = [what.format(quote(name)) for what in OF_NUMBERS.values()]
        _, lines = cross_table(measured, questions, None, partial(ask, measured, level=LEVEL))
        rows.append((name, *(answer_cell(line.answers[0]) for line in lines)))
    rows = [row for row in rows if {*row[1:]} - {"not measured", "error"}]
    if not rows:
        return []
    more = f"The first {OWN_NUMBERS} columns of numbers are shown. " if len(names) > OWN_NUMBERS else ""
    return [
        table("Means and quartiles of the data, from what was measured", ("column", *OF_NUMBERS), rows),
        paragraph(
            f"{more}Each interval covers with probability {as_text(LEVEL)}, by itself. A mean with no number "
            "before its interval holds wherever numbers lie in their bins; quartiles are known by bins."
        ),
    ]


def cards(
    *tables: tuple[str, Sequence[Marginal]],
    covered: Sequence[Sequence[Ends | None]] | None = None,
    anchored: bool = False,
    meanings: Mapping[str, str] | None = None,
) -> str:
    """Draw the marginals of one or two named tables of the same columns."""
    first, drawn, index = tables[0][1], [], []
    most = SHOWN_COLUMNS if len(first) == 1 else SHOWN_CATEGORIES
    for c, columns in enumerate(zip(*(column for _, column in tables), strict=True)):
        if c == SHOWN_COLUMNS:
            break
        labels = columns[0].labels
        parts = _parts(heights(labels[:most], covered is not None))
        for part in parts:
            begin = part.start
            title, anchor = columns[0].column, f"column{c + 1}-{begin + 1}"
            meaning = (meanings or {}).get(title)
            title = f"{title}: {meaning}" if meaning else title
            if len(parts) > 1:
                title += f" ({begin + 1} to {part.stop} of {len(labels)})"
            series = [(name, column.shares[part]) for (name, _), column in zip(tables, columns, strict=True)]
            whiskers = None if covered is None else covered[c][part]
            mark = anchor if anchored else ""
            drawn.append(bars(title, labels[part], *series, whiskers=whiskers, anchor=mark))
            if len(first) == 1:
                index += [(label, anchor) for label in labels[part]]
            elif begin == 0:
                index.append((columns[0].column, anchor))
    left = [f"the first {SHOWN_COLUMNS} columns"] if len(first) > SHOWN_COLUMNS else []
    if max(len(column.labels) for column in first) > most:
        left.append(f"the first {most} categories of a column")
    more = [paragraph(f"Only {' and '.join(left)} are drawn.")] if left else []
    listed = [_index(index)] if anchored and len(index) >= INDEXED else []
    return "".join([*listed, element("div", *drawn, class_="cards"), *more])


def _parts(high: Sequence[int]) -> list[slice]:
    """Share out positions of these heights among cards that are alike high."""
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


_Line = tuple[list[Ends | None], list[bool]]
"""Of a card: between which shares those of the data lie, and whether an own interval says so."""


def _ends(
    workload: Workload,
    columns: Sequence[Marginal],
    bound: float | None,
    measured: Sequence[Sequence[Ends | None]],
) -> list[_Line]:
    """Return for each share of each card its own interval, where it was measured; else that of the bound."""
    left = uncovered(workload)
    if len(columns) == 1 and len(left) > 1:  # one card, a share for each column
        lacking = [bool(codes) for codes in left]
        yes = [ends[1] for ends in measured]
        return [_line(columns[0].shares, lacking, bound, yes)]
    lines = []
    for c, (column, codes) in enumerate(zip(columns, left, strict=True)):
        lacking = [code in codes for code in range(len(column.labels))]
        lines.append(_line(column.shares, lacking, bound, measured[c] if c < len(measured) else ()))
    return lines


def _line(
    shares: Sequence[float], lacking: Sequence[bool], bound: float | None, measured: Sequence[Ends | None]
) -> _Line:
    ends = list[Ends | None]()
    for share, without, interval in zip_longest(shares, lacking, measured[: len(shares)]):
        covered = None if bound is None or without else (max(0.0, share - bound), min(1.0, share + bound))
        ends.append(covered if interval is None else interval)
    return ends, [interval is not None for interval in measured]


def _explained(lines: Sequence[_Line], certain: str) -> str:
    by_noise = any(any(measured) for _, measured in lines)
    rest = any(
        end is not None and not by_itself
        for ends, measured in lines
        for end, by_itself in zip_longest(ends, measured, fillvalue=False)
    )
    if not (by_noise or rest):
        return "No bound covers them."
    line = "The line across a bar covers the share in the data; the numbers in brackets are its ends"
    sentences = [f"{line}, in percent."]
    if by_noise:
        interval = "For a measured share it is an interval from the noise, which covers with probability"
        sentences.append(f"{interval} {as_text(LEVEL)}, each by itself.")
    if rest:
        bound = "follows from the bound of the release: with probability at least"
        sentences.append(
            f"{'For others it' if by_noise else 'It'} {bound} {certain}, all of these lines cover."
        )
    return " ".join([*sentences, "No bound covers a share without a line."])


def _rows(release: Release, schema: Schema | None) -> str:
    """Show the first rows; of a wide table fewer of them, side by side."""
    if schema is None or release.schema is not None:
        data = as_frame(release.data)
    else:
        data = schema.decode(release.codes[:SHOWN_ROWS], middle=True)
    names, shown = list(map(str, data.columns)), data[:SHOWN_ROWS]
    known = {} if schema is None else {column.name: column for column in schema.released}
    texts = [_fields(shown.iloc[:, i], known.get(name)) for i, name in enumerate(names)]
    fields = [list(row) for row in zip(*texts, strict=True)]
    if len(names) <= FEW:
        rest = [(i + 1, *row) for i, row in enumerate(fields)]
        return folded(f"The first {len(rest)} rows", table("First rows", ("row", *names), rest))
    kept = fields[:TURNED]
    turned = list(zip(names, *kept, strict=True))
    head = ("column", *(f"row {i + 1}" for i in range(len(kept))))
    return folded(f"The first {len(kept)} rows", table("First rows, side by side", head, turned))


def _fields(values: pd.Series[Any], column: Column | None) -> list[str]:
    """Write the fields of a column as its file has them; a gap is called missing."""
    if column is None:
        plain = plainly(values, "")
        codes, texts = plain.codes, plain.fields
    else:
        codes, texts = column.written(values)
    return ["missing" if texts[code] is None else str(texts[code]) for code in codes.tolist()]
