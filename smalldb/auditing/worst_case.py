"""`audit`: the exact worst privacy loss of each of our mechanisms, or of one of the caller's."""

from collections.abc import Hashable, Mapping
from concurrent.futures import Executor
from fractions import Fraction
from functools import partial
from math import perm
from typing import Any

import numpy as np

from queries import Domain, QueryClass, Workload
from queries.arrays import Integers
from smalldb.auditing.census_audit import audit_census
from smalldb.auditing.laws import CustomMechanism, audit_laws
from smalldb.auditing.loss import Audit
from smalldb.counting.databases import MOST_DEEP, Counts
from smalldb.exact.numbers import Number, positive, whole
from smalldb.files.checkpoints import Folder, check_running, identity
from smalldb.planning import Neighbours, relation_of, workload_of
from smalldb.selection import selection_law

EPSILONS = Fraction(1, 10**20), Fraction(10**9)  # beyond, 60 digits would not tell the losses
MOST_EXPONENT = 20_000  # epsilon n of a selection: beyond, its law is not told to 60 digits


def audit(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int,
    epsilon: Number | None = None,
    rows: int | None = None,
    neighbours: str = "replace-one",
    mechanism: str | CustomMechanism = "census",
    candidates: str | None = None,
    method: str | None = None,
    k: int | None = None,
    executor: Executor | None = None,
    checkpoint: Folder | None = None,
    progress: bool = False,
) -> Audit:
    """
    Return the exact worst privacy loss over all databases and all their neighbours.

    Parameters
    ----------
    domain, queries
        The universe and the workload.
    n
        Rows of the databases: all of n rows under replace-one, all of up to n under add-remove.
    epsilon
        Exact, from 1e-20 to 1e9; of the mechanism that is audited. A mechanism of the caller's need not have
        one.
    rows, candidates
        Of the census: the size of the small databases, and the base measure.
    neighbours
        "replace-one" or "add-remove".
    mechanism
        "census": the small database that is released, by whatever way it is drawn. "select": the query of
        the workload with the largest count, selected by `method` and `k` as `smalldb.select` does it. Or a
        function of a database, as counts over the cells, that returns outcome -> probability: a
        Fraction or int, a float (taken as the fraction that it is), or a pair (low, high) of Fractions that
        encloses it.
    method, k
        Of a selection: "exponential" (the default) of one.
    executor
        Does the parts of the work: any `concurrent.futures.Executor`. The result is the same.
    checkpoint
        A folder of this audit alone, in which finished parts are kept (see `census`); not for a mechanism of
        the caller's, which cannot be told from another one.
    progress
        Show a bar on stderr, in databases.

    Raises
    ------
    ValueError, TypeError
        An argument out of range, an instance beyond the budget (says the largest n that would do), or
        probabilities that do not add up to 1.

    Examples
    --------
    >>> found = audit(Domain(["a", "b"]), "conjunctions:2", rows=2, epsilon=1, n=6)
    >>> round(found.worst_loss, 12), found.cap
    (0.781994281264, Fraction(1, 1))
    """
    if mechanism == "contrasts":
        raise ValueError(
            "the loss of contrasts is proved and not computed: audit mechanism 'census' or 'select'"
        )
    if mechanism not in ("census", "select") and not callable(mechanism):
        raise ValueError(
            f"mechanism must be 'census', 'select' or a function of a database, not {mechanism!r}"
        )
    relation = relation_of(neighbours)
    n = whole(n, "n")
    known = None if epsilon is None else positive(epsilon, "epsilon")
    workload = workload_of(queries, domain)
    if mechanism != "select" and (k is not None or method is not None):
        raise ValueError("method and k are for mechanism 'select'")
    if mechanism != "census" and (rows is not None or candidates is not None):
        raise ValueError("rows and candidates are for the census")
    check_running(executor, checkpoint)
    if not isinstance(mechanism, str):
        if checkpoint is not None:
            raise ValueError("checkpoint is for the census or a selection")
        return audit_laws(mechanism, domain.size, known, n, relation, progress, executor=executor)
    if known is None:
        raise ValueError("epsilon must be given for an audit of the census or of a selection")
    if not EPSILONS[0] <= known <= EPSILONS[1]:
        raise ValueError("epsilon must be from 1e-20 to 1e9 for an audit")
    if mechanism == "census":
        if rows is None:
            raise ValueError("rows must be given for an audit of the census")
        return audit_census(
            workload, known, whole(rows, "rows"), candidates, n, relation, progress, executor, checkpoint
        )
    if known * n > MOST_EXPONENT:
        raise ValueError(f"epsilon x n must be at most {MOST_EXPONENT} for an audit of a selection")
    chosen = "exponential" if method is None else method, 1 if k is None else whole(k, "k")
    size = min(workload.size, MOST_DEEP + 1)  # more are refused by the law
    cost, outcomes = _cost_of_law(*chosen, size), perm(size, chosen[1])
    matrix, unit = workload.matrix(), workload.denominator
    if not len(matrix):
        raise ValueError("queries: nothing is left to select from after reduction")
    law = partial(_selection, matrix, unit, known, relation, *chosen)
    kept = None
    if checkpoint is not None:
        kept = checkpoint, identity("audit of a selection", matrix, unit, known, relation.value, chosen)
    return audit_laws(law, domain.size, known, n, relation, progress, cost, outcomes, executor, kept)


def _cost_of_law(method: str, k: int, size: int) -> int:
    """Return the steps that the law of a selection takes, as measured: some 20 microseconds each."""
    draws = {
        "exponential": 30 * size,
        "permute-and-flip": 4 * size**2,
        "noisy-max": size**3 + 20 * size**2,
        "top-k": perm(size, k) * size + 30 * size,
    }
    return draws.get(method, 0) + 10 * perm(size, k)


def _selection(
    matrix: Integers,
    unit: int,
    epsilon: Fraction,
    relation: Neighbours,
    method: str,
    k: int,
    table: Counts,
) -> Mapping[Hashable, Any]:
    """Return the law of the query that is selected by its count; all counts grow with a row that is added."""
    law: Mapping[Any, Any] = selection_law(
        (matrix @ np.array(table)).tolist(),
        epsilon=epsilon,
        sensitivity=unit,
        monotone=relation is Neighbours.ADD_REMOVE,
        method=method,
        k=k,
    )
    return law
