"""Where numbers lie in their bins: how far from the middle, and what was released of that."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import final

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.exact.bits import BitSource
from smalldb.schema.bin_shapes import BinShape, drawn_steps, uniform_numbers
from smalldb.schema.kinds import Cuts, Kind

UNITS = 1 << 16  # of a bin's width: rounding moves a mean by less than a hundred-thousandth of a bin
HALF = UNITS // 2
SHARE = Fraction(
    1, 25
)  # of epsilon, if nobody says otherwise: shares of rows have a twenty-fourth more noise
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
        return max(-HALF, min(HALF, int(_EXACT.to_integral_value(units))))


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
        found: Integers = first + edges[which] + inside.astype(np.int64)
        return found

    def _tilted(self, mass: Floats, middles: Floats, code: int, first: int) -> Floats:
        """Return the shares of cells, times an exponential function that gives them the mean."""
        low, high = (Fraction(end) / self.kind.unit for end in self.kind.spans()[code])
        width = float(high - low)
        if not width or not self.counts[code]:
            return mass
        own = float(mass @ middles)
        mean = float((low + high) / 2 - first) + width * self.offsets[code] / self.counts[code]
        noise = (self.deviation / (self.counts[code] * _SPREAD)) ** 2
        mean = own + (mean - own) / (1 + noise)
        least, most, centred = -1e3, 1e3, (middles - own) / max(float(middles[-1]), 1.0)
        for _ in range(60):
            slope = (least + most) / 2
            weights = slope * centred
            tilted: Floats = mass * np.exp(weights - weights.max())
            tilted /= tilted.sum()
            least, most = (slope, most) if float(tilted @ middles) < mean else (least, slope)
        return tilted
