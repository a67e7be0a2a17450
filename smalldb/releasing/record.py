"""The public record of a release: what was done, what is guaranteed, what is provable."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from typing import Any, cast

from queries import Rows
from smalldb.exact.numbers import as_fraction, as_text, positive, whole
from smalldb.files.inputs import record_in
from smalldb.marginals.walks import UNIT, Related, Walks
from smalldb.mechanisms import Drawn, Measurements, Neighbours
from smalldb.mechanisms.known_pairs import LEARNED
from smalldb.mechanisms.recorded_universe import Ranges, recorded_columns, schema_ranges, standing_ranges
from smalldb.planning import Plan
from smalldb.planning.plans import finer_measure, tables_reached
from smalldb.releasing.record_keys import (
    Privacy,
    Record,
    RecordedFiner,
    RecordedPairs,
    RecordedStart,
    RecordedTable,
)
from smalldb.schema.bin_shapes import FinerCost
from smalldb.schema.related_schema import RelatedSchema
from smalldb.version import __version__

SCHEMA = 2  # of a record; records of schema 1 state no rho, and no laws
LARGE = 10  # an epsilon
FEW = 1 << 12  # numbers of measurements that a record holds (values, and the group of each category)
WARNING = "epsilon is above 10: by itself so large an epsilon protects little; 1 or less is usual"


def make_record(
    plan: Plan,
    *,
    private: bool,
    drawn: Drawn | None = None,
    ranges: Ranges | None = None,
    finer: Mapping[str, Sequence[int]] | None = None,
) -> Record:
    """Write the record of a release: public numbers, under add-remove none from n but what was released."""
    domain, bounds = plan.workload.domain, plan.chosen.promise.recorded(drawn)
    loss = plan.loss
    bounded_range = None if loss.bounded_range is None else as_text(loss.bounded_range)
    delta = None if plan.delta is None else as_text(plan.delta)
    privacy: Privacy = {"epsilon": as_text(plan.privacy), "bounded_range": bounded_range}
    if delta is not None:
        privacy = {"epsilon": as_text(plan.privacy), "delta": delta, "bounded_range": bounded_range}
    if loss.least_rho is not None:
        privacy["rho"] = as_text(loss.least_rho)
    if (laws := loss.laws_as_json()) is not None:
        privacy["laws"] = laws
    internal = plan.chosen.guarantee.internal
    if internal is not None:
        privacy["internal_epsilon"] = as_text(internal)
    if plan.rows_per_person > 1:
        privacy["rows_per_person"] = plan.rows_per_person
    record: Record = {
        "schema": SCHEMA,
        "mechanism": plan.mechanism,
        "candidates": plan.candidates,
        "epsilon": as_text(plan.epsilon),
        "delta": delta,
        "neighbours": plan.neighbours.value,
        "privacy": privacy,
        "rows": plan.rows if drawn is None else len(drawn.codes),
        "n": plan.n,
        "queries": {
            "text": plan.workload.text,
            "stated": plan.workload.stated,
            "reduced": plan.workload.size,
        },
        "universe": {
            "attributes": list(domain.attributes),
            "valid": [*domain.valid] if isinstance(domain.valid, tuple) else domain.valid,
        },
        "bounds": bounds,
        "private": private,
        "versions": {"smalldb": __version__},
    }
    if plan.strategy is not None:
        record["strategy"] = plan.strategy
    links = plan.request.links
    if links is not None:
        privacy["unit"] = links.unit
    elif not domain.binary or any(column.spelled for column in domain.columns):
        ranges = standing_ranges(domain) if ranges is None else ranges
        record["universe"]["columns"] = recorded_columns(domain, ranges)
    if plan.request.targets:
        names = [domain.names[c] for c in plan.request.targets]
        record["target"] = names[0] if len(names) == 1 else names
    if plan.request.first:
        record["measure_first"] = [[domain.names[c] for c in columns] for columns in plan.request.first]
    if (earlier := plan.request.earlier) is not None:
        number = len(earlier.measurements)
        record["refines"] = {"epsilon": earlier.epsilon, "sha256": earlier.digest, "measurements": number}
    if plan.request.start is not None:
        start = plan.request.start
        record["start"] = {"is": start.words, "sha256": start.digest, "rows": start.rows}
        if drawn is not None and drawn.from_start is not None:
            record["start"] = cast(RecordedStart, {**record["start"], **drawn.from_start})
    if plan.learned:
        record["learned"] = [
            {
                "column": each.column,
                "what": each.what,
                "epsilon": as_text(each.epsilon),
                "delta": None if each.delta is None else as_text(each.delta),
            }
            for each in plan.learned
        ]
    if plan.finer:
        record["finer"] = [_finer(plan, each, (finer or {}).get(each.column)) for each in plan.finer]
    if plan.means is not None:
        means, names = plan.means, [domain.names[c] for c in plan.means.columns]
        cost = {"epsilon": means.epsilon} if means.rho is None else {"rho": means.rho}
        record["means"] = {"columns": names} | {key: as_text(number) for key, number in cost.items()}
    if plan.neighbours is Neighbours.ADD_REMOVE:
        del record["n"]
    if bounds is None:
        del record["bounds"]
    if plan.privacy > LARGE:
        record["warning"] = WARNING
    return record


def _finer(plan: Plan, cost: FinerCost, counts: Sequence[int] | None) -> RecordedFiner:
    """Tell the finer bins of a column, and their counts for rows where they are released."""
    recorded: RecordedFiner = {"column": cost.column, "cuts": [*cost.cuts], "epsilon": as_text(cost.epsilon)}
    if counts is None:
        return recorded
    noise = finer_measure(plan.neighbours).noise(cost.epsilon)
    return {**recorded, "noise": {"name": noise.name, **noise.parameters}, "values": [*counts]}


def with_measurements(
    record: Record, plan: Plan, measurements: Measurements, rows: Rows, most: int | None = FEW
) -> Record:
    """Return a record with the measurements, and what they say of pairs of columns and of the error."""
    if "measurements" in record or not measurements or (most is not None and measurements.numbers > most):
        return record
    pairs = measurements.pairs()
    known: RecordedPairs = {
        "learned": [list(pair.columns) for pair in pairs if pair.known == LEARNED],
        "quiet": [list(pair.columns) for pair in pairs if pair.quiet],
    }
    whole: Record = {**record, "measurements": measurements.as_json(), "pairs": known}
    bounds = record.get("bounds")
    measured = len(measurements.marginals)
    if bounds is not None and measured:
        from smalldb.marginals.noise_bounds import table_bounds

        # what is paid for is not refused, even if more tables were measured than can be
        most_tables = max(tables_reached(plan), measured)
        tables = [
            {"columns": list(table.columns), "measurement": table.measurement, "released": table.bound}
            for table in table_bounds(measurements, rows, plan.beta, most_tables)
        ]
        if tables:
            whole["bounds"] = {**bounds, "tables": tables}
    return whole


def with_tables(record: Record, plan: Walks, schema: RelatedSchema, drawn: Related) -> Record:
    """Return the record of related tables with what was measured of each."""
    n, ranges = record.get("n"), schema_ranges(schema)
    parents: RecordedTable = {
        "rows": len(drawn.parents.codes),
        "key": schema.key,
        "epsilon": as_text(plan.parents.epsilon),
        "strategy": plan.parents.name,
    }
    children: RecordedTable = {
        "rows": len(drawn.children),
        "parent": schema.unit,
        "link": schema.link,
        "most": schema.most,
        "epsilon": as_text(plan.children.epsilon),
        "strategy": plan.children.name,
        "weights": {"unit": UNIT, "cap": drawn.cap},
    }
    tables = zip((parents, children), (drawn.of_parents, drawn.measurements), strict=True)
    for (table, items), domain in zip(tables, schema.domains.values(), strict=True):
        of_table = {name: ranges[name] for name in domain.names if name in ranges}
        table["columns"] = recorded_columns(domain, of_table)
        table["measurements"] = Measurements(domain, items, n, of_table).as_json()
    return {**record, "tables": {schema.unit: parents, schema.child: children}}


def written_record(record: Record) -> str:
    """Write a record as JSON; each measurement stands in a line of its own."""
    tables = record.get("tables", {})
    measured = [table["measurements"] for table in (*tables.values(), record) if table.get("measurements")]
    bare = {name: {**table, "measurements": []} for name, table in tables.items()}
    empty: dict[str, Any] = {"measurements": []} if record.get("measurements") else {}
    return in_lines({**record, **empty, **({"tables": bare} if bare else {})}, measured)


def in_lines(record: Mapping[str, Any], measured: Iterable[Sequence[object]]) -> str:
    """Write a record whose measurements are left out as JSON, and these, in their order, each in a line."""
    left = iter(measured)

    def filled(empty: re.Match[str]) -> str:
        lines = f",{empty[1]}  ".join(json.dumps(one, ensure_ascii=False) for one in next(left, ()))
        return f'{empty[1]}"measurements": [{empty[1]}  {lines}{empty[1]}]' if lines else empty[0]

    # no label has a line break as it is written
    return re.sub(r'(\n *)"measurements": \[\]', filled, json.dumps(record, indent=2, ensure_ascii=False))


@lru_cache(maxsize=1)
def record_schema() -> dict[str, Any]:
    """Return the JSON schema of a record."""
    text = files("smalldb.releasing").joinpath("record.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def read_record(path: str) -> dict[str, Any]:
    """Read the public record in a file; ValueError: it is none."""
    record = record_in(path)
    if not isinstance(record, dict):
        raise ValueError(f"{path!r} is not a record: expected an object")
    if "tables" in record and "unit" in record.get("privacy", {}):  # of schema 1
        return record
    lacking = [key for key in record_schema()["required"] if key not in record]
    if lacking:
        raise ValueError(f"{path!r} is not a record of smalldb: it lacks {', '.join(lacking[:3])}")
    return record


def stated_queries(record: Mapping[str, Any]) -> str | None:
    """Return the queries that a record states, if it does."""
    queries = record.get("queries")
    return queries.get("text") if isinstance(queries, dict) else None


def stated_bound(record: Mapping[str, Any]) -> float | None:
    """Return the error that a record promises, if it does."""
    bounds = record.get("bounds")
    bound = bounds.get("released", bounds.get("sharp")) if isinstance(bounds, dict) else None
    # of whole numbers no other is a promise, and no float may hold it
    return float(bound) if isinstance(bound, float) or bound in (0, 1) else None


def stated_start(record: Mapping[str, Any]) -> str | None:
    """Return what the public start is that a table was made from, if it was."""
    start = record.get("start")
    if not isinstance(start, dict) or not start.get("believed"):
        return None
    but = f" (but for {start['left_out']}, independent of the others)" if "left_out" in start else ""
    return f"{start.get('is')}{but}"


def stated_epsilon(record: Mapping[str, Any]) -> Fraction | None:
    """Return the epsilon of each row by a record, if it states one: its part of what a person has."""
    privacy = record.get("privacy")
    if not isinstance(privacy, dict):
        return None
    rows = whole(privacy.get("rows_per_person", 1), "privacy.rows_per_person")
    epsilon = as_fraction(privacy.get("epsilon"), "privacy.epsilon")
    return positive(epsilon, "privacy.epsilon") / rows
