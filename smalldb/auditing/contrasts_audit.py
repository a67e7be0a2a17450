"""The audit of measured contrasts: integers with noise whose law is known in closed form."""

from fractions import Fraction

from queries import Rows, Workload
from smalldb.auditing.loss import Audit
from smalldb.counting.databases import check_budget, databases, neighbours_of
from smalldb.marginals.contrasts import ParityPlan, loss
from smalldb.marginals.contrasts.parity_measurement import counts
from smalldb.marginals.contrasts.parity_plan import alternatives
from smalldb.marginals.contrasts.part_list import AUDITED
from smalldb.planning import Neighbours

MOST_PAIRS = 20_000  # of neighbours, each less than a millisecond


def audit_contrasts(
    workload: Workload, epsilon: Fraction, n: int, relation: Neighbours, method: str | None
) -> Audit:
    """
    Return the worst loss of the integers that marginals measure by strategy contrasts, exactly.

    The log-probability of z is -rate |z - counts| plus what no database changes, in the norm of each part. So
    the loss of a pair is the distance of its counts, at z = counts of the first; and the other way round.

    Parameters
    ----------
    workload, epsilon, n, relation
        The queries, the exact epsilon, the rows of a database (at most so many under add-remove), and who is
        a neighbour.
    method
        "cube" or "cells", as `ParityPlan.method`; None: what a release would measure.

    Raises
    ------
    ValueError
        Too many databases; a method that this workload is not measured by; Wishart noise, whose loss is
        proved and not computed.
    """
    domain = workload.domain
    plan = _plan(workload, epsilon, n, relation, method)
    check_budget(domain.size, n, relation, lambda _, pairs: pairs <= MOST_PAIRS)
    frame = domain.decode(domain.table())
    tables = {x: Rows.from_counts(domain, frame, x) for x in databases(domain.size, n, relation)}
    losses = {
        (x, other): loss(plan, tables[x], tables[other])
        for x in tables
        for other in neighbours_of(x, n, relation)
    }
    if not losses:
        raise ValueError("domain: one cell alone has no neighbours to compare")
    pair = max(losses, key=losses.__getitem__)
    worst, released = losses[pair], tuple(counts(plan, tables[pair[0]]).tolist())
    return Audit((worst, worst), (*pair, released), (2 * worst, 2 * worst), epsilon, len(tables), len(losses))


def _plan(
    workload: Workload, epsilon: Fraction, n: int, relation: Neighbours, method: str | None
) -> ParityPlan:
    plans = alternatives(workload, n=n, epsilon=epsilon, neighbours=relation.value)
    if method is not None:
        plans = [plan for plan in plans if plan.method == method]
    if not plans:
        names = " or ".join(map(repr, AUDITED))
        raise ValueError(f"method must be {names} for an audit of these contrasts")
    plan = min(plans, key=lambda plan: plan.expected_error)
    for part in plan.parts:
        if part.unaudited is not None:
            raise ValueError(part.unaudited)
    return plan
