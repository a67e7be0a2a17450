"""The optimal delta of unequal pure releases, each rounded up to a multiple of one unit."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from queries.arrays import Floats
from smalldb.accounting.curves import ULPS

GRID = 1 << 15  # positions that a loss can have, but for rounding
MOST_STEPS = 1_000  # releases: each takes a step over the grid
LOST = 1e-306  # what underflow can take away in all: far below any delta that is asked for


def possible(counts: Floats) -> bool:
    """Return whether there are few enough."""
    return float(counts.sum()) <= MOST_STEPS


@dataclass(frozen=True, slots=True)
class Mixture:
    """Randomised responses together: the worst of adaptive pure releases (Murtagh and Vadhan 2016)."""

    # eps-DP is (k u)-DP for the least whole k with k u >= eps, and for releases of whole multiples of a
    # unit u the optimal delta is that of randomised responses: a sum over the grid of losses, exact

    unit: float  # u
    span: int  # the sum of all k: losses are (span - 2 i) u, i = 0..span
    law: Floats  # the probability of each i under the more likely of the two neighbours

    @classmethod
    def of(cls, eps: Floats, counts: Floats) -> "Mixture":
        """Compose `counts` releases of each eps."""
        unit = float(counts @ eps) / GRID
        law = np.ones(1)
        for value, count in zip(eps.tolist(), counts.tolist(), strict=True):
            steps = ceil(value / unit * (1 + ULPS))
            honest, lies = (float(np.exp(-np.logaddexp(0, x * steps * unit))) for x in (-1, 1))
            for _ in range(int(count)):
                longer = np.zeros(len(law) + steps)
                longer[: len(law)] = law * honest
                longer[steps:] += law * lies
                law = longer
        return cls(unit, len(law) - 1, law)

    @property
    def most(self) -> float:
        """The epsilon of delta 0."""
        return self.span * self.unit * (1 + ULPS)

    def delta(self, total: float) -> float:
        """Return the delta at a total, rounded up."""
        over = (self.span - 2 * np.arange(self.span + 1)) * self.unit * (1 + ULPS) - total
        sizes = -np.expm1(-np.maximum(over, 0))
        return float(self.law @ sizes) * (1 + 1e-12 * (MOST_STEPS + 10)) + LOST
