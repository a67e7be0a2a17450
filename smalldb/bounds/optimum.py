"""
OPT: how well the best small database of m rows answers, for any table; and the rows that this takes.

Hoeffding (1963): draw the rows from the table; 2 J exp(-2 m alpha^2) < 1 leaves a good draw. Binomial: the
same with the exact law. Rounding (Caratheodory): some distribution on
K = min(N, J + 1) cells has the answers of the table; rounding it to multiples of 1/m moves at most
s (K - s) / (K m) of it, s = min(m, floor(K / 2)).

By the class of the queries: rounding the shares of rows below each cut to the nearest multiples of 1/m keeps
their order, so thresholds err by at most 1/(2 m); of yes/no columns the shares are rounded one by one
("one-way"). The fractional parts of m times the N shares below a cut lie on a circle of length 1, where some
gap is at least 1/N: rounding all of them there makes any two differ by at most 1 - 1/N, which is what an
interval errs ("intervals").
"""

from bisect import bisect_left
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from queries import Domain, Intervals, QueryClass, Thresholds, spec
from smalldb.bounds.calculators import Exact, calculator, one_of
from smalldb.exact.enclosures import Log, Real, ceiling, ln_choose, round_up

BASES = ("multisets", "tuples")

MOST_ROWS = 100_000
_MARGIN = 1 - 1e-9  # the floats are better by far
_GRID = 1 << 40
CLASSES = ("thresholds", "one-way", "intervals")  # right for these queries alone
CLOSED = ("least", "hoeffding", "rounding", *CLASSES)  # those of a closed form, which `best_rows` can search
METHODS = (*CLOSED, "binomial")


def ln_count(
    ln: Log, cells: int, rows: int, candidates: str, less: int = 0, times: Fraction = Fraction(1)
) -> Real:
    """Enclose ln((|R| - less) times), for `less` 0 or 1."""
    # |R| is C(N + m - 1, m) for multisets and N^m for tuples. One logarithm if |R| is small: nothing
    # cancels.
    tuples = candidates == "tuples"
    if tuples and rows * cells.bit_length() <= 8 * ln.digits:
        return ln((cells**rows - less) * times)
    if not tuples and min(rows, cells - 1) <= 2 * ln.digits and cells <= 10 ** (2 * ln.digits):
        return ln((comb(cells + rows - 1, rows) - less) * times)
    whole = rows * ln(cells) if tuples else ln_choose(rows, cells - 1, ln.digits)
    # here |R| > 2 * 10^digits, so ln|R| - ln(|R| - 1) < 10^-digits
    return whole - less * Real(Decimal(0), Decimal(f"1e-{ln.digits}"), ln.digits) + ln(times)


# Of m rows drawn from the table, X ~ Bin(m, p) satisfy a query of mean p. If J sup_p P(|X/m - p| > alpha)
# is below 1, some small database errs by at most alpha. The supremum is at a jump: it is the largest of P(X
# <= k) + P(X > k + floor(2 m alpha)) with p = k/m + alpha over 0 <= k <= m (1 - alpha), because between
# jumps the probability falls and then rises in p, and p and 1 - p change places.


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
    # nothing errs by more than 1
    steps = bisect_left(range(1, _GRID), True, key=lambda k: _enough(rows, Fraction(k, _GRID), queries))
    return Fraction(1 + steps, _GRID)


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


@calculator
def opt(*, cells: int, queries: int, rows: int, method: str = "least") -> float:
    """
    Bound the error of the best small database of `rows` rows, for any table.

    Equation (7) of `docs/theory.md`.

    Parameters
    ----------
    method : {"least", "hoeffding", "rounding", "binomial", "thresholds", "one-way", "intervals"}
        sqrt(ln(2 J) / (2 m)); s (K - s) / (K m) with K = min(N, J + 1), s = min(m, floor(K / 2)); the
        lesser of the two ("least"); or, for 0/1 queries only, the least alpha for which m rows are those
        of `rows_for`, up to 2^-40 ("binomial": some 40 m pairs of tails, up to 100,000 rows).
        For these classes alone (`class_method` names theirs): 1 / (2 m) for thresholds and for single
        yes/no attributes of the whole cube, (N - 1) / (N m) for intervals.

    Examples
    --------
    >>> opt(cells=2, queries=1, rows=5)
    0.1
    >>> [round(opt(cells=2**16, queries=697, rows=450, method=name), 4) for name in ("least", "binomial")]
    [0.0897, 0.0756]
    """
    one_of(METHODS, method, "method")
    return round_up(optimum(Log(), cells, queries, rows, method))


