"""Cells of a fine table, added up to those of a coarse one, or multiplied by what belongs to these."""

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.kernels.compiling import kernel


@kernel
def added_up(fine: Floats, inside: Integers, coarse: int) -> Floats:
    """Return the cells of a coarse table, shape (coarse,): the sums of the fine cells inside."""
    found = np.zeros(coarse)
    for cell in range(len(fine)):
        found[inside[cell]] += fine[cell]
    return found


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
    fine: Floats,
    inside: Integers,
    total: float,
    here: Floats,
    omegas: Floats,
    ridges: Floats,
    theta: Floats,
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
