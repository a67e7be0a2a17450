"""The parity of order 3 that was predicted worst: chosen by the exponential mechanism, then measured."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from typing import ClassVar

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level
from smalldb.marginals.contrasts.parts import Counted, Part, Predict, proved_loss, sets_of
from smalldb.marginals.contrasts.setting import Setting
from smalldb.marginals.contrasts.spectrum import Positions
from smalldb.noise.distributions import Geometric
from smalldb.noise.privacy_loss import Loss

SAFEGUARD = Fraction(1, 10)
NOTICED = 0.5  # mean of a parity that a safeguard chooses almost surely, if it is predicted as 0


@dataclass(frozen=True, slots=True, eq=False)
class Safeguard(Counted):
    """One of the sets, measured last; a `parts.Part`.

    Which one is drawn by the exponential mechanism, by how far their counts are from what a fit to the
    integers before predicts. That is post-processing of these, so the scores, too, move by at most 1. Half
    the share is for the choice and half for geometric noise. Two integers are released: which of the sets was
    chosen, and its count (`docs/proofs/safeguard.md`).
    """

    law: ClassVar[str] = "safeguard"
    pure: ClassVar[bool] = True
    unaudited: ClassVar[str | None] = "a safeguard's loss is proved and not computed"

    sets: tuple[Positions, ...]
    share: Fraction
    deviations: Mapping[int, float]

    @classmethod
    def designs(cls, setting: Setting) -> Iterator[tuple[Part, ...]]:
        """Yield nothing: it stands behind other parts."""
        return iter(())

    @classmethod
    def of(cls, setting: Setting) -> "Safeguard | None":
        """Measure the parity of order 3 that was predicted worst; None: there is none, or it would be missed.

        The odd chance of each other set is exp(-rate / 2 times how much better it was predicted).
        """
        sets, rate = sets_of(setting.spectrum, 3, 3), setting.epsilon * SAFEGUARD / 2
        if not setting.tabled or not sets:
            return None
        if float(rate / 2) * NOTICED * setting.n / setting.unit < log(len(sets)) + 2:
            return None
        return cls(sets, SAFEGUARD, {3: setting.unit * sqrt(Geometric(rate).variance())})

    # Proof: docs/proofs/losses.md, lemma 8.
    def total_loss(self, setting: Setting) -> Loss:
        """Return that of a draw of the exponential mechanism, and of noise on one count."""
        rate = self.rate(setting)
        return Loss.ranged(rate).together(Loss.geometric(rate, 1))

    def rate(self, setting: Setting) -> Fraction:
        """Return what a unit of its noise costs; its choice has as much."""
        return setting.epsilon * self.share / 2

    def noise(self, setting: Setting) -> tuple[Geometric]:
        """Return that of the count of the set that is chosen."""
        return (Geometric(self.rate(setting)),)

    # Proof: docs/proofs/safeguard.md, lemmas 2, 3 and 4.
    def draw(self, setting: Setting, exact: Integers, source: BitSource, predict: Predict) -> Integers:
        """Choose the set that the integers released so far predict worst, and measure it."""
        rate = self.rate(setting)
        gaps = np.abs(exact - predict())
        levels, sizes = np.unique(gaps.max() - gaps, return_counts=True)
        level = draw_level(dict(zip(levels.tolist(), sizes.tolist(), strict=True)), rate / 2, source)
        worst = np.flatnonzero(gaps == gaps.max() - level)
        chosen = worst[uniform_below(len(worst), source)]
        return np.concatenate([[chosen], exact[chosen] + self.noise(setting)[0].draw(1, source)])

    def counted(self, values: Integers) -> int:
        """Rows are not counted: KeyError."""
        raise KeyError("a safeguard does not count rows")

    def released(self, setting: Setting, values: Integers) -> tuple[tuple[Positions, ...], Integers]:
        """Return the set that was chosen, and its sum."""
        chosen, value = values.tolist()
        return (self.sets[chosen],), np.array([setting.n - 2 * value if setting.replaced else value])

    def margins(self, setting: Setting, failure: Fraction) -> tuple[int, Floats]:
        """Its noise lies within its quantile."""
        return 0, np.array([setting.unit * self.noise(setting)[0].quantile(None, failure)])

    def loss(self, setting: Setting, gap: Integers, moved: int) -> Fraction:
        """Return what is proved of the loss."""
        return proved_loss(setting, self.share, moved)
