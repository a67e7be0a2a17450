"""All databases of a small instance, their neighbours, all candidates, and the score of each against each."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial, log, prod
from threading import Lock
from typing import NamedTuple, TypeAlias, TypeVar, final

import numpy as np

from queries import Workload
from queries.arrays import Floats, Integers
from smalldb.counting import multisets
from smalldb.counting.scores import MAX_SCORE, Candidates, base_measure, count, rate_of, too_large
from smalldb.exact.enclosures import Real
from smalldb.mechanisms import Neighbours

R = TypeVar("R")
Histogram: TypeAlias = tuple[int, ...]
Span: TypeAlias = tuple[int, int]
"""Databases by their position: the first, and the one after the last."""

SPANS = 64  # parts of an audit
MOST_DEEP = 64  # n or cells: where both pass it, there are more than 10^38 databases

DIGITS = 60
MOST_SCORES = 1 << 25  # databases x candidates: 256 MiB
MOST_RATIOS = 4_000_000_000  # (pairs + databases x queries) x candidates: about half a minute
MOST_COUNTS = 1 << 20  # (databases + candidates) x (cells + 16): 32 MiB as tuples
MOST_MOVES = 1 << 27  # pairs x (cells + 16): about ten seconds
MOST_BITS = 1 << 26  # of the numbers of orders of all candidates together
BLOCK = 1 << 20  # scores or ratios looked at together
NEAR = 1e-12  # relative, far more than floats are off: what comes so near is compared exactly


def databases(cells: int, n: int, relation: Neighbours) -> Iterator[Histogram]:
    """Yield all databases, as counts over the cells: of n rows under replace-one, else of up to n."""
    for size in [n] if relation is Neighbours.REPLACE_ONE else range(n + 1):
        yield from multisets.iterate(cells, size)


def neighbours_of(x: Histogram, n: int, relation: Neighbours) -> list[Histogram]:
    """Return the neighbours of a database, such that each pair of neighbours comes once."""
    if relation is Neighbours.ADD_REMOVE:
        return [_moved(x, to=a) for a in range(len(x))] if sum(x) < n else []
    return [_moved(x, to=b, out=a) for a in range(len(x)) if x[a] for b in range(a + 1, len(x))]


def both_ways(position: Mapping[Histogram, int], n: int, relation: Neighbours) -> Integers:
    """Return the positions of neighbours, shape (2 pairs, 2): each pair, then each the other way round."""
    once = [(position[x], position[other]) for x in position for other in neighbours_of(x, n, relation)]
    return np.array([*once, *((b, a) for a, b in once)], dtype=np.int64)


def _moved(x: Histogram, to: int, out: int = -1) -> Histogram:
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


def shown(
    results: Iterable[tuple[int, R]],
    parts: Sequence[Span],
    progress: bool,
    unit: str = " databases",
    scale: bool = False,
) -> Iterator[tuple[int, R]]:
    """Pass on the results of spans, with a bar on stderr over what they span if that is asked for."""
    with advancing(parts[-1][1], unit, progress, scale) as advance:
        for position, result in results:
            yield position, result
            advance(parts[position][1] - parts[position][0])


@contextmanager
def advancing(
    total: int, unit: str, progress: bool, scale: bool = False
) -> Iterator[Callable[[int], object]]:
    """Show a bar on stderr if that is asked for, and yield what moves it on."""
    if not progress:
        yield bool
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=unit, unit_scale=scale) as bar:
        yield bar.update


@final
@dataclass(frozen=True, slots=True)
class Instance:
    """What is audited; hashable and small, so that each process can work out its own tables from it."""

    workload: Workload  # its queries and its domain
    epsilon: Fraction  # of the exponential mechanism, exactly
    rows: int  # m, of each small database
    base: Candidates  # multisets or tuples
    # n, relation: rows of the data (at most so many under add-remove), and who is a neighbour
    n: int
    relation: Neighbours

    @property
    def rate(self) -> Fraction:
        """What a unit of the score costs: epsilon / (2 m D)."""
        return rate_of(self.epsilon, self.rows, self.workload.denominator)


def instance_of(
    workload: Workload,
    epsilon: Fraction,
    rows: int,
    candidates: str | None,
    n: int,
    relation: Neighbours,
    compared: bool = True,
    most_scores: int = MOST_SCORES,
    most_ratios: int = MOST_RATIOS,
    most_moves: int = MOST_MOVES,
) -> Instance:
    """Return the instance, if its tables are within the budget, and its pairs, where they are `compared`."""
    base, cells = base_measure("multisets" if candidates is None else candidates), workload.domain.size
    if too_large(n, rows, workload.denominator):
        raise ValueError("scores would reach 2^62: n x rows x the common denominator of the queries")
    size = count(cells, rows, "multisets") if min(rows, cells - 1) <= MOST_DEEP else MAX_SCORE

    def fits(databases: int, pairs: int) -> bool:
        pairs = pairs if compared else 0
        return (
            databases * size <= most_scores
            and (pairs + databases * workload.size) * size <= most_ratios
            and (databases + size) * (cells + 16) <= MOST_COUNTS
            and pairs * (cells + 16) <= most_moves
            and (base == "multisets" or size * rows * cells.bit_length() <= MOST_BITS)
        )

    check_budget(cells, n, relation, fits)
    return Instance(workload, epsilon, rows, base, n, relation)


class Tables(NamedTuple):
    """All databases of an instance, all candidates, and the scores, which is most of an audit's memory."""

    # databases, position: all databases as counts over the cells, and where each stands among them
    databases: list[Histogram]
    position: dict[Histogram, int]
    small: Integers  # shape (candidates, cells): counts over the cells
    scores: Integers  # shape (databases, candidates)
    # shape (databases,): the least score, set apart as an integer; or 0, where all exponents are small
    least: Integers
    floats: Floats  # shape (databases,): ln Z less that, but for a constant
    near: float  # far more than losses by floats are off
    ln_z: "Partitions"  # the same exactly
    # orders, shares: how many ordered tables each candidate stands for, 1 for multisets; and the same
    # over their sum
    orders: list[int]
    shares: Floats


