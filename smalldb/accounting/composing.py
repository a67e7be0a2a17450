"""What many releases from one table lose together, and what each may lose for a given total."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import nextafter, sqrt
from typing import Any

import numpy as np
import pandas as pd

from smalldb.accounting import curves
from smalldb.accounting.curves import Floats
from smalldb.exact.numbers import Number, as_fraction, float_above, positive, whole

MOST_RELEASES = 100_000
MOST_OPTIMAL = 1_000  # releases: the optimal non-adaptive bound takes their square
MARGIN = 1e-9  # relative: what rounding may add up to, many times over
LARGEST = Fraction(10**300)  # epsilon of all releases together: a float
FLOATS = Fraction(1, 10**80), Fraction(10**80)  # beyond, squares and cubes could leave them
LEAST_DELTA = Fraction(1, 10**300)

Item = tuple[Fraction, Fraction | None]  # epsilon, and the bounded-range parameter where there is one


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """
    What releases lose together: (epsilon, delta)-differential privacy.

    Attributes
    ----------
    epsilon
        The least of the valid bounds, rounded up.
    method
        Which one it is.
    delta
        As given, and what the releases themselves had.
    table
        All methods: columns method, epsilon, valid, note. A row that is not valid is no bound here.
    """

    epsilon: float
    method: str
    delta: Fraction
    table: pd.DataFrame


def compose(
    *,
    epsilon: Number,
    releases: int | None = None,
    delta: Number,
    adaptive: bool = True,
    bounded_range: bool = False,
) -> Composition:
    """
    Bound what releases from one table lose together, by all methods that apply.

    Parameters
    ----------
    epsilon
        Of each release, exact; or one for each of them: any iterable.
    releases
        How many, where epsilon is one number.
    delta
        At least 0 and below 1; 0 leaves plain addition, as does one below 1e-300.
    adaptive
        Whether a release may have been chosen after earlier ones were seen. If False, all were fixed in
        advance.
    bounded_range
        Whether each release is epsilon-bounded-range, not only epsilon-DP: what its record says. One draw of
        the exponential mechanism is; answers, noisy-max and permute-and-flip are not.

    Returns
    -------
    Composition

    Raises
    ------
    ValueError, TypeError
        An argument out of range, by name.

    Examples
    --------
    >>> total = compose(epsilon=0.5, releases=10, delta=1e-6, bounded_range=True)
    >>> total.method, round(total.epsilon, 4)
    ('Renyi, bounded range', 3.6323)
    """
    kinds: Counter[Fraction]
    if isinstance(epsilon, Iterable) and not isinstance(epsilon, str | bytes):
        kinds = Counter(positive(value, "epsilon") for value in islice(epsilon, MOST_RELEASES + 1))
        if releases is not None and whole(releases, "releases") != kinds.total():
            raise ValueError("releases must be the number of epsilons, or left out")
    else:
        if releases is None:
            raise ValueError("releases must say how many there are")
        kinds = Counter({positive(epsilon, "epsilon"): whole(releases, "releases")})
    _checked_number(kinds.total())
    _flag(bounded_range, "bounded_range")
    items = Counter({(value, value if bounded_range else None): count for value, count in kinds.items()})
    return _composed(items, _delta(delta), _flag(adaptive, "adaptive"))


def compose_records(
    records: Iterable[Mapping[str, Any]], *, delta: Number, adaptive: bool = True
) -> Composition:
    """
    Bound what releases from one table lose together, from their records.

    Parameters
    ----------
    records
        As `smalldb.release` writes them; all of one neighbouring relation, none of them seeded.
    delta, adaptive
        As for `compose`; the deltas of the records are added to it.

    A release with a delta of its own behaves, but for an event of that probability, as one of pure epsilon
    (Kairouz, Oh and Viswanath 2015: for any two neighbours, it can be simulated from randomised response that
    fails so often). So it counts as that, and its delta is added.

    Raises
    ------
    ValueError, TypeError
        No records, records that do not go together, or a release that was not private.
    """
    listed = list(islice(records, MOST_RELEASES + 1))
    _checked_number(len(listed))
    items: Counter[Item] = Counter()
    relations, persons = set[str](), set[int]()
    spent = _delta(delta)
    for record in listed:
        try:
            privacy, private, own = record["privacy"], record["private"], record["delta"]
            epsilon, parameter, relation = privacy["epsilon"], privacy["bounded_range"], record["neighbours"]
        except (KeyError, TypeError) as error:
            raise ValueError("records must be those of releases: a key is missing") from error
        if not isinstance(relation, str):
            raise ValueError("records must be those of releases: neighbours must be a text")
        if private is not True:
            raise ValueError("records: a seeded release is not private, whatever its epsilon")
        if own is not None and parameter is not None:
            raise ValueError("records: a release with a delta has no bounded range")
        exact = positive(epsilon, "privacy.epsilon")
        items[exact, None if parameter is None else positive(parameter, "privacy.bounded_range")] += 1
        relations.add(relation)
        persons.add(whole(privacy.get("rows_per_person", 1), "privacy.rows_per_person"))
        spent += 0 if own is None else _delta(own)
    if len(relations) > 1:
        raise ValueError("records: all must be of one neighbouring relation")
    if len(persons) > 1:
        raise ValueError("records: all must be for the same number of rows of a person")
    if spent >= 1:
        raise ValueError("delta: all together reach 1")
    own_deltas = spent - _delta(delta)
    return _composed(items, _delta(delta), _flag(adaptive, "adaptive"), own_deltas)


def per_release(
    *,
    epsilon: Number,
    releases: int,
    delta: Number,
    adaptive: bool = True,
    bounded_range: bool = False,
) -> float:
    """
    Return the largest epsilon of each release for a total, rounded down: the inverse of `compose`.

    It is at most 1e-9 (relative) below the true one. Its shortest decimal text is below too, which is how a
    float epsilon is read. Cost: some 40 evaluations of the methods that `compose` solves.

    Examples
    --------
    >>> per_release(epsilon=1, releases=10, delta=0)
    0.1
    """
    total, releases = positive(epsilon, "epsilon"), _checked_number(whole(releases, "releases"))
    allowed = _delta(delta)
    _flag(adaptive, "adaptive")
    _flag(bounded_range, "bounded_range")
    if total > LARGEST:
        raise ValueError("epsilon must be at most 1e300")
    simple = _down(total / releases)
    if not simple:
        raise ValueError("epsilon must be larger: a share of it is below all floats")

    def enough(each: float) -> bool:
        exact = as_fraction(each, "epsilon")
        items = Counter({(exact, exact if bounded_range else None): releases})
        goal = float(total) * (1 - 1e-12)  # so that `compose`, solving, does not come out above
        return any(method.within(goal) for method in _methods(items, allowed, adaptive) if method.valid)

    low, high = simple, min(float(total), 2 * simple)
    while high < float(total) and enough(high):
        low, high = high, min(float(total), 2 * high)
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class _Method:
    """
    A row of the table.

    Attributes
    ----------
    name, note
        As in the table.
    valid
        Whether it is a bound here.
    value
        Returns its epsilon, rounded up.
    within
        Returns whether its epsilon is at most a total; does not solve for it.
    """

    name: str
    note: str
    valid: bool
    value: Callable[[], float]
    within: Callable[[float], bool]


def _composed(
    items: Counter[Item], delta: Fraction, adaptive: bool, spent: Fraction = Fraction(0)
) -> Composition:
    """Evaluate all methods; `spent` is a delta that no method can use."""
    methods = _methods(items, delta, adaptive)
    rows = [(method.name, method.value(), method.valid, method.note) for method in methods]
    table = pd.DataFrame(rows, columns=["method", "epsilon", "valid", "note"])
    best = min((row for row in rows if row[2]), key=lambda row: row[1])
    return Composition(best[1], best[0], delta + spent, table)


def _methods(items: Counter[Item], delta: Fraction, adaptive: bool) -> Iterator[_Method]:
    """Yield all methods that apply."""
    pure = sum((epsilon * count for (epsilon, _), count in items.items()), Fraction(0))
    if pure > LARGEST:
        raise ValueError("epsilon must be at most 1e300, of all releases together")
    yield _Method("addition", "also at delta 0", True, lambda: float_above(pure), lambda total: pure <= total)
    if delta < LEAST_DELTA or not all(
        FLOATS[0] < epsilon < FLOATS[1] for item in items for epsilon in item if epsilon is not None
    ):
        return
    yield from _approximate(items, float(delta) * (1 - 2.0**-52), adaptive)


def _approximate(items: Counter[Item], delta: float, adaptive: bool) -> Iterator[_Method]:
    """Yield the methods of delta > 0, the quick ones first."""
    eps, counts = _kinds((epsilon, count) for (epsilon, _), count in items.items())
    number, most = items.total(), float(counts @ eps)
    yield _closed("advanced (DRV 2010)", lambda: curves.drv(eps, counts, delta))
    yield _closed("advanced (KOV 2015)", lambda: curves.kov(eps, counts, delta))
    ranged = _kinds((parameter, count) for (_, parameter), count in items.items() if parameter is not None)
    ranges, times = ranged
    rest = _kinds((epsilon, count) for (epsilon, parameter), count in items.items() if parameter is None)

    def curve(order: float) -> float:
        pure = rest[1] @ curves.pure_curve(rest[0], order)
        return float(pure + times @ curves.range_curve(ranges, order))

    mixed, bounded = bool(len(ranges) and len(rest[0])), not len(rest[0])
    name = "Renyi, mixed" if mixed else "Renyi, bounded range" if bounded else "Renyi, pure"
    note = "each by its own curve" if mixed else ""
    equal = bounded and len(ranges) == 1 and number <= MOST_OPTIMAL
    if bounded and not adaptive and not equal:
        note = f"the optimal bound is for up to {MOST_OPTIMAL} equal releases"
    least = min([*ranges.tolist(), *rest[0].tolist()])
    yield _closed(name, lambda: curves.converted(curve, delta, least), note)
    if bounded:
        rho = float(times @ (ranges * ranges)) / 8
        yield _closed("Azuma, bounded range", lambda: curves.azuma(ranges, times, delta))
        yield _closed("zCDP eps^2/8", lambda: curves.converted(lambda order: rho * order, delta, least))
        note = "rho + 2 sqrt(rho ln(1/delta))"
        yield _closed("zCDP eps^2/8, loose", lambda: curves.loose(rho, delta), note)
    if len(eps) == 1:
        yield _solved(
            "optimal, pure (KOV 2015)",
            "no better bound from epsilon-DP alone",
            lambda total: curves.pure_delta(total, eps[0], number) * curves.slack(eps[0], number),
            delta,
            most,
        )
    if equal:
        yield _solved(
            "optimal, bounded range, non-adaptive (DDR 2020)",
            "for releases fixed in advance; no bound for adaptive ones" if adaptive else "fixed in advance",
            lambda total: curves.range_delta(total, ranges[0], number) * curves.slack(ranges[0], number),
            delta,
            most,
            valid=not adaptive,
        )
    if bounded and len(ranges) == 1:
        yield _solved(
            "Gaussian limit",
            "a limit for many releases, no bound",
            lambda total: curves.gaussian_delta(total, ranges[0], number),
            delta,
            2 * most + sqrt(most),
            valid=False,
        )


def _closed(name: str, value: Callable[[], float], note: str = "") -> _Method:
    """Return the method of a formula."""

    def up() -> float:
        return value() * (1 + MARGIN)

    return _Method(name, note, True, up, lambda total: up() <= total)


def _solved(
    name: str, note: str, delta_of: Callable[[float], float], delta: float, most: float, valid: bool = True
) -> _Method:
    """Return the method of a delta that falls as epsilon grows."""
    return _Method(
        name,
        note,
        valid,
        lambda: curves.solved(delta_of, delta, most) * (1 + MARGIN),
        lambda total: delta_of(total / (1 + MARGIN)) <= delta,
    )


def _kinds(numbers: Iterable[tuple[Fraction, int]]) -> tuple[Floats, Floats]:
    """Return distinct epsilons, rounded up, and how many there are of each."""
    kinds = Counter[float]()
    for epsilon, count in numbers:
        kinds[float_above(epsilon)] += count
    return np.array(list(kinds), dtype=float), np.array(list(kinds.values()), dtype=float)


def _checked_number(releases: int) -> int:
    if releases < 1:
        raise ValueError("there must be at least one release")
    if releases > MOST_RELEASES:
        raise ValueError(f"releases must be at most {MOST_RELEASES}")
    return releases


def _delta(value: object) -> Fraction:
    delta = as_fraction(value, "delta")
    if not 0 <= delta < 1:
        raise ValueError("delta must be at least 0 and below 1")
    return delta


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
    return value


def _down(x: Fraction) -> float:
    nearest = float(x)
    return nearest if Fraction(repr(nearest)) <= x else nextafter(nearest, 0.0)
