"""What a page says of a release: public numbers only, in plain words."""

import json
from collections.abc import Sequence
from itertools import islice

import pandas as pd

from queries import Workload
from queries.frames import as_frame
from smalldb.planning import Neighbours, Plan
from smalldb.releasing.evaluation import joint_shares
from smalldb.releasing.record import Record
from smalldb.releasing.release import Release
from smalldb.reporting.page.beliefs import belief, factor, right_guess
from smalldb.reporting.page.markup import element, facts, folded, paragraph, section, table, text
from smalldb.reporting.page.pictures import MAX_COLUMNS, bars, pairs
from smalldb.reporting.page.shares import Marginal, association, marginals, pairs_covered, uncovered
from smalldb.reporting.words import brief, privacy, promised, rounded_up
from smalldb.schema import Schema

SHOWN_ROWS, SHOWN_QUERIES, SHOWN_PLACES, SHOWN_COLUMNS = 20, 200, 60, 200
BELIEFS, GUESSES = ("0.01", "0.1", "0.5"), ("0.5", "0.9", "0.99")


def what(plan: Plan, record: Record) -> str:
    """Say what was released."""
    queries, columns = record["queries"], plan.workload.domain.columns
    named = [c.name if c.yes_no else f"{c.name} ({c.size} places)" for c in columns[:SHOWN_COLUMNS]]
    named += [f"and {len(columns) - SHOWN_COLUMNS:,} more"] if len(columns) > SHOWN_COLUMNS else []
    chosen = [] if plan.why is None else [("Why this mechanism", plan.why)]
    return section(
        "What was released",
        "what",
        facts(
            [
                ("Rows", f"{record['rows']:,} synthetic rows; none belongs to a person"),
                ("Columns", ", ".join(named)),
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
    workload = plan.workload
    left = workload.size - SHOWN_QUERIES
    labels = map(workload.label, range(min(workload.size, SHOWN_QUERIES)))
    listed = [element("li", element("code", text(label))) for label in labels]
    more = [paragraph(f"and {left:,} more")] if left > 0 else []
    return section(
        "How far answers may be off",
        "errors",
        inner,
        folded(f"The {workload.size:,} queries", element("ol", *listed), *more),
        paragraph(
            "Nothing is promised for other analyses: means over rare groups, models, what was not asked for."
        ),
    )


def contents(release: Release, schema: Schema | None, bounded: bool) -> str:
    """Show the synthetic data's own marginals and first rows; public, as the data are."""
    if schema is None or release.schema is not None:
        shown = as_frame(release.data)[:SHOWN_ROWS]
    else:
        shown = schema.decode(release.places[:SHOWN_ROWS], middle=True)
    synthetic, workload = release.rows, release.plan.workload
    rows = [(i + 1, *map(_field, row)) for i, row in enumerate(shown.itertuples(index=False))]
    domain, said = synthetic.domain, "Shares of the synthetic rows. They are public, as the rows are."
    said += (
        " A share is within the bound above of that in the data, unless it is marked: not covered by a bound."
        if bounded
        else " No bound covers them."
    )
    notes = _not_covered(workload, schema is None) if bounded else []
    if domain.binary:
        title, shares = "Synthetic rows with both of two attributes, in percent", joint_shares(synthetic)
        picture = pairs(title, domain.attributes, shares)
        marked = bounded and not pairs_covered(workload)
        note = "Of these shares, some are not covered by a bound." if marked else ""
    else:
        names = domain.names[:MAX_COLUMNS]
        title = "How strongly two columns go together in the synthetic rows: Cramer's V, from 0 to 100"
        picture = pairs(title, names, association(synthetic, len(names)), most=MAX_COLUMNS)
        note = (
            "0: the two are independent; 100: one says the other. These numbers are not covered by a bound."
        )
        if len(names) < len(domain.names):
            note += f" The first {len(names)} columns are shown."
    return section(
        "The synthetic data",
        "data",
        paragraph(said),
        cards(("synthetic", marginals(synthetic, schema is None)), notes=notes),
        picture,
        *([paragraph(note)] if note else []),
        folded("The first rows", table("The first rows", ("row", *map(str, shown.columns)), rows)),
    )


def cards(*tables: tuple[str, Sequence[Marginal]], notes: Sequence[str] = ()) -> str:
    """Draw the marginals of one or two named tables of the same columns, each with its note (or none)."""
    drawn, found = [], tables[0][1]
    noted = [*notes, *[""] * (len(found) - len(notes))]
    for note, *columns in islice(zip(noted, *(own for _, own in tables), strict=True), SHOWN_PLACES):
        labels = columns[0].labels[:SHOWN_PLACES]
        series = [(name, own.shares) for (name, _), own in zip(tables, columns, strict=True)]
        drawn.append(bars(columns[0].column, labels, *series, note=note))
    if max(len(found), *(len(own.labels) for own in found)) > SHOWN_PLACES:
        drawn.append(paragraph(f"Of columns, and of what each can hold, the first {SHOWN_PLACES} are drawn."))
    return element("div", *drawn, class_="cards")


def _not_covered(workload: Workload, together: bool) -> list[str]:
    """Return the note of each card: which of its shares no bound covers."""
    domain, notes = workload.domain, []
    left = uncovered(workload)
    if together and domain.binary:  # one card, a label for each column
        names = [name for name, places in zip(domain.attributes, left, strict=True) if places]
        return [_note(names, len(domain.attributes))]
    for column, places in zip(domain.columns, left, strict=True):
        notes.append(_note([column.labels[place] for place in places], column.size))
    return notes


def _note(labels: Sequence[str], among: int) -> str:
    if not labels:
        return ""
    if len(labels) == among:
        return "Not covered by a bound."
    more = "" if len(labels) <= SHOWN_PLACES else f" and {len(labels) - SHOWN_PLACES} more"
    return f"Not covered by a bound: {', '.join(labels[:SHOWN_PLACES])}{more}."


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
