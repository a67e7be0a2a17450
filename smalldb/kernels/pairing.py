"""Contingency tables of many pairs of columns, counted in one pass over rows that fit the cache."""

import numpy as np
import numpy.typing as npt

from queries.arrays import Integers
from smalldb.kernels.compiling import kernel

Bytes = npt.NDArray[np.uint8]


# Proof: docs/proofs/rounds.md, lemma 1.
@kernel
def count_pairs(
    groups: Bytes, counts: Integers, pairs: Integers, origins: Integers, strides: Integers, cells: Integers
) -> None:
    """Add rows to the tables of pairs of columns."""
    # The cell of group g of the first column and group h of the second is at ``origin + g stride + h``.
    # Cost: rows times pairs.
    for t in range(len(pairs)):
        first, second = groups[pairs[t, 0]], groups[pairs[t, 1]]
        origin, stride = origins[t], strides[t]
        for i in range(len(counts)):
            cells[origin + np.int64(first[i]) * stride + np.int64(second[i])] += counts[i]
