"""The delta of a given epsilon of all releases together, and the Gaussian limit of many."""

from collections.abc import Iterator
from fractions import Fraction

from smalldb.accounting import binomials, curves, mixtures
from smalldb.accounting.checked_arguments import checked_flag, kinds_of
from smalldb.accounting.methods import FLOATS, LARGEST, MARGIN, MOST_FIXED, MOST_PURE, kinds_above
from smalldb.accounting.sweeps import sweeping
from smalldb.exact.numbers import Number, positive


@sweeping("total", "releases")
def delta(
    *,
    total: Number,
    epsilon: Number,
    releases: int | None = None,
    adaptive: bool = True,
    bounded_range: bool = False,
) -> float:
    """
    Bound the delta at which releases from one table are (total, delta)-differentially private together.

    `total` and `releases` may be arrays, which are broadcast: an array is returned.

    Equations (18), (20) and (21) of `docs/theory.md`.

    The least of the valid bounds, rounded up. From epsilon-DP alone it is the optimal one; for bounded-range
    releases that of their Renyi curve as well, and for those fixed in advance the optimal one. How many there
    are and their epsilons must not depend on anything released, as for `compose`.

    Parameters
    ----------
    total
        The epsilon of all releases together, epsilon_g in Dong, Durfee and Rogers (2020); above 0, exact.
    epsilon
        Of each release, exact; or one for each of them: any iterable.
    releases
        How many, where epsilon is one number.
    adaptive, bounded_range
        As for `compose`.

    Examples
    --------
    >>> [round(delta(total=1, epsilon=0.1, releases=20, bounded_range=b), 9) for b in (False, True)]
    [0.002396692, 6.11e-07]
    """
    goal, kinds = positive(total, "total"), kinds_of(epsilon, releases)
    checked_flag(adaptive, "adaptive")
    checked_flag(bounded_range, "bounded_range")
    pure = sum((each * count for each, count in kinds.items()), Fraction(0))
    if pure <= goal:  # epsilons add up, and leave nothing for a delta to cover
        return 0.0
    if not all(FLOATS[0] < x < FLOATS[1] for x in (*kinds, goal)) or pure > LARGEST:
        return 1.0
    fixed = not adaptive or kinds.total() == 1
    return min(1.0, *(float(found) * (1 + MARGIN) for found in _bounds(kinds, goal, bounded_range, fixed)))


@sweeping("releases", "total")
def gaussian_limit(
    *, epsilon: Number, releases: int | None = None, bounded_range: bool = False, total: Number | None = None
) -> float:
    """
    Return mu of the Gaussian limit of many small releases, or its delta at a total: a limit, no bound.

    `releases` and `total` may be arrays, which are broadcast: an array is returned.

    Equation (23) of `docs/theory.md`.

    mu is the root of the sum of epsilon^2, and half of that for bounded-range releases.
    At T = 1, epsilon = 1 the true delta(.3) is .1380, where the limit says .0964.

    Parameters
    ----------
    epsilon, releases, bounded_range
        As for `compose`.
    total
        The epsilon of all together, if a delta is wanted.

    Examples
    --------
    >>> [gaussian_limit(epsilon=0.1, releases=100, bounded_range=known) for known in (False, True)]
    [1.0, 0.5]
    """
    checked_flag(bounded_range, "bounded_range")
    kinds = kinds_of(epsilon, releases)
    goal = None if total is None else positive(total, "total")
    if not all(FLOATS[0] < each < FLOATS[1] for each in kinds):
        raise ValueError("epsilon must be from 1e-80 to 1e80 for the limit")
    if goal is not None and not FLOATS[0] < goal < FLOATS[1]:
        raise ValueError("total must be from 1e-80 to 1e80 for the limit")
    mu = (curves.range_mu if bounded_range else curves.pure_mu)(*kinds_above(kinds.items()))
    return mu if goal is None else curves.gaussian_delta(float(goal), mu)


def _bounds(kinds: dict[Fraction, int], total: Fraction, bounded_range: bool, fixed: bool) -> Iterator[float]:
    """Yield bounds on the delta at a total, each up to rounding."""
    eps, counts = kinds_above(kinds.items())
    goal, number, least = float(total) * (1 - curves.ULPS), sum(kinds.values()), float(eps.min())
    if len(eps) == 1 and number <= MOST_PURE:
        yield binomials.pure_delta(goal, eps[0], number) * binomials.slack(eps[0], number)
    elif len(eps) > 1 and mixtures.possible(counts):
        yield mixtures.Mixture.of(eps, counts).delta(goal)
    curve = curves.range_curve if bounded_range else curves.pure_curve
    yield curves.implied_delta(lambda order: float(counts @ curve(eps, order)), goal, least)
    if bounded_range and fixed and len(eps) == 1 and number <= MOST_FIXED:
        yield binomials.range_delta(goal, eps[0], number) * binomials.slack(eps[0], number)
