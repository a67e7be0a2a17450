"""The exact worst privacy loss of a small instance: over all its databases, and all neighbours of each."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial, inf, isfinite, prod
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from queries import Domain, QueryClass, Workload
from smalldb import multisets
from smalldb.arguments import positive, whole
from smalldb.counting.scores import Integers, base_measure, count
from smalldb.enclosures import Real
from smalldb.exact import as_fraction
from smalldb.planning import Neighbours, relation_of, workload_of
from smalldb.selection import selection_law

Counts: TypeAlias = tuple[int, ...]
Floats: TypeAlias = npt.NDArray[np.float64]
Enclosure: TypeAlias = tuple[Fraction, Fraction]
Mechanism: TypeAlias = Callable[[Counts], Mapping[Hashable, Any]]

DIGITS = 60
MOST_SCORES = 1 << 25  # databases x candidates: 256 MiB
MOST_RATIOS = 4_000_000_000  # pairs x candidates: about ten seconds
MOST_LAWS = 20_000  # databases of which a mechanism is asked for its law
BLOCK = 1 << 22  # ratios looked at together
NEAR = 1e-12  # relative, far more than floats are off: what comes so near is compared exactly


@dataclass(frozen=True, slots=True)
class Audit:
    """
    What a mechanism loses at worst on one instance; nothing here depends on anybody's data.

    Attributes
    ----------
    loss
        (low, high), which agree to at least 25 digits: the largest |ln P(o | x) - ln P(o | x')| over
        neighbours x, x' and outcomes o. Infinite where an outcome is possible for one of them only.
    pair
        x and x' as counts over the cells, the more likely one first, and the outcome o.
    range
        (low, high) of the largest difference of two such log ratios for one pair: the bounded-range
        parameter that is realised.
    cap
        What theory allows for the loss; None for a mechanism of the caller's without an epsilon.
    databases, pairs
        How many were compared.
    """

    loss: tuple[Fraction | float, Fraction | float]
    pair: tuple[Counts, Counts, Hashable]
    range: tuple[Fraction | float, Fraction | float]
    cap: Fraction | None
    databases: int
    pairs: int

    @property
    def worst_loss(self) -> float:
        """The loss, rounded up."""
        return _up(self.loss[1])


def audit(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int,
    epsilon: object = None,
    rows: int | None = None,
    neighbours: str = "replace-one",
    mechanism: str | Mechanism = "census",
    candidates: str | None = None,
    method: str = "exponential",
    k: int = 1,
    progress: bool = False,
) -> Audit:
    """
    Return the exact worst privacy loss over all databases and all their neighbours.

    Parameters
    ----------
    domain, queries
        The universe and the workload.
    n
        Rows of the databases: all of n rows under replace-one, all of up to n under add-remove.
    epsilon
        Exact; of the mechanism that is audited. A mechanism of the caller's need not have one.
    rows, candidates
        Of the census: the size of the small databases, and the base measure.
    neighbours
        "replace-one" or "add-remove".
    mechanism
        "census": the small database that is released. "select": the query of the workload with the largest
        count, selected by `method` (and `k`) as `smalldb.select` does it. Or a function of a database, as
        counts over the cells, that returns outcome -> probability: a Fraction or int, a float (taken as the
        fraction that it is), or a pair (low, high) of Fractions that encloses it.
    progress
        Show a bar on stderr, in databases.

    Raises
    ------
    ValueError, TypeError
        An argument out of range, an instance beyond the budget (says the largest n that would do), or
        probabilities that do not add up to 1.

    Examples
    --------
    >>> found = audit(Domain(["a", "b"]), "conjunctions:2", rows=2, epsilon=1, n=6)
    >>> round(found.worst_loss, 12), found.cap
    (0.781994281264, Fraction(1, 1))
    """
    if mechanism not in ("census", "select") and not callable(mechanism):
        raise ValueError(
            f"mechanism must be 'census', 'select' or a function of a database, not {mechanism!r}"
        )
    relation = relation_of(neighbours)
    n = whole(n, "n")
    known = None if epsilon is None else positive(epsilon, "epsilon")
    workload = workload_of(queries, domain)
    if mechanism == "census":
        if known is None or rows is None:
            raise ValueError("an audit of the census needs epsilon and rows")
        return _audit_census(workload, known, whole(rows, "rows"), candidates, n, relation, progress)
    if rows is not None or candidates is not None:
        raise ValueError("rows and candidates are for the census")
    if isinstance(mechanism, str):
        if known is None:
            raise ValueError("an audit of a selection needs epsilon")
        mechanism = _selecting(workload, known, relation, method, k)
    return _audit_laws(mechanism, domain.size, known, n, relation, progress)


def _audit_census(
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
    size = count(cells, rows, "multisets")
    _check_budget(cells, n, relation, size)
    unit = rows * workload.denominator
    rate, matrix = epsilon / (2 * unit), workload.matrix()
    small = np.array(list(multisets.iterate(cells, rows)), dtype=np.int64)
    weights = [factorial(rows) // prod(map(factorial, y)) if base == "tuples" else 1 for y in small.tolist()]

    tables = list(_databases(cells, n, relation))
    place = {x: i for i, x in enumerate(tables)}
    scores = np.zeros((len(tables), size), dtype=np.int64)
    counted = np.array(tables, dtype=np.int64)
    for weight, answers in zip(matrix, matrix @ small.T, strict=True):
        gaps = rows * (counted @ weight)[:, None] - counted.sum(axis=1)[:, None] * answers
        np.maximum(scores, np.abs(gaps, out=gaps), out=scores)
    floats = _float_ln_z(scores, weights, float(rate))
    near = NEAR * (1 + float(np.abs(floats).max()) + float(rate) * int(scores.max()))

    worst, widest, pairs = -inf, 0, 0
    found: dict[tuple[int, int, int], tuple[float, int]] = {}
    for here, there in _blocks(_shown(tables, progress), place, n, relation, BLOCK // size + 1):
        differences = scores[there] - scores[here]
        most, least = differences.argmax(axis=1), differences.argmin(axis=1)
        each = np.arange(len(there))
        widest = max(widest, int((differences[each, most] - differences[each, least]).max()))
        pairs += len(there)
        for ends, likely, other in ((most, here, there), (least, there, here)):
            up = scores[other, ends] - scores[likely, ends]
            losses = float(rate) * up + floats[other] - floats[likely]
            worst = max(worst, float(losses.max()))
            for i in np.flatnonzero(losses > worst - near).tolist():
                found[int(likely[i]), int(other[i]), int(ends[i])] = float(losses[i]), int(up[i])
    exact: dict[tuple[int, int, int], Real] = {}
    ln_z = _Partitions(scores, weights, rate)
    for key, (loss, up) in found.items():
        if loss > worst - near:
            exact[key] = rate * Real.of(up, DIGITS) + ln_z(key[1]) - ln_z(key[0])
    top = max(exact, key=lambda key: exact[key].high)
    return Audit(
        (Fraction(max(loss.low for loss in exact.values())), Fraction(exact[top].high)),
        (tables[top[0]], tables[top[1]], tuple(small[top[2]].tolist())),
        (rate * widest, rate * widest),
        epsilon * (1 - Fraction(relation is Neighbours.ADD_REMOVE, 2 * unit)),
        len(tables),
        pairs,
    )


def _float_ln_z(scores: Integers, weights: list[int], rate: float) -> Floats:
    """Return ln Z of each database, about 1e-15 off in relative terms."""
    least = scores.min(axis=1)
    shares = np.exp(-rate * (scores - least[:, None])) @ np.array(weights, dtype=float)
    return np.asarray(np.log(shares) - rate * least)


@final
class _Partitions:
    """ln Z of databases, enclosed; computed once for each law."""

    def __init__(self, scores: Integers, weights: list[int], rate: Fraction) -> None:
        self._scores, self._weights, self._rate = scores, weights, rate
        self._exps: dict[int, Real] = {}
        self._known: dict[tuple[tuple[int, int], ...], Real] = {}

    def __call__(self, place: int) -> Real:
        census: Counter[int] = Counter()
        for score, weight in zip(self._scores[place].tolist(), self._weights, strict=True):
            census[score] += weight
        law = tuple(sorted(census.items()))
        if law not in self._known:
            total = Real.of(0, DIGITS)
            for score, number in law:
                if score not in self._exps:
                    self._exps[score] = Real.of(-self._rate * score, DIGITS).exp()
                total = total + number * self._exps[score]
            self._known[law] = total.ln()
        return self._known[law]


def _blocks(
    tables: Iterator[Counts], place: dict[Counts, int], n: int, relation: Neighbours, size: int
) -> Iterator[tuple[Integers, Integers]]:
    """Yield the places of neighbours, each pair once, at least `size` pairs at a time."""
    here, there = list[int](), list[int]()
    for x in tables:
        others = _neighbours(x, n, relation)
        here += [place[x]] * len(others)
        there += [place[other] for other in others]
        if len(here) >= size:
            yield np.array(here), np.array(there)
            here, there = [], []
    if here:
        yield np.array(here), np.array(there)


def _selecting(workload: Workload, epsilon: Fraction, relation: Neighbours, method: str, k: int) -> Mechanism:
    """Select among the queries by their counts, which all grow with a row that is added."""
    if not workload.size:
        raise ValueError("queries: nothing is left to select from after reduction")
    matrix = workload.matrix()

    def mechanism(table: Counts) -> Mapping[Hashable, Any]:
        law: Mapping[Any, Any] = selection_law(
            (matrix @ np.array(table)).tolist(),
            epsilon=epsilon,
            sensitivity=workload.denominator,
            monotone=relation is Neighbours.ADD_REMOVE,
            method=method,
            k=k,
        )
        return law

    return mechanism


def _audit_laws(
    mechanism: Mechanism, cells: int, epsilon: Fraction | None, n: int, relation: Neighbours, progress: bool
) -> Audit:
    """Compare the laws of all neighbours, outcome by outcome."""
    _check_budget(cells, n, relation, 1, most=MOST_LAWS)
    tables = list(_databases(cells, n, relation))
    laws = {x: _logs(mechanism(x)) for x in _shown(tables, progress)}
    loss: tuple[Fraction | float, Fraction | float] = (Fraction(0), Fraction(0))
    spread: tuple[Fraction | float, Fraction | float] = (Fraction(0), Fraction(0))
    worst: tuple[Counts, Counts, Hashable] | None = None
    pairs = 0
    for x in tables:
        for other in _neighbours(x, n, relation):
            pairs += 1
            ratios = [
                (outcome, _ratio(laws[x].get(outcome), laws[other].get(outcome)))
                for outcome in laws[x].keys() | laws[other].keys()
            ]
            lows, highs = ([ratio[end] for _, ratio in ratios] for end in (0, 1))
            spread = max(spread[0], max(lows) - min(highs)), max(spread[1], max(highs) - min(lows))
            for outcome, (low, high) in ratios:
                pair = (x, other, outcome) if low + high >= 0 else (other, x, outcome)
                least, most = (low, high) if low + high >= 0 else (-high, -low)
                if worst is None or most > loss[1]:
                    worst = pair
                loss = max(loss[0], least), max(loss[1], most)
    if worst is None:
        raise ValueError("domain: one cell alone has no neighbours to compare")
    return Audit(loss, worst, spread, epsilon, len(tables), pairs)


def _logs(law: Mapping[Hashable, Any]) -> dict[Hashable, Enclosure]:
    """Enclose the logarithms of the probabilities of the outcomes that are possible; -inf at the low end."""
    if not isinstance(law, Mapping):
        raise TypeError(f"a mechanism must return outcome -> probability, not {type(law).__name__}")
    logs: dict[Hashable, Any] = {}
    least = most = Fraction(0)
    slack = Fraction(0)
    for outcome, given in law.items():
        low, high = given if isinstance(given, tuple) and len(given) == 2 else (given, given)
        low, high = _probability(low), _probability(high)
        if isinstance(given, float | np.floating):
            slack = Fraction(1, 10**9)
        if not 0 <= low <= high <= 1 + slack:
            raise ValueError("a mechanism's probabilities must lie from 0 to 1, enclosures in order")
        least, most = least + low, most + high
        if high:
            logs[outcome] = (
                Fraction(_ln(low).low) if low else -inf,
                Fraction(_ln(high).high),
            )
    if not least - slack <= 1 <= most + slack:
        raise ValueError("a mechanism's probabilities must add up to 1")
    return logs


def _probability(value: object) -> Fraction:
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | Fraction | np.integer | np.floating
    ):
        raise TypeError(f"a probability must be an int, float or Fraction, not {type(value).__name__}")
    if isinstance(value, float | np.floating) and not isfinite(value):
        raise ValueError("a mechanism's probabilities must be finite")
    return (
        Fraction(float(value))
        if isinstance(value, float | np.floating)
        else as_fraction(value, "probability")
    )


def _ln(x: Fraction) -> Real:
    return Real.of(x, DIGITS).ln()


def _ratio(here: Enclosure | None, there: Enclosure | None) -> tuple[Any, Any]:
    """Enclose ln P(o | x) - ln P(o | x'); None: not possible."""
    if here is None:
        return -inf, -inf
    if there is None:
        return inf, inf
    return here[0] - there[1], here[1] - there[0]


def _databases(cells: int, n: int, relation: Neighbours) -> Iterator[Counts]:
    for size in [n] if relation is Neighbours.REPLACE_ONE else range(n + 1):
        yield from multisets.iterate(cells, size)


def _neighbours(x: Counts, n: int, relation: Neighbours) -> list[Counts]:
    """Return the neighbours of a database, such that each pair of neighbours comes once."""
    if relation is Neighbours.ADD_REMOVE:
        return [_moved(x, to=a) for a in range(len(x))] if sum(x) < n else []
    return [_moved(x, to=b, out=a) for a in range(len(x)) if x[a] for b in range(a + 1, len(x))]


def _moved(x: Counts, to: int, out: int = -1) -> Counts:
    return tuple(count + (i == to) - (i == out) for i, count in enumerate(x))


def _check_budget(cells: int, n: int, relation: Neighbours, candidates: int, most: int = MOST_SCORES) -> None:
    """Refuse what takes too many scores or ratios, and name the largest n that does not."""

    def cost(n: int) -> tuple[int, int]:
        if relation is Neighbours.REPLACE_ONE:
            return comb(n + cells - 1, n), comb(n + cells - 2, n - 1) * comb(cells, 2)
        return comb(n + cells, n), comb(n + cells - 1, cells) * cells

    def refused(n: int) -> bool:
        databases, pairs = cost(n)
        return databases * candidates > most or pairs * candidates > MOST_RATIOS

    if cells == 1 and relation is Neighbours.REPLACE_ONE:
        raise ValueError("domain: with one cell there is nothing to replace a row by")
    if refused(n):
        largest = bisect_left(range(1, n + 1), True, key=refused)
        done = (
            f"the largest n that can be audited is {largest}" if largest else "use fewer attributes or rows"
        )
        raise ValueError(
            f"an audit over all databases of {n} rows on {cells} cells is beyond the budget: {done}"
        )


def _shown(tables: list[Counts], progress: bool) -> Iterator[Counts]:
    if not progress:
        return iter(tables)
    from tqdm import tqdm

    return iter(tqdm(tables, unit=" databases"))


def _up(x: Fraction | float) -> float:
    if isinstance(x, float):
        return x
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else float(np.nextafter(nearest, inf))
