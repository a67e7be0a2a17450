"""What a page says of what was learned: pairs of columns, and the share of each category."""

from fractions import Fraction

import numpy as np

from queries.arrays import Booleans
from smalldb.inference import share_intervals
from smalldb.mechanisms import Measurements
from smalldb.mechanisms.known_pairs import LEARNED, NOT_MEASURED, QUIET
from smalldb.releasing.released import Release
from smalldb.reporting.page.markup import element, folded, paragraph, section, text

SHOWN_PAIRS = 300
Ends = tuple[float, float]

ASSUMED = (
    "Columns that were not measured together are independent in the synthetic rows, given the columns in "
    "between. That is an assumption and no finding: nothing that was released speaks for or against it."
)


def not_learned(release: Release) -> str:
    """Say which pairs of columns were not learned."""
    measured = release.measurements
    title, anchor = "What was not learned", "unknown"
    if not len(measured):
        return section(
            title,
            anchor,
            paragraph(
                "This mechanism draws a table at once, and measures no pair of columns by itself. Of "
                "relations that its queries do not ask for, nothing was learned."
            ),
        )
    by: dict[str, list[str]] = {LEARNED: [], QUIET: [], NOT_MEASURED: []}
    for pair in measured.pairs():
        by[pair.known].append(" x ".join(pair.columns))
    total, learned, quiet, unknown = sum(map(len, by.values())), *map(len, by.values())
    if not total:
        return section(title, anchor, paragraph("There is one column, so there is no relation to learn."))
    said = {
        LEARNED: f"{learned:,} of {total:,} pairs of columns were learned: measured, and dependence "
        "stands out of the noise.",
        QUIET: f"{quiet:,} were measured and are quiet: over all their cells, dependence "
        "does not stand out of the noise.",
        NOT_MEASURED: f"{unknown:,} were not measured together.",
    }
    lists = [_listed(f"The pairs that {verb}", by[kind]) for kind, verb in _VERBS.items() if by[kind]]
    points = element("ul", *(element("li", text(point)) for point in said.values()))
    groups = paragraph(
        "A pair may have been measured at groups of categories: what is finer was not learned either. "
        "smalldb ask says of each question whether it was."
    )
    return section(title, anchor, points, *([paragraph(ASSUMED)] if unknown else []), groups, *lists)


_VERBS = {
    NOT_MEASURED: "were not measured",
    QUIET: "were measured and are quiet",
    LEARNED: "were learned",
}


def _listed(title: str, names: list[str]) -> str:
    more = len(names) - SHOWN_PAIRS
    shown = [*names[:SHOWN_PAIRS], *([f"and {more:,} more"] if more > 0 else [])]
    return folded(f"{title}: {len(names):,}", element("p", text("; ".join(shown))))


def unknown_pairs(measured: Measurements, columns: int) -> Booleans | None:
    """Return which of the first columns were not measured together, as a matrix; None: not told."""
    if not len(measured):
        return None
    at = {name: c for c, name in enumerate(measured.domain.names[:columns])}
    found = np.zeros((columns, columns), dtype=bool)
    for pair in measured.pairs():
        if pair.known == NOT_MEASURED and at.keys() >= {*pair.columns}:
            a, b = (at[name] for name in pair.columns)
            found[a, b] = found[b, a] = True
    return found


def measured_shares(measured: Measurements, level: Fraction, columns: int) -> list[tuple[Ends | None, ...]]:
    """Return the ends of the interval of each share of the first columns, None where it was not measured."""
    return [
        tuple(one and (one.low, one.high) for one in share_intervals(measured, c, level))
        for c in range(min(columns, len(measured.domain.sizes)))
    ]
