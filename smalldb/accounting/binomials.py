"""
Deltas of equal releases, as sums over how many of them lost little: of any number of releases.

Of T releases, i of which lost little, the loss is a falling line in i, and i is binomial. Only terms within
some nine standard deviations are added; what is left out is bounded by a geometric series, since the ratio
of two neighbouring binomial probabilities is monotone, and added as well. No formula here takes the
difference of near numbers; where exponents are large, rounding is what `slack` says.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, sqrt

import numpy as np

from queries.arrays import Floats
from smalldb.accounting.curves import LARGE, ULPS, solved

BLOCK = 1 << 18  # terms looked at together
COARSE = 64  # stationary points that are looked at first

GRID = 1 << 15  # positions that a loss can have, but for rounding
MOST_STEPS = 1_000  # releases: each takes a step over the grid
LOST = 1e-306  # what underflow can take away in all: far below any delta that is asked for


def slack(eps: float, releases: int) -> float:
    """Return the factor by which rounding may make one of the two deltas below too small."""
    return 1 + 1e-12 * (releases + 10) + 8 * ULPS * releases * eps


def pure_delta(total: float, eps: float, releases: int) -> float:
    """Return the optimal delta of adaptive eps-DP releases: that of randomised response (KOV 2015)."""
    heads = -np.logaddexp(0, -eps)
    first, last = releases * eps, (releases * eps - total) / (2 * eps)
    logs = np.array([heads]), np.array([heads - eps])
    return float(_excess(releases, *logs, np.array([first]), 2 * eps, np.array([last]), total)[0])


def range_delta(total: float, eps: float, releases: int) -> float:
    """Return the optimal delta of eps-BR releases that are fixed in advance (DDR20, Theorem 3)."""
    # the largest over the stationary log ratios t_l = (total + (l + 1) eps) / (T + 1), l = 0..T; those
    # of eps and above lose nothing
    return float(_stationary(total, eps, releases, np.arange(releases + 1.0)).max(initial=0))


def range_within(total: float, eps: float, releases: int, delta: float) -> bool:
    """Return whether `range_delta` is at most delta: a few stationary points may show that it is not."""
    few = _stationary(total, eps, releases, _coarse(releases))
    return few.max(initial=0) <= delta and range_delta(total, eps, releases) <= delta


def range_epsilon(eps: float, releases: int, delta: float) -> float:
    """Return the least total whose `range_delta`, times `slack`, is at most delta."""
    # solved for a few stationary points; those that lose more there join them, until none does
    points, every = _coarse(releases), np.arange(releases + 1.0)
    allowed = delta / slack(eps, releases)
    while True:

        def of_points(total: float, points: Floats = points) -> float:
            return float(_stationary(total, eps, releases, points).max(initial=0))

        total = solved(of_points, allowed, releases * eps)
        lost = _stationary(total, eps, releases, every)
        if lost.max(initial=0) <= allowed:
            return total
        points = np.union1d(points, every[np.argsort(lost)[-COARSE:]])


def _coarse(releases: int) -> Floats:
    return np.unique(np.linspace(0, releases, COARSE).round())


def _stationary(total: float, eps: float, releases: int, positions: Floats) -> Floats:
    """Return the delta at stationary log ratios, given by their numbers l."""
    t = (total + (positions + 1) * eps) / (releases + 1)
    lost, t = np.zeros(len(t)), np.minimum(t, eps)
    inner = np.flatnonzero(t < eps)
    step = BLOCK // (2 * _width(releases)) + 1
    for start in range(0, len(inner), step):
        chosen = inner[start : start + step]
        at = t[chosen]
        unit = np.log(-np.expm1(-eps))
        heads = np.log(-np.expm1(at - eps)) - unit  # under the more likely one: log ratio t
        tails = np.log(-np.expm1(-at)) + at - eps - unit  # and t - eps
        last = (releases * at - total) / eps
        lost[chosen] = _excess(releases, heads, tails, releases * at, eps, last, total)
    return lost


def _width(releases: int) -> int:
    """Return nine standard deviations, at most, and what the tails of few rare ones need."""
    return min(releases, ceil(4.5 * sqrt(releases)) + 60) + 1


def _excess(
    releases: int, heads: Floats, tails: Floats, first: Floats, step: float, last: Floats, total: float
) -> Floats:
    """Bound the sum over i of P(i) (1 - e^(total - loss_i)), loss_i = first - i step above total."""
    # i tails of T coins have P(i), given by the logarithms of both sides of a coin; `last` is the i of
    # loss `total`. Losses are taken as large as rounding may have left them.
    width = _width(releases)
    mode = np.floor((releases + 1) * np.exp(tails))
    top = np.clip(np.minimum(np.ceil(last), mode + width), 0, releases)
    bottom = np.maximum(0, np.minimum(top, mode) - width)
    i = top[:, None] - np.arange(int((top - bottom).max(initial=0)) + 1)
    inside = i >= bottom[:, None]
    i = np.maximum(i, 0)
    logs = _log_choose(releases, i) + (releases - i) * heads[:, None] + i * tails[:, None]
    over = first[:, None] - i * step - total + 2 * ULPS * releases * step
    probability = np.where(inside, np.exp(logs), 0.0)
    inner = (probability * -np.expm1(-np.maximum(over, 0))).sum(axis=1)
    odds = np.clip(tails - heads, -LARGE, LARGE)
    left, right = bottom.astype(np.int64), top.astype(np.int64)
    rows = np.arange(len(top))
    edges = probability[rows, right - left], probability[:, 0]
    # the ratio of each probability to the next, further out than the edge, is at most that at the edge
    outwards = left / (releases - left + 1) * np.exp(-odds), (releases - right) / (right + 1) * np.exp(odds)
    left_out = [
        np.where(ratio < 1, edge * ratio / np.where(ratio < 1, 1 - ratio, 1), 1.0)
        for edge, ratio in zip(edges, outwards, strict=True)
    ]
    beyond = np.where(last > top, left_out[1], 0.0)
    return np.asarray(np.minimum(inner + np.where(left > 0, left_out[0], 0.0) + beyond, 1.0))


def _log_choose(releases: int, i: Floats) -> Floats:
    """Return ln C(T, i); from a table where many are asked for."""
    from scipy.special import gammaln

    if i.size <= releases:
        return np.asarray(gammaln(releases + 1) - gammaln(i + 1) - gammaln(releases - i + 1))
    return _log_choose_table(releases)[i.astype(np.int64)]


@lru_cache(maxsize=4)
def _log_choose_table(releases: int) -> Floats:
    every = np.arange(releases + 1.0)
    return np.concatenate([_log_choose(releases, part) for part in np.array_split(every, 2)])


def mixable(counts: Floats) -> bool:
    """Return whether there are few enough."""
    return float(counts.sum()) <= MOST_STEPS


@dataclass(frozen=True, slots=True)
class Mixture:
    """Randomised responses together: the worst of adaptive pure releases (Murtagh and Vadhan 2016)."""

    # eps-DP is (k u)-DP for the least whole k with k u >= eps, and for releases of whole multiples of a
    # unit u the optimal delta is that of randomised responses: a sum over the grid of losses, exact

    unit: float  # u
    span: int  # the sum of all k: losses are (span - 2 i) u, i = 0..span
    law: Floats  # the probability of each i under the more likely of the two neighbours

    @classmethod
    def of(cls, eps: Floats, counts: Floats) -> "Mixture":
        """Compose `counts` releases of each eps."""
        unit = float(counts @ eps) / GRID
        law = np.ones(1)
        for value, count in zip(eps.tolist(), counts.tolist(), strict=True):
            steps = ceil(value / unit * (1 + ULPS))
            honest, lies = (float(np.exp(-np.logaddexp(0, x * steps * unit))) for x in (-1, 1))
            for _ in range(int(count)):
                longer = np.zeros(len(law) + steps)
                longer[: len(law)] = law * honest
                longer[steps:] += law * lies
                law = longer
        return cls(unit, len(law) - 1, law)

    @property
    def most(self) -> float:
        """The epsilon of delta 0."""
        return self.span * self.unit * (1 + ULPS)

    def delta(self, total: float) -> float:
        """Return the delta at a total, rounded up."""
        over = (self.span - 2 * np.arange(self.span + 1)) * self.unit * (1 + ULPS) - total
        sizes = -np.expm1(-np.maximum(over, 0))
        return float(self.law @ sizes) * (1 + 1e-12 * (MOST_STEPS + 10)) + LOST
