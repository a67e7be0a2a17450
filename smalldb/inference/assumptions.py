"""What a statistic of several tables owes to assumptions: what its interval does not count."""

from collections.abc import Callable, Collection, Iterator, Sequence
from math import isclose
from typing import Any, Protocol, runtime_checkable

import numpy as np

from queries.frames import as_frame, as_given
from queries.mixing import splitmix64
from smalldb.mechanisms.known_pairs import KnownPair

NEAR = 1e-9  # relative: what the order of rows changes in a sum
SEED = 20  # of the shuffles
SHUFFLES = 4  # of a column: a count among a hundred rows stays the same in one of twelve
SHOWN = 3  # pairs of columns in a warning
ACROSS = (
    "the statistic looks across columns that were never measured together ({}): the tables take them as "
    "independent, given others, an assumption that the interval does not count"
)
WITHIN = (
    "the statistic looks at columns more finely than they were measured together ({}): within groups of "
    "their categories the tables take them as independent, which the interval does not count. `ask` names "
    "the groups"
)
INSIDE = (
    "the statistic depends on where numbers lie in their bins, which the tables draw by an assumed shape: "
    "the interval does not count how far that is from the data. `ask` bounds means of columns"
)


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
    found = number_of(statistic(first))
    if not alike(found, number_of(statistic(first))):
        return
    if not alike(found, number_of(statistic(tables.redrawn()))):
        yield INSIDE
    pairs = [*tables.unmeasured, *(pair.columns for pair in tables.grouped)]
    looked = looked_at(statistic, first, {name for pair in pairs for name in pair})
    across = [pair for pair in tables.unmeasured if looked >= {*pair}]
    if across:
        yield ACROSS.format(_named(across))
    within = [p.columns for p in tables.grouped if looked >= {*p.columns} and _finer(statistic, tables, p)]
    if within:
        yield WITHIN.format(_named(within))


def _finer(statistic: Callable[[Any], Any], tables: Assuming, pair: KnownPair) -> bool:
    """Tell whether a statistic changes as rows move within groups, at all groups a pair was measured at."""
    found = number_of(statistic(tables.shuffled()))

    def stays(name: str, groups: Sequence[int]) -> bool:
        for seed in range(SHUFFLES):
            try:
                table = tables.shuffled(name, groups, SEED + seed)
            except ValueError:  # rows that break a rule cannot be written
                continue
            if not alike(found, number_of(statistic(table))):
                return False
        return True

    return not any(all(map(stays, pair.columns, groups)) for groups in pair.groups)


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    named = ", ".join(" x ".join(pair) for pair in pairs[:SHOWN])
    return named + (f" and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else "")


def looked_at(statistic: Callable[[Any], Any], table: Any, names: Collection[str]) -> frozenset[str]:
    """Return the columns, of those given, that a statistic looks at together with others.

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


def number_of(found: Any) -> float:
    """Return what a statistic has found, without its variance."""
    return float(found[0] if isinstance(found, tuple) else found)


def alike(one: float, other: float) -> bool:
    """Tell whether two results are the same, but for the order of a sum."""
    return one == other or isclose(one, other, rel_tol=NEAR, abs_tol=NEAR)
