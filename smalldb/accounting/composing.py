"""What many releases from one table lose together, and what each may lose for a given total."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter, sqrt
from typing import Any

import pandas as pd

from smalldb.accounting import curves
from smalldb.arguments import positive, whole
from smalldb.exact import as_fraction

MOST_RELEASES = 100_000
MOST_OPTIMAL = 1_000  # releases: the optimal non-adaptive bound takes their square
MARGIN = 1e-9  # relative: what rounding may add up to, many times over

Row = tuple[str, float, bool, str]
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
    epsilon: object,
    releases: int | None = None,
    delta: object,
    adaptive: bool = True,
    bounded_range: bool = False,
) -> Composition:
    """
    Bound what releases from one table lose together, by all methods that apply.

    Parameters
    ----------
    epsilon
        Of each release, exact; or a list of them, one for each.
    releases
        How many, where epsilon is one number.
    delta
        At least 0 and below 1; 0 leaves plain addition.
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
    each: list[Fraction]
    if isinstance(epsilon, Sequence) and not isinstance(epsilon, str):
        if releases is not None and whole(releases, "releases") != len(epsilon):
            raise ValueError("releases must be the number of epsilons, or left out")
        each = [positive(value, "epsilon") for value in epsilon]
    else:
        if releases is None:
            raise ValueError("releases must say how many there are")
        each = [positive(epsilon, "epsilon")] * _checked_number(whole(releases, "releases"))
    _checked_number(len(each))
    _flag(bounded_range, "bounded_range")
    items: list[Item] = [(value, value if bounded_range else None) for value in each]
    return _composed(items, _delta(delta), _flag(adaptive, "adaptive"))


def compose_records(
    records: Iterable[Mapping[str, Any]], *, delta: object, adaptive: bool = True
) -> Composition:
    """
    Bound what releases from one table lose together, from their records.

    Parameters
    ----------
    records
        As `smalldb.release` writes them; all of one neighbouring relation, none of them seeded.
    delta, adaptive
        As for `compose`; the deltas of the records are added to it.

    Raises
    ------
    ValueError, TypeError
        No records, records that do not go together, or a release that was not private.
    """
    listed = list(records)
    _checked_number(len(listed))
    items: list[Item] = []
    spent = _delta(delta)
    for record in listed:
        try:
            privacy, private, own = record["privacy"], record["private"], record["delta"]
            parameter = privacy["bounded_range"]
            items.append(
                (
                    positive(privacy["epsilon"], "privacy.epsilon"),
                    None if parameter is None else positive(parameter, "privacy.bounded_range"),
                )
            )
        except (KeyError, TypeError) as error:
            raise ValueError("records must be those of releases: a key is missing") from error
        if private is not True:
            raise ValueError("records: a seeded release is not private, whatever its epsilon")
        spent += 0 if own is None else _delta(own)
    if len({record["neighbours"] for record in listed}) > 1:
        raise ValueError("records: all must be of one neighbouring relation")
    if spent >= 1:
        raise ValueError("delta: all together reach 1")
    own_deltas = spent - _delta(delta)
    return _composed(items, _delta(delta), _flag(adaptive, "adaptive"), own_deltas)


def per_release(
    *,
    epsilon: object,
    releases: int,
    delta: object,
    adaptive: bool = True,
    bounded_range: bool = False,
) -> float:
    """
    Return the largest epsilon of each release for a total, rounded down: the inverse of `compose`.

    Its shortest decimal text is below too, which is how a float epsilon is read.

    Examples
    --------
    >>> per_release(epsilon=1, releases=10, delta=0)
    0.1
    """
    total, releases = positive(epsilon, "epsilon"), _checked_number(whole(releases, "releases"))
    simple = _down(total / releases)

    allowed = _delta(delta)
    _flag(adaptive, "adaptive")
    _flag(bounded_range, "bounded_range")

    def lost(each: float) -> float:
        exact = as_fraction(each, "epsilon")
        item = exact, exact if bounded_range else None
        return min(row[1] for row in _rows([item] * releases, allowed, adaptive, bounds_only=True))

    low, high = simple, min(float(total), 2 * simple)
    limit = max(float(total), lost(simple))
    while high < float(total) and lost(high) <= limit:
        low, high = high, min(float(total), 2 * high)
    while nextafter(low, inf) < high and high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if lost(middle) <= limit else (low, middle)
    return low


