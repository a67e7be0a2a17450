"""Yes/no columns, all at once: the parities that queries are made of, and rows that are near to them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from queries import Domain
from queries.arrays import Floats
from queries.domain import Bits
from queries.mixing import STEP, splitmix64
from smalldb.marginals.contrasts.parity_fit import Means, sizes_of

Signs: TypeAlias = npt.NDArray[np.int8]

THRESHOLDS = (0.5, 0.25, 0.12, 0.06, 0.03, 0.0, 0.0, 0.0)  # of a sweep: see `kernels.nearby_rows`
_CERTAIN = 1e-9  # a deviation below which noise does not count


def rows_with_means(means: Floats, rows: int, seed: int, starts: Sequence[int] | None = None) -> Signs:
    """Return signs, shape (rows, d), of these means to within one row, and as good as independent columns."""
    signs = np.empty((rows, len(means)), dtype=np.int8)
    for column, (low, high) in enumerate(pairwise(range(len(means) + 1) if starts is None else starts)):
        ranks = np.argsort(np.argsort(splitmix64(rows, (seed + column * rows * STEP) % (1 << 64))))
        yes = (1 - means[low:high]) / 2
        ends = np.cumsum(yes) / max(1.0, yes.sum()) * rows
        held = np.searchsorted(ends, ranks + 0.5, side="right")
        signs[:, low:high] = np.where(held[:, None] == np.arange(high - low), -1, 1)
    return signs


def flipped_towards(plan: Any, released: Means, near: Floats, start: Signs) -> Signs:
    """
    Return rows in which signs are turned until parities of order 1 and 2 are what they are believed to be.

    Each counts by the precision that its noise and a normal prior leave; pairs that no query needs do not.
    """
    from smalldb.kernels.nearby_rows import turn

    rows, d = start.shape
    targets, weights = np.zeros((d + 1, d + 1)), np.zeros((d + 1, d + 1))
    precisions = np.maximum(released.deviations, _CERTAIN) ** -2.0 + sizes_of(plan, released) ** -2
    for positions, value, precision in zip(plan.spectrum.sets, near, precisions, strict=True):
        if len(positions) <= 2:
            a, b = (0, positions[0] + 1) if len(positions) == 1 else (positions[0] + 1, positions[1] + 1)
            targets[a, b] = targets[b, a] = rows * value
            weights[a, b] = weights[b, a] = precision
    signs = np.ones((rows, d + 1), dtype=np.int8)
    signs[:, 1:] = start
    starts = np.array(plan.coding.starts, dtype=np.int64) + 1
    beyond = _products(signs) - targets
    np.fill_diagonal(beyond, 0.0)
    weights /= weights.max(initial=_CERTAIN)
    for sweep, threshold in enumerate(THRESHOLDS):
        turned = turn(signs, beyond, weights, threshold, sweep * rows // len(THRESHOLDS), starts)
        if not turned and not threshold:
            break
    return signs[:, 1:]


def _products(signs: Signs) -> Floats:
    """Return the sums over the rows of products of two signs: exact, whatever their order."""
    products = np.zeros((signs.shape[1],) * 2)
    for start in range(0, len(signs), 1 << 16):
        some = signs[start : start + (1 << 16)].astype(np.float64)
        products += some.T @ some
    return products


def rounded(domain: Domain, distribution: Floats, rows: int) -> Bits:
    """
    Return rows whose histogram is the distribution, rounded: 0/1, shape (rows, d).

    Systematic rounding: the unit interval is laid out in cells, as long as they are likely, and every row
    takes the cell at its position (i + 1/2) / rows. Cells follow each other in Gray code order, in which
    neighbours differ in one attribute. Any run of cells gets its share of the rows to within one row;
    independent draws would err by about sqrt(rows). A cell of probability 0 gets no row.
    """
    d = len(domain.attributes)
    cells = np.arange(1 << d)
    cells ^= cells >> 1
    ends = np.cumsum(distribution[cells])
    positions = (np.arange(rows) + 0.5) / rows * ends[-1]
    taken = cells[np.searchsorted(ends, positions, side="right")]
    bits: Bits = (taken[:, None] >> np.arange(d - 1, -1, -1) & 1).astype(np.uint8)
    return bits
