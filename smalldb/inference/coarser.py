"""What was measured near to a question: in words, and as bounds from groups of categories and rules."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from queries import Column, Domain, Workload
from queries.arrays import Booleans, Floats
from queries.expressions import quote
from smalldb.inference.cells_asked import Told, joined
from smalldb.inference.questions import MAX_CELLS, Question, Term
from smalldb.mechanisms.known_pairs import NOT_MEASURED
from smalldb.mechanisms.measurement import Dependence, Marginal, MeasuredPart, Offsets
from smalldb.mechanisms.measurement_list import Measurements

MOST_GROUPS = 12  # that are listed of a column
MOST_TABLES = 3  # that are listed of those near to a question
MOST = 3  # tables: the more there are, the wider what holds of all of them at once


def tables_named(
    measurements: Measurements, told: Sequence[Told], columns: Collection[int]
) -> tuple[str, ...]:
    """Name the tables and contrasts that were combined: those of most of the columns of a question first."""
    found = [measurements[one.number].of[number] for one in told for number in one.parts]
    found.sort(key=lambda part: (-len({*part.columns} & {*columns}), len(part.columns)))
    return tuple(dict.fromkeys(_named(measurements, part) for part in found))


def coarser(measurements: Measurements, term: Term) -> str:
    """Say which tables of the columns of a term were measured, and at which groups."""
    if not measurements:
        return "this release measured nothing: its mechanism draws a whole table"
    names = [measurements.domain.names[c] for c in term.columns]
    tables = [
        part
        for each in measurements
        for part in each.of
        if isinstance(part, Marginal) and {*term.columns} <= {*part.columns}
    ]
    if not tables:
        if len(names) == 1:
            return f"{names[0]} was not measured at these categories"
        return f"{' and '.join(names)} were not measured together"
    distinct = list(dict.fromkeys(tables))
    said = " and ".join(_named(measurements, part) for part in distinct[:MOST_TABLES])
    return f"measured only: {said}"


def widened(measurements: Measurements, term: Term) -> str | None:
    """Return a term with its condition widened to measured groups; None: there is no such question."""
    parts = dict.fromkeys(part for each in measurements for part in each.of if isinstance(part, Marginal))
    around = (part for part in parts if {*term.columns} <= {*part.columns})
    return next((offer for part in around if (offer := _offer(measurements, term, part))), None)


def otherwise(measurements: Measurements, columns: Sequence[int]) -> str:
    """Say what would answer a question of another kind about some columns, if anything does."""
    names = {measurements.domain.names[c] for c in columns}
    apart = [
        pair.columns
        for pair in measurements.pairs()
        if pair.known == NOT_MEASURED and names.issuperset(pair.columns)
    ]
    if apart:
        told = " and ".join(apart[0])
        return f"{told} were not measured together, so this release does not answer it"
    return (
        "several tables give an interval for any other quantity: smalldb tables draws them from the public "
        "files, at no cost of privacy"
    )


def _named(measurements: Measurements, part: MeasuredPart) -> str:
    """Name a table with the groups of its columns, or a contrast."""
    names = measurements.domain.names
    if isinstance(part, Offsets):
        return f"means in the bins of {names[part.columns[0]]}"
    if not isinstance(part, Marginal):
        kind = "parity"
        if isinstance(part, Dependence):
            kind = "distance from the start" if part.of_start else "dependence"
        return f"{kind} of {', '.join(names[c] for c in part.columns)}" if part.columns else "number of rows"
    told = []
    for c, own in zip(part.columns, part.groups, strict=True):
        if max(own) + 1 == len(own):
            told.append(names[c])
        elif max(own) == 0:
            told.append(f"{names[c]} (all in one group)")
        else:
            told.append(f"{names[c]} ({' / '.join(_groups(measurements, c, own))})")
    return " x ".join(told)


def _groups(measurements: Measurements, column: int, groups: Sequence[int]) -> list[str]:
    """Tell the groups of a column, each by the ends of a run in order, or by its categories."""
    own = measurements.domain.columns[column]
    found, rest = [], []
    for group in dict.fromkeys(groups):  # by their first category
        codes = [code for code, one in enumerate(groups) if one == group]
        if len(codes) > 3 and 2 * len(codes) > len(groups):
            rest.append("all others")
        elif own.ordered and len(codes) > 2 and codes == list(range(codes[0], codes[-1] + 1)):
            found.append(f"{own.labels[codes[0]]} ... {own.labels[codes[-1]]}")
        else:
            found.append(" or ".join(own.labels[code] for code in codes))
    found += rest
    more = len(found) - MOST_GROUPS
    return found if more <= 0 else [*found[:MOST_GROUPS], f"{more} more"]


def _offer(measurements: Measurements, term: Term, part: Marginal) -> str | None:
    """Return the term with its condition widened to measured groups; None: there is no such question."""
    if term.condition is None or len(term.columns) != 2:
        return None
    domain = measurements.domain
    asked = term.text[: term.text.rindex(term.condition)].rstrip()
    for axis, c in enumerate(term.columns):
        along = term.rows.any(axis=1 - axis)
        if along.all() or not (term.rows == np.expand_dims(along, 1 - axis)).all():
            continue
        groups = np.asarray(part.groups[part.columns.index(c)])
        wide = np.isin(groups, groups[along])
        if wide.all() or (wide == along).all():
            continue
        other = part.groups[part.columns.index(term.columns[1 - axis])]
        numerator = np.moveaxis(term.numerator, axis, 0)[np.flatnonzero(along)[0]]
        classes = np.unique(numerator, return_inverse=True)[1].ravel()
        if len(np.unique(joined(classes, other)[0])) < int(classes.max()) + 1:
            continue
        return f"{asked} {_condition(domain.columns[c], wide)}"
    return None


def _condition(column: Column, held: Booleans) -> str:
    """Write a condition on one column: a range in its order, or its categories."""
    codes, cuts = np.flatnonzero(held), [str(cut) for cut in column.cuts]
    first, last = int(codes[0]), int(codes[-1])
    starts = cuts or ([*column.labels[1:]] if column.ordered else [])  # of all categories but the first
    if starts and last - first + 1 == len(codes) and last <= len(starts):
        ends = [f"{column.name}>={starts[first - 1]}"] if first else []
        ends += [f"{column.name}<{starts[last]}"] if last < len(starts) else []
        if ends:
            return " & ".join(end if quote(column.name) == column.name else f"`{end}`" for end in ends)
    labels = ", ".join(column.labels[code] for code in codes)
    return f"{quote(column.name)} in ({labels})"


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
