"""Which columns a statistic looks at together: those whose rows cannot be shuffled without changing it."""

from collections.abc import Callable, Collection
from math import isclose
from typing import Any

import numpy as np

from queries.frames import as_frame, as_given
from queries.mixing import splitmix64

NEAR = 1e-9  # relative: what the order of rows changes in a sum
SEED = 20  # of the shuffles
SHUFFLES = 4  # of a column: a count among a hundred rows stays the same in one of twelve


def looks_across(
    statistic: Callable[[Any], Any], table: Any, pairs: Collection[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """
    Return the pairs of columns, of those given, that a statistic looks at together.

    The rows of one column are shuffled. That changes a statistic only if it depends on how the column goes
    with others; a mean of one column stays.

    Parameters
    ----------
    statistic
        A number of one table, or a number and its variance. Where it is random, none is returned.
    table
        Of any library that tables may be of.
    pairs
        Names of columns.
    """
    plain, names = as_frame(table), {name for pair in pairs for name in pair}
    found = _first(statistic(table))
    if not names or not _alike(found, _first(statistic(table))):
        return ()
    changing = set[str]()
    for c, name in enumerate(map(str, plain.columns)):
        for number in range(SHUFFLES) if name in names else ():
            shuffled = plain.copy()
            order = np.argsort(splitmix64(len(plain), SEED + SHUFFLES * c + number))
            shuffled[plain.columns[c]] = plain.iloc[:, c].iloc[order].to_numpy()
            shuffled = shuffled.astype(plain.dtypes)
            if not _alike(found, _first(statistic(as_given(shuffled, table)))):
                changing.add(name)
                break
    return tuple(pair for pair in pairs if changing >= {*pair})


def _first(found: Any) -> float:
    return float(found[0] if isinstance(found, tuple) else found)


def _alike(one: float, other: float) -> bool:
    return one == other or isclose(one, other, rel_tol=NEAR, abs_tol=NEAR)
