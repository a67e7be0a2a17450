"""What error a plan leads one to expect, as total variation distance, from public numbers alone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import pi, sqrt

import numpy as np

from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.universe import Universe

WITHIN = 2.0  # times: tables of about nine of ten data sets were off by so much more than expected, or less
_DEPENDENT = 0.15  # about how far tables are from independent columns: shrinking errs by no more
_WIDTHS = {1: 0.3, 2: 1.0, 3: 1.9}  # the same, as multiples of what tables of two columns are off
_MANY = 0.8  # under rho, many tables lose less than the columns alone tell
_LEVEL, _BLUR, _POWER = 0.053, 0.0041, 0.36  # fitted to tables of 8 to 21 columns
_TOLD = 15  # tables of two columns of which a round says something
_NEAR = 20  # columns; of more, a table says less of the others
_EACH = {False: 1.5, True: 1.2}  # times the noise of all tables of two columns, where rounds reach them all
_UNSEEN = 0.12  # about what tables are off of which rounds say nothing


def columns_alone(universe: Universe, law: PrivacyMeasure, costs: Sequence[Fraction], rows: int) -> float:
    """Return the mean distance of columns' tables if each that costs something has a noise of its own."""
    paid = [(size, cost) for size, cost in zip(universe.sizes, costs, strict=True) if cost]
    noise = sum((size * law.noise(cost).mean_size for size, cost in paid), 0.0)
    return noise / (2 * rows * len(paid))


def columns_at_once(
    universe: Universe,
    law: PrivacyMeasure,
    groups: Sequence[Sequence[int]],
    costs: Sequence[Fraction],
    rows: int,
) -> float:
    """Return the mean distance of the columns' tables if groups of them are measured by one noise each."""
    sizes, noise = universe.sizes, 0.0
    for group in groups:
        own = [sizes[c] for c in group]
        if len(group) == 1:
            noise += own[0] * law.noise(costs[group[0]]).mean_size
            continue
        at_once = law.noise_of_columns(tuple(own), sum((costs[c] for c in group), Fraction(0)))
        for size, many in Counter(own).items():
            one = np.eye(1, sum(own), sum(own[: own.index(size)]))[0]
            noise += many * size * sqrt(at_once.variance(one) * 2 / pi)
    return noise / (2 * rows * len(sizes))


def in_rounds(
    universe: Universe, columns_error: float, concentrated: bool, told: float, each: Sequence[float]
) -> float:
    """
    Return the mean distance of the workload's tables after rounds.

    Parameters
    ----------
    columns_error
        The mean distance that columns would have if everything were spent on them.
    concentrated
        Whether costs are parts of a rho.
    told
        The number of rounds for each table of two columns.
    each
        By how much noise alone puts each of these tables off, if all are measured.
    """
    pairs = _LEVEL * (columns_error / _BLUR) ** _POWER * (_MANY if concentrated else 1)
    pairs += _UNSEEN * max(0.0, 1 - _TOLD * told * min(1.0, _NEAR / len(universe.sizes)))
    pairs = min(pairs, _EACH[concentrated] * sum(each) / len(each))
    widths = zip(map(len, universe.tables), universe.weights, strict=True)
    mean: float = sum(weight * _WIDTHS.get(width, 2.5) for width, weight in widths) / sum(universe.weights)
    return float(min(1.0, pairs * mean))


def all_pairs(
    universe: Universe, columns: Sequence[float], pairs: Mapping[tuple[int, int], float], rows: int
) -> float:
    """
    Return the mean distance of the workload's tables where all tables of two columns are measured at once.

    Parameters
    ----------
    columns, pairs
        The variance of a count of each column, and of a cell of each table of two.
    """
    blurs = [sqrt(v * 2 / pi) * size / (2 * rows) for v, size in zip(columns, universe.sizes, strict=True)]
    columns_error, total = sum(blurs) / len(blurs), 0.0
    for table, weight in zip(universe.tables, universe.weights, strict=True):
        own = 0.0
        if len(table) == 2:
            own = _shrunk(sqrt(pairs[table[0], table[1]] * 2 / pi) * universe.size(table) / (2 * rows))
        total += weight * max(own, columns_error)
    return min(1.0, total / sum(universe.weights))


def all_cells(universe: Universe, law: PrivacyMeasure, cost: Fraction, rows: int) -> float:
    """Return the mean distance of the workload's tables where all cells are measured at once."""
    deviation = sqrt(law.noise(cost).variance() * np.count_nonzero(universe.possible()) * 2 / pi)
    total, weights = 0.0, sum(universe.weights)
    for table, weight in zip(universe.tables, universe.weights, strict=True):
        # a cell of a table is a sum of cells / size of them, each with its own noise
        columns_error = deviation * sqrt(universe.size(table)) / (2 * rows)
        total += weight * _shrunk(columns_error)
    return total / weights


def of_groups(columns_error: float, groups: Sequence[int]) -> float:
    """
    Return about how far a table is off that is measured once, by groups.

    Parameters
    ----------
    columns_error
        By how much noise alone puts its cells off.
    groups
        How many there are, of each column whose categories are grouped.
    """
    # groups hide a part of the dependence, and shrinking against noise errs by no more than the rest
    hidden = min(1.0, sum(1 / many for many in groups)) * _DEPENDENT
    seen = _DEPENDENT - hidden
    return hidden + (columns_error * seen / (columns_error + seen) if seen else 0.0)


def _shrunk(columns_error: float) -> float:
    """Return what is left of noise where the model shrinks a table towards independent columns."""
    return columns_error * _DEPENDENT / (columns_error + _DEPENDENT)
