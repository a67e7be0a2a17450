"""The methods: what bounds the epsilon of releases together, each with what it needs to hold."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from queries.arrays import Floats
from smalldb.accounting import binomials, curves, mixtures
from smalldb.exact.numbers import float_above

MOST_FIXED = 10_000  # releases: the optimal non-adaptive bound takes their power 3/2
MOST_PURE = 10**8  # releases: the optimal pure bound takes their square root
MARGIN = 1e-9  # relative: what rounding may add up to, many times over
LARGEST = Fraction(10**300)  # epsilon of all releases together: a float
FLOATS = Fraction(1, 10**80), Fraction(10**80)  # beyond, squares and cubes could leave them
LEAST_DELTA = Fraction(1, 10**300)

Item = tuple[Fraction, Fraction | None]  # epsilon, and the bounded-range parameter where there is one


@dataclass(frozen=True, slots=True)
class Method:
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
        Returns whether its epsilon is at most a total, so that `value` does not come out above; does not
        solve for it.
    """

    name: str
    note: str
    valid: bool
    value: Callable[[], float]
    within: Callable[[Fraction], bool]


def methods_of(items: Counter[Item], delta: Fraction, adaptive: bool) -> Iterator[Method]:
    """Yield all methods that apply."""
    pure = sum((epsilon * count for (epsilon, _), count in items.items()), Fraction(0))
    if pure > LARGEST:
        raise ValueError("epsilon must be at most 1e300, of all releases together")
    yield Method("addition", "also at delta 0", True, lambda: float_above(pure), lambda total: pure <= total)
    if delta < LEAST_DELTA or not all(
        FLOATS[0] < epsilon < FLOATS[1] for item in items for epsilon in item if epsilon is not None
    ):
        return
    yield from _approximate(items, below(delta), adaptive)


def _approximate(items: Counter[Item], delta: float, adaptive: bool) -> Iterator[Method]:
    """Yield the methods of delta > 0, the quick ones first."""
    eps, counts = kinds_above((epsilon, count) for (epsilon, _), count in items.items())
    number, most = items.total(), float(counts @ eps)
    yield _closed("advanced (DRV 2010)", lambda: curves.drv(eps, counts, delta))
    yield _closed("advanced (KOV 2015)", lambda: curves.kov(eps, counts, delta))
    ranged = kinds_above(
        (parameter, count) for (_, parameter), count in items.items() if parameter is not None
    )
    ranges, times = ranged
    rest = kinds_above((epsilon, count) for (epsilon, parameter), count in items.items() if parameter is None)

    def curve(order: float) -> float:
        pure = rest[1] @ curves.pure_curve(rest[0], order)
        return float(pure + times @ curves.range_curve(ranges, order))

    mixed, bounded = bool(len(ranges) and len(rest[0])), not len(rest[0])
    name = "Renyi, mixed" if mixed else "Renyi, bounded range" if bounded else "Renyi, pure"
    note = "each by its own curve" if mixed else ""
    adaptive = adaptive and number > 1  # one release has none before it
    equal = bounded and len(ranges) == 1 and number <= MOST_FIXED
    if bounded and not adaptive and not equal:
        note = f"the optimal bound is for up to {MOST_FIXED} equal releases"
    least = min([*ranges.tolist(), *rest[0].tolist()])
    yield _closed(name, lambda: curves.converted(curve, delta, least), note)
    if bounded:
        rho, tight = float(times @ (ranges * ranges)) / 8, float(times @ curves.mean_loss(ranges))
        yield _closed("Azuma, bounded range", lambda: curves.azuma(ranges, times, delta))
        yield _closed("zCDP eps^2/8", lambda: curves.converted(lambda order: rho * order, delta, least))
        yield _closed(
            "zCDP r - 1 - ln r",
            lambda: curves.converted(lambda order: tight * order, delta, least),
            "r = eps / (e^eps - 1): the least rho",
        )
        note = "rho + 2 sqrt(rho ln(1/delta))"
        yield _closed("zCDP eps^2/8, loose", lambda: curves.loose(rho, delta), note)
    if len(eps) == 1 and number <= MOST_PURE:
        yield _solved(
            "optimal, pure (KOV 2015)",
            "no better bound from epsilon-DP alone",
            lambda total: binomials.pure_delta(total, eps[0], number) * binomials.slack(eps[0], number),
            delta,
            most,
        )
    if len(eps) > 1 and mixtures.possible(counts):
        mixture = mixtures.Mixture.of(eps, counts)
        yield _solved(
            "optimal, pure, each rounded up to a grid",
            "nearly the best from epsilon-DP alone",
            mixture.delta,
            delta,
            mixture.most,
        )
    if equal:
        yield Method(
            "optimal, bounded range, non-adaptive (DDR 2020)",
            "for releases fixed in advance; no bound for adaptive ones" if adaptive else "fixed in advance",
            not adaptive,
            lambda: binomials.range_epsilon(ranges[0], number, delta) * (1 + MARGIN),
            lambda total: binomials.range_within(
                _goal(total) / (1 + MARGIN), ranges[0], number, delta / binomials.slack(ranges[0], number)
            ),
        )
    if bounded:
        mu = curves.range_mu(ranges, times)
        yield _solved(
            "Gaussian limit",
            f"a limit for many releases, no bound: mu = {mu:.6g}",
            lambda total: curves.gaussian_delta(total, mu),
            delta,
            2 * most + sqrt(most),
            valid=False,
        )


def _closed(name: str, value: Callable[[], float], note: str = "") -> Method:
    """Return the method of a formula."""

    def up() -> float:
        return value() * (1 + MARGIN)

    return Method(name, note, True, up, lambda total: up() <= _goal(total))


def _solved(
    name: str, note: str, delta_of: Callable[[float], float], delta: float, most: float, valid: bool = True
) -> Method:
    """Return the method of a delta that falls as epsilon grows."""
    return Method(
        name,
        note,
        valid,
        lambda: curves.solved(delta_of, delta, most) * (1 + MARGIN),
        lambda total: delta_of(_goal(total) / (1 + MARGIN)) <= delta,
    )


def _goal(total: Fraction) -> float:
    return float(total) * (1 - 1e-12)


def kinds_above(numbers: Iterable[tuple[Fraction, int]]) -> tuple[Floats, Floats]:
    """Return distinct epsilons, rounded up, and how many there are of each."""
    kinds = Counter[float]()
    for epsilon, count in numbers:
        kinds[float_above(epsilon)] += count
    return np.array(list(kinds), dtype=float), np.array(list(kinds.values()), dtype=float)


def below(delta: Fraction) -> float:
    """Return a float that is not above delta."""
    return float(delta) * (1 - 2.0**-52)
