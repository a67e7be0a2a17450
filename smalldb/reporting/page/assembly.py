"""The page itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from re import findall
from typing import TYPE_CHECKING, Any, final

from smalldb.releasing.released import Release
from smalldb.reporting.page.comparison import BANNER, Comparison, compared
from smalldb.reporting.page.contents import contents
from smalldb.reporting.page.describing import About, errors, machine_readable, what
from smalldb.reporting.page.guarantee import assumed, guarantee
from smalldb.reporting.page.markup import element, paragraph, text
from smalldb.reporting.page.related import made, protected, suited
from smalldb.reporting.page.uses import not_learned, spent, uses
from smalldb.schema import Schema

if TYPE_CHECKING:
    from smalldb.releasing.related_release import RelatedRelease

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
    lambda shown: made(shown.release.plan, shown.release.record),
    *CARDS[-2:],
)


def page(
    release: Release | RelatedRelease,
    schema: Schema | None = None,
    comparison: Comparison | None = None,
    about: About | None = None,
) -> str:
    """Write a page about a release: one self-contained file of HTML.

    Without `comparison` it is a function of what may be published, and may be published.

    Parameters
    ----------
    release
        Its table, record and plan are read; not its confidential part.
    schema
        What the codes of the release's columns stand for; None: for themselves.
    comparison
        The data and how far the release is off. The page is confidential then, and says so.
    about
        Title, publisher, the name of the data and the state of their ledger; public.

    Examples
    --------
    >>> import smalldb, pandas as pd
    >>> made = smalldb.release(pd.DataFrame({"a": [0, 1], "b": [1, 1]}), epsilon=1, rows=2)
    >>> page(made).startswith("<!doctype html>")
    True
    """
    record, plan = release.record, release.plan
    about = About() if about is None else about
    title = about.title or f"A synthetic table of {record['rows']:,} rows"
    if isinstance(release, Release):
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
    links = [element("li", element("a", said, href=f"#{anchor}")) for anchor, said in headings]
    body = [
        element("a", text("Skip to the text"), href="#text", class_="skip"),
        *(element("p", element("strong", text(said)), class_="banner", role="note") for said in banners),
        element("header", element("h1", text(title)), paragraph(lead)),
        element("nav", element("ul", *links), aria_label="Contents", class_="contents"),
        element("main", *parts, id="text", tabindex="-1"),
        element("footer", paragraph(f"Written by smalldb {record['versions']['smalldb']}.")),
    ]
    style = files("smalldb.reporting.page").joinpath("page.css").read_text(encoding="utf-8")
    head = HEAD + element("title", text(title)) + element("style", style)
    return head + "\n</head>\n" + element("body", *body) + "\n</html>\n"
