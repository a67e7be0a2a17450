"""What a strategy is: what it states in public, what it asks for, and its estimate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from math import comb, inf
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from queries import Rows, Workload
from queries.arrays import Codes
from queries.encoding import codes_dtype
from smalldb.accounting.concentrated import rho_of
from smalldb.marginals.asks import Coins, Order, one_table
from smalldb.marginals.certificate import beyond
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.estimate.modelling import Model
from smalldb.marginals.expected_error import WITHIN
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.marginals.noise_bounds import Whole, sums_of_tables
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Marginal
from smalldb.noise.privacy_loss import Loss

MEMORY = 1 << 18  # cells of all tables of the model, beyond those of columns and rules
CERTIFICATE = Fraction(1, 20)
OTHERWISE = "add --strategy adaptive, or leave out --tables"
MAX_ENTRIES = 10**9  # of the synthetic table, rows x columns
_ROWS = 10**6  # that are made whatever the public guess was
NO_CODES = np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What was released, in its order, and what follows from it; all that later steps know of the data."""

    strategy: "TableStrategy"  # that was followed: of two, the one that a released number decided
    total: int  # the number of rows that was read from what was released; n itself under replace-one
    model: Model | None  # None: rows of a start have weights
    rows: Callable[[int, int], Codes]  # makes so many rows from a seed: codes, shape (C, count)
    columns: tuple[NoisyTable, ...] = ()  # every column with all its categories
    # that the model has, those of a target first; or that of all cells; or those that were measured at once
    tables: tuple[NoisyTable, ...] = ()
    beside: tuple[NoisyTable, ...] = ()  # that it has no room for: rows are moved to them
    again: tuple[NoisyTable, ...] = ()  # every column once more, where rounds ended early
    whole: Whole = field(default_factory=dict)  # what a bound follows from
    dependence: int | None = None  # the number that told whether most pairs of columns depend
    from_start: bool = False  # whether rows of a public start have weights
    left_out: int | None = None  # the column of the start that is taken as independent of the others
    codes: Codes = field(default_factory=lambda: NO_CODES)  # the synthetic rows in random order, (rows, C)

    def bound(self, workload: Workload, n: int | None, finished: Rows, beta: Fraction) -> float:
        """Return the bound on every query that follows from the noise alone, where all were measured."""
        return self.strategy.bound(self, workload, n, finished, beta)


