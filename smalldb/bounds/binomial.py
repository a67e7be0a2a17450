"""
The exact binomial form of the sampling lemma, for queries with values 0 and 1.

Of m rows drawn from the table, X ~ Bin(m, p) satisfy a query of mean p. If J sup_p P(|X/m - p| > alpha) is
below 1, some small database errs by at most alpha. The supremum is at a jump: it is the largest of
P(X <= k) + P(X > k + floor(2 m alpha)) with p = k/m + alpha over 0 <= k <= m (1 - alpha), because between
jumps the probability falls and then rises in p, and p and 1 - p change places.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 100_000
_MARGIN = 1 - 1e-9  # the floats are better by far
_GRID = 1 << 40


def least_rows(alpha: Fraction, queries: int, enough: int) -> int:
    """Return the least number m of rows with which some small database errs by at most alpha."""
    # one k near p = 1/2 rules out almost all m at once
    rows = np.arange(1, enough)
    middle = (rows * max(0.0, 0.5 - float(alpha))).astype(np.int64)
    hopeful = rows[tails(rows, middle, alpha) < _allowed(queries)]
    return next((m for m in hopeful.tolist() if _enough(m, alpha, queries)), enough)


@lru_cache(maxsize=256)
def least_error(rows: int, queries: int) -> Fraction:
    """Return the least alpha that will do, rounded up to a multiple of 2^-40; the supremum falls in alpha."""
    low, high = 0, _GRID  # nothing errs by more than 1
    while high - low > 1:
        middle = (low + high) // 2
        if _enough(rows, Fraction(middle, _GRID), queries):
            high = middle
        else:
            low = middle
    return Fraction(high, _GRID)


def tails(rows: NDArray[np.int64], k: NDArray[np.int64], alpha: Fraction) -> NDArray[np.float64]:
    """P(X <= k) + P(X > k + floor(2 m alpha)), X ~ Bin(m, k/m + alpha), elementwise over (m, k)."""
    from scipy.special import betainc, betaincc  # a quarter of a second that nothing else here needs

    twice, unit = 2 * alpha.numerator, alpha.denominator
    above = k + np.array([m * twice // unit for m in rows.tolist()], dtype=np.int64)
    p = np.minimum(k / rows + float(alpha), 1.0)
    upper = np.where(above < rows, betainc(above + 1, np.maximum(rows - above, 1), p), 0.0)
    return np.asarray(betaincc(k + 1, rows - k, p) + upper)


def _enough(rows: int, alpha: Fraction, queries: int) -> bool:
    every = np.arange(rows * (1 - alpha) // 1 + 1)
    return bool(tails(np.full_like(every, rows), every, alpha).max() < _allowed(queries))


def _allowed(queries: int) -> float:
    return _MARGIN * float(Fraction(1, max(1, queries)))
