"""Searches over whole numbers of any size."""

from collections.abc import Callable
from decimal import Decimal
from math import exp, log
from typing import TypeVar

Height = TypeVar("Height", Decimal, float)


def last_where(holds: Callable[[int], bool], last: int | None) -> int:
    """Return the last m of 1..last that `holds`, which those before do too; 0 if none does."""
    below, above = 0, 1
    while (last is None or above <= last) and holds(above):
        below, above = above, 2 * above
    above = above if last is None else min(above, last + 1)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if holds(middle) else (below, middle)
    return below


def valley(height: Callable[[int], Height], first: int, last: int | None) -> int:
    """Return the least m in first..last at the bottom of `height`, which falls and then rises."""
    # cost: some 2 log2 of how far the bottom lies from `first`, in evaluations
    low, step = first, 1
    while (last is None or low + step <= last) and height(low + step) < height(low + step - 1):
        low, step = low + step, 8 * step
    high = low + step if last is None else min(low + step, last)
    while low < high:  # bisect_left would end at 2^63
        middle = (low + high) // 2
        low, high = (middle + 1, high) if height(middle + 1) < height(middle) else (low, middle)
    return low


def lambert(level: float) -> float:
    """Return about the u with u + e^u = level: e^u is Lambert's W(e^level)."""
    u = level if level < 1 else log(level)
    for _ in range(8):
        u -= (u + exp(u) - level) / (1 + exp(u))
    return u
