"""The public record of a release of related tables: what was done, what is guaranteed, what was measured."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from queries import Column, Domain
from smalldb.exact.numbers import as_text
from smalldb.marginals.walks import UNIT, Related, Walks
from smalldb.mechanisms import Measurement, Measurements, Neighbours
from smalldb.mechanisms.recorded_universe import recorded_columns, schema_ranges
from smalldb.releasing.record import LARGE, WARNING, in_lines
from smalldb.schema.related_schema import RelatedSchema
from smalldb.version import __version__


def number_column(schema: RelatedSchema) -> Column:
    """Return the column of parents that holds the number of their children: 0, 1, and so on, or more."""
    labels = [*map(str, range(schema.most)), f"{schema.most} or more"]
    name = schema.number
    attributes = [f"{name}>={i}" for i in range(1, schema.most + 1)]
    table = [[int(code >= i) for i in range(1, schema.most + 1)] for code in range(schema.most + 1)]
    return Column.coded(name, labels, attributes, table, ordered=True)


def domains(schema: RelatedSchema) -> dict[str, Domain]:
    """Return the universes that are measured: of parents with their number, and of walks to a child."""
    number = number_column(schema)
    own, other = (
        [_named(column, name) for column in table.domain.columns] for name, table in schema.tables.items()
    )
    return {schema.unit: Domain([*own, number]), schema.child: Domain([*own, number, *other])}


def _named(column: Column, table: str) -> Column:
    """Return a column named after its table, too."""
    name = f"{table}.{column.name}"
    if column.yes_no:
        return Column(name)
    attributes = [f"{table}.{each}" for each in column.attributes]
    ordered, cuts = column.ordered, column.cuts
    return Column.coded(name, column.labels, attributes, column.table, ordered=ordered, cuts=cuts)


def related_record(
    schema: RelatedSchema,
    plan: Walks,
    *,
    epsilon: Fraction,
    neighbours: Neighbours,
    n: int | None,
    private: bool,
    released: Related | None = None,
) -> dict[str, Any]:
    """Write the record: public numbers only; under add-remove neither n nor anything computed from it."""
    record: dict[str, Any] = {
        "schema": 1,
        "mechanism": "marginals",
        "epsilon": as_text(epsilon),
        "delta": None,
        "neighbours": neighbours.value,
        "privacy": {"epsilon": as_text(plan.epsilon), "bounded_range": None, "unit": schema.protected},
        "private": private,
        "versions": {"smalldb": __version__},
    }
    if neighbours is Neighbours.REPLACE_ONE:
        record["n"] = n
    if plan.epsilon > LARGE:
        record["warning"] = WARNING
    if released is None:
        return record
    parents: dict[str, Any] = {
        "rows": len(released.parents.codes),
        "key": schema.key,
        "epsilon": as_text(plan.parents.epsilon),
        "strategy": plan.parents.name,
    }
    children: dict[str, Any] = {
        "rows": len(released.children),
        "parent": schema.unit,
        "link": schema.link,
        "most": schema.most,
        "epsilon": as_text(plan.children.epsilon),
        "strategy": plan.children.name,
        "weights": {"unit": UNIT, "cap": released.cap},
    }
    tables = zip(domains(schema).items(), (released.of_parents, released.measurements), strict=True)
    for table, ((_, domain), items) in zip((parents, children), tables, strict=True):
        table |= _measured(domain, items, n, schema)
    record["tables"] = {schema.unit: parents, schema.child: children}
    return record


def written_related(record: dict[str, Any]) -> str:
    """Write the record as JSON; each measurement stands in a line of its own."""
    tables = record["tables"]
    bare = {name: {**told, "measurements": []} for name, told in tables.items()}
    return in_lines({**record, "tables": bare}, [told["measurements"] for told in tables.values()])


def _measured(
    domain: Domain, items: Sequence[Measurement], n: int | None, schema: RelatedSchema
) -> dict[str, Any]:
    """Return the columns that were measured, and the numbers with noise."""
    ranges = {
        f"{name}.{column}": own
        for name, table in schema.tables.items()
        for column, own in schema_ranges(table).items()
        if f"{name}.{column}" in domain.names
    }
    columns = recorded_columns(domain, ranges)
    return {"columns": columns, "measurements": Measurements(domain, items, n, ranges).as_json()}
