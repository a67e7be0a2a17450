"""What the page says of related tables alone: neighbours, how walks were measured, and uses."""

from collections.abc import Mapping, Sequence
from typing import Any

from smalldb.planning import Plan
from smalldb.releasing.record import Record
from smalldb.reporting.page.markup import facts, folded, paragraph, section, table

MOST_TOLD = 24  # measured tables that are listed
NEIGHBOURS = {
    "replace-one": "one of them, with all that belongs to it, is replaced by another; their number is public",
    "add-remove": "one of them, with all that belongs to it, is added or removed; their number is private",
}


def protected(plan: Plan, record: Record) -> str:
    """Say which tables are neighbours, and what a change of one child is."""
    assert plan.request.links is not None
    (parent, children), least = plan.request.links.said, plan.request.links.least
    kept = ""
    covered, moved = "is one such change: the same epsilon covers it", "twice"
    if record["neighbours"] == "add-remove":
        covered, moved = "may be two such changes: twice the epsilon covers it", "four times"
    elif least:
        kept = f" This assumes that each {parent} keeps at least one row, and that none is new."
    return section(
        "What is protected together",
        "together",
        paragraph(
            f"Protected is each {parent} together with all its {children}. "
            f"Neighbours: {NEIGHBOURS[record['neighbours']]}."
        ),
        paragraph(
            f"Adding, removing or changing one of its {children} {covered}. "
            f"One that moves to another {parent} changes both: {moved} the epsilon covers it.{kept}"
        ),
        paragraph(
            f"Somebody who belongs to more than one {parent} is protected in each by itself, not in "
            "all together."
        ),
    )


def made(plan: Plan, record: Record) -> str:
    """Say what the tables are, and how they were made."""
    assert plan.request.links is not None
    (own, other), (parent, children) = record["tables"].values(), plan.request.links.said
    return section(
        "How the tables were made",
        "how",
        paragraph(
            f"Each {parent} may have {children}; the column {other['link']} says which belong together. Keys "
            "are new numbers, and rows are in random order: neither reveals anything."
        ),
        facts([(name, f"{told['rows']:,} rows") for name, told in record["tables"].items()]),
        paragraph(
            f"Tables of each {parent} with its number of {children} were measured with noise, at epsilon "
            f"{own['epsilon']}. Then tables of {children} with the columns of their {parent} were "
            f"measured at epsilon {other['epsilon']}. Each of the s {children} of one {parent} weighs "
            f"1 / max(s, {other['weights']['cap']}), so all of them together weigh at most 1. Numbers "
            f"from {other['most']} on are released as {other['most']}."
        ),
        folded(
            "What was measured",
            *(
                table(name, ["columns", "cells", "epsilon"], _measured(told["measurements"]))
                for name, told in record["tables"].items()
            ),
        ),
    )


def suited(plan: Plan) -> str:
    """Say what related tables may be used for, and what not."""
    assert plan.request.links is not None
    parent, children = plan.request.links.said
    return section(
        "What they may be used for",
        "uses",
        paragraph(
            f"Suitable uses: shares and relations of columns of each {parent}, of {children}, and across "
            f"both; numbers of {children}; trying out programs."
        ),
        paragraph(
            f"Unsuitable uses: how {children} of one {parent} resemble or follow each other. Given their "
            f"{parent} they are drawn independently, which is an assumption."
        ),
        paragraph(
            "Standard errors computed as if these rows were sampled are too small, because they leave out "
            "the noise. Take intervals from the measurements (smalldb ask). No bound on the error is stated."
        ),
    )


def _measured(measurements: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, str]]:
    """Return a row for each measurement: what it is of, how many numbers, and its cost."""
    found = []
    for one in measurements[:MOST_TOLD]:
        names = [" x ".join(part.get("columns", ["all"])) for part in one["tables"]]
        found.append(("; ".join(names), len(one["values"]), str(one["epsilon"])))
    if len(measurements) > MOST_TOLD:
        found.append((f"and {len(measurements) - MOST_TOLD} more", 0, ""))
    return found
