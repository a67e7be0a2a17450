"""Nested groups of a column's categories: coarse ones of about equal mass, finer ones inside them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers

LEVELS = 6  # halvings; a last level has all categories
_LIGHT = 0.25  # of an equal share of the mass: a lighter group is not split before the last level


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """
    Groups of the k categories of a column at each level; those of a level are split into those of the next.

    >>> grouping = halved(np.array([1.0, 1.0, 1.0, 3.0]), ordered=True)
    >>> [start.tolist() for start in grouping.starts]
    [[0], [0, 3], [0, 1, 3], [0, 1, 2, 3]]
    """

    # the categories in an order in which each group of each level is a range of positions, shape (k,)
    order: Integers
    # of each level, where its groups start among the positions; level 0 is one group of all categories, and
    # the last level has k groups of one category
    starts: tuple[Integers, ...]

    @property
    def finest(self) -> int:
        """The level of all categories."""
        return len(self.starts) - 1

    def groups(self, level: int) -> int:
        """Return how many groups a level has."""
        return len(self.starts[level])

    def of_categories(self, level: int) -> Integers:
        """Return the group of each category at a level, shape (k,)."""
        ends = np.append(self.starts[level], len(self.order))
        groups = np.empty(len(self.order), dtype=np.int64)
        groups[self.order] = np.repeat(np.arange(len(self.starts[level])), np.diff(ends))
        return groups

    def inside(self, coarse: int, fine: int) -> Integers:
        """Return where each group of a coarse level starts among the groups of a fine one."""
        return np.searchsorted(self.starts[fine], self.starts[coarse])

    def parents(self, coarse: int, fine: int) -> Integers:
        """Return the group of a coarse level in which each group of a fine one lies."""
        return np.searchsorted(self.starts[coarse], self.starts[fine], side="right") - 1


def halved(mass: Floats, ordered: bool, levels: int = LEVELS) -> Grouping:
    """Halve the categories again and again by their mass."""
    order = np.arange(len(mass)) if ordered else np.argsort(-mass, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(mass[order])])
    starts = [np.array([0])]
    for level in range(1, levels + 1):
        least = _LIGHT * sums[-1] / (1 << level)
        cuts: list[int] = []
        for start, end in pairwise([*starts[-1].tolist(), len(mass)]):
            cuts.append(start)
            if end - start > 1 and (level == 1 or sums[end] - sums[start] > least):
                middle = (sums[start] + sums[end]) / 2
                cut = int(np.argmin(np.abs(sums[start + 1 : end] - middle))) + start + 1
                cuts.append(cut)
        if len(cuts) == len(mass) or len(cuts) == len(starts[-1]):
            break
        starts.append(np.array(cuts))
    return Grouping(order, (*starts, np.arange(len(mass))))


def nested(size: int, partitions: Iterable[Sequence[int]]) -> Grouping | None:
    """Return the grouping whose levels are some partitions, as measurements publish them.

    None: of two of them, neither splits the groups of the other.

    >>> grouping = nested(4, [[0, 1, 1, 0], [0, 1, 2, 0]])
    >>> grouping.order.tolist(), [start.tolist() for start in grouping.starts]
    ([0, 3, 1, 2], [[0], [0, 2], [0, 2, 3], [0, 1, 2, 3]])
    """
    distinct = {tuple(np.unique(groups, return_inverse=True)[1].tolist()) for groups in partitions}
    between = sorted(groups for groups in distinct if 0 < max(groups) < size - 1)
    between.sort(key=max)
    levels = [np.array(groups) for groups in [(0,) * size, *between, tuple(range(size))]]
    for coarse, fine in pairwise(levels):
        if len({*zip(coarse.tolist(), fine.tolist(), strict=True)}) > int(fine.max()) + 1:
            return None
    order = np.lexsort(levels[::-1])
    changes = [np.flatnonzero(np.diff(groups[order], prepend=-1)) for groups in levels]
    return Grouping(order, tuple(changes))
