"""What a page says of privacy: the guarantee in words, what an attacker can gain, what was assumed."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, exp

from queries.rule_tables import rule_texts
from smalldb.exact.numbers import brief, rounded_up
from smalldb.planning import Neighbours, Plan
from smalldb.releasing.record_keys import Record
from smalldb.reporting.page.markup import element, facts, paragraph, section, table, text
from smalldb.reporting.words import privacy, started

UNSTATED = (
    "This protects rows, not people, because the number of rows of a person is not stated "
    "(rows_per_person). A person with several rows is protected less."
)
REFINES = (
    "The table and its answers also use the measurements of an earlier release of the same data. Its epsilon "
    "of {} is not counted here: both epsilons add up."
)
BELIEFS, GUESSES = ("0.01", "0.1", "0.5"), ("0.5", "0.9", "0.99")


def guarantee(plan: Plan, record: Record) -> str:
    """Say what is guaranteed to the people in the data."""
    replaced = plan.neighbours is Neighbours.REPLACE_ONE
    change = f"{_rows(plan)} exchanged for any other" if replaced else f"{_rows(plan)} added or left out"
    alone = "" if plan.persons_stated else " with one row"
    also = "" if plan.delta is None else ", and to its delta"
    seeded = "This release is NOT private: its randomness came from a seed. Without one, this would hold:"
    claim, meaning, *shown = (_pure if plan.delta is None else _with_delta)(plan, change)
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
            text(f"{claim} This holds whatever else is known, and for whatever is computed from the table."),
        ),
        *([] if plan.persons_stated else [element("p", text(UNSTATED), class_="warning")]),
        *([paragraph(_finer(plan))] if plan.finer else []),
        *([paragraph(f"{means.capitalize()}.")] if (means := plan.means_told) is not None else []),
        *([paragraph(REFINES.format(record["refines"]["epsilon"]))] if "refines" in record else []),
        *(_start(record) if "start" in record else []),
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


def _start(record: Record) -> list[str]:
    """Say from which public table the release starts, and what the guarantee says of its people."""
    start, what = record["start"], started(record)
    return [
        paragraph(
            f"The release starts from a table that its curator states to be public: {start['is']}. "
            f"{what[0].upper()}{what[1:]}. Where noise hides the difference, values are from the start "
            "(public), not from these data."
        ),
        paragraph(
            "The guarantee is for the people in the data. It holds if the start has none of their rows, "
            "except in an earlier release under differential privacy. It does not cover people in the "
            f"start. SHA-256 of the start's rows: {start['sha256']}."
        ),
    ]


def _finer(plan: Plan) -> str:
    """Say what of epsilon was for finer bins, and what they are for."""
    names, share = ", ".join(each.column for each in plan.finer), plan.for_finer * plan.rows_per_person
    return (
        f"Of this epsilon, {brief(share)} was for counts of finer bins of {names}, by which values are drawn."
    )


def assumed(plan: Plan, record: Record) -> str:
    """Say what was taken for public, and who counts as one person."""
    replaced = plan.neighbours is Neighbours.REPLACE_ONE
    domain, each = plan.workload.domain, plan.rows_per_person
    rules = "; ".join(rule_texts(domain.valid))
    if not plan.persons_stated:
        person = (
            "not stated: what is protected is one row, and not a person. A person with k rows is protected "
            "at k epsilon"
        )
    elif plan.request.links is not None:
        rules = "as the schemas of the tables state them"
        person = "one {} with all its {}: epsilon covers all of them".format(*plan.request.links.said)
    elif each == 1:
        person = "one row. A person with k rows is protected at k epsilon"
    else:
        person = f"up to {each:,} rows: epsilon covers all of them, and each row got 1/{each:,} of it"
    size = "private"
    if replaced:
        size = f"{plan.n:,}, public"
    elif plan.request.n_max is not None:
        size += f"; choices were made for about {plan.request.n_max:,} at most, a public guess"
    how_many = "public, fixed before the data were read"
    if plan.rows is None:
        how_many = "computed from released numbers; the guarantee covers it"
    columns = "their names and what each can hold, written down without a look at the data"
    if plan.learned:
        names = ", ".join(each.column for each in plan.learned)
        columns += f"; the categories of {names} were learned from the data, for a counted share of epsilon"
    return section(
        "What was assumed to be public",
        "assumed",
        paragraph("The guarantee protects the rows of people. It does not protect what this list states:"),
        facts(
            [
                ("Columns", columns),
                ("Rules", rules or "none: every combination of categories can exist"),
                ("Queries", f"{record['queries']['text']}: the queries that the table was made to answer"),
                ("Parameters", "epsilon" if plan.delta is None else "epsilon and delta"),
                ("Rows of the data", size),
                ("Synthetic rows", f"{record['rows']:,}: {how_many}"),
                ("One person is", person),
            ]
        ),
        paragraph(
            "If one of these was chosen after a look at the data, the guarantee does not hold as stated."
        ),
    )


def _rows(plan: Plan) -> str:
    each, links = plan.rows_per_person, plan.request.links
    if links is not None:
        return "any one {} with all its {} was".format(*links.said)
    if not plan.persons_stated:
        return "any one row was"
    return "any one person's row was" if each == 1 else f"all rows of any one person, up to {each:,}, were"


def _pure(plan: Plan, change: str) -> tuple[str, ...]:
    """Return what epsilon means, what follows for one person, a table of that and a picture."""
    claim = "that this person is in the data at all"
    if plan.neighbours is Neighbours.REPLACE_ONE:
        claim = "something about this person"
    return (
        f"If {change}, the probability of every possible synthetic table would change "
        f"by a factor of at most {rounded_up(factor(plan.privacy))}.",
        f"believe {claim} with some probability. After they have seen the synthetic table, this probability "
        "is at most",
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
        f"guess whether {claim}. After some improbable tables a belief may move by more than the factor, so "
        "beliefs are not bounded here. But however the synthetic table is used, a guess is right with a "
        "probability of at most",
        table(
            "How often a guess about one person can be right",
            ("right without the table", "right with it, at most"),
            guesses,
        ),
        guesses_picture(plan.privacy, plan.delta),
    )


MOST = 600.0  # epsilon; e^epsilon is a float up to here, and long since no protection


def factor(epsilon: Fraction) -> float:
    """Return e^epsilon, rounded up; of a very large epsilon a number that says as little."""
    return exp(min(MOST, float(epsilon))) * (1 + 1e-12)


def belief(before: str, epsilon: Fraction) -> str:
    """Return the most that a belief can become: no table multiplies its odds by more than e^epsilon."""
    return _percent(Fraction(after(float(before), epsilon)))


def after(before: float, epsilon: Fraction) -> float:
    """Return what `belief` says as a number, from 0 to 1."""
    if before >= 1:
        return 1.0
    odds = factor(epsilon) * before / (1 - before)
    return odds / (1 + odds) * (1 + 1e-12)


def right_guess(before: str, epsilon: Fraction, delta: Fraction) -> str:
    """Return the largest percentage of right guesses from the table; `before` is at least 1/2."""
    # A rule that says yes with probability a where no is true, and b where yes is true, has b <=
    # e^epsilon a + delta and 1 - a <= e^epsilon (1 - b) + delta: it is right most often in a corner.
    yes = Fraction(before)
    return _percent(max(Fraction(right_share(0.5, epsilon, delta)), yes + (1 - yes) * delta))


def right_share(before: float, epsilon: Fraction, delta: Fraction) -> float:
    """Return what `right_guess` says as a number."""
    by_rule = (1 - (1 - float(delta)) / (1 + factor(epsilon))) * (1 + 1e-12)
    return max(by_rule, before + (1 - before) * float(delta))


def _percent(share: Fraction) -> str:
    tenths = ceil(1000 * share)
    return "100 %" if tenths >= 1000 else f"{tenths / 10} %"


SIDE, LEFT, TOP, FOOT, STEPS = 200, 34, 26, 40, 80  # units of the picture; points of the curve


def beliefs_picture(epsilon: Fraction) -> str:
    """Draw how far a belief can rise, for every belief that was held before."""
    named = "The most that a belief can become, for each that was held before"
    return _curve(named, "believed before", "believed after, at most", 0.0, lambda x: after(x, epsilon))


def guesses_picture(epsilon: Fraction, delta: Fraction) -> str:
    """Draw how often a guess can be right, for every chance to be right without the table."""
    named = "How often a guess can be right, for each chance to be right without the table"
    across, upwards = "right without the table", "right with it, at most"
    return _curve(named, across, upwards, 0.5, lambda x: right_share(x, epsilon, delta))


def _curve(named: str, across: str, upwards: str, begin: float, most: Callable[[float], float]) -> str:
    """Draw the curve from `begin` to 1 on both axes."""

    def at(x: float, y: float) -> str:
        scale = SIDE / (1 - begin)
        return f"{LEFT + scale * (x - begin):.1f},{TOP + scale * (1 - y):.1f}"

    positions = [begin + (1 - begin) * i / STEPS for i in range(STEPS + 1)]
    curve = [at(x, min(1.0, most(x))) for x in positions]
    ends = at(begin, begin), at(1, 1)
    marks = [
        element("rect", x=LEFT, y=TOP, width=SIDE, height=SIDE, class_="ground"),
        element("polygon", points=" ".join([*curve, ends[0]]), class_="gained"),
        element("polyline", points=" ".join(curve), class_="most"),
        element("polyline", points=" ".join(ends), class_="nothing"),
    ]
    for share in (begin, (1 + begin) / 2, 1.0):
        x, y = at(share, share).split(",")
        label = text(f"{100 * share:g}")
        marks.append(element("text", label, x=x, y=TOP + SIDE + 16, class_="middle"))
        marks.append(element("text", label, x=LEFT - 6, y=f"{float(y) + 4:.1f}", class_="end"))
    marks.append(element("text", text(f"{across}, %"), x=LEFT + SIDE / 2, y=TOP + SIDE + 34, class_="middle"))
    marks.append(element("text", text(f"{upwards}, %"), x=0, y=14))
    caption = f"{named}. Straight line: nothing is learnt. Area: what this release may add."
    box = f"0 0 {LEFT + SIDE + 14} {TOP + SIDE + FOOT}"
    picture = element("svg", *marks, viewBox=box, role="img", aria_label=caption)
    return element("figure", picture, element("figcaption", text(caption)), class_="gain")
