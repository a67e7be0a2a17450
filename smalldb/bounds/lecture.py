"""Theorem 4.5 and Proposition 4.4 of the lecture, as printed and in the forms that hold."""

from fractions import Fraction

from smalldb.bounds.common import known, ln_count, numbers, sizes
from smalldb.enclosures import Log, Real, ceiling, round_up


def theorem_4_5(*, n: int, cells: int, queries: int, epsilon: object, beta: object) -> float:
    """
    Return the error of (4.2), as printed: ((16 ln N ln J + 4 ln(1/beta)) / (epsilon n))^(1/3).

    It speaks of a release of `theorem_4_5_rows` rows. For one query it is false, since ln J = 0 promises
    a small database of no rows. No queries: 0.

    Examples
    --------
    >>> round(theorem_4_5(n=1000, cells=16, queries=10, epsilon=1, beta=0.05), 6)
    0.485063
    """
    n, cells, queries = sizes(n=n, cells=cells, queries=queries)
    epsilon, beta = numbers(epsilon=epsilon, beta=beta)
    return round_up(_equation_4_2(Log(), n, cells, queries, epsilon, beta)) if queries else 0.0


def theorem_4_5_rows(*, n: int, cells: int, queries: int, epsilon: object, beta: object) -> int:
    """Return the rows of Theorem 4.5: ceil(ln J / (a/2)^2), at least 1, for the error a of (4.2)."""
    n, cells, queries = sizes(n=n, cells=cells, queries=queries)
    epsilon, beta = numbers(epsilon=epsilon, beta=beta)
    if queries <= 1:
        return 1

    def rows(ln: Log) -> Real:
        error = _equation_4_2(ln, n, cells, queries, epsilon, beta)
        return 4 * ln(queries) / (error * error)

    return ceiling(rows)


def theorem_4_5_data(*, error: object, cells: int, queries: int, epsilon: object, beta: object) -> int:
    """Return the least n of (4.3): (16 ln N ln J + 4 ln(1/beta)) / (epsilon error^3), rounded up."""
    cells, queries = sizes(cells=cells, queries=queries)
    error, epsilon, beta = numbers(error=error, epsilon=epsilon, beta=beta)
    if not queries:
        return 1
    return ceiling(lambda ln: _numerator_4_2(ln, cells, queries, beta) / (epsilon * error**3))


def theorem_4_5_epsilon(*, error: object, n: int, cells: int, queries: int, beta: object) -> float:
    """Return the epsilon of (4.3): (16 ln N ln J + 4 ln(1/beta)) / (n error^3), rounded up."""
    n, cells, queries = sizes(n=n, cells=cells, queries=queries)
    error, beta = numbers(error=error, beta=beta)
    if not queries:
        return 0.0
    return round_up(_numerator_4_2(Log(), cells, queries, beta) / (n * error**3))


def proposition_4_4(
    *, alpha: object, n: int, cells: int, queries: int, epsilon: object, beta: object
) -> float:
    """
    Return Proposition 4.4 as printed: alpha + 2 (ln N ln J / alpha^2 + ln(1/beta)) / (epsilon n).

    The proof takes m = ln J / alpha^2 for a number of rows, which it is not; for one query the statement
    is false. `proposition_4_4_rows` is the form that holds. No queries: 0.

    Examples
    --------
    >>> round(proposition_4_4(alpha=0.25, n=1000, cells=16, queries=10, epsilon=1, beta=0.05), 6)
    0.460283
    """
    n, cells, queries = sizes(n=n, cells=cells, queries=queries)
    alpha, epsilon, beta = numbers(alpha=alpha, epsilon=epsilon, beta=beta)
    if not queries:
        return 0.0
    ln = Log()
    excess = ln(cells) * ln(queries) / alpha**2 + ln(1 / beta)
    return round_up(2 * excess / (epsilon * n) + alpha)


def proposition_4_4_best(*, n: int, cells: int, queries: int, epsilon: object, beta: object) -> float:
    """
    Return Proposition 4.4 as printed at its best alpha, (4 ln N ln J / (epsilon n))^(1/3).

    Examples
    --------
    >>> round(proposition_4_4_best(n=1000, cells=16, queries=10, epsilon=1, beta=0.05), 6)
    0.447709
    """
    n, cells, queries = sizes(n=n, cells=cells, queries=queries)
    epsilon, beta = numbers(epsilon=epsilon, beta=beta)
    if not queries:
        return 0.0
    ln = Log()
    rest = 2 * ln(1 / beta) / (epsilon * n)
    if cells == 1 or queries == 1:
        return round_up(rest)
    best = (4 * ln(cells) * ln(queries) / (epsilon * n)).cbrt()
    return round_up(best * Fraction(3, 2) + rest)


def proposition_4_4_rows(
    *,
    rows: int,
    n: int,
    cells: int,
    queries: int,
    epsilon: object,
    beta: object,
    candidates: str = "multisets",
) -> float:
    """
    Return Proposition 4.4 for whole rows: alpha + 2 (ln |R| + ln(1/beta)) / (epsilon n).

    Here alpha = sqrt(ln max(2, J) / m). It holds for every J: 2 J exp(-2 m t^2) < 1 for all
    t > sqrt(ln(2 J) / (2 m)), so some small database errs by no more than that, and
    2 J <= max(2, J)^2 makes it at most alpha. `sharp` is never larger. No queries: 0.
    """
    n, cells, queries, rows = sizes(n=n, cells=cells, queries=queries, rows=rows)
    epsilon, beta = numbers(epsilon=epsilon, beta=beta)
    known(candidates)
    if not queries:
        return 0.0
    ln = Log()
    alpha = (ln(max(2, queries)) / rows).sqrt()
    return round_up(alpha + 2 * ln_count(ln, cells, rows, candidates, times=1 / beta) / (epsilon * n))


def _numerator_4_2(ln: Log, cells: int, queries: int, beta: Fraction) -> Real:
    return 16 * ln(cells) * ln(queries) + 4 * ln(1 / beta)


def _equation_4_2(ln: Log, n: int, cells: int, queries: int, epsilon: Fraction, beta: Fraction) -> Real:
    return (_numerator_4_2(ln, cells, queries, beta) / (epsilon * n)).cbrt()
