"""A release in a few lines, for people."""

from decimal import ROUND_CEILING, Context
from math import inf

from queries import Domain
from smalldb.counting.scores import count
from smalldb.recording import Record


def tell(record: Record, planned: bool) -> str:
    """Tell a release in a few lines; public numbers only."""
    n, queries, bounds = record.get("n"), record["queries"], record.get("bounds")
    cells = Domain(record["universe"]["attributes"], record["universe"]["valid"]).size
    candidates = f"{count(cells, record['rows'], record['candidates']):,} {record['candidates']}"
    lines = [
        f"mechanism: SmallDB by {record['mechanism']}, drawn exactly from all {candidates} "
        f"of {record['rows']} rows over {cells} cells",
        f"queries:   {queries['text']} ({queries['stated']} stated, {queries['reduced']} after reduction)",
        f"guarantee: {record['privacy']['epsilon']}-differential privacy, {record['neighbours']} neighbours, "
        + ("n is private" if n is None else f"n = {n} is public"),
    ]
    if bounds is None:
        lines.append("error:     a provable bound would depend on n, which is private")
        return "\n".join(lines)
    lines.append(
        f"error:     at most {rounded_up(bounds['sharp'])} on every query, "
        f"with probability 1 - {bounds['beta']}\n"
        f"           (Proposition 4.4: {rounded_up(bounds['proposition_4_4'])}; "
        f"Theorem 4.5, with its own number of rows: {rounded_up(bounds['theorem_4_5'])})"
    )
    if bounds["sharp"] > 0.5:
        lines.append(
            "           a provable error above one half is of little use; more data, a larger epsilon,\n"
            "           fewer attributes or fewer queries would improve it"
            + ("" if planned else ", perhaps planned rows (name none)")
        )
    return "\n".join(lines)


def rounded_up(bound: float, digits: int = 3) -> str:
    """Write a bound with so many digits, never below itself."""
    if bound == inf:
        return "inf"
    short = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(bound).normalize()
    return f"{short:f}" if bound < 1000 else f"{short:.2e}"
