"""What a strategy is that measures tables: what it states in public, what it asks for, and its estimate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from queries import Rows, Workload
from queries.arrays import Codes
from queries.domain import Integers
from queries.packing import codes_dtype
from smalldb.marginals.asks import Coins, Order
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.estimate.modelling import Model
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Marginal
from smalldb.noise.privacy_loss import Loss

NO_CODES = np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What was released, in its order, and what follows from it; all that later steps know of the data."""

    strategy: "TableStrategy"  # that was followed: of two, the one that a released number decided
    total: int  # the number of rows that was read from what was released; n itself under replace-one
    model: Model
    rows: Callable[[int, int], Codes]  # makes so many rows from a seed: codes, shape (C, count)
    columns: tuple[NoisyTable, ...] = ()  # every column with all its categories
    # that the model has, those of a target first; or that of all cells; or those that were measured at once
    tables: tuple[NoisyTable, ...] = ()
    beside: tuple[NoisyTable, ...] = ()  # that it has no room for: rows are moved to them
    again: tuple[NoisyTable, ...] = ()  # every column once more, where rounds ended early
    at_once: Mapping[tuple[int, ...], Integers] = field(default_factory=dict)  # by their columns
    dependence: int | None = None  # the number that told whether most pairs of columns depend
    codes: Codes = field(default_factory=lambda: NO_CODES)  # the synthetic rows in random order, (rows, C)

    def bound(self, workload: Workload, n: int | None, finished: Rows, beta: Fraction) -> float:
        """Return the bound on every query that follows from the noise alone, where all were measured."""
        return self.strategy.bound(self, workload, n, finished, beta)


class TableStrategy(Protocol):
    """A strategy that measures tables of columns; a function of public numbers alone."""

    @property
    def universe(self) -> Universe:
        """The columns, the rules and the workload."""

    @property
    def law(self) -> PrivacyMeasure:
        """How costs are counted."""

    @property
    def delta(self) -> Fraction | None:
        """Of the guarantee; None: it is pure."""

    @property
    def certifying(self) -> Fraction:
        """What the certificate costs; 0: there is none."""

    @property
    def loss(self) -> Loss:
        """What all steps lose together, on the worst of the ways that a release may go."""

    @property
    def most_rows(self) -> int:
        """How many rows are made at most where their number is read from what was released."""

    @property
    def most_tables(self) -> int:
        """How many tables of counts are measured at most, those of columns too."""

    @property
    def most_pairs(self) -> int:
        """How many pairs of columns are measured together at most."""

    @property
    def expected_pairs(self) -> int:
        """How many pairs of columns are expected to be measured together."""
        return self.most_pairs

    def measures_all(self, workload: Workload) -> bool:
        """Whether every query is a sum of what is measured, so that a bound follows from the noise alone."""
        return False

    def bound(
        self, estimate: Estimate, workload: Workload, n: int | None, finished: Rows, beta: Fraction
    ) -> float:
        """Return the bound that follows from the noise alone; 1 where none does."""
        return 1.0

    def steps(self) -> Steps:
        """Ask for measurements; return the `Estimate` that they make."""

    def release(self, count: int | None) -> Steps:
        """Estimate, and make so many rows; None: as many as there are, or are read from what was released."""
        found = yield from self.steps()
        wanted = min(found.total, self.most_rows) if count is None else count
        made = found.rows(wanted, (yield Coins()))
        order = yield Order(wanted)
        codes = made.astype(codes_dtype(self.universe.sizes))
        return replace(found, codes=codes[:, order].T)


def whole_table(columns: Sequence[int], sizes: Sequence[int]) -> Marginal:
    """Return the table of some columns at all their categories; `sizes` are those of the columns."""
    return Marginal(tuple(columns), tuple(tuple(range(size)) for size in sizes))


def table_of(scope: Scope, groupings: Sequence[Grouping]) -> Marginal:
    """Return the table of a scope, at its levels."""
    groups = tuple(tuple(groupings[c].of_categories(level).tolist()) for c, level in scope)
    return Marginal(tuple(c for c, _ in scope), groups)
