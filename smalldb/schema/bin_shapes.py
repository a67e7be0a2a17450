"""Where values lie inside bins: as the shares of all bins suggest, which were released."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from queries.arrays import Codes, Floats, Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_integers
from smalldb.schema.kinds import Binned
from smalldb.schema.kinds.edges import uniform_between

_KNOTS = 65  # of a bin, between which a distribution function is linear
_DIGITS = 53  # of a uniform number; a bin of more steps is too wide for floats
_NEAR = 1e-6  # of 1: an edge that is hardly denser than its bin


@dataclass(frozen=True, slots=True, eq=False)
class BinShape:
    """
    A smooth distribution over all bins of a column, with the shares that they have.

    The distribution function goes through its values at the edges as a monotone cubic (Fritsch and Carlson
    1980). An outer bin that is emptier than its inner edge has an exponential tail instead: its density at
    this edge is the mean of both bins' densities, each weighted by the other's width.

    Parameters
    ----------
    widths
        Of the bins, ascending; in steps of their grid.
    counts
        Rows of each bin, from a released table.

    Examples
    --------
    >>> BinShape(np.array([4.0, 4.0]), np.array([5.0, 5.0])).positions(0, np.array([0.25, 0.5])).tolist()
    [0.25, 0.5]
    """

    widths: Floats
    counts: Floats
    _edges: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_edges", np.append(0.0, np.cumsum(self.widths)))

    @classmethod
    def of(cls, kind: Binned, codes: Codes) -> "BinShape":
        """Return the shape of rows of codes; gaps tell nothing."""
        widths = [last + 1 - first for first, last in (drawable(kind, code) for code in range(kind.size))]
        counts = np.bincount(codes, minlength=kind.size)[: kind.size]
        return cls(np.array(widths, dtype=np.float64), counts.astype(np.float64))

    def positions(self, code: int, uniform: Floats) -> Floats:
        """Return quantiles of the distribution within a bin, as shares of its width, at uniform numbers."""
        decay = self._decay(code)
        if decay > 0:
            # density exp(-decay t) on 0..1 from the inner edge: decay 2 has its median at .283
            nearer = uniform if code else 1 - uniform
            distance: Floats = -np.log1p(nearer * np.expm1(-decay)) / decay
            return distance if code else 1 - distance
        grid, rising = self._rising(code)
        return np.asarray(np.interp(uniform * self.counts[code], rising, grid), dtype=np.float64)

    def below(self, code: int, at: Floats) -> Floats:
        """Return the share of a bin's rows below positions, which are shares of its width: from 0 to 1."""
        decay = self._decay(code)
        if decay > 0:
            nearer = at if code else 1 - at
            share: Floats = np.expm1(-decay * nearer) / np.expm1(-decay)
            return share if code else 1 - share
        grid, rising = self._rising(code)
        return np.asarray(np.interp(at, grid, rising / rising[-1]), dtype=np.float64)

    def _rising(self, code: int) -> tuple[Floats, Floats]:
        """Return knots of a bin that is no tail, and how many of its rows are below each."""
        from scipy.interpolate import PchipInterpolator

        below = np.append(0.0, np.cumsum(self.counts))
        grid = np.linspace(0.0, 1.0, _KNOTS)
        at = PchipInterpolator(self._edges, below)(self._edges[code] + grid * self.widths[code])
        return grid, np.maximum.accumulate(at - below[code])

    def _decay(self, code: int) -> float:
        """Return the rate at which an outer bin's density falls, for a width of 1; 0: it is no tail."""
        from scipy.special import lambertw

        if 0 < code < len(self.widths) - 1:
            return 0.0
        width, beside = self.widths[code], self.widths[1 if code == 0 else code - 1]
        dense, denser = self.counts[code] / width, self.counts[1 if code == 0 else code - 1] / beside
        edge = (dense * beside + denser * width) / (width + beside)
        if not dense or edge <= dense * (1 + _NEAR):
            return 0.0
        # of mean density 1, exp(-decay t) times r has decay / (1 - exp(-decay)) = r
        ratio = edge / dense
        return float(ratio + lambertw(-ratio * np.exp(-ratio)).real)


def drawable(kind: Binned, code: int) -> tuple[int, int]:
    """Return the first and the last step that values of a bin are drawn from: no date is ahead of today."""
    first, last = kind.steps(code)
    latest = kind.latest
    return first, last if latest is None or latest < first else min(last, latest)


def drawn_steps(
    kind: Binned, code: int, count: int, shape: BinShape, source: BitSource
) -> Sequence[int] | Integers:
    """Draw independent steps of a bin: by the shape of its column; uniformly in a bin too wide for floats."""
    first, last = drawable(kind, code)
    if last - first >= 1 << _DIGITS:
        return uniform_between(first, last, count, source)
    at = shape.positions(code, uniform_numbers(count, source))
    inside = np.floor(at * (last + 1 - first)).astype(np.int64)
    return first + np.clip(inside, 0, last - first)


def uniform_numbers(count: int, source: BitSource) -> Floats:
    """Draw independent uniform numbers between 0 and 1, of 53 digits."""
    return (uniform_integers(1 << _DIGITS, count, source).astype(np.float64) + 0.5) * 2.0**-_DIGITS
