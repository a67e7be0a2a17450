"""The sharp bound, its expectation form, and the rows and data that are best for it."""

from collections.abc import Callable
from decimal import Decimal

from smalldb.bounds.common import excess, known, ln_count, numbers, sizes
from smalldb.bounds.sampling import hoeffding, known_method, opt_of, rounding
from smalldb.enclosures import Log, Real, round_up


def sharp(
    *,
    n: int,
    cells: int,
    queries: int,
    rows: int,
    epsilon: object,
    beta: object,
    candidates: str = "multisets",
    opt_method: str = "least",
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
    opt_method : {"least", "hoeffding", "rounding"}
        See `opt`.

    Examples
    --------
    >>> round(sharp(n=1000, cells=16, queries=10, rows=98, epsilon=1, beta=0.05), 6)
    0.117798
    """
    n, cells, queries, rows = sizes(n=n, cells=cells, queries=queries, rows=rows)
    epsilon, beta = numbers(epsilon=epsilon, beta=beta)
    known(candidates)
    known_method(opt_method)
    if cells == 1 or not queries:
        return 0.0
    ln = Log()
    return round_up(
        opt_of(ln, cells, queries, rows, opt_method)
        + 2 * excess(ln, cells, rows, beta, candidates) / (epsilon * n)
    )


def expected(
    *, n: int, cells: int, queries: int, rows: int, epsilon: object, candidates: str = "multisets"
) -> float:
    """
    Bound the mean error: OPT + ln |R| / (epsilon n / 2).

    By Gibbs: the mean of -L err plus the entropy of the draw is ln Z >= -L OPT, L = epsilon n / 2.
    """
    n, cells, queries, rows = sizes(n=n, cells=cells, queries=queries, rows=rows)
    (epsilon,) = numbers(epsilon=epsilon)
    known(candidates)
    if cells == 1 or not queries:
        return 0.0
    ln = Log()
    return round_up(
        opt_of(ln, cells, queries, rows, "least") + 2 * ln_count(ln, cells, rows, candidates) / (epsilon * n)
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
    opt_method: str = "least",
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
    n, cells, queries = sizes(n=n, cells=cells, queries=queries)
    epsilon, beta = numbers(epsilon=epsilon, beta=beta)
    known(candidates)
    known_method(opt_method)
    last = None if max_rows is None else sizes(max_rows=max_rows)[0]
    if cells == 1 or not queries:
        return 1
    ln = Log()

    def price(rows: int) -> Real:
        return 2 * excess(ln, cells, rows, beta, candidates) / (epsilon * n)

    # up to some rows the second part is 0 (for beta near 1), and the bound falls as OPT does
    free = last_of(lambda m: price(m).high <= 0, last)
    if free == last:
        return free
    first, half = free + 1, min(cells, queries + 1) // 2
    bend = max(first, half if last is None else min(half, last))
    found = {max(1, free), first}
    if opt_method != "rounding":
        found.add(_valley(lambda m: (hoeffding(ln, queries, m) + price(m)).high, first, last))
    if opt_method != "hoeffding":
        found.add(_valley(lambda m: (price(m) + rounding(cells, queries, m)).high, bend, last))
    return min(sorted(found), key=lambda m: (opt_of(ln, cells, queries, m, opt_method) + price(m)).high)


def last_of(holds: Callable[[int], bool], last: int | None) -> int:
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
