"""Numbers of a question that lie in bins: which bins' means were measured well enough to count by them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from queries.arrays import Booleans, Floats
from smalldb.exact.bits import SeededBits
from smalldb.inference.evidence import QuestionCells, evidence_of
from smalldb.inference.least_variance import least_variance
from smalldb.inference.questions import Term
from smalldb.mechanisms.measurement import Offsets
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.noise.noise_protocol import Noise
from smalldb.noise.simulating import DRAWS, Uniforms
from smalldb.schema.bin_shapes import BinShape

USUAL = 2.0  # deviations of noise that an interval has on either side
SPREAD = 6.0  # widths of a bin by deviations of its mean, from bin to bin


@dataclass(frozen=True, slots=True, eq=False)
class InsideBins:
    """What was measured of where the numbers of a term lie in their bins, by category of the column."""

    number: int  # of the measurement
    noise: Noise  # of the sums, in units of widths
    measured: Booleans  # the bins whose sums are used
    shares: Floats  # of the rows of a bin that the term counts
    sums: Floats  # of how far numbers are above the middle of their bin, of these rows
    counts: Floats  # about how many rows are in each bin
    means: Floats  # of each bin the mean offset, estimated
    widths: Floats
    units: int  # of a width
    alone: bool  # whether all rows of a bin count, or none

    @property
    def weights(self) -> Floats:
        """What a unit of noise of each bin adds to the sum of numbers."""
        return self.measured * self.shares * self.widths / self.units

    def shifts(self, middles: Floats) -> tuple[float, float, float]:
        """Return what offsets add to the sum of numbers, to that of squares, and to a guess of the sum."""
        if not self.alone:  # the numbers are means then
            return 0.0, 0.0, 0.0
        sums, guessed = np.where(self.measured, self.sums, 0.0), self.means * self.counts
        guessed = np.where(self.measured, self.sums, guessed * self.shares)
        return float(sums.sum()), float(2 * sums @ middles), float(guessed.sum())

    def counting(self, term: Term) -> Term:
        """Return the term that counts numbers as the middles of measured bins, or as their means."""
        assert term.binned is not None
        along = [-1 if c == term.of else 1 for c in term.columns]
        measured, means = self.measured.reshape(along), self.means.reshape(along)
        middles = term.numerator if self.alone else term.numerator + means * term.rows
        lows, highs = (np.where(measured, middles, ends) for ends in term.binned)
        spread = (self.measured * self.widths**2 / 4).reshape(along) * term.rows
        return replace(term, numerator=middles, binned=(lows, highs), spread=spread)


# Proof: docs/proofs/noise.md, lemma 9.
def inside_bins(measurements: Measurements, term: Term, assuming: bool) -> InsideBins | None:
    """
    Return what was measured of the bins of a term; None: nothing that serves.

    Where a condition looks at other columns, the mean of a bin among the rows that meet it was not measured:
    it is that of all rows of the bin if `assuming`, and else nothing serves.

    Of few rows in a bin it is better to count with its ends than with noise: whichever leaves the shorter
    interval.
    """
    if term.of is None or term.binned is None:
        return None
    measurement = _measured(measurements, term.of)
    if measurement is None:
        return None
    number, part, noise, values = measurement
    axes = tuple(a for a, c in enumerate(term.columns) if c != term.of)
    used = np.asarray(term.rows.any(axis=axes))
    others = np.asarray((measurements.domain.allowed(term.columns) & ~term.rows).any(axis=axes))
    alone = not (others & used).any()
    if not alone and not assuming:
        return None
    lows, highs = (
        np.where(used, ends.max(axes, where=term.rows, initial=-1e300), 0.0) for ends in term.binned
    )
    widths = highs - lows
    counts = _counts(measurements, (term.of,), term.of, np.ones(len(used), dtype=bool))
    if counts is None:
        return None
    shares = used.astype(np.float64)
    if not alone:
        counted = _counts(measurements, term.columns, term.of, term.rows)
        if counted is None:
            return None
        shares = np.clip(counted / np.maximum(counts, 1.0), 0.0, 1.0) * used
    offsets = np.zeros(len(used))
    offsets[: part.bins] = values / part.units
    deviation = sqrt(noise.variance()) / part.units
    reach, apart = np.maximum(counts, 0.0) / 2, widths * shares
    measured = _chosen(reach * apart, USUAL * deviation * apart, counts)
    if not measured.any():
        return None
    usual, rows = np.zeros(len(used)), np.maximum(counts, 1e-9)
    usual[: part.bins] = _usual(widths[: part.bins], counts[: part.bins])
    noise_of_mean = (SPREAD * deviation / rows) ** 2 * ~measured
    means = np.clip(usual + (offsets / rows - usual) / (1 + noise_of_mean), -0.5, 0.5)
    sums = offsets * widths * shares
    return InsideBins(
        number, noise, measured, shares, sums, counts, means * widths, widths, part.units, alone
    )


def _usual(widths: Floats, counts: Floats) -> Floats:
    """Return about how far the mean of each bin is from its middle, in widths, by the shape of all bins."""
    least = widths[widths > 0].min(initial=np.inf)
    shape = BinShape(np.where(widths > 0, widths, least), np.maximum(counts, 0.0))
    at = np.linspace(0.0, 1.0, 65)
    return np.array(
        [
            0.5 - float(np.trapezoid(shape.below(code, at), at)) if count > 0 else 0.0
            for code, count in enumerate(shape.counts)
        ]
    )


def _measured(measurements: Measurements, column: int) -> tuple[int, Offsets, Noise, Floats] | None:
    """Return the measurement of the offsets of a column."""
    for number, each in enumerate(measurements):
        for part, values in each.tables():
            if isinstance(part, Offsets) and part.columns == (column,):
                return number, part, each.noise, values.astype(np.float64)
    return None


def _counts(
    measurements: Measurements, columns: tuple[int, ...], column: int, rows: Booleans
) -> Floats | None:
    """Return about how many rows are in each category of a column, of those that are asked about."""
    axis = columns.index(column)
    along = [-1 if a == axis else 1 for a in range(rows.ndim)]
    every = np.arange(rows.shape[axis])
    arrays = [np.asarray(rows & (every == code).reshape(along), dtype=np.float64) for code in every]
    try:
        question, cells = QuestionCells.of(measurements, columns, arrays)
    except ValueError:  # too many
        return None
    sums = least_variance(evidence_of(measurements, question), cells, measurements.n)
    counts: Floats = sums.values
    return counts if sums.known.all() else None


def _chosen(by_ends: Floats, by_noise: Floats, counts: Floats) -> Booleans:
    """Return which bins to count by what was measured: by ends half lengths add up, by noise squares."""
    best, least = np.zeros(len(counts), dtype=bool), float(by_ends.sum())
    for order in (np.argsort(-counts), np.argsort(-by_ends / np.maximum(by_noise**2, 1e-300))):
        lengths = np.sqrt(np.cumsum(by_noise[order] ** 2)) + by_ends.sum() - np.cumsum(by_ends[order])
        at = int(np.argmin(lengths))
        if lengths[at] < least:
            best, least = np.zeros(len(counts), dtype=bool), float(lengths[at])
            best[order[: at + 1]] = True
    return best & (by_noise > 0)


# Proof: docs/proofs/noise.md, lemma 9.
def simulated(inside: Sequence[InsideBins | None]) -> Floats:
    """Return the noise of what offsets add to the numbers of terms, simulated: shape (DRAWS, terms)."""
    total = np.zeros((DRAWS, len(inside)))
    for number in sorted({each.number for each in inside if each is not None}):
        same = [each if each is not None and each.number == number else None for each in inside]
        noise = next(each.noise for each in same if each is not None)
        size = next(len(each.shares) for each in same if each is not None)
        weights = np.column_stack([np.zeros(size) if each is None else each.weights for each in same])
        total += noise.simulated(weights, np.arange(size), Uniforms(SeededBits(2 + number)))
    return total
