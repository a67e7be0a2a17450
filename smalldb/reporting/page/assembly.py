"""The page itself, and what a confidential one compares with the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from re import findall
from typing import Any, final

from queries import Rows
from smalldb.planning import Plan
from smalldb.releasing.distances import joint_shares, pair_distances
from smalldb.releasing.evaluation import Evaluation
from smalldb.releasing.released import Release
from smalldb.reporting.evaluated import summary_rows
from smalldb.reporting.page.contents import cards, contents
from smalldb.reporting.page.describing import (
    About,
    derivation,
    errors,
    machine_readable,
    protected,
    suited,
    what,
)
from smalldb.reporting.page.guarantee import assumed, guarantee
from smalldb.reporting.page.markup import element, facts, paragraph, section, table, text
from smalldb.reporting.page.pictures import MAX_COLUMNS, marginals, pairs
from smalldb.reporting.page.uses import not_learned, spent, uses
from smalldb.schema import Schema


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """The data, and how far a release is off. Confidential: it is computed from the data."""

    real: Rows  # the rows of the data
    # the answers of the release's queries on both tables; None where the data have no rows
    evaluation: Evaluation | None
    target: str | None = None  # a column that classifiers are trained to tell; None: none are

    def __repr__(self) -> str:
        return "<Comparison: computed from the data>"


BANNER = "CONFIDENTIAL: a part of this page was computed from the data. Not for publication."


def compared(comparison: Comparison, synthetic: Rows, schema: Schema | None, plan: Plan) -> str:
    """Show the release beside the data."""
    real, evaluation = comparison.real, comparison.evaluation
    title, lead = "Compared with the data", element("strong", text("CONFIDENTIAL. "))
    if evaluation is None:
        none = text("The data have no rows: there is nothing to compare.")
        return section(title, "compared", element("p", lead, none))
    worst = [
        (row.query, f"{row.real:.4f}", f"{row.synthetic:.4f}", f"{row.error:.4f}")
        for row in evaluation.worst().itertuples()
    ]
    key = [element("span", text(name), class_=f"key{i}") for i, name in enumerate(("real", "synthetic"))]
    largest, mean = f"{float(evaluation.max_error):.4f}", f"{float(evaluation.mean_error):.4f}"
    return section(
        title,
        "compared",
        element("p", lead, text("This section shows the data.")),
        facts([("Largest error", largest), ("Mean error", mean)]),
        table("The queries that are farthest off", ("query", "real", "synthetic", "error"), worst),
        element("p", *key, class_="key"),
        cards(("real", marginals(real, schema is None)), ("synthetic", marginals(synthetic, schema is None))),
        *_summary(evaluation, plan, comparison.target),
        _pairs(real, synthetic),
    )


def _summary(evaluation: Evaluation, plan: Plan, target: str | None) -> list[str]:
    """Show what the release gets right beside what simple ways do at the same epsilon."""
    long = evaluation.by_column(
        epsilon=plan.privacy / plan.rows_per_person, neighbours=plan.neighbours, target=target
    )
    head, *rows = summary_rows(long)
    of_target = "" if target is None else f"; the target is {target}"
    note = (
        "The distance of two tables is half the sum, over their cells, of the differences of shares. The "
        "simple methods spend the same epsilon on the counts of each column, or on the count of every cell."
    )
    title = f"Compared with simple methods at the same epsilon{of_target}"
    return [table(title, head, rows), paragraph(note)]


def _pairs(real: Rows, synthetic: Rows) -> str:
    """Show how far each two columns are off together."""
    domain = real.domain
    if domain.binary:
        title = "Rows with both of two attributes, synthetic less real, in percentage points"
        off = joint_shares(synthetic) - joint_shares(real)
        return pairs(title, domain.attributes, off, signed=True)
    names = domain.names[:MAX_COLUMNS]
    off = pair_distances(real, synthetic, len(names))
    title = "Distance of the table of each two columns (in the diagonal, of one), in percent"
    return pairs(title, names, off, most=MAX_COLUMNS)


HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="smalldb">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""
SEEDED = "NOT PRIVATE: the randomness came from a seed. For experiments only."


@final
@dataclass(frozen=True, slots=True)
class Shown:
    """What cards of a page are made from."""

    release: Any
    schema: Schema | None
    comparison: Comparison | None
    about: About
    title: str


CARDS: tuple[Callable[[Shown], str], ...] = (
    lambda shown: what(shown.release.plan, shown.release.record, shown.about, shown.title),
    lambda shown: not_learned(shown.release),
    lambda shown: guarantee(shown.release.plan, shown.release.record),
    lambda shown: assumed(shown.release.plan, shown.release.record),
    lambda shown: uses(shown.release, shown.comparison is not None),
    lambda shown: errors(shown.release.plan, shown.release.record),
    lambda shown: contents(shown.release, shown.schema),
    lambda shown: spent(shown.about.account),
    lambda shown: machine_readable(shown.release.plan, shown.release.record, shown.schema),
)


RELATED: tuple[Callable[[Shown], str], ...] = (
    CARDS[0],
    CARDS[2],
    lambda shown: protected(shown.release.plan, shown.release.record),
    CARDS[3],
    lambda shown: suited(shown.release.plan),
    lambda shown: derivation(shown.release.plan, shown.release.record),
    *CARDS[-2:],
)


def page(
    release: Release,
    schema: Schema | None = None,
    comparison: Comparison | None = None,
    about: About | None = None,
) -> str:
    """Write a page about a release, one file of HTML; without `comparison` it may be published."""
    record, plan = release.record, release.plan
    about = About() if about is None else about
    title = about.title or f"A synthetic table of {record['rows']:,} rows"
    if plan.request.links is None:
        schema = release.schema if schema is None else schema
    else:
        title = about.title or f"Synthetic tables: {' and '.join(record['tables'])}"
    shown = Shown(release, schema, comparison, about, title)
    parts = [card(shown) for card in (CARDS if plan.request.links is None else RELATED)]
    banners = [] if record["private"] else [SEEDED]
    if comparison is not None:
        banners.append(BANNER)
        parts.insert(0, compared(comparison, shown.release.rows, schema, plan))
    lead = "Made from data about people under differential privacy. "
    if comparison is not None:
        lead += "Not for publication."
    elif record["private"]:
        lead += "Everything on this page may be published."
    headings = findall('<h2 id="([a-z0-9-]+)">(.*?)</h2>', "".join(parts))
    links = [element("li", element("a", words, href=f"#{anchor}")) for anchor, words in headings]
    body = [
        element("a", text("Skip to the text"), href="#text", class_="skip"),
        *(element("p", element("strong", text(words)), class_="banner", role="note") for words in banners),
        element("header", element("h1", text(title)), paragraph(lead)),
        element("nav", element("ul", *links), aria_label="Contents", class_="contents"),
        element("main", *parts, id="text", tabindex="-1"),
        element("footer", paragraph(f"Written by smalldb {record['versions']['smalldb']}.")),
    ]
    style = files("smalldb.reporting.page").joinpath("page.css").read_text(encoding="utf-8")
    head = HEAD + element("title", text(title)) + element("style", style)
    return head + "\n</head>\n" + element("body", *body) + "\n</html>\n"
