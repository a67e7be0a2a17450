"""
What releases lose together, as formulas over floats: each is the formula's value, up to rounding.

`eps` is one release's parameter, or an array of them with `counts` releases of each; `total` is the epsilon
of all together. Bounded range (BR): the log ratios of the probabilities of two neighbours span at most eps
(Dong, Durfee and Rogers 2020, DDR20 below). No formula here takes the difference of near numbers, so the
rounding is a few units in the last place for every eps; where exponents are large it is what `slack` says.
"""

from collections.abc import Callable
from math import exp, log, log1p, sqrt

import numpy as np

from queries.arrays import Floats

LARGE = 300.0  # beyond, exponentials leave the range of floats, and plain addition is no worse anyway
ULPS = 2.0**-50  # eight roundings
_GOLDEN = (sqrt(5) - 1) / 2


def drv(eps: Floats, counts: Floats, delta: float) -> float:
    """Advanced composition (Dwork, Rothblum and Vadhan 2010)."""
    return _root(eps, counts, 2 * log(1 / delta)) + float(counts @ (eps * np.expm1(np.minimum(eps, LARGE))))


def kov(eps: Floats, counts: Floats, delta: float) -> float:
    """Advanced composition with the mean of randomised response (Kairouz, Oh and Viswanath 2015, Thm 3.5)."""
    return _root(eps, counts, 2 * log(1 / delta)) + float(counts @ (eps * np.tanh(eps / 2)))


def azuma(eps: Floats, counts: Floats, delta: float) -> float:
    """BR with the largest mean of a loss, by Azuma's inequality (Durfee and Rogers 2019; DDR20)."""
    return float(counts @ mean_loss(eps)) + _root(eps, counts, log(1 / delta) / 2)


def mean_loss(eps: Floats) -> Floats:
    """Return the largest Kullback-Leibler divergence of a BR pair: r - 1 - ln r, r = eps / (e^eps - 1)."""
    ratio = np.clip(eps, 1e-2, LARGE) / np.expm1(np.clip(eps, 1e-2, LARGE))
    exact = ratio - 1 - np.log(ratio)
    # eps^2 / 8 is no less, and 2e-6 above at most where the exact form cancels; beyond, so is eps
    return np.where(eps < 1e-2, eps * eps / 8, np.where(eps > LARGE, eps, exact))


def _root(eps: Floats, counts: Floats, factor: float) -> float:
    return sqrt(factor * float(counts @ (eps * eps)))


def pure_curve(eps: Floats, order: float) -> Floats:
    """Renyi divergence of order a of randomised response, the largest of any eps-DP pair."""
    # it is ln(cosh((a - 1/2) eps) / cosh(eps / 2)) / (a - 1)
    near = np.where(order * eps < LARGE, eps, 0.0)
    lifted = 2 * np.sinh(order * near / 2) * np.sinh((order - 1) * near / 2) / np.cosh(near / 2)
    far = (order - 1) * eps + np.log1p(np.exp((1 - 2 * order) * eps)) - np.log1p(np.exp(-eps))
    return np.where(order * eps < LARGE, np.log1p(lifted), far) / (order - 1)


def range_curve(eps: Floats, order: float) -> Floats:
    """Renyi divergence of order a of the worst eps-BR pair."""
    # The worst pair has log ratios t and t - eps for the t in [0, eps] that maximises a convex
    # combination, so rounds chosen adaptively lose no more than the sum. With F(x) = ln(sinh(x) / x),
    # the divergence there is (a F(a eps / 2) - (a - 1) F((a - 1) eps / 2) - F(eps / 2)) / (a - 1): two
    # rises of F.
    half = np.minimum(eps, LARGE) / 2
    above = order - 1
    divergence = _rise(above * half, half) + _rise(half, above * half) / above
    return np.where(eps > LARGE, eps, np.minimum(divergence, eps))


def _rise(x: Floats, step: Floats) -> Floats:
    """Return F(x + step) - F(x) for F(x) = ln(sinh(x) / x), by sums of positive terms."""
    s = np.minimum(step, LARGE)
    squared = np.minimum(s, 1.0) ** 2
    tail = np.ones_like(s)
    for product in (156, 110, 72, 42, 20):  # sinh(s) - s = s^3 / 6 (1 + s^2 / 20 (1 + s^2 / 42 (...)))
        tail = 1 + squared / product * tail
    beyond = np.where(s < 1, s * squared / 6 * tail, np.sinh(s) - s)
    lifted = (x * 2 * np.sinh(s / 2) ** 2 + beyond + x * _langevin(x) * np.sinh(s)) / (x + s)
    far = step - np.log(-np.expm1(-2 * x)) - np.log1p(step / x)
    return np.where(step < LARGE, np.log1p(lifted), far)


