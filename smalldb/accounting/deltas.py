"""The delta of a given epsilon of all releases together, the adaptive optimum, and the Gaussian limit."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from queries.arrays import Floats
from smalldb.accounting import binomials, curves
from smalldb.accounting.checked_arguments import checked_flag, checked_number, kinds_of
from smalldb.accounting.methods import FLOATS, LARGEST, MARGIN, MOST_FIXED, MOST_PURE, kinds_above
from smalldb.bounds.calculators import sweeping
from smalldb.exact.numbers import Number, float_above, positive, whole

MOST_ADAPTIVE = 64  # releases
FINEST = 2_000  # steps
LEAST_EACH, MOST_EACH = Fraction(1, 10**6), Fraction(100)  # epsilon of a release
ROUNDING = 1e-13  # relative, a release: far more than some thirty roundings of 2^-53


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
    Equations (18), (20) and (21) of `docs/theory.md`. The least of the valid bounds, rounded up. From
    epsilon-DP alone it is the optimal one; for bounded-range releases that of their Renyi curve as well, and
    for those fixed in advance the optimal one. How many there are and their epsilons must not depend on
    anything released, as for `compose`.

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
    return min(1.0, *(float(bound) * (1 + MARGIN) for bound in _bounds(kinds, goal, bounded_range, fixed)))


@sweeping("releases", "total")
def gaussian_limit(
    *, epsilon: Number, releases: int | None = None, bounded_range: bool = False, total: Number | None = None
) -> float:
    """
    Return mu of the Gaussian limit of many small releases, or its delta at a total: a limit, no bound.

    `releases` and `total` may be arrays, which are broadcast: an array is returned.
    Equation (23) of `docs/theory.md`. mu is the root of the sum of epsilon^2, and half of that for
    bounded-range releases. At T = 1, epsilon = 1 the true delta(.3) is .1380, where the limit says .0964.

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
    elif len(eps) > 1 and binomials.mixable(counts):
        yield binomials.Mixture.of(eps, counts).delta(goal)
    curve = curves.range_curve if bounded_range else curves.pure_curve
    yield curves.implied_delta(lambda order: float(counts @ curve(eps, order)), goal, least)
    if bounded_range and fixed and len(eps) == 1 and number <= MOST_FIXED:
        yield binomials.range_delta(goal, eps[0], number) * binomials.slack(eps[0], number)


@sweeping("total", "epsilon", "releases")
def adaptive_delta(*, total: Number, epsilon: Number, releases: int, steps: int = 200) -> tuple[float, float]:
    """
    Enclose the optimal delta of adaptively chosen epsilon-bounded-range releases.

    `total`, `epsilon` and `releases` may be arrays, which are broadcast: two arrays are returned.
    Equation (22) of `docs/theory.md`. No bound for releases of bounded range alone is below the first number,
    and the second is one. Each may be chosen after those before it were seen; their number and their epsilon
    may not. With d_0(g) = max(0, 1 - e^g), the recursion is ::

        d_k(g) = max over t in [0, eps] of P d_{k-1}(g - t) + (1 - P) d_{k-1}(g - t + eps),
        P = (1 - e^(t - eps)) / (1 - e^-eps)

    (Dong, Durfee and Rogers 2020). Log ratios t on a grid give the first number. In y = e^-t
    every d_{k-1} is convex, hence below its chords between grid positions, and P x chord + (1 - P) x chord
    has its largest value at an end of a grid cell or at one position inside: the second number.

    Parameters
    ----------
    total
        The epsilon of all releases together; at least 0, exact.
    epsilon
        The bounded-range parameter of each release, exact; from 1e-6 to 100.
    releases
        Up to 64. Cost: releases^2 steps^2 operations.
    steps
        Grid cells in epsilon, up to 2,000; the gap falls as their square.

    Examples
    --------
    >>> low, high = adaptive_delta(total=0, epsilon=1, releases=2)
    >>> round(low, 4), round(high, 4)
    (0.3034, 0.3034)
    """
    k = checked_number(whole(releases, "releases"), MOST_ADAPTIVE)
    steps = whole(steps, "steps")
    if steps > FINEST:
        raise ValueError(f"steps must be at most {FINEST}")
    each = positive(epsilon, "epsilon")
    exact = Fraction(0) if total == 0 else positive(total, "total")
    if not LEAST_EACH <= each <= MOST_EACH:
        raise ValueError("epsilon must be from 1e-6 to 100 here: `compose` and `delta` take others")
    if exact >= k * each:
        return 0.0, 0.0
    eps, goal = float_above(each), float(exact)
    unit = eps / steps
    rounding = k * ROUNDING * max(1.0, 1 / eps)  # a position is off by 2^-53, and losses go up to k eps
    positions = np.arange(-k * steps, k * steps + 1)
    low = high = -np.expm1(np.minimum(goal + positions * unit, 0.0))
    for left in reversed(range(k)):
        low, high = (_step(d, eps, steps, left * steps, upper) for d, upper in ((low, False), (high, True)))
    return max(0.0, float(low[0]) * (1 - rounding)), min(1.0, float(high[0]) * (1 + rounding))


def _step(d: Floats, eps: float, steps: int, reach: int, upper: bool) -> Floats:
    """Return d_k at the positions -reach..reach from d_{k-1}, given at those up to `steps` further out."""
    positions, unit = 2 * reach + 1, eps / steps
    best = np.zeros(positions)

    def weights(t: Floats | float) -> Floats:
        return np.asarray(np.expm1(np.minimum(t - eps, 0.0)) / np.expm1(-eps))

    def values(i: int) -> tuple[Floats, Floats]:
        """d_{k-1} at g - t and at g - t + eps, for t = i unit."""
        return d[steps - i : steps - i + positions], d[2 * steps - i : 2 * steps - i + positions]

    for i in range(steps + 1):
        above, below = values(i)
        chance = weights(i * unit)
        best = np.maximum(best, chance * above + (1 - chance) * below)
        if not upper or i == steps:
            continue
        next_above, next_below = values(i + 1)
        # chords in y = e^-t: a_0 + a_1 y; then the mean is a constant + rise y + fall / y
        start, end = np.exp(-i * unit), np.exp(-(i + 1) * unit)
        a_1, b_1 = (next_above - above) / (end - start), (next_below - below) / (end - start)
        a_0, b_0 = above - a_1 * start, below - b_1 * start
        fall, rise = np.exp(-eps) * (b_0 - a_0), a_1 - np.exp(-eps) * b_1
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.clip(np.nan_to_num(np.sqrt(fall / rise), nan=start), end, start)
        chance, share = weights(-np.log(y)), (start - y) / (start - end)
        inside = chance * (above + share * (next_above - above))
        inside += (1 - chance) * (below + share * (next_below - below))
        best = np.maximum(best, inside)
    return best
