"""The page about two related tables that were released: HTML, for publication."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from smalldb.reporting.page.assembly import HEAD, SEEDED
from smalldb.reporting.page.markup import element, facts, folded, paragraph, section, table, text
from smalldb.schema.related_schema import RelatedSchema

MOST_TOLD = 24  # measured tables that are listed
NEIGHBOURS = {
    "replace-one": "one of them, with all that belongs to it, is replaced by another; their number is public",
    "add-remove": "one of them, with all that belongs to it, is added or removed; their number is private",
}


def related_page(record: Mapping[str, Any], schema: RelatedSchema, title: str | None = None) -> str:
    """Write the page, from the public record and the schema alone: one self-contained file."""
    own, other = (record["tables"][name] for name in schema.tables)
    parent, children, epsilon = schema.parent_said, schema.children_said, record["privacy"]["epsilon"]
    both = f"{schema.unit} and {schema.child}" if schema.whole is None else f"rows of each {schema.unit}"
    said = title or f"Synthetic tables: {both}"
    kept = ""
    covered, moved = "is one such change: the same epsilon covers it", "twice"
    if record["neighbours"] == "add-remove":
        covered, moved = "may be two such changes: twice the epsilon covers it", "four times"
    elif schema.whole is not None:
        kept = f" All this is of changes after which each {parent} keeps at least one row, and none is new."
    parts = [
        section(
            "What this is",
            "what",
            paragraph(
                f"Each {parent} may have {children}; the column {schema.link} says which belong together. "
                "No row is a row of the data; any resemblance is coincidental."
            ),
            facts([(schema.unit, f"{own['rows']:,}"), (children, f"{other['rows']:,}")]),
            paragraph("Keys are new numbers, and rows are in random order: neither says anything."),
        ),
        section(
            "What is guaranteed",
            "guarantee",
            paragraph(
                f"{epsilon}-differential privacy of each {parent} together with all its {children}. "
                f"Neighbours: {NEIGHBOURS[record['neighbours']]}."
            ),
            paragraph(
                f"Adding, removing or changing one of its {children} {covered}. "
                f"One that moves to another {parent} changes both: {moved} the epsilon covers it.{kept}"
            ),
            paragraph(f"Somebody who stands behind more than one {parent} is protected in each alone."),
        ),
        section(
            "How it was made",
            "how",
            paragraph(
                f"Tables of each {parent} with its number of {children} were measured with noise, at epsilon "
                f"{own['epsilon']}. Then tables of {children} with the columns of their {parent} were "
                f"measured at epsilon {other['epsilon']}. There each of s {children} of one {parent} weighs "
                f"1 / max(s, {other['weights']['cap']}), so all of them together weigh at most 1. Numbers "
                f"from {schema.most} on are released as {schema.most}."
            ),
            folded(
                "What was measured",
                *(
                    table(name, ["columns", "cells", "epsilon"], _measured(told["measurements"]))
                    for name, told in record["tables"].items()
                ),
            ),
        ),
        section(
            "How it may be used",
            "uses",
            paragraph(
                f"Suitable uses: shares and relations of columns of each {parent}, of {children}, and across "
                f"both; numbers of {children}; trying out programs."
            ),
            paragraph(
                f"Unsuitable uses: how {children} of one {parent} resemble or follow each other. Given their "
                f"{parent} they are drawn independently: that is an assumption, and no finding."
            ),
            paragraph(
                "Standard errors computed as if these rows were sampled are too small: they lack the noise. "
                "No bound on the error is stated."
            ),
        ),
    ]
    banner = element("p", element("strong", text(SEEDED)), class_="banner", role="note")
    style = files("smalldb.reporting.page").joinpath("page.css").read_text(encoding="utf-8")
    body = [
        "" if record["private"] else banner,
        element("header", element("h1", text(said))),
        element("main", *parts, id="text", tabindex="-1"),
        element("footer", paragraph(f"Written by smalldb {record['versions']['smalldb']}.")),
    ]
    head = HEAD + element("title", text(said)) + element("style", style)
    return head + "\n</head>\n" + element("body", *body) + "\n</html>\n"


def _measured(measurements: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, str]]:
    """Return a row for each measurement: what it is of, how many numbers, and its cost."""
    found = []
    for one in measurements[:MOST_TOLD]:
        names = [" x ".join(part.get("columns", ["all"])) for part in one["tables"]]
        found.append(("; ".join(names), len(one["values"]), str(one["epsilon"])))
    if len(measurements) > MOST_TOLD:
        found.append((f"and {len(measurements) - MOST_TOLD} more", 0, ""))
    return found
