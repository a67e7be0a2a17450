"""Count, rank, unrank and iterate the small databases: multisets of `rows` rows over `cells` cells."""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from math import comb


def count(cells: int, rows: int) -> int:
    """Count the multisets of `rows` rows over `cells` cells, C(cells + rows - 1, rows)."""
    _check(cells, rows)
    return comb(cells + rows - 1, rows)


def rank(counts: Sequence[int]) -> int:
    """Index of a multiset in the order of `itertools.combinations_with_replacement(range(cells), rows)`."""
    cells, rows = len(counts), sum(map(operator.index, counts))
    _check(cells, rows)
    if min(counts) < 0:
        raise ValueError("counts must be 0 or more rows in each cell")
    index, start = 0, 0
    for cell, copies in enumerate(map(operator.index, counts)):
        if copies:
            # skipped: first row in start..cell-1; then: more copies of this cell
            index += count(cells - start, rows) - count(cells - cell, rows)
            rows -= copies
            index += count(cells - cell, rows - 1) if rows else 0
            start = cell + 1
    return index


def unrank(index: int, cells: int, rows: int) -> tuple[int, ...]:
    """Counts over the cells of the multiset at an index; the inverse of `rank`."""
    if not 0 <= index < count(cells, rows):
        raise IndexError("index must be in 0..count(cells, rows)-1")
    counts, start = [0] * cells, 0
    while rows:
        cell, index = _first_cell(index, start, cells, rows)
        copies, index = _copies(index, cells - cell, rows)
        counts[cell], rows, start = copies, rows - copies, cell + 1
    return tuple(counts)


def iterate(cells: int, rows: int) -> Iterator[tuple[int, ...]]:
    """Yield every multiset as its counts over the cells, in the order of `rank`."""
    _check(cells, rows)
    return _iterate(cells, rows)


def _iterate(cells: int, rows: int) -> Iterator[tuple[int, ...]]:
    counts = [rows] + [0] * (cells - 1)
    yield tuple(counts)
    while counts[-1] < rows:
        last = counts[-1]
        counts[-1] = 0
        cell = max(i for i in range(cells - 1) if counts[i])
        counts[cell] -= 1
        counts[cell + 1] = last + 1
        yield tuple(counts)


def _first_cell(index: int, start: int, cells: int, rows: int) -> tuple[int, int]:
    """First occupied cell from `start` on, and the index among the multisets that begin there."""
    total = count(cells - start, rows)

    def skipped(cell: int) -> int:
        return total - count(cells - cell, rows)

    cell = start + bisect_right(range(start, cells), index, key=skipped) - 1
    return cell, index - skipped(cell)


def _copies(index: int, cells: int, rows: int) -> tuple[int, int]:
    """Copies of the first of `cells` cells, and the index among the multisets with so many."""

    def with_more(copies: int) -> int:
        return count(cells, rows - copies - 1) if copies < rows else 0

    copies = 1 + bisect_left(range(1, rows + 1), -index, key=lambda copies: -with_more(copies))
    return copies, index - with_more(copies)


def _check(cells: int, rows: int) -> None:
    if cells < 1 or rows < 0:
        raise ValueError("cells must be at least 1 and rows at least 0")
