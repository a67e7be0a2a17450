"""All tables of two columns at once: places are written in signs, and sums of products get Wishart noise."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb, isqrt

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.answers.wishart import even_moments, rates, wishart_noise
from smalldb.exact.bits import BitSource
from smalldb.rounds.counting import PrivateRows
from smalldb.rounds.grouping import Grouping
from smalldb.rounds.measuring import LIMIT, Measured
from smalldb.rounds.universe import Universe

MOST_PLACES = 64  # of a column
MOST_SIGNS = 256  # of a row: the noise takes four times their square of normal numbers
TILT = Fraction(1, 64)  # of the cost: for entries of one sign and the constant, which are not released


# Proof: docs/proofs/rounds.md, lemma 12.
@cache
def words(size: int) -> npt.NDArray[np.int64]:
    """
    Return a word of signs for each place, shape (size, m - 1): the scalar product of any two is -1.

    They are rows of a Hadamard matrix of order m, less its first column: the least order from `size` on that
    is a power of 2 (Sylvester), or above a prime by 1 and divided by 4 (Paley).

    Examples
    --------
    >>> words(3).tolist()
    [[1, 1, 1], [-1, 1, -1], [1, -1, -1]]
    """
    order = size
    while not (order & (order - 1) == 0 or _paley(order - 1)):
        order += 1
    found = hadamard(order) if order & (order - 1) == 0 else _residues(order - 1)
    signs = np.array(found[:size, 1:], dtype=np.int64)
    signs.setflags(write=False)  # it is cached
    return signs


def _paley(q: int) -> bool:
    """Whether q is a prime that leaves 3 when it is divided by 4."""
    return q % 4 == 3 and all(q % part for part in range(3, isqrt(q) + 1, 2))


def _residues(q: int) -> Integers:
    """Return the Hadamard matrix of order q + 1 of Paley (1933), whose first column is all 1."""
    places = np.arange(q)
    character = np.where(np.isin(places, places[1:] ** 2 % q), 1, -1)
    character[0] = 0
    core = character[(places[:, None] - places) % q] + np.eye(q, dtype=np.int64)
    return np.block([[np.ones((1, 1), int), np.ones((1, q), int)], [np.ones((q, 1), int), -core]])


def pairs_of(universe: Universe) -> list[tuple[int, int]]:
    """Return the pairs of columns in the tables of the workload, in order."""
    every, found = comb(len(universe.sizes), 2), set[tuple[int, int]]()
    for table in universe.tables:
        found.update(combinations(table, 2))
        if len(found) == every:  # among 10^5 tables the first thousand often have them all
            break
    return sorted(found)


def measurable(universe: Universe) -> bool:
    """Whether all tables of two columns can be measured at once, and the workload has no wider ones."""
    if max(map(len, universe.tables)) > 2:
        return False
    columns = _columns(universe)
    if not columns or max(universe.sizes[c] for c in columns) > MOST_PLACES:
        return False
    return _places_of_signs(universe)[1] <= MOST_SIGNS


def _columns(universe: Universe) -> list[int]:
    """Return the columns that are in some pair, in order."""
    return sorted({c for table in universe.tables if len(table) > 1 for c in table})


def _places_of_signs(universe: Universe) -> tuple[dict[int, int], int]:
    """Return where the signs of each column begin, after the constant, and how many there are in all."""
    starts, end = {}, 1
    for c in _columns(universe):
        starts[c] = end
        end += words(universe.sizes[c]).shape[1]
    return starts, end - 1


def variances(universe: Universe, cost: Fraction, replaced: bool) -> dict[tuple[int, int], float]:
    """Return, for each pair of columns, the variance of the noise of a cell as `read_pairs` gives it."""
    signs = _places_of_signs(universe)[1]
    of_sums = float(even_moments(signs, 2, *rates(cost, TILT), 2)[1]) * (4 if replaced else 1)
    orders = {c: words(universe.sizes[c]).shape[1] + 1 for c in _columns(universe)}
    return {(a, b): of_sums / (orders[a] * orders[b]) for a, b in pairs_of(universe)}


def tables_of_pairs(universe: Universe, rows: PrivateRows) -> list[Integers]:
    """Return the counts of the table of each pair of columns."""
    sizes = universe.sizes
    return [rows.table((a, b), (sizes[a], sizes[b])) for a, b in pairs_of(universe)]


# Proof: docs/proofs/rounds.md, lemma 12.
def sums_of_products(universe: Universe, tables: Sequence[Integers]) -> list[Integers]:
    """Return, for each pair of columns, the sums over rows of products of a sign of each: (m - 1, m' - 1).

    `tables` are as `tables_of_pairs` counts them.
    """
    sizes, pairs = universe.sizes, zip(pairs_of(universe), tables, strict=True)
    return [words(sizes[a]).T @ counts @ words(sizes[b]) for (a, b), counts in pairs]


# Proof: docs/proofs/rounds.md, lemma 12.
def measure_pairs(
    universe: Universe, sums: Sequence[Integers], n: int | None, cost: Fraction, source: BitSource
) -> Integers:
    """
    Release all sums of products at once: pure `cost`-differential privacy.

    A row adds the outer product of its signs to a matrix, of which these sums are entries. Under replace-one
    odd products are counted, (n - sum) / 2: see `smalldb.answers.wishart.rates`.

    Parameters
    ----------
    sums
        As in `sums_of_products`.
    n
        The number of rows under replace-one, else None.
    """
    starts, signs = _places_of_signs(universe)
    ranges = {c: range(start, start + words(universe.sizes[c]).shape[1]) for c, start in starts.items()}
    entries = [entry for a, b in pairs_of(universe) for entry in product(ranges[a], ranges[b])]
    exact = np.concatenate([part.ravel() for part in sums])
    if n is not None:
        exact = (n - exact) // 2
    noise = wishart_noise(signs, *rates(cost, TILT), entries, source)
    return np.clip(exact + noise, -LIMIT, LIMIT)


# Proof: docs/proofs/rounds.md, lemma 12.
def read_pairs(
    universe: Universe,
    values: Integers,
    n: int | None,
    cost: Fraction,
    columns: Sequence[Floats],
    groupings: Sequence[Grouping],
    total: int,
) -> list[Measured]:
    """
    Return the released sums as tables of pairs, whose margins are those of independent columns.

    With a word for each of k places in the rows of S, and C what takes the mean away, C S S^T C = m C. So
    C S M S'^T C / (m m') is the table, less its means along both axes, plus as much of white noise.

    Parameters
    ----------
    values, n, cost
        As `measure_pairs` released them.
    columns
        Expected counts of each column's places, `total` in all.

    Returns
    -------
    list of Measured
        At all places, in the order of the groupings. They cost nothing by themselves.
    """
    sizes, found, start = universe.sizes, [], 0
    noise = variances(universe, cost, n is not None)
    for a, b in pairs_of(universe):
        one, other = words(sizes[a]), words(sizes[b])
        end = start + one.shape[1] * other.shape[1]
        sums = values[start:end].reshape(one.shape[1], other.shape[1]).astype(np.float64)
        if n is not None:
            sums = n - 2 * sums
        start = end
        independent = np.outer(columns[a], columns[b]) / total
        apart = one @ sums @ other.T / ((one.shape[1] + 1) * (other.shape[1] + 1)) - independent
        apart += apart.mean() - apart.mean(axis=0) - apart.mean(axis=1, keepdims=True)
        ranked = np.rint(independent + apart).astype(np.int64)
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
