"""The counts of all cells of a small universe, measured with one noise."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from queries import Rows, Workload
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.cell_estimates import MOST_CELLS, read_cells
from smalldb.marginals.estimate.column_estimates import bounded_total
from smalldb.marginals.expected_error import all_cells
from smalldb.marginals.noise_bounds import margins, sums_of_cells
from smalldb.marginals.refits import EMPTY, fills_cells
from smalldb.marginals.strategies.strategy import OTHERWISE, AtOnce, Estimate, Setting, measured, whole_table
from smalldb.noise.geometric import Geometric
from smalldb.noise.privacy_loss import Loss

MOST_BOUNDED = 1 << 16  # cells that are looked at, one by one, in a plan
READING = 1 << 26  # cells / rate that are read at once: each cell takes some 1 / rate steps


@dataclass(frozen=True, slots=True, kw_only=True)
class AllCells(AtOnce):
    """Geometric noise on every cell; under a delta, too: its tail is lighter than that of Gaussian noise."""

    name: ClassVar[str] = "cells"
    method: ClassVar[str] = "marginals of all cells"
    described: ClassVar[str] = f"the counts of all cells, with {Geometric.word} noise"
    refusal: ClassVar[str] = (
        "the strategy cells is for up to 2^20 cells: leave out strategy, or use fewer columns"
    )

    @classmethod
    def planned(cls, setting: Setting) -> Self | None:
        """Return it for a pure setting; None: there are too many cells, or noise is too loud to be read."""
        universe, law, left = setting.universe, setting.law, setting.budget - setting.certifying
        if universe.cells > MOST_CELLS or universe.cells > READING * law.rate(left):
            return None
        expected = all_cells(universe, law, left, setting.rows)
        return cls.of(setting, expected=expected, measuring=left)

    @property
    def noise(self) -> Geometric:
        """The noise on every cell."""
        return Geometric(self.law.rate(self.measuring))

    @property
    def column_variances(self) -> dict[int, float]:
        """The noise of all cells that a category has."""
        cells = np.count_nonzero(self.universe.possible()) * self.noise.variance()
        return {c: cells / size for c, size in enumerate(self.universe.sizes)}

    @property
    def most_tables(self) -> int:
        """That of all cells."""
        return 1

    def undrawable(self, n: int | None) -> str | None:
        """Say why several tables cannot be drawn: most cells hold less than noise (n is public)."""
        sizes = self.universe.sizes
        if n is None or len(sizes) < 3 or fills_cells(n, self.universe.cells, self.noise.variance()):
            return None
        return f"{EMPTY}: {OTHERWISE}"

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def loss(self) -> Loss:
        """That of geometric noise on one table, and of the certificate."""
        return self.law.loss_of_table(self.measuring).together(self.law.loss_of_certificate(self.certifying))

    def measures_all(self, workload: Workload) -> bool:
        """Whether every query is a sum of what is measured, so that a bound follows from the noise alone."""
        return self.universe.cells <= MOST_BOUNDED

    def off(self, workload: Workload, beta: Fraction) -> float:
        """Return by how much no query's sum of noise is off, nor the number of rows, in units of 1 / D."""
        return max(margins(workload, self.noise, beta)) * workload.denominator

    def bound(
        self, estimate: Estimate, workload: Workload, n: int | None, finished: Rows, beta: Fraction
    ) -> float:
        """Return the bound that follows from the noise alone."""
        sums = sums_of_cells(workload, estimate.tables[0].counts, self.noise, n, beta)
        return sums.bound(workload, finished)

    # Proof: docs/proofs/rounds.md, lemma 8.
    def steps(self) -> Steps:
        """Ask for all cells at once; they are read by empirical Bayes."""
        sizes = self.universe.sizes
        everything = tuple(range(len(sizes)))
        of, scope = whole_table(everything, sizes), tuple((c, 0) for c in everything)
        cells = yield from measured(self.law, scope, of, self.measuring)
        seen = cells.counts[self.universe.possible()]
        total = self.rows if self.law.replaced else bounded_total(seen.sum(dtype=float))
        model = read_cells(self.universe, cells, float(self.noise.rate), total, self.law.replaced)
        return Estimate(self, total, model, model.rows, tables=(cells,))
