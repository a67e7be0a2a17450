"""Which parities the answers of a workload are made of, and how many rows of a table are odd on each.

With chi_S(x) = (-1)^(ones of x on S), a query f is the sum over subsets S of its attributes of
c_S chi_S, and c_S = D^-1 2^-w times the Walsh-Hadamard transform of its 2^w integer weights.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from queries import Domain, Query, Rows, Workload
from queries.domain import Integers
from queries.rows import MAX_TOTAL

Places: TypeAlias = tuple[int, ...]
Floats: TypeAlias = npt.NDArray[np.float64]
Values = TypeVar("Values", Floats, Integers)

MAX_WIDTH = 16  # attributes of one query, parities apart
MAX_TERMS = 1 << 23  # coefficients of all queries
MAX_PARITIES = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The queries of a workload as sums of parities.

    Attributes
    ----------
    sets
        The K parities that some query needs, by order (how many attributes), then by places; without
        the empty one.
    constants
        Shape (J,): the coefficient of the empty parity in each query.
    starts
        Shape (J + 1,): the terms of query j are ``starts[j]:starts[j + 1]``, at least one.
    members
        For each term, the place of its parity in `sets`.
    coefficients
        For each term, its coefficient, rounded to nearest.
    """

    sets: tuple[Places, ...]
    constants: Floats
    starts: Integers
    members: Integers
    coefficients: Floats

    @property
    def orders(self) -> Integers:
        """The order of each parity, shape (K,)."""
        return np.array([len(places) for places in self.sets], dtype=np.int64)

    def over_queries(self, terms: Floats) -> Floats:
        """Add up one number a term for each query, shape (J,)."""
        totals: Floats = np.add.reduceat(terms, self.starts[:-1])
        return totals

    def answers(self, chi: Floats) -> Floats:
        """Return the answers that belong to the means of the parities, shape (K,)."""
        return self.constants + self.over_queries(self.coefficients * chi[self.members])


def spectrum(workload: Workload) -> Spectrum:
    """
    Write the queries of a workload as sums of parities.

    Raises
    ------
    ValueError
        No query, or queries too wide or too many.
    """
    if not workload.queries:
        raise ValueError("the workload holds no query that differs between tables: nothing is to be released")
    widest = max((len(q.attributes) for q in workload.queries if q.weights is not None), default=0)
    if widest > MAX_WIDTH:
        raise ValueError(
            f"a query looks at {widest} attributes; answers are released for queries over at most "
            f"{MAX_WIDTH} (parities apart): use a smaller width"
        )
    terms = sum(1 if q.weights is None else len(q.weights) for q in workload.queries)
    if terms > MAX_TERMS:
        raise ValueError(
            f"the queries have up to {terms} Fourier coefficients, more than {MAX_TERMS}: "
            "use a smaller width, fewer attributes or fewer queries"
        )
    found: dict[Places, int] = {}
    constants, lengths = np.empty(workload.size), np.empty(workload.size, dtype=np.int64)
    members, coefficients = [], []
    for j, query in enumerate(workload.queries):
        nonzero, values, constants[j] = _transform(query)
        places = [query.attributes] if query.weights is None else _subsets(query.attributes)
        members.append([found.setdefault(places[i], len(found)) for i in nonzero])
        coefficients.append(values)
        lengths[j] = len(values)
    if len(found) > MAX_PARITIES:
        raise ValueError(
            f"the queries need {len(found)} parities, more than {MAX_PARITIES}: "
            "use a smaller width or fewer attributes"
        )
    sets = sorted(found, key=lambda places: (len(places), places))
    ranks = np.empty(len(sets), dtype=np.int64)
    ranks[[found[places] for places in sets]] = np.arange(len(sets))
    return Spectrum(
        tuple(sets),
        constants,
        np.concatenate([[0], np.cumsum(lengths)]),
        ranks[np.concatenate(members)],
        np.concatenate(coefficients),
    )


def odd_counts(rows: Rows, sets: tuple[Places, ...]) -> Integers:
    """
    Count the rows with an odd number of ones on each set of attributes, exactly: int64, shape (k,).

    Columns are packed bit by bit over the distinct rows, and so are the binary digits of the counts.
    Cost: k (distinct rows / 64) (digits of the largest count) words.
    """
    columns = _packed(rows.bits().T)
    digits = int(rows.counts.max(initial=0)).bit_length()
    planes = _packed(rows.counts >> np.arange(digits)[:, None] & 1)
    counts = np.empty(len(sets), dtype=np.int64)
    for place, chosen in enumerate(sets):
        odd = np.bitwise_xor.reduce(columns[list(chosen)], axis=0)
        ones = np.bitwise_count(planes & odd).sum(axis=1, dtype=np.int64)
        counts[place] = (ones << np.arange(digits)).sum()
    return counts


def mask(places: Places, d: int) -> int:
    """Return the set as a cell code: the first attribute is the most significant bit."""
    return sum(1 << (d - 1 - i) for i in places)


def codes_of(sets: tuple[Places, ...], d: int) -> Integers:
    """Return the sets as cell codes, up to 62 attributes."""
    return np.array([mask(places, d) for places in sets], dtype=np.int64)


def transformed(domain: Domain, values: Values) -> Values:
    """Return the sum of chi_S over the cells, weighted, for all 2^d sets."""
    from smalldb.kernels.walsh import walsh

    sums = np.zeros(1 << len(domain.attributes), dtype=values.dtype)
    sums[domain.cells()] = values
    walsh(sums)
    return sums


def _packed(bits: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Pack rows of 0/1, shape (r, n), into words, shape (r, ceil(n / 64)); padded with 0."""
    rows, length = bits.shape
    padded = np.zeros((rows, -(-length // 64) * 64), dtype=np.uint8)
    padded[:, :length] = bits
    return np.packbits(padded, axis=1).view(np.uint64)


def _transform(query: Query) -> tuple[list[int], Floats, float]:
    """Return the places of the coefficients that are not 0, these, and that of the empty parity."""
    if query.weights is None:  # (1 - chi) / 2
        return [0], np.array([-0.5]), 0.5
    return _table_transform(query.weights, query.denominator)


@lru_cache(maxsize=64)
def _table_transform(weights: tuple[int, ...], denominator: int) -> tuple[list[int], Floats, float]:
    unit = denominator * len(weights)
    values = np.array(weights, dtype=np.int64 if unit < MAX_TOTAL else object)
    half = 1
    while half < len(values):
        pairs = values.reshape(-1, 2, half)
        left, right = pairs[:, 0], pairs[:, 1]
        values = np.stack([left + right, left - right], axis=1).reshape(-1)
        half *= 2
    nonzero = (np.flatnonzero(values[1:]) + 1).tolist()
    return nonzero, (values[nonzero] / unit).astype(np.float64), float(values[0] / unit)


@lru_cache(maxsize=1024)
def _subsets(attributes: Places) -> list[Places]:
    """Return the subset of each setting, in product order: entry i holds the attributes whose bit is set."""
    return [
        tuple(chosen)
        for setting in range(1 << len(attributes))
        for chosen in [[a for t, a in enumerate(reversed(attributes)) if setting >> t & 1][::-1]]
    ]
