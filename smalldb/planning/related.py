"""Plans of related tables: parents, and the walks from these to their children."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from queries import Domain, QueryClass, Workload
from queries.expressions import joined
from queries.spec import named_tables
from smalldb.exact.numbers import Number
from smalldb.marginals.estimate.modelling import cells_of_rules
from smalldb.marginals.mechanism import MOST_CELLS, ByMarginals
from smalldb.marginals.universe import Universe
from smalldb.marginals.walks import plan_walks
from smalldb.mechanisms import Links, Neighbours, Request, columns_named, workload_of
from smalldb.mechanisms.measurement_list import short_names
from smalldb.planning.arguments import USUAL_BETA, exact_epsilon, sizes_of, taking
from smalldb.planning.plans import Plan
from smalldb.schema.related_schema import RelatedSchema

GUESS = 1 << 32  # of parents, at most


def links_of(schema: RelatedSchema) -> Links:
    """Return how the tables of a schema hang together."""
    parents = len(schema.parents.domain.columns) + 1
    words = schema.parent_words, schema.children_words
    return Links(schema.protected, words, parents, schema.most, schema.least, schema.cap, schema.drop)


def plan_related(
    schema: RelatedSchema,
    epsilon: Number,
    relation: Neighbours,
    n: int | None,
    n_max: int | None,
    mechanism: str,
    queries: QueryClass | Workload | str | None,
    first: tuple[str | Sequence[str] | None, Sequence[str] | None, str | None],
    others: dict[str, Any],
) -> Plan:
    """Plan a release of related tables; `first` are targets, tables to measure first and a strategy."""
    if mechanism not in ("auto", ByMarginals.name):
        raise ValueError("mechanism: related tables are made by marginals: leave it out")
    ready = queries if isinstance(queries, Workload) and queries.domain == schema.domain else None
    if ready is None:
        others["queries"] = queries
    if refused := [name for name, value in others.items() if value is not None]:
        raise ValueError(f"related tables do not take {', '.join(refused)} yet: leave it out")
    exact = exact_epsilon(epsilon)
    n, n_max = sizes_of(relation, n, n_max)
    if relation is Neighbours.ADD_REMOVE and n_max is None:
        raise ValueError("n_max is missing: under add-remove give a public guess of the number of parents")
    wrong = [
        f"table {name!r}: its rules meet in tables of more than 2^21 cells: use fewer that meet"
        for name, table in schema.tables.items()
        if table.domain.rules and cells_of_rules(_universe(table.domain)) > MOST_CELLS
    ]
    if wrong:
        raise ValueError(joined(wrong))
    parents = _universe(schema.parents.domain, schema.most, schema.least)
    target, measure_first, strategy = first
    if strategy is not None:
        taking("marginals", strategy, None, aimed=False, calibrated=False)
    names = short_names(schema.domain.names)
    full = dict(zip(names, schema.domain.names, strict=True))
    wanted = [target] if isinstance(target, str) else target or ()
    targets = columns_named(schema.domain, [full.get(name, name) for name in wanted] or None)
    named_first = named_tables(measure_first or (), names)
    request = Request(
        workload_of(ready, schema.domain),
        n,
        None if n_max is None else min(GUESS, n_max),
        exact,
        Fraction(USUAL_BETA),
        relation,
        targets=targets,
        first=named_first,
        strategy=strategy,
        links=links_of(schema),
    )
    walks = plan_walks(
        parents,
        _universe(schema.children.domain),
        exact,
        relation is Neighbours.REPLACE_ONE,
        request.rows_hint or 1,
        cap=schema.cap,
        n=n,
        targets=targets,
        named=named_first,
        strategy=strategy,
    )
    return Plan(request, walks, persons_stated=True)


def _universe(domain: Domain, most: int | None = None, least: int = 0) -> Universe:
    """Return the columns of a table and its rules; and of a number from `least` to `most`, behind them."""
    sizes, ordered = domain.sizes, tuple(column.ordered for column in domain.columns)
    if most is not None:
        sizes, ordered = (*sizes, most + 1), (*ordered, True)
    pairs = tuple(combinations(range(len(sizes)), 2)) or ((0,),)
    rules = tuple((rule.columns, rule.allowed) for rule in domain.rules)
    if most is not None and least:
        rules = (*rules, ((len(sizes) - 1,), np.arange(most + 1) >= least))
    return Universe(sizes, ordered, pairs, rules)
