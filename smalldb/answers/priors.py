"""What is expected before anything is measured: the public prior that steers choices and fits."""

from math import comb, exp, expm1
from statistics import NormalDist

import numpy as np

from queries.domain import Integers
from smalldb.answers.parities import Floats

READING = 2.0  # deviation of a parity that was read from cells, over that of independent posterior counts
_QUANTILES, _MOST = 64, 100.0
FIRST_DEVIATION, FACTOR = 0.6, 1 / 3  # what a parity of order o is expected to be: 0.6 / 3^(o - 1)


def prior(orders: Integers) -> Floats:
    """Return how large parities of these orders are expected to be, as a standard deviation."""
    deviations: Floats = FIRST_DEVIATION * np.power(FACTOR, orders - 1.0)
    return deviations


def read_deviation(attributes: int, cells: int, n: int, rate: float, low: Floats) -> float:
    """
    Return the expected noise of the mean of a parity that is read from cells, with noise of ratio exp(-rate).

    The prior of orders 1 and 2 as log-linear coefficients makes cells log-normal; a cell's count is taken for
    negative binomial around what is known of these, `low` giving the variance of one parity of either
    order; that and order 3 make the relative variance. What the noise leaves of it adds up over the cells.
    """
    numbers = np.array([comb(attributes, order) for order in (1, 2, 3)])
    variances = numbers * prior(np.array([1, 2, 3])) ** 2
    spread = expm1(min(float(numbers[:2] @ low + variances[2]), _MOST))
    normal = NormalDist()
    middles = [normal.inv_cdf((i + 0.5) / _QUANTILES) for i in range(_QUANTILES)]
    sizes = np.exp(np.sqrt(variances[:2].sum()) * np.array(middles))
    sizes *= n / cells / sizes.mean()
    counts = sizes + spread * sizes**2
    noise = 2 * exp(-rate) / expm1(-rate) ** 2
    left = counts * noise / np.maximum(counts + noise, 1e-300)
    return READING * float(np.sqrt(cells * left.mean())) / n
