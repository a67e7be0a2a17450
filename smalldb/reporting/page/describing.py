"""What a page says of a release: public numbers only, in plain words."""

import json
from collections.abc import Sequence
from itertools import islice

import pandas as pd

from smalldb.planning import Neighbours, Plan
from smalldb.releasing.evaluation import joint_shares
from smalldb.releasing.record import Record
from smalldb.releasing.release import Release
from smalldb.reporting.page.beliefs import belief, factor, right_guess
from smalldb.reporting.page.markup import element, facts, folded, paragraph, section, table, text
from smalldb.reporting.page.pictures import bars, pairs
from smalldb.reporting.page.shares import Marginal, marginals
from smalldb.reporting.words import brief, privacy, promised, rounded_up
from smalldb.schema import Schema

SHOWN_ROWS, SHOWN_QUERIES, SHOWN_PLACES = 20, 200, 60
BELIEFS, GUESSES = ("0.01", "0.1", "0.5"), ("0.5", "0.9", "0.99")


def what(plan: Plan, record: Record, schema: Schema | None) -> str:
    """Say what was released."""
    columns = list(record["universe"]["attributes"] if schema is None else schema.names)
    queries = record["queries"]
    chosen = [] if plan.why is None else [("Why this mechanism", plan.why)]
    return section(
        "What was released",
        "what",
        facts(
            [
                ("Rows", f"{record['rows']:,} synthetic rows; none belongs to a person"),
                ("Columns", ", ".join(columns)),
                ("Mechanism", plan.chosen.explanation),
                *chosen,
                (
                    "Made to answer",
                    f"{queries['text']}: {queries['stated']:,} queries stated, "
                    f"{queries['reduced']:,} after those that cannot differ in error are counted once",
                ),
                ("Software", f"smalldb {record['versions']['smalldb']}"),
            ]
        ),
    )


def guarantee(plan: Plan, record: Record) -> str:
    """Say what is guaranteed to the people in the data."""
    replaced = plan.neighbours is Neighbours.REPLACE_ONE
    change = "was exchanged for any other" if replaced else "was added or left out"
    public = "the columns and what they can hold, the queries, the number of synthetic rows and "
    public += "epsilon" if plan.delta is None else "epsilon and delta"
    also = "" if plan.delta is None else ", and to its delta"
    known = f", and the number of rows of the data, {plan.n:,}" if replaced else ""
    seeded = "This release is NOT private: its randomness came from a seed. Without one, this would hold:"
    said, meaning, shown = (_pure if plan.delta is None else _with_delta)(plan, change)
    return section(
        "What is guaranteed",
        "guarantee",
        *([] if record["private"] else [paragraph(seeded)]),
        element(
            "p",
            element("strong", text(f"{privacy(plan)}. ")),
            text(f"{said} This holds whatever else is known, and for whatever is computed from the table."),
        ),
        paragraph(f"What this means for one person: somebody may know every other row, and {meaning}:"),
        shown,
        paragraph(
            f"Public, and not protected: {public}{known}. Each further release from the same data adds "
            f"to the epsilon of this one{also}."
        ),
    )


def _pure(plan: Plan, change: str) -> tuple[str, str, str]:
    """Return what epsilon means, what follows for one person, and a table of that."""
    claim = "that this person is in the data at all"
    if plan.neighbours is Neighbours.REPLACE_ONE:
        claim = "something of this person"
    return (
        f"If any one person's row {change}, the probability of every possible synthetic table would change "
        f"by a factor of at most {rounded_up(factor(plan.privacy))}.",
        f"believe {claim} with some probability. Having seen the table, they can believe it at most so much "
        "more",
        table(
            "How far a belief about one person can move",
            ("held before", "held after, at most"),
            [(f"{100 * float(before):g} %", belief(before, plan.privacy)) for before in BELIEFS],
        ),
    )


