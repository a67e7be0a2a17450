"""Which parities the answers of a workload are made of.

With chi_S(x) = (-1)^(ones of x on S), a query f is the sum over subsets S of its attributes of
c_S chi_S, and c_S = D^-1 2^-w times the Walsh-Hadamard transform of its 2^w integer weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from queries import Query, Workload
from queries.arrays import Floats
from queries.domain import Integers
from queries.encoding import pack_codes
from queries.rows import MAX_TOTAL

Positions: TypeAlias = tuple[int, ...]

MAX_WIDTH = 16  # attributes of one query, parities apart
MAX_TERMS = 1 << 23  # coefficients of all queries
MAX_PARITIES = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """One query of each kind: queries of a kind have the same coefficients at sets of the same orders."""

    starts: Integers  # shape (k + 1,): the terms of each
    orders: Integers  # for each term, how many attributes its parity has
    squares: Floats  # for each term, its squared coefficient

    def worst(self, weights: Floats) -> float:
        """Return the largest sum of a query's squares, each times the weight (d + 1,) of its order."""
        return float(np.add.reduceat(self.squares * weights[self.orders], self.starts[:-1]).max())


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The queries of a workload as sums of parities."""

    # the K parities that some query needs, by order (how many attributes), then by positions; without the
    # empty one
    sets: tuple[Positions, ...]
    orders: Integers  # shape (K,): the order of each parity
    constants: Floats  # shape (J,): the coefficient of the empty parity in each query
    starts: Integers  # shape (J + 1,): the terms of query j are ``starts[j]:starts[j + 1]``, at least one
    members: Integers  # for each term, the position of its parity in `sets`
    coefficients: Floats  # for each term, its coefficient, rounded to nearest
    kinds: Kinds  # one query of each kind

    @property
    def ranks(self) -> dict[Positions, int]:
        """The position of each parity."""
        return {positions: rank for rank, positions in enumerate(self.sets)}

    def over_queries(self, terms: Floats) -> Floats:
        """Add up one number a term for each query, shape (J,)."""
        return np.asarray(np.add.reduceat(terms, self.starts[:-1]))

    def answers(self, chi: Floats) -> Floats:
        """Return the answers that belong to the means of the parities, shape (K,)."""
        return self.constants + self.over_queries(self.coefficients * chi[self.members])


def spectrum(workload: Workload) -> Spectrum:
    """Write the queries of a workload as sums of parities; those with the same table together."""
    queries = workload.queries
    if not queries:
        raise ValueError(
            "the workload holds no query that differs between tables: there is nothing to release"
        )
    widest = max((len(q.attributes) for q in queries if q.weights is not None), default=0)
    if widest > MAX_WIDTH:
        raise ValueError(
            f"a query looks at {widest} attributes; contrasts are measured for queries over at most "
            f"{MAX_WIDTH} (parities apart): use a smaller width"
        )
    terms = sum(1 if q.weights is None else len(q.weights) for q in queries)
    if terms > MAX_TERMS:
        raise ValueError(
            f"the queries have up to {terms} Fourier coefficients, more than {MAX_TERMS}: "
            "use a smaller width, fewer attributes or fewer queries"
        )
    alike: dict[tuple[object, ...], int] = {}  # the kinds, in the order of their first queries
    kind_of = np.array(
        [alike.setdefault((q.weights, q.denominator, len(q.attributes)), len(alike)) for q in queries]
    )
    firsts = np.unique(kind_of, return_index=True)[1]
    batches = _transforms([queries[j] for j in firsts])
    # most queries need the parity of all their attributes: too many are refused before any is made
    whole = np.zeros(len(alike), dtype=bool)
    of_kinds, terms_of = np.empty(len(alike)), np.zeros(len(alike), dtype=np.int64)
    for batch in batches:
        of_kinds[batch.kinds] = batch.constants
        for terms_of_order in batch.orders.values():
            terms_of[batch.kinds] += np.bincount(terms_of_order.rows, minlength=len(batch.kinds))
        if batch.width in batch.orders:
            whole[batch.kinds[batch.orders[batch.width].rows]] = True
    check_parities(len({queries[j].attributes for j in np.flatnonzero(whole[kind_of])}))
    constants, lengths = of_kinds[kind_of], terms_of[kind_of]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    coefficients, orders = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.int64)
    # of each order the terms, and their parities
    terms_of_orders: dict[int, list[tuple[Integers, npt.NDArray[np.int16]]]] = {}
    for batch in batches:
        row_of = np.full(len(alike), -1)
        row_of[batch.kinds] = np.arange(len(batch.kinds))
        members = np.flatnonzero(row_of[kind_of] >= 0)
        attributes = np.array([queries[j].attributes for j in members], dtype=np.int16)
        for order, of_order in batch.orders.items():
            whose, which = of_order.over(row_of[kind_of[members]])
            at = starts[members][whose] + of_order.within[which]
            coefficients[at], orders[at] = of_order.values[which], order
            terms_of_orders.setdefault(order, []).append(
                (at, attributes[whose[:, None], of_order.positions[which]])
            )
    sets: list[Positions] = []
    ranks = np.empty(starts[-1], dtype=np.int64)
    for order in sorted(terms_of_orders):
        at_terms, of_terms = zip(*terms_of_orders.pop(order), strict=True)
        distinct, inverse = _numbered(np.concatenate(of_terms), len(workload.domain.attributes))
        ranks[np.concatenate(at_terms)] = inverse + len(sets)
        sets += map(tuple, distinct.tolist())
        check_parities(len(sets))
    ends = np.concatenate([[0], np.cumsum(terms_of)])
    some = np.repeat(starts[firsts] - ends[:-1], terms_of) + np.arange(ends[-1])
    kinds = Kinds(ends, orders[some], coefficients[some] ** 2)
    of_sets = np.array([len(positions) for positions in sets], dtype=np.int64)
    return Spectrum(tuple(sets), of_sets, constants, starts, ranks, coefficients, kinds)


def mask(positions: Positions, d: int) -> int:
    """Return the set as the number of a cell: the first attribute is the most significant bit."""
    return sum(1 << (d - 1 - i) for i in positions)


def check_parities(count: int) -> None:
    """Refuse more parities than are measured."""
    if count > MAX_PARITIES:
        raise ValueError(
            f"the queries need {count} parities or more, more than {MAX_PARITIES}: "
            "use a smaller width or fewer attributes"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """The coefficients of one order that are not 0, of some tables over equally many attributes."""

    rows: Integers  # the table of each term, ascending
    within: Integers  # its position among the terms of its table
    positions: Integers  # shape (t, order): the attributes of its parity among those of the table
    values: Floats  # the coefficients

    def over(self, tables: Integers) -> tuple[Integers, Integers]:
        """Return the terms of a list of tables, and which of the list each is of."""
        counts = np.bincount(self.rows, minlength=tables.max() + 1)
        many = counts[tables]
        begins = (np.cumsum(counts) - counts)[tables] - (np.cumsum(many) - many)
        return np.repeat(np.arange(len(tables)), many), np.repeat(begins, many) + np.arange(many.sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Tables over equally many attributes as sums of parities."""

    width: int  # how many attributes
    kinds: Integers  # which tables, ascending
    constants: Floats  # the coefficient of the empty parity in each
    orders: dict[int, _Terms]  # the other terms, by how many attributes their parities have


