"""What will run and what it promises, from public numbers alone, before any data is read."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from queries import Domain, QueryClass, Workload
from queries.domain import MAX_TABLE_ATTRIBUTES
from queries.expressions import suggestion
from queries.spec import default, parse
from queries.workload import MAX_MATRIX, Query
from smalldb import bounds
from smalldb.arguments import between_0_and_1, positive, whole
from smalldb.counting.cost import MEMORY, OPERATIONS, VISITS, Work, work
from smalldb.counting.scores import MAX_RANKS, MAX_SCORE, Candidates, base_measure, count

MAX_N = 1 << 40  # public cap on n under add-remove


class Neighbours(StrEnum):
    """Which tables are neighbours.

    ``replace-one``: one row is exchanged for another, and n is public.
    ``add-remove``: one row more or less, and n is private.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a release will do and promise; a function of public numbers alone.

    Attributes
    ----------
    workload
        The reduced queries over the universe.
    n
        Rows of the data; None under add-remove, where it is private.
    epsilon, beta
        The privacy parameter, and the failure probability of the bounds; exact.
    neighbours
        The neighbouring relation.
    rows
        m, the rows of the small database.
    candidates
        The base measure: "multisets" (Algorithm 4), or "tuples" (ordered rows).
    work
        The engine of the census and what it will take.
    """

    workload: Workload
    n: int | None
    epsilon: Fraction
    beta: Fraction
    neighbours: Neighbours
    rows: int
    candidates: Candidates
    work: Work

    @property
    def mechanism(self) -> str:
        """``"census"``: exact counts of all candidates by score."""
        return "census"

    @property
    def candidate_count(self) -> int:
        """|R|, the number of candidates."""
        return count(self._cells, self.rows, self.candidates)

    @property
    def privacy(self) -> Fraction:
        """The exact guarantee: epsilon, or a little less under add-remove.

        Adding or removing a row changes max_f |f(x) - f(y)| n by at most 1 upwards but only by
        1 - 1/(m D) downwards, so the range of the exponent is epsilon (1 - 1/(2 m D)).
        """
        if self.neighbours is Neighbours.REPLACE_ONE:
            return self.epsilon
        return self.epsilon * (1 - Fraction(1, 2 * self.rows * self.workload.denominator))

    @property
    def rate(self) -> Fraction:
        """A candidate of score s has probability proportional to ``exp(-rate s)``: epsilon / (2 m D)."""
        return self.epsilon / (2 * self.rows * self.workload.denominator)

    @property
    def bound(self) -> float | None:
        """The provable error: not exceeded with probability 1 - beta; None where n is private."""
        return self._promise(bounds.sharp, rows=self.rows, beta=self.beta, candidates=self.candidates)

    @property
    def expected_error(self) -> float | None:
        """A bound on the mean error; None where n is private."""
        return self._promise(bounds.expected, rows=self.rows, candidates=self.candidates)

    @property
    def proposition_4_4(self) -> float | None:
        """The error of Proposition 4.4 at these rows; None where n is private."""
        return self._promise(
            bounds.proposition_4_4_rows, rows=self.rows, beta=self.beta, candidates=self.candidates
        )

    @property
    def theorem_4_5(self) -> float | None:
        """The error that Theorem 4.5 states (for its own number of rows); None where n is private."""
        # false as printed for one query: then as for two
        return self._promise(bounds.theorem_4_5, queries=max(2, self.workload.size), beta=self.beta)

    @property
    def alternatives(self) -> dict[str, float] | None:
        """Mean largest errors of plain Laplace noise, by what it is added to; None where n is private.

        "answers": to each of the |Q| answers, about |Q| ln |Q| / (epsilon n). "histogram": to each cell,
        answers added up; a bound.
        """
        if self.n is None:
            return None
        n, queries = self.n, self.workload.size
        # f and 1 - f err alike, so the lighter of the two is added up
        squares = max(
            (min(_squares(q), _squares(q, True)) for q in self.workload.queries), default=Fraction(0)
        )
        support = squares * 2 ** len(self.workload.domain.attributes) or None
        return {
            "answers": bounds.laplace_answers(n=n, queries=queries, epsilon=self.epsilon),
            "histogram": bounds.laplace_histogram(
                n=n, cells=self._cells, queries=queries, epsilon=self.epsilon, support=support
            ),
        }

    def _promise(self, formula: Callable[..., float], **numbers: object) -> float | None:
        if self.n is None:
            return None
        sizes = {"cells": self._cells, "queries": self.workload.size, "n": self.n, "epsilon": self.epsilon}
        return formula(**{**sizes, **numbers})

    @property
    def _cells(self) -> int:
        return self.workload.domain.size


def plan(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int | None = None,
    epsilon: object,
    alpha: object = None,
    rows: int | None = None,
    neighbours: str = "replace-one",
    mechanism: str = "auto",
    candidates: str | None = None,
    beta: object = "0.05",
) -> Plan:
    """Decide what a release would do, and what it can promise, without any data.

    Parameters
    ----------
    domain
        The universe.
    queries
        The query class, its text such as "marginals:2", or a workload; by default all cells of 1- and
        2-way tables.
    n
        Rows of the data: needed under replace-one, where it is public; refused under add-remove.
    epsilon, beta
        Exact numbers: an int, Fraction, Decimal, text such as "1/2", or a float, which is read
        through its shortest decimal text.
    alpha, rows
        The size of the small database: `rows`, or ``ceil(ln max(2, |Q|) / alpha^2)``. Neither: the
        rows of least provable error among those within the budget (replace-one only).
    mechanism
        "auto" or "census", which is all that there is yet.
    candidates
        The base measure: "multisets" (the default), or "tuples" (ordered rows).

    Raises
    ------
    ValueError, TypeError
        An argument out of range, or a census beyond the budget: says the largest rows that would do.

    Examples
    --------
    >>> from queries import Conjunctions
    >>> plan(Domain(["a", "b", "c"]), Conjunctions(2), n=1000, epsilon=1, rows=8).candidate_count
    6435
    """
    relation = relation_of(neighbours)
    exact_epsilon = positive(epsilon, "epsilon")
    exact_beta = between_0_and_1(beta, "beta")
    if mechanism not in ("auto", "census"):
        raise ValueError(f"mechanism must be 'auto' or 'census', not {mechanism!r}")
    base = base_measure("multisets" if candidates is None else candidates)
    if relation is Neighbours.REPLACE_ONE:
        n = whole(n, "n")
    elif n is not None:
        raise ValueError("n is private under add-remove: leave it out")
    if rows is not None and alpha is not None:
        raise ValueError("give rows or alpha, not both")
    if rows is not None:
        rows = whole(rows, "rows")
    size = None if alpha is None else between_0_and_1(alpha, "alpha")
    workload = workload_of(queries, domain)
    if rows is None and size is not None:
        rows = bounds.rows_for(alpha=size, queries=max(1, workload.size))
    if rows is None:
        rows = _planned_rows(workload, n, exact_epsilon, exact_beta, base)
    needed = _work(workload, n, rows, base)
    if isinstance(needed, str):
        largest = _largest_rows(workload, n, base)
        remedy = (
            f"the largest that can be done is {largest} rows" if largest else "no number of rows can be done"
        )
        raise ValueError(f"{needed}; {remedy}")
    return Plan(workload, n, exact_epsilon, exact_beta, relation, rows, base, needed)


def workload_of(queries: QueryClass | Workload | str | None, domain: Domain) -> Workload:
    """Build the workload over a domain; by default all cells of 1- and 2-way tables."""
    if not isinstance(domain, Domain):
        raise TypeError(
            f"domain must be a queries.Domain, such as Domain(frame.columns), not {type(domain).__name__}"
        )
    if isinstance(queries, Workload):
        if queries.domain != domain:
            raise ValueError("the workload is over another domain than the table")
        return queries
    if queries is None:
        queries = default(domain)
    if isinstance(queries, str):
        queries = parse(queries)
    if not isinstance(queries, QueryClass):
        raise TypeError(f"queries must be a query class such as Marginals(2), not {type(queries).__name__}")
    return queries.workload(domain)


def relation_of(name: str) -> Neighbours:
    """Read the name of a neighbouring relation."""
    try:
        return Neighbours(name)
    except ValueError as error:
        known = " or ".join(repr(relation.value) for relation in Neighbours)
        raise ValueError(
            f"neighbours must be {known}{suggestion(str(name), [relation.value for relation in Neighbours])}"
        ) from error


def _squares(query: Query, negated: bool = False) -> Fraction:
    """Return the mean of f^2 over all settings, or of (1 - f)^2."""
    if query.weights is None:
        return Fraction(1, 2)
    unit = query.denominator
    total = sum((unit - w if negated else w) ** 2 for w in query.weights)
    return Fraction(total, unit * unit * len(query.weights))


def _planned_rows(
    workload: Workload, n: int | None, epsilon: Fraction, beta: Fraction, candidates: Candidates
) -> int:
    """Return the rows of least provable error among those within the budget."""
    if n is None:
        raise ValueError(
            "under add-remove n is private, so rows cannot be planned from it: give rows or alpha"
        )
    return bounds.best_rows(
        n=n,
        cells=workload.domain.size,
        queries=workload.size,
        epsilon=epsilon,
        beta=beta,
        candidates=candidates,
        max_rows=max(1, _largest_rows(workload, n, candidates)),
    )


def _work(workload: Workload, n: int | None, rows: int, candidates: Candidates) -> Work | str:
    """Return what a census would take, or why it cannot be done."""
    d, cells, queries = len(workload.domain.attributes), workload.domain.size, workload.size
    if d > MAX_TABLE_ATTRIBUTES:
        return f"a census needs a table of all cells, so at most {MAX_TABLE_ATTRIBUTES} attributes, not {d}"
    if queries * cells > MAX_MATRIX:
        return (
            f"{queries} queries on {cells} cells are too many for a census: use fewer attributes or queries"
        )
    if rows * (MAX_N if n is None else n) * workload.denominator >= MAX_SCORE:
        cap = "2^40 (the cap on n under add-remove)" if n is None else "n"
        return f"scores would reach 2^62: {cap} x {rows} rows x the common denominator of the queries"
    if queries * (rows * workload.denominator + 1) > MAX_RANKS:
        return f"score tables of {queries} queries x {rows} rows x their common denominator are too large"
    needed = work(workload, rows, candidates)
    if needed is None:
        return (
            f"a census of {rows} rows over {cells} cells with {queries} queries is beyond the budget of "
            f"{VISITS:.0e} candidates x queries by enumeration, or {OPERATIONS:.0e} operations and "
            f"{MEMORY >> 30} GiB by dynamic programming"
        )
    return needed


def _largest_rows(workload: Workload, n: int | None, candidates: Candidates) -> int:
    """Return the most rows that a census is made for; 0: none."""

    def refused(rows: int) -> bool:
        return isinstance(_work(workload, n, rows, candidates), str)

    above = 1
    while not refused(above):
        above *= 2
    return bisect_left(range(above // 2 + 1, above), True, key=refused) + above // 2