def _with_delta(plan: Plan, change: str) -> tuple[str, str, str]:
    """Return what epsilon and delta mean, what follows for one person, and a table of that."""
    assert plan.delta is not None
    claim = "this person is in the data at all"
    if plan.neighbours is Neighbours.REPLACE_ONE:
        claim = "something is true of this person"
    guesses = [(f"{100 * float(p):g} %", right_guess(p, plan.privacy, plan.delta)) for p in GUESSES]
    return (
        f"Take any set of possible synthetic tables. If any one person's row {change}, the probability that "
        f"the released table is in the set would become at most {rounded_up(factor(plan.privacy))} times "
        f"what it was, plus {brief(plan.delta)}. So delta is an amount of probability that is added for each "
        "set; it is not the probability that the factor fails.",
        f"guess whether {claim}. After some improbable tables a belief may move further than by the factor, "
        "so none is bounded here. But however the table is used, a guess is right with at most this "
        "probability",
        table(
            "How often a guess about one person can be right",
            ("right without the table", "right with it, at most"),
            guesses,
        ),
    )


def errors(plan: Plan, record: Record) -> str:
    """Say what is provable about the error."""
    bounds = record.get("bounds")
    if bounds is None:
        inner = paragraph(
            "A provable bound would depend on the number of rows of the data, which is private."
        )
    else:
        sure = (
            f"With probability at least 1 - {bounds['beta']}, every query's share of rows in the synthetic "
        )
        sure += "table differs from that in the data by at most the bound; from 1 on, a bound says nothing."
        named = {
            "sharp": "of this release, for any data",
            "released": "of this release, from what it released",
            "proposition_4_4": "Proposition 4.4 of the lecture",
            "theorem_4_5": "Theorem 4.5, for its own number of rows",
        }
        rows = [(said, promised(bounds[key])) for key, said in named.items() if bounds.get(key) is not None]
        inner = paragraph(sure) + table("Bounds on the largest error", ("bound", "error at most"), rows)
        if not rows:
            inner = paragraph("A bound is not known for this release.")
    labels = plan.workload.labels
    left = len(labels) - SHOWN_QUERIES
    listed = [element("li", element("code", text(label))) for label in labels[:SHOWN_QUERIES]]
    more = [paragraph(f"and {left:,} more")] if left > 0 else []
    return section(
        "How far answers may be off",
        "errors",
        inner,
        folded(f"The {len(labels):,} queries", element("ol", *listed), *more),
        paragraph(
            "Nothing is promised for other analyses: means over rare groups, models, what was not asked for."
        ),
    )


def contents(release: Release, schema: Schema | None) -> str:
    """Show the synthetic data's own marginals and first rows; public, as the data are."""
    shown = release.data if schema is None else schema.decode(release.places[:SHOWN_ROWS])
    synthetic = release.rows
    rows = [(i + 1, *map(_field, row)) for i, row in enumerate(shown[:SHOWN_ROWS].itertuples(index=False))]
    return section(
        "The synthetic data",
        "data",
        paragraph("Shares of the synthetic rows. They are public, as the rows are."),
        cards(("synthetic", marginals(synthetic, schema))),
        pairs(
            "Synthetic rows with both of two attributes, in percent",
            synthetic.domain.attributes,
            joint_shares(synthetic),
        ),
        folded("The first rows", table("The first rows", ("row", *map(str, shown.columns)), rows)),
    )


def cards(*tables: tuple[str, Sequence[Marginal]]) -> str:
    """Draw the marginals of one or two named tables of the same columns."""
    drawn = []
    for columns in islice(zip(*(found for _, found in tables), strict=True), SHOWN_PLACES):
        labels = columns[0].labels[:SHOWN_PLACES]
        series = [(name, own.shares) for (name, _), own in zip(tables, columns, strict=True)]
        drawn.append(bars(columns[0].column, labels, *series))
    found = tables[0][1]
    if max(len(found), *(len(own.labels) for own in found)) > SHOWN_PLACES:
        drawn.append(paragraph(f"Of columns, and of what each can hold, the first {SHOWN_PLACES} are drawn."))
    return element("div", *drawn, class_="cards")


def _field(value: object) -> str:
    """Write a field of a released table."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return "missing"
    return str(value.date()) if isinstance(value, pd.Timestamp) else str(value)


def machine_readable(record: Record) -> str:
    """Show the record itself."""
    written = json.dumps(record, indent=2, ensure_ascii=False)
    inner = element("pre", text(written), id="record", tabindex="0")
    return section("The record", "machine", folded("For machines: the public record", inner))