def _transforms(queries: Sequence[Query]) -> list[_Batch]:
    """Write queries as sums of parities, those over equally many attributes together."""
    alike: dict[tuple[bool, bool, int], list[int]] = {}
    for j, query in enumerate(queries):
        large = query.weights is not None and query.denominator * len(query.weights) >= MAX_TOTAL
        alike.setdefault((query.weights is None, large, len(query.attributes)), []).append(j)
    batches = []
    for (parities, large, width), members in alike.items():
        kinds = np.array(members)
        if parities:  # (1 - chi) / 2
            each = np.arange(len(members))
            positions = np.broadcast_to(np.arange(width), (len(members), width))
            terms = _Terms(each, np.zeros_like(each), positions, np.full(len(members), -0.5))
            batches.append(_Batch(width, kinds, np.full(len(members), 0.5), {width: terms}))
            continue
        form = object if large else np.int64
        values = np.array([queries[j].weights for j in members], dtype=form)
        units = np.array([queries[j].denominator for j in members], dtype=form) << width
        batches.append(_Batch(width, kinds, *_table_transforms(values, units)))
    return batches


def _table_transforms(values: npt.NDArray[Any], units: npt.NDArray[Any]) -> tuple[Floats, dict[int, _Terms]]:
    """Return the constants and the other terms of tables, shape (k, 2^w), in units of each."""
    half = 1
    while half < values.shape[1]:
        pairs = values.reshape(len(values), -1, 2, half)
        pairs[:, :, 0] += pairs[:, :, 1]
        pairs[:, :, 1] = pairs[:, :, 0] - 2 * pairs[:, :, 1]
        half *= 2
    settings = _settings(values.shape[1].bit_length() - 1)
    rows, columns = np.nonzero(values[:, 1:])
    within = np.arange(len(rows)) - np.searchsorted(rows, rows)
    coefficients = (values[rows, columns + 1] / units[rows]).astype(np.float64)
    orders, by_order = settings.orders[columns + 1], {}
    for order in range(1, len(settings.positions)):
        some = np.flatnonzero(orders == order)
        if len(some):
            positions = settings.positions[order][settings.ranks[columns[some] + 1]]
            by_order[order] = _Terms(rows[some], within[some], positions, coefficients[some])
    return (values[:, 0] / units).astype(np.float64), by_order


@dataclass(frozen=True, slots=True, eq=False)
class _Settings:
    """The settings of a few attributes: how many ones each has, and its rank and its ones among those."""

    orders: Integers
    ranks: Integers
    positions: tuple[Integers, ...]


@lru_cache(maxsize=MAX_WIDTH + 1)
def _settings(width: int) -> _Settings:
    bits = (np.arange(1 << width)[:, None] >> np.arange(width)[::-1] & 1).astype(bool)
    orders, ranks, positions = bits.sum(axis=1), np.empty(1 << width, dtype=np.int64), []
    for order in range(width + 1):
        of_order = np.flatnonzero(orders == order)
        ranks[of_order] = np.arange(len(of_order))
        positions.append(np.nonzero(bits[of_order])[1].reshape(len(of_order), order))
    return _Settings(orders, ranks, tuple(positions))


def _numbered(rows: npt.NDArray[np.int16], d: int) -> tuple[npt.NDArray[np.int16], Integers]:
    """Return the distinct rows of numbers below d, ascending, and which of them each row is."""
    words = pack_codes(rows, [max(2, d)] * rows.shape[1])
    order = np.argsort(words[:, 0]) if words.shape[1] == 1 else np.lexsort(words.T[::-1])
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (words[order[1:]] != words[order[:-1]]).any(axis=1)
    inverse = np.empty(len(rows), dtype=np.int64)
    inverse[order] = np.cumsum(new) - 1
    return rows[order[new]], inverse
