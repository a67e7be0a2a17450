"""What adding noise would do instead: the simple mechanisms that a small database must beat."""

from fractions import Fraction
from functools import cache
from itertools import accumulate

from smalldb.bounds.calculators import calculator
from smalldb.exact.enclosures import Log, Real, round_up
from smalldb.exact.numbers import Number, positive, whole

FEW = 1000  # numbers that are added up one by one
EULER = Fraction(5772156649015328607, 10**19)  # rounded up


@calculator
def laplace_answers(*, n: int, queries: int, epsilon: Number) -> float:
    """
    Return the mean largest error where each of J answers gets Laplace noise of its own.

    Equation (17) of `docs/theory.md`.

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
    ln = Log()
    # beyond a few, ln J + Euler's constant + 1 / (2 J) is above by less than 1 / (8 J^2)
    many = queries > FEW
    harmonic = ln(queries) + (EULER + Fraction(1, 2 * queries)) if many else _harmonic()[queries]
    return round_up(harmonic * (queries / (exact * n)))


@calculator
def laplace_histogram(*, n: int, cells: int, queries: int, epsilon: Number, support: object = None) -> float:
    """
    Bound the mean largest error where each cell's count gets Laplace noise, and answers are added up.

    Equation (17) of `docs/theory.md`.

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


@cache
def _harmonic() -> list[Real]:
    """Enclose 1 + 1/2 + ... + 1/J for J up to `FEW`."""
    digits = Log().digits
    parts = (Real.of(Fraction(1, i), digits) for i in range(1, FEW + 1))
    return list(accumulate(parts, initial=Real.of(0, digits)))
