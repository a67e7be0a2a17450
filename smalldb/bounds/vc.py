"""
Bounds from the VC dimension V of a class of 0/1 queries, instead of their number.

On a finite universe they are never worth it: Sauer's count with Hoeffding is smaller by far, up to
universes that nobody can enumerate.
"""

from smalldb.bounds.arguments import numbers, one_of, sizes
from smalldb.bounds.optimum import rows_for
from smalldb.bounds.search import last_where
from smalldb.exact.enclosures import Log, Real, ceiling, is_positive, root
from smalldb.exact.numbers import Number

_MOST_DIMENSION = 10_000


def sauer(*, cells: int, dimension: int) -> int:
    """
    Return the most distinct 0/1 queries of VC dimension V on N cells: sum over i <= V of C(N, i).

    Sauer (1972), and Vapnik and Chervonenkis (1971). Exact; it serves as `queries` in every other bound.

    Examples
    --------
    >>> sauer(cells=16, dimension=2)
    137
    """
    cells, dimension = sizes(cells=cells, dimension=dimension)
    return _sauer(cells, dimension)


def vc_rows(*, alpha: Number, dimension: int, method: str = "standard", cells: int | None = None) -> int:
    """
    Return how many rows make some small database err by at most alpha, for a class of VC dimension V.

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
        N, for the method "sauer" alone.

    Examples
    --------
    >>> [vc_rows(alpha=0.25, dimension=1, method=name) for name in ("encyclopaedia", "standard")]
    [228, 1171]
    >>> vc_rows(alpha=0.25, dimension=1, method="sauer", cells=1024)
    62
    """
    (dimension,) = sizes(dimension=dimension)
    (alpha,) = numbers(alpha=alpha)
    one_of(("encyclopaedia", "standard", "sauer"), method, "method")
    if (cells is None) == (method == "sauer"):
        raise ValueError("cells must be given for method 'sauer', and for no other")
    if cells is not None:
        return rows_for(alpha=alpha, queries=sauer(cells=cells, dimension=dimension), method="hoeffding")
    if method == "encyclopaedia":

        def rows(ln: Log) -> Real:
            # with m = (2 V / alpha^2) w: w - ln w = 1 + ln(2)/V + ln(2 / alpha^2), w > 1
            level = ln(2) / dimension + ln(2 / alpha**2) + 1
            return (
                root(lambda w: w - w.ln() - level, Real.of(1, ln.digits), 2 * level)
                * (2 * dimension)
                / alpha**2
            )

        return ceiling(rows)  # never whole: e to a rational power is irrational
    if dimension > _MOST_DIMENSION:
        raise ValueError(f"dimension must be at most {_MOST_DIMENSION} for method 'standard'")

    def fails(rows: int) -> bool:
        count = 4 * _sauer(2 * rows, dimension)
        return is_positive(lambda ln: ln(count) - rows * alpha**2 / 8)

    # the logarithm is concave in m, and positive at first
    return last_where(fails, None) + 1


def vc_data(*, error: Number, attributes: int, rows: int, epsilon: Number, beta: Number) -> int:
    """
    Return the encyclopaedia's n >= 4 (k m + ln(1/beta)) / (epsilon error), k = `attributes`, rounded up.

    It holds if some small database of m rows errs by at most error / 2, as with
    `vc_rows(alpha=error / 2, ...)`. It counts 2^(k m) ordered tables as e^(k m); `sharp_data` is less.

    Examples
    --------
    >>> vc_data(error=0.5, attributes=10, rows=430, epsilon=1, beta=0.05)
    34424
    """
    attributes, rows = sizes(attributes=attributes, rows=rows)
    error, epsilon, beta = numbers(error=error, epsilon=epsilon, beta=beta)
    return ceiling(lambda ln: 4 * (ln(1 / beta) + attributes * rows) / (epsilon * error))


def _sauer(cells: int, dimension: int) -> int:
    if dimension >= cells:
        return 1 << cells
    term = total = 1
    for i in range(1, dimension + 1):
        term = term * (cells - i + 1) // i
        total += term
    return total
