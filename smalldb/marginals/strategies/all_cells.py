"""The counts of all cells of a small universe, measured with one noise."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from typing import ClassVar, Self

from queries import Rows, Workload
from smalldb.marginals.asks import one_table
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.cell_estimates import MOST_CELLS, read_cells
from smalldb.marginals.estimate.column_estimates import bounded_total
from smalldb.marginals.expected_error import all_cells
from smalldb.marginals.measuring import PrivacyMeasure, released
from smalldb.marginals.noise_bound import MOST_CELLS as MOST_BOUNDED
from smalldb.marginals.noise_bound import bound, margins, sums_of_cells
from smalldb.marginals.strategies.budgets import TableBudget
from smalldb.marginals.strategies.strategy import Estimate, TableStrategy, whole_table
from smalldb.marginals.universe import Universe
from smalldb.noise.geometric import Geometric
from smalldb.noise.privacy_loss import Loss

READING = 1 << 26  # cells / rate that are read at once: each cell takes some 1 / rate steps


@dataclass(frozen=True, slots=True)
class AllCells(TableBudget, TableStrategy):
    """Geometric noise on every cell; under a delta, too: its tail is lighter than that of Gaussian noise."""

    name: ClassVar[str] = "cells"
    method: ClassVar[str] = "marginals of all cells"
    described: ClassVar[str] = "the counts of all cells, with geometric noise"

    measuring: Fraction  # the epsilon of all cells

    @classmethod
    def planned(
        cls,
        universe: Universe,
        epsilon: Fraction,
        replaced: bool,
        rows: int,
        memory: int,
        certificate: Fraction,
    ) -> Self | None:
        """Return the strategy; None where there are too many cells, or noise too loud to be read."""
        law, left = PrivacyMeasure(concentrated=False, replaced=replaced), epsilon * (1 - certificate)
        if universe.cells > MOST_CELLS or universe.cells > READING * law.rate(left):
            return None
        return cls(
            universe=universe,
            epsilon=epsilon,
            delta=None,
            law=law,
            rows=rows,
            certifying=epsilon * certificate,
            memory=memory,
            expected=all_cells(universe, law, left, rows),
            measuring=left,
        )

    @property
    def costs(self) -> tuple[object, ...]:
        """Of the cells."""
        return (self.measuring,)

    @property
    def cost(self) -> Fraction:
        """What all steps cost together."""
        return self.measuring + self.certifying

    @property
    def noise(self) -> Geometric:
        """The noise on every cell."""
        return Geometric(self.law.rate(self.measuring))

    @property
    def most_tables(self) -> int:
        """That of all cells."""
        return 1

    @property
    def most_pairs(self) -> int:
        """All of them."""
        return comb(len(self.universe.sizes), 2)

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def loss(self) -> Loss:
        """That of geometric noise on one table, and of the certificate."""
        return self.law.loss_of_table(self.measuring).together(self.law.loss_of_certificate(self.certifying))

    def measures_all(self, workload: Workload) -> bool:
        """Whether every query is a sum of what is measured, so that a bound follows from the noise alone."""
        return self.universe.cells <= MOST_BOUNDED

    # Proof: docs/proofs/certificate.md, "All cells".
    def uncertified(self, workload: Workload, beta: Fraction) -> tuple[Self, float]:
        """Return the strategy with all of epsilon for cells, and about the bound of their noise in rows."""
        saved = replace(self, measuring=self.cost, certifying=Fraction(0))
        return saved, max(margins(workload, saved.noise, beta))

    def bound(
        self, estimate: Estimate, workload: Workload, n: int | None, finished: Rows, beta: Fraction
    ) -> float:
        """Return the bound that follows from the noise alone."""
        return bound(
            workload, finished, sums_of_cells(workload, estimate.tables[0].counts, self.noise, n, beta)
        )

    # Proof: docs/proofs/rounds.md, lemma 8.
    def steps(self) -> Steps:
        """Ask for all cells at once; they are read by empirical Bayes."""
        sizes = self.universe.sizes
        everything = tuple(range(len(sizes)))
        counts = (yield one_table(whole_table(everything, sizes), self.law, self.measuring)).reshape(sizes)
        measured = released(counts, tuple((c, 0) for c in everything), self.law, self.measuring)
        seen = counts[self.universe.possible()]
        total = self.rows if self.law.replaced else bounded_total(seen.sum(dtype=float))
        model = read_cells(self.universe, measured, float(self.noise.rate), total, self.law.replaced)
        return Estimate(self, total, model, model.rows, tables=(measured,))
