"""Whether several chains of a random walk have come to the same distribution."""

import numpy as np

from queries.arrays import Floats, Integers

LEAST = 0.25  # of a variance, in rows: chains that are less than half a row apart agree


def split_r_hat(traces: Integers) -> Floats:
    """
    Return the potential scale reduction of each number: near 1 where chains agree with each other.

    Each chain is taken as two halves, so that one that still drifts does not agree with itself (Gelman and
    others, "Bayesian Data Analysis", 3rd edition, section 11.4).
    """
    chains, sweeps, numbers = traces.shape
    half = sweeps // 2
    halves = traces[:, -2 * half :].reshape(2 * chains, half, numbers).astype(np.float64)
    within = halves.var(axis=1, ddof=1).mean(axis=0) + LEAST
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return np.asarray(np.sqrt((half - 1) / half + between / within), dtype=np.float64)
