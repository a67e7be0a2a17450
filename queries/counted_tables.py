"""Rows counted by the cells of many tables; tables of two columns many at a time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import isqrt, prod

import numpy as np

from queries.arrays import Codes, Integers
from queries.cells import Cells
from queries.domain import Domain
from queries.rows import bincounted

MOST_GROUP = 64  # settings of a group of columns, so that the table of two groups fits the cache
ROWS = 1 << 16  # that are counted together, for the same reason


def sums_of_cells(domain: Domain, blocks: Sequence[Cells], codes: Codes, counts: Integers) -> Integers:
    """Return how many rows are in each cell that is a query, block by block: int64, exact."""
    starts = np.cumsum([0, *(block.size for block in blocks)])
    sums = np.zeros(starts[-1], dtype=np.int64)
    of_pairs: dict[tuple[int, ...], int] = {
        block.columns: i for i, block in enumerate(blocks) if len(block.columns) == 2
    }
    for i, block in enumerate(blocks):
        if block.columns not in of_pairs:
            table = bincounted(block.cells_of(domain, codes), counts, block.cells)
            sums[starts[i] : starts[i + 1]] = block.of_counts(table)
    for pair, table in pair_tables(codes, counts, domain.sizes, of_pairs):
        block = blocks[i := of_pairs[pair]]
        sums[starts[i] : starts[i + 1]] = block.of_counts(block.in_order(domain, table))
    return sums


def pair_tables(
    codes: Codes, counts: Integers, sizes: Sequence[int], pairs: Iterable[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, ...], Integers]]:
    """
    Count rows by the cells of each pair of columns: a pair and its table, int64, exact, in any order.

    Cost: rows times pairs of groups, of which there are fewer than pairs of columns: nine times where columns
    have four categories.
    """
    groups = _groups(sizes, max(2, min(MOST_GROUP, isqrt(len(codes)))))
    group_of = {c: g for g, group in enumerate(groups) for c in group}
    wanted: dict[tuple[int, int], list[tuple[int, ...]]] = defaultdict(list)
    for pair in pairs:
        first, second = pair
        wanted[group_of[first], group_of[second]].append(pair)
    numbers = [_numbers(codes, sizes, group) for group in groups]
    for (left, right), members in wanted.items():
        columns = groups[left] if left == right else groups[left] + groups[right]
        shape = [sizes[c] for c in columns]
        table = np.zeros(prod(shape), dtype=np.int64)
        times = prod(sizes[c] for c in groups[right])
        for start in range(0, len(codes), ROWS):
            some = slice(start, start + ROWS)
            cells = numbers[left][some]
            if left != right:
                cells = cells.astype(np.min_scalar_type(len(table) - 1)) * times + numbers[right][some]
            table += bincounted(cells, counts[some], len(table))
        of_columns = table.reshape(shape)
        for pair in members:
            others = tuple(axis for axis, c in enumerate(columns) if c not in pair)
            yield pair, of_columns.sum(axis=others)


def _groups(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Take neighbouring columns together while their settings are at most so many."""
    groups: list[list[int]] = []
    for c, size in enumerate(sizes):
        if groups and prod(sizes[other] for other in groups[-1]) * size <= most:
            groups[-1].append(c)
        else:
            groups.append([c])
    return groups


def _numbers(codes: Codes, sizes: Sequence[int], group: Sequence[int]) -> Integers:
    """Number the settings of a group of columns in each row, in the narrowest integers."""
    settings = prod(sizes[c] for c in group)
    numbers = np.zeros(len(codes), dtype=np.min_scalar_type(settings - 1))
    for c in group:
        numbers *= numbers.dtype.type(sizes[c])
        numbers += codes[:, c].astype(numbers.dtype)
    return numbers
