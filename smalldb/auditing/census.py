"""The census: its loss from integer scores alone, but for the normalisers."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import factorial, inf, log, prod
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from queries import Workload
from smalldb import multisets
from smalldb.auditing.databases import MOST_DEEP, Counts, check_budget, databases, neighbours_of, shown
from smalldb.auditing.loss import Audit
from smalldb.counting.scores import MAX_SCORE, Integers, base_measure, count
from smalldb.enclosures import Real
from smalldb.planning import Neighbours

Floats: TypeAlias = npt.NDArray[np.float64]

DIGITS = 60
MOST_SCORES = 1 << 25  # databases x candidates: 256 MiB
MOST_RATIOS = 4_000_000_000  # (pairs + databases x queries) x candidates: about half a minute
MOST_COUNTS = 1 << 20  # (databases + candidates) x (cells + 16): 32 MiB as tuples
MOST_MOVES = 1 << 27  # pairs x (cells + 16): about ten seconds
MOST_BITS = 1 << 26  # of the numbers of orders of all candidates together
BLOCK = 1 << 20  # scores or ratios looked at together
NEAR = 1e-12  # relative, far more than floats are off: what comes so near is compared exactly


def audit_census(
    workload: Workload,
    epsilon: Fraction,
    rows: int,
    candidates: str | None,
    n: int,
    relation: Neighbours,
    progress: bool,
) -> Audit:
    """
    For neighbours with scores s and s', the log ratio of a candidate is rate (s' - s) + ln Z' - ln Z.

    So its extremes are those of integers, and only the two ln Z are not rational.
    """
    base, cells = base_measure("multisets" if candidates is None else candidates), workload.domain.size
    unit = rows * workload.denominator
    if n * unit >= MAX_SCORE:
        raise ValueError("scores would reach 2^62: n x rows x the common denominator of the queries")
    size = count(cells, rows, "multisets") if min(rows, cells - 1) <= MOST_DEEP else MAX_SCORE

    def fits(databases: int, pairs: int) -> bool:
        return (
            databases * size <= MOST_SCORES
            and (pairs + databases * workload.size) * size <= MOST_RATIOS
            and (databases + size) * (cells + 16) <= MOST_COUNTS
            and pairs * (cells + 16) <= MOST_MOVES
            and (base == "multisets" or size * rows * cells.bit_length() <= MOST_BITS)
        )

    check_budget(cells, n, relation, fits)
    rate, matrix = epsilon / (2 * unit), workload.matrix()
    small = np.array(list(multisets.iterate(cells, rows)), dtype=np.int64)
    orders = [factorial(rows) // prod(map(factorial, y)) if base == "tuples" else 1 for y in small.tolist()]

    tables = list(databases(cells, n, relation))
    place = {x: i for i, x in enumerate(tables)}
    counted, answers = np.array(tables, dtype=np.int64), matrix @ small.T
    scores = np.zeros((len(tables), size), dtype=np.int64)
    for first in range(0, len(tables), BLOCK // size + 1):
        block = slice(first, first + BLOCK // size + 1)
        for weight, answer in zip(matrix, answers, strict=True):
            gaps = rows * (counted[block] @ weight)[:, None] - counted[block].sum(axis=1)[:, None] * answer
            np.maximum(scores[block], np.abs(gaps, out=gaps), out=scores[block])
    most = float(rate) * int(scores.max())
    # the least score stands apart, as an integer, unless all exponents are small
    least = scores.min(axis=1) if most > 1 else np.zeros(len(tables), dtype=np.int64)
    floats = np.concatenate(
        [
            _float_ln_z(scores[block] - least[block, None], orders, float(rate), most <= 1)
            for block in (slice(i, i + BLOCK // size + 1) for i in range(0, len(tables), BLOCK // size + 1))
        ]
    )
    near = NEAR * (1 + float(np.abs(floats).max()) + 2 * float(epsilon) if most > 1 else most)

    worst, widest, pairs = -inf, 0, 0
    found: dict[tuple[int, int, int], tuple[float, tuple[int, int, int]]] = {}
    ln_z = _Partitions(scores, orders, rate)
    for here, there in _blocks(shown(tables, progress), place, n, relation, BLOCK // size + 1):
        differences = scores[there] - scores[here]
        highest, lowest = differences.argmax(axis=1), differences.argmin(axis=1)
        each = np.arange(len(there))
        widest = max(widest, int((differences[each, highest] - differences[each, lowest]).max()))
        pairs += len(there)
        for ends, likely, other in ((highest, here, there), (lowest, there, here)):
            up = scores[other, ends] - scores[likely, ends]
            losses = float(rate) * (up + least[likely] - least[other]) + floats[other] - floats[likely]
            worst = max(worst, float(losses.max()))
            for i in np.flatnonzero(losses >= worst - near).tolist():
                where = int(likely[i]), int(other[i]), int(ends[i])
                same = int(up[i]), ln_z.law(where[0]), ln_z.law(where[1])
                found.setdefault(same, (float(losses[i]), where))
    exact = {
        where: rate * Real.of(up, DIGITS) + ln_z.of_law(other) - ln_z.of_law(likely)
        for (up, likely, other), (loss, where) in found.items()
        if loss >= worst - near
    }
    top = max(exact, key=lambda where: exact[where].high)
    return Audit(
        (Fraction(max(loss.low for loss in exact.values())), Fraction(exact[top].high)),
        (tables[top[0]], tables[top[1]], tuple(small[top[2]].tolist())),
        (rate * widest, rate * widest),
        epsilon * (1 - Fraction(relation is Neighbours.ADD_REMOVE, 2 * unit)),
        len(tables),
        pairs,
    )


def _float_ln_z(scores: Integers, weights: list[int], rate: float, small: bool) -> Floats:
    """
    Return ln Z of each database, less that of rate 0, for scores less the least one.

    About 1e-15 off; where all exponents are `small`, at most 1, in terms of the largest of them.
    """
    total = sum(weights)
    if small:
        shares = np.array([weight / total for weight in weights])
        return np.asarray(np.log1p(np.expm1(-rate * scores) @ shares))
    logs = np.array([log(weight) - log(total) for weight in weights]) - rate * scores
    top = logs.max(axis=1)
    return np.asarray(np.log(np.exp(logs - top[:, None]).sum(axis=1)) + top)


@final
class _Partitions:
    """ln Z of databases, enclosed; computed once for each law of the score."""

    def __init__(self, scores: Integers, weights: list[int], rate: Fraction) -> None:
        self._scores, self._weights, self._rate = scores, weights, rate
        self._exps: dict[int, Real] = {}
        self._places: dict[int, int] = {}
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}
        self._laws: list[tuple[tuple[int, int], ...]] = []
        self._known: dict[int, Real] = {}

    def law(self, place: int) -> int:
        """Return the number of the law that a database has."""
        if place not in self._places:
            census: Counter[int] = Counter()
            for score, weight in zip(self._scores[place].tolist(), self._weights, strict=True):
                census[score] += weight
            law = tuple(sorted(census.items()))
            if law not in self._numbers:
                self._numbers[law] = len(self._laws)
                self._laws.append(law)
            self._places[place] = self._numbers[law]
        return self._places[place]

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


def _blocks(
    tables: Iterator[Counts], place: dict[Counts, int], n: int, relation: Neighbours, size: int
) -> Iterator[tuple[Integers, Integers]]:
    """Yield the places of neighbours, each pair once, at least `size` pairs at a time."""
    here, there = list[int](), list[int]()
    for x in tables:
        others = neighbours_of(x, n, relation)
        here += [place[x]] * len(others)
        there += [place[other] for other in others]
        if len(here) >= size:
            yield np.array(here), np.array(there)
            here, there = [], []
    if here:
        yield np.array(here), np.array(there)
