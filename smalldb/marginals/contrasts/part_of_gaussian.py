"""Sums of parities with discrete Gaussian noise: the one law that is not pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import BitSource
from smalldb.marginals.contrasts.parts import (
    Counted,
    Part,
    Predict,
    attributes_of,
    each_margin,
    heaviest_constant,
    sets_of,
    worst,
)
from smalldb.marginals.contrasts.setting import Setting
from smalldb.marginals.contrasts.spectrum import Positions
from smalldb.noise.distributions import DiscreteGaussian
from smalldb.noise.gaussian import least_variances
from smalldb.noise.privacy_loss import Loss


@dataclass(frozen=True, slots=True, eq=False)
class Gaussian(Counted):
    """Counts with discrete Gaussian noise, whose variance depends on the order of a set; a `parts.Part`.

    Attributes
    ----------
    variances
        sigma^2 of the counts of sets of each order.
    """

    law: ClassVar[str] = "gaussian"
    pure: ClassVar[bool] = False
    unaudited: ClassVar[str | None] = (
        "contrasts with Gaussian noise have no largest loss: the plan was made with delta"
    )

    sets: tuple[Positions, ...]
    share: Fraction
    deviations: Mapping[int, float]
    variances: Mapping[int, Fraction]

    @classmethod
    def designs(cls, setting: Setting) -> Iterator[tuple[Part, ...]]:
        """Yield the parities up to each order that the workload has, if a delta is allowed."""
        if setting.delta is None:
            return
        rho = rho_of(setting.epsilon, setting.delta)
        for highest in sorted({*setting.spectrum.orders.tolist()}):
            yield (cls._up_to(setting, rho, highest),)

    # Proof: docs/proofs/losses.md, lemma 8.
    def total_loss(self, setting: Setting) -> Loss:
        """Return the rho that its variances were scaled to."""
        if setting.delta is None:
            raise ValueError(self.unaudited)
        return Loss.concentrated(rho_of(setting.epsilon, setting.delta))

    @classmethod
    def _up_to(cls, setting: Setting, rho: Fraction, highest: int) -> "Gaussian":
        """Measure the parities of all orders up to one, rho-zCDP, with the least noise in the worst query.

        Under add-remove the number of rows counts as often as a query counts it at most.
        """
        series, replaced = setting.spectrum, setting.replaced
        sets = sets_of(series, 1, highest)
        sizes = Counter(map(len, sets))
        needs = {order: worst(series, {order: 1.0}) for order in sizes}
        if not replaced:
            sets, sizes[0], needs[0] = ((), *sets), 1, heaviest_constant(series) ** 2
        variances = least_variances(len(attributes_of(sets)), sizes, needs, rho, replaced)
        deviations = {order: setting.unit * sqrt(variance) for order, variance in variances.items()}
        return cls(sets, Fraction(1), deviations, variances)

    def rate(self, setting: Setting) -> Fraction:
        """Return its share of epsilon; its noise is known by `variances`."""
        return setting.epsilon * self.share

    def noise(self, setting: Setting) -> tuple[DiscreteGaussian, ...]:
        """Return that of the counts of each order, ascending."""
        return tuple(DiscreteGaussian(variance) for _, variance in sorted(self.variances.items()))

    def draw(self, setting: Setting, exact: Integers, source: BitSource, predict: Predict) -> Integers:
        """Add noise, order by order."""
        sizes = [size for _, size in sorted(Counter(map(len, self.sets)).items())]
        noise = [part.draw(size, source) for part, size in zip(self.noise(setting), sizes, strict=True)]
        return exact + np.concatenate(noise)

    def margins(self, setting: Setting, failure: Fraction) -> tuple[int, Floats]:
        """Counts share the failure evenly; each lies within its tail."""
        each = failure / len(self.sets)
        within = [noise.quantile(None, each) for noise in self.noise(setting)]
        return each_margin(setting, self.sets, dict(zip(sorted(self.variances), within, strict=True)))

    def loss(self, setting: Setting, gap: Integers, moved: int) -> Fraction:
        """No ratio is the largest: ValueError."""
        raise ValueError(self.unaudited)
