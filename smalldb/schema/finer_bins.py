"""Finer bins of a column, which a release measures beside its model: values then follow the data in a bin."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import NamedTuple, final

import numpy as np

from queries.faults import Fault
from smalldb.exact.bits import BitSource
from smalldb.exact.numbers import as_fraction
from smalldb.schema.bin_shapes import BinShape, drawable, drawn_steps, uniform_numbers
from smalldb.schema.kinds import Cuts, Dates

SHARE = Fraction(1, 50)  # of epsilon, if the schema says no other
MOST_SHARE = Fraction(1, 2)  # of epsilon, for all columns together
MOST_PARTS = 64  # of a bin
BEYOND = 4.0  # deviations of noise alone: counts of a bin that are no farther off tell nothing


def as_share(given: object) -> Fraction:
    """Read a share of epsilon exactly."""
    try:
        return as_fraction(given, "share")
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
        spans = map(kind.steps, range(kind.size))
        own = tuple(min(parts, last + 1 - first) for first, last in spans)
        if sum(own) == kind.size:
            raise Fault("finer: no bin has two values: leave it out", "finer")
        try:
            return cls(kind.parted(own), own, spent)
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
        found, ends = np.zeros(self.kind.size), np.cumsum([0, *self.parts])
        measured = np.array(self.counts, dtype=np.float64)
        times = max(1.0, float(measured.sum())) / max(1.0, float(coarse.counts.sum()))
        for code in np.flatnonzero(coarse.counts).tolist():
            own = slice(ends[code], ends[code + 1])
            at = np.minimum(np.cumsum([0, *widths[own]]) / coarse.widths[code], 1.0)
            rows = coarse.counts[code] * times
            smooth = np.diff(coarse.below(code, at)) * rows
            # of 30 rows in parts 10 and 20 by the shape, and measured 18 and 14: 17 and 13 add up to 30
            apart = measured[own] + (rows - measured[own].sum()) / self.parts[code] - smooth
            free = max(1, self.parts[code] - 1)
            far, noise = float(apart @ apart) / free, self.variance
            # squares of Laplace noise have variance 5: of 7 free ones, the mean has a deviation of .85
            told = far > noise * (1 + BEYOND * sqrt(5 / free))
            near = np.maximum(smooth + apart * (1 - noise / far), 0.0) if told else smooth
            near = near if latest is None else np.where(starts[own] <= latest, near, 0.0)
            found[own] = near / near.sum() * coarse.counts[code]
        return FinerShape(self.kind, tuple(ends.tolist()), BinShape(np.array(widths, dtype=float), found))


@dataclass(frozen=True, slots=True, eq=False)
class FinerShape:
    """Where the rows of a table lie among finer bins."""

    kind: Cuts | Dates  # the finer bins
    ends: tuple[int, ...]  # the number of the first one of each bin of the column, and how many there are
    shape: BinShape  # their widths, and about how many rows are in each

    def drawn_steps(self, code: int, count: int, source: BitSource) -> list[int]:
        """Draw independent steps of a bin of the column: a finer bin, and a step by the shape of them all."""
        first, last = self.ends[code : code + 2]
        reached = np.cumsum(self.shape.counts[first:last])
        uniform = uniform_numbers(count, source)
        which = np.minimum(np.searchsorted(reached, uniform * reached[-1], side="right"), last - first - 1)
        steps = np.zeros(count, dtype=np.int64)
        for part in np.unique(which).tolist():
            at = np.flatnonzero(which == part)
            steps[at] = drawn_steps(self.kind, first + part, len(at), self.shape, source)
        found: list[int] = steps.tolist()
        return found
