"""Tiny made tables are released before anything is paid: what is imported and compiled late is there then."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from queries import Column, Domain, Rows
from queries.arrays import Integers
from smalldb.exact.bits import SeededBits
from smalldb.exact.numbers import Number
from smalldb.marginals.counts import InMemory
from smalldb.marginals.curator import Curator, PrivacyFilter
from smalldb.marginals.families import Families, release_families
from smalldb.marginals.universe import Universe
from smalldb.marginals.walks import plan_walks
from smalldb.mechanisms import Journal, Measurements
from smalldb.planning import Plan, plan
from smalldb.releasing.record import make_record, with_measurements
from smalldb.schema import Schema
from smalldb.schema.related_schema import RelatedSchema

ROWS, EPSILON = 64, 64  # so much that noise drowns nothing
SIZES = (2, 3, 4)  # of made columns; the last one is ordered


def rehearse_draw(foreseen: Plan, schema: Schema | RelatedSchema | None, strategy: str | None = None) -> None:
    """Release a made table by a plan's mechanism, or by a `strategy` that may come instead."""
    _compile_rare_kernels()
    if isinstance(schema, RelatedSchema):
        return rehearse_walks(*schema.tables.values())
    rehearsal = _planned(foreseen, strategy or foreseen.strategy)
    domain, rows = rehearsal.workload.domain, rehearsal.n or ROWS
    codes = _codes(domain.sizes)[:rows]
    counts = np.ones(len(codes), dtype=np.int64)
    counts[0] += rows - len(codes)
    bits = SeededBits(0)
    table = InMemory(Rows.from_codes(domain, codes, counts))
    curator = Curator(table, Journal(bits), rehearsal.budget())
    drawn = curator.run(rehearsal.chosen, False)
    measurements = Measurements(domain, curator.measurements, rehearsal.n, None)
    record = make_record(rehearsal, private=False, drawn=drawn)
    with_measurements(record, rehearsal, measurements, Rows.from_codes(domain, drawn.codes))
    if schema is not None:
        schema.decode(np.zeros((2, len(schema.domain.sizes)), dtype=np.int64), rng=bits)
    return None


def _compile_rare_kernels() -> None:
    """Compile kernels for two categories each, very many columns, and noise of all columns at once."""
    from smalldb.kernels.cell_sums import count_pairs, walsh
    from smalldb.kernels.polytope_points import draw_points

    one, two = np.ones(1, dtype=np.int64), np.array([[0, 1]])
    walsh(np.zeros(2))
    count_pairs(np.zeros((2, 1), dtype=np.uint8), one, two, one, one, np.zeros(2, dtype=np.int64))
    draw_points(2, one, one, np.ones(1, dtype=np.uint64))


def _planned(foreseen: Plan, strategy: str | None) -> Plan:
    """Plan a release of made columns by the same mechanism, under the same relation."""
    codings = zip("abc", SIZES, (None, None, "thermometer"), strict=True)
    columns = [Column(name, [*map(str, range(size))], coding=coding) for name, size, coding in codings]
    domain = Domain([*"abc"] if foreseen.workload.domain.binary else columns)
    request, mechanism, relation = foreseen.request, foreseen.mechanism, foreseen.neighbours

    def planned(epsilon: Number, hint: int, rows: int) -> Plan:
        n, n_max = (None, hint) if foreseen.n is None else (hint, None)
        return plan(
            domain,
            n=n,
            n_max=n_max,
            epsilon=epsilon,
            delta=request.delta,
            rows=rows,
            neighbours=relation.value,
            mechanism=mechanism,
            strategy=strategy,
        )

    if strategy is None:
        return planned(1, ROWS, 2)
    try:
        return planned(request.epsilon, request.rows_hint or ROWS, ROWS)
    except ValueError:  # so little epsilon that nothing can be measured of made columns
        return planned(EPSILON, ROWS, ROWS)


def rehearse_walks(*schemas: Schema) -> None:
    """Release two made related tables, and decode a row of each schema."""
    universe = Universe(SIZES, (False, False, True), ((0, 1), (0, 2), (1, 2)), ())
    bits, codes = SeededBits(0), _codes(SIZES)
    families = Families(codes[:, :-1], codes, np.arange(ROWS) // 3 * 3)
    walks = plan_walks(universe, universe, Fraction(EPSILON), True, ROWS)
    release_families(walks, families, Journal(bits), PrivacyFilter(walks.guarantee.paid, replaced=True))
    for schema in schemas:
        schema.decode(np.zeros((2, len(schema.domain.sizes)), dtype=np.int64), rng=bits)


def _codes(sizes: Sequence[int]) -> Integers:
    return np.stack([np.arange(ROWS) // (1 + c) % size for c, size in enumerate(sizes)], axis=1)
