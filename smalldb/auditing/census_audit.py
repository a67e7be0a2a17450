"""The census: its loss from integer scores alone, but for the normalisers."""

from collections.abc import Sequence
from concurrent.futures import Executor
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from queries import Workload
from smalldb.auditing.loss import Audit
from smalldb.counting.databases import Span, shown, spans
from smalldb.counting.tabulating import DIGITS, Instance, blocks, instance_of, tabulated
from smalldb.exact.enclosures import Real
from smalldb.files.checkpoints import Checkpoint, Folder, finished, identity
from smalldb.planning import Neighbours


class Found(NamedTuple):
    """What the pairs of neighbours in a span lose."""

    pairs: int  # how many were compared
    widest: int  # the largest difference of two differences of scores
    worst: float  # the largest loss, by floats
    # (loss, likely, other, outcome) of those near it: positions of the two databases and of the
    # candidate; of those that are exactly equal, the first
    near: list[tuple[float, int, int, int]]


def audit_census(
    workload: Workload,
    epsilon: Fraction,
    rows: int,
    candidates: str | None,
    n: int,
    relation: Neighbours,
    progress: bool,
    executor: Executor | None = None,
    checkpoint: Folder | None = None,
) -> Audit:
    """Return the worst loss of the census, from integer scores."""
    # For neighbours with scores s and s', the log ratio of a candidate is rate (s' - s) + ln Z' - ln Z.
    # So its extremes are those of integers, and only the two ln Z are not rational.
    instance = instance_of(workload, epsilon, rows, candidates, n, relation)
    try:
        return _audit(instance, progress, executor, checkpoint)
    finally:
        tabulated.cache_clear()


def _audit(instance: Instance, progress: bool, executor: Executor | None, checkpoint: Folder | None) -> Audit:
    tables, _, small, scores, _, _, near, ln_z, _, _ = tabulated(instance)
    parts = spans(len(tables))
    kept = None
    if checkpoint is not None:
        described = (instance.workload.matrix(), instance.workload.denominator, instance.epsilon)
        others = (instance.rows, instance.base, instance.n, instance.relation.value, parts)
        run = identity("audit of the census", *described, *others)
        kept = Checkpoint(checkpoint, run, unpack=_unpack)
    look = partial(_look, instance)
    found = dict(shown(finished(look, parts, executor=executor, threads=1, checkpoint=kept), parts, progress))
    ordered = [found[position] for position in range(len(parts))]

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


def _look(instance: Instance, span: Span) -> Found:
    """Compare the databases of a span with their neighbours."""
    tables = tabulated(instance)
    scores, least, floats, near, law = (
        tables.scores,
        tables.least,
        tables.floats,
        tables.near,
        tables.ln_z.law,
    )
    rate = float(instance.rate)
    worst, widest, pairs = 0.0, 0, 0  # the probabilities of a law add up to 1, so no largest loss is below 0
    found: dict[tuple[int, int, int], tuple[float, int, int, int]] = {}
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
                found.setdefault(same, (float(losses[i]), *where, int(ends[i])))
    return Found(pairs, widest, worst, [each for each in found.values() if each[0] >= worst - near])


def _unpack(packed: Sequence[Any]) -> Found:
    pairs, widest, worst, near = packed
    return Found(pairs, widest, worst, [(loss, *positions) for loss, *positions in near])
