"""Which columns a statistic looks at together: those whose rows cannot be shuffled without changing it."""

from collections.abc import Callable, Collection
from math import isclose
from typing import Any

import numpy as np

from queries.arrays import Integers
from queries.frames import as_frame, as_given
from queries.mixing import splitmix64

NEAR = 1e-9  # relative: what the order of rows changes in a sum
SEED = 20  # of the shuffles
SHUFFLES = 4  # of a column: a count among a hundred rows stays the same in one of twelve


def looked_at(statistic: Callable[[Any], Any], table: Any, names: Collection[str]) -> frozenset[str]:
    """
    Return the columns, of those given, that a statistic looks at together with others.

    The rows of one column are shuffled. That changes a statistic only if it depends on how the column goes
    with others; a mean of one column stays.
    """
    plain, found = as_frame(table), number_of(statistic(table))
    changing = set[str]()
    for c, name in enumerate(map(str, plain.columns)):
        for number in range(SHUFFLES) if name in names else ():
            shuffled = plain.copy()
            order = np.argsort(splitmix64(len(plain), SEED + SHUFFLES * c + number))
            shuffled[plain.columns[c]] = plain.iloc[:, c].iloc[order].to_numpy()
            shuffled = shuffled.astype(plain.dtypes)
            if not alike(found, number_of(statistic(as_given(shuffled, table)))):
                changing.add(name)
                break
    return frozenset(changing)


def shuffled_within(groups: Integers, seed: int) -> Integers:
    """Return an order of rows that moves each only among those of its group, shape (rows,)."""
    order = np.empty(len(groups), dtype=np.int64)
    order[np.argsort(groups, kind="stable")] = np.lexsort((splitmix64(len(groups), seed), groups))
    return order


def number_of(found: Any) -> float:
    """Return what a statistic has found, without its variance."""
    return float(found[0] if isinstance(found, tuple) else found)


def alike(one: float, other: float) -> bool:
    """Tell whether two results are the same, but for the order of a sum."""
    return one == other or isclose(one, other, rel_tol=NEAR, abs_tol=NEAR)
