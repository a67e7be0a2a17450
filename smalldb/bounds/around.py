"""The neighbourhood refinement of the sharp bound: small databases near the best one are nearly as good."""

from fractions import Fraction
from math import comb

from smalldb.bounds.common import excess, ln_count, numbers, sizes
from smalldb.bounds.sampling import opt_of
from smalldb.enclosures import Log, Real, round_up

MOST_SWAPS = 2_000


def neighbourhood(*, n: int, cells: int, queries: int, rows: int, epsilon: object, beta: object) -> float:
    """
    Return an error that is exceeded with probability at most beta; never above `sharp`, for multisets only.

    Within k swaps of the best small database lie at least C(N + k - 1, k) others, and a swap costs at most
    1 / m. So the good ones weigh at least exp(-L OPT) G_K, G_K = sum over k <= K of C(N + k - 2, k)
    exp(-L k / m), for an error of at least OPT + K / m, and the bad ones at most |R| exp(-L error).
    It matters where L / m = epsilon n / (2 m) is small.

    Examples
    --------
    >>> round(neighbourhood(n=50, cells=4, queries=4, rows=22, epsilon=1, beta=0.05), 6)
    0.426446
    """
    n, cells, queries, rows = sizes(n=n, cells=cells, queries=queries, rows=rows)
    epsilon, beta = numbers(epsilon=epsilon, beta=beta)
    if cells == 1 or not queries:
        return 0.0
    ln, strength = Log(), epsilon * n / 2
    opt = opt_of(ln, cells, queries, rows, "least")
    top = ln_count(ln, cells, rows, "multisets", times=(1 - beta) / beta)
    good, least = Real.of(0, ln.digits), opt + excess(ln, cells, rows, beta, "multisets") / strength
    for swaps in range(min(rows, MOST_SWAPS) + 1):
        near = comb(cells + swaps - 2, swaps)
        good = good + near * Real.of(-strength * Fraction(swaps, rows), ln.digits).exp()
        error = opt + ((top - good.ln()) / strength).pick(max, Fraction(swaps, rows))
        least = error if error.high < least.high else least
        if Fraction(swaps, rows) * strength > top.high:
            break
    return round_up(least)
