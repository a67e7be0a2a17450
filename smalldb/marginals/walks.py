"""Two related tables: parents with their numbers of children, then walks from a parent to a child."""

from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_permutation
from smalldb.marginals.counted_rows import CountedRows, checked
from smalldb.marginals.curator import Curator
from smalldb.marginals.estimate.estimation import PREDICTING
from smalldb.marginals.estimate.known_columns import known_columns
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.budgets import MAX_ENTRIES, MEMORY
from smalldb.marginals.strategies.choosing_tables import DROWNED, OfTables, plan_tables
from smalldb.marginals.strategies.outcome import Outcome, release_tables
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Journal, Measurement

UNIT = 720720  # the denominator of weights: 1/s is a whole number of units for all s up to 16
MOST_PARENTS = 1 << 32  # so that counts of all weights stay below 2^53
WALKS = 3  # times as much as an error in tables of parents counts one in tables of walks: fitted to VietNam
FEW_CELLS = 64  # of all columns of children: the table of all of them is measured first
SHARES = tuple(Fraction(i, 16) for i in range(2, 13))  # of epsilon, for parents: what is compared


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """
    The private rows: parents, and their children.

    Attributes
    ----------
    parents
        Codes of their columns, shape (n, P).
    children
        Codes, shape (m, C).
    of
        The parent of each child, a number from 0 to n - 1, shape (m,).
    """

    parents: Integers
    children: Integers
    of: Integers

    # Proof: docs/proofs/related.md, lemma 4.
    def counts(self) -> Integers:
        """Return the number of children of each parent."""
        return np.bincount(self.of, minlength=len(self.parents))

    # Proof: docs/proofs/related.md, lemma 4.
    def with_counts(self, most: int) -> Integers:
        """Return the codes of parents with one column more: their numbers of children, `most` or more."""
        return np.column_stack([self.parents, np.minimum(self.counts(), most)])

    # Proof: docs/proofs/related.md, lemma 1.
    def walks(self, most: int, cap: int) -> CountedRows:
        """Return the walks: columns of a parent, its number of children, a child's columns; with weights."""
        weights = weights_of(self.counts(), cap)[self.of]
        codes = np.concatenate([self.with_counts(most)[self.of], self.children], axis=1)
        return CountedRows(np.asfortranarray(codes), weights)


# Proof: docs/proofs/related.md, lemma 1.
def weights_of(counts: Integers, cap: int) -> Integers:
    """
    Return what each child of a parent weighs that has so many: all of them together weigh at most `UNIT`.

    >>> weights_of(np.array([1, 2, 3, 16, 17]), cap=2).tolist()
    [360360, 360360, 240240, 45045, 42395]
    """
    return np.asarray(UNIT // np.maximum(np.maximum(counts, cap), 1), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Walks:
    """
    What is measured of two related tables, and at which cost; public.

    Attributes
    ----------
    parents
        The strategy for the parents' columns, the last of which is the number of children.
    children
        The rounds for the walks, whose first columns are those of parents.
    most
        The last category of the number of children: so many or more.
    cap
        Children weigh 1 / max(their number, cap); None: read from the released parents.
    """

    parents: OfTables
    children: Adaptive
    most: int
    cap: int | None

    @property
    def epsilon(self) -> Fraction:
        """Of the guarantee: both strategies together."""
        return self.parents.epsilon + self.children.epsilon

    # Proof: docs/proofs/related.md, lemmas 5 and 6.
    def release(
        self, families: Families, source: BitSource | Journal, executor: Executor | None = None
    ) -> "Related":
        """Release parents, then children of these; every step costs what the two strategies state."""
        journal = source if isinstance(source, Journal) else Journal(source)
        universe, sizes = self.parents.universe, self.children.universe.sizes
        private = checked(
            families.with_counts(self.most),
            np.ones(len(families.parents), dtype=np.int64),
            universe.sizes,
        )
        parents = release_tables(self.parents, private, journal, executor=executor)
        codes = parents.codes.astype(np.int64)
        times = codes[:, -1]
        cap = cap_of(times) if self.cap is None else self.cap
        width = len(universe.sizes)
        made, count = np.zeros((0, len(sizes) - width), dtype=np.int64), int(times.sum())
        if count * len(sizes) > MAX_ENTRIES:  # of released numbers: everyone may know
            times = np.minimum(times, MAX_ENTRIES // len(sizes) // len(times))
            count = int(times.sum())
        if not count:
            return Related(parents, made, np.zeros(0, dtype=np.int64), cap, ())
        known = known_columns(codes, times, weights_of(times, cap), universe.sizes, PREDICTING)
        walks = families.walks(self.most, cap)
        fitted = Curator(walks, self.children.law, journal, executor, self.children.cost).follow(
            self.children.steps(known)
        )
        rows = fitted.rows(count, journal.step(lambda coins: coins.bits(64))).astype(np.int64)
        order = uniform_permutation(count, journal.postprocessing_bits())
        of = np.repeat(np.arange(len(times)), times)
        return Related(parents, rows[width:, order].T, of[order], cap, fitted.measurements)


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """
    Two related tables that were released.

    Attributes
    ----------
    parents
        Their release; the last column is the number of children.
    children
        Codes, shape (m, C), in uniformly random order.
    of
        The parent of each child, shape (m,).
    cap
        By which walks were weighed.
    measurements
        Of the walks; values are in units of 1 / `UNIT` of a parent.
    """

    parents: Outcome
    children: Integers
    of: Integers
    cap: int
    measurements: tuple[Measurement, ...]


def cap_of(counts: Integers) -> int:
    """Return the mean number of children of released parents that have some, rounded: at least 1."""
    some = counts[counts > 0]
    return max(1, round(float(some.mean()))) if len(some) else 1


def walk_universe(parents: Universe, children: Universe) -> Universe:
    """Return the universe of walks: columns of parents first; tables of these alone are not asked for.

    Where children have few cells, all of them are measured first.
    """
    shift = len(parents.sizes)
    sizes = (*parents.sizes, *children.sizes)
    tables = tuple(pair for pair in combinations(range(len(sizes)), 2) if pair[1] >= shift)
    rules = tuple((tuple(c + shift for c in columns), allowed) for columns, allowed in children.rules)
    own = tuple(range(shift, len(sizes)))
    named = (own,) if len(own) > 1 and children.cells <= FEW_CELLS else ()
    ordered = (*parents.ordered, *children.ordered)
    return Universe(sizes, ordered, tables, (1,) * len(tables), rules, named=named)


# Proof: docs/proofs/related.md, lemma 6.
def plan_walks(
    parents: Universe,
    children: Universe,
    epsilon: Fraction,
    replaced: bool,
    rows: int,
    *,
    cap: int | None = None,
    share: Fraction | None = None,
) -> Walks:
    """Share epsilon among parents and walks such that the sum of their expected errors is least."""
    universe = walk_universe(parents, children)
    law = PrivacyMeasure(concentrated=False, replaced=replaced, unit=UNIT)

    def plan(share: Fraction) -> Walks:
        own = plan_tables(parents, epsilon * share, None, replaced, rows, certificate=Fraction(0))
        known = len(parents.sizes)
        left = epsilon * (1 - share)
        walks = Adaptive.shared(universe, law, left, None, rows * UNIT, MEMORY, Fraction(0), known)
        if law.drowns(min(walks.costs_of_tables)):
            raise ValueError(DROWNED)
        return Walks(own, walks, parents.sizes[-1] - 1, cap)

    plans = [plan(some) for some in ((share,) if share else SHARES)]
    return min(plans, key=lambda made: made.parents.expected + WALKS * made.children.expected)
