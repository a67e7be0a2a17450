"""Counts behind two-sided geometric noise: their posterior under a negative binomial prior."""

from math import lgamma

import numpy as np
import numpy.typing as npt
from numba import njit

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

REACH = 40.0  # noise of probability exp(-40) is left out
ENOUGH = 1e-12  # of the sum, where its tail is cut off
HUGE = 1e200


@njit(nogil=True, cache=True)
def posterior(
    observed: Integers, expected: Floats, shape: float, rate: float, means: Floats, variances: Floats
) -> float:
    """Write the posterior mean and variance of each count, and return the log-likelihood of them all.

    Count h has the weight Gamma(h + shape) / h! (expected / (expected + shape))^h exp(-rate |observed - h|),
    h at least 0. All arrays have shape (N,); expected, shape and rate are above 0. The log-likelihood lacks
    what neither `shape` nor `expected` changes. Cost: 40 / rate + observed steps a cell at most.
    """
    total = 0.0
    reach = int(REACH / rate) + 1
    rise, fall = np.exp(rate), np.exp(-rate)
    for i in range(len(observed)):
        y, mean = observed[i], expected[i]
        decay = mean / (mean + shape)
        h = max(0, min(y, int(mean)) - reach)  # below both, weights fall by exp(-rate) at least
        logarithm = shape * np.log(shape / (mean + shape)) + h * np.log(decay) - rate * abs(y - h)
        logarithm += lgamma(h + shape) - lgamma(shape) - lgamma(h + 1.0)
        weight, mass, first, second = 1.0, 0.0, 0.0, 0.0
        while True:
            mass += weight
            first += weight * h
            second += weight * h * h
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
        means[i] = first / mass
        variances[i] = max(0.0, second / mass - means[i] * means[i])
        total += logarithm + np.log(mass)
    return total
