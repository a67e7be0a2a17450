"""What error a plan leads one to expect, as total variation distance, from public numbers alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import hypot, pi, sqrt

import numpy as np

from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.universe import Universe

USUAL = 0.09  # how far tables of two columns are from independent columns, in the mean: of the most data sets
WITHIN = 2.0  # times: tables of about nine of ten data sets were off by so much more than expected, or less


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was fitted to 29 tables of 6 to 69 columns; distances are mean total variation distances."""

    # of tables of two columns after rounds, over how far they are from independent columns: times the root of
    # the error of columns alone over that; pure, and under rho. Fitted to eleven tables, mainly at epsilon .3
    rounds_factors: tuple[float, float] = (2.15, 1.65)
    # of tables of so many columns, the distance over that of tables of two
    width_factors: tuple[float, ...] = (0.3, 1.0, 1.9, 2.5)  # of one column, two, three, and more
    # times the noise of all tables of two columns, where rounds reach them all: pure, and under rho
    noise_factors: tuple[float, float] = (1.5, 1.2)
    # of a measured table: how many times the dependence of a usual pair it teaches, at most
    reach: float = 5.0
    unlearned_factor: float = 2.0  # of these after rounds in noise: times the distance of columns
    unpaired_factor: float = 1.8  # of tables of two columns without rounds: times the distance of columns
    at_once_factor: float = 0.8  # of all pairs at once: times what noise and shrinking put them off
    dependent_distance: float = 0.15  # of tables from independent columns: shrinking errs by no more
    read_factor: float = 2.0  # of columns: by how many times their noise what is read of them is less noisy


TUNING = Tuning()


def columns_alone(universe: Universe, law: PrivacyMeasure, costs: Sequence[Fraction], rows: int) -> float:
    """Return the mean distance of columns' tables if each that costs something has a noise of its own."""
    paid = [(size, cost) for size, cost in zip(universe.sizes, costs, strict=True) if cost]
    noise = sum((size * law.noise(cost).mean_size for size, cost in paid), 0.0)
    return noise / (2 * rows * len(paid))


def column_variances(
    universe: Universe, law: PrivacyMeasure, groups: Sequence[Sequence[int]], costs: Sequence[Fraction]
) -> dict[int, float]:
    """Return the variance of the noise on a count of each column if groups of them have one noise each."""
    variances = dict[int, float]()
    for group in groups:
        sizes = tuple(universe.sizes[c] for c in group)
        if len(group) == 1:
            variances[group[0]] = law.noise(costs[group[0]]).variance()
            continue
        at_once = law.noise_of_columns(sizes, sum((costs[c] for c in group), Fraction(0)))
        of = {
            size: at_once.variance(np.eye(1, sum(sizes), sum(sizes[: sizes.index(size)]))[0])
            for size in {*sizes}
        }
        variances |= {c: of[size] for c, size in zip(group, sizes, strict=True)}
    return variances


def columns_at_once(
    universe: Universe,
    law: PrivacyMeasure,
    groups: Sequence[Sequence[int]],
    costs: Sequence[Fraction],
    rows: int,
) -> float:
    """Return the mean distance of the columns' tables if groups of them are measured by one noise each."""
    alone = {group[0]: law.noise(costs[group[0]]).mean_size for group in groups if len(group) == 1}
    variances = column_variances(universe, law, groups, costs)
    noise = sum(universe.sizes[c] * alone.get(c, mean_size(v)) for c, v in variances.items())
    return noise / (2 * rows * len(universe.sizes))


def in_rounds(
    universe: Universe,
    columns_error: float,
    concentrated: bool,
    each: Sequence[float],
    dependence: float,
    tables: int,
) -> float:
    """Return the mean distance of the workload's tables after so many of two columns were measured."""
    columns_error = as_read(columns_error)
    pairs = TUNING.rounds_factors[concentrated] * sqrt(dependence * columns_error)
    if pairs > dependence / 2:  # little is learned
        pairs = max(pairs, hypot(TUNING.unlearned_factor * columns_error, dependence / 2))
    pairs = min(pairs, TUNING.noise_factors[concentrated] * sum(each) / len(each))
    return by_width(universe, max(pairs, dependence * (1 - TUNING.reach * tables / len(each))))


def columns_only(universe: Universe, columns_error: float, dependence: float) -> float:
    """Return the mean distance of the workload's tables where nothing but columns is measured."""
    return by_width(universe, hypot(TUNING.unpaired_factor * as_read(columns_error), dependence))


def as_read(columns_error: float) -> float:
    """Return the distance of columns' tables that noise leaves: rare categories are read as 0."""
    return columns_error / (1 + TUNING.read_factor * columns_error)


def by_width(universe: Universe, pairs: float) -> float:
    """Return the mean distance of the workload's tables."""
    factors, widest = TUNING.width_factors, len(TUNING.width_factors)
    total: float = sum(factors[min(len(table), widest) - 1] for table in universe.tables)
    return float(min(1.0, pairs * (total / len(universe.tables))))


def mean_size(variance: float) -> float:
    """Return the mean size of normal noise of a variance."""
    return sqrt(variance * 2 / pi)


def of_columns(universe: Universe, variances: Mapping[int, float], rows: int) -> float:
    """Return the mean distance of the columns' tables, by the variance of the noise on a count of each."""
    noise = (mean_size(v) * universe.sizes[c] for c, v in variances.items())
    return sum(noise) / (2 * rows * len(universe.sizes))


def all_pairs(
    universe: Universe,
    columns: Sequence[float],
    pairs: Mapping[tuple[int, int], float],
    rows: int,
    dependence: float,
) -> float:
    """Return the mean distance of the workload's tables where all pairs are measured at once."""
    columns_error, total = as_read(of_columns(universe, dict(enumerate(columns)), rows)), 0.0
    for table in universe.tables:
        error = 0.0
        if len(table) == 2:
            noise = mean_size(pairs[table[0], table[1]]) * universe.size(table) / (2 * rows)
            error = _shrunk(noise, dependence)
        total += hypot(error, (TUNING.unpaired_factor if error else 1) * columns_error)
    return min(1.0, TUNING.at_once_factor * total / len(universe.tables))


def all_cells(universe: Universe, law: PrivacyMeasure, cost: Fraction, rows: int) -> float:
    """Return the mean distance of the workload's tables where all cells are measured at once."""
    variance, total = law.noise(cost).variance() * np.count_nonzero(universe.possible()), 0.0
    columns = {c: variance / size for c, size in enumerate(universe.sizes)}
    columns_error = as_read(of_columns(universe, columns, rows))
    for table in universe.tables:
        # a cell of a table is a sum of cells / size of them, each with its own noise
        noise = mean_size(variance) * sqrt(universe.size(table)) / (2 * rows)
        # towards independent columns, which are noisy themselves
        shrunk = _shrunk(noise) * hypot(1, columns_error / TUNING.dependent_distance)
        total += as_read(noise) if len(table) == 1 else shrunk
    return min(1.0, total / len(universe.tables))


def of_groups(columns_error: float, groups: Sequence[int]) -> float:
    """Return about how far a table is off that is measured once, by groups."""
    # groups hide a part of the dependence, and shrinking against noise errs by no more than the rest
    hidden = min(1.0, sum(1 / many for many in groups)) * TUNING.dependent_distance
    seen = TUNING.dependent_distance - hidden
    return hidden + (columns_error * seen / (columns_error + seen) if seen else 0.0)


def _shrunk(noise: float, dependence: float = TUNING.dependent_distance) -> float:
    """Return what is left of noise where the model shrinks a table towards independent columns."""
    return noise * dependence / (noise + dependence)
