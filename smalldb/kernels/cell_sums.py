"""Sums over the cells of tables: pairs of columns, coarser tables, signs of parities, counts behind noise."""

from math import lgamma
from typing import Any

import numpy as np
import numpy.typing as npt

from queries.arrays import Floats, Integers
from smalldb.kernels.compiling import kernel

Bytes = npt.NDArray[np.uint8]

REACH = 40.0  # noise of probability exp(-40) is left out
ENOUGH = 1e-12  # of the sum, where its tail is cut off
HUGE = 1e200
STEEPEST = 0.75  # of the rate: a logarithm of a decay beyond which sums take too long


# Proof: docs/proofs/rounds.md, lemma 1.
@kernel
def count_pairs(
    groups: Bytes, counts: Integers, pairs: Integers, origins: Integers, strides: Integers, cells: Integers
) -> None:
    """Add rows to the tables of pairs of columns."""
    # The cell of group g of the first column and group h of the second is at ``origin + g stride + h``.
    # Cost: rows times pairs.
    for t in range(len(pairs)):
        first, second = groups[pairs[t, 0]], groups[pairs[t, 1]]
        origin, stride = origins[t], strides[t]
        for i in range(len(counts)):
            cells[origin + np.int64(first[i]) * stride + np.int64(second[i])] += counts[i]


@kernel
def added_up(fine: Floats, inside: Integers, coarse: int) -> Floats:
    """Return the cells of a coarse table, shape (coarse,): the sums of the fine cells inside."""
    sums = np.zeros(coarse)
    for cell in range(len(fine)):
        sums[inside[cell]] += fine[cell]
    return sums


@kernel
def multiply(fine: Floats, inside: Integers, ratios: Floats) -> None:
    """Multiply each fine cell by the ratio of the coarse one that it is in: see `added_up`."""
    for cell in range(len(fine)):
        fine[cell] *= ratios[inside[cell]]


@kernel
def carry(source: Floats, here: Integers, shared: Floats, target: Floats, there: Integers) -> None:
    """Bring a table up to date with another one: its cells of each shared cell get their sum from there."""
    now = added_up(source, here, len(shared))
    ratios = np.zeros(len(shared))
    for cell in range(len(shared)):
        if shared[cell] > 0:
            ratios[cell] = now[cell] / shared[cell]
        shared[cell] = now[cell]
    multiply(target, there, ratios)


@kernel
def unmet(
    fine: Floats, inside: Integers, total: float, counts: Floats, ridges: Floats, theta: Floats
) -> tuple[Floats, Floats]:
    """Return what rows each coarse cell expects, and of what `scipy.special.wrightomega` is to be taken."""
    # See `met`. Of a cell that expects none, that is minus infinity.
    here, logs = added_up(fine, inside, len(counts)), np.empty(len(counts))
    for cell in range(len(counts)):
        here[cell] *= total
        logs[cell] = -np.inf
        if here[cell] > 0:
            wanted = counts[cell] - ridges[cell] * theta[cell]
            logs[cell] = np.log(here[cell] / ridges[cell]) + wanted / ridges[cell]
    return here, logs


@kernel
def met(
    fine: Floats, inside: Integers, total: float, here: Floats, omegas: Floats, ridges: Floats, theta: Floats
) -> float:
    """Move coefficients to where coarse cells expect their ridges times `omegas`; return the most moved."""
    # x + ridge ln x = wanted + ridge ln here has one solution above 0, by the function omega of Wright.
    # One cell of 1 row, held at 3 with ridge 1: x + ln x = 3, x = 2.208 = 3 - ln x.
    ratios = np.ones(len(here))
    most, expected = 0.0, 0.0
    for cell in range(len(here)):
        there = ridges[cell] * omegas[cell]
        most = max(most, abs(there - here[cell]))
        if here[cell] > 0 and there > 0:
            ratios[cell] = there / here[cell]
            theta[cell] += np.log(ratios[cell])
        expected += here[cell] * ratios[cell]
    for cell in range(len(here)):
        ratios[cell] *= total / expected
    multiply(fine, inside, ratios)
    return most


@kernel
def walsh(values: npt.NDArray[Any]) -> None:
    """Replace values over {0,1}^d, shape (2^d,), by their 2^d signed sums."""
    # Entry s becomes the sum over x of (-1)^|s & x| values[x]; |.| counts ones. Equivalent to
    # ``values[:] = scipy.linalg.hadamard(len(values)) @ values``. Applied twice it multiplies by 2^d.
    # Cost: d 2^d additions.
    half = 1
    while half < len(values):
        for start in range(0, len(values), 2 * half):
            for i in range(start, start + half):
                left, right = values[i], values[i + half]
                values[i] = left + right
                values[i + half] = left - right
        half *= 2


@kernel
def posterior(
    observed: Integers, log_decays: Floats, shape: float, rate: float, means: Floats, variances: Floats
) -> float:
    """Write the mean and variance of each count; return the logarithms of the sums of weights, added up."""
    # Count h >= 0 has the weight Gamma(h + shape) / (Gamma(shape) h!) decay^h exp(-rate |observed -
    # h|); infinity is returned where that falls too slowly, or not at all. All arrays have shape (N,).
    # Cost: some 80 / rate steps a cell, up to four times that where decay is above 1, and up to
    # `observed` where decay is so small that the noise is as likely to be that large.
    total = 0.0
    reach = int(REACH / rate) + 1
    rise, fall = np.exp(rate), np.exp(-rate)
    for i in range(len(observed)):
        y, log_decay = observed[i], log_decays[i]
        if not log_decay <= STEEPEST * rate:
            return np.inf
        decay = np.exp(log_decay)
        peak = y if decay >= 1.0 else min(y, int(shape * decay / (1.0 - decay)))
        h = max(0, peak - reach)  # below, weights fall by exp(-rate) at least
        slope = rate + log_decay
        if y > 0 and slope > 0.0:  # from y down they fall by exp(-slope), but for a factor of y in all
            h = max(h, y - int(min(float(y), (REACH + np.log(y)) / slope + 1.0)))
        start = h
        logarithm = (h * log_decay if h > 0 else 0.0) - rate * abs(y - h)
        logarithm += lgamma(h + shape) - lgamma(shape) - lgamma(h + 1.0)
        weight, mass, first, second = 1.0, 0.0, 0.0, 0.0
        while True:
            mass += weight
            first += weight * (h - start)
            second += weight * (h - start) ** 2
            noise = rise if h < y else fall
            ratio = decay * (h + shape) / (h + 1.0) * noise
            bound = max(ratio, decay * noise)
            if bound < 1.0 and weight * bound / (1.0 - bound) <= ENOUGH * mass:
                break
            weight *= ratio
            h += 1
            if weight > HUGE:
                weight, mass, first, second = weight / HUGE, mass / HUGE, first / HUGE, second / HUGE
                logarithm += np.log(HUGE)
        past = first / mass
        means[i] = start + past
        variances[i] = max(0.0, second / mass - past * past)
        total += logarithm + np.log(mass)
    return total