class Strategy(Protocol):
    """What is measured, with which noise and at which cost; a function of public numbers alone."""

    name: ClassVar[str]
    # times, within which errors of about nine data sets of ten are expected; None: that was not looked at
    within: ClassVar[float | None] = WITHIN

    @property
    def method(self) -> str:
        """What it is called."""

    @property
    def described(self) -> str:
        """What is measured, in some words."""

    @property
    def public(self) -> tuple[object, ...]:
        """What decides what is done: numbers, texts and arrays."""

    @property
    def law(self) -> PrivacyMeasure:
        """How costs are counted."""

    @property
    def delta(self) -> Fraction | None:
        """Of the guarantee; None: it is pure."""

    @property
    def certifying(self) -> Fraction:
        """What the certificate costs, half for its selection and half for its size; 0: there is none."""

    @property
    def loss(self) -> Loss:
        """What all steps lose together, on the worst of the ways that a release may go."""

    @property
    def most_tables(self) -> int:
        """How many tables of counts are measured at most, those of columns too, whichever way is taken."""
        return max(way.most_tables for way in self.ways if way is not self)

    @property
    def most_pairs(self) -> int:
        """How many pairs of columns are measured together at most."""
        return max(way.most_pairs for way in self.ways if way is not self)

    @property
    def expected_pairs(self) -> int:
        """How many pairs of columns are expected to be measured together."""
        return self.most_pairs

    @property
    def expected(self) -> float:
        """About what the mean total variation distance of the workload's tables will be."""

    @property
    def spread(self) -> tuple[float, float]:
        """What is expected at the least and at the most, as a released number may tell."""
        return self.expected, self.expected

    @property
    def to_beat(self) -> float:
        """The error below which another strategy is better."""
        return self.expected

    @property
    def targeted(self) -> bool:
        """Whether tables of targets are measured with less noise than others."""
        return False

    @property
    def ways(self) -> "tuple[Strategy, ...]":
        """What may be done, as a released number decides: itself alone."""
        return (self,)

    @property
    def column_variances(self) -> Mapping[int, float]:
        """The variance of noise on a count of a category, by column, where it is known: on the louder way."""
        ways = [way.column_variances for way in self.ways if way is not self]
        return {c: max(variances.get(c, inf) for variances in ways) for c in (ways[0] if ways else ())}

    def expected_error(self, rows: int) -> float:
        """Return about the mean of the largest error of a query, and half a row: so much takes rounding."""
        return min(1.0, self.expected + 0.5 / rows)

    def measures_all(self, workload: Workload) -> bool:
        """Whether every query is a sum of what is measured, so that a bound follows from the noise alone."""
        return False

    def saved(self, workload: Workload, beta: Fraction) -> Self:
        """Return it without a certificate, where noise alone leaves less open than one would add."""
        return self

    def undrawable(self, n: int | None) -> str | None:
        """Say why, as is public, several tables cannot be drawn from what is measured; None: they can."""
        ways = (way.undrawable(n) for way in self.ways if way is not self)
        return next((why for why in ways if why is not None), None)

    def release(self, count: int | None) -> Steps:
        """Ask for measurements, and return an estimate with so many rows; None: as many as there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What tables are measured for; public."""

    universe: Universe  # the columns, the rules and the workload
    law: PrivacyMeasure  # how costs are counted and noise is drawn. Costs are epsilons, or parts of a rho.
    # the guarantee; delta is None for a pure one, and also where a delta would not be of use
    epsilon: Fraction
    delta: Fraction | None = None
    rows: int  # the public n under replace-one; under add-remove a public guess, which steers choices only
    memory: int = MEMORY  # how many cells the tables of the model may have beyond those of columns and rules
    certificate: Fraction = CERTIFICATE  # the share of the budget for it; 0 for none
    column_share: Fraction | None = None  # of all but that, for columns beside rounds; None: as expected
    spent: Fraction = Fraction(0)  # what was paid before, for a number that decides

    # Proof: docs/proofs/rounds.md, lemma 6.
    @property
    def budget(self) -> Fraction:
        """What costs must not exceed: epsilon, or the rho of (epsilon, delta), less what was paid."""
        return (self.epsilon if self.delta is None else rho_of(self.epsilon, self.delta)) - self.spent

    @property
    def certifying(self) -> Fraction:
        """What the certificate costs."""
        return self.budget * self.certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStrategy(Setting, Strategy):
    """What every strategy has that measures tables, from public numbers."""

    expected: float

    @classmethod
    def of(cls, setting: Setting, **details: Any) -> Self:
        """Return the strategy for a setting."""
        return cls(**{field.name: getattr(setting, field.name) for field in fields(Setting)}, **details)

    @property
    def public(self) -> tuple[object, ...]:
        """What decides what is done: numbers, texts and arrays."""
        where = self.universe
        rules = [part for columns, allowed in where.rules for part in (columns, allowed)]
        alike = (1,) * len(where.tables)  # tables had weights once: releases begun then are known by them
        tables = (where.sizes, where.ordered, where.tables, alike, where.targets, where.named, *rules)
        costs = (self.epsilon, self.delta, self.law, self.certifying, *self.costs)
        return (*tables, *costs, self.rows, self.memory)

    @property
    def costs(self) -> tuple[object, ...]:
        """What its own steps cost."""
        raise NotImplementedError

    @property
    def most_rows(self) -> int:
        """How many rows are made at most where their number is read from what was released."""
        return max(1, min(MAX_ENTRIES // len(self.universe.sizes), max(_ROWS, 100 * self.rows)))

    def bound(
        self, estimate: Estimate, workload: Workload, n: int | None, finished: Rows, beta: Fraction
    ) -> float:
        """Return the bound that follows from the noise alone, where all queries were measured."""
        return sums_of_tables(workload, estimate.whole, n, beta).bound(workload, finished)

    def steps(self) -> Steps:
        """Ask for measurements; return the `Estimate` that they make."""
        raise NotImplementedError

    def release(self, count: int | None) -> Steps:
        """Estimate, and make so many rows; None: as many as there are, or are read from what was released."""
        estimate = yield from self.steps()
        wanted = min(estimate.total, self.most_rows) if count is None else count
        rows = estimate.rows(wanted, (yield Coins()))
        order = yield Order(wanted)
        codes = rows.astype(codes_dtype(self.universe.sizes))
        return replace(estimate, codes=codes[:, order].T)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce(TableStrategy):
    """All that queries need, measured purely with one noise."""

    measuring: Fraction  # its epsilon

    @property
    def costs(self) -> tuple[object, ...]:
        """Of what is measured."""
        return (self.measuring,)

    @property
    def cost(self) -> Fraction:
        """What all steps cost together."""
        return self.measuring + self.certifying

    @property
    def most_pairs(self) -> int:
        """All of them."""
        return comb(len(self.universe.sizes), 2)

    def off(self, workload: Workload, beta: Fraction) -> float:
        """Return about how far the noise puts the worst query off, in rows, but for a probability of beta."""
        raise NotImplementedError

    # Proof: docs/proofs/certificate.md, "All cells"; docs/proofs/pairs.md, lemma 8.
    def saved(self, workload: Workload, beta: Fraction) -> Self:
        """Return it with all of epsilon for measuring, where that leaves less open than a certificate."""
        if not self.certifying or not self.measures_all(workload):
            return self
        saved, half = replace(self, measuring=self.cost, certificate=Fraction(0)), self.certifying / 2
        if self.law.drowns(half):
            return saved
        return saved if saved.off(workload, beta) <= beyond(workload, self.law, half, beta) else self


def whole_table(columns: Sequence[int], sizes: Sequence[int]) -> Marginal:
    """Return the table of some columns at all their categories; `sizes` are those of the columns."""
    return Marginal(tuple(columns), tuple(tuple(range(size)) for size in sizes))


def table_of(scope: Scope, groupings: Sequence[Grouping]) -> Marginal:
    """Return the table of a scope, at its levels."""
    groups = tuple(tuple(groupings[c].of_categories(level).tolist()) for c, level in scope)
    return Marginal(tuple(c for c, _ in scope), groups)


def measured(law: PrivacyMeasure, scope: Scope, of: Marginal, cost: Fraction) -> Steps:
    """Ask for a table, which stands for a scope."""
    noise, counts = law.noise(cost), (yield one_table(of, law, cost))
    return NoisyTable(scope, counts.reshape(of.shape), cost, noise, noise.variance())
