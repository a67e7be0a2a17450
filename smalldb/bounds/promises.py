"""
The sharp bounds on the error of SmallDB, from the size of the small database and of the data.

With L = epsilon n / 2, a candidate that errs by t more than the best weighs exp(-L t) of it. Everything
follows from that, from |R|, and from a bound on OPT.
"""

from dataclasses import dataclass
from fractions import Fraction

from smalldb.bounds.arguments import numbers, one_of, sizes
from smalldb.bounds.calculators import calculator
from smalldb.bounds.candidates import BASES, ln_count
from smalldb.bounds.integer_search import last_where, valley
from smalldb.bounds.optimum import CLASSES, CLOSED, METHODS, hoeffding, optimum, rounding
from smalldb.exact.enclosures import Log, Real, round_up
from smalldb.exact.numbers import Number


@calculator
def sharp(
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
    Return an error that is exceeded with probability at most beta.

    Equation (10) of `docs/theory.md`.

    OPT + max(0, ln(|R| - 1) + ln((1 - beta) / beta)) / (epsilon n / 2), with OPT from `opt`. At most
    |R| - 1 small databases err by more than OPT + t and weigh at most exp(-epsilon n t / 2) of the best
    one each, so the odds of a larger error are at most (|R| - 1) exp(-epsilon n t / 2).

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
    n, rows = sizes(n=n, rows=rows)
    (epsilon,) = numbers(epsilon=epsilon)
    terms = SharpTerms.read(cells, queries, beta, candidates, method, METHODS)
    return round_up(terms.bound(Log(), rows, 2 / (epsilon * n)))


@calculator
def expected(
    *,
    n: int,
    cells: int,
    queries: int,
    rows: int,
    epsilon: Number,
    candidates: str = "multisets",
    method: str = "least",
) -> float:
    """
    Bound the mean error: OPT + ln |R| / (epsilon n / 2).

    Equation (16) of `docs/theory.md`.

    By Gibbs: the mean of -L err plus the entropy of the draw is ln Z >= -L OPT, L = epsilon n / 2. `gibbs`
    takes what is known of one table.
    """
    n, cells, queries, rows = sizes(n=n, cells=cells, queries=queries, rows=rows)
    (epsilon,) = numbers(epsilon=epsilon)
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
    epsilon: Number,
    beta: Number,
    candidates: str = "multisets",
    max_rows: int | None = None,
    method: str = "least",
) -> int:
    """
    Return the rows, up to `max_rows`, with the least `sharp` bound; ties go to fewer rows.

    Equation (10) of `docs/theory.md`.

    With Hoeffding's OPT it has one valley in m, because m^(-1/2) flattens faster than ln |R| does; so has
    the bound with the rounding OPT from m = floor(K / 2) on, where that is C / m. Before it, that one is
    concave, so least at an end. The method "binomial" has no such form and is refused.
    Cost: O(log m) evaluations, compared at 50 digits.

    Parameters
    ----------
    max_rows
        The most rows that are looked at; by default as many as may be best.

    Examples
    --------
    >>> best_rows(n=1000, cells=16, queries=10, epsilon=1, beta=0.05)
    98
    """
    (n,) = sizes(n=n)
    (epsilon,) = numbers(epsilon=epsilon)
    last = None if max_rows is None else sizes(max_rows=max_rows)[0]
    terms = SharpTerms.read(cells, queries, beta, candidates, method, CLOSED)
    return terms.best_rows(2 / (epsilon * n), last)


@dataclass(frozen=True, slots=True)
class SharpTerms:
    """What `sharp` depends on besides the rows and the unit 2 / (epsilon n), the price of a nat."""

    cells: int
    queries: int
    beta: Fraction  # the probability with which the error may be larger, exact
    candidates: str  # "multisets" or "tuples": what |R| counts
    method: str  # how OPT is bounded

    @classmethod
    def read(
        cls,
        cells: object,
        queries: object,
        beta: Number,
        candidates: str,
        method: str,
        known: tuple[str, ...],
    ) -> "SharpTerms":
        """Read the arguments of a bound."""
        cells, queries = sizes(cells=cells, queries=queries)
        return cls(
            cells,
            queries,
            numbers(beta=beta)[0],
            one_of(BASES, candidates, "candidates"),
            one_of(known, method, "method"),
        )

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
        found = {max(1, free), first}
        if self.method != "rounding":
            found.add(valley(lambda m: drawn(m).high, first, last))
        if self.method != "hoeffding":
            found.add(valley(lambda m: rounded(m).high, bend, last))
        return min(sorted(found), key=lambda m: self.bound(ln, m, unit).high)
