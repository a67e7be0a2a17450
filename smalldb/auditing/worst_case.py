"""`audit`: the exact worst privacy loss of each of our mechanisms, or of one of the caller's."""

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from functools import partial
from math import perm
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from queries import Domain, QueryClass, Workload
from queries.arrays import Integers
from smalldb.auditing.laws import Audit, CustomMechanism, audit_laws, audited
from smalldb.counting.calibration import Calibration, calibrating
from smalldb.counting.databases import (
    DIGITS,
    MOST_DEEP,
    Histogram,
    Instance,
    Span,
    Tables,
    blocks,
    instance_of,
    shown,
    spans,
    tables_of,
    tabulated,
)
from smalldb.exact.enclosures import Real
from smalldb.exact.numbers import Number, positive, whole
from smalldb.files.checkpoints import Checkpoint, Folder, check_running, finished, identity
from smalldb.mechanisms import Neighbours, relation_of, workload_of
from smalldb.selection import selection_law

MOST_EXPONENT = 20_000  # epsilon n of a selection: beyond, its law is not told to 60 digits


class SpanLosses(NamedTuple):
    """What the pairs of neighbours in a span lose."""

    pairs: int  # how many were compared
    widest: int  # the largest difference of two differences of scores
    worst: float  # the largest loss, by floats
    # (loss, likely, other, outcome) of those near it: positions of the two databases and of the
    # candidate; of those that are exactly equal, the first
    near: list[tuple[float, int, int, int]]


def audit_census(
    instance: Instance, tabled: Tables, progress: bool, executor: Executor | None, checkpoint: Folder | None
) -> Audit:
    """Return the worst loss of the census, from integer scores."""
    # For neighbours with scores s and s', the log ratio of a candidate is rate (s' - s) + ln Z' - ln Z.
    # So its extremes are those of integers, and only the two ln Z are not rational.
    tables, _, small, scores, _, _, near, ln_z, _, _ = tabled
    parts = spans(len(tables))
    kept = None
    if checkpoint is not None:
        described = (instance.workload.matrix(), instance.workload.denominator, instance.epsilon)
        others = (instance.rows, instance.base, instance.n, instance.relation.value, parts)
        run = identity("audit of the census", *described, *others)
        kept = Checkpoint(checkpoint, run, unpack=_unpack)
    look = partial(_look, instance)
    results = finished(look, parts, executor=executor, threads=1, checkpoint=kept)
    ordered = [losses for _, losses in sorted(shown(results, parts, progress), key=itemgetter(0))]

    worst = max(each.worst for each in ordered)
    firsts: dict[tuple[int, int, int], tuple[int, int, int]] = {}
    for each in ordered:
        for loss, likely, other, end in each.near:
            if loss >= worst - near:
                up = int(scores[other, end] - scores[likely, end])
                firsts.setdefault((up, ln_z.law(likely), ln_z.law(other)), (likely, other, end))
    exact = {
        where: instance.rate * Real.of(up, DIGITS) + ln_z.of_law(other) - ln_z.of_law(likely)
        for (up, likely, other), where in firsts.items()
    }
    top = max(exact, key=lambda where: exact[where].high)
    widest = instance.rate * max(each.widest for each in ordered)
    unit = instance.rows * instance.workload.denominator
    return Audit(
        (Fraction(max(loss.low for loss in exact.values())), Fraction(exact[top].high)),
        (tables[top[0]], tables[top[1]], tuple(small[top[2]].tolist())),
        (widest, widest),
        instance.epsilon * (1 - Fraction(instance.relation is Neighbours.ADD_REMOVE, 2 * unit)),
        len(tables),
        sum(each.pairs for each in ordered),
    )


def _look(instance: Instance, span: Span) -> SpanLosses:
    """Compare the databases of a span with their neighbours."""
    tables = tabulated(instance)
    scores, least, floats = tables.scores, tables.least, tables.floats
    near, law = tables.near, tables.ln_z.law
    rate = float(instance.rate)
    worst, widest, pairs = 0.0, 0, 0  # the probabilities of a law add up to 1, so no largest loss is below 0
    firsts: dict[tuple[int, int, int], tuple[float, int, int, int]] = {}
    for here, there in blocks(tables, instance, span):
        differences = scores[there] - scores[here]
        highest, lowest = differences.argmax(axis=1), differences.argmin(axis=1)
        each = np.arange(len(there))
        widest = max(widest, int((differences[each, highest] - differences[each, lowest]).max()))
        pairs += len(there)
        for ends, likely, other in ((highest, here, there), (lowest, there, here)):
            up = scores[other, ends] - scores[likely, ends]
            losses = rate * (up + least[likely] - least[other]) + floats[other] - floats[likely]
            worst = max(worst, float(losses.max()))
            for i in np.flatnonzero(losses >= worst - near).tolist():
                where = int(likely[i]), int(other[i])
                same = int(up[i]), law(where[0]), law(where[1])
                firsts.setdefault(same, (float(losses[i]), *where, int(ends[i])))
    return SpanLosses(pairs, widest, worst, [each for each in firsts.values() if each[0] >= worst - near])


def _unpack(packed: Sequence[Any]) -> SpanLosses:
    pairs, widest, worst, near = packed
    return SpanLosses(pairs, widest, worst, [(loss, *positions) for loss, *positions in near])


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
    >>> worst = audit(Domain(["a", "b"]), "conjunctions:2", rows=2, epsilon=1, n=6)
    >>> round(worst.worst_loss, 12), worst.cap
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
    audited(known)
    if mechanism == "census":
        if rows is None:
            raise ValueError("rows must be given for an audit of the census")
        instance = instance_of(workload, known, whole(rows, "rows"), candidates, n, relation)
        with tables_of(instance) as tables:
            return audit_census(instance, tables, progress, executor, checkpoint)
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
    table: Histogram,
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


def calibrated(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int | None = None,
    epsilon: Number,
    rows: int,
    neighbours: str = "replace-one",
    candidates: str | None = None,
) -> Calibration:
    """
    Return the internal epsilon at which SmallDB loses at worst just the epsilon that is stated.

    At an internal epsilon e it loses at most e (Theorem 4.5), and less where the rows of the small database
    grow with n: one yes/no column with m = n loses .714 at e = 1. So it may be run at a larger one: at 1.556
    this column loses 1, and errs by 3/5 as much. The range of its loss grows, too: see `Calibration.range`.

    Parameters
    ----------
    domain, queries
        The universe and the workload.
    n
        Rows of the databases: all of n rows under replace-one, all of up to n under add-remove. None, under
        add-remove: databases of any number of rows, by the range of the score.
    epsilon
        What is to be lost; exact, from 1e-20 to 1e9.
    rows, candidates, neighbours
        As for `smalldb.audit`.

    Raises
    ------
    ValueError
        An argument out of range, or an instance that is too large (says the largest n that would do). One
        yes/no column whose `rows` are a multiple of n has a closed form, and may be of any size.

    Examples
    --------
    >>> calibration = calibrated(Domain(["a"]), "conjunctions:1", n=40, rows=40, epsilon=1)
    >>> float(calibration.internal), calibration.loss[1] <= 1
    (1.55637312, True)
    """
    relation, exact = relation_of(neighbours), audited(epsilon, "a calibration")
    if n is None and relation is Neighbours.REPLACE_ONE:
        raise ValueError("n must be given under replace-one: the loss is that of tables of n rows")
    known = None if n is None else whole(n, "n")
    m = whole(rows, "rows")
    return calibrating(workload_of(queries, domain), m, candidates, known, relation)(exact)
