"""
OPT: how well the best small database of m rows answers, for any table; and the rows that this takes.

Hoeffding (1963): draw the rows from the table; 2 J exp(-2 m alpha^2) < 1 leaves a good draw. Binomial: the
same with the exact law (`smalldb.bounds.binomial`). Rounding (Caratheodory): some distribution on
K = min(N, J + 1) cells has the answers of the table; rounding it to multiples of 1/m moves at most
s (K - s) / (K m) of it, s = min(m, floor(K / 2)).

By the class of the queries: rounding the shares of rows below each cut to the nearest multiples of 1/m keeps
their order, so thresholds err by at most 1/(2 m); of yes/no columns the shares are rounded one by one
("one-way"). The fractional parts of m times the N shares below a cut lie on a circle of length 1, where some
gap is at least 1/N: rounding all of them there makes any two differ by at most 1 - 1/N, which is what an
interval errs ("intervals").
"""

from fractions import Fraction

from smalldb.bounds import binomial
from smalldb.bounds.arguments import numbers, one_of, sizes
from smalldb.bounds.calculators import calculator
from smalldb.exact.enclosures import Log, Real, ceiling, round_up
from smalldb.exact.numbers import Number

CLASSES = ("thresholds", "one-way", "intervals")  # right for these queries alone
CLOSED = ("least", "hoeffding", "rounding", *CLASSES)  # those of a closed form, which `best_rows` can search
METHODS = (*CLOSED, "binomial")


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
    cells, queries, rows = sizes(cells=cells, queries=queries, rows=rows)
    one_of(METHODS, method, "method")
    return round_up(optimum(Log(), cells, queries, rows, method))


@calculator
def rows_for(*, alpha: Number, queries: int, method: str = "lecture") -> int:
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
    one_of(("lecture", "hoeffding", "binomial"), method, "method")
    if method == "lecture":
        return ceiling(lambda ln: ln(max(2, queries)) / alpha**2)
    enough = ceiling(lambda ln: ln(2 * queries) / (2 * alpha**2)) if queries else 1
    if method == "hoeffding":
        return enough
    if enough > binomial.MOST_ROWS:
        raise ValueError(
            f"alpha must be larger for method 'binomial' (at most {binomial.MOST_ROWS} rows); use 'hoeffding'"
        )
    return binomial.least_rows(alpha, queries, enough)


def optimum(ln: Log, cells: int, queries: int, rows: int, method: str) -> Real:
    """Enclose the bound that `opt` rounds up."""
    if cells == 1 or not queries:
        return Real.of(0, ln.digits)
    if method == "binomial":
        if rows > binomial.MOST_ROWS:
            raise ValueError(f"rows must be at most {binomial.MOST_ROWS} for method 'binomial'")
        return Real.of(binomial.least_error(rows, queries), ln.digits)
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
