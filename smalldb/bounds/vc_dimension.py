"""
Bounds from the VC dimension V of a class of 0/1 queries, instead of their number.

On a finite universe they are never worth it: Sauer's count with Hoeffding is smaller by far, up to
universes that nobody can enumerate.
"""

from fractions import Fraction

from smalldb.bounds.calculators import Exact, calculator, last_where, one_of
from smalldb.bounds.lecture import at_alpha_4_4, error_4_2
from smalldb.bounds.optimum import ln_count, rows_for
from smalldb.exact.enclosures import Log, Real, ceiling, is_positive, root, round_up

_MOST_DIMENSION = 10_000
_MOST_ATTRIBUTES = 100_000


@calculator
def sauer(*, cells: int, dimension: int) -> int:
    """
    Return the most distinct 0/1 queries of VC dimension V on N cells: sum over i <= V of C(N, i).

    Equation (15) of `docs/theory.md`. Sauer (1972), and Vapnik and Chervonenkis (1971). Exact; it serves as
    `queries` in every other bound.

    Examples
    --------
    >>> sauer(cells=16, dimension=2)
    137
    """
    return _sauer(cells, dimension)


@calculator
def vc_rows(*, alpha: Exact, dimension: int, method: str = "standard", cells: int | None = None) -> int:
    """
    Return how many rows make some small database err by at most alpha, for a class of VC dimension V.

    Equation (15) of `docs/theory.md`.

    Parameters
    ----------
    alpha : exact number in (0, 1)
        The deviation. The encyclopaedia writes alpha / 2 for it.
    dimension : int
        V, at least 1 (up to 10,000 for "standard").
    method : {"encyclopaedia", "standard", "sauer"}
        "encyclopaedia": the least m >= V with 2 (e m / V)^V exp(-alpha^2 m / 2) < 1, the inequality of the
        encyclopaedia's article on the exponential mechanism, which is no theorem with these constants:
        m = floor(-(2 V / alpha^2) W(-alpha^2 / (2 e 2^(1/V)))) + 1 with the lower branch of Lambert's W.
        "standard": the least m with 4 S(2 m, V) exp(-alpha^2 m / 8) < 1, S as in `sauer` (Vapnik and
        Chervonenkis 1971; Anthony and Bartlett 1999, theorem 4.3). "sauer": Hoeffding's rows for S(N, V).
    cells : int, optional
        N, which the method "sauer" needs and no other looks at.

    Examples
    --------
    >>> [vc_rows(alpha=0.25, dimension=1, method=name) for name in ("encyclopaedia", "standard")]
    [228, 1171]
    >>> vc_rows(alpha=0.25, dimension=1, method="sauer", cells=1024)
    62
    """
    one_of(("encyclopaedia", "standard", "sauer"), method, "method")
    if method == "sauer":
        if cells is None:
            raise ValueError("cells must be given for method 'sauer'")
        return rows_for(alpha=alpha, queries=sauer(cells=cells, dimension=dimension), method="hoeffding")
    if method == "encyclopaedia":

        def rows(ln: Log) -> Real:
            # with m = (2 V / alpha^2) w: w - ln w = 1 + ln(2)/V + ln(2 / alpha^2), w > 1
            level = ln(2) / dimension + ln(2 / alpha**2) + 1
            w = root(lambda w: w - w.ln() - level, Real.of(1, ln.digits), 2 * level)
            return w * (2 * dimension) / Fraction(alpha) ** 2

        return ceiling(rows)  # never whole: e to a rational power is irrational
    if dimension > _MOST_DIMENSION:
        raise ValueError(f"dimension must be at most {_MOST_DIMENSION} for method 'standard'")

    def fails(rows: int) -> bool:
        count = 4 * _sauer(2 * rows, dimension)
        return is_positive(lambda ln: ln(count) - rows * alpha**2 / 8)

    # the logarithm is concave in m, and positive at first
    return last_where(fails, None) + 1


