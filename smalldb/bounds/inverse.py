"""The sharp bound solved for the data, for epsilon, for the queries and for the attributes."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil

from smalldb.bounds.arguments import Infeasible, numbers, sizes
from smalldb.bounds.calculators import calculator
from smalldb.bounds.integer_search import last_where
from smalldb.bounds.optimum import CLASSES, CLOSED, METHODS
from smalldb.bounds.promises import SharpTerms
from smalldb.exact.enclosures import Log, Real, ceiling, round_up_text
from smalldb.exact.numbers import Number


@calculator
def sharp_data(
    *,
    error: Number,
    cells: int,
    queries: int,
    epsilon: Number,
    beta: Number,
    candidates: str = "multisets",
    rows: int | None = None,
    method: str = "least",
) -> int:
    """
    Return the least n for which the `sharp` bound is at most `error`.

    Equation (10) of `docs/theory.md`.

    Parameters
    ----------
    rows : int, optional
        Those of the release; by default the best (a method of closed form only).

    Raises
    ------
    ValueError
        A bad argument, or rows of which even the best small database may err by that much.

    Examples
    --------
    >>> sharp_data(error=0.1, cells=16, queries=11, epsilon=1, beta=0.05)
    1273
    """
    (epsilon,) = numbers(epsilon=epsilon)
    exponent = _least_exponent(error, cells, queries, beta, candidates, rows, method)
    return ceiling(lambda ln: 2 * exponent(ln) / epsilon)


@calculator
def sharp_epsilon(
    *,
    error: Number,
    n: int,
    cells: int,
    queries: int,
    beta: Number,
    candidates: str = "multisets",
    rows: int | None = None,
    method: str = "least",
) -> float:
    """
    Return the least epsilon for which the `sharp` bound is at most `error`.

    Equation (10) of `docs/theory.md`.

    Rounded up, its shortest decimal text too, which is how a float epsilon is read. 0 means that any epsilon
    will do. The bound depends on epsilon n alone. Errors as for `sharp_data`.


    Examples
    --------
    >>> round(sharp_epsilon(error=0.1, n=5000, cells=256, queries=37, beta=0.05), 6)
    2.237967
    """
    (n,) = sizes(n=n)
    exponent = _least_exponent(error, cells, queries, beta, candidates, rows, method)
    return round_up_text(2 * exponent(Log()) / n)


@calculator
def sharp_queries(
    *,
    error: Number,
    n: int,
    cells: int,
    epsilon: Number,
    beta: Number,
    candidates: str = "multisets",
    rows: int | None = None,
    method: str = "least",
    most: int = 10**18,
) -> int:
    """
    Return the most queries J, up to `most`, for which the `sharp` bound is at most `error`; 0: not even one.

    Equation (10) of `docs/theory.md`.

    By the rounding OPT, data enough for N - 1 queries serve any number of them, hence `most`. With
    Hoeffding's alone, m rows serve ln J = 2 m (error - c)^2 - ln 2, where c is the rest of the bound.
    Cost: O(log `most`) searches for the best rows.

    Parameters
    ----------
    most
        The largest J that is tried.

    Examples
    --------
    >>> sharp_queries(error=0.2, n=10**4, cells=256, epsilon=1, beta=0.05, method="hoeffding")
    35389
    """
    n, cells, most = sizes(n=n, cells=cells, most=most)

    def sizes_of(queries: int) -> tuple[int, int]:
        return cells, queries

    return _largest(sizes_of, most, error, n, epsilon, beta, candidates, rows, method)


def sharp_attributes(
    *,
    error: Number,
    n: int,
    size_of: Callable[[int], tuple[int, int]],
    epsilon: Number,
    beta: Number,
    candidates: str = "multisets",
    rows: int | None = None,
    method: str = "least",
    most: int = 1000,
) -> int:
    """
    Return the most attributes d, up to `most`, for which the `sharp` bound is at most `error`; 0: not one.

    Equation (10) of `docs/theory.md`.

    Parameters
    ----------
    error
        The largest error of a query that is allowed, a share of the rows: an exact number in (0, 1).
    n
        Rows of the data, at least 1.
    size_of : callable
        d to (cells, queries) of the class over d attributes; neither falls as d rises.
    epsilon
        Of the release; an exact number above 0.
    beta
        The probability with which the error may be larger; an exact number in (0, 1).
    rows, candidates, method
        As for `sharp_data`.
    most
        Where the search ends.

    Examples
    --------
    >>> from math import comb
    >>> conjunctions = lambda d: (2**d, d + comb(d, 2))
    >>> sharp_attributes(error=0.2, n=10**4, size_of=conjunctions, epsilon=1, beta=0.05)
    10
    """
    n, most = sizes(n=n, most=most)
    return _largest(size_of, most, error, n, epsilon, beta, candidates, rows, method)


def _least_exponent(
    error: Number,
    cells: object,
    queries: object,
    beta: Number,
    candidates: str,
    rows: int | None,
    method: str,
) -> Callable[[Log], Real]:
    """Return the least epsilon n / 2 that will do: excess / (error - OPT), for its best rows."""
    (error,) = numbers(error=error)
    terms = SharpTerms.read(cells, queries, beta, candidates, method, CLOSED if rows is None else METHODS)
    chosen = _cheapest_rows(terms, error) if rows is None else sizes(rows=rows)[0]
    free = terms.excess(Log(), chosen).high <= 0
    least = Fraction(terms.optimum(Log(), chosen).high)
    if least > error or (least == error and not free):
        raise Infeasible("error must be larger for these rows: the best small database may err by as much")
    if free:
        return lambda ln: Real.of(0, ln.digits)

    def exponent(ln: Log) -> Real:
        return terms.excess(ln, chosen) / (error - terms.optimum(ln, chosen))

    return exponent


def _cheapest_rows(terms: SharpTerms, error: Fraction) -> int:
    """Return the rows of the least excess / (error - OPT)."""
    # Dinkelbach's (1967) iteration: the rows of the least bound at the exponent that serves the present
    # ones do with a smaller one, until no rows do. It ends after a few steps.
    if terms.trivial:
        return 1
    ln = Log()
    free = terms.free_rows()
    if free and Fraction(terms.optimum(ln, free).high) <= error:
        return free
    support = min(terms.cells, terms.queries + 1)
    # half the error for OPT will do
    rows = (
        ceil(max(support, 4) / (2 * error))
        if terms.method in ("rounding", *CLASSES)
        else ceiling(lambda ln: 2 * ln(2 * terms.queries) / error**2)
    )
    while True:
        unit = Fraction(((error - terms.optimum(ln, rows)) / terms.excess(ln, rows)).high)
        better = terms.best_rows(unit)
        if Fraction(terms.bound(ln, better, unit).high) >= error:
            return rows
        rows = better


def _largest(
    size_of: Callable[[int], tuple[int, int]],
    most: int,
    error: Number,
    n: int,
    epsilon: Number,
    beta: Number,
    candidates: str,
    rows: int | None,
    method: str,
) -> int:
    """Return the last d up to `most` whose class has a bound of at most `error`."""
    error, epsilon = numbers(error=error, epsilon=epsilon)
    unit = 2 / (epsilon * n)
    given = None if rows is None else sizes(rows=rows)[0]

    def reached(d: int) -> bool:
        terms = SharpTerms.read(*size_of(d), beta, candidates, method, CLOSED if given is None else METHODS)
        chosen = terms.best_rows(unit) if given is None else given
        return Fraction(terms.bound(Log(), chosen, unit).high) <= error

    return last_where(reached, most)