def _langevin(x: Floats) -> Floats:
    """Return coth(x) - 1 / x, by Lambert's continued fraction where that cancels."""
    squared = np.minimum(x, 1.0) ** 2
    denominator = np.full_like(x, 19.0)
    for odd in range(17, 1, -2):
        denominator = odd + squared / denominator
    large = np.maximum(x, 1.0)
    return np.where(x < 1, x / denominator, 1 / np.tanh(large) - 1 / large)


def implied_delta(curve: Callable[[float], float], total: float, least: float) -> float:
    """Return the least delta at a total that a Renyi curve implies: that of `converted`, solved for delta."""

    def implied(height: float) -> float:
        order = 1 + exp(height)
        parts = (order - 1) * curve(order), -(order - 1) * total, (order - 1) * log1p(-1 / order), -log(order)
        return sum(parts) + ULPS * (1 + sum(map(abs, parts)))

    return exp(min(0.0, _least(implied, least)))


def converted(curve: Callable[[float], float], delta: float, least: float) -> float:
    """Return the least epsilon at delta that a Renyi curve implies (Canonne and others 2020, Prop. 12)."""
    # Every order gives a bound; the least is searched for, up to orders of some 100 / `least`, the
    # least eps. One below 0 says (0, delta).

    def implied(height: float) -> float:
        order = 1 + exp(height)
        parts = log(1 / delta), (order - 1) * log1p(-1 / order), -log(order)
        slack = sum(parts) + ULPS * (1 + sum(map(abs, parts)))
        return curve(order) + slack / (order - 1)

    return max(0.0, _least(implied, least))


def _least(implied: Callable[[float], float], least: float) -> float:
    """Search the heights ln(order - 1) for the least of a function that is flat at its bottom."""
    top = max(16.0, log(1 / least) + 5)
    heights = np.linspace(-8, top, round(2 * (top + 8)) + 1).tolist()
    values = [implied(height) for height in heights]
    position = int(np.argmin(values))
    low, high = heights[max(position - 1, 0)], heights[min(position + 1, len(heights) - 1)]
    low, high = golden(implied, low, high, 1e-6)
    return min(*values, implied((low + high) / 2))


def golden(value: Callable[[float], float], low: float, high: float, width: float) -> tuple[float, float]:
    """Narrow an interval about the least of a function with one valley, by golden sections."""
    while high - low > width:  # the bottom is flat: the square of the width is what is lost
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if value(left) <= value(right) else (left, high)
    return low, high


def loose(rho: float, delta: float) -> float:
    """rho-zCDP by the simple conversion rho + 2 sqrt(rho ln(1 / delta)); for comparison only."""
    return rho + 2 * sqrt(rho * log(1 / delta))


def pure_mu(eps: Floats, counts: Floats) -> float:
    """Return mu of the Gaussian limit of many eps-DP releases: the root of the sum of eps^2."""
    return _root(eps, counts, 1)


def range_mu(eps: Floats, counts: Floats) -> float:
    """Return mu of the Gaussian limit of many eps-BR releases, half of that."""
    return _root(eps, counts, 1) / 2


def gaussian_delta(total: float, mu: float) -> float:
    """Return the delta of mu-Gaussian differential privacy (Dong, Roth and Su 2022, Corollary 2.13)."""
    from scipy.special import log_ndtr

    first, second = log_ndtr(-total / mu + mu / 2), total + log_ndtr(-total / mu - mu / 2)
    return float(np.exp(first) * -np.expm1(min(second - first, 0.0)))


def solved(delta_of: Callable[[float], float], delta: float, most: float) -> float:
    """Return the least total up to `most` whose falling delta is at most `delta`, by bisection from above."""
    low, high = 0.0, most
    if delta_of(low) <= delta:
        return low
    while high - low > 1e-11 * high + ULPS * most:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(middle) <= delta else (middle, high)
    return high
