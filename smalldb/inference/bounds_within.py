"""Bounds of what was not measured itself: from groups of categories, and from rules between columns."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from queries import Domain, Workload
from queries.arrays import Booleans, Floats
from smalldb.inference.questions import MAX_CELLS, Question, Term
from smalldb.mechanisms.measurement import Marginal
from smalldb.mechanisms.measurement_list import Measurements

MOST = 3  # tables: the more there are, the wider what holds of all of them at once


def below_and_above(measurements: Measurements, term: Term) -> Iterator[tuple[Term, Term]]:
    """Yield what the groups of tables say of a term: one that is never above it, and one never below it.

    In each group of cells of a table, a row counts as the least, and as the most, of what it may count there
    by the rules. Where whoever has a cause of death is dead, ``cause | age>=80`` is never above
    ``death | age>=80``.
    """
    tables = dict.fromkeys(part for each in measurements for part in each.of if isinstance(part, Marginal))
    tied = [{*rule.columns} for rule in measurements.domain.rules]
    tried = 0
    for part in tables:
        apart = {*term.columns} - {*part.columns}
        if {*term.columns}.isdisjoint(part.columns) or tried == MOST:
            continue
        if not all(any(c in own and own & {*part.columns} for own in tied) for c in apart):
            continue
        found = _bounded(measurements.domain, term, part)
        if found is not None:
            tried += 1
            yield found


def _bounded(domain: Domain, term: Term, part: Marginal) -> tuple[Term, Term] | None:
    """Return both terms; None: the table tells nothing."""
    columns = tuple(sorted({*term.columns, *part.columns}))
    shape = [domain.sizes[c] for c in columns]
    if prod(shape) > MAX_CELLS:
        return None

    def laid(array: Floats | Booleans) -> np.ndarray:
        sizes = iter(array.shape)
        own = array.reshape([next(sizes) if c in term.columns else 1 for c in columns])
        return np.broadcast_to(own, shape)

    groups = np.zeros((1,) * len(columns), dtype=np.int64)
    for axis, c in enumerate(columns):
        if c in part.columns:
            own = np.asarray(part.groups[part.columns.index(c)])
            along = own.reshape([-1 if i == axis else 1 for i in range(len(columns))])
            groups = groups * (int(own.max()) + 1) + along
    groups = np.broadcast_to(groups, shape)
    rows = laid(term.rows)
    counting = rows & domain.allowed(columns)
    ends = term.binned or (term.numerator, term.numerator)
    found = []
    for sign, end in zip((1, -1), ends, strict=True):
        least = np.full(prod(part.shape), np.inf)
        np.minimum.at(least, groups[counting], sign * laid(end)[counting])
        found.append(np.where(counting, sign * np.where(np.isinf(least), 0.0, least)[groups], 0.0))
    if (np.stack(found)[:, counting] == np.array(term.bounds)[:, None]).all():
        return None
    low, high = (
        replace(term, columns=columns, numerator=each, rows=rows, binned=None, gaps=None) for each in found
    )
    return low, high


def is_query(question: Question, workload: Workload) -> bool:
    """Tell whether a question is a query of a workload, up to sign and an added constant.

    It is one share of all rows then, of what the query counts. What bounds the error of every query of the
    workload bounds that of the question, too.
    """
    term, domain = question.terms[0], workload.domain
    allowed = domain.allowed(term.columns)
    asked = term.numerator[allowed]
    if len(question.terms) > 1 or term.counted:
        return False
    if not term.rows[allowed].all() or not np.isin(asked, (0.0, 1.0)).all():
        return False
    held = int(asked.sum())
    if held in (1, asked.size - 1) and term.columns in {block.columns for block in workload.cells}:
        return True
    for query in workload.listed:
        if query.columns(domain) == term.columns:
            own = query.over_columns(domain)[allowed] / query.denominator
            if min(np.ptp(own - asked), np.ptp(own + asked)) == 0:
                return True
    return False
