"""What a page says of what was learned: pairs of columns, and the share of each category."""

from fractions import Fraction
from itertools import combinations

import numpy as np

from queries.arrays import Booleans
from smalldb.inference import share_intervals
from smalldb.mechanisms import Measurements
from smalldb.mechanisms.known_pairs import LEARNED, LITTLE, NOISY, NOT_MEASURED, KnownPair
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
    by: dict[str, list[str]] = {LEARNED: [], NOISY: [], LITTLE: [], NOT_MEASURED: []}
    partners: dict[str, list[str]] = {name: [] for name in measured.domain.names}
    every, ruled = measured.pairs(), _ruled(measured)
    for pair in every:
        by[pair.known].append(_at_groups(pair) + (f" ({pair.told})" if pair.quiet else ""))
        if pair.known == LEARNED:
            for name, other in (pair.columns, pair.columns[::-1]):
                partners[name].append(other)
    tied = [
        " x ".join(pair.columns) for pair in every if pair.known == NOT_MEASURED and pair.columns in ruled
    ]
    total, learned, noisy, little, unknown = sum(map(len, by.values())), *map(len, by.values())
    if not total:
        return section(title, anchor, paragraph("There is one column, so there is no relation to learn."))
    said = {
        LEARNED: f"{learned:,} of {total:,} pairs of columns were learned: measured, and dependence "
        "stands out of the noise.",
        NOISY: f"{noisy:,} were measured and are too noisy to tell: the list says how large a "
        "dependence could hide.",
        LITTLE: f"{little:,} were measured and depend little: the list says by how much at most.",
        NOT_MEASURED: f"{unknown:,} were not measured together.",
    }
    if tied:
        said[NOT_MEASURED] += (
            f" Of these, rules tie {len(tied):,}: {_some(tied)}. What follows from a rule holds in the "
            "rows; nothing else is known of how these depend."
        )
    lists = [_listed(f"The pairs that {verb}", by[kind]) for kind, verb in _VERBS.items() if by[kind]]
    points = element("ul", *(element("li", text(point)) for point in said.values()))
    lists.append(
        _listed(
            "What each column was learned with",
            [f"{name}: {', '.join(own) or 'none'}" for name, own in partners.items()],
        )
    )
    groups = paragraph(
        "A pair may have been measured at groups of categories, as many as the lists say: what is finer was "
        "not learned either. smalldb ask says of each question whether it was. A dependence is by how much "
        "the share of a condition on both columns differs from that of independent columns."
    )
    return section(title, anchor, points, *([paragraph(ASSUMED)] if unknown else []), groups, *lists)


_VERBS = {
    NOT_MEASURED: "were not measured",
    NOISY: "are too noisy to tell",
    LITTLE: "depend little",
    LEARNED: "were learned",
}


def _at_groups(pair: KnownPair) -> str:
    """Name a pair, and where categories were measured in groups, in how many."""
    told = [
        " x ".join(
            name if max(own) + 1 == len(own) else f"{name} in {max(own) + 1} groups"
            for name, own in zip(pair.columns, groups, strict=True)
        )
        for groups in pair.groups
    ]
    return ", and ".join(told) or " x ".join(pair.columns)


def _ruled(measured: Measurements) -> set[tuple[str, str]]:
    """Return the pairs of columns that one rule looks at together."""
    names = measured.domain.names
    return {(names[a], names[b]) for rule in measured.domain.rules for a, b in combinations(rule.columns, 2)}


def _some(names: list[str], most: int = 6) -> str:
    return "; ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


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
