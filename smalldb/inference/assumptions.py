"""Rubin's rule over several tables, and the assumptions of a statistic that no interval counts."""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isclose, isfinite, sqrt
from typing import Any, Protocol, runtime_checkable

import numpy as np

from queries.arrays import splitmix64
from queries.frames import as_frame, in_library_of
from smalldb.mechanisms.known_pairs import KnownPair

NEAR = 1e-9  # relative: what the order of rows changes in a sum
SEED = 20  # of the shuffles
SHUFFLES = 4  # of a column: a count among a hundred rows stays the same in one of twelve
SHOWN = 3  # pairs of columns in a warning
APART = (
    "columns that were never measured together ({}): the tables take them as independent, given others, an "
    "assumption that no interval counts"
)
ACROSS = f"the statistic looks across {APART}"
ABOUT = f"the estimate is about {APART}"
ABOUT_ALL = f"unless `columns` says otherwise, {ABOUT}"
WITHIN = (
    "the statistic looks at columns more finely than they were measured together ({}): within groups of "
    "their categories the tables take them as independent, which the interval does not count. `ask` names "
    "the groups"
)
INSIDE = (
    "the statistic depends on where numbers lie in their bins, which the tables draw by an assumed shape: "
    "the interval does not count how far that is from the data. `ask` bounds means of columns"
)

EXPECTED = "a statistic must be a number, or a number and its squared standard error"


@runtime_checkable
class Assuming(Protocol):
    """Several tables that tell what they assume."""

    unmeasured: Sequence[tuple[str, str]]
    grouped: Sequence[KnownPair]

    def __getitem__(self, number: int) -> Any:
        """Write a table."""

    def redrawn(self) -> Any:
        """Write the first table with other values inside bins."""

    def shuffled(self, name: str | None = None, groups: Sequence[int] = (), seed: int = 0) -> Any:
        """Write the first table, bins at their middles, a column's rows moved within groups of categories."""


def assumptions(statistic: Callable[[Any], Any], tables: Assuming) -> Iterator[str]:
    """Tell each assumption that a statistic depends on; nothing of one that is random."""
    first = tables[0]
    value = number_of(statistic(first))
    if not alike(value, number_of(statistic(first))):
        return
    if not alike(value, number_of(statistic(tables.redrawn()))):
        yield INSIDE
    pairs = [*tables.unmeasured, *(pair.columns for pair in tables.grouped)]
    looked = looked_at(statistic, first, {name for pair in pairs for name in pair})
    across = [pair for pair in tables.unmeasured if looked >= {*pair}]
    if across:
        yield ACROSS.format(named(across))
    within = [p.columns for p in tables.grouped if looked >= {*p.columns} and _finer(statistic, tables, p)]
    if within:
        yield WITHIN.format(named(within))


def _finer(statistic: Callable[[Any], Any], tables: Assuming, pair: KnownPair) -> bool:
    """Tell whether a statistic changes as rows move within groups, at all groups a pair was measured at."""
    value = number_of(statistic(tables.shuffled()))

    def stays(name: str, groups: Sequence[int]) -> bool:
        for seed in range(SHUFFLES):
            try:
                table = tables.shuffled(name, groups, SEED + seed)
            except ValueError:  # rows that break a rule cannot be written
                continue
            if not alike(value, number_of(statistic(table))):
                return False
        return True

    return not any(all(map(stays, pair.columns, groups)) for groups in pair.groups)


def named(pairs: Sequence[tuple[str, str]]) -> str:
    """Name some pairs of columns."""
    names = ", ".join(" x ".join(pair) for pair in pairs[:SHOWN])
    return names + (f" and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else "")


def looked_at(statistic: Callable[[Any], Any], table: Any, names: Collection[str]) -> frozenset[str]:
    """Return the columns, of those given, whose rows cannot be shuffled without a change of a statistic."""
    plain, value = as_frame(table), number_of(statistic(table))
    changing = set[str]()
    for c, name in enumerate(map(str, plain.columns)):
        for number in range(SHUFFLES) if name in names else ():
            shuffled = plain.copy()
            order = np.argsort(splitmix64(len(plain), SEED + SHUFFLES * c + number))
            shuffled[plain.columns[c]] = plain.iloc[:, c].iloc[order].to_numpy()
            shuffled = shuffled.astype(plain.dtypes)
            if not alike(value, number_of(statistic(in_library_of(shuffled, table)))):
                changing.add(name)
                break
    return frozenset(changing)


def number_of(result: Any) -> float:
    """Return what a statistic has found, without its variance."""
    return float(result[0] if isinstance(result, tuple) else result)


def alike(one: float, other: float) -> bool:
    """Tell whether two results are the same, but for the order of a sum."""
    return one == other or isclose(one, other, rel_tol=NEAR, abs_tol=NEAR)


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


def combine(
    estimates: Sequence[float],
    variances: Sequence[float] | None = None,
    *,
    tables: Assuming | None = None,
    columns: Sequence[str] | None = None,
) -> Pooled:
    """Combine what was computed from each of several tables of one release.

    Parameters
    ----------
    estimates
        One of each table, at least two.
    variances
        Their squared standard errors, as if the rows were a sample: then the result is about the population
        that the data came from. None: about the data themselves.
    tables
        Those of ``release.tables()`` or ``Tables.read``, for the warning. None: there is none.
    columns
        Those that the estimate is about, such as all of a regression. None: all of the tables.

    Warns
    -----
    UserWarning
        Some of these columns were never measured together.

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
    if tables is not None:
        names = [*map(str, as_frame(tables[0]).columns)]
        if unknown := {*(columns or ())} - {*names}:
            raise ValueError(f"no column {min(unknown)!r}: the columns are {', '.join(names)}")
        across = [pair for pair in tables.unmeasured if {*pair} <= {*(columns or names)}]
        if across:
            warnings.warn((ABOUT if columns else ABOUT_ALL).format(named(across)), stacklevel=2)
    elif columns is not None:
        raise ValueError("give the tables with the columns that the estimate is about")
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
    results = [_checked(statistic(table)) for table in tables]
    if results and isinstance(tables, Assuming):
        for assumption in assumptions(statistic, tables):
            warnings.warn(assumption, stacklevel=2)
    if results and isinstance(results[0], tuple):
        estimates, variances = zip(*results, strict=True)
        return combine(estimates, variances).interval(level)
    return combine(results).interval(level)


def _checked(result: Any) -> Any:
    """Return what a statistic has found, if it is a number or a number with its variance: TypeError."""
    for one in result if isinstance(result, tuple) else (result,):
        _number(one)
    if isinstance(result, tuple) and len(result) != 2:
        raise TypeError(f"{EXPECTED}, not {len(result)} numbers")
    return result


def _number(value: Any) -> float:
    """Return a number; TypeError or ValueError: it is none."""
    if isinstance(value, str | bytes) or np.ndim(value) != 0:
        raise TypeError(f"{EXPECTED}, not {type(value).__name__}: take one value of it")
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{EXPECTED}, not {type(value).__name__}") from error
    if not isfinite(number):
        raise ValueError("a table gives no number, but NaN or infinity: such as a mean over no rows")
    return number
