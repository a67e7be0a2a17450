"""The sharp bound solved for the data, for epsilon, and for the queries."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil

from smalldb.bounds.calculators import Exact, Infeasible, calculator, last_where, one_of
from smalldb.bounds.optimum import CLASSES, CLOSED, METHODS
from smalldb.bounds.promises import SharpTerms
from smalldb.exact.enclosures import Log, Real, ceiling, round_up_text


@calculator
def sharp_data(
    *,
    error: Exact,
    cells: int,
    queries: int,
    epsilon: Exact,
    beta: Exact,
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
        Refused where even the best small database of so many may err by that much.

    Examples
    --------
    >>> sharp_data(error=0.1, cells=16, queries=11, epsilon=1, beta=0.05)
    1273
    """
    exponent = _least_exponent(error, cells, queries, beta, candidates, rows, method)
    return ceiling(lambda ln: 2 * exponent(ln) / epsilon)


@calculator
def sharp_epsilon(
    *,
    error: Exact,
    n: int,
    cells: int,
    queries: int,
    beta: Exact,
    candidates: str = "multisets",
    rows: int | None = None,
    method: str = "least",
) -> float:
    """
    Return the least epsilon for which the `sharp` bound is at most `error`.

    Equation (10) of `docs/theory.md`. Rounded up, its shortest decimal text too, which is how a float epsilon
    is read. 0 means that any epsilon will do. The bound depends on epsilon n alone. Errors as for
    `sharp_data`.

    Examples
    --------
    >>> round(sharp_epsilon(error=0.1, n=5000, cells=256, queries=37, beta=0.05), 6)
    2.237967
    """
    exponent = _least_exponent(error, cells, queries, beta, candidates, rows, method)
    return round_up_text(2 * exponent(Log()) / n)


@calculator
def sharp_queries(
    *,
    error: Exact,
    n: int,
    cells: int,
    epsilon: Exact,
    beta: Exact,
    candidates: str = "multisets",
    rows: int | None = None,
    method: str = "least",
    most: int = 10**18,
) -> int:
    """
    Return the most queries J, up to `most`, for which the `sharp` bound is at most `error`; 0: not even one.

    Equation (10) of `docs/theory.md`. By the rounding OPT, data enough for N - 1 queries serve any number of
    them, hence `most`. With Hoeffding's alone, m rows serve ln J = 2 m (error - c)^2 - ln 2, where c is the
    rest of the bound. Cost: O(log `most`) searches for the best rows.

    Parameters
    ----------
    most
        The largest J that is tried.

    Examples
    --------
    >>> sharp_queries(error=0.2, n=10**4, cells=256, epsilon=1, beta=0.05, method="hoeffding")
    35389
    """
    unit = 2 / (epsilon * n)
    one_of(METHODS if rows else CLOSED, method, "method")

    def reached(queries: int) -> bool:
        terms = SharpTerms(cells, queries, beta, candidates, method)
        chosen = terms.best_rows(unit) if rows is None else rows
        return bool(Fraction(terms.bound(Log(), chosen, unit).high) <= error)

    return last_where(reached, most)


def _least_exponent(
    error: Fraction,
    cells: int,
    queries: int,
    beta: Fraction,
    candidates: str,
    rows: int | None,
    method: str,
) -> Callable[[Log], Real]:
    """Return the least epsilon n / 2 that will do: excess / (error - OPT), for its best rows."""
    one_of(METHODS if rows else CLOSED, method, "method")
    terms = SharpTerms(cells, queries, beta, candidates, method)
    chosen = _cheapest_rows(terms, error) if rows is None else rows
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
