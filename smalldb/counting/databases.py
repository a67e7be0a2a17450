"""All databases of a small instance, and the neighbours of each; which of it is too much."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import comb
from typing import TypeAlias, TypeVar

from smalldb.counting import multisets
from smalldb.counting.scores import MAX_SCORE
from smalldb.mechanisms import Neighbours

R = TypeVar("R")
Counts: TypeAlias = tuple[int, ...]
Span: TypeAlias = tuple[int, int]
"""Databases by their position: the first, and the one after the last."""

SPANS = 64  # parts of an audit
MOST_DEEP = 64  # n or cells: where both pass it, there are more than 10^38 databases


def databases(cells: int, n: int, relation: Neighbours) -> Iterator[Counts]:
    """Yield all databases, as counts over the cells: of n rows under replace-one, else of up to n."""
    for size in [n] if relation is Neighbours.REPLACE_ONE else range(n + 1):
        yield from multisets.iterate(cells, size)


def neighbours_of(x: Counts, n: int, relation: Neighbours) -> list[Counts]:
    """Return the neighbours of a database, such that each pair of neighbours comes once."""
    if relation is Neighbours.ADD_REMOVE:
        return [_moved(x, to=a) for a in range(len(x))] if sum(x) < n else []
    return [_moved(x, to=b, out=a) for a in range(len(x)) if x[a] for b in range(a + 1, len(x))]


def _moved(x: Counts, to: int, out: int = -1) -> Counts:
    return tuple(count + (i == to) - (i == out) for i, count in enumerate(x))


def count_pairs(cells: int, n: int, relation: Neighbours) -> int:
    """Return how many pairs of neighbours there are, each once."""
    if relation is Neighbours.REPLACE_ONE:
        return comb(n + cells - 2, n - 1) * comb(cells, 2)
    return comb(n + cells - 1, cells) * cells


def check_budget(cells: int, n: int, relation: Neighbours, fits: Callable[[int, int], bool]) -> None:
    """Refuse so many databases and pairs of neighbours that do not fit, and name the largest n that does."""

    def refused(n: int) -> bool:
        if min(n, cells - 1) > MOST_DEEP:
            return True
        sizes = comb(n + cells - 1, n) if relation is Neighbours.REPLACE_ONE else comb(n + cells, n)
        return not fits(sizes, count_pairs(cells, n, relation))

    if cells == 1 and relation is Neighbours.REPLACE_ONE:
        raise ValueError("domain: with one cell there is nothing to replace a row by")
    if refused(n):
        largest = bisect_left(range(1, min(n, MAX_SCORE) + 1), True, key=refused)
        done = (
            f"the largest n that can be audited is {largest}" if largest else "use fewer attributes or rows"
        )
        raise ValueError(
            f"an audit over all databases of {n} rows on {cells} cells is beyond the budget: {done}"
        )


def spans(size: int) -> list[Span]:
    """Cut the positions of databases into about `SPANS` spans."""
    step = -(-size // SPANS)
    return [(first, min(first + step, size)) for first in range(0, size, step)]


def shown(results: Iterable[tuple[int, R]], parts: Sequence[Span], progress: bool) -> Iterator[tuple[int, R]]:
    """Pass on the results of spans, with a bar over the databases on stderr if that is asked for."""
    if not progress:
        yield from results
        return
    from tqdm import tqdm

    with tqdm(total=parts[-1][1], unit=" databases") as bar:
        for position, result in results:
            yield position, result
            bar.update(parts[position][1] - parts[position][0])
