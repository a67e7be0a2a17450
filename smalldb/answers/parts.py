"""The parts that a plan may measure, with the public noise of each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, log, sqrt
from typing import Literal, TypeAlias

import numpy as np

from smalldb.answers import wishart
from smalldb.answers.gaussian import least_variances
from smalldb.answers.parities import Places, Spectrum

Law: TypeAlias = Literal["cube", "wishart", "cells", "gaussian", "safeguard"]

MAX_LEVELS = 1 << 22  # that the exact draw of a radius may enclose
SHARES = 64  # shares are multiples of 1/64
SAFEGUARD = Fraction(1, 10)
NOTICED = 0.5  # mean of a parity that a safeguard chooses almost surely, if it is predicted as 0
TILTS = tuple(Fraction(part, 32) for part in range(1, 32))


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """One part of what is measured.

    Attributes
    ----------
    law
        "cube": sums of parities of one order, noise exp(-epsilon share max |V|). "wishart": of order 1 and
        2, noise of a Wishart difference. "cells": the count of each cell, noise exp(-epsilon share |V|_1 / 2)
        or, under add-remove, exp(-epsilon share |V|_1). "gaussian": sums of parities of some
        orders, discrete Gaussian noise with a variance for each order: the one law that is not pure.
        "safeguard": of `sets` the one that what was released before predicts worst is chosen, and measured,
        each for half the share.
    sets
        The parities (under add-remove, the first part counts the rows too: the empty set). Empty for cells.
    share
        Its share of epsilon.
    deviations
        The standard deviation of the noise in the sum of chi_S over the rows, for sets of each order; for 0,
        in the number of rows, where the part counts these (under replace-one they are public).
    tilt
        Of a Wishart difference: what order 1 has of its epsilon.
    variances
        Of Gaussian noise: sigma^2 of the counts of sets of each order.
    """

    law: Law
    sets: tuple[Places, ...]
    share: Fraction
    deviations: Mapping[int, float]
    tilt: Fraction = Fraction(0)
    variances: Mapping[int, Fraction] = field(default_factory=dict)

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes that some set holds, ascending."""
        return tuple(sorted({i for places in self.sets for i in places}))


def cubes(
    series: Spectrum, epsilon: Fraction, replaced: bool, highest: int
) -> tuple[Measurement, ...] | None:
    """Measure the parities of all orders up to one; None: drawing a radius would take too long.

    Shares of epsilon are proportional to (A_o k_o^2)^(1/3), where k_o parities of order o have the squared
    coefficients A_o in the worst query: the least sum of A_o (k_o / share_o)^2.
    """
    kept = sorted({order for order in series.orders.tolist() if order <= highest})
    sets = [_sets(series, order, order) for order in kept]
    if not replaced:
        sets[0] = ((), *sets[0])
    weights = [
        (_worst(series, {order: 1.0}) * len(some) ** 2) ** (1 / 3)
        for order, some in zip(kept, sets, strict=True)
    ]
    parts = []
    for some, share in zip(sets, _shares(weights), strict=True):
        k, rate = len(some), epsilon * share
        if 20 * sqrt(k) / rate > MAX_LEVELS:
            return None
        # V is uniform up to a radius R, and R + 1/2 is nearly Gamma(k + 1, rate)
        variance = max(0.0, float((k + 1) * (k + 2) / rate**2 / 3 - Fraction(1, 12)))
        deviation = sqrt(variance) * (2 if replaced else 1)
        orders = {len(places) for places in some}
        parts.append(Measurement("cube", some, share, dict.fromkeys(orders, deviation)))
    return tuple(parts)


def wishart_part(series: Spectrum, epsilon: Fraction, replaced: bool, share: Fraction) -> Measurement | None:
    """Measure all parities of order 1 and 2 at once; None where a workload has none of order 2.

    The tilt that weighs order 1 against order 2 is the one with the least noise in the worst query; under
    add-remove the number of rows, on which order 1 depends too, counts as often as a query counts it at most.
    """
    sets = _sets(series, 1, 2)
    if not any(len(places) == 2 for places in sets):
        return None
    sets = sets if replaced else ((), *sets)
    d = len({i for places in sets for i in places})

    constant = 0.0 if replaced else float(np.abs(series.constants).max())

    def noise(tilt: Fraction) -> float:
        variances = _variances(d, tilt)
        return _worst(series, variances) + constant**2 * variances[0]

    tilt = min(TILTS, key=noise)
    unit = (2 if replaced else 1) / float(epsilon * share)
    orders = {len(places) for places in sets}
    deviations = {o: unit * sqrt(variance) for o, variance in _variances(d, tilt).items() if o in orders}
    return Measurement("wishart", sets, share, deviations, tilt)


