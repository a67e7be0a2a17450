"""Where values lie inside bins: by released shares of all bins or of finer ones, or by released means."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from math import sqrt
from typing import NamedTuple, final

import numpy as np

from queries.arrays import Codes, Floats, Integers
from queries.expressions import Fault
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_integers
from smalldb.exact.numbers import as_fraction
from smalldb.schema.kinds import Binned, Cuts, Dates, Kind
from smalldb.schema.kinds.binned import uniform_between

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
    """

    widths: Floats  # of the bins, ascending; in steps of their grid
    counts: Floats  # rows of each bin, from a released table
    _edges: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_edges", np.append(0.0, np.cumsum(self.widths)))

    @classmethod
    def of(cls, kind: Binned, codes: Codes) -> "BinShape":
        """Return the shape of rows of codes; gaps tell nothing."""
        spans = [drawable(kind, code) for code in range(kind.size)]
        widths = np.array([last + 1 - first for first, last in spans], dtype=np.float64)
        return cls(widths, np.bincount(codes, minlength=kind.size)[: kind.size].astype(np.float64))

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


SHARE = Fraction(1, 50)  # of epsilon, if the schema says no other
MOST_SHARE = Fraction(1, 2)  # of epsilon, for all columns together
MOST_PARTS = 64  # of a bin
BEYOND = 4.0  # deviations of noise alone: counts of a bin that are no farther off tell nothing


def as_share(share: object) -> Fraction:
    """Read a share of epsilon exactly."""
    try:
        return as_fraction(share, "share")
    except (ValueError, TypeError) as error:
        raise Fault.of(error, "share") from error


class FinerCost(NamedTuple):
    """What a release pays for the finer bins of a column; public."""

    column: str  # its name
    cuts: tuple[str, ...]  # of the finer bins
    epsilon: Fraction  # for each row of data, exact


@final
@dataclass(frozen=True, slots=True)
class FinerBins:
    """The bins of a column, each parted into up to so many of equal width, and their released counts."""

    kind: Cuts | Dates  # the finer bins. Each lies in one bin of the column.
    # how many each bin of the column has; a bin of fewer steps than were asked for has one for each step
    parts: tuple[int, ...]
    share: Fraction = SHARE  # of epsilon that their counts may cost
    counts: tuple[int, ...] | None = None  # with noise, as released; None: nothing is released yet
    variance: float = 0.0  # of the noise of a count

    @classmethod
    def of(cls, kind: object, parts: object, share: object = SHARE) -> "FinerBins":
        """Part the bins of numbers or dates."""
        if not isinstance(kind, Cuts | Dates):
            raise Fault("finer is for bins of numbers and of dates: leave it out", "finer")
        if isinstance(parts, bool) or not isinstance(parts, int) or not 2 <= parts <= MOST_PARTS:
            raise Fault(f"finer must be a whole number from 2 to {MOST_PARTS}: parts of each bin", "finer")
        if not 0 < (spent := as_share(share)) <= MOST_SHARE:
            raise Fault(f"share must be above 0 and at most {MOST_SHARE}", "share")
        counts = tuple(min(parts, last + 1 - first) for first, last in kind.all_steps)
        if sum(counts) == kind.size:
            raise Fault("finer: every bin has one value: leave it out", "finer")
        try:
            return cls(kind.parted(counts), counts, spent)
        except ValueError as error:
            raise Fault(f"finer: {error}", "finer") from error

    def released(self, counts: Sequence[int], variance: float) -> "FinerBins":
        """Return the bins with what was released: a count for each, and the variance of its noise."""
        return replace(self, counts=tuple(counts), variance=variance)

    def shape(self, coarse: BinShape) -> "FinerShape | None":
        """Return where rows lie, of which so many are in each bin of the column; None: nothing is released.

        In each bin, measured counts are shrunk towards the smooth shape of all bins, by what noise is of how
        far they are apart from it, in squares (James and Stein 1961). If noise alone is as far apart once in
        a while, the shape is left.
        """
        if self.counts is None:
            return None
        spans = [drawable(self.kind, part) for part in range(self.kind.size)]
        widths, starts = [last + 1 - first for first, last in spans], np.array([first for first, _ in spans])
        latest = self.kind.latest
        shares, ends = np.zeros(self.kind.size), np.cumsum([0, *self.parts])
        measured = np.array(self.counts, dtype=np.float64)
        times = max(1.0, float(measured.sum())) / max(1.0, float(coarse.counts.sum()))
        for code in np.flatnonzero(coarse.counts).tolist():
            inside = slice(ends[code], ends[code + 1])
            at = np.minimum(np.cumsum([0, *widths[inside]]) / coarse.widths[code], 1.0)
            rows = coarse.counts[code] * times
            smooth = np.diff(coarse.below(code, at)) * rows
            # of 30 rows in parts 10 and 20 by the shape, and measured 18 and 14: 17 and 13 add up to 30
            apart = measured[inside] + (rows - measured[inside].sum()) / self.parts[code] - smooth
            free = max(1, self.parts[code] - 1)
            far, noise = float(apart @ apart) / free, self.variance
            # squares of Laplace noise have variance 5: of 7 free ones, the mean has a deviation of .85
            clear = far > noise * (1 + BEYOND * sqrt(5 / free))
            near = np.maximum(smooth + apart * (1 - noise / far), 0.0) if clear else smooth
            near = near if latest is None else np.where(starts[inside] <= latest, near, 0.0)
            shares[inside] = near / near.sum() * coarse.counts[code]
        return FinerShape(self.kind, tuple(ends.tolist()), BinShape(np.array(widths, dtype=float), shares))


