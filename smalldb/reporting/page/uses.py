"""What a page says of uses: what the table is for, which pairs it has, and what is left to spend."""

from fractions import Fraction
from itertools import combinations

import numpy as np

from queries.arrays import Booleans
from smalldb.exact.numbers import brief
from smalldb.inference import share_intervals
from smalldb.mechanisms import Measurements
from smalldb.mechanisms.known_pairs import LEARNED, LITTLE, NOISY, NOT_MEASURED, KnownPair
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.record import stated_bound
from smalldb.releasing.released import Release
from smalldb.reporting.page.markup import element, facts, folded, paragraph, section, text

ASKED = (
    "Take shares, conditional shares, means and differences from the published measurements, each with its "
    "interval (smalldb ask)."
)
TOO_SMALL = "Standard errors computed as if these rows were people are too small."
INSTEAD = (
    "Take intervals from the measurements (smalldb ask), or draw several tables from the public files "
    "(smalldb tables), and combine what you compute (smalldb.inference.combine)."
)
OTHERS = "This release has no intervals that include the noise; its bound is below."
UNKNOWN = "Do not study relations of columns that were not measured together: the rows assume none."


UNMEASURED_BOUND = (
    " For pairs of columns that were not measured together, only the bound on all queries holds: a share "
    "that is smaller than this bound may be entirely wrong."
)


def uses(release: Release, confidential: bool) -> str:
    """Say what the table may be used for, and what not; `confidential`: the page is not for publication."""
    record, measured = release.record, bool(len(release.measurements))
    queries = record["queries"]["text"]
    publish = "Publish the table, but not this page" if confidential else "Publish it and pass it on"
    lacking = stated_bound(record) is not None and any(
        pair.known == NOT_MEASURED for pair in release.measurements.pairs()
    )
    of_unmeasured = UNMEASURED_BOUND if lacking else ""
    may = [
        f"{publish}: no use of the table costs the people in the data any more privacy.",
        f"Read from it what it was made to answer ({queries}), with the error that is stated below."
        + of_unmeasured,
        *([ASKED] if measured else []),
        "Try out programs and questions on it, teach with it, prepare a study of the data themselves.",
    ]
    may_not = [
        "Do not look for people in it: no row belongs to anybody, and any resemblance is coincidental.",
        "Do not make decisions about single people with it.",
        "Do not use it like the data in other analyses: no error is promised for means over rare groups, "
        "for models, or for other queries.",
        f"{TOO_SMALL} {INSTEAD if measured else OTHERS}",
        *([UNKNOWN] if measured else []),
    ]
    if not record["private"]:
        may = ["Experiments with made-up or public data alone: this release is not private."]
    return section(
        "What it may be used for",
        "uses",
        _listed("Suitable uses:", may),
        _listed("Unsuitable uses:", may_not),
    )


def spent(account: Account | None) -> str:
    """Say what was spent of the data's budget, and what is left."""
    if account is None:
        inner = paragraph(
            "No ledger is kept with this release. Its curator has to add up the epsilons of all releases "
            "from the same data."
        )
    else:
        budget, number = f"epsilon {brief(account.budget)}", len(account.records)
        spent_so_far, left = brief(account.spent), brief(account.left)
        adding = "Epsilons add up, however releases were chosen."
        if account.delta is not None:
            rho, spent_rho, left_rho = account.in_rho
            budget = f"(epsilon, delta) = {account.stated}, or rho {rho},"
            spent_so_far, left = f"rho {spent_rho}", f"rho {left_rho}"
            adding = "Rhos add up, however releases were chosen."
        inner = facts(
            [
                ("Budget", f"{budget} for all releases together"),
                ("Spent", f"{spent_so_far} by {number} in all, including this one"),
                ("Left", left),
            ]
        ) + paragraph(f"The state right after this release. {adding}")
    return section("The privacy budget of the data", "budget", inner)


def _listed(title: str, points: list[str]) -> str:
    return element("p", text(title)) + element("ul", *(element("li", text(point)) for point in points))


SHOWN_PAIRS = 300
Ends = tuple[float, float]

