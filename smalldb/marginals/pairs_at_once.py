"""All tables of one and two columns at once: counts, the noise of a cone, and how they are read."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, prod

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.marginals.estimate.column_estimates import without_margins
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.measuring import LIMIT, Measured
from smalldb.marginals.private_rows import PrivateRows
from smalldb.marginals.universe import Universe
from smalldb.noise import cone

MOST_PLACES = 64  # of a column
MOST_WIDE = 256  # numbers in a row of a frame: the noise takes some 12 times their square of normal numbers


def pairs_of(universe: Universe) -> list[tuple[int, int]]:
    """Return the pairs of columns in the tables of the workload, in order."""
    every, found = comb(len(universe.sizes), 2), set[tuple[int, int]]()
    for table in universe.tables:
        found.update(combinations(table, 2))
        if len(found) == every:  # among 10^5 tables the first thousand often have them all
            break
    return sorted(found)


def measurable(universe: Universe) -> bool:
    """
    Whether all tables of two columns can be measured at once, and the workload has no wider ones.

    Yes/no columns alone have parities, which `smalldb.marginals.wide_parities` measures.
    """
    if max(map(len, universe.tables)) != 2:
        return False
    return 2 < max(universe.sizes) <= MOST_PLACES and cone.width(universe.sizes) <= MOST_WIDE


def variances(
    universe: Universe, cost: Fraction, replaced: bool
) -> tuple[list[float], dict[tuple[int, int], float]]:
    """Return the variance of the noise: of each column's counts, and of the cells that `read_pairs` gives."""
    pairs = pairs_of(universe)
    columns, cells = cone.variances(universe.sizes, rate_of(cost, replaced), pairs)
    return columns, dict(zip(pairs, cells, strict=True))


# Proof: docs/proofs/pairs.md, lemma 3.
def rate_of(cost: Fraction, replaced: bool) -> Fraction:
    """Return the rate of the noise: what a row that is added or removed may lose; one replaced is both."""
    return cost / 2 if replaced else cost


def tables_of_pairs(universe: Universe, rows: PrivateRows) -> list[Integers]:
    """Return the counts of the table of each pair of columns."""
    sizes = universe.sizes
    return [rows.table((a, b), (sizes[a], sizes[b])) for a, b in pairs_of(universe)]


# Proof: docs/proofs/rounds.md, lemma 12.
def counts_of(universe: Universe, rows: PrivateRows) -> list[Integers]:
    """Return the counts of each column, then the table of each pair of columns."""
    columns = [rows.table((c,), (size,)) for c, size in enumerate(universe.sizes)]
    return columns + tables_of_pairs(universe, rows)


# Proof: docs/proofs/pairs.md, lemma 6; docs/proofs/rounds.md, lemma 12.
def measure_at_once(
    universe: Universe, counts: Sequence[Integers], replaced: bool, cost: Fraction, source: BitSource
) -> Integers:
    """
    Release all these tables at once: pure `cost`-differential privacy.

    Parameters
    ----------
    counts
        As in `counts_of`.

    Returns
    -------
    array of int64
        The tables with noise, one after another.
    """
    exact = np.concatenate([table.ravel() for table in counts])
    noise = cone.cone_noise(universe.sizes, rate_of(cost, replaced), pairs_of(universe), source)
    return np.clip(exact + noise, -LIMIT, LIMIT)


def tables_at_once(universe: Universe, values: Integers) -> dict[tuple[int, ...], Integers]:
    """Return the released tables by their columns: those of one column, then those of two."""
    scopes = [*((c,) for c in range(len(universe.sizes))), *pairs_of(universe)]
    shapes = [tuple(universe.sizes[c] for c in scope) for scope in scopes]
    parts = np.split(values, np.cumsum([prod(shape) for shape in shapes])[:-1])
    return {scope: part.reshape(shape) for scope, part, shape in zip(scopes, parts, shapes, strict=True)}


# Proof: docs/proofs/rounds.md, lemma 12.
def read_columns(
    universe: Universe, tables: Mapping[tuple[int, ...], Integers], replaced: bool, cost: Fraction
) -> tuple[Measured, ...]:
    """Return what was released of each column. It costs nothing by itself."""
    noise, _ = variances(universe, cost, replaced)
    return tuple(Measured(((c, 0),), tables[c,], Fraction(0), variance) for c, variance in enumerate(noise))


# Proof: docs/proofs/rounds.md, lemma 12.
def read_pairs(
    universe: Universe,
    tables: Mapping[tuple[int, ...], Integers],
    replaced: bool,
    cost: Fraction,
    columns: Sequence[Floats],
    groupings: Sequence[Grouping],
    total: int,
) -> list[Measured]:
    """
    Return the released tables of pairs, with the margins of independent columns.

    Parameters
    ----------
    tables, replaced, cost
        As `measure_at_once` released them.
    columns
        Expected counts of each column's places, `total` in all.

    Returns
    -------
    list of Measured
        At all places, in the order of the groupings. They cost nothing by themselves.
    """
    found = list[Measured]()
    _, noise = variances(universe, cost, replaced)
    for a, b in pairs_of(universe):
        independent = np.outer(columns[a], columns[b]) / total
        ranked = np.rint(independent + without_margins(tables[a, b] - independent)).astype(np.int64)
        ranked = ranked[np.ix_(groupings[a].order, groupings[b].order)]
        scope = ((a, groupings[a].finest), (b, groupings[b].finest))
        found.append(Measured(scope, ranked, Fraction(0), noise[a, b]))
    return found


def dependence(table: Measured) -> float:
    """Return the sum of squared differences from independent columns, less what noise adds to it."""
    counts = table.counts.astype(np.float64)
    independent = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1.0)
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    return float(((counts - independent) ** 2).sum() - table.variance * freedom)
