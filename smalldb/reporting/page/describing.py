"""What a page says of a release: public numbers only, in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from smalldb.exact.numbers import as_fraction, as_text, promised
from smalldb.planning import Plan
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.record import written_record
from smalldb.releasing.record_keys import Record
from smalldb.reporting.page.markup import element, facts, folded, paragraph, section, table, text
from smalldb.reporting.page.pictures import labels_of
from smalldb.reporting.words import expected, privacy
from smalldb.schema import Flag, Schema


@final
@dataclass(frozen=True, slots=True)
class About:
    """What the curator says about a release; it stands on the page, so it is public."""

    title: str | None = None  # of the page; None: how many rows there are
    publisher: str | None = None  # who publishes the table
    table: str | None = None  # the name of the data
    account: Account | None = None  # what the ledger of the data says after this release; None: none is kept
    contact: str | None = None  # whom to ask
    date: str | None = None  # of the publication, as it shall be shown
    licence: str | None = None  # under which the table may be used
    # how to cite the table; None: by publisher, date and title, if there is a publisher
    citation: str | None = None


SHOWN_QUERIES, SHOWN_COLUMNS, SHOWN_CATEGORIES, SHOWN_TABLES = 200, 24, 60, 200


def what(plan: Plan, record: Record, about: About, title: str) -> str:
    """Say what was released."""
    published = {
        "Table": about.table,
        "Publisher": about.publisher,
        "Contact": about.contact,
        "Date": about.date,
        "Licence": about.licence,
        "Cite as": about.citation or _cited(plan, record, about, title),
    }
    counts = [f"{of_table['rows']:,} of {name}" for name, of_table in record.get("tables", {}).items()]
    rows = ", ".join(counts) or f"{record['rows']:,}"
    queries, columns = record["queries"], plan.workload.domain.columns
    named = [c.name if c.yes_no else f"{c.name} ({c.size} categories)" for c in columns[:SHOWN_COLUMNS]]
    more = len(columns) - SHOWN_COLUMNS
    named += [f"and {more:,} more, listed in the schema below"] if more > 0 else []
    chosen = [] if plan.why is None else [("Why this mechanism", plan.why)]
    answered = (
        f"{queries['text']}: {queries['stated']:,} queries; without repetitions and complements, which have "
        f"the same error, {queries['reduced']:,}"
    )
    return section(
        "What was released",
        "what",
        facts(
            [
                *((name, value) for name, value in published.items() if value is not None),
                ("Guarantee", f"{privacy(plan)}, {record['neighbours']} neighbours"),
                ("Rows", f"{rows} synthetic rows; none belongs to a person"),
                ("Columns", ", ".join(named)),
                ("Mechanism", plan.chosen.facts.described),
                *chosen,
                *([] if plan.request.links is not None else [("Made to answer", answered)]),
                ("Software", f"smalldb {record['versions']['smalldb']}"),
            ]
        ),
    )


def _cited(plan: Plan, record: Record, about: About, title: str) -> str | None:
    """Return how to cite the table: by who published it, when, and how it was made."""
    if about.publisher is None:
        return None
    when = "" if about.date is None else f" ({about.date})"
    source = "" if about.table is None else f" from {about.table}"
    version = record["versions"]["smalldb"]
    return f"{about.publisher}{when}: {title}. Synthetic data{source}, {privacy(plan)}, smalldb {version}."


BOUNDS = {
    "sharp": "of this release, for any data",
    "released": "of this release, from its released numbers",
    "proposition_4_4": "Proposition 4.4 of the lecture",
    "theorem_4_5": "Theorem 4.5, for the number of rows that it sets",
}


def errors(plan: Plan, record: Record) -> str:
    """Say which error is expected, and then what is provable about it."""
    bounds = record.get("bounds")
    first = ""
    if plan.expected_error is not None:
        first = paragraph(f"Expected from public numbers: {expected(plan)}.")
    if bounds is None:
        inner = paragraph(
            "A provable bound would depend on the number of rows of the data, which is private."
        )
    else:
        certain = as_text(1 - as_fraction(bounds["beta"], "beta"))
        sure = f"With probability at least {certain}, every query's share of rows in the synthetic "
        sure += "table differs from that in the data by at most the bound. A bound of 1 or more is vacuous."
        rows = [
            (words, promised(bounds[key])) for key, words in BOUNDS.items() if bounds.get(key) is not None
        ]
        inner = paragraph(sure) + table("Bounds on the largest error", ("bound", "error at most"), rows)
        if not rows:
            inner = paragraph("This release has no bound.")
        inner += _by_table(bounds.get("tables", []), certain)
    workload = plan.workload
    left = workload.size - SHOWN_QUERIES
    labels = map(workload.label, range(min(workload.size, SHOWN_QUERIES)))
    listed = [element("li", element("code", text(label))) for label in labels]
    more = [paragraph(f"and {left:,} more")] if left > 0 else []
    queries = folded(f"The {workload.size:,} queries", element("ol", *listed), *more)
    return section(
        "How far answers may be off",
        "errors",
        first + inner,
        element("div", queries, class_="queries"),
        paragraph("No error is promised for other analyses."),
    )


def _by_table(tables: Sequence[Mapping[str, Any]], certain: str) -> str:
    if not tables:
        return ""
    rows = [(" x ".join(each["columns"]), promised(each["released"])) for each in tables[:SHOWN_TABLES]]
    more = len(tables) - SHOWN_TABLES
    title = f"Bounds of {len(tables):,} measured tables, from their noise"
    explanation = (
        "For the cells of measured tables, at the groups of categories that were measured. With probability "
        f"at least {certain}, all of these bounds hold."
    )
    left = [paragraph(f"and {more:,} more, listed in the record")] if more > 0 else []
    return folded(title, paragraph(explanation), table(title, ("table", "error at most"), rows), *left)


def machine_readable(plan: Plan, record: Record, schema: Schema | None) -> str:
    """Show the schema, and the record itself."""
    inner = element("pre", text(written_record(record)), id="record", tabindex="0")
    return section(
        "The schema and the record",
        "machine",
        folded("The schema: what each column can hold", _schema(plan, schema)),
        folded("For machines: the public record", inner),
    )


def _schema(plan: Plan, schema: Schema | None) -> str:
    """List what each column can hold."""
    rows = list[tuple[str, str, str, str]]()
    for c, column in enumerate(plan.workload.domain.columns):
        stated = None if schema is None else schema.columns[c]
        kind = column.kind
        if stated is not None:
            kind = "bool" if isinstance(stated.kind, Flag) else type(stated.kind).__name__.lower()
        rows.append((column.name, kind, "" if stated is None else stated.meaning, _few(labels_of(column))))
    for each in () if schema is None else schema.derived:
        rows.append((each.column.name, "computed", each.column.meaning, each.text))
    kept = [0, 1, 2, 3] if any(meaning for _, _, meaning, _ in rows) else [0, 1, 3]
    head, *body = ([row[i] for i in kept] for row in (("column", "kind", "meaning", "categories"), *rows))
    return element("div", table("Columns and their categories", head, body), class_="wrapping")


def _few(labels: Sequence[str]) -> str:
    """Return the labels of categories, or the first of many and the last."""
    shown = labels
    if len(labels) > SHOWN_CATEGORIES:
        shown = [*labels[: SHOWN_CATEGORIES - 1], "...", labels[-1]]
    return f"{len(labels)}: {', '.join(shown)}"


MOST_MEASURED = 24  # measured tables that are listed
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


def derivation(plan: Plan, record: Record) -> str:
    """Say what the tables are, and how they were made."""
    assert plan.request.links is not None
    (of_parents, of_children), (parent, children) = record["tables"].values(), plan.request.links.said
    return section(
        "How the tables were made",
        "how",
        paragraph(
            f"Each {parent} may have {children}; the column {of_children['link']} says which belong "
            "together. Keys are new numbers, and rows are in random order: neither reveals anything."
        ),
        facts([(name, f"{recorded['rows']:,} rows") for name, recorded in record["tables"].items()]),
        paragraph(
            f"Tables of each {parent} with its number of {children} were measured with noise, at epsilon "
            f"{of_parents['epsilon']}. Then tables of {children} with the columns of their {parent} were "
            f"measured at epsilon {of_children['epsilon']}. Each of the s {children} of one {parent} weighs "
            f"1 / max(s, {of_children['weights']['cap']}), so all of them together weigh at most 1. Numbers "
            f"from {of_children['most']} on are released as {of_children['most']}."
        ),
        folded(
            "What was measured",
            *(
                table(name, ["columns", "cells", "epsilon"], _measured(recorded["measurements"]))
                for name, recorded in record["tables"].items()
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
    rows = []
    for one in measurements[:MOST_MEASURED]:
        names = [" x ".join(part.get("columns", ["all"])) for part in one["tables"]]
        rows.append(("; ".join(names), len(one["values"]), str(one["epsilon"])))
    if len(measurements) > MOST_MEASURED:
        rows.append((f"and {len(measurements) - MOST_MEASURED} more", 0, ""))
    return rows