ASSUMED = (
    "Columns that were not measured together are independent in the synthetic rows, given the columns in "
    "between. This is an assumption: no released number supports or contradicts it."
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
                "This mechanism draws a whole table, and measures no pair of columns. It learned nothing "
                "about relations that its queries do not ask for."
            ),
        )
    by: dict[str, list[str]] = {LEARNED: [], NOISY: [], LITTLE: [], NOT_MEASURED: []}
    partners: dict[str, list[str]] = {name: [] for name in measured.domain.names}
    every, rules = measured.pairs(), measured.domain.rules
    for pair in every:
        by[pair.known].append(_at_groups(pair) + (f" ({pair.told})" if pair.quiet else ""))
        if pair.known == LEARNED:
            for name, other in (pair.columns, pair.columns[::-1]):
                partners[name].append(other)
    names = measured.domain.names
    ruled = {(names[a], names[b]) for rule in rules for a, b in combinations(rule.columns, 2)}
    unmeasured = (pair for pair in every if pair.known == NOT_MEASURED)
    tied = [" x ".join(pair.columns) for pair in unmeasured if pair.columns in ruled]
    total, learned, noisy, little, unknown = sum(map(len, by.values())), *map(len, by.values())
    if not total:
        return section(title, anchor, paragraph("There is one column, so there is no relation to learn."))
    sentences = {
        LEARNED: f"{learned:,} of {total:,} pairs of columns were learned: they were measured, and their "
        "dependence stands out from the noise.",
        NOISY: f"{noisy:,} were measured and are too noisy to tell: the list says how large a dependence "
        "could be hidden.",
        LITTLE: f"{little:,} were measured and depend little: the list says at most how much.",
        NOT_MEASURED: f"{unknown:,} were not measured together.",
    }
    if tied:
        sentences[NOT_MEASURED] += (
            f" Rules connect {len(tied):,} of these: {_some(tied)}. The rows keep the rules; nothing else "
            "is known about how these columns depend."
        )
    lists = [_listed_pairs(f"The pairs that {verb}", by[kind]) for kind, verb in _VERBS.items() if by[kind]]
    points = element("ul", *(element("li", text(point)) for point in sentences.values()))
    learned_with = [f"{name}: {', '.join(others) or 'none'}" for name, others in partners.items()]
    lists.append(_listed_pairs("What each column was learned with", learned_with))
    groups = paragraph(
        "A pair may have been measured at groups of categories, whose number the lists state: finer detail "
        "was not learned. smalldb ask says for each question whether it was measured. The dependence is the "
        "difference between the share of a condition on both columns and that of independent columns."
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
    named = [
        " x ".join(
            name if max(group) + 1 == len(group) else f"{name} in {max(group) + 1} groups"
            for name, group in zip(pair.columns, groups, strict=True)
        )
        for groups in pair.groups
    ]
    return ", and ".join(named) or " x ".join(pair.columns)


def _some(names: list[str], most: int = 6) -> str:
    return "; ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _listed_pairs(title: str, names: list[str]) -> str:
    more = len(names) - SHOWN_PAIRS
    shown = [*names[:SHOWN_PAIRS], *([f"and {more:,} more"] if more > 0 else [])]
    return folded(f"{title}: {len(names):,}", element("p", text("; ".join(shown))))


def unknown_pairs(measured: Measurements, columns: int) -> Booleans | None:
    """Return which of the first columns were not measured together, as a matrix; None: not told."""
    if not len(measured):
        return None
    at = {name: c for c, name in enumerate(measured.domain.names[:columns])}
    unknown = np.zeros((columns, columns), dtype=bool)
    for pair in measured.pairs():
        if pair.known == NOT_MEASURED and at.keys() >= {*pair.columns}:
            a, b = (at[name] for name in pair.columns)
            unknown[a, b] = unknown[b, a] = True
    return unknown


def measured_shares(measured: Measurements, level: Fraction, columns: int) -> list[tuple[Ends | None, ...]]:
    """Return the ends of the interval of each share of the first columns, None where it was not measured."""
    return [
        tuple(one and (one.low, one.high) for one in share_intervals(measured, c, level))
        for c in range(min(columns, len(measured.domain.sizes)))
    ]
