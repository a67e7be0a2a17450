"""What an error needs, by the sharp bound: data, epsilon; and how many queries or attributes it allows."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from smalldb.bounds.common import excess, known, numbers, sizes
from smalldb.bounds.sampling import known_method, opt_of
from smalldb.bounds.tight import best_rows, last_of, sharp
from smalldb.enclosures import Log, Real, ceiling, round_up

MOST_QUERIES = 1 << 200


def sharp_data(
    *,
    error: object,
    cells: int,
    queries: int,
    epsilon: object,
    beta: object,
    candidates: str = "multisets",
    opt_method: str = "least",
) -> int:
    """
    Return the least n for which some number of rows has a `sharp` bound of at most `error`.

    Examples
    --------
    >>> sharp_data(error=0.1, cells=16, queries=11, epsilon=1, beta=0.05)
    1273
    """
    cells, queries = sizes(cells=cells, queries=queries)
    error, epsilon, beta = numbers(error=error, epsilon=epsilon, beta=beta)
    known(candidates)
    known_method(opt_method)
    if cells == 1 or not queries:
        return 1
    given: dict[str, Any] = {"cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
    chosen: dict[str, Any] = {"candidates": candidates, "opt_method": opt_method}

    def data(rows: int) -> int:
        if excess(Log(), cells, rows, beta, candidates).high == 0:
            return 1
        return ceiling(lambda ln: _strength(ln, error, cells, queries, rows, beta, **chosen) / epsilon)

    n = data(_plenty(error, cells, queries, opt_method))
    while n > 1:
        rows = best_rows(n=n - 1, **given, **chosen)
        if sharp(n=n - 1, rows=rows, **given, **chosen) > error:
            break
        n = data(rows)
    return n


def sharp_epsilon(
    *,
    error: object,
    n: int,
    cells: int,
    queries: int,
    beta: object,
    candidates: str = "multisets",
    opt_method: str = "least",
) -> float:
    """
    Return the epsilon, rounded up, at which some number of rows has a `sharp` bound of at most `error`.

    The bound depends on epsilon n alone, so this is `sharp_data` for a fixed n.

    Examples
    --------
    >>> round(sharp_epsilon(error=0.1, n=5000, cells=256, queries=37, beta=0.05), 6)
    2.237967
    """
    n, cells, queries = sizes(n=n, cells=cells, queries=queries)
    error, beta = numbers(error=error, beta=beta)
    known(candidates)
    known_method(opt_method)
    if cells == 1 or not queries:
        return 0.0
    chosen: dict[str, Any] = {"candidates": candidates, "opt_method": opt_method}

    # up to some rows the bound is OPT alone (for beta near 1), whatever epsilon is
    free = last_of(lambda m: excess(Log(), cells, m, beta, candidates).high == 0, None)
    if free and opt_of(Log(), cells, queries, free, opt_method).high <= error:
        return 0.0

    def strength(rows: int) -> float:
        return round_up(_strength(Log(), error, cells, queries, rows, beta, **chosen) / n)

    found = strength(_plenty(error, cells, queries, opt_method))
    while found > 0:
        epsilon = Fraction(found)
        rows = best_rows(n=n, cells=cells, queries=queries, epsilon=epsilon, beta=beta, **chosen)
        better = strength(rows)
        if better >= found:
            break
        found = better
    return found


def sharp_queries(
    *,
    error: object,
    n: int,
    cells: int,
    epsilon: object,
    beta: object,
    candidates: str = "multisets",
    opt_method: str = "least",
) -> int | None:
    """
    Return the largest number of queries for which some rows have a `sharp` bound of at most `error`.

    None where any number will do (the rounding of N weights errs little enough); 0 where none does.
    """
    n, cells = sizes(n=n, cells=cells)
    error, epsilon, beta = numbers(error=error, epsilon=epsilon, beta=beta)
    given: dict[str, Any] = {"n": n, "cells": cells, "epsilon": epsilon, "beta": beta}
    chosen: dict[str, Any] = {"candidates": candidates, "opt_method": opt_method}

    def serve(queries: int) -> bool:
        rows = best_rows(queries=queries, **given, **chosen)
        return sharp(queries=queries, rows=rows, **given, **chosen) <= error

    most = last_of(serve, MOST_QUERIES)
    return None if most == MOST_QUERIES else most


def sharp_attributes(
    *,
    error: object,
    n: int,
    sizes_of: Callable[[int], tuple[int, int]],
    epsilon: object,
    beta: object,
    candidates: str = "multisets",
) -> int:
    """
    Return the most attributes for which some rows have a `sharp` bound of at most `error`.

    Parameters
    ----------
    sizes_of
        Attributes to (cells, queries), rising; such as ``lambda d: (2**d, d * (d + 1) // 2)``.

    Examples
    --------
    >>> pairs = lambda d: (2**d, d * (d + 1) // 2)
    >>> sharp_attributes(error=0.2, n=10_000, sizes_of=pairs, epsilon=1, beta=0.05)
    10
    """
    attributes = 0
    while True:
        cells, queries = sizes_of(attributes + 1)
        given: dict[str, Any] = {"n": n, "cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
        rows = best_rows(**given, candidates=candidates)
        if sharp(**given, rows=rows, candidates=candidates) > numbers(error=error)[0]:
            return attributes
        attributes += 1


def _strength(
    ln: Log,
    error: Fraction,
    cells: int,
    queries: int,
    rows: int,
    beta: Fraction,
    candidates: str,
    opt_method: str,
) -> Real:
    """Enclose the epsilon n that these rows need for the error."""
    spare = error - opt_of(ln, cells, queries, rows, opt_method)
    return 2 * excess(ln, cells, rows, beta, candidates) / spare


def _plenty(error: Fraction, cells: int, queries: int, opt_method: str) -> int:
    """Return rows for which OPT is at most half of the error."""
    if opt_method == "rounding":
        return max(min(cells, queries + 1) // 2, int(min(cells, queries + 1) / error) + 1)
    return ceiling(lambda ln: 2 * ln(2 * queries) / error**2)