@dataclass(frozen=True, slots=True, eq=False)
class FinerShape:
    """Where the rows of a table lie among finer bins."""

    kind: Cuts | Dates  # the finer bins
    ends: tuple[int, ...]  # the number of the first one of each bin of the column, and how many there are
    shape: BinShape  # their widths, and about how many rows are in each

    def drawn_steps(self, code: int, count: int, source: BitSource) -> Integers:
        """Draw independent steps of a bin of the column: a finer bin, and a step by the shape of them all."""
        first, last = self.ends[code : code + 2]
        reached = np.cumsum(self.shape.counts[first:last])
        uniform = uniform_numbers(count, source)
        which = np.minimum(np.searchsorted(reached, uniform * reached[-1], side="right"), last - first - 1)
        steps = np.zeros(count, dtype=np.int64)
        for part in np.unique(which).tolist():
            at = np.flatnonzero(which == part)
            steps[at] = drawn_steps(self.kind, first + part, len(at), self.shape, source)
        return steps


UNITS = 1 << 16  # of a bin's width: rounding moves a mean by less than a hundred-thousandth of a bin
HALF = UNITS // 2
# of epsilon, for means, if nobody says otherwise: shares of rows have a twenty-fourth more noise
MEANS_SHARE = Fraction(1, 25)
_EXACT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])  # more digits than numbers in bins have
_CELLS = 64  # of a bin that values are drawn from
_LEAST = 1e-6  # of a bin's rows, in each cell: else no mean could be reached
_WIDE = 1 << 53  # steps of a bin that floats do not tell apart
_SPREAD = 1 / 6  # of a bin's width: about how far its mean is from that of its shape


@final
@dataclass(frozen=True, slots=True)
class InBins:
    """Numbers in bins, read as one whole number: the bin, and the offset from its middle."""

    kind: Cuts
    spans: Sequence[tuple[Decimal, Decimal]]  # of each bin

    @classmethod
    def of(cls, kind: Kind) -> "InBins":
        """Read numbers of a kind that is `measurable`."""
        if not isinstance(kind, Cuts):
            raise TypeError("only numbers in bins have offsets")
        return cls(kind, kind.spans())

    @property
    def size(self) -> int:
        """How many such numbers there are."""
        return self.kind.size * (UNITS + 1)

    def code(self, text: str) -> int | None:
        """Read a field; None: it is no number."""
        value, code = self.kind.value(text), self.kind.code(text)
        if value is None or code is None:
            return None
        return code * (UNITS + 1) + self.offset(code, value) + HALF

    def codes(self, texts: Sequence[str]) -> Sequence[int | None]:
        """Read many fields."""
        return [*map(self.code, texts)]

    # Proof: docs/proofs/curator.md, lemma 5.
    def offset(self, code: int, value: Decimal) -> int:
        """Return how far a number is above the middle of its bin, in units; beyond the bin as its end."""
        low, high = self.spans[code]
        if low == high:
            return 0
        twice = _EXACT.subtract(_EXACT.multiply(min(max(value, low), high), 2), _EXACT.add(low, high))
        units = _EXACT.divide(_EXACT.multiply(twice, HALF), _EXACT.subtract(high, low))
        return int(_EXACT.to_integral_value(units))


