"""
What no private mechanism can promise, whatever it releases: lower bounds by packing.

Take M cells of which any two are told apart by some query by `distance` at least. Of n rows put h into one of
the M, all others into the first: M tables, h replacements from each other, whose answers differ by
distance h / n. No answer is nearer than a = distance h / (2 n) to two of them, so the M events "the error is
below a" exclude each other, and each loses at most a factor exp(epsilon h) between two of the tables (Hardt
and Talwar, STOC 2010).
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import comb, exp, isqrt

import numpy as np

from queries import Workload
from smalldb.bounds.calculators import Exact, calculator, lambert
from smalldb.exact.enclosures import Log, Real, ceiling
from smalldb.exact.numbers import Number, as_fraction, float_below

MOST_ENTRIES = 1 << 22
MOST_BITS = 8
MOST_ATTRIBUTES = 100_000
NOTHING = 800  # e^-800 is below all floats


@calculator
def packing(*, n: int, apart: int, epsilon: Exact, beta: Exact, distance: Exact = 1, moves: int = 1) -> float:
    """
    Return an error that every epsilon-DP mechanism reaches on some table of n rows, with probability > beta.

    Equation (29) of `docs/theory.md`. The tables all succeed with probability 1 - beta only if (1 - beta) (1
    + (M - 1) exp(-epsilon h)) <= 1; the largest h <= n that this excludes. Rounded down; 0 where nothing is
    excluded.

    Examples
    --------
    >>> packing(n=1000, apart=2**10, epsilon=1, beta="0.05")  # h = 9
    0.0045
    """
    odds = (apart - 1) * (1 - beta) / beta
    moved = ceiling(lambda ln: ln(odds) / (epsilon * moves)) - 1 if odds > 1 else 0
    return float_below(_distance(distance) * min(n, moved) / (2 * n))


@calculator
def packing_parities(
    *, n: int, attributes: int, width: int, epsilon: Exact, beta: Exact, moves: int = 1
) -> float:
    """
    Return `packing` for parities of up to `width` of d yes/no attributes, by more than one cell.

    Equation (35) of `docs/theory.md`, where the proof is. The h rows are in r = 2^s cells, equally. A few
    attributes make the r Walsh functions, each of up to width - 1 of them; every other attribute is a word of
    a Reed-Muller code of r bits. Two tables differ in a word, hence some parity by t h / (r n), t the least
    even number whose square is the code's distance or more. The best of these codes (up to 256 cells) and of
    one cell. It grows faster than the number of attributes, as the bounds of De (2012) do: 2.3 times one cell
    for parities of three of 100.

    Parameters
    ----------
    attributes : int
        d, all of them yes/no, up to 100,000; the universe is the whole cube.
    width : int
        How many attributes a parity looks at, at most.

    Examples
    --------
    >>> sizes = {"n": 10**5, "epsilon": "0.1", "beta": "0.05"}
    >>> packing(apart=2**40, **sizes), packing_parities(attributes=40, width=3, **sizes)
    (0.00153, 0.0023599999999999997)
    """
    if attributes > MOST_ATTRIBUTES:
        raise ValueError(f"attributes must be at most {MOST_ATTRIBUTES}")
    one = packing(n=n, apart=1 << attributes, epsilon=epsilon, beta=beta, moves=moves)
    rate, constant = epsilon * moves, (1 - beta) / beta
    ln = Log()
    known = float(ln(2).low), float(ln(constant).low)

    def value(code: tuple[int, int, int], moved: int) -> Fraction:
        cells, _, difference = code
        return Fraction(difference * (min(n, max(0, moved)) // cells), 2 * n)

    def about(code: tuple[int, int, int]) -> Fraction:
        return value(code, int(Fraction(code[1] * known[0] + known[1]) / rate))

    code = max(_codes(attributes, min(width, MOST_BITS + 1)), key=about, default=None)
    if code is None:
        return one
    # ln(M - 1) >= ln M - 2 / M
    less = Fraction(2, 1 << min(code[1], 300))
    moved = ceiling(lambda ln: (code[1] * ln(2) + ln(constant) - less) / rate) - 1
    return max(one, float_below(value(code, moved)))


@lru_cache(maxsize=64)
def _codes(attributes: int, width: int) -> list[tuple[int, int, int]]:
    """Return r, log2 of how many tables, and t, of all Reed-Muller codes whose Walsh functions are there."""
    codes = []
    for s in range(1, MOST_BITS + 1):
        parts = [s // (width - 1) + (i < s % (width - 1)) for i in range(width - 1)] if width > 1 else []
        free = attributes - sum((1 << part) - 1 for part in parts)
        if not parts or free < 1:
            break
        for order in range(s):
            words = sum(comb(s, i) for i in range(order + 1))
            root = isqrt((1 << (s - order)) - 1) + 1
            codes.append((1 << s, words * free, root + root % 2))
    return codes


@calculator
def packing_mean(*, n: int, apart: int, epsilon: Exact, distance: Exact = 1, moves: int = 1) -> float:
    """
    Return a mean error that every epsilon-DP mechanism reaches on some table of n rows.

    Equation (30) of `docs/theory.md`. The largest over h of a (1 - 1 / (1 + (M - 1) exp(-epsilon h))): the
    mean over the M tables of the probability of an error below a is no more than that fraction. Rounded down.

    Examples
    --------
    >>> round(packing_mean(n=1, apart=2, epsilon=1), 6)  # 1/2 of 1 / (1 + e), the best that is possible
    0.134471
    """
    width = _distance(distance)
    if apart == 1:
        return 0.0

    ln, step = Log(), epsilon * moves
    odds = ln(apart - 1)
    if (odds - step).high < -NOTHING:
        return 0.0

    def mean(moved: int) -> Decimal:
        weight = (step * moved - odds).exp() + 1
        share: Real = Real.of(width * moved / (2 * n), ln.digits) / weight
        return share.low

    # h / (1 + e^(step h) / (M - 1)) is largest where step h = 1 + W((M - 1) / e)
    best = int((1 + Fraction(exp(lambert(float(odds.low) - 1)))) / step)
    return float_below(Fraction(max(mean(min(max(1, moved), n)) for moved in (best, best + 1))))


def cells_apart(workload: Workload) -> int:
    """
    Return how many cells the 0/1 queries of a workload tell apart: M of `packing`, or a lower bound on it.

    Equation (29) of `docs/theory.md`. Exact where the queries can be tabulated (2^22 entries). Beyond, all
    cells if every column is looked at alone or by a table; otherwise 1, which excludes nothing.

    Examples
    --------
    >>> from queries import Conjunctions, Domain, Parities
    >>> domain = Domain(["a", "b", "c"])
    >>> cells_apart(Conjunctions(1).workload(domain)), cells_apart(Parities(3, exactly=True).workload(domain))
    (8, 2)
    """
    domain = workload.domain
    if workload.denominator > 1:
        raise ValueError("the queries must be 0/1")
    if not workload.size:
        return 1
    if domain.listable and workload.size * domain.size <= MOST_ENTRIES:
        return int(np.unique(workload.matrix(), axis=1).shape[1])
    seen = {c for block in workload.cells for c in block.columns}
    alone = {columns[0] for query in workload.listed if len(columns := query.columns(domain)) == 1}
    seen |= {c for c in alone if domain.columns[c].yes_no}
    return domain.size if domain.valid is None and len(seen) == len(domain.columns) else 1


def _distance(value: Number) -> Fraction:
    distance = as_fraction(value, "distance")
    if not 0 < distance <= 1:
        raise ValueError("distance must be above 0 and at most 1")
    return distance