@lru_cache(maxsize=1)
def tabulated(instance: Instance) -> Tables:
    """Work out the tables of an instance; a process that is sent several spans does so once."""
    workload, rows, rate = instance.workload, instance.rows, instance.rate
    cells, matrix = workload.domain.size, workload.matrix()
    small = np.array(list(multisets.iterate(cells, rows)), dtype=np.int64)
    tuples, size = instance.base == "tuples", len(small)
    orders = [factorial(rows) // prod(map(factorial, y)) if tuples else 1 for y in small.tolist()]

    tables = list(databases(cells, instance.n, instance.relation))
    counted, answers = np.array(tables, dtype=np.int64), matrix @ small.T
    scores, step = np.zeros((len(tables), size), dtype=np.int64), BLOCK // size + 1
    parts = [slice(first, first + step) for first in range(0, len(tables), step)]
    for block in parts:
        for weight, answer in zip(matrix, answers, strict=True):
            gaps = rows * (counted[block] @ weight)[:, None] - counted[block].sum(axis=1)[:, None] * answer
            np.maximum(scores[block], np.abs(gaps, out=gaps), out=scores[block])
    most = float(rate) * int(scores.max())
    # the least score stands apart, as an integer, unless all exponents are small
    least = scores.min(axis=1) if most > 1 else np.zeros(len(tables), dtype=np.int64)
    above = (scores[block] - least[block, None] for block in parts)
    floats = np.concatenate([float_ln_z(each, orders, float(rate), most <= 1) for each in above])
    near = NEAR * (1 + float(np.abs(floats).max()) + 2 * float(instance.epsilon) if most > 1 else most)
    position = {x: i for i, x in enumerate(tables)}
    ln_z = Partitions(scores, orders, rate)
    total = sum(orders)
    shares = np.array([weight / total for weight in orders])
    return Tables(tables, position, small, scores, least, floats, near, ln_z, orders, shares)


@contextmanager
def tables_of(instance: Instance) -> Iterator[Tables]:
    """Work out the tables of an instance, and let them go in the end."""
    try:
        yield tabulated(instance)
    finally:
        tabulated.cache_clear()


def blocks(tables: Tables, instance: Instance, span: Span) -> Iterator[tuple[Integers, Integers]]:
    """Yield the positions of neighbours of a span, each pair once, about `BLOCK` ratios at a time."""
    position, size = tables.position, BLOCK // len(tables.small) + 1
    here, there = list[int](), list[int]()
    for x in tables.databases[slice(*span)]:
        others = neighbours_of(x, instance.n, instance.relation)
        here += [position[x]] * len(others)
        there += [position[other] for other in others]
        if len(here) >= size:
            yield np.array(here), np.array(there)
            here, there = [], []
    if here:
        yield np.array(here), np.array(there)


def float_ln_z(scores: Integers, weights: list[int], rate: float, small: bool) -> Floats:
    """Return ln Z of each database, less that of rate 0, for scores less the least one."""
    # about 1e-15 off; where all exponents are `small`, at most 1, in terms of the largest of them
    total = sum(weights)
    if small:
        shares = np.array([weight / total for weight in weights])
        return np.asarray(np.log1p(np.expm1(-rate * scores) @ shares))
    logs = np.array([log(weight) - log(total) for weight in weights]) - rate * scores
    top = logs.max(axis=1)
    return np.asarray(np.log(np.exp(logs - top[:, None]).sum(axis=1)) + top)


@final
class Partitions:
    """ln Z of databases, enclosed; computed once for each law of the score. Threads may share it."""

    def __init__(self, scores: Integers, weights: list[int], rate: Fraction) -> None:
        self._scores, self._weights, self._rate = scores, weights, rate
        self._lock = Lock()
        self._exps: dict[int, Real] = {}
        self._positions: dict[int, int] = {}
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}
        self._laws: list[tuple[tuple[int, int], ...]] = []
        self._known: dict[int, Real] = {}

    def law(self, position: int) -> int:
        """Return the number of the law that a database has."""
        if position not in self._positions:
            census: Counter[int] = Counter()
            for score, weight in zip(self._scores[position].tolist(), self._weights, strict=True):
                census[score] += weight
            law = tuple(sorted(census.items()))
            with self._lock:
                if law not in self._numbers:
                    self._numbers[law] = len(self._laws)
                    self._laws.append(law)
                self._positions[position] = self._numbers[law]
        return self._positions[position]

    def levels(self, number: int) -> tuple[tuple[int, int], ...]:
        """Return the scores of a law, ascending, and how many candidates stand at each."""
        return self._laws[number]

    def of_law(self, number: int) -> Real:
        """Enclose ln Z of a law."""
        if number not in self._known:
            total = Real.of(0, DIGITS)
            for score, weight in self._laws[number]:
                if score not in self._exps:
                    self._exps[score] = Real.of(-self._rate * score, DIGITS).exp()
                total = total + weight * self._exps[score]
            self._known[number] = total.ln()
        return self._known[number]