def _composed(
    items: list[Item], delta: Fraction, adaptive: bool, spent: Fraction = Fraction(0)
) -> Composition:
    """Evaluate all methods; `spent` is a delta that no method can use."""
    rows = _rows(items, delta, adaptive)
    table = pd.DataFrame(rows, columns=["method", "epsilon", "valid", "note"])
    best = min((row for row in rows if row[2]), key=lambda row: row[1])
    return Composition(best[1], best[0], delta + spent, table)


def _rows(items: list[Item], delta: Fraction, adaptive: bool, bounds_only: bool = False) -> list[Row]:
    """Return method, epsilon, whether it is a bound here, and a note; epsilons of bounds rounded up."""
    pure = sum((epsilon for epsilon, _ in items), Fraction(0))
    rows: list[Row] = [("addition", _up(pure), True, "also at delta 0")]
    return rows + (list(_approximate(items, float(delta), adaptive, bounds_only)) if delta else [])


def _approximate(items: list[Item], delta: float, adaptive: bool, bounds_only: bool) -> Iterator[Row]:
    """Yield every method's epsilon at delta > 0, with its margin; or only those that are bounds here."""
    epsilons = [_up(epsilon) for epsilon, _ in items]
    ranges = [_up(parameter) for _, parameter in items if parameter is not None]
    number = len(items)
    most, slack = sum(epsilons), 1 + 1e-12 * (number + 10)
    delta *= 1 - 2.0**-52

    def up(value: float) -> float:
        return value * (1 + MARGIN)

    yield "advanced (DRV 2010)", up(curves.drv(epsilons, delta)), True, ""
    yield "advanced (KOV 2015)", up(curves.kov(epsilons, delta)), True, ""
    if len(set(epsilons)) == 1:
        best = curves.solved(lambda total: slack * curves.pure_delta(total, epsilons[0], number), delta, most)
        yield "optimal, pure (KOV 2015)", up(best), True, "no better bound from epsilon-DP alone"
    kinds = _kinds(items)

    def curve(order: float) -> float:
        return sum(
            count
            * (curves.pure_curve(eps, order) if parameter is None else curves.range_curve(parameter, order))
            for (eps, parameter), count in kinds.items()
        )

    if not ranges:
        yield "Renyi, pure", up(curves.converted(curve, delta)), True, ""
        return
    mixed = len(ranges) < number
    name = "Renyi, mixed" if mixed else "Renyi, bounded range"
    yield name, up(curves.converted(curve, delta)), True, "each by its own curve" if mixed else ""
    if mixed:
        return
    rho = sum(eps * eps for eps in ranges) / 8
    yield "Azuma, bounded range", up(curves.azuma(ranges, delta)), True, ""
    yield "zCDP eps^2/8", up(curves.converted(curves.concentrated(rho), delta)), True, ""
    yield "zCDP eps^2/8, loose", up(curves.loose(rho, delta)), True, "rho + 2 sqrt(rho ln(1/delta))"
    if len(set(ranges)) > 1:
        return
    if number <= MOST_OPTIMAL and not (adaptive and bounds_only):
        best = curves.solved(lambda total: slack * curves.range_delta(total, ranges[0], number), delta, most)
        note = "for releases fixed in advance; no bound for adaptive ones" if adaptive else "fixed in advance"
        yield "optimal, bounded range, non-adaptive (DDR 2020)", up(best), not adaptive, note
    if bounds_only:
        return
    limit = curves.solved(
        lambda total: curves.gaussian_delta(total, ranges[0], number), delta, 2 * most + sqrt(most)
    )
    yield "Gaussian limit", limit, False, "a limit for many releases, no bound"


def _kinds(items: list[Item]) -> dict[tuple[float, float | None], int]:
    kinds: dict[tuple[float, float | None], int] = {}
    for epsilon, parameter in items:
        key = _up(epsilon), None if parameter is None else _up(parameter)
        kinds[key] = kinds.get(key, 0) + 1
    return kinds


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


def _up(x: Fraction) -> float:
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else nextafter(nearest, inf)


def _down(x: Fraction) -> float:
    nearest = float(x)
    return nearest if Fraction(repr(nearest)) <= x else nextafter(nearest, 0.0)