def measurable(kind: Kind) -> bool:
    """Tell whether there is something to measure: numbers in bins, one of which has two values at least."""
    return isinstance(kind, Cuts) and any(low < high for low, high in kind.spans())


@final
@dataclass(frozen=True, slots=True)
class BinMeans:
    """What was released of where the numbers of a column lie in its bins."""

    offsets: tuple[int, ...]  # for each bin the sum over the rows, with noise, in units
    deviation: float  # of that noise, in units
    total: float  # about how many rows the data have, with those that have no number

    def shape(self, kind: Cuts, coarse: BinShape, rows: int) -> "TiltedShape":
        """Return where the values of a synthetic table of so many rows lie."""
        counts = coarse.counts * (self.total / max(rows, 1))
        return TiltedShape(kind, coarse, np.array(self.offsets) / UNITS, counts, self.deviation / UNITS)


@final
@dataclass(frozen=True, slots=True, eq=False)
class TiltedShape:
    """
    The smooth shape of all bins, made steeper or flatter in each until its mean there is the released one.

    A released mean is shrunk towards that of the shape, by what noise is of how far they usually are apart.
    """

    kind: Cuts
    shape: BinShape
    offsets: Floats  # of each bin, in widths
    counts: Floats  # of each bin, about how many rows the data have there
    deviation: float  # of the noise of offsets, in widths

    def drawn_steps(self, code: int, count: int, source: BitSource) -> Sequence[int] | Integers:
        """Draw independent steps of a bin."""
        first, last = self.kind.steps(code)
        if last - first >= _WIDE:
            return drawn_steps(self.kind, code, count, self.shape, source)
        steps = last + 1 - first
        cells = min(_CELLS, steps)
        edges = np.array([steps * i // cells for i in range(cells + 1)])
        middles = (edges[1:] + edges[:-1] - 1) / 2
        mass = np.maximum(np.diff(self.shape.below(code, edges / steps)), 0.0) + _LEAST
        mass = self._tilted(mass / mass.sum(), middles, code, first)
        reached = np.cumsum(mass)
        which = np.searchsorted(reached, uniform_numbers(count, source) * reached[-1], side="right")
        which = np.minimum(which, cells - 1)
        inside = np.floor(uniform_numbers(count, source) * (edges[which + 1] - edges[which]))
        drawn: Integers = first + edges[which] + inside.astype(np.int64)
        return drawn

    def _tilted(self, mass: Floats, middles: Floats, code: int, first: int) -> Floats:
        """Return the shares of cells, times an exponential function that gives them the mean."""
        low, high = (Fraction(end) / self.kind.unit for end in self.kind.spans()[code])
        width = float(high - low)
        if not width or not self.counts[code]:
            return mass
        usual = float(mass @ middles)
        mean = float((low + high) / 2 - first) + width * self.offsets[code] / self.counts[code]
        noise = (self.deviation / (self.counts[code] * _SPREAD)) ** 2
        mean = usual + (mean - usual) / (1 + noise)
        least, most, centred = -1e3, 1e3, (middles - usual) / max(float(middles[-1]), 1.0)
        for _ in range(60):
            slope = (least + most) / 2
            weights = slope * centred
            tilted: Floats = mass * np.exp(weights - weights.max())
            tilted /= tilted.sum()
            least, most = (slope, most) if float(tilted @ middles) < mean else (least, slope)
        return tilted