@calculator
def vc_data(
    *, error: Exact, attributes: int, rows: int, epsilon: Exact, beta: Exact, counted: str = "printed"
) -> int:
    """
    Return the encyclopaedia's n >= 4 (c + ln(1/beta)) / (epsilon error), rounded up.

    Equation (13) of `docs/theory.md`. It holds if some small database of m rows errs by at most error / 2, as
    with `vc_rows(alpha=error / 2, ...)`; c is at least the logarithm of how many small databases there are.
    `sharp_data` is less.

    Parameters
    ----------
    attributes : int
        k, yes/no attributes of a row: N = 2^k.
    rows : int
        m, rows of the small database.
    counted : {"printed", "tuples", "multisets"}
        c = k m, as printed, which counts 2^(k m) tables as e^(k m); k m ln 2; or ln C(2^k + m - 1, m).

    Examples
    --------
    >>> sizes = {"error": 0.5, "attributes": 10, "rows": 430, "epsilon": 1, "beta": 0.05}
    >>> [vc_data(**sizes, counted=name) for name in ("printed", "tuples", "multisets")]
    [34424, 23869, 7054]
    """
    one_of(("printed", "tuples", "multisets"), counted, "counted")
    if attributes > _MOST_ATTRIBUTES:
        raise ValueError(f"attributes must be at most {_MOST_ATTRIBUTES}")

    def count(ln: Log) -> Real:
        if counted == "printed":
            return Real.of(attributes * rows, ln.digits)
        return ln_count(ln, 1 << attributes, rows, counted)

    return ceiling(lambda ln: 4 * (ln(1 / beta) + count(ln)) / (epsilon * error))


@calculator
def vc_proposition_4_4(
    *,
    n: int,
    cells: int,
    dimension: int,
    epsilon: Exact,
    beta: Exact,
    alpha: Exact | None = None,
    form: str = "sauer",
) -> float:
    """
    Return Proposition 4.4 with the VC dimension in place of the number of queries.

    Equation (14) of `docs/theory.md`.

    Parameters
    ----------
    alpha : exact number in (0, 1), optional
        By default the best one.
    form : {"sauer", "printed"}
        "sauer": ln J is replaced by ln S(N, V), Sauer's bound on it (`sauer`), which is what
        `proposition_4_4` says of so many queries. "printed": by V itself, as the lecture's note has it: up
        to constants and logarithms, so no theorem.

    Examples
    --------
    >>> sizes = {"n": 10**5, "cells": 256, "dimension": 1, "epsilon": 1, "beta": 0.05}
    >>> [round(vc_proposition_4_4(**sizes, form=name), 4) for name in ("sauer", "printed")]
    [0.1608, 0.0909]
    """
    ln = Log()
    return round_up(at_alpha_4_4(ln, n, cells, _ln_class(ln, cells, dimension, form), epsilon, beta, alpha))


@calculator
def vc_theorem_4_5(
    *, n: int, cells: int, dimension: int, epsilon: Exact, beta: Exact, form: str = "sauer"
) -> float:
    """
    Return the error of (4.2) with the VC dimension in place of the number of queries.

    Equation (14) of `docs/theory.md`.

    Parameters
    ----------
    form : {"sauer", "printed"}
        As for `vc_proposition_4_4`; "printed" is no theorem.

    Examples
    --------
    >>> sizes = {"n": 10**5, "cells": 256, "dimension": 1, "epsilon": 1, "beta": 0.05}
    >>> [round(vc_theorem_4_5(**sizes, form=name), 4) for name in ("sauer", "printed")]
    [0.1715, 0.1002]
    """
    ln = Log()
    return round_up(error_4_2(ln, n, cells, _ln_class(ln, cells, dimension, form), epsilon, beta))


def _ln_class(ln: Log, cells: int, dimension: int, form: str) -> Real:
    """Enclose what stands for ln J."""
    one_of(("sauer", "printed"), form, "form")
    return ln(_sauer(cells, dimension)) if form == "sauer" else Real.of(dimension, ln.digits)


def _sauer(cells: int, dimension: int) -> int:
    if dimension >= cells:
        return 1 << cells
    term = total = 1
    for i in range(1, dimension + 1):
        term = term * (cells - i + 1) // i
        total += term
    return total
