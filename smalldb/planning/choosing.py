"""Choosing the mechanism and the rows, before any data is read."""

from dataclasses import replace
from itertools import repeat
from math import inf

from queries import Domain, QueryClass, Workload
from smalldb import bounds
from smalldb.answers import read_delta
from smalldb.counting.scores import base_measure
from smalldb.exact.numbers import between_0_and_1, positive, whole
from smalldb.planning.plans import Plan
from smalldb.planning.reading import Neighbours, relation_of, workload_of
from smalldb.planning.ways import Request, Way, best, planned, possible_rows

MECHANISMS = ("auto", "census", "rejection", "answers")


def plan(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int | None = None,
    epsilon: object,
    delta: object = None,
    alpha: object = None,
    rows: int | None = None,
    neighbours: str = "replace-one",
    n_max: int | None = None,
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
    delta
        Exact, between 0 and 1: answers get Gaussian noise where that is expected to err least; the guarantee
        is then (epsilon, delta), see `Plan.delta`. None: everything is pure.
    alpha, rows
        The size of the synthetic table: `rows`, or ``ceil(ln max(2, |Q|) / alpha^2)``. Neither: the
        mechanism and rows of least public expected error (replace-one only).
    n_max
        Under add-remove, about how many rows the data have at most, from public knowledge: what can be
        done, and what answers measure, is chosen by it. The guarantee does not depend on it.
    mechanism
        "census", "rejection", "answers", or "auto": with the size given, SmallDB of that size, by a census
        if it fits, else by rejection, else answers rounded to that size.
    candidates
        The base measure: "multisets" (the default of a census) or "tuples" (ordered rows, the default of
        rejection). Answers have none.

    Raises
    ------
    ValueError, TypeError
        An argument out of range, or a size that cannot be done: says what could.

    Examples
    --------
    >>> from queries import Conjunctions
    >>> plan(Domain(["a", "b", "c"]), Conjunctions(2), n=1000, epsilon=1, rows=8).candidate_count
    6435
    """
    relation = relation_of(neighbours)
    exact_epsilon = positive(epsilon, "epsilon")
    exact_beta = between_0_and_1(beta, "beta")
    allowed = read_delta(delta)
    ways = _ways(mechanism, candidates)
    if allowed is not None and all(way.mechanism != "answers" for way in ways):
        raise ValueError("delta is for answers: SmallDB itself is purely epsilon-private; leave it out")
    if relation is Neighbours.REPLACE_ONE:
        n = whole(n, "n")
        if n_max is not None:
            raise ValueError("n_max is for add-remove: under replace-one n itself is public")
    elif n is not None:
        raise ValueError("n is private under add-remove: leave it out")
    if n_max is not None:
        n_max = whole(n_max, "n_max")
    if rows is not None and alpha is not None:
        raise ValueError("give rows or alpha, not both")
    if rows is not None:
        rows = whole(rows, "rows")
    size = None if alpha is None else between_0_and_1(alpha, "alpha")
    request = Request(workload_of(queries, domain), n, n_max, exact_epsilon, exact_beta, relation, allowed)
    if rows is None and size is not None:
        rows = bounds.rows_for(alpha=size, queries=max(1, request.workload.size))
    return _of_this_size(request, ways, rows) if rows is not None else _least_error(request, ways)


def _ways(mechanism: str, candidates: str | None) -> list[Way]:
    """Return the ways that the arguments leave, the first choice first."""
    if mechanism not in MECHANISMS:
        names = ", ".join(map(repr, MECHANISMS))
        raise ValueError(f"mechanism must be one of {names}, not {mechanism!r}")
    if candidates is None:
        ways = [Way("census", "multisets"), Way("rejection", "tuples"), Way("answers", None)]
    else:
        base = base_measure(candidates)
        ways = [Way("census", base), Way("rejection", base)]
    chosen = [way._replace(named=mechanism != "auto") for way in ways if mechanism in ("auto", way.mechanism)]
    if not chosen:
        raise ValueError("answers have no candidates: leave them out")
    return chosen


def _of_this_size(request: Request, ways: list[Way], rows: int) -> Plan:
    """Return the first plan for so many rows."""
    reasons: list[str] = []
    for way in ways:
        made = planned(request, way, rows)
        if isinstance(made, Plan):
            return replace(made, refused=tuple(reasons))
        reasons.append(made)
    raise ValueError("; ".join(map(_with_remedy, repeat(request), ways, reasons)))


def _with_remedy(request: Request, way: Way, reason: str) -> str:
    """Add what could be done to the reason why so many rows cannot."""
    if way.mechanism == "answers":
        return reason
    possible = possible_rows(request, way)
    if not possible:
        return f"{reason}; no number of rows can be done by {way.mechanism}"
    return f"{reason}; the largest that can be done by {way.mechanism} is {possible[-1]} rows"


def _least_error(request: Request, ways: list[Way]) -> Plan:
    """Return the plan of least public expected error, with the next best beside it; ties to the first."""
    found = [best(request, way) for way in ways]
    plans = [made for made in found if isinstance(made, Plan)]
    if not plans:
        raise ValueError("; ".join(dict.fromkeys(map(str, found))))
    plans.sort(key=lambda made: inf if made.expected_error is None else made.expected_error)
    if len(plans) == 1:
        return replace(plans[0], refused=tuple(made for made in found if isinstance(made, str)))
    return replace(plans[0], runner_up=plans[1])
