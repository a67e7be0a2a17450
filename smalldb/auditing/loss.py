"""What an audit finds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import nan

from queries.late import pd
from smalldb.counting.databases import Counts
from smalldb.exact.numbers import float_above
from smalldb.showing import in_notebook


@dataclass(frozen=True, slots=True)
class Audit:
    """
    The worst privacy loss of a mechanism on one instance; nothing here depends on anybody's data.

    Attributes
    ----------
    loss
        (low, high), which agree to at least 25 digits: the largest |ln P(o | x) - ln P(o | x')| over
        neighbours x, x' and outcomes o. Infinite where an outcome is possible for one of them only.
    pair
        x and x' as counts over the cells, the more likely one first, and the outcome o.
    range
        (low, high) of the largest difference of two such log ratios for one pair: the bounded-range
        parameter that is realised.
    cap
        What theory allows for the loss; None for a mechanism of the caller's without an epsilon.
    databases, pairs
        How many were compared.
    """

    loss: tuple[Fraction | float, Fraction | float]
    pair: tuple[Counts, Counts, Hashable]
    range: tuple[Fraction | float, Fraction | float]
    cap: Fraction | None
    databases: int
    pairs: int

    def _repr_html_(self) -> str:
        return in_notebook(self)

    @property
    def worst_loss(self) -> float:
        """The loss, rounded up."""
        return _up(self.loss[1])

    @property
    def worst_range(self) -> float:
        """The bounded-range parameter that is realised, rounded up."""
        return _up(self.range[1])

    def to_frame(self) -> pd.DataFrame:
        """
        Return the audit as a table of one row, so that several can be put together.

        Columns: loss and range, rounded up; cap, NaN where there is none; databases and pairs compared.
        """
        cap = nan if self.cap is None else float_above(self.cap)
        row = {"loss": self.worst_loss, "range": self.worst_range, "cap": cap}
        return pd.DataFrame([row | {"databases": self.databases, "pairs": self.pairs}])


def _up(x: Fraction | float) -> float:
    return x if isinstance(x, float) else float_above(x)
