"""The shares of all categories of a column at once, each with its own interval."""

from fractions import Fraction

import numpy as np

from queries.arrays import Floats
from smalldb.inference.cells_asked import AskedCells, told_of
from smalldb.inference.confidence_intervals import Interval, margin, of_ratio
from smalldb.inference.least_variance import least_variance
from smalldb.mechanisms.measurement_list import Measurements

MOST = 64  # categories: noise of each is simulated


def share_intervals(measurements: Measurements, column: int, level: Fraction) -> tuple[Interval | None, ...]:
    """
    Return the interval of the share of each category of a column: about what `ask` answers of it.

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
    asked, cells = AskedCells.of(measurements, (column,), arrays)
    sums = least_variance(told_of(measurements, asked), cells, measurements.n)
    if not sums.known.any():
        return (None,) * size
    noise, values = sums.noise(), sums.values.tolist()
    found = []
    for code in range(size):
        made = None
        if sums.known[code] and sums.known[-1]:
            made = _share((values[code], values[-1]), (noise[:, code], noise[:, -1]), level)
        found.append(made if made is None else Interval(*(min(max(end, 0.0), 1.0) for end in made)))
    return tuple(found)


def _share(sums: tuple[float, float], noise: tuple[Floats, Floats], level: Fraction) -> Interval | None:
    """Return the interval of a ratio; where the denominator has no noise, without a search for its ends."""
    if noise[1].any() or sums[1] <= 0:
        return of_ratio(sums, noise, level)
    middle, reach = sums[0] / sums[1], margin(noise[0], level) / sums[1]
    return Interval(middle, middle - reach, middle + reach)
