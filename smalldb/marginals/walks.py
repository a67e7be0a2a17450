"""Two related tables: parents with their numbers of children, then walks from a parent to a child."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.asks import Coins, Order
from smalldb.marginals.counted_rows import CountedRows
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.column_estimates import on_simplex, pooled
from smalldb.marginals.estimate.estimation import PREDICTING, Known
from smalldb.marginals.estimate.packed_pairs import cramers_v
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.choosing_tables import DROWNED, plan_tables
from smalldb.marginals.strategies.strategy import MAX_ENTRIES, Estimate, Setting, TableStrategy
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Drawn, Facts, Guarantee, Measurement, Mechanism, Promise, Request
from smalldb.mechanisms.measurement import Marginal
from smalldb.mechanisms.start import systematic
from smalldb.noise.geometric import Geometric

UNIT = 720720  # the denominator of weights: 1/s is a whole number of units for all s up to 16
MOST_PARENTS = 1 << 32  # so that counts of all weights stay below 2^53
WALKS = 3  # times as much as an error in tables of parents counts one in tables of walks: fitted to VietNam
FEW_CELLS = 64  # of all columns of children: the table of all of them is measured first
MOST_CELLS = 1 << 10  # of a table of two known columns that the model has
PAIRS = 2  # for each known column but one: so many tables of two the model has, the most dependent ones
VARIANCE = 1e-6  # of the counts of known columns, as a share of the squared total
SHARES = tuple(Fraction(i, 16) for i in range(2, 13))  # of epsilon, for parents: what is compared


# Proof: docs/proofs/related.md, lemma 1.
def weights_of(counts: Integers, cap: int) -> Integers:
    """Return what each child of a parent weighs that has so many: all of them together weigh at most `UNIT`.

    >>> weights_of(np.array([1, 2, 3, 16, 17]), cap=2).tolist()
    [360360, 360360, 240240, 45045, 42395]
    """
    return np.asarray(UNIT // np.maximum(np.maximum(counts, cap), 1), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Walks(Mechanism, Promise):
    """What is measured of two related tables, and at which cost: a mechanism, whose rows are parents."""

    name: ClassVar[str] = "marginals"

    # the strategy for the parents' columns, the last of which is the number of children
    parents: TableStrategy
    children: Adaptive  # the rounds for the walks, whose first columns are those of parents
    most: int  # the last category of the number of children: so many or more
    cap: int | None  # children weigh 1 / max(their number, cap); None: read from the released parents
    n: int | None = None  # the number of parents; None: it is private

    @classmethod
    def planned(cls, request: Request) -> str:
        """Say why it is not in the list of mechanisms."""
        return "related tables need a schema that links them"

    @property
    def expected_error(self) -> None:
        """Nothing is foretold of all queries together."""
        return None

    @property
    def rows(self) -> int | None:
        """The released parents: as many as there are, or None: as many as are read from what was released."""
        return self.n

    @property
    def guarantee(self) -> Guarantee:
        """The pure privacy of a parent with all its children."""
        return Guarantee(self.epsilon)

    @property
    def promise(self) -> Self:
        """What is known of the error: nothing is proved."""
        return self

    def recorded(self, drawn: Drawn | None) -> dict[str, Any]:
        """Return what a record states of the error: nothing is covered by a bound."""
        return {"beta": "0.05", "released": None, "covers": []}

    @property
    def facts(self) -> Facts:
        """What it will do, for people."""
        return Facts(
            "related tables by marginals",
            "noisy tables of parents with their number of children, then of children with their parent",
            "parents are drawn from tables that were measured with noise, and children given their parents",
            "seconds, up to minutes for some 100 columns",
        )

    @property
    def public(self) -> tuple[object, ...]:
        """What decides its steps."""
        return (self.n, *self.parents.public, *self.children.public)

    @property
    def epsilon(self) -> Fraction:
        """Of the guarantee: both strategies together."""
        return self.parents.epsilon + self.children.epsilon

    def cap_after(self, parents: Estimate) -> int:
        """Return by which number of children walks are weighed, from released parents."""
        return cap_of(parents.codes[:, -1].astype(np.int64)) if self.cap is None else self.cap

    # Proof: docs/proofs/related.md, lemmas 5 and 6.
    def steps(self, parents: Estimate) -> Steps:
        """Ask for walks from released parents; return both tables: every step costs what the rounds state."""
        universe, sizes = self.parents.universe, self.children.universe.sizes
        codes, cap = parents.codes.astype(np.int64), self.cap_after(parents)
        times = codes[:, -1]
        width, count = len(universe.sizes), int(times.sum())
        if count * len(sizes) > MAX_ENTRIES:  # of released numbers: everyone may know
            times = np.minimum(times, MAX_ENTRIES // len(sizes) // len(times))
            count = int(times.sum())
        if not count:
            nobody = np.zeros((0, len(sizes) - width), dtype=np.int64)
            return Related(parents, nobody, np.zeros(0, dtype=np.int64), cap)
        known = known_columns(codes, times, weights_of(times, cap), universe.sizes, PREDICTING)
        fitted = yield from self.children.steps(known)
        rows = fitted.rows(count, (yield Coins())).astype(np.int64)
        order = yield Order(count)
        of = np.repeat(np.arange(len(times)), times)
        return Related(parents, rows[width:, order].T, of[order], cap)


# Proof: docs/proofs/related.md, lemma 5.
def known_columns(
    parents: Integers, times: Integers, unit: Integers, sizes: Sequence[int], walks: int
) -> Known:
    """Return what released parents tell of the walks from a parent to one of its children."""
    weights = times * unit
    total = int(weights.sum())
    chosen = systematic(weights, walks)
    weighed = CountedRows(parents, weights)
    variance = VARIANCE * float(total) ** 2 / len(parents)

    def table(columns: tuple[int, ...]) -> NoisyTable:
        counts = weighed.table(columns, [sizes[c] for c in columns])
        scope = tuple((c, 0) for c in columns)
        return NoisyTable(scope, counts, Fraction(0), Geometric(Fraction(1)), variance)

    pairs = [
        table(pair)
        for pair in combinations(range(len(sizes)), 2)
        if sizes[pair[0]] * sizes[pair[1]] <= MOST_CELLS
    ]
    pairs.sort(key=lambda table: -cramers_v(table.counts.astype(np.float64)))
    tables = (*(table((c,)) for c in range(len(sizes))), *pairs[: PAIRS * (len(sizes) - 1)])
    return Known(parents[chosen].T.copy(), np.repeat(parents, times, axis=0).T.copy(), tables, total)


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """Two related tables that were released."""

    parents: Estimate  # their release; the last column is the number of children
    children: Integers  # codes, shape (m, C), in uniformly random order
    of: Integers  # the parent of each child, shape (m,)
    cap: int  # by which walks were weighed
    of_parents: tuple[Measurement, ...] = ()  # what was released of parents
    measurements: tuple[Measurement, ...] = ()  # of the walks; values are in units of 1 / `UNIT` of a parent


def with_children(codes: Integers, measurements: Sequence[Measurement], most: int) -> Integers:
    """Return released parents with other numbers of children, which add up to what was released of the sum.

    A category that is empty keeps what noise leaves above 0, and most such are large numbers. The released
    counts themselves have no such bias: their sum is kept, by the numbers that are nearest to those released.
    """
    numbers = codes[:, -1]
    counts = np.bincount(numbers, minlength=most + 1).astype(np.float64)
    wanted = children_of(counts, measurements, codes.shape[1] - 1)
    if wanted is None or not len(numbers):
        return codes
    there = np.arange(int(not counts[0]), most + 1)  # in a long table nobody has none
    low, high = -2.0 * len(numbers), 2.0 * len(numbers)
    for _ in range(60):
        tilt = (low + high) / 2
        held = on_simplex(counts[there] - tilt * (there - there[0]), len(numbers))
        low, high = (tilt, high) if held @ there > wanted else (low, tilt)
    ends = np.rint(held.cumsum()).astype(np.int64)
    ends[-1] = len(numbers)
    changed = codes.copy()
    changed[np.argsort(numbers, kind="stable"), -1] = np.repeat(there, np.diff(ends, prepend=0))
    return changed


def children_of(counts: Floats, measurements: Sequence[Measurement], column: int) -> float | None:
    """Return the sum of a column's numbers that its released tables tell, without bias; None: none has it.

    `counts` are those of the released rows: their sum is the number of rows, and they say what a group of
    numbers means.
    """
    total, numbers = float(counts.sum()), np.arange(len(counts))
    sums, variances = list[float](), list[float]()
    for measurement in measurements:
        for part, values in measurement.tables():
            if not isinstance(part, Marginal) or column not in part.columns:
                continue
            axis = part.columns.index(column)
            by_group = values.sum(axis=tuple(a for a in range(values.ndim) if a != axis))
            groups = np.array(part.groups[axis])
            weights = counts + total / len(counts) / 1000
            means = np.bincount(groups, weights * numbers) / np.bincount(groups, weights)
            middle = float(means.mean())
            sums.append(float(by_group @ (means - middle)) + middle * total)
            spread = float(((means - middle) ** 2).sum()) * values.size / len(by_group)
            variances.append(spread * measurement.noise.variance())
    return float(pooled(sums, variances)[0]) if sums else None


def cap_of(counts: Integers) -> int:
    """Return the mean number of children of released parents that have some, rounded: at least 1."""
    some = counts[counts > 0]
    return max(1, round(float(some.mean()))) if len(some) else 1


def walk_universe(parents: Universe, children: Universe) -> Universe:
    """Return the universe of walks: columns of parents first; tables of these alone are not asked for."""
    shift = len(parents.sizes)
    sizes = (*parents.sizes, *children.sizes)
    tables = tuple(pair for pair in combinations(range(len(sizes)), 2) if pair[1] >= shift)
    rules = tuple((tuple(c + shift for c in columns), allowed) for columns, allowed in children.rules)
    of_children = tuple(range(shift, len(sizes)))
    # where children have few cells, all of them are measured first
    named = (of_children,) if len(of_children) > 1 and children.cells <= FEW_CELLS else ()
    ordered = (*parents.ordered, *children.ordered)
    return Universe(sizes, ordered, tables, rules, named=named)


# Proof: docs/proofs/related.md, lemma 6.
def plan_walks(
    parents: Universe,
    children: Universe,
    epsilon: Fraction,
    replaced: bool,
    rows: int,
    *,
    cap: int | None = None,
    n: int | None = None,
    targets: tuple[int, ...] = (),
    named: Sequence[tuple[int, ...]] = (),
    strategy: str | None = None,
) -> Walks:
    """Share epsilon among parents and walks such that the sum of their expected errors is least.

    `targets` and tables that are `named` are of columns of walks; a `strategy` is that for parents.
    """
    universe, shift = walk_universe(parents, children), len(parents.sizes)
    parents = replace(
        parents,
        targets=tuple(c for c in targets if c < shift),
        named=tuple(columns for columns in named if columns[-1] < shift),
    )
    first = dict.fromkeys((*universe.named, *(columns for columns in named if columns[-1] >= shift)))
    universe = replace(universe, targets=tuple(c for c in targets if c >= shift), named=tuple(first))
    law = PrivacyMeasure(concentrated=False, replaced=replaced, unit=UNIT)

    def plan(share: Fraction) -> Walks:
        none = Fraction(0)
        of_parents = plan_tables(
            parents, epsilon * share, None, replaced, rows, certificate=none, strategy=strategy
        )
        left = epsilon * (1 - share)
        walked = Setting(universe=universe, law=law, epsilon=left, rows=rows * UNIT, certificate=Fraction(0))
        walks = Adaptive.shared(walked, shift)
        if law.drowns(min(walks.costs_of_tables)):
            raise ValueError(DROWNED)
        return Walks(of_parents, walks, parents.sizes[-1] - 1, cap, n)

    return min(map(plan, SHARES), key=lambda walks: walks.parents.expected + WALKS * walks.children.expected)
