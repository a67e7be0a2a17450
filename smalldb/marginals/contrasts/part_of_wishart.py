"""Sums of parities of orders 1 and 2 at once, with the noise of a Wishart difference."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import ClassVar

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.marginals.contrasts.parts import (
    Counted,
    Part,
    Predict,
    attributes_of,
    each_margin,
    heaviest_constant,
    proved_loss,
    sets_of,
    worst,
)
from smalldb.marginals.contrasts.safeguard import Safeguard
from smalldb.marginals.contrasts.setting import Setting
from smalldb.marginals.contrasts.spectrum import Positions
from smalldb.noise.distributions import WishartDifference
from smalldb.noise.wishart import rates

TILTS = tuple(Fraction(part, 32) for part in range(1, 32))


@dataclass(frozen=True, slots=True, eq=False)
class Wishart(Counted):
    """Counts with noise of a Wishart difference (`docs/proofs/wishart.md`); a `parts.Part`.

    Attributes
    ----------
    tilt
        What order 1 has of its epsilon.
    """

    law: ClassVar[str] = "wishart"
    pure: ClassVar[bool] = True
    unaudited: ClassVar[str | None] = (
        "these contrasts get Wishart noise, whose loss is proved and not computed: "
        "name method 'cube' or 'cells' to audit"
    )

    sets: tuple[Positions, ...]
    share: Fraction
    deviations: Mapping[int, float]
    tilt: Fraction

    @classmethod
    def designs(cls, setting: Setting) -> Iterator[tuple[Part, ...]]:
        """Yield it alone, or with a safeguard where the workload has parities of order 3."""
        guard = Safeguard.of(setting)
        whole = cls.of(setting, Fraction(1) if guard is None else 1 - guard.share)
        if whole is not None:
            yield (whole,) if guard is None else (whole, guard)

    @classmethod
    def of(cls, setting: Setting, share: Fraction) -> "Wishart | None":
        """Measure all parities of order 1 and 2 at once; None where a workload has none of order 2.

        The tilt that weighs order 1 against order 2 is the one with the least noise in the worst query; under
        add-remove the number of rows, on which order 1 depends too, counts as often as a query counts it at
        most.

        Parameters
        ----------
        setting
            What is planned for.
        share
            Of epsilon, above 0.
        """
        series, replaced = setting.spectrum, setting.replaced
        sets = sets_of(series, 1, 2)
        if not any(len(positions) == 2 for positions in sets):
            return None
        sets = sets if replaced else ((), *sets)
        d = len(attributes_of(sets))
        constant = 0.0 if replaced else heaviest_constant(series)

        def noise(tilt: Fraction) -> float:
            variances = _variances(d, tilt)
            return worst(series, variances) + constant**2 * variances[0]

        tilt = min(TILTS, key=noise)
        unit = setting.unit / float(setting.epsilon * share)
        orders = {len(positions) for positions in sets}
        deviations = {o: unit * sqrt(variance) for o, variance in _variances(d, tilt).items() if o in orders}
        return cls(sets, share, deviations, tilt)

    def rate(self, setting: Setting) -> Fraction:
        """Return what x and y of the noise add up to."""
        return setting.epsilon * self.share

    def noise(self, setting: Setting) -> tuple[WishartDifference]:
        """Return that of all sets: each is an entry, of its attributes or of one and the constant."""
        ranks = {attribute: rank for rank, attribute in enumerate(attributes_of(self.sets), start=1)}
        indices = [[0, 0, *(ranks[i] for i in positions)] for positions in self.sets]
        pairs = tuple((some[-2], some[-1]) for some in indices)
        return (WishartDifference(len(ranks), *rates(self.rate(setting), self.tilt), pairs),)

    def draw(self, setting: Setting, exact: Integers, source: BitSource, predict: Predict) -> Integers:
        """Add noise."""
        return exact + self.noise(setting)[0].draw(len(exact), source)

    def margins(self, setting: Setting, failure: Fraction) -> tuple[int, Floats]:
        """Entries share the failure evenly; each lies within what its moments say."""
        (noise,), each = self.noise(setting), failure / len(self.sets)
        margins = {order: noise.entry_quantile(order, each) for order in set(map(len, self.sets))}
        return each_margin(setting, self.sets, margins)

    def loss(self, setting: Setting, gap: Integers, moved: int) -> Fraction:
        """Return what is proved of the loss."""
        return proved_loss(setting, self.share, moved)


@lru_cache(maxsize=1024)
def _variances(attributes: int, tilt: Fraction) -> dict[int, float]:
    """Return the variance of a Wishart difference for epsilon 1: of n, and of entries of order 1 and 2."""
    noise = WishartDifference(attributes, *rates(Fraction(1), tilt), ())
    return {order: noise.entry_variance(order) for order in range(3)}
