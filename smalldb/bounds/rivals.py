"""
What other purely private mechanisms promise for the same queries: multiplicative weights, and plain noise.

Each is exceeded with probability at most beta, whatever the table, and is worked out here for any beta; the
papers state them for one, or up to constants. Neighbours replace a row, so counts change by at most 1.

Multiplicative weights keep a distribution a over the cells, and the distance D = sum of b ln(b / a) from that
of the data, b; at the start D <= ln N. A query q measured as m moves a(x) by exp(q(x) (m - q(a)) / 2), and D
falls by at least (g^2 - v^2) / 4, where g = q(b) - q(a) and v = m - q(b), since e^z <= 1 + z + z^2, |z| <= 1.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import log, sqrt
from typing import Any

from smalldb.bounds.calculators import Exact, calculator, valley
from smalldb.exact.enclosures import Log, Real, round_up

MOST_ROUNDS = 10**6
LARGE = Fraction(10**300)

FEW = 1000  # numbers that are added up one by one
EULER = Fraction(5772156649015328607, 10**19)  # rounded up


@calculator
def mwem(
    *, n: int, cells: int, queries: int, epsilon: Exact, beta: Exact, rounds: int | None = None
) -> float:
    """
    Return the error of MWEM (Hardt, Ligett and McSherry 2012), exceeded with probability at most beta.

    Equation (31) of `docs/theory.md`. Each of T rounds selects a query by the exponential mechanism and
    measures it with Laplace noise, at epsilon / (2 T) each. With probability 1 - beta all selected queries
    are within s = (4 T / epsilon) ln(2 T J / beta) / n of the worst one, and all noise is below v = (2 T /
    epsilon) ln(2 T / beta) / n, so the mean of the T distributions errs by at most sqrt(4 ln N / T + v^2) +
    s. Their theorem 2.2 is 2 sqrt(ln N / T) + 10 T ln J / (epsilon n), with probability 1 - 2 T / J.

    Parameters
    ----------
    rounds
        T; by default that at the bottom of the valley, up to 10^6.

    Examples
    --------
    >>> round(mwem(n=10**5, cells=1024, queries=1000, epsilon=1, beta="0.05"), 4)
    0.4971
    """

    def error(rounds: int, price: Any, ln: Any, root: Any) -> Any:
        selected = 2 * price * ln(2 * rounds * queries / beta)
        return root(_squared(ln, cells, rounds, price * ln(2 * rounds / beta))) + selected

    return _best(error, 2 / (epsilon * n), cells, queries, rounds)


@calculator
def private_multiplicative_weights(
    *, n: int, cells: int, queries: int, epsilon: Exact, beta: Exact, rounds: int | None = None
) -> float:
    """
    Return the error of private multiplicative weights (Hardt and Rothblum 2010); queries come one by one.

    Equation (32) of `docs/theory.md`. Sparse vectors find the queries on which the present distribution errs
    by more than a threshold, up to T of them, and measure each with Laplace noise (Dwork and Roth 2014,
    algorithm 12), both at epsilon / (2 T). With probability 1 - beta the noise of all thresholds (scale 4 T /
    epsilon) and of all comparisons (twice that) is below w n, that of the measurements below v n. A measured
    query errs by more than sqrt(4 ln N / T + v^2), so T of them end it; all others err by at most that and 2
    w.

    Parameters
    ----------
    rounds
        T; by default that at the bottom of the valley, up to 10^6.
    """

    def error(rounds: int, price: Any, ln: Any, root: Any) -> Any:
        compared = 2 * price * ln(3 * rounds / beta) + 4 * price * ln(3 * (queries + rounds) / beta)
        return root(_squared(ln, cells, rounds, price * ln(3 * rounds / beta))) + 2 * compared

    return _best(error, 2 / (epsilon * n), cells, queries, rounds)


@calculator
def laplace_answers_tail(*, n: int, queries: int, epsilon: Exact, beta: Exact) -> float:
    """
    Return the error that Laplace noise on each of J answers exceeds with probability beta, exactly.

    Equation (33) of `docs/theory.md`. -b ln(1 - (1 - beta)^(1/J)), b = J / (epsilon n): the largest of J
    exponentials. No queries: 0. Where the digits end, (1 - beta)^(1/J) is at most 1 - beta / J, so that b
    ln(J / beta) serves.

    Examples
    --------
    >>> round(laplace_answers_tail(n=1000, queries=1, epsilon=1, beta="0.05"), 6)  # ln(20) / 1000
    0.002996
    """
    if not queries:
        return 0.0
    ln, scale = Log(), queries / (epsilon * n)
    passed = 1 - (ln(1 - beta) / queries).exp()
    least = passed if passed.low > 0 else Real.of(beta / queries, ln.digits)
    return round_up(-1 * least.ln() * scale)


@calculator
def laplace_histogram_tail(
    *, n: int, cells: int, queries: int, epsilon: Exact, beta: Exact, support: Exact | None = None
) -> float:
    """
    Bound the error where each cell's count gets Laplace noise, exceeded with probability at most beta.

    Equation (33) of `docs/theory.md`. sqrt(4 b^2 S t) + b t, b = 2 / (epsilon n), t = ln(2 J / beta), S as in
    `laplace_histogram`: each sum of noises is sub-gamma, of which that is the tail exp(-t) (Boucheron, Lugosi
    and Massart 2013, section 2.4).

    Parameters
    ----------
    support
        S, an exact number; by default N / 2, as for `laplace_histogram`.
    """
    squares = Fraction(cells, 2) if support is None else support
    if not queries:
        return 0.0
    scale, tail = 2 / (epsilon * n), Log()(2 * queries / beta)
    return round_up((4 * squares * tail).sqrt() * scale + scale * tail)


def _squared(ln: Any, cells: int, rounds: int, noise: Any) -> Any:
    """Return 4 ln N / T + v^2: T times a larger error, squared, would bring the distance below 0."""
    # The distance (relative entropy) from the data begins at ln N or less. A round of error a takes at
    # least (a^2 - v^2) / 4 off it. After T rounds with a^2 = 4 ln N / T + v^2 nothing would be left.
    return 4 * ln(Fraction(cells)) / rounds + noise * noise


def _best(
    error: Callable[[int, Any, Any, Any], Any], unit: Fraction, cells: int, queries: int, rounds: int | None
) -> float:
    """Round the error up; by default at its best rounds, which floats find."""
    # `error` takes T, T units, a logarithm and a root
    if cells == 1 or not queries:
        return 0.0
    if rounds is None:
        about = float(min(unit, LARGE))
        rounds = valley(lambda rounds: error(rounds, rounds * about, _ln, sqrt), 1, MOST_ROUNDS)
    return round_up(error(rounds, rounds * unit, Log(), Real.sqrt))


def _ln(x: Fraction) -> float:
    """Return about ln x of a number of any size."""
    return log(x.numerator) - log(x.denominator)


# What adding noise would do instead: the simple mechanisms that a small database must beat.


@calculator
def laplace_answers(*, n: int, queries: int, epsilon: Exact) -> float:
    """
    Return the mean largest error where each of J answers gets Laplace noise of its own.

    Equation (17) of `docs/theory.md`. Replacing a row changes J answers in [0, 1] by at most J in all, so
    each gets noise of scale b = J / (epsilon n), and the largest of J exponentials of scale b has the mean b
    (1 + 1/2 + ... + 1/J). No queries: 0.

    Examples
    --------
    >>> round(laplace_answers(n=1000, queries=2, epsilon=1), 9)  # 2 / 1000 x (1 + 1/2)
    0.003
    """
    ln = Log()
    # beyond a few, ln J + Euler's constant + 1 / (2 J) is above by less than 1 / (8 J^2)
    many = queries > FEW
    harmonic = ln(queries) + (EULER + Fraction(1, 2 * queries)) if many else _harmonic()[queries]
    return round_up(harmonic * (queries / (epsilon * n)))


@calculator
def laplace_histogram(
    *, n: int, cells: int, queries: int, epsilon: Exact, support: Exact | None = None
) -> float:
    """
    Bound the mean largest error where each cell's count gets Laplace noise, and answers are added up.

    Equation (17) of `docs/theory.md`. Replacing a row changes two cells by 1, so each gets noise of scale b =
    2 / (epsilon n). A sum of such noises with weights w in [0, 1] is sub-gamma with variance factor 2 b^2 sum
    w^2 and scale b, so the largest of J of either sign is at most sqrt(4 b^2 S ln(2 J)) + b ln(2 J) in the
    mean, S = max sum w^2 (Boucheron, Lugosi and Massart 2013, Corollary 2.6). No queries: 0.

    Parameters
    ----------
    support
        S, an exact number; by default N / 2, since f or 1 - f has no more.
    """
    squares = Fraction(cells, 2) if support is None else support
    if not queries:
        return 0.0
    scale, ln = 2 / (epsilon * n), Log()
    return round_up((4 * squares * ln(2 * queries)).sqrt() * scale + scale * ln(2 * queries))


@cache
def _harmonic() -> list[Real]:
    """Enclose 1 + 1/2 + ... + 1/J for J up to `FEW`."""
    digits = Log().digits
    parts = (Real.of(Fraction(1, i), digits) for i in range(1, FEW + 1))
    return list(accumulate(parts, initial=Real.of(0, digits)))
