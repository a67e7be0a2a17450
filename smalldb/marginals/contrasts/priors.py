"""What is expected before anything is measured: the public prior that steers choices and fits."""

from math import comb, exp, expm1, inf
from statistics import NormalDist

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers

UNEVEN = 1.7  # deviation of a parity that was read from cells, in the worst query, over that of all cells
_QUANTILES, _MOST, _ROUNDS = 64, 100.0, 10
FIRST_DEVIATION, FACTOR = 0.6, 1 / 3  # what a parity of order o is expected to be: 0.6 / 3^(o - 1)


def prior(orders: Integers) -> Floats:
    """Return how large parities of these orders are expected to be, as a standard deviation."""
    deviations: Floats = FIRST_DEVIATION * np.power(FACTOR, orders - 1.0)
    return deviations


def read_deviation(cells: int, n: int, rate: float, precision: Floats, modelled: int) -> float:
    """
    Return the expected noise of the mean of a parity that is read from cells, with noise of ratio exp(-rate).

    The prior of orders 1 and 2 as log-linear coefficients makes expected counts log-normal; counts are taken
    for negative binomial around them, with the relative variance that is left by what is not known of all
    orders. What the noise leaves of it adds up over the cells. Orders that the reading models are known
    through what it leaves, which is solved for.

    Parameters
    ----------
    cells
        How many cells have a count.
    n
        The number of rows, or a public guess of it.
    rate
        Of the geometric noise on each cell.
    precision
        Shape (d,), for orders 1 to d: 1 / variance of the mean of a parity beside the cells.
    modelled
        The highest order of the log-linear model.
    """
    orders = np.arange(1, len(precision) + 1)
    numbers = np.array([comb(len(orders), order) for order in orders.tolist()])
    normal = NormalDist()
    middles = np.array([normal.inv_cdf((i + 0.5) / _QUANTILES) for i in range(_QUANTILES)])
    sizes = np.exp(np.sqrt((numbers * prior(orders) ** 2)[:2].sum()) * middles)
    sizes *= n / cells / sizes.mean()
    noise = 2 * exp(-rate) / expm1(-rate) ** 2
    deviation = inf
    for _ in range(_ROUNDS):
        read = np.where(orders <= modelled, max(deviation, 1e-100) ** -2.0, 0.0)
        unknown = numbers @ (1 / (prior(orders) ** -2 + precision + read))
        counts = sizes + expm1(min(float(unknown), _MOST)) * sizes**2
        left = counts * noise / np.maximum(counts + noise, 1e-300)
        deviation = UNEVEN * float(np.sqrt(cells * left.mean())) / n
    return deviation
