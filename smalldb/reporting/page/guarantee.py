"""What a page says of privacy: the guarantee in words, what an attacker can gain, what was assumed."""

from smalldb.planning import Neighbours, Plan
from smalldb.releasing.record_keys import Record
from smalldb.reporting.page.beliefs import belief, factor, right_guess
from smalldb.reporting.page.gain import beliefs_picture, guesses_picture
from smalldb.reporting.page.markup import element, facts, paragraph, section, table, text
from smalldb.reporting.words import brief, privacy, rounded_up

UNSTATED = (
    "This protects rows, not people: how many rows a person has is not stated (rows_per_person). A person "
    "with several rows is protected less."
)
BELIEFS, GUESSES = ("0.01", "0.1", "0.5"), ("0.5", "0.9", "0.99")


def guarantee(plan: Plan, record: Record) -> str:
    """Say what is guaranteed to the people in the data."""
    replaced = plan.neighbours is Neighbours.REPLACE_ONE
    change = f"{_rows(plan)} exchanged for any other" if replaced else f"{_rows(plan)} added or left out"
    alone = "" if plan.persons_stated else " with one row"
    also = "" if plan.delta is None else ", and to its delta"
    seeded = "This release is NOT private: its randomness came from a seed. Without one, this would hold:"
    said, meaning, *shown = (_pure if plan.delta is None else _with_delta)(plan, change)
    return section(
        "What is guaranteed",
        "guarantee",
        *([] if record["private"] else [paragraph(seeded)]),
        *(
            [element("p", text(f"Warning: {record['warning']}."), class_="warning")]
            if "warning" in record
            else []
        ),
        element(
            "p",
            element("strong", text(f"{privacy(plan)}. ")),
            text(f"{said} This holds whatever else is known, and for whatever is computed from the table."),
        ),
        *([] if plan.persons_stated else [element("p", text(UNSTATED), class_="warning")]),
        *([paragraph(_finer(plan))] if plan.finer else []),
        paragraph(
            f"What this means for one person{alone}: somebody may know all other people's rows, and "
            f"{meaning}:"
        ),
        element("div", *shown, class_="beside"),
        paragraph(
            "As a rule of thumb, an epsilon up to 1 is called strong protection, up to 10 moderate, above 10 "
            f"weak. Each further release from the same data adds to the epsilon of this one{also}."
        ),
    )


def _finer(plan: Plan) -> str:
    """Say what of epsilon was for finer bins, and what they are for."""
    names, share = ", ".join(each.column for each in plan.finer), plan.for_finer * plan.rows_per_person
    return (
        f"Of this epsilon, {brief(share)} was for counts of finer bins of {names}: values are drawn by them."
    )


def assumed(plan: Plan, record: Record) -> str:
    """Say what was taken for public, and who counts as one person."""
    replaced = plan.neighbours is Neighbours.REPLACE_ONE
    domain, each = plan.workload.domain, plan.rows_per_person
    rules = [domain.valid] if isinstance(domain.valid, str) else list(domain.valid or ())
    listed = rules and isinstance(rules[0], int)
    said = "a list of the cells that can exist" if listed else "; ".join(map(str, rules))
    if not plan.persons_stated:
        person = (
            "not stated: what is protected is one row, and not a person. A person with k rows is protected "
            "at k epsilon"
        )
    elif each == 1:
        person = "one row. A person with k rows is protected at k epsilon"
    else:
        person = f"up to {each:,} rows: epsilon covers all of them, and each row got 1/{each:,} of it"
    size = "private"
    if replaced:
        size = f"{plan.n:,}, public"
    elif plan.request.n_max is not None:
        size += f"; choices were made for about {plan.request.n_max:,} at most, a public guess"
    made = "public, fixed before the data were read"
    if plan.rows is None:
        made = "read from what was released; the guarantee covers it"
    columns = "their names and what each can hold, written down without a look at the data"
    if plan.learned:
        names = ", ".join(each.column for each in plan.learned)
        columns += f"; the categories of {names} were learned from the data, for a counted share of epsilon"
    return section(
        "What was assumed to be public",
        "assumed",
        paragraph("The guarantee protects what people's rows say. It does not protect what stands here:"),
        facts(
            [
                ("Columns", columns),
                ("Rules", said or "none: every combination of categories can exist"),
                ("Queries", f"{record['queries']['text']}: what the table was made to answer"),
                ("Parameters", "epsilon" if plan.delta is None else "epsilon and delta"),
                ("Rows of the data", size),
                ("Synthetic rows", f"{record['rows']:,}: {made}"),
                ("One person is", person),
            ]
        ),
        paragraph(
            "If one of these was chosen after a look at the data, the guarantee does not hold as stated."
        ),
    )


def _rows(plan: Plan) -> str:
    each = plan.rows_per_person
    if not plan.persons_stated:
        return "any one row was"
    return "any one person's row was" if each == 1 else f"all rows of any one person, up to {each:,}, were"


def _pure(plan: Plan, change: str) -> tuple[str, ...]:
    """Return what epsilon means, what follows for one person, a table of that and a picture."""
    claim = "that this person is in the data at all"
    if plan.neighbours is Neighbours.REPLACE_ONE:
        claim = "something of this person"
    return (
        f"If {change}, the probability of every possible synthetic table would change "
        f"by a factor of at most {rounded_up(factor(plan.privacy))}.",
        f"believe {claim} with some probability. After they have seen the synthetic table, that probability "
        "is at most this",
        table(
            "How far a belief about one person can move",
            ("held before", "held after, at most"),
            [(f"{100 * float(before):g} %", belief(before, plan.privacy)) for before in BELIEFS],
        ),
        beliefs_picture(plan.privacy),
    )


def _with_delta(plan: Plan, change: str) -> tuple[str, ...]:
    """Return what epsilon and delta mean, what follows for one person, a table of that and a picture."""
    assert plan.delta is not None
    claim = "this person is in the data at all"
    if plan.neighbours is Neighbours.REPLACE_ONE:
        claim = "something is true of this person"
    guesses = [(f"{100 * float(p):g} %", right_guess(p, plan.privacy, plan.delta)) for p in GUESSES]
    return (
        f"Take any set of possible synthetic tables. If {change}, the probability that "
        f"the released table is in the set would become at most {rounded_up(factor(plan.privacy))} times "
        f"what it was, plus {brief(plan.delta)}. So delta is an amount of probability that is added for each "
        "set; it is not the probability that the factor fails.",
        f"guess whether {claim}. After some improbable tables a belief may move further than by the factor, "
        "so none is bounded here. But however the synthetic table is used, a guess is right with at most "
        "this probability",
        table(
            "How often a guess about one person can be right",
            ("right without the table", "right with it, at most"),
            guesses,
        ),
        guesses_picture(plan.privacy, plan.delta),
    )
