"""All tables of one and two columns at once: counts, the noise of a cone, and how they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar, Self

import numpy as np

from queries import Workload
from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.asks import Noisy
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.column_estimates import without_margins
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.expected_error import USUAL, all_pairs
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.marginals.noise_bounds import Whole, cells_of_tables
from smalldb.marginals.strategies.budgets import MOST_WIDE
from smalldb.marginals.strategies.strategy import (
    OTHERWISE,
    AtOnce,
    Estimate,
    Setting,
    TableStrategy,
    table_of,
    whole_table,
)
from smalldb.marginals.universe import Universe, pairs_of
from smalldb.mechanisms import Marginal
from smalldb.mechanisms.known_pairs import from_independence
from smalldb.noise import cone
from smalldb.noise.cone import ConeDifference
from smalldb.noise.privacy_loss import Loss

MOST_CATEGORIES = 64  # of a column
PAIRS_UNDRAWABLE = (
    "all pairs of columns may be measured at once, and several tables cannot be drawn from that"
)
REFUSALS = 32  # tables one after another that have no room in the model, when it is taken to be full


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPairs(AtOnce):
    """All tables of one and two columns, with one noise of a cone."""

    name: ClassVar[str] = "pairs"
    method: ClassVar[str] = "marginals of all pairs of columns"
    described: ClassVar[str] = f"all tables of one and two columns at once, with {ConeDifference.word} noise"
    refusal: ClassVar[str] = (
        "the strategy pairs is for tables of two columns, one of 3 categories or more and none of more than "
        "64: use another strategy"
    )

    @classmethod
    def planned(cls, setting: Setting, dependence: float = USUAL) -> Self | None:
        """Return the strategy of a pure setting; None where not all pairs can be measured at once."""
        universe, left = setting.universe, setting.budget - setting.certifying
        if not measurable(universe):
            return None
        noise = noise_at_once(universe, left, setting.law.replaced)
        expected = all_pairs(universe, *noise.variances, setting.rows, dependence)
        return cls.of(setting, expected=expected, measuring=left)

    def undrawable(self, n: int | None) -> str:
        """Say why several tables cannot be drawn: no refit of all pairs is known."""
        return f"{PAIRS_UNDRAWABLE}: {OTHERWISE}"

    @property
    def noise(self) -> ConeDifference:
        """The noise of all tables."""
        return noise_at_once(self.universe, self.measuring, self.law.replaced)

    @property
    def column_variances(self) -> dict[int, float]:
        """The noise of tables of one column."""
        return dict(enumerate(self.noise.variances[0]))

    @property
    def most_tables(self) -> int:
        """Those of all columns, and of all pairs of them."""
        return len(self.universe.sizes) + self.most_pairs

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def loss(self) -> Loss:
        """What loses most of all that is pure, and that of the certificate."""
        return Loss.pure(self.measuring).together(self.law.loss_of_certificate(self.certifying))

    def measures_all(self, workload: Workload) -> bool:
        """Whether every query is a sum of what is measured, so that a bound follows from the noise alone."""
        return cells_of_tables(workload, 2)

    def off(self, workload: Workload, beta: Fraction) -> float:
        """Return about the largest margin: that of n, or of columns of few categories; in 1 / D of a row."""
        each, fewest = beta / (workload.size + 1), sorted(self.universe.sizes)[:2]
        of_cells = (self.noise.cell_quantile(tuple(fewest[:width]), each) for width in (1, 2))
        return max(self.noise.sum_quantile(fewest[0], each), *of_cells) * workload.denominator

    # Proof: docs/proofs/rounds.md, lemma 12.
    def steps(self) -> Steps:
        """Ask for all tables at once; the most dependent ones make the model."""
        noise = self.noise
        values = yield Noisy(tables_measured(self.universe), ((noise, noise.count),))
        at_once = tables_at_once(self.universe, values)
        estimator = Estimator.of(self, read_columns(at_once, noise))
        read = read_pairs(at_once, noise, estimator.read, estimator.groupings, estimator.total)
        return modelled(self, estimator, read, {of: (table, noise) for of, table in at_once.items()})


def measurable(universe: Universe) -> bool:
    """Whether all tables of two columns can be measured at once, and the workload has no wider ones.

    Yes/no columns alone have parities, which `smalldb.marginals.strategies.contrasts` measures.
    """
    if max(map(len, universe.tables)) != 2:
        return False
    return 2 < max(universe.sizes) <= MOST_CATEGORIES and cone.width(universe.sizes) <= MOST_WIDE


# Proof: docs/proofs/pairs.md, lemma 3.
def noise_at_once(universe: Universe, cost: Fraction, replaced: bool) -> ConeDifference:
    """Return the noise of all these tables."""
    rate = PrivacyMeasure(concentrated=False, replaced=replaced).rate(cost)
    return ConeDifference(universe.sizes, rate, tuple(pairs_of(universe)))


# Proof: docs/proofs/rounds.md, lemma 12.
def tables_measured(universe: Universe) -> tuple[Marginal, ...]:
    """Return each column, then the table of each pair of columns."""
    sizes = universe.sizes
    columns = [whole_table((c,), (size,)) for c, size in enumerate(sizes)]
    return (*columns, *(whole_table((a, b), (sizes[a], sizes[b])) for a, b in pairs_of(universe)))


def tables_at_once(universe: Universe, values: Integers) -> dict[tuple[int, ...], Integers]:
    """Return the released tables by their columns: those of one column, then those of two."""
    of = tables_measured(universe)
    parts = np.split(values, np.cumsum([table.size for table in of])[:-1])
    return {table.columns: part.reshape(table.shape) for table, part in zip(of, parts, strict=True)}


# Proof: docs/proofs/rounds.md, lemma 12.
def read_columns(tables: Mapping[tuple[int, ...], Integers], noise: ConeDifference) -> tuple[NoisyTable, ...]:
    """Return what was released of each column. It costs nothing by itself."""
    return tuple(
        NoisyTable(((c, 0),), tables[c,], Fraction(0), noise, variance)
        for c, variance in enumerate(noise.variances[0])
    )


# Proof: docs/proofs/rounds.md, lemma 12.
def read_pairs(
    tables: Mapping[tuple[int, ...], Integers],
    noise: ConeDifference,
    columns: Sequence[Floats],
    groupings: Sequence[Grouping],
    total: int,
) -> list[NoisyTable]:
    """Return the released tables of pairs, with the margins of independent columns."""
    read = list[NoisyTable]()
    for (a, b), variance in noise.variances[1].items():
        counts = _with_margins(tables[a, b], np.outer(columns[a], columns[b]) / total)
        ranked = counts[np.ix_(groupings[a].order, groupings[b].order)]
        scope = ((a, groupings[a].finest), (b, groupings[b].finest))
        read.append(NoisyTable(scope, ranked, Fraction(0), noise, variance))
    return read


def _with_margins(table: Integers, independent: Floats) -> Integers:
    """Return a released table with the margins of independent columns."""
    return np.rint(independent + without_margins(table - independent)).astype(np.int64)


# Proof: docs/proofs/rounds.md, lemma 12.
def halves_of(
    universe: Universe, cost: Fraction, replaced: bool, groupings: Sequence[Grouping]
) -> tuple[tuple[Marginal, ...], ConeDifference]:
    """Return each column and each pair of columns in two groups of categories each, and their noise."""
    pairs = pairs_of(universe)
    scopes = [*(((c, 1),) for c in range(len(groupings))), *(((a, 1), (b, 1)) for a, b in pairs)]
    rate = PrivacyMeasure(concentrated=False, replaced=replaced).rate(cost)
    noise = ConeDifference((2,) * len(groupings), rate, tuple(pairs))
    return tuple(table_of(scope, groupings) for scope in scopes), noise


# Proof: docs/proofs/rounds.md, lemma 12.
def read_halves(values: Integers, noise: ConeDifference, estimator: Estimator) -> list[NoisyTable]:
    """Return the released tables of pairs in halves, with the margins of independent columns."""
    tables = values[2 * len(noise.sizes) :].reshape(-1, 2, 2)
    masses = [
        np.bincount(grouping.of_categories(1), mass)
        for grouping, mass in zip(estimator.groupings, estimator.read, strict=True)
    ]
    read = list[NoisyTable]()
    for ((a, b), variance), table in zip(noise.variances[1].items(), tables, strict=True):
        counts = _with_margins(table, np.outer(masses[a], masses[b]) / estimator.total)
        read.append(NoisyTable(((a, 1), (b, 1)), counts, Fraction(0), noise, variance))
    return read


def modelled(plan: TableStrategy, estimator: Estimator, read: Sequence[NoisyTable], whole: Whole) -> Estimate:
    """Return the estimate of tables of pairs: the most dependent ones make the model."""
    tables, beside, refused = list[NoisyTable](), list[NoisyTable](), 0
    for table in sorted(read, key=dependence, reverse=True):
        fits = refused < REFUSALS and estimator.fits(tables, table.scope)
        refused = 0 if fits else refused + 1
        (tables if fits else beside).append(table)
    estimator = replace(estimator, read_from=frozenset(tables))
    model = estimator.fit(tables, (), last=True)
    making = partial(estimator.rows, model, beside)
    measured = estimator.columns, tuple(tables), tuple(beside)
    return Estimate(plan, estimator.total, model, making, *measured, whole=whole)


def dependence(table: NoisyTable) -> float:
    """Return the sum of squared differences from independent columns, less what noise adds to it."""
    freedom: int = (table.counts.shape[0] - 1) * (table.counts.shape[1] - 1)
    return from_independence(table.counts) - table.variance * freedom
