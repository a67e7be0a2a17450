"""What a part of a plan is: some noisy counts of one law; and what the laws' plans have in common."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from queries import Rows
from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.marginals.contrasts.setting import Setting
from smalldb.marginals.contrasts.spectrum import Positions, Spectrum
from smalldb.noise.distributions import Noise
from smalldb.noise.privacy_loss import Loss

SHARES = 64  # shares are multiples of 1/64

Predict: TypeAlias = Callable[[], Integers]
"""What the parts before one predict for its counts, from released integers alone."""


class Part(Protocol):
    """Some counts that are released together, with noise of one law: a frozen value, public as a whole.

    A new kind is a class of this shape in a file of its own, and a line in `part_list.py`.

    Attributes
    ----------
    law
        The name of the law.
    pure
        Whether it is purely epsilon-DP, without a delta.
    unaudited
        Why its loss cannot be computed; None: `loss` is exact.
    """

    law: ClassVar[str]
    pure: ClassVar[bool]
    unaudited: ClassVar[str | None]

    @classmethod
    def designs(cls, setting: Setting) -> "Iterable[tuple[Part, ...]]":
        """Yield the plans that start with this law: parts whose shares sum to 1."""

    @property
    def sets(self) -> tuple[Positions, ...]:
        """The parities that it counts; under add-remove the first part counts the rows too: the empty set."""

    @property
    def share(self) -> Fraction:
        """Its share of epsilon."""

    @property
    def deviations(self) -> Mapping[int, float]:
        """The standard deviation of the noise in the sum of chi_S over the rows, for sets of each order.

        For 0, in the number of rows, where the part counts these (under replace-one they are public).
        """

    def total_loss(self, setting: Setting) -> Loss:
        """Return what it loses between any two neighbours."""

    def rate(self, setting: Setting) -> Fraction:
        """Return the rate r of its noise: a value that is off by one more is e^r times less probable."""

    def noise(self, setting: Setting) -> tuple[Noise, ...]:
        """Return the distributions of its noise, in the order of what they are added to."""

    def exact(self, rows: Rows, sums: Integers) -> Integers:
        """Return what is measured, without noise; `sums` are the counts of its sets. Private.

        Parameters
        ----------
        rows
            The data.
        sums
            One a set: under replace-one the rows with an odd number of ones on it, under add-remove the sum
            of chi_S; int64.
        """

    def draw(self, setting: Setting, exact: Integers, source: BitSource, predict: Predict) -> Integers:
        """Release what is measured, with exact noise: int64.

        Parameters
        ----------
        setting
            What the part is planned with.
        exact
            The numbers that are measured: int64.
        source
            Where random bits come from.
        predict
            What the parts before this one predict for its counts, from released integers alone.
        """

    def counted(self, values: Integers) -> int:
        """Return the number of rows as it was released, where `deviations` has one for it."""

    def released(self, setting: Setting, values: Integers) -> tuple[tuple[Positions, ...], Integers]:
        """Return the parities that it measured, and their released sums of chi_S over the rows.

        Parameters
        ----------
        setting
            What the part is planned with.
        values
            What `draw` returned.
        """

    def margins(self, setting: Setting, failure: Fraction) -> tuple[int, Integers | Floats]:
        """Return what the noise of the number of rows, and of each of the released sums, does not exceed.

        All at once, but for a probability `failure`, and of each sum that the queries have.

        Parameters
        ----------
        setting
            What the part is planned with.
        failure
            In (0, 1), exactly.

        Returns
        -------
        of_rows, of_sums
            0 where rows are not counted; and one for each sum that `released` returns.
        """

    def direct(
        self, setting: Setting, values: Integers, failure: Fraction
    ) -> tuple[Floats, Floats, Floats] | None:
        """Return between which sums each query lies; None: its parities say it all.

        Low and high ends, shape (J,), and the size of the terms that they were added up from.

        Parameters
        ----------
        setting
            What the part is planned with.
        values
            What was released.
        failure
            The probability with which any of them may lie elsewhere.
        """

    def loss(self, setting: Setting, gap: Integers, moved: int) -> Fraction:
        """Return the privacy loss between tables whose counts differ by `gap`, and whose cells by `moved`.

        Exact, or at least what is proved: see `unaudited`.

        Parameters
        ----------
        setting
            What the part is planned with.
        gap
            How far what is measured lies apart in the two tables: absolute differences of `exact`, int64.
        moved
            The sum of absolute differences of the cells' counts: 2 for a row that is replaced, 1 for one that
            is added or removed.
        """


class Counted:
    """A `Part` that releases the count of each of its sets; under add-remove first that of the rows."""

    __slots__ = ()

    sets: tuple[Positions, ...]
    share: Fraction

    def total_loss(self, setting: Setting) -> Loss:
        """Return what loses most of all that is pure."""
        return Loss.pure(setting.epsilon * self.share)

    def exact(self, rows: Rows, sums: Integers) -> Integers:
        """Return the counts of the sets."""
        return sums

    def counted(self, values: Integers) -> int:
        """Return the first count."""
        return int(values[0])

    def released(self, setting: Setting, values: Integers) -> tuple[tuple[Positions, ...], Integers]:
        """Return the sets and their sums."""
        return counted_sums(setting, self.sets, values)

    def direct(self, setting: Setting, values: Integers, failure: Fraction) -> None:
        """Nothing more."""
        return None


def counted_sums(
    setting: Setting, sets: tuple[Positions, ...], values: Integers
) -> tuple[tuple[Positions, ...], Integers]:
    """Return the parities of counted sets, without the empty one, and their sums of chi_S over the rows.

    Parameters
    ----------
    setting
        What the part is planned with: its relation and n.
    sets
        The parities that were counted; under add-remove the first may be the empty one.
    values
        The released counts, one a set: under replace-one the rows with odd parity, else the sums themselves.
    """
    if setting.replaced:
        return sets, setting.n - 2 * values
    first = int(not sets[0])
    return sets[first:], values[first:]


def each_margin(
    setting: Setting, sets: tuple[Positions, ...], margins: Mapping[int, float]
) -> tuple[int, Floats]:
    """Return the margins of counts, known by the order of their sets, as `Part.margins` does.

    Parameters
    ----------
    setting
        What the part is planned with.
    sets
        The parities that were counted; the empty one is the number of rows.
    margins
        For each order what the noise of a count does not exceed; for 0, that of the number of rows.
    """
    some = np.array([margins[len(positions)] for positions in sets if positions])
    return ceil(margins.get(0, 0)), setting.unit * some


def proved_loss(setting: Setting, share: Fraction, moved: int) -> Fraction:
    """Return what is proved of a loss: a share of epsilon for each row replaced, added or removed.

    Parameters
    ----------
    setting
        What the part is planned with: epsilon and the relation.
    share
        The part's share of epsilon.
    moved
        As for `Part.loss`.
    """
    return setting.epsilon * share * (moved // setting.unit)


def attributes_of(sets: tuple[Positions, ...]) -> tuple[int, ...]:
    """Return the attributes that some set holds, ascending."""
    return tuple(sorted({i for positions in sets for i in positions}))


def sets_of(series: Spectrum, lowest: int, highest: int) -> tuple[Positions, ...]:
    """Return the parities of some orders.

    Parameters
    ----------
    series
        The queries as sums of parities.
    lowest, highest
        The orders, both included.
    """
    start = int(np.searchsorted(series.orders, lowest))
    return series.sets[start : int(np.searchsorted(series.orders, highest, side="right"))]


def heaviest_constant(series: Spectrum) -> float:
    """Return how often a query counts the number of rows at most."""
    return float(np.abs(series.constants).max())


def worst(series: Spectrum, weights: Mapping[int, float]) -> float:
    """Return the largest sum over a query's parities of its squared coefficient times its order's weight.

    Parameters
    ----------
    series
        The queries as sums of parities.
    weights
        Of each order; one that is not there weighs 0.
    """
    return series.kinds.worst(np.array([weights.get(o, 0.0) for o in range(series.orders[-1] + 1)]))


def shares_of(weights: list[float]) -> list[Fraction]:
    """Round shares that are proportional to the weights to multiples of 1 / SHARES, none 0.

    Where there are more weights than that, to multiples of 1 / their number.
    """
    units = max(SHARES, len(weights))
    parts = [max(1, round(units * weight / sum(weights))) for weight in weights]
    while (left := units - sum(parts)) != 0:
        parts[int(np.argmax(parts))] += 1 if left > 0 else -1
    return [Fraction(part, units) for part in parts]
