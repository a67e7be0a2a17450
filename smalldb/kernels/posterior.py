"""Counts behind two-sided geometric noise: their posterior under a negative binomial prior."""

from math import lgamma

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.kernels.compiling import kernel

REACH = 40.0  # noise of probability exp(-40) is left out
ENOUGH = 1e-12  # of the sum, where its tail is cut off
HUGE = 1e200
STEEPEST = 0.75  # of the rate: a logarithm of a decay beyond which sums take too long


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
