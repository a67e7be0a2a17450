"""How results are told: a release in a few lines for people, JSON for machines."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from io import StringIO
from math import comb, floor, isfinite, log10
from typing import TYPE_CHECKING, Any

from smalldb.exact.numbers import brief, number_told, promised, rounded_up, sized
from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.strategies.strategy import Strategy
from smalldb.mechanisms import Measurements
from smalldb.mechanisms.known_pairs import LEARNED, NOT_MEASURED
from smalldb.planning import Plan
from smalldb.releasing.record_keys import Record
from smalldb.reporting import visible

if TYPE_CHECKING:
    from smalldb.inference import Answer  # which a release has no need of

USEFUL = 1 / 2  # a provable error above which a table is of little use
SEEDED = "NOT PRIVATE: the randomness came from a seed; for experiments only"
NOT_PEOPLE = "for each row: how many rows a person has is not stated (rows_per_person)"
CONFIDENTIAL = "CONFIDENTIAL: computed from the data, not for publication"


def tell(
    record: Record,
    plan: Plan,
    measured: Measurements | None = None,
    *,
    verbose: bool = False,
    other: Plan | str | None = None,
) -> list[tuple[str, str]]:
    """Tell a release and what it `measured`, or beside an `other` plan a plan: labels, each with a line."""
    n, facts, bounds = record.get("n"), plan.chosen.facts, record.get("bounds")
    rows = "rows as the release estimates" if record["rows"] is None else f"{record['rows']} rows"
    if tables := record.get("tables"):
        rows = ", ".join(f"{table['rows']} rows of {visible(name)}" for name, table in tables.items())
    known = "n is private" if n is None else f"n = {n} is public"
    lines = [
        ("mechanism", f"{facts.method}, {rows}"),
        ("details", facts.known),
        ("guarantee", f"{privacy(plan)}, {record['neighbours']} neighbours, {known}"),
    ]
    if not plan.persons_stated:
        lines.append(("", NOT_PEOPLE))
    if plan.rows_per_person > 1:
        lines.append(("", f"for a person with up to {plan.rows_per_person} rows, all of them together"))
    if plan.learned:
        names = ", ".join(visible(each.column) for each in plan.learned)
        share = brief(sum((each.epsilon for each in plan.learned), Fraction(0)))
        lines.append(("", f"(of which {share} of epsilon was spent on learning the categories of {names})"))
    if plan.finer:
        names = ", ".join(visible(each.column) for each in plan.finer)
        share = brief(plan.for_finer * plan.rows_per_person)
        lines.append(("", f"(of which {share} of epsilon is for finer bins of {names})"))
    if (means := plan.means_told) is not None:
        lines.append(("", f"(of which {visible(means)})"))
    if "refines" in record:
        epsilon = record["refines"]["epsilon"]
        lines.append(
            ("refines", f"an earlier release of the same data at epsilon {epsilon}: both epsilons add up")
        )
    if "start" in record:
        lines += [
            ("start", f"public, as the user states: {visible(record['start']['is'])}"),
            ("", started(record)),
        ]
    if "warning" in record:
        lines.append(("warning", record["warning"]))
    if n is not None and plan.delta is not None and plan.delta * n >= 1:
        lines.append(("", "(a delta of 1/n would allow publishing somebody's row: choose one far below)"))
    if plan.expected_error is not None:
        lines.append(("expected", expected(plan)))
    if other is not None:
        lines += foretold(plan, other)
    if measured and plan.request.links is None and (pairs := measured.pairs()):
        of_pairs = [pair.known for pair in pairs]
        lines.append(("relations", _relations(of_pairs)))
        if NOT_MEASURED in of_pairs:
            lines.append(("", "(--measure-first names tables that are measured before others)"))
    bound = error_stated(bounds, visible(record["queries"]["text"]))
    lines.append(("bound", bound if plan.request.links is None else "none is stated for related tables"))
    if plan.nothing_expected is not None:
        lines += [("warning", "nothing useful is expected:"), ("", plan.nothing_expected)]
    elif bounds is not None and bounds.get("sharp", 0) > USEFUL:
        lines.append(
            ("", "(of little use: more data, a larger epsilon, fewer attributes or queries improve it)")
        )
    if other is not None:
        lines += _cost(plan)
    if verbose:
        lines += _more(record, plan)
    return lines


def _relations(known: Sequence[str]) -> str:
    """Tell how many pairs of columns a release knows, from what it knows of each."""
    every, unknown, learned = len(known), known.count(NOT_MEASURED), known.count(LEARNED)
    if unknown == every:
        return f"none of {every} pairs of columns was measured: the rows assume that they are independent"
    stand = f"{learned} stand{'s' * (learned == 1)} out from the noise"
    return f"{every - unknown} of {every} pairs of columns were measured; {stand}"


def started(record: Record) -> str:
    """Say what a public start was used for."""
    match record["start"].get("believed"):
        case None:
            return "three fortieths of epsilon decide whether the start is used"
        case False:
            return "a noisy number says that the start differs too much: the table is made without it"
    left_out = record["start"].get("left_out")
    but = "" if left_out is None else f" but for {visible(left_out)}, which the data relate otherwise"
    if record["start"]["rows"] == "start":
        return f"the start is used{but}: rows are rows of the start, or combine several of them"
    return f"the start is used{but}: rows are made from its tables, with weights that agree with the data"


def laid_out(lines: Iterable[tuple[str, str]]) -> str:
    """Lay out labels and what stands behind them; a line without a label belongs to the one before."""
    return "\n".join(f"{label + ':' if label else '':11}{line}" for label, line in lines)


def expected(plan: Plan) -> str:
    """Write the error that is expected of a plan that has one, and whether that is proved."""
    figure = plan.expected_error or 0.0
    if plan.chosen.promise.proved:
        return f"a mean error of at most {promised(figure)}, which is proved"
    within = ""
    if plan.expected_range is not None:
        low, high = plan.expected_range
        within = f"; {low:.2g} to {high:.2g} for about nine tables of ten"
    return f"an error of about {figure:.2g}{within} (an estimate, no bound)"


def error_stated(bounds: Mapping[str, Any] | None, queries: str) -> str:
    """Tell what a record states of the error."""
    if bounds is None:
        return "a provable bound would depend on n, which is private"
    if "sharp" in bounds:
        return f"at most {promised(bounds['sharp'])} on every query of {queries}, {_but_for(bounds)}"
    covers = bounds.get("covers", [f"every query of {queries}"])
    if not covers:
        return "no bound for what was not measured: the certificate is switched off"
    if bounds["released"] is None:
        return "the release computes a bound, and its record states it"
    return f"at most {promised(bounds['released'])} on {covers[0]}, {_but_for(bounds)}"


def _but_for(bounds: Mapping[str, Any]) -> str:
    return f"with probability 1 - {bounds['beta']}"


def _more(record: Record, plan: Plan) -> list[tuple[str, str]]:
    """Tell what most users can do without."""
    queries, bounds = record["queries"], record.get("bounds") or {}
    text = f"{visible(queries['text'])} ({queries['stated']} stated, {queries['reduced']} after reduction)"
    lines = [
        ("queries", f"{text} over {sized(plan.workload.domain.size)} cells"),
        ("in words", plan.chosen.facts.described),
        *([] if plan.why is None else [("chosen", plan.why)]),
    ]
    if "sharp" in bounds:
        lines.append(("theorems", f"Proposition 4.4: {promised(bounds['proposition_4_4'])}"))
        lines.append(("", f"Theorem 4.5, with its own number of rows: {promised(bounds['theorem_4_5'])}"))
    return lines


def foretold(plan: Plan, other: Plan | str) -> list[tuple[str, str]]:
    """Tell which pairs are expected to be measured, and the error to expect pure and with a delta."""
    lines, every = list[tuple[str, str]](), comb(len(plan.workload.domain.sizes), 2)
    if plan.expected_share is not None:
        mean = plan.expected_mean
        of_means = "" if mean is None else f", and a mean of numbers by about {mean:.2g} of their range"
        lines.append(("noise", f"moves the share of a category by about {plan.expected_share:.2g}{of_means}"))
    if isinstance(plan.chosen, ByMarginals) and every:
        lines += _pairs_expected(plan.chosen.strategy, plan.n, every)
    if plan.request.links is not None:
        other = "none: related tables are released without a delta"
    sides = [_side(plan), other if isinstance(other, str) else _side(other)]
    if plan.request.delta is not None:
        sides.reverse()
    return [*lines, *zip(("pure", "delta"), sides, strict=True)]


def _pairs_expected(strategy: Strategy, n: int | None, every: int) -> list[tuple[str, str]]:
    """Say how many pairs are expected to be measured together, on each way that a release may go."""
    expected = {
        (min(way.expected_pairs, every), way.expected_pairs >= way.most_pairs) for way in strategy.ways
    }
    sure = {few for few, certain in expected if certain}
    about = {few for few, _ in expected} - sure
    each = ["none"] * (0 in sure) + [f"about {few}" for few in sorted(about)]
    each += [f"{few}" if few < every else "all" for few in sorted(sure - {0})]
    lines = [("relations", f"{' or '.join(each)} of {every} pairs of columns will be measured together")]
    fewer = "fewer if rounds find little; " if about else ""
    if about or sure != {every}:
        lines.append(("", f"({fewer}others are assumed to be independent, given the columns in between)"))
    if strategy.undrawable(n) is not None:
        lines.append(("tables", "one: --tables, for standard errors, would be refused, and says what to add"))
    return lines


def _cost(plan: Plan) -> list[tuple[str, str]]:
    """Tell what a plan costs, and what plain noise would do."""
    noise, lines = plan.alternatives, [("cost", plan.chosen.facts.cost)]
    if plan.expected_error is not None and plan.chosen.promise.proved and noise is not None:
        each, cells = rounded_up(noise["answers"]), rounded_up(noise["histogram"])
        lines.append(("instead", f"with Laplace noise on each answer {each}, on each cell at most {cells}"))
        if min(noise.values()) < plan.expected_error:
            lines += [
                ("", "so plain noise is expected to be more accurate than is provable for a small database,"),
                ("", "if you can use noisy answers or a noisy histogram in place of a table"),
            ]
    return lines


def _side(plan: Plan) -> str:
    """Write what is expected at a guarantee, to stand beside another."""
    if plan.request.delta is not None and plan.delta is None:
        return "would not make it smaller"
    expected, spent = plan.expected_error, brief(plan.epsilon)
    at = f"epsilon {spent}" if plan.delta is None else f"({spent}, {float(plan.delta):g})"
    if expected is None and plan.request.links is not None:
        return f"no error is estimated at {at}"
    if expected is None:
        return f"without n_max no error is estimated at {at}, by {plan.chosen.facts.method}"
    figure = f"at most {promised(expected)}" if plan.chosen.promise.proved else f"about {expected:.2g}"
    return f"{figure} at {at}, by {plan.chosen.facts.method}"


def privacy(plan: Plan) -> str:
    """Write the guarantee."""
    spent = brief(plan.privacy) if plan.delta is None else f"({brief(plan.privacy)}, {brief(plan.delta)})"
    links = plan.request.links
    whose = "" if links is None else " of each {} with all its {}".format(*map(visible, links.said))
    return f"{spent}-differential privacy{whose}"


def answer_cell(answer: "Answer", *, percent: bool = False) -> str:
    """Write an answer in a cell: its estimate and its interval, or only this; + marks what is assumed."""

    def interval(value: float | None, low: float | None, high: float | None) -> str:
        written = [
            number_told(each, (low, high)) if not percent or each is None else percent_text(each, (low, high))
            for each in (value, low, high)
        ]
        ends = "" if low is None or high is None else f"{written[1]} to {written[2]}"
        return f"{written[0]} ({ends})" if ends and written[0] else written[0] or ends

    if answer.known == "error":  # the question could not be read
        return answer.known
    if answer.known != "measured":
        within = "" if answer.within is None else f" ({interval(None, *answer.within)})"
        assumed = "" if answer.assumed is None else f"; {interval(answer.assumed, None, None)}+"
        return f"not measured{within}{assumed}"
    if answer.low is None or answer.high is None:
        return "no interval"
    measured = interval(answer.estimate, answer.low, answer.high)
    if answer.estimate is not None or answer.guess_low is None:
        return measured
    guess = number_told(answer.guess, (answer.guess_low, answer.guess_high))
    return f"{measured}; about {guess}*"


def percent_text(share: float, ends: tuple[float | None, float | None]) -> str:
    """Write a share in percent: to a tenth, or finer where its interval is so narrow."""
    low, high = ends
    half = 1.0 if low is None or high is None or low == high else 50 * (high - low)
    return f"{100 * share:z.{min(max(1, -floor(log10(half))), 9)}f}%"


def as_csv(rows: Sequence[Mapping[Any, object]]) -> str:
    """Write rows of the same keys as CSV, a line each below the keys; what is None or infinite is empty."""

    def field(value: object) -> object:
        return "" if value is None or (isinstance(value, float) and not isfinite(value)) else value

    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([field(value) for value in row.values()] for row in rows)
    return text.getvalue().rstrip("\n")


def as_json(content: object) -> str:
    """Write as JSON, which has no infinite numbers: null in place of them."""

    def finite(value: object) -> object:
        if isinstance(value, dict):
            return {key: finite(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [finite(inner) for inner in value]
        return None if isinstance(value, float) and not isfinite(value) else value

    return json.dumps(finite(content), allow_nan=False)
