"""What the sampler aims at: the score of m ordered rows, kept column by column."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queries import Workload
from queries.arrays import Integers, Words
from queries.workload import Query
from smalldb.counting.scores import largest_score
from smalldb.exact.bits import BitSource
from smalldb.kernels.checks import CONJUNCTION, PARITY, TABLE, Queries, answers_of

Bits = npt.NDArray[np.uint8]

ALL_ONES = (1 << 64) - 1


class Table(NamedTuple):
    """A query as a table over the attributes that matter to it."""

    attributes: tuple[int, ...]  # ascending
    # D times the query on each setting, shape (2,) * width; None: the parity of the attributes (times
    # D)
    weights: Integers | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Target:
    """The scores ``s(y) = max_j |m b_j - n a_j(y)|`` of m ordered rows y over d attributes."""

    # attributes, rows, n: d, m, and the rows of the data
    attributes: int
    rows: int
    n: int
    answers: Integers  # shape (k,), int64: b, D times the sum of each query over the data
    unit: int  # D
    # scores are cut off there: n m D, which none exceeds, or `counting.scores.largest_score`. Below
    # 2^62.
    largest_score: int
    tables: tuple[Table, ...]  # the queries
    by_attributes: dict[tuple[int, ...], list[int]]  # which queries look at a set of attributes
    queries: Queries  # the same, for the kernels

    # Proof: docs/proofs/rejection.md, lemma 1.
    @classmethod
    def build(
        cls, workload: Workload, answers: Integers, n: int, rows: int, n_max: int | None = None
    ) -> "Target":
        """Compile a workload."""
        tables = tuple(_table(query, workload.denominator) for query in workload.queries)
        by_attributes: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for j, table in enumerate(tables):
            by_attributes[table.attributes].append(j)
        return cls(
            len(workload.domain.attributes),
            rows,
            n,
            answers,
            workload.denominator,
            min(n * rows * workload.denominator, largest_score(n_max, rows, workload.denominator)),
            tables,
            dict(by_attributes),
            _compile(tables, workload.denominator, rows),
        )

    @property
    def candidates(self) -> int:
        """How many candidates there are: 2^(d m)."""
        return 1 << self.attributes * self.rows

    @property
    def everyone(self) -> np.uint64:
        """The word of m ones."""
        return np.uint64((1 << self.rows) - 1)

    # Proof: docs/proofs/rejection.md, lemma 2.
    def bounds(self, threshold: int) -> tuple[Integers, Integers]:
        """Return the least and the largest answer of each query with a score of at most `threshold`."""
        threshold = self.widened(threshold)
        centre = self.rows * self.answers
        return -((threshold - centre) // self.n), (centre + threshold) // self.n

    def on_cells(self, j: int, attributes: Sequence[int]) -> Integers:
        """Return D times a query on a row in each cell of some attributes."""
        table, cells = self.tables[j], np.arange(1 << len(attributes))
        bits = tuple(cells >> attributes.index(a) & 1 for a in table.attributes)
        if table.weights is not None:
            return np.asarray(table.weights[bits])
        return np.asarray(self.unit * (np.sum(bits, axis=0) % 2))

    def widened(self, threshold: int) -> int:
        """Return the threshold, or one that no gap exceeds if it is the largest score."""
        everything = self.n * self.rows * self.unit
        return everything if threshold >= self.largest_score else threshold

    def least_score(self) -> int:
        """Return a lower bound on every score: no answer of a query comes closer than its rounding allows."""
        least = 0
        for j, table in enumerate(self.tables):
            step, start = self.unit, 0
            if table.weights is not None:
                start = self.rows * int(table.weights.min())
                step = gcd(*(int(w) - int(table.weights.min()) for w in table.weights.ravel()))
            # n = 10 and m b = 7, answers in whole steps: n a is 0, 10, 20, ..., so the gap is 3 at least
            residual = (self.rows * int(self.answers[j]) - self.n * start) % (self.n * step)
            least = max(least, min(residual, self.n * step - residual))
        return min(least, self.largest_score)

    def score(self, columns: Words) -> int:
        """Return the score of the rows with these columns, exactly."""
        answers = answers_of(self.queries, columns, self.everyone)
        gaps = np.abs(self.rows * self.answers - self.n * answers)
        return min(int(gaps.max(initial=0)), self.largest_score)

    def bits(self, columns: Words) -> Bits:
        """Read the rows off the columns: 0/1, shape (m, d)."""
        positions = np.arange(self.rows, dtype=np.uint64)[:, None]
        return (columns[None, :] >> positions & np.uint64(1)).astype(np.uint8)


def uniform_words(source: BitSource, count: int) -> Words:
    """Draw uniform words of 64 bits."""
    return np.frombuffer(source.bits(64 * count).to_bytes(8 * count, "big"), ">u8").astype(np.uint64)


def _table(query: Query, unit: int) -> Table:
    """Drop the attributes that do not matter and bring the weights to the common denominator."""
    if query.weights is None:
        return Table(query.attributes, None)
    table = np.array(query.weights, dtype=np.int64).reshape((2,) * len(query.attributes))
    matter = [axis for axis in range(table.ndim) if (table.take(0, axis) != table.take(1, axis)).any()]
    table = table[tuple(slice(None) if axis in matter else 0 for axis in range(table.ndim))]
    return Table(tuple(query.attributes[axis] for axis in matter), table * (unit // query.denominator))


def _compile(tables: tuple[Table, ...], unit: int, rows: int) -> Queries:
    """Write the queries as the kernels read them."""
    kinds: list[int] = []
    positions: list[int] = []
    flips: list[int] = []
    weights: list[int] = []
    offsets: list[int] = []
    factors: list[int] = []
    position_start, weight_start = [0], [0]
    for table in tables:
        kind, offset, factor, negated = TABLE, 0, 0, [False] * len(table.attributes)
        if table.weights is None:
            kind, factor = PARITY, unit
        else:
            flat = table.weights.ravel()
            common = int(np.median(flat)) if len(flat) > 2 else int(flat[0])
            odd = np.flatnonzero(flat != common)
            if len(odd) == 1:
                kind, offset, factor = CONJUNCTION, rows * common, int(flat[odd[0]]) - common
                setting = np.unravel_index(int(odd[0]), table.weights.shape)
                negated = [not bit for bit in setting]
            else:
                weights.extend(flat.tolist())
        kinds.append(kind)
        offsets.append(offset)
        factors.append(factor)
        positions.extend(table.attributes)
        flips.extend(ALL_ONES if flip else 0 for flip in negated)
        position_start.append(len(positions))
        weight_start.append(len(weights))
    return Queries(
        np.array(kinds, dtype=np.int64),
        np.array(position_start, dtype=np.int64),
        np.array(positions, dtype=np.int64),
        np.array(flips, dtype=np.uint64),
        np.array(weight_start, dtype=np.int64),
        np.array(weights, dtype=np.int64),
        np.array(offsets, dtype=np.int64),
        np.array(factors, dtype=np.int64),
    )
