"""The edges of bins: checked, named, of equal width, and a uniform draw between two of them."""

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Any, TypeVar

from queries.faults import Fault, TypeFault
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_below, uniform_integers
from smalldb.schema.kinds.kind import MAX_CATEGORIES

_T = TypeVar("_T")

MAX_LISTED = 1 << 16  # values of one list


def listed(values: Iterable[_T], name: str) -> list[_T]:
    """Return a list, refusing what is none, and what nobody lists."""
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise TypeFault(f"{name} must be a list", name)
    found = list(islice(values, MAX_LISTED + 1))
    if len(found) > MAX_LISTED:
        raise Fault(f"{name} must be a list of up to 2^16", name)
    return found


def check_cuts(cuts: Sequence[Any], low: Any, high: Any) -> None:
    """Refuse cuts that are too many, do not ascend or leave the range."""
    if not 1 <= len(cuts) < MAX_CATEGORIES:
        said = f"cuts must be 1 to {MAX_CATEGORIES - 1}, and here are {len(cuts)}: take wider bins"
        raise Fault(said, "cuts")
    if any(a >= b for a, b in pairwise(cuts)):
        raise Fault("cuts must ascend, each above the one before", "cuts")
    if not (low < cuts[0] and cuts[-1] <= high):
        raise Fault("range must begin below the first cut and end at the last cut or above it", "range")


def bin_names(column: str, cuts: Sequence[str], coding: str) -> list[str]:
    """Name each bin, or for a thermometer what reaches each cut."""
    reached = [f"{column}>={cut}" for cut in cuts]
    if coding == "thermometer":
        return reached
    inner = [f"{low}<={column}<{high}" for low, high in pairwise(cuts)]
    return [f"{column}<{cuts[0]}", *inner, reached[-1]]


def check_bins(bins: object) -> int:
    """Read how many bins of equal width are wanted."""
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= MAX_CATEGORIES:
        raise Fault(f"bins must be a whole number from 2 to {MAX_CATEGORIES}", "bins")
    return bins


def equal_steps(low: int, high: int, bins: int) -> list[int]:
    """Return where the second and later of equally many whole numbers from low to high begin.

    Parameters
    ----------
    low, high
        The first and the last number.
    bins
        How many parts, at most high - low + 1.

    Examples
    --------
    >>> equal_steps(0, 99, 4), equal_steps(0, 9, 3)
    ([25, 50, 75], [3, 6])
    """
    count = high + 1 - low
    if not bins <= count:
        raise Fault(f"bins must be at most {max(count, 0)}: the range has no more steps", "bins")
    return [low + count * i // bins for i in range(1, bins)]


def uniform_between(low: int, high: int, count: int, source: BitSource) -> list[int]:
    """Draw independent uniform integers of low..high, exactly."""
    span = high + 1 - low
    if span <= 1 << 62:
        return [low + step for step in uniform_integers(span, count, source).tolist()]
    return [low + uniform_below(span, source) for _ in range(count)]
