"""How results are told: a release in a few lines for people, JSON for machines."""

import csv
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from io import StringIO
from math import isfinite
from typing import Any

from smalldb.exact.rounded_text import brief as brief
from smalldb.exact.rounded_text import promised as promised
from smalldb.exact.rounded_text import rounded_down as rounded_down
from smalldb.exact.rounded_text import rounded_up as rounded_up
from smalldb.exact.rounded_text import sized as sized
from smalldb.planning import Plan
from smalldb.releasing.record import Record
from smalldb.reporting.escaping import visible

CONFIDENTIAL = "CONFIDENTIAL: computed from the data, not for publication"


def tell(record: Record, plan: Plan) -> str:
    """Tell a release in a few lines; public numbers only."""
    n, queries, bounds = record.get("n"), record["queries"], record.get("bounds")
    rows = "rows (the release tells how many)" if record["rows"] is None else f"{record['rows']} rows"
    asked = visible(queries["text"])
    lines = [
        f"mechanism: {plan.chosen.summary} of {rows} over {sized(plan.workload.domain.size)} cells",
        *([] if plan.why is None else [f"           ({plan.why})"]),
        f"queries:   {asked} ({queries['stated']} stated, {queries['reduced']} after reduction)",
        f"guarantee: {privacy(plan)}, {record['neighbours']} neighbours, "
        + ("n is private" if n is None else f"n = {n} is public"),
    ]
    if plan.rows_per_person > 1:
        lines.append(f"           for a person with up to {plan.rows_per_person} rows, all of them together")
    if plan.learned:
        names = ", ".join(visible(each.column) for each in plan.learned)
        share = brief(sum((each.epsilon for each in plan.learned), Fraction(0)))
        lines.append(f"           (of which {share} of epsilon was spent on learning the places of {names})")
    if "warning" in record:
        lines.append(f"warning:   {record['warning']}")
    if n is not None and plan.delta is not None and plan.delta * n >= 1:
        lines.append(
            "           (a delta of 1/n would allow publishing somebody's row: choose one far below)"
        )
    if bounds is None:
        told = ["a provable bound would depend on n, which is private"]
    else:
        told = list(plan.chosen.promise.told(bounds))
    lines += [f"{'' if place else 'error:':11}{line}" for place, line in enumerate(told)]
    return "\n".join(lines)


def privacy(plan: Plan) -> str:
    """Write the guarantee."""
    spent = brief(plan.privacy) if plan.delta is None else f"({brief(plan.privacy)}, {brief(plan.delta)})"
    return f"{spent}-differential privacy"


def as_csv(rows: Sequence[Mapping[Any, object]]) -> str:
    """Write rows of the same keys as CSV, a line each below the keys; what is None or infinite is empty."""

    def told(value: object) -> object:
        return "" if value is None or (isinstance(value, float) and not isfinite(value)) else value

    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([told(value) for value in row.values()] for row in rows)
    return text.getvalue().rstrip("\n")


def as_json(said: object) -> str:
    """Write as JSON, which has no infinite numbers: null in place of them."""

    def finite(value: object) -> object:
        if isinstance(value, dict):
            return {key: finite(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [finite(inner) for inner in value]
        return None if isinstance(value, float) and not isfinite(value) else value

    return json.dumps(finite(said), allow_nan=False)
