"""
What releases lose together, as formulas over floats: each is the formula's value, up to rounding.

`eps` is one release's parameter, `total` the epsilon of all together. Bounded range (BR): the log ratios of
the probabilities of two neighbours span at most eps (Dong, Durfee and Rogers 2020, DDR20 below).
"""

from collections.abc import Callable
from math import exp, expm1, inf, log, log1p, sqrt, tanh

import numpy as np
import numpy.typing as npt

LARGE = 300.0  # beyond, exponentials leave the range of floats, and plain addition is no worse anyway

Floats = npt.NDArray[np.float64]


def drv(epsilons: list[float], delta: float) -> float:
    """Advanced composition (Dwork, Rothblum and Vadhan 2010)."""
    return _root(epsilons, 2 * log(1 / delta)) + sum(eps * expm1(min(eps, LARGE)) for eps in epsilons)


def kov(epsilons: list[float], delta: float) -> float:
    """Advanced composition with the mean of randomised response (Kairouz, Oh and Viswanath 2015, Thm 3.5)."""
    return _root(epsilons, 2 * log(1 / delta)) + sum(eps * tanh(eps / 2) for eps in epsilons)


def azuma(ranges: list[float], delta: float) -> float:
    """BR with the largest mean of a loss, by Azuma's inequality (Durfee and Rogers 2019; DDR20)."""
    return sum(map(mean_loss, ranges)) + _root(ranges, log(1 / delta) / 2)


def mean_loss(eps: float) -> float:
    """Return the largest Kullback-Leibler divergence of a BR pair: r - 1 - ln r, r = eps / (e^eps - 1)."""
    if eps < 1e-3:
        return eps * eps / 8  # no less, and the exact form cancels
    if eps > LARGE:
        return eps
    ratio = eps / expm1(eps)
    return ratio - 1 - log(ratio)


def _root(epsilons: list[float], factor: float) -> float:
    return sqrt(factor * sum(eps * eps for eps in epsilons))


def pure_curve(eps: float, order: float) -> float:
    """Renyi divergence of order a of randomised response, the largest of any eps-DP pair."""
    # ln[(e^(a eps) + e^((1 - a) eps)) / (1 + e^eps)] / (a - 1), without overflow
    return (order * eps - eps + log1p(exp((1 - 2 * order) * eps)) - log1p(exp(-eps))) / (order - 1)


def range_curve(eps: float, order: float) -> float:
    """
    Renyi divergence of order a of the worst eps-BR pair.

    The worst pair has log ratios t and t - eps for the t in [0, eps] that maximises a convex combination, so
    rounds chosen adaptively lose no more than the sum.
    """
    if eps > LARGE:
        return eps
    b = -expm1(-order * eps) / -expm1(-eps)
    rest = exp(-eps) * b - exp(-order * eps)
    t = eps if rest <= 0 else min(max(log((order - 1) * b / (order * rest)), 0.0), eps)
    return (order * t + log(b * exp(-t) - rest)) / (order - 1)


def concentrated(rho: float) -> Callable[[float], float]:
    """Return the Renyi curve of rho-zCDP (Bun and Steinke 2016)."""
    return lambda order: rho * order


def converted(curve: Callable[[float], float], delta: float) -> float:
    """
    Return the least epsilon at delta that a Renyi curve implies (Canonne, Kamath and Steinke 2020, Prop. 12).

    Every order gives a bound; the least is searched for. One below 0 says (0, delta).
    """

    def implied(height: float) -> float:
        order = 1 + exp(height)
        slack = log(1 / delta) + (order - 1) * log1p(-1 / order) - log(order)
        return curve(order) + slack / (order - 1)

    heights = np.linspace(-6, 16, 89)
    values = [implied(height) for height in heights]
    place = int(np.argmin(values))
    low, high = heights[max(place - 1, 0)], heights[min(place + 1, len(heights) - 1)]
    golden = (sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if implied(left) <= implied(right) else (left, high)
    return max(0.0, min(*values, implied((low + high) / 2)))


def loose(rho: float, delta: float) -> float:
    """rho-zCDP by the simple conversion rho + 2 sqrt(rho ln(1 / delta)); for comparison only."""
    return rho + 2 * sqrt(rho * log(1 / delta))


def pure_delta(total: float, eps: float, releases: int) -> float:
    """Return the optimal delta of adaptive eps-DP releases: that of randomised response (KOV 2015)."""
    lost = np.arange(releases + 1, dtype=float)
    logs = _log_choose(releases) - releases * np.logaddexp(0, eps) + lost * eps
    return _excess(logs, (releases - 2 * lost) * eps, total)


def range_delta(total: float, eps: float, releases: int) -> float:
    """
    Return the optimal delta of eps-BR releases that are fixed in advance (DDR20, Theorem 3).

    The largest over the T + 1 stationary log ratios t_l = (total + (l + 1) eps) / (T + 1).
    """
    lost, choose = np.arange(releases + 1, dtype=float), _log_choose(releases)
    worst = 0.0
    for place in range(releases + 1):
        t = min(max((total + (place + 1) * eps) / (releases + 1), 0.0), eps)
        p = min(max((exp(-t) - exp(-eps)) / -expm1(-eps), 0.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(lost == releases, 0.0, (releases - lost) * np.log(p))
            gone = np.where(lost == 0, 0.0, lost * np.log1p(-p))
        worst = max(worst, _excess(choose + kept + gone, releases * t - lost * eps, total))
    return worst


def gaussian_delta(total: float, eps: float, releases: int) -> float:
    """Return delta of the Gaussian limit of many eps-BR releases, mu = eps sqrt(T) / 2: no bound."""
    from scipy.special import log_ndtr

    mu = eps * sqrt(releases) / 2
    first, second = log_ndtr(-total / mu + mu / 2), total + log_ndtr(-total / mu - mu / 2)
    return float(exp(first) * -expm1(min(second - first, 0.0)))


def solved(delta_of: Callable[[float], float], delta: float, most: float) -> float:
    """Return the least total up to `most` whose falling delta is at most `delta`, by bisection from above."""
    low, high = 0.0, most
    if delta_of(low) <= delta:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(middle) <= delta else (middle, high)
    return high


def _log_choose(releases: int) -> Floats:
    from scipy.special import gammaln

    lost = np.arange(releases + 1, dtype=float)
    return np.asarray(gammaln(releases + 1) - gammaln(lost + 1) - gammaln(releases - lost + 1))


def _excess(logs: Floats, losses: Floats, total: float) -> float:
    """Return the sum of exp(logs) (e^loss - e^total) over the losses above total."""
    over = losses > total
    with np.errstate(over="ignore"):
        terms = np.exp(logs[over] + losses[over]) * -np.expm1(total - losses[over])
    found = float(terms.sum())
    return found if found == found else inf
