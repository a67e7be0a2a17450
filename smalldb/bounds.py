"""
What the theorems promise, from public numbers alone.

N = `cells` points, J = `queries` distinct queries, m = `rows` of the small database, |R| small
databases, error max_f |f(x) - f(y)|; all logarithms are natural, and queries take values in [0, 1].
Numbers are enclosed by decimal arithmetic that rounds outwards. A bound is the least float that is not
below the upper end at 50 digits, so never below the true number; a number of rows or of data gets more
digits until the enclosure decides its ceiling. Bounds above 1 say nothing and are returned as they are.
An argument out of range is a ValueError, one of a wrong type (bool included) a TypeError.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from smalldb.arguments import between_0_and_1, positive, whole
from smalldb.enclosures import Log, Real, ceiling, ln_choose, round_up

_MOST_BINOMIAL = 100_000


def theorem_4_5(*, n: int, cells: int, queries: int, epsilon: object, beta: object) -> float:
    """
    Return the error of (4.2), as printed: ((16 ln N ln J + 4 ln(1/beta)) / (epsilon n))^(1/3).

    It speaks of a release of `theorem_4_5_rows` rows. For one query it is false, since ln J = 0 promises
    a small database of no rows. No queries: 0.

    Examples
    --------
    >>> round(theorem_4_5(n=1000, cells=16, queries=10, epsilon=1, beta=0.05), 6)
    0.485063
    """
    n, cells, queries = _sizes(n=n, cells=cells, queries=queries)
    epsilon, beta = _numbers(epsilon=epsilon, beta=beta)
    return round_up(_equation_4_2(Log(), n, cells, queries, epsilon, beta)) if queries else 0.0


def theorem_4_5_rows(*, n: int, cells: int, queries: int, epsilon: object, beta: object) -> int:
    """Return the rows of Theorem 4.5: ceil(ln J / (a/2)^2), at least 1, for the error a of (4.2)."""
    n, cells, queries = _sizes(n=n, cells=cells, queries=queries)
    epsilon, beta = _numbers(epsilon=epsilon, beta=beta)
    if queries <= 1:
        return 1

    def rows(ln: Log) -> Real:
        error = _equation_4_2(ln, n, cells, queries, epsilon, beta)
        return 4 * ln(queries) / (error * error)

    return ceiling(rows)


def theorem_4_5_data(*, error: object, cells: int, queries: int, epsilon: object, beta: object) -> int:
    """Return the least n of (4.3): (16 ln N ln J + 4 ln(1/beta)) / (epsilon error^3), rounded up."""
    cells, queries = _sizes(cells=cells, queries=queries)
    error, epsilon, beta = _numbers(error=error, epsilon=epsilon, beta=beta)
    if not queries:
        return 1
    return ceiling(lambda ln: _numerator_4_2(ln, cells, queries, beta) / (epsilon * error**3))


def proposition_4_4(
    *, alpha: object, n: int, cells: int, queries: int, epsilon: object, beta: object
) -> float:
    """
    Return Proposition 4.4 as printed: alpha + 2 (ln N ln J / alpha^2 + ln(1/beta)) / (epsilon n).

    The proof takes m = ln J / alpha^2 for a number of rows, which it is not; for one query the statement
    is false. `proposition_4_4_rows` is the form that holds. No queries: 0.

    Examples
    --------
    >>> round(proposition_4_4(alpha=0.25, n=1000, cells=16, queries=10, epsilon=1, beta=0.05), 6)
    0.460283
    """
    n, cells, queries = _sizes(n=n, cells=cells, queries=queries)
    alpha, epsilon, beta = _numbers(alpha=alpha, epsilon=epsilon, beta=beta)
    if not queries:
        return 0.0
    ln = Log()
    excess = ln(cells) * ln(queries) / alpha**2 + ln(1 / beta)
    return round_up(2 * excess / (epsilon * n) + alpha)


def proposition_4_4_rows(
    *,
    rows: int,
    n: int,
    cells: int,
    queries: int,
    epsilon: object,
    beta: object,
    candidates: str = "multisets",
) -> float:
    """
    Return Proposition 4.4 for whole rows: alpha + 2 (ln |R| + ln(1/beta)) / (epsilon n).

    Here alpha = sqrt(ln max(2, J) / m). It holds for every J: 2 J exp(-2 m t^2) < 1 for all
    t > sqrt(ln(2 J) / (2 m)), so some small database errs by no more than that, and
    2 J <= max(2, J)^2 makes it at most alpha. `sharp` is never larger. No queries: 0.
    """
    n, cells, queries, rows = _sizes(n=n, cells=cells, queries=queries, rows=rows)
    epsilon, beta = _numbers(epsilon=epsilon, beta=beta)
    _known(candidates)
    if not queries:
        return 0.0
    ln = Log()
    alpha = (ln(max(2, queries)) / rows).sqrt()
    return round_up(alpha + 2 * _ln_count(ln, cells, rows, candidates, times=1 / beta) / (epsilon * n))


def rows_for(*, alpha: object, queries: int, method: str = "lecture") -> int:
    """
    Return how many rows make some small database err by at most alpha on any table.

    Parameters
    ----------
    alpha : exact number in (0, 1)
    queries : int
    method : {"lecture", "hoeffding", "binomial"}
        ceil(ln max(2, J) / alpha^2); ceil(ln(2 J) / (2 alpha^2)); or, for 0/1 queries only, the least m
        with J max_k [P(X <= k) + P(X > k + floor(2 m alpha))] < 1, X ~ Bin(m, k/m + alpha). The
        probabilities are floats: a sum within 1e-9 (relative) of 1 counts as 1.

    Raises
    ------
    ValueError
        A bad argument, or "binomial" where "hoeffding" gives more than 100,000 rows.

    Examples
    --------
    >>> [rows_for(alpha=0.1, queries=10, method=name) for name in ("lecture", "hoeffding", "binomial")]
    [231, 150, 70]
    """
    (queries,) = _sizes(queries=queries)
    (alpha,) = _numbers(alpha=alpha)
    if method == "lecture":
        return ceiling(lambda ln: ln(max(2, queries)) / alpha**2)
    if method not in ("hoeffding", "binomial"):
        raise ValueError(f"method must be 'lecture', 'hoeffding' or 'binomial', not {method!r}")
    hoeffding = ceiling(lambda ln: ln(2 * queries) / (2 * alpha**2)) if queries else 1
    if method == "hoeffding":
        return hoeffding
    if hoeffding > _MOST_BINOMIAL:
        raise ValueError(
            f"alpha must be larger for method 'binomial' (at most {_MOST_BINOMIAL} rows); use 'hoeffding'"
        )
    allowed = (1 - 1e-9) * float(Fraction(1, max(1, queries)))
    # one k near p = 1/2 rules out almost all m at once
    rows = np.arange(1, hoeffding)
    middle = (rows * max(0.0, 0.5 - float(alpha))).astype(np.int64)
    for m in rows[_binomial_tails(rows, middle, alpha) < allowed].tolist():
        every = np.arange(m * (1 - alpha) // 1 + 1)
        if _binomial_tails(np.full_like(every, m), every, alpha).max() < allowed:
            return int(m)
    return hoeffding


def opt(*, cells: int, queries: int, rows: int) -> float:
    """
    Bound the error of the best small database of `rows` rows, for any table.

    The lesser of sqrt(ln(2 J) / (2 m)) (Hoeffding: draw the rows) and s (K - s) / (K m) with
    K = min(N, J + 1), s = min(m, floor(K / 2)) (Caratheodory: K points suffice; round their weights).

    Examples
    --------
    >>> opt(cells=2, queries=1, rows=5)
    0.1
    """
    cells, queries, rows = _sizes(cells=cells, queries=queries, rows=rows)
    return 0.0 if cells == 1 or not queries else round_up(_opt(Log(), cells, queries, rows))


def sharp(
    *,
    n: int,
    cells: int,
    queries: int,
    rows: int,
    epsilon: object,
    beta: object,
    candidates: str = "multisets",
) -> float:
    """
    Return an error that is exceeded with probability at most beta.

    OPT + max(0, ln(|R| - 1) + ln((1 - beta) / beta)) / (epsilon n / 2), with OPT from `opt`. At most
    |R| - 1 small databases err by more than OPT + t and weigh at most exp(-epsilon n t / 2) of the best
    one each, so the odds of a larger error are at most (|R| - 1) exp(-epsilon n t / 2).

    Parameters
    ----------
    candidates : {"multisets", "tuples"}
        |R| is C(N + m - 1, m), or N^m for ordered rows; the first is false for the second.

    Examples
    --------
    >>> round(sharp(n=1000, cells=16, queries=10, rows=98, epsilon=1, beta=0.05), 6)
    0.117798
    """
    n, cells, queries, rows = _sizes(n=n, cells=cells, queries=queries, rows=rows)
    epsilon, beta = _numbers(epsilon=epsilon, beta=beta)
    _known(candidates)
    if cells == 1 or not queries:
        return 0.0
    ln = Log()
    excess = _excess(ln, cells, rows, beta, candidates)
    return round_up(_opt(ln, cells, queries, rows) + 2 * excess / (epsilon * n))


def expected(
    *, n: int, cells: int, queries: int, rows: int, epsilon: object, candidates: str = "multisets"
) -> float:
    """
    Bound the mean error: OPT + ln |R| / (epsilon n / 2).

    By Gibbs: the mean of -L err plus the entropy of the draw is ln Z >= -L OPT, L = epsilon n / 2.
    """
    n, cells, queries, rows = _sizes(n=n, cells=cells, queries=queries, rows=rows)
    (epsilon,) = _numbers(epsilon=epsilon)
    _known(candidates)
    if cells == 1 or not queries:
        return 0.0
    ln = Log()
    return round_up(
        _opt(ln, cells, queries, rows) + 2 * _ln_count(ln, cells, rows, candidates) / (epsilon * n)
    )


def best_rows(
    *,
    n: int,
    cells: int,
    queries: int,
    epsilon: object,
    beta: object,
    candidates: str = "multisets",
    max_rows: int | None = None,
) -> int:
    """
    Return the rows, up to `max_rows`, with the least `sharp` bound; ties go to fewer rows.

    With Hoeffding's OPT it has one valley in m, because m^(-1/2) flattens faster than ln |R| does; so has
    the bound with the rounding OPT from m = floor(K / 2) on, where that is C / m. Before it, that one is
    concave, so least at an end. Cost: O(log m) evaluations, compared at 50 digits.

    Examples
    --------
    >>> best_rows(n=1000, cells=16, queries=10, epsilon=1, beta=0.05)
    98
    """
    n, cells, queries = _sizes(n=n, cells=cells, queries=queries)
    epsilon, beta = _numbers(epsilon=epsilon, beta=beta)
    _known(candidates)
    last = None if max_rows is None else _sizes(max_rows=max_rows)[0]
    if cells == 1 or not queries:
        return 1
    ln = Log()

    def price(rows: int) -> Real:
        return 2 * _excess(ln, cells, rows, beta, candidates) / (epsilon * n)

    # up to some rows the second part is 0 (for beta near 1), and the bound falls as OPT does
    free = _last(lambda m: price(m).high <= 0, last)
    if free == last:
        return free
    first, half = free + 1, min(cells, queries + 1) // 2
    bend = max(first, half if last is None else min(half, last))
    found = {
        max(1, free),
        first,
        _valley(lambda m: (_hoeffding(ln, queries, m) + price(m)).high, first, last),
        _valley(lambda m: (price(m) + _rounding(cells, queries, m)).high, bend, last),
    }
    return min(sorted(found), key=lambda m: (_opt(ln, cells, queries, m) + price(m)).high)


def sharp_data(
    *, error: object, cells: int, queries: int, epsilon: object, beta: object, candidates: str = "multisets"
) -> int:
    """
    Return the least n for which some number of rows has a `sharp` bound of at most `error`.

    Examples
    --------
    >>> sharp_data(error=0.1, cells=16, queries=11, epsilon=1, beta=0.05)
    1273
    """
    cells, queries = _sizes(cells=cells, queries=queries)
    error, epsilon, beta = _numbers(error=error, epsilon=epsilon, beta=beta)
    _known(candidates)
    if cells == 1 or not queries:
        return 1

    def data(rows: int) -> int:
        if _excess(Log(), cells, rows, beta, candidates).high == 0:
            return 1

        def least(ln: Log) -> Real:
            spare = (error - _opt(ln, cells, queries, rows)) * epsilon
            return 2 * _excess(ln, cells, rows, beta, candidates) / spare

        return ceiling(least)

    # half the error for OPT will do; fewer data are then asked for until no rows serve
    n = data(ceiling(lambda ln: 2 * ln(2 * queries) / error**2))
    while n > 1:
        sizes = {"cells": cells, "queries": queries, "n": n - 1}
        rows = best_rows(**sizes, epsilon=epsilon, beta=beta, candidates=candidates)
        if sharp(**sizes, rows=rows, epsilon=epsilon, beta=beta, candidates=candidates) > error:
            break
        n = data(rows)
    return n


def _numerator_4_2(ln: Log, cells: int, queries: int, beta: Fraction) -> Real:
    return 16 * ln(cells) * ln(queries) + 4 * ln(1 / beta)


def _equation_4_2(ln: Log, n: int, cells: int, queries: int, epsilon: Fraction, beta: Fraction) -> Real:
    return (_numerator_4_2(ln, cells, queries, beta) / (epsilon * n)).cbrt()


def _hoeffding(ln: Log, queries: int, rows: int) -> Real:
    return (ln(2 * queries) / (2 * rows)).sqrt()


def _rounding(cells: int, queries: int, rows: int) -> Fraction:
    support = min(cells, queries + 1)
    raised = min(rows, support // 2)
    return Fraction(raised * (support - raised), support * rows)


def _opt(ln: Log, cells: int, queries: int, rows: int) -> Real:
    return _hoeffding(ln, queries, rows).pick(min, _rounding(cells, queries, rows))


def _excess(ln: Log, cells: int, rows: int, beta: Fraction, candidates: str) -> Real:
    """Enclose max(0, ln((|R| - 1) (1 - beta) / beta))."""
    return _ln_count(ln, cells, rows, candidates, less=1, times=(1 - beta) / beta).pick(max, 0)


def _ln_count(
    ln: Log, cells: int, rows: int, candidates: str, less: int = 0, times: Fraction = Fraction(1)
) -> Real:
    """Enclose ln((|R| - less) times), for `less` 0 or 1; one logarithm if |R| is small: nothing cancels."""
    tuples = candidates == "tuples"
    if tuples and rows * cells.bit_length() <= 8 * ln.digits:
        return ln((cells**rows - less) * times)
    if not tuples and min(rows, cells - 1) <= 2 * ln.digits and cells <= 10 ** (2 * ln.digits):
        return ln((comb(cells + rows - 1, rows) - less) * times)
    whole = rows * ln(cells) if tuples else ln_choose(rows, cells - 1, ln.digits)
    # here |R| > 2 * 10^digits, so ln|R| - ln(|R| - 1) < 10^-digits
    return whole - less * Real(Decimal(0), Decimal(f"1e-{ln.digits}"), ln.digits) + ln(times)


def _binomial_tails(rows: NDArray[np.int64], k: NDArray[np.int64], alpha: Fraction) -> NDArray[np.float64]:
    """P(X <= k) + P(X > k + floor(2 m alpha)), X ~ Bin(m, k/m + alpha), elementwise over (m, k)."""
    from scipy.special import betainc, betaincc  # a quarter of a second that nothing else here needs

    above = k + np.array([2 * m * alpha // 1 for m in rows.tolist()], dtype=np.int64)
    p = np.minimum(k / rows + float(alpha), 1.0)
    upper = np.where(above < rows, betainc(above + 1, np.maximum(rows - above, 1), p), 0.0)
    return np.asarray(betaincc(k + 1, rows - k, p) + upper)


def _last(holds: Callable[[int], bool], last: int | None) -> int:
    """Return the last m of 1..last that `holds`, which those before do too; 0 if none does."""
    below, above = 0, 1
    while (last is None or above <= last) and holds(above):
        below, above = above, 2 * above
    above = above if last is None else min(above, last + 1)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if holds(middle) else (below, middle)
    return below


def _valley(height: Callable[[int], Decimal], first: int, last: int | None) -> int:
    """Return the least m in first..last at the bottom of `height`, which falls and then rises."""
    low, step = first, 1
    while (last is None or low + step <= last) and height(low + step) < height(low + step - 1):
        low, step = low + step, 8 * step
    high = low + step if last is None else min(low + step, last)
    while low < high:  # bisect_left would end at 2^63
        middle = (low + high) // 2
        low, high = (middle + 1, high) if height(middle + 1) < height(middle) else (low, middle)
    return low


def _sizes(**sizes: object) -> list[int]:
    return [whole(value, name, least=0 if name == "queries" else 1) for name, value in sizes.items()]


def _numbers(**numbers: object) -> list[Fraction]:
    return [
        (positive if name == "epsilon" else between_0_and_1)(value, name) for name, value in numbers.items()
    ]


def _known(candidates: str) -> None:
    if candidates not in ("multisets", "tuples"):
        raise ValueError(f"candidates must be 'multisets' or 'tuples', not {candidates!r}")
