"""What a release of tables gives, step by step: released integers, a model, rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from queries import Rows, Workload
from queries.arrays import Codes
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_permutation
from smalldb.files.progress_bar import progress_bar
from smalldb.marginals.counted_rows import CountedRows, checked
from smalldb.marginals.curator import Curator, Steps
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.estimate.modelling import Model
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.mechanisms import Journal, Marginal, Measurement, Running
from smalldb.noise.privacy_loss import Loss

PROGRESS = 1000

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """
    The released integers, in the order of release; all that later steps know of the data.

    Attributes
    ----------
    columns
        Every column with all its categories.
    tables
        The tables that the model has, those of a target first, and then one a round; or the table of all
        cells; or those of pairs that were measured at once.
    beside
        The tables that it has no room for: rows are moved to them.
    again
        Every column once more, where rounds ended early; else empty.
    dependence
        The number that told whether most pairs of columns depend; None: it was not asked.
    at_once
        All tables of one and two columns that were measured at once, by their columns; else empty.
    """

    columns: tuple[NoisyTable, ...]
    tables: tuple[NoisyTable, ...]
    beside: tuple[NoisyTable, ...] = ()
    again: tuple[NoisyTable, ...] = ()
    dependence: int | None = None
    at_once: Mapping[tuple[int, ...], Integers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """
    What was released before the certificate, and what follows from it.

    Attributes
    ----------
    strategy
        That was followed: of two, the one that a released number decided.
    history
        The released integers.
    total
        The number of rows that was read from them; n itself under replace-one.
    model
        The distribution that was fitted to them.
    rows
        Makes so many rows from a seed: codes, shape (C, count).
    spent
        The cost of what was drawn: an epsilon, or a rho; at most that of the strategy.
    measurements
        What was released, as it is published.
    """

    strategy: "TableStrategy"
    history: History
    total: int
    model: Model
    rows: Callable[[int, int], Codes]
    spent: Fraction
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """
    What a release of tables gives: as `Fitted`, and rows.

    Attributes
    ----------
    codes
        The synthetic rows in uniformly random order, shape (rows, C).
    """

    strategy: "TableStrategy"
    history: History
    total: int
    model: Model
    codes: Codes
    spent: Fraction
    measurements: tuple[Measurement, ...]

    def bound(self, workload: Workload, n: int | None, finished: Rows, beta: Fraction) -> float:
        """Return the bound on every query that follows from the noise alone, where all were measured.

        Parameters
        ----------
        workload, n, finished, beta
            As for `TableStrategy.bound`.
        """
        return self.strategy.bound(self.history, workload, n, finished, beta)


class TableStrategy(Protocol):
    """A strategy that measures tables of columns; explicit subclasses are released by `release`."""

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
        self, history: History, workload: Workload, n: int | None, finished: Rows, beta: Fraction
    ) -> float:
        """Return the bound that follows from the noise alone; 1 where none does."""
        return 1.0

    def steps(self) -> Steps:
        """Ask for measurements; return what was fitted to them."""

    def fit(
        self, rows: CountedRows, journal: Journal, progress: Progress | None, executor: Executor | None
    ) -> Fitted:
        """Measure, and fit a model to what was released; after it, a certificate alone sees the data."""
        return Curator(rows, self.law, journal, executor, self.cost).follow(self.steps())

    def release(self, rows: Rows, journal: Journal, count: int | None, running: Running) -> Outcome:
        """Release a synthetic table of so many rows: see `release_tables`."""
        private = checked(rows.codes(), rows.counts, rows.domain.sizes)
        with _bar(running.progress) as tick:
            return release_tables(
                self, private, journal, count=count, progress=tick, executor=running.executor
            )


def release_tables(
    strategy: TableStrategy,
    rows: CountedRows,
    source: BitSource | Journal,
    *,
    count: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Outcome:
    """
    Release a synthetic table under the guarantee of a strategy.

    Every step is a function of the data, given what was released before, of the cost that the strategy
    states: costs add up (docs/proofs/rounds.md).

    Parameters
    ----------
    strategy
        What is measured, with which noise and at which cost.
    rows
        The private rows; under replace-one as many as the strategy says.
    source
        Where random bits come from; or a journal that has a source, and what was released before.
    count
        How many rows are wanted; None: as many as there are, or are read from what was released (then up to
        `TableBudget.most_rows`).
    progress
        Called after each round with how much of the rounds' budget is spent, and how much there is.
    executor
        Counts the candidates in pieces of the rows; None: threads.
    """
    journal = source if isinstance(source, Journal) else Journal(source)
    fitted = strategy.fit(rows, journal, progress, executor)
    wanted = min(fitted.total, strategy.most_rows) if count is None else count
    made = fitted.rows(wanted, journal.step(lambda coins: coins.bits(64)))
    order = uniform_permutation(wanted, journal.postprocessing_bits())
    codes = made.astype(rows.codes.dtype)[:, order].T
    return Outcome(
        strategy=fitted.strategy,
        history=fitted.history,
        total=fitted.total,
        model=fitted.model,
        codes=codes,
        spent=fitted.spent,
        measurements=fitted.measurements,
    )


def published(
    law: PrivacyMeasure,
    table: NoisyTable,
    groupings: Sequence[Grouping] | None,
    selecting: Fraction | None = None,
) -> Measurement:
    """Return what was released of a table as it is published; without groupings, at all categories."""
    columns, groups = [], []
    for (column, level), size in zip(table.scope, table.counts.shape, strict=True):
        own = range(size) if groupings is None else groupings[column].of_categories(level).tolist()
        columns.append(column)
        groups.append(tuple(own))
    values = table.counts.ravel()
    of = (Marginal(tuple(columns), tuple(groups)),)
    return Measurement(of, values, table.noise, table.cost, law.concentrated, selecting)


def published_columns(law: PrivacyMeasure, columns: Sequence[NoisyTable]) -> Measurement:
    """Return what was released of columns that were measured at once, as it is published."""
    of = tuple(Marginal((c,), (tuple(range(one.counts.size)),)) for one in columns for c, _ in one.scope)
    values = np.concatenate([one.counts for one in columns])
    cost = sum((one.cost for one in columns), Fraction(0))
    return Measurement(of, values, columns[0].noise, cost, law.concentrated)


@contextmanager
def _bar(shown: bool) -> Iterator[Progress]:
    """Show how many rounds are done, of how many there are at most."""
    with progress_bar(shown, unit=" rounds") as bar:

        def tick(done: int, most: int) -> None:
            bar.total = most
            bar.update(done - bar.n)

        yield tick
