"""Between which numbers a share or a mean lies, by all that was measured of its columns and by rules."""

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import product
from math import log, prod

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.inference.confidence_intervals import margin
from smalldb.inference.evidence import QuestionCells, evidence_of, telling
from smalldb.inference.least_variance import least_variance
from smalldb.inference.questions import MAX_CELLS
from smalldb.mechanisms.measurement_list import Measurements

NEAR = 1e-6  # more than what a linear program is off, in shares


# Proof: docs/proofs/noise.md, lemma 10.
def limits(
    measurements: Measurements,
    columns: tuple[int, ...],
    below: Floats,
    least: Floats,
    most: Floats,
    bounds: tuple[float, float],
    level: Fraction,
    population: bool,
) -> tuple[float, float] | None:
    """Return the least and the most that a ratio of sums over rows may be; None: nothing is known.

    Each row counts `below` in the denominator (nowhere anything: there is none), and from `least` to `most`
    in the numerator. Sums of cells that were measured lie, all together, in their intervals with probability
    `level`. Of all tables of which this is true, and that keep the rules, the ratio is taken.
    """
    from scipy.optimize import linprog

    distinct = _cells(measurements, columns, (below, least, most))
    if distinct is None:
        return None
    question, cells = distinct
    evidence = evidence_of(measurements, question)
    by_noise = sorted(evidence, key=lambda item: float(np.diag(item.covariance).mean()))
    measured = [item.cells for item in by_noise]
    of_classes = [(classes[:, None] == np.unique(classes)).astype(np.float64) for classes in cells.T[3:]]
    measured = [measured[number] for number in telling(measured)]
    sums = _distinct(np.hstack([np.ones((len(cells), 1)), *of_classes, *measured]))
    known = least_variance(evidence, sums, measurements.n)
    if not known.known[0]:  # how many rows there are
        return None
    sums, values, noise = (each[..., known.known] for each in (sums, known.values, known.noise()))
    deviations, total = noise.std(axis=0), max(float(values[0]), 1.0)
    chance = 1 - (1 - level) / 2 if population else level
    loud = deviations > 0
    times = margin((np.abs(noise[:, loud]) / deviations[loud]).max(axis=1), chance) if loud.any() else 0.0
    low, high = (values + sign * times * deviations for sign in (-1, 1))
    if population:
        apart = _sampling(sums, low, high, total, float(1 - chance))
        low, high = low - apart, high + apart
    # the program knows cells y = t x for shares x of rows, such that the denominator, or t, is 1
    count = len(cells)
    above = np.vstack([np.column_stack([sums.T, -high / total]), np.column_stack([-sums.T, low / total])])
    ratio = bool(cells[:, 0].any())
    one = np.append(cells[:, 0] if ratio else np.zeros(count), 0.0 if ratio else 1.0)
    base, scale = (bounds[0], 1.0) if ratio else (0.0, total)
    ends = []
    for sign, numerator, bound in zip((1, -1), cells.T[1:3], bounds, strict=True):
        goal = sign * np.append(numerator - base * cells[:, 0], 0.0)
        program = linprog(goal, A_ub=above, b_ub=np.zeros(len(above)), A_eq=one[None, :], b_eq=[1.0])
        if program.status != 0:
            return None
        slack = NEAR * float(np.abs(goal).max())
        end = base + scale * sign * (float(program.fun) - slack)
        ends.append(end if sign * (end - bound) > 2 * scale * slack else bound)
    return ends[0], ends[1]


def _sampling(sums: Floats, low: Floats, high: Floats, total: float, chance: float) -> Floats:
    """Return how far sums of a random sample are off, all together but for a chance (Chernoff)."""
    rare = log(2 * sums.shape[1] / chance) / total
    span = sums.max(axis=0) - sums.min(axis=0)
    share = np.clip(np.minimum(high, total - low) / total, 0.0, 0.5)
    share[(sums < 0).any(axis=0)] = 0.5
    return np.asarray(total * span * (np.sqrt(2 * share * rare) + 2 * rare))


def _distinct(sums: Floats) -> Floats:
    """Keep sums of cells once each, the first one first."""
    _, first = np.unique(sums, axis=1, return_index=True)
    return sums[:, np.sort(first)]


def _cells(
    measurements: Measurements, columns: tuple[int, ...], arrays: Sequence[Floats]
) -> tuple[QuestionCells, Floats] | None:
    """Return the cells of columns, and of those that rules tie to them, as finely as they were measured."""
    # for each the arrays, and of each column the class of categories that these tell apart; None: too many
    domain = measurements.domain
    tied = {c for rule in domain.rules if {*rule.columns} & {*columns} for c in rule.columns}
    for wide, shared in product((tuple(sorted({*columns, *tied})), columns), (1, 2, MAX_CELLS)):
        shape = [domain.sizes[c] for c in wide]
        along = [size if c in columns else 1 for c, size in zip(wide, shape, strict=True)]
        if prod(shape) > MAX_CELLS:
            continue
        with suppress(ValueError):  # too many that are told apart
            wide_arrays = [np.broadcast_to(one.reshape(along), shape) for one in arrays]
            question, _ = QuestionCells.of(
                measurements, wide, [*wide_arrays, domain.allowed(wide).astype(np.float64)]
            )
            laid = [_along(wide, c, classes) for c, classes in zip(wide, question.classes, strict=True)]
            laid += [_along(wide, c, groups) for c, groups in _groups(measurements, wide, shared)]
            wide_arrays += [np.broadcast_to(one, shape) for one in laid]
            question, cells = QuestionCells.of(measurements, wide, wide_arrays)
            return question, cells[:, : len(arrays) + len(wide)]
    return None


def _along(columns: tuple[int, ...], column: int, codes: Sequence[int] | Integers) -> Floats:
    return np.asarray(codes, dtype=np.float64).reshape([-1 if c == column else 1 for c in columns])


def _groups(
    measurements: Measurements, columns: tuple[int, ...], shared: int
) -> dict[tuple[int, tuple[int, ...]], None]:
    """Return the groups of categories of each column in tables that share so many columns."""
    return dict.fromkeys(
        (c, groups)
        for part in measurements.marginals
        if len({*part.columns} & {*columns}) >= shared
        for c, groups in zip(part.columns, part.groups, strict=True)
        if c in columns
    )
