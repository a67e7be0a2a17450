"""What adding noise would do instead: the simple mechanisms that a small database must beat."""

from fractions import Fraction
from math import fsum, inf, nextafter

from smalldb.arguments import positive, whole
from smalldb.enclosures import Log, round_up


def laplace_answers(*, n: int, queries: int, epsilon: object) -> float:
    """
    Return the mean largest error where each of J answers gets Laplace noise of its own.

    Replacing a row changes J answers in [0, 1] by at most J in all, so each gets noise of scale
    b = J / (epsilon n), and the largest of J exponentials of scale b has the mean b (1 + 1/2 + ... + 1/J).
    No queries: 0.

    Examples
    --------
    >>> round(laplace_answers(n=1000, queries=2, epsilon=1), 9)  # 2 / 1000 x (1 + 1/2)
    0.003
    """
    n, queries = whole(n, "n"), whole(queries, "queries", least=0)
    exact = positive(epsilon, "epsilon")
    # a correctly rounded sum of terms half a unit off each; the float above covers them and the product
    harmonic = Fraction(fsum(1 / i for i in range(1, queries + 1))) * (1 + Fraction(1, 2**51))
    return _up(queries * harmonic / (exact * n))


def laplace_histogram(*, n: int, cells: int, queries: int, epsilon: object, support: object = None) -> float:
    """
    Bound the mean largest error where each cell's count gets Laplace noise, and answers are added up.

    Replacing a row changes two cells by 1, so each gets noise of scale b = 2 / (epsilon n). A sum of
    such noises with weights w in [0, 1] is sub-gamma with variance factor 2 b^2 sum w^2 and scale b, so the
    largest of J of either sign is at most sqrt(4 b^2 S ln(2 J)) + b ln(2 J) in the mean, S = max sum w^2
    (Boucheron, Lugosi and Massart 2013, Corollary 2.6). No queries: 0.

    Parameters
    ----------
    support
        S, an exact number; by default N / 2, since f or 1 - f has no more.
    """
    n, cells, queries = whole(n, "n"), whole(cells, "cells"), whole(queries, "queries", least=0)
    exact = positive(epsilon, "epsilon")
    squares = Fraction(cells, 2) if support is None else positive(support, "support")
    if not queries:
        return 0.0
    scale, ln = 2 / (exact * n), Log()
    return round_up((4 * squares * ln(2 * queries)).sqrt() * scale + scale * ln(2 * queries))


def _up(x: Fraction) -> float:
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else nextafter(nearest, inf)
