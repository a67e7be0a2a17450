"""How many rows make some small database err little: the sampling lemma and what sharpens it."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from smalldb.bounds.common import numbers, sizes
from smalldb.enclosures import Log, Real, ceiling, round_up

_MOST_BINOMIAL = 100_000


def rows_for(*, alpha: object, queries: int, method: str = "lecture") -> int:
    """
    Return how many rows make some small database err by at most alpha on any table.

    Parameters
    ----------
    alpha : exact number in (0, 1)
    queries : int
    method : {"lecture", "hoeffding", "binomial"}
        ceil(ln max(2, J) / alpha^2); ceil(ln(2 J) / (2 alpha^2)); or, for 0/1 queries only, the least m
        with J max_k [P(X <= k) + P(X > k + floor(2 m alpha))] < 1, X ~ Bin(m, k/m + alpha). The
        probabilities are floats: a sum within 1e-9 (relative) of 1 counts as 1.

    Raises
    ------
    ValueError
        A bad argument, or "binomial" where "hoeffding" gives more than 100,000 rows.

    Examples
    --------
    >>> [rows_for(alpha=0.1, queries=10, method=name) for name in ("lecture", "hoeffding", "binomial")]
    [231, 150, 70]
    """
    (queries,) = sizes(queries=queries)
    (alpha,) = numbers(alpha=alpha)
    if method == "lecture":
        return ceiling(lambda ln: ln(max(2, queries)) / alpha**2)
    if method not in ("hoeffding", "binomial"):
        raise ValueError(f"method must be 'lecture', 'hoeffding' or 'binomial', not {method!r}")
    hoeffding = ceiling(lambda ln: ln(2 * queries) / (2 * alpha**2)) if queries else 1
    if method == "hoeffding":
        return hoeffding
    if hoeffding > _MOST_BINOMIAL:
        raise ValueError(
            f"alpha must be larger for method 'binomial' (at most {_MOST_BINOMIAL} rows); use 'hoeffding'"
        )
    allowed = (1 - 1e-9) * float(Fraction(1, max(1, queries)))
    # one k near p = 1/2 rules out almost all m at once
    rows = np.arange(1, hoeffding)
    middle = (rows * max(0.0, 0.5 - float(alpha))).astype(np.int64)
    for m in rows[_binomial_tails(rows, middle, alpha) < allowed].tolist():
        every = np.arange(m * (1 - alpha) // 1 + 1)
        if _binomial_tails(np.full_like(every, m), every, alpha).max() < allowed:
            return int(m)
    return hoeffding


def opt(*, cells: int, queries: int, rows: int, opt_method: str = "least") -> float:
    """
    Bound the error of the best small database of `rows` rows, for any table.

    Parameters
    ----------
    opt_method : {"least", "hoeffding", "rounding", "binomial"}
        "hoeffding": sqrt(ln(2 J) / (2 m)) (draw the rows). "rounding": s (K - s) / (K m) with
        K = min(N, J + 1), s = min(m, floor(K / 2)) (Caratheodory: K points suffice; round their weights).
        "least": the lesser of these two. "binomial": for 0/1 queries only, an alpha for which
        `rows_for` by that method would do with m rows (floats, as there).

    Examples
    --------
    >>> opt(cells=2, queries=1, rows=5)
    0.1
    """
    cells, queries, rows = sizes(cells=cells, queries=queries, rows=rows)
    known_method(opt_method, binomial=True)
    if cells == 1 or not queries:
        return 0.0
    if opt_method == "binomial":
        return _binomial_opt(queries, rows)
    return round_up(opt_of(Log(), cells, queries, rows, opt_method))


def known_method(opt_method: str, binomial: bool = False) -> None:
    """Refuse what is no bound on the best small database."""
    names = ["least", "hoeffding", "rounding", *(["binomial"] if binomial else [])]
    if opt_method not in names:
        raise ValueError(f"opt_method must be one of {', '.join(map(repr, names))}, not {opt_method!r}")


def hoeffding(ln: Log, queries: int, rows: int) -> Real:
    """Enclose sqrt(ln(2 J) / (2 m))."""
    return (ln(2 * queries) / (2 * rows)).sqrt()


def rounding(cells: int, queries: int, rows: int) -> Fraction:
    """Return s (K - s) / (K m)."""
    support = min(cells, queries + 1)
    raised = min(rows, support // 2)
    return Fraction(raised * (support - raised), support * rows)


def opt_of(ln: Log, cells: int, queries: int, rows: int, opt_method: str) -> Real:
    """Enclose the bound by a method other than "binomial"."""
    if opt_method == "rounding":
        return Real.of(rounding(cells, queries, rows), ln.digits)
    bound = hoeffding(ln, queries, rows)
    return bound if opt_method == "hoeffding" else bound.pick(min, rounding(cells, queries, rows))


def _binomial_opt(queries: int, rows: int) -> float:
    """Return the least alpha found for which the chance that some query errs by more is below 1."""
    if rows > _MOST_BINOMIAL:
        raise ValueError(f"rows must be at most {_MOST_BINOMIAL} for opt_method 'binomial'")
    allowed = (1 - 1e-9) / queries

    def serves(alpha: float) -> bool:
        exact = Fraction(alpha)
        every = np.arange(rows * (1 - exact) // 1 + 1)
        return bool(_binomial_tails(np.full_like(every, rows), every, exact).max() < allowed)

    high = min(round_up(hoeffding(Log(), queries, rows)), 1.0)
    low = 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if serves(middle) else (middle, high)
    return high


def _binomial_tails(rows: NDArray[np.int64], k: NDArray[np.int64], alpha: Fraction) -> NDArray[np.float64]:
    """P(X <= k) + P(X > k + floor(2 m alpha)), X ~ Bin(m, k/m + alpha), elementwise over (m, k)."""
    from scipy.special import betainc, betaincc  # a quarter of a second that nothing else here needs

    above = k + np.array([2 * m * alpha // 1 for m in rows.tolist()], dtype=np.int64)
    p = np.minimum(k / rows + float(alpha), 1.0)
    upper = np.where(above < rows, betainc(above + 1, np.maximum(rows - above, 1), p), 0.0)
    return np.asarray(betaincc(k + 1, rows - k, p) + upper)
