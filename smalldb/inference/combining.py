"""Rubin's rule: what is computed from each of several tables, as one estimate with an interval."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from smalldb.inference.assumptions import Assuming, assumptions

EXPECTED = "a statistic must be a number, or a number and its squared standard error"


@dataclass(frozen=True, slots=True)
class Pooled:
    """An estimate from several tables.

    Attributes
    ----------
    estimate
        The mean of those of the tables.
    within
        The mean of their own variances, from sampling; 0 where the data themselves are asked about.
    between
        The variance of the estimates of the tables: what the noise leaves open.
    tables
        How many there were.
    """

    estimate: float
    within: float
    between: float
    tables: int

    @property
    def variance(self) -> float:
        """T = within + (1 + 1/m) between."""
        return self.within + (1 + 1 / self.tables) * self.between

    @property
    def degrees(self) -> float:
        """The degrees of freedom of its t distribution (Rubin 1987)."""
        noise = (1 + 1 / self.tables) * self.between
        return inf if noise == 0 else (self.tables - 1) * (1 + self.within / noise) ** 2

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return both ends of the interval that covers with probability `level`."""
        from scipy.special import ndtri, stdtrit

        if not 0 < level < 1:
            raise ValueError("level must be between 0 and 1")
        upper = (1 + level) / 2
        times = ndtri(upper) if self.degrees == inf else stdtrit(self.degrees, upper)
        reach = float(times) * sqrt(self.variance)
        return self.estimate - reach, self.estimate + reach


def combine(estimates: Sequence[float], variances: Sequence[float] | None = None) -> Pooled:
    """Combine what was computed from each of several tables of one release.

    Parameters
    ----------
    estimates
        One of each table, at least two.
    variances
        Their squared standard errors, as if the rows were a sample: then the result is about the population
        that the data came from. None: about the data themselves.

    Returns
    -------
    Pooled
        The estimate with its variance, degrees of freedom and interval.

    Notes
    -----
    Rubin, "Multiple Imputation for Nonresponse in Surveys" (1987): the tables are draws of the confidential
    table given what was released, so it is the rule for missing data, and other programs that have it
    (``mitools`` and ``mice`` in R, ``mi estimate`` in Stata) give the same numbers.

    Examples
    --------
    >>> pooled = combine([0.31, 0.34, 0.32, 0.35], [0.0001] * 4)
    >>> round(pooled.estimate, 3), [round(end, 3) for end in pooled.interval()]
    (0.33, [0.27, 0.39])
    """
    estimates = [_number(one) for one in estimates]
    within = [0.0] if variances is None else [_number(one) for one in variances]
    count = len(estimates)
    if count < 2:
        raise ValueError("at least two tables are combined")
    if variances is not None and len(within) != count:
        raise ValueError("give one variance for each estimate")
    if min(within) < 0:
        raise ValueError("variances are at least 0")
    middle = sum(estimates) / count
    between = sum((one - middle) ** 2 for one in estimates) / (count - 1)
    return Pooled(middle, sum(within) / count, between, count)


def interval(
    statistic: Callable[[Any], Any], tables: Iterable[Any], level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of any function of a table.

    Parameters
    ----------
    statistic
        Of one table: a number; or a number and its squared standard error, and then the interval is about
        the population.
    tables
        Those of ``release.tables()``.
    level
        With which probability the interval covers.

    Warns
    -----
    UserWarning
        The statistic depends on what the tables assume and the interval does not count: columns that were
        never measured together, or only in groups of their categories, and values inside bins. It is found
        by shuffling columns of the first table, one after another, and by drawing its values once more.
    """
    found = [_checked(statistic(table)) for table in tables]
    if found and isinstance(tables, Assuming):
        for assumption in assumptions(statistic, tables):
            warnings.warn(assumption, stacklevel=2)
    if found and isinstance(found[0], tuple):
        estimates, variances = zip(*found, strict=True)
        return combine(estimates, variances).interval(level)
    return combine(found).interval(level)


def _checked(found: Any) -> Any:
    """Return what a statistic has found, if it is a number or a number with its variance: TypeError."""
    for one in found if isinstance(found, tuple) else (found,):
        _number(one)
    if isinstance(found, tuple) and len(found) != 2:
        raise TypeError(f"{EXPECTED}, not {len(found)} numbers")
    return found


def _number(found: Any) -> float:
    """Return a number; TypeError or ValueError: it is none."""
    if isinstance(found, str | bytes) or np.ndim(found) != 0:
        raise TypeError(f"{EXPECTED}, not {type(found).__name__}: take one value of it")
    try:
        number = float(found)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{EXPECTED}, not {type(found).__name__}") from error
    if not isfinite(number):
        raise ValueError("a table gives no number, but NaN or infinity: such as a mean over no rows")
    return number
