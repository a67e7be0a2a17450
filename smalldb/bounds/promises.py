"""
The sharp bounds on the error of SmallDB, from the size of the small database and of the data.

With L = epsilon n / 2, a candidate that errs by t more than the best weighs exp(-L t) of it. Everything
follows from that, from |R|, and from a bound on OPT.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import log

from smalldb.bounds.calculators import Exact, calculator, last_where, one_of, valley
from smalldb.bounds.optimum import BASES, CLASSES, CLOSED, METHODS, hoeffding, ln_count, optimum, rounding
from smalldb.exact.enclosures import Log, Real, round_up

_MOST_SWAPS = 10_000
_FADING, _NEGLIGIBLE = Decimal("0.5"), Decimal("1e-30")
_DOUBT = 2  # swaps by which floats may miss the crossing


@calculator
def sharp(
    *,
    n: int,
    cells: int,
    queries: int,
    rows: int,
    epsilon: Exact,
    beta: Exact,
    candidates: str = "multisets",
    method: str = "least",
) -> float:
    """
    Return an error that is exceeded with probability at most beta.

    Equation (10) of `docs/theory.md`. OPT + max(0, ln(|R| - 1) + ln((1 - beta) / beta)) / (epsilon n / 2),
    with OPT from `opt`. At most |R| - 1 small databases err by more than OPT + t and weigh at most
    exp(-epsilon n t / 2) of the best one each, so the odds of a larger error are at most (|R| - 1)
    exp(-epsilon n t / 2).

    Parameters
    ----------
    candidates : {"multisets", "tuples"}
        |R| is C(N + m - 1, m), or N^m for ordered rows; the first is false for the second.
    method : {"least", "hoeffding", "rounding", "binomial", "thresholds", "one-way", "intervals"}
        How OPT is bounded; "binomial" for 0/1 queries only, the last three for that class alone.

    Examples
    --------
    >>> round(sharp(n=1000, cells=16, queries=10, rows=98, epsilon=1, beta=0.05), 6)
    0.117798
    """
    terms = SharpTerms(cells, queries, beta, candidates, method)
    return round_up(terms.bound(Log(), rows, 2 / (epsilon * n)))


@calculator
def expected(
    *,
    n: int,
    cells: int,
    queries: int,
    rows: int,
    epsilon: Exact,
    candidates: str = "multisets",
    method: str = "least",
) -> float:
    """
    Bound the mean error: OPT + ln |R| / (epsilon n / 2).

    Equation (16) of `docs/theory.md`. By Gibbs: the mean of -L err plus the entropy of the draw is ln Z >= -L
    OPT, L = epsilon n / 2. `gibbs` takes what is known of one table.
    """
    one_of(BASES, candidates, "candidates")
    one_of(METHODS, method, "method")
    if cells == 1 or not queries:
        return 0.0
    ln = Log()
    entropy = ln_count(ln, cells, rows, candidates)
    return round_up(optimum(ln, cells, queries, rows, method) + 2 * entropy / (epsilon * n))


@calculator
def best_rows(
    *,
    n: int,
    cells: int,
    queries: int,
    epsilon: Exact,
    beta: Exact,
    candidates: str = "multisets",
    max_rows: int | None = None,
    method: str = "least",
) -> int:
    """
    Return the rows, up to `max_rows`, with the least `sharp` bound; ties go to fewer rows.

    Equation (10) of `docs/theory.md`. With Hoeffding's OPT it has one valley in m, because m^(-1/2) flattens
    faster than ln |R| does; so has the bound with the rounding OPT from m = floor(K / 2) on, where that is C
    / m. Before it, that one is concave, so least at an end. The method "binomial" has no such form and is
    refused. Cost: O(log m) evaluations, compared at 50 digits.

    Parameters
    ----------
    max_rows
        The most rows that are looked at; by default as many as may be best.

    Examples
    --------
    >>> best_rows(n=1000, cells=16, queries=10, epsilon=1, beta=0.05)
    98
    """
    terms = SharpTerms(cells, queries, beta, candidates, one_of(CLOSED, method, "method"))
    return terms.best_rows(2 / (epsilon * n), max_rows)


@dataclass(frozen=True, slots=True)
class SharpTerms:
    """What `sharp` depends on besides the rows and the unit 2 / (epsilon n), the price of a nat."""

    cells: int
    queries: int
    beta: Fraction  # the probability with which the error may be larger, exact
    candidates: str  # "multisets" or "tuples": what |R| counts
    method: str  # how OPT is bounded

    def __post_init__(self) -> None:
        one_of(BASES, self.candidates, "candidates")
        one_of(METHODS, self.method, "method")

    @property
    def trivial(self) -> bool:
        """Whether there is no error at all."""
        return self.cells == 1 or not self.queries

    def optimum(self, ln: Log, rows: int) -> Real:
        """Enclose the bound on OPT."""
        return optimum(ln, self.cells, self.queries, rows, self.method)

    def excess(self, ln: Log, rows: int) -> Real:
        """Enclose max(0, ln((|R| - 1) (1 - beta) / beta)), in nats; 0 where there is no error."""
        if self.trivial:
            return Real.of(0, ln.digits)
        odds = (1 - self.beta) / self.beta
        return ln_count(ln, self.cells, rows, self.candidates, less=1, times=odds).pick(max, 0)

    def bound(self, ln: Log, rows: int, unit: Fraction) -> Real:
        """Enclose the sharp bound, OPT + the excess in nats times their price."""
        return self.optimum(ln, rows) + self.excess(ln, rows) * unit

    def free_rows(self, last: int | None = None) -> int:
        """Return the most rows of no excess, up to `last`; they exist for beta near 1."""
        return last_where(lambda m: self.excess(Log(), m).high <= 0, last)

    def best_rows(self, unit: Fraction, last: int | None = None) -> int:
        """Return the rows of the least bound (see the function of this name)."""
        if self.trivial:
            return 1
        ln = Log()
        # up to some rows nothing is paid for their number, and the bound falls as OPT does
        free = self.free_rows(last)
        if free == last:
            return free

        def drawn(rows: int) -> Real:
            return hoeffding(ln, self.queries, rows) + self.excess(ln, rows) * unit

        def rounded(rows: int) -> Real:
            return self.excess(ln, rows) * unit + rounding(self.cells, self.queries, rows)

        if self.method in CLASSES:  # C / m
            bottom = valley(lambda m: self.bound(ln, m, unit).high, free + 1, last)
            return min(sorted({max(1, free), bottom}), key=lambda m: self.bound(ln, m, unit).high)
        first, half = free + 1, min(self.cells, self.queries + 1) // 2
        bend = max(first, half if last is None else min(half, last))
        choices = {max(1, free), first}
        if self.method != "rounding":
            choices.add(valley(lambda m: drawn(m).high, first, last))
        if self.method != "hoeffding":
            choices.add(valley(lambda m: rounded(m).high, bend, last))
        return min(sorted(choices), key=lambda m: self.bound(ln, m, unit).high)


@calculator
def sharp_neighbourhood(
    *,
    n: int,
    cells: int,
    queries: int,
    rows: int,
    epsilon: Exact,
    beta: Exact,
    candidates: str = "multisets",
    method: str = "least",
) -> float:
    """
    Return an error that is exceeded with probability at most beta; for multisets, never above `sharp`.

    Equation (11) of `docs/theory.md`. At least C(N + k - 1, k) multisets are at most k swaps of a row away
    from the best one, and a swap costs at most 1/m. With L = epsilon n / 2, those up to k swaps weigh
    together at least G_k = sum over i <= k of C(N + i - 2, i) exp(-L i / m) of the best, so OPT + t is
    exceeded with odds of at most (|R| - 1) exp(-L t) / G_k, for every k <= m t. The least such t over the
    first 10,000 swaps; it is `sharp` where only k = 0 will do. Worth having where L / m is small: elsewhere
    it gains below 1 %.

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
    if candidates != "multisets":
        raise ValueError(f"candidates must be 'multisets' here, not {candidates!r}")
    terms = SharpTerms(cells, queries, beta, candidates, method)
    if terms.trivial:
        return 0.0
    ln = Log()
    unit: Fraction = 2 / (epsilon * n)
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
