"""Sums of parities of one order, with noise that is as likely as its largest entry is small."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.marginals.contrasts.parts import Counted, Part, Predict, sets_of, shares_of, worst
from smalldb.marginals.contrasts.setting import Setting
from smalldb.marginals.contrasts.spectrum import Positions
from smalldb.noise.distributions import Cube as CubeNoise
from smalldb.noise.tails import radius_quantile

MAX_LEVELS = 1 << 22  # that the exact draw of a radius may enclose


@dataclass(frozen=True, slots=True, eq=False)
class Cube(Counted):
    """Counts with noise V of probability proportional to exp(-epsilon share max |V|); a `parts.Part`.

    Between neighbours each count moves by at most 1, and so does the largest.
    """

    law: ClassVar[str] = "cube"
    pure: ClassVar[bool] = True
    unaudited: ClassVar[str | None] = None

    sets: tuple[Positions, ...]
    share: Fraction
    deviations: Mapping[int, float]

    @classmethod
    def designs(cls, setting: Setting) -> Iterator[tuple[Part, ...]]:
        """Yield a cube for each order, up to each order that the workload has."""
        for highest in sorted({*setting.spectrum.orders.tolist()}):
            if parts := cls._up_to(setting, highest):
                yield parts

    @classmethod
    def _up_to(cls, setting: Setting, highest: int) -> tuple[Part, ...]:
        """Measure the parities of all orders up to one; nothing: drawing a radius would take too long.

        Shares of epsilon are proportional to (A_o k_o^2)^(1/3), where k_o parities of order o have the
        squared coefficients A_o in the worst query: the least sum of A_o (k_o / share_o)^2.
        """
        series = setting.spectrum
        kept = sorted({order for order in series.orders.tolist() if order <= highest})
        sets = [sets_of(series, order, order) for order in kept]
        if not setting.replaced:
            sets[0] = ((), *sets[0])
        weights = [
            (worst(series, {order: 1.0}) * len(some) ** 2) ** (1 / 3)
            for order, some in zip(kept, sets, strict=True)
        ]
        parts = []
        for some, share in zip(sets, shares_of(weights), strict=True):
            noise = CubeNoise(len(some), setting.epsilon * share)
            if 20 * sqrt(noise.count) / noise.rate > MAX_LEVELS:
                return ()
            orders = {len(positions) for positions in some}
            parts.append(cls(some, share, dict.fromkeys(orders, sqrt(noise.variance()) * setting.unit)))
        return tuple(parts)

    # Proof: docs/proofs/answers.md, lemma 2.
    def rate(self, setting: Setting) -> Fraction:
        """Return what a unit of the largest entry costs."""
        return setting.epsilon * self.share

    def noise(self, setting: Setting) -> tuple[CubeNoise]:
        """Return that of all counts."""
        return (CubeNoise(len(self.sets), self.rate(setting)),)

    def draw(self, setting: Setting, exact: Integers, source: BitSource, predict: Predict) -> Integers:
        """Add noise."""
        return exact + self.noise(setting)[0].draw(len(exact), source)

    def margins(self, setting: Setting, failure: Fraction) -> tuple[int, Integers]:
        """All noise lies within the quantile of the radius."""
        radius = radius_quantile(len(self.sets), self.rate(setting), failure)
        return radius, np.full(sum(1 for positions in self.sets if positions), setting.unit * radius)

    def loss(self, setting: Setting, gap: Integers, moved: int) -> Fraction:
        """Return the loss: log-probabilities are -rate max |z - counts|, so it is largest at z = counts."""
        return self.rate(setting) * int(gap.max())