@calculator
def rows_for(*, alpha: Exact, queries: int, method: str = "lecture") -> int:
    """
    Return how many rows make some small database err by at most alpha on any table.

    Equation (3) of `docs/theory.md`.

    Parameters
    ----------
    alpha : exact number in (0, 1)
    queries : int
    method : {"lecture", "hoeffding", "binomial"}
        ceil(ln max(2, J) / alpha^2), the sampling lemma of the lecture, where J = 1 would give no rows;
        ceil(ln(2 J) / (2 alpha^2)); or, for 0/1 queries only, the least m with
        J max_k [P(X <= k) + P(X > k + floor(2 m alpha))] < 1, X ~ Bin(m, k/m + alpha). The
        probabilities are floats: a sum within 1e-9 (relative) of 1 counts as 1. Up to 100,000 rows.

    Examples
    --------
    >>> [rows_for(alpha=0.1, queries=10, method=name) for name in ("lecture", "hoeffding", "binomial")]
    [231, 150, 70]
    """
    one_of(("lecture", "hoeffding", "binomial"), method, "method")
    if method == "lecture":
        return ceiling(lambda ln: ln(max(2, queries)) / alpha**2)
    enough = ceiling(lambda ln: ln(2 * queries) / (2 * alpha**2)) if queries else 1
    if method == "hoeffding":
        return enough
    if enough > MOST_ROWS:
        raise ValueError(
            f"alpha must be larger for method 'binomial' (at most {MOST_ROWS} rows); use 'hoeffding'"
        )
    return least_rows(alpha, queries, enough)


def optimum(ln: Log, cells: int, queries: int, rows: int, method: str) -> Real:
    """Enclose the bound that `opt` rounds up."""
    if cells == 1 or not queries:
        return Real.of(0, ln.digits)
    if method == "binomial":
        if rows > MOST_ROWS:
            raise ValueError(f"rows must be at most {MOST_ROWS} for method 'binomial'")
        return Real.of(least_error(rows, queries), ln.digits)
    if method in CLASSES:
        return Real.of(constant(cells, method) / rows, ln.digits)
    if method == "rounding":
        return Real.of(rounding(cells, queries, rows), ln.digits)
    drawn = hoeffding(ln, queries, rows)
    return drawn.pick(min, rounding(cells, queries, rows)) if method == "least" else drawn


def hoeffding(ln: Log, queries: int, rows: int) -> Real:
    """Enclose sqrt(ln(2 J) / (2 m))."""
    return (ln(2 * queries) / (2 * rows)).sqrt()


def constant(cells: int, method: str) -> Fraction:
    """Return C, where a class of queries has OPT(m) at most C / m."""
    return Fraction(cells - 1, cells) if method == "intervals" else Fraction(1, 2)


def rounding(cells: int, queries: int, rows: int) -> Fraction:
    """Return s (K - s) / (K m), with K = min(N, J + 1) and s = min(m, floor(K / 2))."""
    support = min(cells, queries + 1)
    raised = min(rows, support // 2)
    return Fraction(raised * (support - raised), support * rows)


def class_method(domain: Domain, queries: QueryClass | str | None = None) -> str:
    """
    Return the `method` of `opt` and `sharp` that is best for a class: its own, or "least".

    Equation (7) of `docs/theory.md`. Its own where the class is thresholds, intervals, or tables of single
    columns of a universe without rules ("one-way" if each query is of one yes/no attribute; else "intervals",
    whose constant covers a table of fewer categories).

    Examples
    --------
    >>> [class_method(Domain(["a", "b"]), name) for name in ("thresholds", "marginals:1", "marginals:2")]
    ['thresholds', 'one-way', 'least']
    """
    chosen = spec.parse(queries) if isinstance(queries, str) else queries or spec.default(domain)
    if isinstance(chosen, Thresholds):
        return "thresholds"
    if isinstance(chosen, Intervals):
        return "intervals"
    # a rule could forbid the rows that single columns add up to
    if domain.valid is not None:
        return "least"
    workload = chosen.workload(domain)
    if any(len(columns) > 1 for columns in workload.tables):
        return "least"
    if any(not domain.columns[query.columns(domain)[0]].yes_no for query in workload.listed):
        return "least"  # any set of categories
    return "intervals" if workload.cells else "one-way"
