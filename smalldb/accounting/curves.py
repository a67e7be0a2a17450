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
import numpy.typing as npt

LARGE = 300.0  # beyond, exponentials leave the range of floats, and plain addition is no worse anyway
ULPS = 2.0**-50  # eight roundings
BLOCK = 1 << 16  # outcomes looked at together

Floats = npt.NDArray[np.float64]


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
    """
    Renyi divergence of order a of randomised response, the largest of any eps-DP pair.

    It is ln(cosh((a - 1/2) eps) / cosh(eps / 2)) / (a - 1).
    """
    near = np.where(order * eps < LARGE, eps, 0.0)
    lifted = 2 * np.sinh(order * near / 2) * np.sinh((order - 1) * near / 2) / np.cosh(near / 2)
    far = (order - 1) * eps + np.log1p(np.exp((1 - 2 * order) * eps)) - np.log1p(np.exp(-eps))
    return np.where(order * eps < LARGE, np.log1p(lifted), far) / (order - 1)


def range_curve(eps: Floats, order: float) -> Floats:
    """
    Renyi divergence of order a of the worst eps-BR pair.

    The worst pair has log ratios t and t - eps for the t in [0, eps] that maximises a convex combination, so
    rounds chosen adaptively lose no more than the sum. With F(x) = ln(sinh(x) / x), the divergence there is
    (a F(a eps / 2) - (a - 1) F((a - 1) eps / 2) - F(eps / 2)) / (a - 1): two rises of F.
    """
    half = np.minimum(eps, LARGE) / 2
    above = order - 1
    found = _rise(above * half, half) + _rise(half, above * half) / above
    return np.where(eps > LARGE, eps, np.minimum(found, eps))


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


def converted(curve: Callable[[float], float], delta: float, least: float) -> float:
    """
    Return the least epsilon at delta that a Renyi curve implies (Canonne, Kamath and Steinke 2020, Prop. 12).

    Every order gives a bound; the least is searched for, up to orders of some 100 / `least`, the least eps.
    One below 0 says (0, delta).
    """

    def implied(height: float) -> float:
        order = 1 + exp(height)
        parts = log(1 / delta), (order - 1) * log1p(-1 / order), -log(order)
        slack = sum(parts) + ULPS * (1 + sum(map(abs, parts)))
        return curve(order) + slack / (order - 1)

    top = max(16.0, log(1 / least) + 5)
    heights = np.linspace(-8, top, round(2 * (top + 8)) + 1).tolist()
    values = [implied(height) for height in heights]
    place = int(np.argmin(values))
    low, high = heights[max(place - 1, 0)], heights[min(place + 1, len(heights) - 1)]
    golden = (sqrt(5) - 1) / 2
    while high - low > 1e-6:  # the minimum is flat: its square is what is lost
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if implied(left) <= implied(right) else (left, high)
    return max(0.0, min(*values, implied((low + high) / 2)))


def loose(rho: float, delta: float) -> float:
    """rho-zCDP by the simple conversion rho + 2 sqrt(rho ln(1 / delta)); for comparison only."""
    return rho + 2 * sqrt(rho * log(1 / delta))


def slack(eps: float, releases: int) -> float:
    """Return the factor by which rounding may make one of the two deltas below too small."""
    return 1 + 1e-12 * (releases + 10) + 8 * ULPS * releases * eps


def pure_delta(total: float, eps: float, releases: int) -> float:
    """Return the optimal delta of adaptive eps-DP releases: that of randomised response (KOV 2015)."""
    lost = np.arange(releases + 1, dtype=float)
    logs = _log_choose(releases) - releases * np.logaddexp(0, eps) + lost * eps
    return float(_excess(logs, (releases - 2 * lost) * eps, total, eps * releases))


def range_delta(total: float, eps: float, releases: int) -> float:
    """
    Return the optimal delta of eps-BR releases that are fixed in advance (DDR20, Theorem 3).

    The largest over the stationary log ratios t_l = (total + (l + 1) eps) / (T + 1), l = 0..T; those of eps
    and above lose nothing.
    """
    lost, choose = np.arange(releases + 1, dtype=float), _log_choose(releases)
    stationary = (total + (lost + 1) * eps) / (releases + 1)
    stationary = stationary[stationary < eps]
    worst = 0.0
    for first in range(0, len(stationary), BLOCK // (releases + 1) + 1):
        t = stationary[first : first + BLOCK // (releases + 1) + 1, None]
        unit = np.log(-np.expm1(-eps))
        logs = choose + (releases - lost) * (np.log(-np.expm1(t - eps)) - t - unit)
        logs += lost * (np.log(-np.expm1(-t)) - unit)
        worst = max(worst, float(_excess(logs, releases * t - lost * eps, total, eps * releases).max()))
    return worst


def gaussian_delta(total: float, eps: float, releases: int) -> float:
    """Return delta of the Gaussian limit of many eps-BR releases, mu = eps sqrt(T) / 2: no bound."""
    from scipy.special import log_ndtr

    mu = eps * sqrt(releases) / 2
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


def _log_choose(releases: int) -> Floats:
    from scipy.special import gammaln

    lost = np.arange(releases + 1, dtype=float)
    return np.asarray(gammaln(releases + 1) - gammaln(lost + 1) - gammaln(releases - lost + 1))


def _excess(logs: Floats, losses: Floats, total: float, scale: float) -> Floats:
    """
    Return the sum of exp(logs) (e^loss - e^total) over the losses above total, for losses of a `scale`.

    Losses are taken as large as rounding may have left them.
    """
    over = losses - total + ULPS * scale
    return np.asarray((np.exp(logs + losses) * -np.expm1(-np.maximum(over, 0))).sum(axis=-1))
