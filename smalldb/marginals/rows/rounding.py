"""Small tables with given frequencies, made without entropy."""

import numpy as np

from queries import Domain
from queries.arrays import Floats
from queries.domain import Bits


def rounded(domain: Domain, distribution: Floats, rows: int) -> Bits:
    """
    Return rows whose histogram is the distribution, rounded: 0/1, shape (rows, d).

    Systematic rounding: the unit interval is laid out in cells, as long as they are likely, and every row
    takes the cell at its position (i + 1/2) / rows. Cells follow each other in Gray code order, in which
    neighbours differ in one attribute. Any run of cells gets its share of the rows to within one row;
    independent draws would err by about sqrt(rows). A cell of probability 0 gets no row.

    Parameters
    ----------
    domain
        Of d yes/no attributes.
    distribution
        Shape (2^d,), not negative, of positive sum.
    rows
        How many are made.
    """
    d = len(domain.attributes)
    cells = np.arange(1 << d)
    cells ^= cells >> 1
    ends = np.cumsum(distribution[cells])
    positions = (np.arange(rows) + 0.5) / rows * ends[-1]
    taken = cells[np.searchsorted(ends, positions, side="right")]
    bits: Bits = (taken[:, None] >> np.arange(d - 1, -1, -1) & 1).astype(np.uint8)
    return bits
