"""Cells of a fine table, added up to those of a coarse one, or multiplied by what belongs to these."""

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.kernels.compiling import kernel


@kernel
def added_up(fine: Floats, inside: Integers, coarse: int) -> Floats:
    """
    Return the cells of a coarse table, shape (coarse,): the sums of the fine cells inside.

    Parameters
    ----------
    fine
        Shape (cells,).
    inside
        Of each fine cell, the coarse one that it is in: int32, shape (cells,).
    coarse
        How many cells the coarse table has.
    """
    found = np.zeros(coarse)
    for cell in range(len(fine)):
        found[inside[cell]] += fine[cell]
    return found


@kernel
def multiply(fine: Floats, inside: Integers, ratios: Floats) -> None:
    """Multiply each fine cell by the ratio of the coarse one that it is in: see `added_up`.

    Parameters
    ----------
    fine, inside
        As for `added_up`; `fine` is written.
    ratios
        Of each coarse cell, shape (coarse,).
    """
    for cell in range(len(fine)):
        fine[cell] *= ratios[inside[cell]]


@kernel
def carry(source: Floats, here: Integers, shared: Floats, target: Floats, there: Integers) -> None:
    """
    Bring a table up to date with another one: its cells of each shared cell get their sum from there.

    Parameters
    ----------
    source, target
        The cells of the two tables; those of the target are written.
    here, there
        Of each cell of the source, and of the target, the shared one.
    shared
        What the target's cells of each shared cell add up to; written.
    """
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
    """
    Return how many rows each coarse cell expects, and of what `scipy.special.wrightomega` is to be taken.

    See `met`. Of a cell that expects none, that is minus infinity.

    Parameters
    ----------
    fine, inside
        Probabilities: see `added_up`.
    total
        The number of rows.
    counts, ridges, theta
        Of each coarse cell: what it is to hold, the ridge, and the coefficient.
    """
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
    """
    Move coefficients to where the coarse cells expect their ridges times `omegas`; return the largest change.

    x + ridge ln x = wanted + ridge ln here has one solution above 0, by the function omega of Wright. One
    cell of 1 row, held at 3 with ridge 1: x + ln x = 3, x = 2.208 = 3 - ln x.

    Parameters
    ----------
    fine, inside, total, here, ridges
        Of `unmet`; `fine` is written, and adds up to 1 again.
    omegas
        Wright's function of what `unmet` returned.
    theta
        Coefficients; written.
    """
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
