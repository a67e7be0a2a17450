"""Numbers, in bins."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, final

import numpy as np

from queries.expressions import Fault
from smalldb.exact.numbers import as_text
from smalldb.schema.kinds.binned import CUTS, KEYS, Binned, build_bins, check_bins, equal_steps, listed, span
from smalldb.schema.kinds.kind import (
    PLAIN,
    SIGNS,
    InSql,
    NumberFormat,
    Spec,
    Value,
    as_decimal,
    number_format,
)

MAX_DECIMALS = 12
WHOLE = "decimals = 0  # whole numbers; or as many digits after the point as the data have"
DIGITS = "decimals = []  # as many digits after the point as the data have; 0 if all are whole"
FINER = 2  # digits that a drawn value has beyond those of edges that are not whole
MANY = 16  # fields of which it is quicker to compare floats first
_DIGITS = frozenset("0123456789.+-")
EXACT = 15  # digits of a decimal number that a float keeps: comparisons with so many are exact


@final
@dataclass(frozen=True, slots=True)
class Cuts(Binned):
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

    spelling: ClassVar[str] = (
        "a number is written plainly, as 1234.5: no percent sign or unit, no NaN or infinity, and no spaces "
        "or commas between digits, except the signs of decimal and thousands"
    )
    measure: ClassVar[str] = "numbers"

    cuts: tuple[Decimal, ...]
    low: Decimal
    high: Decimal
    decimals: int
    numbers: NumberFormat = PLAIN
    whole: bool = field(
        init=False, repr=False, compare=False
    )  # the schema states that no number has a fraction
    edges: tuple[Decimal, ...] = field(init=False, repr=False, compare=False)
    unit: Fraction = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        cuts: Iterable[object],
        low: object,
        high: object,
        decimals: int | None = None,
        numbers: NumberFormat = PLAIN,
    ) -> None:
        edges = [as_decimal(cut, "cuts") for cut in listed(cuts, "cuts")]
        first, last = as_decimal(low, "range"), as_decimal(high, "range")
        whole = decimals == 0
        digits = max(-min(0, int(edge.normalize().as_tuple().exponent)) for edge in (*edges, first, last))
        if decimals is None:
            decimals = digits and digits + FINER
        elif isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= MAX_DECIMALS:
            raise Fault(f"decimals must be a whole number from 0 to {MAX_DECIMALS}", "decimals")
        stated = {"cuts": tuple(edges), "low": first, "high": last, "decimals": decimals, "numbers": numbers}
        self._set_edges((first, *edges), last, **stated, whole=whole, unit=Fraction(1, 10**decimals))
        if any(low > high for low, high in self.all_steps):
            raise Fault(f"decimals: no number of {decimals} digits lies in one of the bins", "decimals")

    @classmethod
    def of_bins(
        cls,
        bins: object,
        low: object,
        high: object,
        decimals: int | None = None,
        numbers: NumberFormat = PLAIN,
    ) -> "Cuts":
        """Make so many bins of equal width; of whole numbers, equally many in each, to within one."""
        wanted, first, last = check_bins(bins), as_decimal(low, "range"), as_decimal(high, "range")
        cuts: list[object]
        if first == int(first) and last == int(last) and wanted <= last - first + 1:
            cuts = [*equal_steps(int(first), int(last), wanted)]
        else:
            width = (Fraction(last) - Fraction(first)) / wanted
            if width <= 0 or "/" in as_text(width):
                raise Fault("bins: the range cannot be divided into so many bins with decimal cuts", "bins")
            cuts = [Fraction(first) + i * width for i in range(1, wanted)]
        return cls(cuts, low, high, decimals, numbers)

    def with_cuts(self, cuts: Iterable[object]) -> "Cuts":
        """Return the same numbers with other cuts."""
        other = Cuts(cuts, self.low, self.high, self.decimals, self.numbers)
        other._set(whole=self.whole)
        return other

    def cut_at(self, step: int) -> Decimal:
        """State a number of so many units of the last digit."""
        return Decimal(step).scaleb(-self.decimals)

    @property
    def dtype(self) -> str:
        """Int64 where the values are whole."""
        return ("float64" if self.decimals else "Int64") if self.numbers.plain else "str"

    @property
    def cut_texts(self) -> Sequence[str]:
        """The cuts, plainly written."""
        return [f"{cut:f}" for cut in self.cuts]

    def value(self, text: str) -> Decimal | None:
        """Read the number of a field."""
        return self.numbers.read(text)

    def codes(self, texts: Sequence[str]) -> Sequence[int | None]:
        """Find the bins of many fields: rounding keeps order, so floats tell all but those at a cut."""
        numbers = np.array([])
        if self.numbers.plain and len(texts) > MANY and set("".join(texts)) <= _DIGITS:
            with suppress(ValueError):  # of what is no number
                numbers = np.array([*map(float, texts)])
        if len(numbers) < len(texts):
            return [*map(self.code, texts)]
        cuts = np.array([*map(float, self.cuts)])
        codes: list[int | None] = np.searchsorted(cuts, numbers, side="right").tolist()
        for i in np.flatnonzero(np.isin(numbers, cuts)).tolist():
            codes[i] = self.code(texts[i])
        return codes

    def splits(self, text: str) -> bool:
        """Tell whether a field is a fraction that is read as a whole number."""
        number = None if self.decimals else self.numbers.read(text)
        return number is not None and number != number.to_integral_value()

    def values(self) -> Sequence[Value]:
        """Return the middle of each bin."""
        if not self.decimals:
            middles: list[Value] = [sum(steps) // 2 for steps in self.all_steps]
        else:
            middles = [float((Fraction(a) + Fraction(b)) / 2) for a, b in pairwise(self.edges)]
        return middles if self.numbers.plain else [self._text(Decimal(str(value))) for value in middles]

    def at(self, step: int) -> Value:
        """Return a number of so many units of the last digit."""
        if not self.numbers.plain:
            return self._text(self.cut_at(step))
        return step / 10**self.decimals if self.decimals else step

    def written(self, text: str) -> str:
        """Write a number with all its digits, and without an exponent."""
        return f"{Decimal(text):f}" if self.numbers.plain else text

    def ends(self) -> Sequence[tuple[float, float]]:
        """Return the least and the largest number of each bin; with fractions, the ends of the bin."""
        return [(float(low), float(high)) for low, high in self.spans()]

    def spans(self) -> Sequence[tuple[Decimal, Decimal]]:
        """Return them exactly."""
        if not self.whole:
            return [*pairwise(self.edges)]
        return [(Decimal(low), Decimal(high)) for low, high in self.all_steps]

    def in_sql(self) -> InSql | None:
        """Return the bins of numbers that a float holds."""
        digits = [cut.replace("-", "").replace(".", "").strip("0") for cut in self.cut_texts]
        if not self.numbers.plain or any(len(text) > EXACT for text in digits):
            return None
        return InSql("number", tuple(f"{edge:f}" for edge in (self.low, *self.cuts)), _plainly)

    def _text(self, value: Decimal) -> str:
        """Write a number with all its digits: 7889,70 where it has two."""
        full = f"{value:.{self.decimals}f}"
        return (full if Decimal(full) == value else f"{value:f}").replace(".", self.numbers.decimal)


def _plainly(text: str) -> str | None:
    """Write a text that means a gap as a number, if it is one."""
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    return f"{number:f}" if number.is_finite() else None


SPEC = Spec(
    "cuts",
    lambda table: build_bins(Cuts, table, *span(table), table.get("decimals"), number_format(table)),
    {**KEYS, "cuts": (str, list), "decimals": int, **SIGNS, "share": (str, int, Decimal), "finer": int}
    | {"coding": str},
    "cuts = [18, 65], range = [0, 110]; or range = [0, 110], bins = 10",
    needed=(("cuts", "bins"), ("range",)),
    questions=(
        ("range", "lowest and highest"),
        CUTS,
        ("decimals", "digits after the point (0 or empty: all numbers are whole)"),
    ),
    draft=f"cuts = []  # ascending; or bins = 10\nrange = []  # lowest and highest\n{WHOLE}",
    learns="cuts",
)
