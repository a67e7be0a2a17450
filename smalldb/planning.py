"""What will run and what it promises, from public numbers alone, before any data is read."""

from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from queries import Domain, QueryClass, Workload
from queries.domain import MAX_TABLE_ATTRIBUTES
from queries.expressions import suggestion
from queries.spec import default, parse
from queries.workload import MAX_MATRIX
from smalldb import bounds, multisets
from smalldb.arguments import between_0_and_1, positive, whole
from smalldb.counting.scores import MAX_RANKS

BUDGET = 2 * 10**11  # candidates x queries of one census: some minutes on one processor
MAX_SCORE = 1 << 62  # n x rows x D: scores are int64
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
    """

    workload: Workload
    n: int | None
    epsilon: Fraction
    beta: Fraction
    neighbours: Neighbours
    rows: int

    @property
    def mechanism(self) -> str:
        """``"census"``: exact counts of all candidates by score."""
        return "census"

    @property
    def candidates(self) -> str:
        """``"multisets"``: the small databases of Algorithm 4."""
        return "multisets"

    @property
    def candidate_count(self) -> int:
        """|R|, the number of small databases."""
        return multisets.count(self._cells, self.rows)

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
        if self.n is None:
            return None
        return bounds.sharp(
            cells=self._cells,
            queries=self.workload.size,
            n=self.n,
            rows=self.rows,
            epsilon=self.epsilon,
            beta=self.beta,
        )

    @property
    def expected_error(self) -> float | None:
        """A bound on the mean error; None where n is private."""
        if self.n is None:
            return None
        return bounds.expected(
            cells=self._cells, queries=self.workload.size, n=self.n, rows=self.rows, epsilon=self.epsilon
        )

    @property
    def theorem_4_5(self) -> float | None:
        """The error that Theorem 4.5 states (for its own number of rows); None where n is private."""
        if self.n is None:
            return None
        return bounds.theorem_4_5(  # false as printed for one query: then as for two
            n=self.n,
            cells=self._cells,
            queries=max(2, self.workload.size),
            epsilon=self.epsilon,
            beta=self.beta,
        )

    @property
    def proposition_4_4(self) -> float | None:
        """The error of Proposition 4.4 at these rows; None where n is private."""
        if self.n is None:
            return None
        return bounds.proposition_4_4_rows(
            cells=self._cells,
            queries=self.workload.size,
            n=self.n,
            rows=self.rows,
            epsilon=self.epsilon,
            beta=self.beta,
        )

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
    relation = _relation(neighbours)
    exact_epsilon = positive(epsilon, "epsilon")
    exact_beta = between_0_and_1(beta, "beta")
    workload = workload_of(queries, domain)
    if relation is Neighbours.REPLACE_ONE:
        whole(n, "n")
    elif n is not None:
        raise ValueError("n is private under add-remove: leave it out")
    if rows is not None and alpha is not None:
        raise ValueError("give rows or alpha, not both")
    if rows is None and alpha is None and relation is Neighbours.ADD_REMOVE:
        raise ValueError(
            "under add-remove n is private, so rows cannot be planned from it: give rows or alpha"
        )
    largest = _largest_rows(workload, n)
    if rows is not None:
        chosen = whole(rows, "rows")
    elif alpha is not None:
        size = between_0_and_1(alpha, "alpha")
        chosen = bounds.rows_for(alpha=size, queries=max(1, workload.size))
    else:
        assert n is not None
        chosen = bounds.best_rows(
            n=n,
            cells=domain.size,
            queries=workload.size,
            epsilon=exact_epsilon,
            beta=exact_beta,
            max_rows=max(1, largest),
        )
    if chosen > largest:
        raise ValueError(_beyond(workload, n, chosen, largest))
    return Plan(workload, n, exact_epsilon, exact_beta, relation, chosen)


def workload_of(queries: QueryClass | Workload | str | None, domain: Domain) -> Workload:
    """Build the workload over a domain; by default all cells of 1- and 2-way tables."""
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


def _relation(name: str) -> Neighbours:
    try:
        return Neighbours(name)
    except ValueError as error:
        known = " or ".join(repr(relation.value) for relation in Neighbours)
        raise ValueError(f"neighbours must be {known}{suggestion(str(name), Neighbours)}") from error


def _largest_rows(workload: Workload, n: int | None) -> int:
    """Return the most rows that a census is made for; 0: none."""
    cells, queries = workload.domain.size, max(1, workload.size)
    if len(workload.domain.attributes) > MAX_TABLE_ATTRIBUTES or queries * cells > MAX_MATRIX:
        return 0
    largest = min(
        MAX_RANKS // queries // workload.denominator,
        (MAX_SCORE - 1) // ((MAX_N if n is None else n) * workload.denominator),
    )
    return bisect_right(
        range(1, largest + 1), BUDGET, key=lambda rows: multisets.count(cells, rows) * queries
    )


def _beyond(workload: Workload, n: int | None, rows: int, largest: int) -> str:
    """Say why these rows cannot be done and what can."""
    remedy = f"the largest that can is {largest} rows" if largest else "use fewer attributes or queries"
    if rows * (MAX_N if n is None else n) * workload.denominator >= MAX_SCORE:
        cap = "2^40 (the cap under add-remove)" if n is None else "n"
        return f"scores would reach 2^62 ({cap} x {rows} rows x denominator of the queries): {remedy}"
    candidates = multisets.count(workload.domain.size, min(rows, largest + 1))
    amount = f"{candidates:.3g}" if rows <= largest + 1 else f"more than {candidates:.3g}"
    return (
        f"a census of {rows} rows has {amount} candidates, times {workload.size} queries: "
        f"beyond the budget of {BUDGET:.0e}; {remedy}"
    )
