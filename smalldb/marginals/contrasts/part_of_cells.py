"""The count of each cell, with two-sided geometric noise; alone, or beside a Wishart difference."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import ClassVar

import numpy as np

from queries import Rows
from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.marginals.contrasts.part_of_wishart import Wishart
from smalldb.marginals.contrasts.parts import Part, Predict
from smalldb.marginals.contrasts.safeguard import NOTICED, Safeguard
from smalldb.marginals.contrasts.setting import Setting
from smalldb.marginals.contrasts.spectrum import Positions, masks_of, transformed
from smalldb.noise.distributions import Geometric
from smalldb.noise.privacy_loss import Loss
from smalldb.noise.tails import noise_quantile

MOST_STEPS = 1 << 28  # of reading cells once
CLEAR = NOTICED / 5  # noise of a mean beside which a parity is seen that a safeguard would choose
WISHART_SHARES = tuple(Fraction(part, 16) for part in (1, 4, 10, 13))  # beside cells


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Counts of all cells; a `parts.Part` that stands last in a plan.

    Noise V has a probability proportional to exp(-rate |V|_1): under replace-one two counts move by 1, so the
    rate is half the share of epsilon; under add-remove one does, and it is all of it.
    """

    law: ClassVar[str] = "cells"
    pure: ClassVar[bool] = True
    unaudited: ClassVar[str | None] = None

    share: Fraction
    deviations: Mapping[int, float]
    sets: tuple[Positions, ...] = ()

    @classmethod
    def designs(cls, setting: Setting) -> Iterator[tuple[Part, ...]]:
        """Yield the cells alone, and beside a Wishart difference of several shares."""
        if not setting.tabled or setting.workload.domain.unlike_binary is not None:
            return
        # what reading a cell takes grows with the rows and with the noise
        if setting.n + 100 * setting.workload.domain.size / (setting.epsilon / 2) > MOST_STEPS:
            return
        guarded = Safeguard.of(setting) is not None
        for share in (Fraction(0), *WISHART_SHARES):
            low = Wishart.of(setting, share) if share else None
            cells = cls._of(setting, 1 - share)
            # cells in which a large parity is not seen do not stand for the safeguard that they would replace
            if (low or not share) and (not guarded or cells.deviations[3] <= CLEAR * setting.n):
                yield (cells,) if low is None else (low, cells)

    @classmethod
    def _of(cls, setting: Setting, share: Fraction) -> "Cells":
        """Measure the count of each cell."""
        variance = Geometric(_rate(setting, share)).variance()
        deviation = sqrt(setting.workload.domain.size * variance)
        return cls(share, dict.fromkeys([0, *setting.spectrum.orders.tolist()], deviation))

    # Proof: docs/proofs/losses.md, lemma 8.
    def total_loss(self, setting: Setting) -> Loss:
        """Return that of the one cell that moves by 1, or of two."""
        return Loss.geometric(self.rate(setting), 1, setting.unit)

    # Proof: docs/proofs/answers.md, lemma 2.
    def rate(self, setting: Setting) -> Fraction:
        """Return what a unit of the noise of a cell costs."""
        return _rate(setting, self.share)

    def noise(self, setting: Setting) -> tuple[Geometric]:
        """Return that of each count."""
        return (Geometric(self.rate(setting)),)

    def exact(self, rows: Rows, sums: Integers) -> Integers:
        """Return the count of each cell."""
        return rows.histogram()

    def draw(self, setting: Setting, exact: Integers, source: BitSource, predict: Predict) -> Integers:
        """Add noise."""
        return exact + self.noise(setting)[0].draw(len(exact), source)

    def counted(self, values: Integers) -> int:
        """Return the sum of all cells."""
        return int(values.sum())

    def released(self, setting: Setting, values: Integers) -> tuple[tuple[Positions, ...], Integers]:
        """Return all parities of the spectrum, and what the cells add up to in each."""
        return setting.spectrum.sets, transformed(setting.workload.domain, values)[_codes(setting)]

    def margins(self, setting: Setting, failure: Fraction) -> tuple[int, Integers]:
        """What adds up to a parity lies within a Chernoff bound."""
        margin = ceil(self._margin(setting, setting.workload.domain.size, failure))
        return margin, np.full(len(setting.spectrum.sets), margin)

    def direct(self, setting: Setting, values: Integers, failure: Fraction) -> tuple[Floats, Floats, Floats]:
        """A query is added up from its cells, or from those of its complement where these are fewer."""
        domain, series, codes = setting.workload.domain, setting.spectrum, _codes(setting)

        def over_cells(counts: Integers) -> Floats:
            """Add up each query over the cells, weighted."""
            return series.over_queries(
                series.coefficients * transformed(domain, counts)[codes][series.members]
            ) + series.constants * float(counts.sum())

        # a query that is heavier than its complement is read off that one
        middle = over_cells(values)
        weights = over_cells(np.ones(domain.size, dtype=np.int64))
        if setting.replaced:
            heavy = weights > domain.size / 2
            middle += heavy * float(setting.n - int(values.sum()))
            weights = np.where(heavy, domain.size - weights, weights)
        whole, inverse = np.unique(np.ceil(weights + 1).astype(np.int64), return_inverse=True)
        margin = np.array([self._margin(setting, weight, failure) for weight in whole.tolist()])[inverse]
        size = float(np.abs(values).sum()) * (1 + series.over_queries(np.abs(series.coefficients)))
        return middle - margin, middle + margin, size

    def loss(self, setting: Setting, gap: Integers, moved: int) -> Fraction:
        """Return the loss: log-probabilities are -rate |z - counts|_1, so it is largest at z = counts."""
        return self.rate(setting) * int(gap.sum())

    def _margin(self, setting: Setting, weight: int, failure: Fraction) -> float:
        """Return what the noise of a query does not exceed; all queries, parities and n share the failure."""
        each = failure / (setting.workload.size + len(setting.spectrum.sets) + 1)
        return noise_quantile(self.rate(setting), weight, each)


def _rate(setting: Setting, share: Fraction) -> Fraction:
    return setting.epsilon * share / setting.unit


def _codes(setting: Setting) -> Integers:
    return masks_of(setting.spectrum.sets, len(setting.workload.domain.attributes))
