"""How strongly ordered columns go together: rank correlations; for the curator."""

import numpy as np

from queries import Domain, Rows
from queries.arrays import Floats
from queries.rows import bincounted


def ordered_columns(domain: Domain) -> list[int]:
    """Return the columns whose categories are in an order; those of two categories are."""
    return [c for c, column in enumerate(domain.columns) if column.ordered or column.size == 2]


def rank_correlations(rows: Rows) -> Floats:
    """Return Spearman's rank correlation of each two ordered columns, shape (ordered, ordered).

    A category's rank is the mean rank of its rows. Not a number for a column with one category in use.

    Parameters
    ----------
    rows
        At least one.

    Examples
    --------
    >>> rows = Rows.from_bits(Domain(["a", "b"]), np.array([[0, 0], [1, 1], [1, 1]]))
    >>> rank_correlations(rows).round(9).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    codes, counts, n = rows.codes(), rows.counts, rows.n
    chosen = ordered_columns(rows.domain)
    ranks = np.empty((len(chosen), len(counts)))
    for i, c in enumerate(chosen):
        column = codes[:, c].astype(np.int64)
        share = bincounted(column, counts, rows.domain.sizes[c]) / n
        middle = np.cumsum(share) - share / 2 - 0.5  # less the mean rank, which is one half
        spread = np.sqrt((share * middle**2).sum())
        ranks[i] = (middle / spread if spread > 1e-12 else np.full_like(middle, np.nan))[column]
    found: Floats = (ranks * (counts / n)) @ ranks.T
    return found
