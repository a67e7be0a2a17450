"""
Sizes by the Vapnik-Chervonenkis dimension, as the encyclopaedia and the textbooks have them.

On a finite universe they are never needed: `rows_for` with the number of queries, or "sauer" here, is smaller
(a crossover would need ln N far above ln(1 / alpha)).
"""

from collections.abc import Callable
from fractions import Fraction
from math import comb

from smalldb.arguments import whole
from smalldb.bounds.common import numbers, sizes
from smalldb.enclosures import Log, Real, ceiling

METHODS = ("encyclopaedia", "standard", "sauer")


def vc_rows(*, dimension: int, alpha: object, method: str = "sauer", cells: int | None = None) -> int:
    """
    Return rows m with which a random small database errs by at most alpha / 2 with positive probability.

    Parameters
    ----------
    dimension : int
        V, at least 1.
    alpha : exact number in (0, 1)
    method : {"encyclopaedia", "standard", "sauer"}
        The least m (beyond all that fail) with: 2 (e m / V)^V exp(-alpha^2 m / 8) < 1, whose constants are
        those of no standard theorem; 4 S(2 m, V) exp(-m alpha^2 / 32) < 1, S(m, V) = sum of C(m, i) over
        i <= V (Vapnik 1998; Devroye, Gyorfi and Lugosi 1996); or ceil(ln(2 S(N, V)) / (2 (alpha / 2)^2)),
        Hoeffding with Sauer's count of the functions on N cells.
    cells : int
        N, for "sauer".

    Examples
    --------
    >>> [vc_rows(dimension=1, alpha="1/2", method=name, cells=1024) for name in METHODS]
    [228, 1171, 62]
    """
    v = whole(dimension, "dimension")
    (alpha,) = numbers(alpha=alpha)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {method!r}")
    if method == "sauer":
        if cells is None:
            raise ValueError("cells are needed for method 'sauer'")
        (cells,) = sizes(cells=cells)
        return ceiling(lambda ln: 2 * ln(2 * sauer(cells, v)) / alpha**2)
    if method == "encyclopaedia":

        def excess(ln: Log, m: int) -> Real:  # falls from m = 8 V / alpha^2 on
            return ln(2) + v * (1 + ln(Fraction(m, v))) - alpha**2 * m / 8

        return _first(excess, int(8 * v / alpha**2) + 1)

    def standard(ln: Log, m: int) -> Real:
        return ln(4 * sauer(2 * m, v)) - alpha**2 * m / 32

    return _first(standard, 1)


def sauer(points: int, dimension: int) -> int:
    """
    Return the most 0/1 functions of VC dimension V on so many points: sum of C(points, i) over i <= V.

    Sauer (1972), Shelah, Vapnik and Chervonenkis.
    """
    return sum(comb(points, i) for i in range(min(points, dimension) + 1))


def encyclopaedia_data(*, attributes: int, rows: int, error: object, epsilon: object, beta: object) -> int:
    """
    Return the encyclopaedia's n: 4 (k m + ln(1 / beta)) / (epsilon error), k attributes, rounded up.

    Correct and loose: k m ln 2 would do for k m (the natural logarithm of the number of candidates).
    """
    attributes, rows = sizes(attributes=attributes, rows=rows)
    error, epsilon, beta = numbers(error=error, epsilon=epsilon, beta=beta)
    return ceiling(lambda ln: 4 * (attributes * rows + ln(1 / beta)) / (epsilon * error))


def _first(excess: Callable[[Log, int], Real], start: int) -> int:
    """Return the least m >= start whose excess is below 0; it comes to be so once, and stays so."""

    def holds(m: int) -> bool:
        digits = 50
        while True:
            found = excess(Log(digits), m)
            if found.high < 0 or found.low >= 0:
                return found.high < 0
            digits *= 2

    low, high = start - 1, start
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
