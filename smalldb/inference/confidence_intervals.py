"""Intervals: where noise, and on request sampling, would rarely have led to what was released."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from queries.arrays import Floats
from smalldb.inference.evidence import QuestionCells, evidence_of
from smalldb.inference.least_variance import least_variance
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.noise.simulating import DRAWS

_SAFE = 2.5  # standard errors of a simulated probability that a quantile is moved outwards
_ROUNDED = 1 + 1e-9  # more than what floats take from a sum of noise that lies on the margin
_STEPS = 40  # of a bisection

MOST = 64  # categories: noise of each is simulated


class Interval(NamedTuple):
    """An estimate with its interval."""

    estimate: float  # a share, a mean, a number of rows, or a difference of these: what was asked
    # the ends, ``low <= estimate <= high``, in the same unit
    low: float
    high: float


def margin(noise: Floats, level: Fraction) -> float:
    """Return what the size of noise exceeds with probability 1 - level; rather too large."""
    chance = float(level) + _SAFE * sqrt(float(level * (1 - level)) / DRAWS)
    rank = min(len(noise) - 1, ceil(chance * len(noise)))
    return float(np.partition(np.abs(noise), rank)[rank]) * _ROUNDED


# Proof: docs/proofs/noise.md, lemma 7.
def of_ratio(
    sums: tuple[float, float],
    noise: tuple[Floats, Floats],
    level: Fraction,
    sampling: Callable[[float], Floats] | None = None,
) -> Interval | None:
    """Return the ratios r for which numerator - r denominator is not further from 0 than its noise may be."""
    above, below = sums
    if below <= margin(noise[1], level):
        return None
    middle = above / below

    def inside(r: float) -> bool:
        apart = noise[0] - r * noise[1]
        if sampling is None:
            return abs(above - r * below) <= margin(apart, level)
        return _likely(above - r * below, apart + sampling(r), level)

    step = margin(noise[0] - middle * noise[1], level) / below
    if sampling is None and not noise[1].any():  # without a search for the ends
        return Interval(middle, middle - step, middle + step)
    if sampling is not None:
        # of one row at least: where none was drawn, sampling at the estimate adds nothing
        step += (1 + margin(sampling(middle), level)) / below
    return Interval(middle, *(_end(inside, middle, sign * step) for sign in (-1, 1)))


def _likely(seen: float, drawn: Floats, level: Fraction) -> bool:
    """Tell whether neither so much nor so little is rare: sampling is not symmetric."""
    chance = float(1 - level) / 2
    least = (chance - _SAFE * sqrt(chance * (1 - chance) / DRAWS)) * len(drawn)
    slack = (_ROUNDED - 1) * (1 + abs(seen))
    above, below = np.count_nonzero(drawn >= seen - slack), np.count_nonzero(drawn <= seen + slack)
    return int(min(above, below)) > least


def _end(inside: Callable[[float], bool], start: float, step: float) -> float:
    """Return where an interval ends, on one side of a point in it; outside rather than inside."""
    if step == 0:
        return start
    far = step
    while inside(start + far):
        far *= 2
    near = 0.0
    for _ in range(_STEPS):
        if abs(far - near) <= 1e-4 * abs(step):
            break
        half = (near + far) / 2
        near, far = (half, far) if inside(start + half) else (near, half)
    return start + far


def of_difference(one: Interval, other: Interval, correlation: float) -> Interval:
    """Return the interval of a difference by the method of variance estimates recovery."""
    # Zou and Donner, "Construction of confidence limits about effect measures" (2008): exact where both are
    # normal; each side takes the parts' own margins on that side

    def both(a: float, b: float) -> float:
        return sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b))

    estimate = one.estimate - other.estimate
    low = both(one.estimate - one.low, other.high - other.estimate)
    high = both(one.high - one.estimate, other.estimate - other.low)
    return Interval(estimate, estimate - low, estimate + high)


def share_intervals(measurements: Measurements, column: int, level: Fraction) -> tuple[Interval | None, ...]:
    """Return the interval of the share of each category of a column: about what `ask` answers of it.

    Each covers the share in the confidential table with probability `level`, by itself.

    Parameters
    ----------
    measurements
        What was released.
    column
        Its number.
    level
        From 1/2 to 0.999.

    Returns
    -------
    tuple of Interval or None
        None: the category was not measured by itself; or the column has more than 64, or no rows may be left.
    """
    domain = measurements.domain
    size = domain.sizes[column]
    if not len(measurements) or size > MOST:
        return (None,) * size
    arrays: list[Floats] = [*np.eye(size), np.ones(size)]
    question, cells = QuestionCells.of(measurements, (column,), arrays)
    sums = least_variance(evidence_of(measurements, question), cells, measurements.n)
    if not sums.known.any():
        return (None,) * size
    noise, values = sums.noise(), sums.values.tolist()
    intervals = []
    for code in range(size):
        interval = None
        if sums.known[code] and sums.known[-1]:
            interval = of_ratio((values[code], values[-1]), (noise[:, code], noise[:, -1]), level)
        intervals.append(
            interval if interval is None else Interval(*(min(max(end, 0.0), 1.0) for end in interval))
        )
    return tuple(intervals)
