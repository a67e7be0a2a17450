"""The tables of one release: draws of the confidential table, written as the synthetic one is."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from queries import Domain
from queries.arrays import splitmix64
from smalldb.exact.bits import BitSource, bit_source
from smalldb.exact.numbers import whole
from smalldb.inference.several_tables import Refitted, Spelling, Tables, assumed
from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.parity_refits import LOUD, ParityRefits
from smalldb.marginals.refits import EMPTY, Refits
from smalldb.marginals.related_refits import RelatedRefits
from smalldb.marginals.walks import Walks
from smalldb.mechanisms import Measurements, Offsets
from smalldb.mechanisms.measurement_list import released_total
from smalldb.planning import Plan
from smalldb.releasing.table_source import LinkedSource

# its intervals for means in small groups hold the truth in .85 of 60 cases, at .95
AT_ONCE = "all pairs of columns were measured at once, and intervals from several tables would be too narrow"
INSTEAD = "ask for shares and means instead (smalldb ask, release.ask)"
UNMEASURED = "this release has no measurements to draw tables from: release with mechanism='marginals'"


class Copies(NamedTuple):
    """Several copies of what was released, one at a time."""

    made_by: Refitted
    rows: int  # of each; of related tables, of parents
    # each as it is written, and its codes; as they are `streamed` categories, shape (rows, C), and a seed
    draws: Iterator[tuple[Any, Any]]


def refitted(refits: Refits | ParityRefits, domain: Domain) -> Refitted:
    """Tell it by the names of columns and categories."""
    names = domain.names
    rare = {
        column.name: tuple(column.labels[code] for code in codes)
        for column, codes in zip(domain.columns, refits.rare(), strict=True)
        if codes
    }
    if isinstance(refits, ParityRefits):
        return Refitted(0, len(refits.spectrum.sets), (), rare)
    return Refitted(len(refits.inside), 0, tuple((names[a], names[b]) for a, b in refits.left_out), rare)


def streamed(
    measurements: Measurements,
    n: int | None,
    *,
    count: int,
    rows: int | None = None,
    rng: int | BitSource | None = None,
) -> Copies:
    """Draw tables of n rows, or of fewer of these: see `Release.tables`."""
    whole(count, "the number of tables")
    whole(1 if rows is None else rows, "rows")
    if not len(measurements):
        raise ValueError(UNMEASURED)
    total = released_total(measurements) if n is None else n
    if total < 1:
        raise ValueError("no row was released, so no table can be drawn: release with a larger epsilon")
    if rows is not None and rows > total:
        raise ValueError(f"each table has at most {total} rows, as the data have: give fewer rows, or none")
    if not all(each.noise.refitted for each in measurements):
        raise ValueError(f"{AT_ONCE}: {INSTEAD}")
    seed, domain = bit_source(rng).bits(64), measurements.domain
    counts = [each for each in measurements if not isinstance(each.of[0], Offsets)]
    refits = Refits.of(domain, counts, total) or ParityRefits.of(domain, counts, total)
    if refits is None:
        raise ValueError(
            "several tables are drawn from counts of cells in nested groups, or from contrasts alone, and "
            f"something else was measured; {INSTEAD}"
        )
    if not refits.suitable:
        why = EMPTY if isinstance(refits, Refits) else LOUD
        raise ValueError(f"{why}: intervals from several tables would be too narrow; {INSTEAD}")
    tables = zip(splitmix64(count, seed ^ 1).tolist(), refits.draws(seed), strict=False)
    draws = ((_some(table, rows, sample_seed), sample_seed) for sample_seed, table in tables)
    return Copies(refitted(refits, domain), total if rows is None else rows, draws)


def related_copies(release: Any, count: int, rows: int | None, coins: BitSource) -> Copies:
    """Draw several copies of related tables, see `Release.tables`."""
    walks, schema = release.plan.chosen, release.schema
    whole(count, "the number of tables")
    if rows is not None:
        raise ValueError("related tables are drawn whole: leave out how many rows each has")
    if not all(each.noise.refitted for measured in release.measurements.values() for each in measured):
        raise ValueError(f"{AT_ONCE}: {INSTEAD}")
    parents = release.codes[schema.unit]
    if not len(parents):
        raise ValueError("no row was released, so no table can be drawn: release with a larger epsilon")
    cap = release.record["tables"][schema.child]["weights"]["cap"]
    refits = RelatedRefits.of(walks, cap, schema.domains, release.measurements, len(parents))
    if refits is None:
        raise ValueError(f"several tables are drawn from counts of cells in nested groups; {INSTEAD}")
    if not refits.parents.suitable:
        raise ValueError(f"{EMPTY}: intervals from several tables would be too narrow; {INSTEAD}")
    source, width = LinkedSource(release.data, schema), parents.shape[1] - 1

    def written() -> Iterator[tuple[Any, Any]]:
        for drawn, children, of in islice(refits.draws(coins.bits(64)), count):
            yield source.written(drawn[:, :width], children, of, False, coins), None

    made_by = Refitted(len(refits.parents.inside) + len(refits.of_walks), 0, (), {})
    return Copies(made_by, len(parents), written())


def imputed(spelling: Spelling, stream: Copies, measurements: Measurements) -> Tables:
    """Collect draws that follow from measurements."""
    kind = np.min_scalar_type(max(measurements.domain.sizes))
    drawn, seeds = list[npt.NDArray[np.integer]](), list[int]()
    for table, seed in stream.draws:
        drawn.append(table.astype(kind))
        seeds.append(seed)
    return Tables(spelling, drawn, seeds, stream.made_by, *assumed(measurements, stream.made_by.left_out))


def _some(table: npt.NDArray[np.integer], rows: int | None, seed: int) -> npt.NDArray[np.integer]:
    """Return a random sample of so many rows, without replacement; None: all of them."""
    if rows is None:
        return table
    return table[np.argsort(splitmix64(len(table), seed ^ 1), kind="stable")[:rows]]


def check_drawable(plan: Plan) -> None:
    """Refuse a plan of which it is public that several tables cannot be drawn: before anything is paid."""
    if isinstance(plan.chosen, Walks):
        if why := plan.chosen.parents.undrawable(plan.n) or plan.chosen.children.undrawable(None):
            raise ValueError(f"--tables: {why}")
        return
    if not isinstance(plan.chosen, ByMarginals):
        raise ValueError(
            f"--tables is for marginals: {plan.mechanism} draws a table and measures nothing; leave it out, "
            "or add --mechanism marginals"
        )
    if why := plan.chosen.strategy.undrawable(plan.n):
        raise ValueError(f"--tables: {why}")