@lru_cache(maxsize=1024)
def _variances(attributes: int, tilt: Fraction) -> dict[int, float]:
    """Return the variance of a Wishart difference for epsilon 1: of n, and of entries of order 1 and 2."""
    x, y = wishart.rates(Fraction(1), tilt)
    moments = {order: wishart.even_moments(attributes, order, x, y, 2)[1] for order in (1, 2)}
    return {0: wishart.degrees(attributes)[0] / float(x) ** 2, **{o: float(m) for o, m in moments.items()}}


def safeguard_part(series: Spectrum, n: int, epsilon: Fraction, replaced: bool) -> Measurement | None:
    """Measure the parity of order 3 that was predicted worst; None: there is none, or it would be missed.

    The odd chance of each other set is exp(-rate / 2 times how much better it was predicted).
    """
    sets, rate = _sets(series, 3, 3), epsilon * SAFEGUARD / 2
    unit = 2 if replaced else 1
    if not sets or float(rate / 2) * NOTICED * n / unit < log(len(sets)) + 2:
        return None
    return Measurement("safeguard", sets, SAFEGUARD, {3: unit * _geometric_deviation(float(rate))})


def gaussian_part(series: Spectrum, rho: Fraction, replaced: bool, highest: int) -> Measurement:
    """Measure the parities of all orders up to one with Gaussian noise, rho-zCDP; least in the worst query.

    Under add-remove the number of rows counts as often as a query counts it at most.
    """
    sets = _sets(series, 1, highest)
    sizes = Counter(map(len, sets))
    needs = {order: _worst(series, {order: 1.0}) for order in sizes}
    if not replaced:
        sets, sizes[0], needs[0] = ((), *sets), 1, float(np.abs(series.constants).max()) ** 2
    d = len({i for places in sets for i in places})
    variances = least_variances(d, sizes, needs, rho, replaced)
    unit = 2 if replaced else 1
    deviations = {order: unit * sqrt(variance) for order, variance in variances.items()}
    return Measurement("gaussian", sets, Fraction(1), deviations, variances=variances)


def cells_part(
    series: Spectrum, cells: int, epsilon: Fraction, replaced: bool, share: Fraction
) -> Measurement:
    """Measure the count of each cell."""
    rate = float(epsilon * share / 2 if replaced else epsilon * share)
    deviation = sqrt(cells) * _geometric_deviation(rate)
    return Measurement("cells", (), share, dict.fromkeys([0, *series.orders.tolist()], deviation))


def _geometric_deviation(rate: float) -> float:
    """Return the standard deviation of two-sided geometric noise."""
    return sqrt(2 * exp(-rate)) / -expm1(-rate)


def _sets(series: Spectrum, lowest: int, highest: int) -> tuple[Places, ...]:
    start = int(np.searchsorted(series.orders, lowest))
    return series.sets[start : int(np.searchsorted(series.orders, highest, side="right"))]


def _worst(series: Spectrum, weights: Mapping[int, float]) -> float:
    """Return the largest sum over a query's parities of its squared coefficient times its order's weight."""
    each = np.array([weights.get(order, 0.0) for order in series.orders.tolist()])
    return float(series.over_queries(series.coefficients**2 * each[series.members]).max())


def _shares(weights: list[float]) -> list[Fraction]:
    """Round shares that are proportional to the weights to multiples of 1 / SHARES, none 0.

    Where there are more weights than that, to multiples of 1 / their number.
    """
    units = max(SHARES, len(weights))
    parts = [max(1, round(units * weight / sum(weights))) for weight in weights]
    while (left := units - sum(parts)) != 0:
        parts[int(np.argmax(parts))] += 1 if left > 0 else -1
    return [Fraction(part, units) for part in parts]
