"""What each mechanism can do, and why not, from public numbers alone."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from queries import Workload
from queries.domain import MAX_TABLE_ATTRIBUTES
from queries.workload import MAX_MATRIX
from smalldb import bounds
from smalldb.answers import plan_answers
from smalldb.counting.cost import MEMORY, OPERATIONS, VISITS, Work, work
from smalldb.counting.scores import MAX_RANKS, MAX_SCORE, Candidates
from smalldb.planning.plans import Mechanism, Plan
from smalldb.planning.reading import MAX_N, Neighbours
from smalldb.rejection import capability

MAX_ENTRIES = 10**8  # of a table made from answers, rows x attributes: about 2 GB at work


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, but for the rows and the mechanism.

    Attributes
    ----------
    n
        Rows of the data; None where it is private.
    n_max
        Then, about how many there are at most, if the user says so.
    delta
        What answers may have; None: all must be pure.
    """

    workload: Workload
    n: int | None
    n_max: int | None
    epsilon: Fraction
    beta: Fraction
    neighbours: Neighbours
    delta: Fraction | None = None

    @property
    def rows_hint(self) -> int | None:
        """The rows of the data as far as something public tells."""
        return self.n_max if self.n is None else self.n


class Way(NamedTuple):
    """A mechanism with its base measure; answers have none. `named`: the user asks for this mechanism."""

    mechanism: Mechanism
    candidates: Candidates | None
    named: bool = False


def planned(request: Request, way: Way, rows: int) -> Plan | str:
    """Return the plan for so many rows, or why they cannot be done."""
    plan = Plan(
        request.workload,
        request.n,
        request.epsilon,
        request.beta,
        request.neighbours,
        rows,
        way.mechanism,
        way.candidates,
    )
    if way.mechanism == "answers":
        return _by_answers(request, plan)
    candidates = "tuples" if way.candidates is None else way.candidates
    if way.mechanism == "census":
        needed = _census_work(request, rows, candidates)
        return needed if isinstance(needed, str) else replace(plan, work=needed)
    refused = _too_large_scores(request, rows) or capability.refusal(
        request.workload,
        n=request.rows_hint,
        rows=rows,
        epsilon=request.epsilon,
        candidates=candidates,
        named=way.named,
    )
    return refused or plan


def possible_rows(request: Request, way: Way) -> Sequence[int]:
    """Return the rows that a way can do, ascending; for answers the number nearest to that of the data."""
    if way.mechanism == "answers":
        return [] if request.n is None else [min(request.n, _most_answer_rows(request))]
    candidates = "tuples" if way.candidates is None else way.candidates
    if way.mechanism == "census":
        return range(1, _most_census_rows(request, candidates) + 1)
    return [
        rows for rows in range(1, capability.MOST_ROWS + 1) if isinstance(planned(request, way, rows), Plan)
    ]


def best(request: Request, way: Way) -> Plan | str:
    """Return the plan of a way with the rows of least provable error, or why there is none."""
    if request.n is None:
        return "under add-remove n is private, so rows cannot be planned from it: give rows or alpha"
    rows = possible_rows(request, way)
    if way.candidates is None or not rows:
        return planned(request, way, rows[0] if rows else 1)
    chosen = bounds.best_rows(
        n=request.n,
        cells=request.workload.domain.size,
        queries=request.workload.size,
        epsilon=request.epsilon,
        beta=request.beta,
        candidates=way.candidates,
        max_rows=rows[-1],
    )
    return planned(request, way, max(chosen, rows[0]))


def _by_answers(request: Request, plan: Plan) -> Plan | str:
    n, most = request.rows_hint, _most_answer_rows(request)
    if plan.rows > most:
        d = len(request.workload.domain.attributes)
        return f"at most {most} rows of {d} attributes are made from answers, not {plan.rows}"
    if n is None:
        return "answers under add-remove need n_max, a public guess of the rows"
    if max(plan.rows, _largest_n(request)) * request.workload.denominator >= MAX_SCORE:
        return f"answers would reach 2^62: {_cap(request)} or rows x the common denominator of the queries"
    try:
        answers = plan_answers(
            request.workload,
            n=n,
            epsilon=request.epsilon,
            neighbours=request.neighbours.value,
            delta=request.delta,
        )
    except ValueError as error:
        return str(error)
    return replace(plan, answers=answers)


def _most_answer_rows(request: Request) -> int:
    return max(1, MAX_ENTRIES // len(request.workload.domain.attributes))


def _too_large_scores(request: Request, rows: int) -> str | None:
    if rows * _largest_n(request) * request.workload.denominator < MAX_SCORE:
        return None
    return f"scores would reach 2^62: {_cap(request)} x {rows} rows x the common denominator of the queries"


def _largest_n(request: Request) -> int:
    return MAX_N if request.n is None else request.n


def _cap(request: Request) -> str:
    return "2^40 (the cap on n under add-remove)" if request.n is None else "n"


def _census_work(request: Request, rows: int, candidates: Candidates) -> Work | str:
    """Return what a census would take, or why it cannot be done."""
    workload = request.workload
    domain, d, queries = workload.domain, len(workload.domain.attributes), workload.size
    if not domain.listable:
        if domain.binary:
            return (
                f"a census needs a table of all cells, so at most {MAX_TABLE_ATTRIBUTES} attributes, not {d}"
            )
        return "a census needs a table of all cells, so at most 2^20 cells: use fewer columns"
    cells = domain.size
    if queries * cells > MAX_MATRIX:
        return (
            f"{queries} queries on {cells} cells are too many for a census: use fewer attributes or queries"
        )
    if too_large := _too_large_scores(request, rows):
        return too_large
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


def _most_census_rows(request: Request, candidates: Candidates) -> int:
    """Return the most rows that a census is made for; 0: none."""

    def refused(rows: int) -> bool:
        return isinstance(_census_work(request, rows, candidates), str)

    above = 1
    while not refused(above):
        above *= 2
    return bisect_left(range(above // 2 + 1, above), True, key=refused) + above // 2
