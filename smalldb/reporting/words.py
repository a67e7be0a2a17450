"""How results are told: a release in a few lines and numbers in few digits for people, JSON for machines."""

import json
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from math import inf, isfinite

from smalldb.exact.numbers import as_fraction, as_text
from smalldb.planning import Plan
from smalldb.releasing.record import Record

LARGE = 1000  # an epsilon
LONG = 20  # characters of a number; beyond, it is written with an exponent


def tell(record: Record, plan: Plan, planned: bool) -> str:
    """Tell a release in a few lines; public numbers only."""
    n, queries, bounds = record.get("n"), record["queries"], record.get("bounds")
    epsilon = as_fraction(record["privacy"]["epsilon"], "epsilon")
    rows = f"{record['rows']} rows over {_size(plan.workload.domain.size)} cells"
    if plan.candidate_count is None:
        drawn = f"{over_answers(plan)}, and the nearest table of {rows}"
    else:
        candidates = f"{_size(plan.candidate_count)} {record['candidates']}"
        drawn = f"SmallDB by {record['mechanism']}, drawn exactly from all {candidates} of {rows}"
    lines = [
        f"mechanism: {drawn}",
        *([] if plan.why is None else [f"           ({plan.why})"]),
        f"queries:   {queries['text']} ({queries['stated']} stated, {queries['reduced']} after reduction)",
        f"guarantee: {privacy(plan)}, {record['neighbours']} neighbours, "
        + ("n is private" if n is None else f"n = {n} is public"),
    ]
    if epsilon > LARGE:
        lines.append("           (of which so large an epsilon leaves little: 1 or less is usual)")
    if n is not None and plan.delta is not None and plan.delta * n >= 1:
        lines.append("           (a delta of 1/n allows to publish somebody's row: one far below is usual)")
    if bounds is None:
        lines.append("error:     a provable bound would depend on n, which is private")
    elif plan.answers is None:
        lines += _small_database_errors(record, planned)
    elif bounds["released"] is None:
        lines.append("error:     a bound is known with the released answers, and stands in the record then")
    else:
        lines.append(
            f"error:     at most {promised(bounds['released'])} on every query, "
            f"with probability 1 - {bounds['beta']}"
        )
    return "\n".join(lines)


def over_answers(plan: Plan) -> str:
    """Name what a release of answers does to them."""
    return "the exponential mechanism over answers" if plan.delta is None else "Gaussian noise on answers"


def privacy(plan: Plan) -> str:
    """Write the guarantee."""
    spent = brief(plan.privacy) if plan.delta is None else f"({brief(plan.privacy)}, {brief(plan.delta)})"
    return f"{spent}-differential privacy"


def _small_database_errors(record: Record, planned: bool) -> list[str]:
    bounds = record["bounds"]
    lines = [
        f"error:     at most {promised(bounds['sharp'])} on every query, "
        f"with probability 1 - {bounds['beta']}\n"
        f"           (Proposition 4.4: {promised(bounds['proposition_4_4'])}; "
        f"Theorem 4.5, with its own number of rows: {promised(bounds['theorem_4_5'])})"
    ]
    if bounds["sharp"] > 0.5:
        lines.append(
            "           a provable error above one half is of little use; more data, a larger epsilon,\n"
            "           fewer attributes or fewer queries would improve it"
            + ("" if planned else ", perhaps planned rows (name none)")
        )
    return lines


def _size(number: int) -> str:
    """Write a count, in few digits where it is long."""
    return f"{number:,}" if number < 10**15 else f"about 10^{len(str(number)) - 1}"


def rounded_up(bound: float, digits: int = 3) -> str:
    """Write a bound with so many digits, never below itself."""
    if bound == inf:
        return "inf"
    short = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(bound).normalize()
    return f"{short:f}" if bound == 0 or 1e-9 <= bound < 1000 else f"{short:e}"


def promised(bound: float) -> str:
    """Write a bound on an error, and that it is vacuous from 1 on."""
    return rounded_up(bound) + (" (says nothing)" if bound >= 1 else "")


def brief(number: Fraction) -> str:
    """
    Write a number as `as_text` does, or with an exponent where that is long; it is the same number.

    Examples
    --------
    >>> brief(Fraction(1, 20)), brief(Fraction(1, 10**300)), brief(Fraction(12 * 10**400))
    ('0.05', '1e-300', '1.2e+401')
    """
    text = as_text(number)
    if len(text) <= LONG or "/" in text:
        return text
    whole, _, decimals = text.partition(".")
    digits = Context(prec=len(text)).create_decimal(whole + decimals).scaleb(-len(decimals)).normalize()
    return min(text, f"{digits:e}", key=len)


def as_json(said: object) -> str:
    """Write as JSON, which has no infinite numbers: null in place of them."""

    def finite(value: object) -> object:
        if isinstance(value, dict):
            return {key: finite(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [finite(inner) for inner in value]
        return None if isinstance(value, float) and not isfinite(value) else value

    return json.dumps(finite(said), allow_nan=False)
