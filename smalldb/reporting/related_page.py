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
    unit, child = schema.unit, schema.child
    own, other = record["tables"][unit], record["tables"][child]
    said = title or f"Synthetic tables: {unit} and {child}"
    once = record["neighbours"] == "replace-one"
    covered = (
        f"Adding, removing or changing one row of {child} is one such change: the same epsilon covers it."
        if once
        else f"Changing one row of {child} is two such changes: twice the epsilon covers it."
    )
    parts = [
        section(
            "What this is",
            "what",
            paragraph(
                f"Two synthetic tables. Rows of {child} belong to rows of {unit} by the column "
                f"{schema.link}. No row is a row of the data; any resemblance is coincidental."
            ),
            facts([(unit, f"{own['rows']:,} rows"), (child, f"{other['rows']:,} rows")]),
            paragraph("Keys are new numbers, and rows are in random order: neither says anything."),
        ),
        section(
            "What is guaranteed",
            "guarantee",
            paragraph(
                f"{record['privacy']['epsilon']}-differential privacy of each row of {unit} together with "
                f"all its rows of {child}. Neighbours: {NEIGHBOURS[record['neighbours']]}."
            ),
            paragraph(covered),
            paragraph(
                f"Somebody who is in several rows of {unit} is protected in each of them, and not in all "
                "together."
            ),
        ),
        section(
            "How it was made",
            "how",
            paragraph(
                f"Tables of {unit}, and of the number of its {child}, were measured with noise, at epsilon "
                f"{own['epsilon']}. Then tables of {child} with the columns of their {unit} were measured at "
                f"epsilon {other['epsilon']}. There a row of {child} weighs 1 / max(s, "
                f"{other['weights']['cap']}), where s is how many its row of {unit} has: so one row of "
                f"{unit} weighs at most 1. Numbers from {schema.most} on are told as one: as {schema.most}."
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
                f"Suitable uses: shares and relations of columns of {unit}, of {child}, and across both; "
                f"numbers of {child} by columns of {unit}; trying out programs."
            ),
            paragraph(
                f"Unsuitable uses: how rows of {child} of one row of {unit} resemble each other. Given their "
                f"row of {unit} they are drawn independently: that is an assumption, and no finding."
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
