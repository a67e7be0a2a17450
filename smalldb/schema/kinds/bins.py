"""Numbers, in bins."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import ClassVar, final

from smalldb.exact.numbers import as_text
from smalldb.schema.kinds.edges import (
    BINS,
    bin_names,
    check_bins,
    check_cuts,
    equal_steps,
    listed,
)
from smalldb.schema.kinds.kind import Value
from smalldb.schema.kinds.number_format import PLAIN, NumberFormat, as_decimal

MAX_DECIMALS = 12
FINER = 2  # digits that a drawn value has beyond those of edges that are not whole


@final
@dataclass(frozen=True, slots=True)
class Cuts:
    """A number, read as its bin: below the first cut, from each cut to the next, or from the last cut on.

    Numbers are compared exactly, as decimals. Beyond `low` and `high` they count in the outer bins.
    The value of a bin is its middle; where the cuts and the range are whole, its (lower) middle integer.

    Parameters
    ----------
    cuts
        Ascending, at least one.
    low, high
        The range that the values of the outer bins are taken from: ``low < cuts[0]``, ``high >= cuts[-1]``.
    decimals
        Digits of a drawn value behind the point; None: none where cuts and range are whole, and two more than
        these have where they are not.
    numbers
        How fields write numbers. Other formats than the plain one are written as text.
    """

    codings: ClassVar[tuple[str, ...]] = BINS
    spelling: ClassVar[str] = (
        "a number is written plainly, as 1234.5: no percent sign or unit, no NaN or infinity, and no spaces "
        "or commas between digits, but for the signs of decimal and thousands"
    )
    labels: ClassVar[None] = None
    ordered: ClassVar[bool] = True
    measure: ClassVar[str] = "numbers"

    cuts: tuple[Decimal, ...]
    low: Decimal
    high: Decimal
    decimals: int
    numbers: NumberFormat = PLAIN

    def __init__(
        self,
        cuts: Iterable[object],
        low: object,
        high: object,
        decimals: int | None = None,
        numbers: NumberFormat = PLAIN,
    ) -> None:
        edges = tuple(as_decimal(cut, "cuts") for cut in listed(cuts, "cuts"))
        ends = as_decimal(low, "range"), as_decimal(high, "range")
        check_cuts(edges, *ends)
        digits = max(-min(0, int(edge.normalize().as_tuple().exponent)) for edge in (*edges, *ends))
        if decimals is None:
            decimals = digits and digits + FINER
        elif isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= MAX_DECIMALS:
            raise ValueError(f"decimals must be a whole number from 0 to {MAX_DECIMALS}")
        object.__setattr__(self, "cuts", edges)
        object.__setattr__(self, "low", ends[0])
        object.__setattr__(self, "high", ends[1])
        object.__setattr__(self, "decimals", decimals)
        object.__setattr__(self, "numbers", numbers)
        if any(low > high for low, high in map(self.steps, range(self.size))):
            raise ValueError(f"decimals: no number of {decimals} digits lies in one of the bins")

    @classmethod
    def of_bins(
        cls,
        bins: object,
        low: object,
        high: object,
        decimals: int | None = None,
        numbers: NumberFormat = PLAIN,
    ) -> "Cuts":
        """
        Make bins of equal width; of whole numbers, equally many in each, to within one.

        Parameters
        ----------
        bins
            How many, from 2 on.
        low, high
            The first and the last value. Whole ones, with a whole number for each bin, make bins of whole
            numbers; others must part into bins whose cuts are decimal numbers.
        decimals, numbers
            As for `Cuts`.
        """
        wanted, first, last = check_bins(bins), as_decimal(low, "range"), as_decimal(high, "range")
        cuts: list[object]
        if first == int(first) and last == int(last) and wanted <= last - first + 1:
            cuts = [*equal_steps(int(first), int(last), wanted)]
        else:
            width = (Fraction(last) - Fraction(first)) / wanted
            if width <= 0 or "/" in as_text(width):
                raise ValueError("bins: the range does not part into so many bins with decimal cuts")
            cuts = [Fraction(first) + i * width for i in range(1, wanted)]
        return cls(cuts, low, high, decimals, numbers)

    def parted(self, parts: Sequence[int]) -> "Cuts":
        """Return bins that lie in these, so many in each, of equally many steps to within one."""
        cuts: list[Decimal] = []
        for code, count in enumerate(parts):
            cuts += [self.cuts[code - 1]] if code else []
            cuts += [Decimal(step).scaleb(-self.decimals) for step in equal_steps(*self.steps(code), count)]
        return Cuts(cuts, self.low, self.high, self.decimals, self.numbers)

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.cuts) + 1

    @property
    def dtype(self) -> str:
        """Int64 where the values are whole."""
        if not self.numbers.plain:
            return "str"
        return "float64" if self.decimals else "Int64"

    @property
    def cuts_told(self) -> Sequence[str]:
        """The cuts, plainly written."""
        return [f"{cut:f}" for cut in self.cuts]

    @property
    def unit(self) -> Fraction:
        """One of the last of `decimals` digits."""
        return Fraction(1, 10**self.decimals)

    def value(self, text: str) -> Decimal | None:
        """Read the number of a field."""
        return self.numbers.read(text)

    def code(self, text: str) -> int | None:
        """Find the bin of a field."""
        number = self.numbers.read(text)
        return None if number is None else bisect_right(self.cuts, number)

    def side(self, text: str) -> int:
        """Tell whether a field is below (-1) or above (1) the range; 0: it is within, or none."""
        number = self.numbers.read(text)
        return 0 if number is None else (number > self.high) - (number < self.low)

    def names(self, column: str, coding: str) -> list[str]:
        """Name each bin, or what reaches each cut."""
        return bin_names(column, self.cuts_told, coding)

    def values(self) -> Sequence[Value]:
        """Return the middle of each bin."""
        edges = [Fraction(number) for number in (self.low, *self.cuts, self.high)]
        if self.decimals:
            middles: list[Value] = [float((a + b) / 2) for a, b in pairwise(edges)]
        else:
            middles = [sum(self.steps(code)) // 2 for code in range(self.size)]
        return middles if self.numbers.plain else [self._text(Decimal(str(value))) for value in middles]

    def steps(self, code: int) -> tuple[int, int]:
        """Return the first and the last number of a bin, in units of the last of `decimals` digits."""
        edges = (self.low, *self.cuts, self.high)
        low, high = (Fraction(edge) * 10**self.decimals for edge in edges[code : code + 2])
        last = high.__floor__() if code == len(self.cuts) else ceil(high) - 1
        return ceil(low), last

    def at(self, step: int) -> Value:
        """Return a number of so many units of the last digit."""
        if not self.numbers.plain:
            return self._text(Decimal(step).scaleb(-self.decimals))
        return step / 10**self.decimals if self.decimals else step

    def written(self, text: str) -> str:
        """Write a number with all its digits, and without an exponent."""
        return f"{Decimal(text):f}" if self.numbers.plain else text

    def _text(self, value: Decimal) -> str:
        """Write a number with all its digits: 7889,70 where it has two."""
        full = f"{value:.{self.decimals}f}"
        return self.numbers.write(full if Decimal(full) == value else f"{value:f}")
