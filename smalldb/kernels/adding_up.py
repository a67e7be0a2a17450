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
