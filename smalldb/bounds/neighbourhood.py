"""The neighbourhood refinement of the sharp bound: the best small database is never alone."""

from decimal import Decimal
from fractions import Fraction
from math import log

from smalldb.bounds.arguments import numbers, sizes
from smalldb.bounds.calculators import calculator
from smalldb.bounds.optimum import METHODS
from smalldb.bounds.promises import SharpTerms
from smalldb.exact.enclosures import Log, Real, round_up
from smalldb.exact.numbers import Number

_MOST_SWAPS = 10_000
_FADING, _NEGLIGIBLE = Decimal("0.5"), Decimal("1e-30")
_DOUBT = 2  # swaps by which floats may miss the crossing


@calculator
def sharp_neighbourhood(
    *,
    n: int,
    cells: int,
    queries: int,
    rows: int,
    epsilon: Number,
    beta: Number,
    candidates: str = "multisets",
    method: str = "least",
) -> float:
    """
    Return an error that is exceeded with probability at most beta; for multisets, never above `sharp`.

    Equation (11) of `docs/theory.md`.

    At least C(N + k - 1, k) multisets are at most k swaps of a row away from the best one, and a swap costs
    at most 1/m. With L = epsilon n / 2, those up to k swaps weigh together at least
    G_k = sum over i <= k of C(N + i - 2, i) exp(-L i / m) of the best, so OPT + t is exceeded with odds of at
    most (|R| - 1) exp(-L t) / G_k, for every k <= m t. The least such t over the first 10,000 swaps; it is
    `sharp` where only k = 0 will do. Worth having where L / m is small: elsewhere it gains below 1 %.

    Parameters
    ----------
    candidates : {"multisets"}
        False for tuples, which are refused: the best one may stand alone.
    method : {"least", "hoeffding", "rounding", "binomial"}
        How OPT is bounded, as for `sharp`.

    Examples
    --------
    >>> sizes = {"n": 50, "cells": 4, "queries": 4, "rows": 22, "epsilon": 1, "beta": 0.05}
    >>> round(sharp_neighbourhood(**sizes), 6)
    0.426428
    """
    n, rows = sizes(n=n, rows=rows)
    (epsilon,) = numbers(epsilon=epsilon)
    if candidates != "multisets":
        raise ValueError(f"candidates must be 'multisets' here, not {candidates!r}")
    terms = SharpTerms.read(cells, queries, beta, candidates, method, METHODS)
    if terms.trivial:
        return 0.0
    ln, unit = Log(), 2 / (epsilon * n)
    excess = terms.excess(ln, rows)
    decay = Real.of(-1 / (unit * rows), ln.digits).exp()
    layer = mass = Real.of(1, ln.digits)
    masses, gained = [mass], float(excess.high)
    cost = Real.of(1 / (unit * rows), ln.digits).high  # of a swap, in nats
    # the rest of the odds falls with the swaps, their cost rises: the least is where they cross
    for swaps in range(1, min(rows, _MOST_SWAPS) + 1):
        growth = decay * Fraction(terms.cells + swaps - 2, swaps)  # falls with the swaps
        if Decimal(gained - _about_ln(mass)) <= (swaps - 1) * cost or (
            growth.high < _FADING and layer.high < _NEGLIGIBLE
        ):
            break
        layer = layer * growth
        mass = mass + layer
        masses.append(mass)

    def price(swaps: int) -> Real:
        return ((excess - masses[swaps].ln()) * unit).pick(max, Fraction(swaps, rows))

    last = len(masses) - 1
    near = [0, *range(max(1, last - _DOUBT), last + 1)]
    least = min((price(swaps) for swaps in near), key=lambda t: t.high)
    return round_up(terms.optimum(ln, rows) + least)


def _about_ln(x: Real) -> float:
    """Return ln x to about a float's precision, for where to stop; what is returned is enclosed anew."""
    exponent = x.high.adjusted()
    return log(x.high.scaleb(-exponent)) + exponent * log(10)
