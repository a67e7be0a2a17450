"""What a noise distribution is, and what several of them have in common."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.numbers import float_above, plain
from smalldb.noise.simulating import DRAWS, Uniforms
from smalldb.noise.tails import SLACK, log_concave_quantile

Weights: TypeAlias = Sequence[float] | Floats | None
"""Of a linear combination of values, one each; None: of one value (of the one that varies most)."""


class Moved(NamedTuple):
    """How far neighbours move the numbers that one noise is added to, in each norm that noise speaks of."""

    total: Fraction | int  # L1
    squares: Fraction | int = 0  # of L2
    rows: int = 1  # that are added or removed, in all
    paired: bool = False  # whether one is removed for each that is added


_Kind = TypeVar("_Kind", int, tuple[int, ...])


@dataclass(frozen=True, slots=True)
class Noise(ABC):
    """A distribution of whole numbers that are added to counts."""

    name: ClassVar[str]  # what records call it
    word: ClassVar[str]  # and what sentences do
    refitted: ClassVar[bool] = True  # whether intervals from several tables are known to be wide enough
    repeating: ClassVar[bool] = False  # whether all tables that were measured at once have one sum
    concentrated: ClassVar[bool] = False  # whether what it loses is a rho; else it is an epsilon

    @property
    def parameters(self) -> dict[str, Any]:
        """What `read` makes the value of: exact texts, integers and lists of these, as JSON holds them."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    @abstractmethod
    def draw(self, count: int, source: BitSource) -> Integers:
        """Draw `count` values, exactly: int64, cut off at `exact.integers.CLIP`."""

    @abstractmethod
    def variance(self, weights: Weights = None) -> float:
        """Return the variance of a linear combination of the values."""

    def covariance(self, weights: Floats) -> Floats:
        """Return the covariance of several linear combinations: weights (values, k), covariances (k, k)."""
        return np.asarray(self.variance() * (weights.T @ weights))

    def simulated(self, weights: Floats, kinds: Integers, uniforms: Uniforms) -> Floats:
        """Return linear combinations of the values, simulated for intervals: shape (DRAWS, k)."""
        # all values are drawn as a release does, which any noise can; others have quicker ways
        each = np.vstack([weights, np.zeros(weights.shape[1])])[kinds]
        drawn = [self.draw(len(kinds), uniforms.bits) for _ in range(DRAWS)]
        return np.asarray(np.array(drawn, dtype=np.float64) @ each)

    @abstractmethod
    def quantile(self, weights: Weights, failure: Fraction) -> float:
        """Return what |linear combination| exceeds with probability at most `failure`; rounded up."""

    def cell_quantile(self, shape: tuple[int, ...], failure: Fraction) -> float:
        """Return that of a cell of a table of this shape."""
        return self.quantile(None, failure)

    def sum_quantile(self, count: int, failure: Fraction) -> float:
        """Return that of a sum of so many cells: where noise repeats, of all cells of a table."""
        return self.quantile(np.ones(count), failure)

    def entry_quantile(self, order: int, failure: Fraction) -> float:
        """Return that of a parity of an order."""
        return self.quantile(None, failure)

    @abstractmethod
    def lost(self, moved: Moved) -> Fraction:
        """Return what is lost where neighbours move the values so far: an epsilon or a rho."""

    def fits(self, of: Sequence[Any]) -> bool:
        """Tell whether it is for these tables or parities; of independent values it is for any."""
        return True


# Proof: docs/proofs/noise.md, lemma 4.
def rounded_quantile(
    noise: Noise,
    weights: Weights,
    kinds: Sequence[_Kind],
    entry: Callable[[_Kind, Fraction], int],
    failure: Fraction,
) -> float:
    """Return the quantile of a sum of rounded log-concave noise, by its values or by its variance."""
    if weights is None:
        return float(max(entry(kind, failure) for kind in set(kinds)))
    sums = defaultdict[_Kind, Fraction](Fraction)
    sizes = magnitudes(weights)
    for size, kind in zip(sizes, kinds, strict=True):
        sums[kind] += size
    count = max(1, sum(1 for size in sizes if size))
    each = sum((size * entry(kind, failure / count) for kind, size in sums.items() if size), Fraction(0))
    rounding = float(sum(sizes, Fraction(0)) / 2)
    return min(float_above(each), (log_concave_quantile(noise.variance(weights), failure) + rounding) * SLACK)


def magnitudes(weights: Weights) -> list[Fraction]:
    """Return the absolute weights, exactly; of one value, 1."""
    if weights is None:
        return [Fraction(1)]
    return list(map(Fraction, np.abs(np.asarray(weights, dtype=np.float64)).tolist()))


def sum_of_squares(weights: Weights) -> float:
    """Return the sum of squared weights; of one value, 1."""
    return 1.0 if weights is None else float(np.square(np.asarray(weights, dtype=np.float64)).sum())


def combined(weights: Floats, kinds: Integers, sums: Callable[[int], Floats]) -> Floats:
    """Return linear combinations, simulated, by sums of so many independent values: one a row of weights."""
    totals = np.zeros((DRAWS, weights.shape[1]))
    counts = np.bincount(kinds[kinds >= 0], minlength=len(weights)).tolist()
    for row, count in zip(weights, counts, strict=True):
        if count and row.any():
            totals += sums(count)[:, None] * row
    return totals


def check_count(there: int, count: int) -> None:
    """Refuse a number of values that a joint distribution does not have: ValueError."""
    if count != there:
        raise ValueError(f"this noise is of {there} values at once, not of {count}")
