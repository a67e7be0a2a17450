"""
The lecture's theorem and proposition (Ligett, "Exponential Mechanism, Private Data Release").

They state the result of Blum, Ligett and Roth (STOC 2008). Here they are in the form that is printed, in
one that holds for whole rows, and solved for the data and for epsilon. `sharp` is far better than any.
"""

from fractions import Fraction

from smalldb.bounds.calculators import Exact, Infeasible, calculator, one_of
from smalldb.bounds.optimum import BASES, ln_count
from smalldb.exact.enclosures import Log, Real, ceiling, round_up, round_up_text


@calculator
def theorem_4_5(*, n: int, cells: int, queries: int, epsilon: Exact, beta: Exact) -> float:
    """
    Return the error of (4.2), as printed: ((16 ln N ln J + 4 ln(1/beta)) / (epsilon n))^(1/3).

    Equation (6) of `docs/theory.md`. It speaks of a release of `theorem_4_5_rows` rows. For one query it is
    false, since ln J = 0 promises a small database of no rows. No queries: 0.

    Examples
    --------
    >>> round(theorem_4_5(n=1000, cells=16, queries=10, epsilon=1, beta=0.05), 6)
    0.485063
    """
    ln = Log()
    return round_up(error_4_2(ln, n, cells, ln(queries), epsilon, beta)) if queries else 0.0


@calculator
def theorem_4_5_rows(*, n: int, cells: int, queries: int, epsilon: Exact, beta: Exact) -> int:
    """
    Return the rows of Theorem 4.5: ceil(ln J / (a/2)^2), at least 1, for the error a of (4.2).

    Equation (6) of `docs/theory.md`.
    """
    if queries <= 1:
        return 1

    def rows(ln: Log) -> Real:
        error = error_4_2(ln, n, cells, ln(queries), epsilon, beta)
        return 4 * ln(queries) / (error * error)

    return ceiling(rows)


@calculator
def theorem_4_5_data(*, error: Exact, cells: int, queries: int, epsilon: Exact, beta: Exact) -> int:
    """
    Return the least n of (4.3): (16 ln N ln J + 4 ln(1/beta)) / (epsilon error^3), rounded up.

    Equation (6) of `docs/theory.md`.
    """
    if not queries:
        return 1
    return ceiling(lambda ln: _numerator_4_2(ln, cells, ln(queries), beta) / (epsilon * error**3))


@calculator
def theorem_4_5_epsilon(*, error: Exact, n: int, cells: int, queries: int, beta: Exact) -> float:
    """
    Return the least epsilon of (4.3): (16 ln N ln J + 4 ln(1/beta)) / (n error^3).

    Equation (6) of `docs/theory.md`. Rounded up, its shortest decimal text too, which is how a float epsilon
    is read. No queries: 0, which means that any epsilon will do.
    """
    ln = Log()
    return round_up_text(_numerator_4_2(ln, cells, ln(queries), beta) / (n * error**3)) if queries else 0.0


@calculator
def proposition_4_4(
    *, n: int, cells: int, queries: int, epsilon: Exact, beta: Exact, alpha: Exact | None = None
) -> float:
    """
    Return Proposition 4.4 as printed: alpha + 2 (ln N ln J / alpha^2 + ln(1/beta)) / (epsilon n).

    Equation (4) of `docs/theory.md`. The proof takes m = ln J / alpha^2 for a number of rows, which it is
    not; for one query the statement is false. `proposition_4_4_rows` is the form that holds. No queries: 0.

    Parameters
    ----------
    alpha : exact number in (0, 1), optional
        By default the best one, (4 ln N ln J / (epsilon n))^(1/3), even where that passes 1.

    Examples
    --------
    >>> sizes = {"n": 1000, "cells": 16, "queries": 10, "epsilon": 1, "beta": 0.05}
    >>> round(proposition_4_4(alpha=0.25, **sizes), 6), round(proposition_4_4(**sizes), 6)
    (0.460283, 0.447709)
    """
    if not queries:
        return 0.0
    ln = Log()
    return round_up(at_alpha_4_4(ln, n, cells, ln(queries), epsilon, beta, alpha))


@calculator
def proposition_4_4_data(
    *, error: Exact, alpha: Exact, cells: int, queries: int, epsilon: Exact, beta: Exact
) -> int:
    """
    Return the least n for which Proposition 4.4, as printed, promises an error; it needs alpha < error.

    Equation (4) of `docs/theory.md`. At alpha = error / 2 that is (16 ln N ln J + 4 error^2 ln(1/beta)) /
    (epsilon error^3), never more than (4.3). No queries: 1.
    """
    if alpha >= error:
        raise Infeasible("alpha must be below error")
    if not queries:
        return 1
    price = (error - alpha) * epsilon
    return ceiling(lambda ln: 2 * _excess_4_4(ln, alpha, cells, ln(queries), beta) / price)


@calculator
def proposition_4_4_rows(
    *,
    rows: int,
    n: int,
    cells: int,
    queries: int,
    epsilon: Exact,
    beta: Exact,
    candidates: str = "multisets",
) -> float:
    """
    Return Proposition 4.4 for whole rows: alpha + 2 (ln |R| + ln(1/beta)) / (epsilon n).

    Equation (5) of `docs/theory.md`. Here alpha = sqrt(ln max(2, J) / m). It holds for every J: 2 J exp(-2 m
    t^2) < 1 for all t > sqrt(ln(2 J) / (2 m)), so some small database errs by no more than that, and 2 J <=
    max(2, J)^2 makes it at most alpha. `sharp` is never larger. No queries: 0.
    """
    one_of(BASES, candidates, "candidates")
    if not queries:
        return 0.0
    ln = Log()
    alpha = (ln(max(2, queries)) / rows).sqrt()
    return round_up(alpha + 2 * ln_count(ln, cells, rows, candidates, times=1 / beta) / (epsilon * n))


def error_4_2(ln: Log, n: int, cells: int, size: Real, epsilon: Fraction, beta: Fraction) -> Real:
    """Enclose the error of (4.2) for a class whose number of queries has the logarithm `size`."""
    return (_numerator_4_2(ln, cells, size, beta) / (epsilon * n)).cbrt()


def at_alpha_4_4(
    ln: Log, n: int, cells: int, size: Real, epsilon: Fraction, beta: Fraction, alpha: Fraction | None
) -> Real:
    """Enclose the error of Proposition 4.4 at an alpha, by default its best."""
    if alpha is not None:
        return 2 * _excess_4_4(ln, alpha, cells, size, beta) / (epsilon * n) + alpha
    # alpha + c / alpha^2 is least at alpha = (2 c)^(1/3), where it is 3/2 alpha
    least = Fraction(3, 2) * (4 * ln(cells) * size / (epsilon * n)).cbrt()
    return least + 2 * ln(1 / beta) / (epsilon * n)


def _numerator_4_2(ln: Log, cells: int, size: Real, beta: Fraction) -> Real:
    return 16 * ln(cells) * size + 4 * ln(1 / beta)


def _excess_4_4(ln: Log, alpha: Fraction, cells: int, size: Real, beta: Fraction) -> Real:
    return ln(cells) * size / alpha**2 + ln(1 / beta)
