"""What was measured near to a question: in words, and as bounds from groups of categories and rules."""

from collections.abc import Collection, Sequence

import numpy as np

from queries import Column, Workload
from queries.arrays import Booleans
from queries.expressions import quote
from smalldb.inference.evidence import Evidence, joined
from smalldb.inference.questions import Question, Term
from smalldb.mechanisms.known_pairs import NOT_MEASURED
from smalldb.mechanisms.measurement import Dependence, Marginal, MeasuredPart, Offsets
from smalldb.mechanisms.measurement_list import Measurements

MOST_GROUPS = 12  # that are listed of a column
MOST_TABLES = 3  # that are listed of those near to a question


def tables_named(
    measurements: Measurements, evidence: Sequence[Evidence], columns: Collection[int]
) -> tuple[str, ...]:
    """Name the tables and contrasts that were combined: those of most of the columns of a question first."""
    parts = [measurements[one.number].of[number] for one in evidence for number in one.parts]
    parts.sort(key=lambda part: (-len({*part.columns} & {*columns}), len(part.columns)))
    return tuple(dict.fromkeys(_named(measurements, part) for part in parts))


def coarser(measurements: Measurements, term: Term) -> str:
    """Say which tables of the columns of a term were measured, and at which groups."""
    if not measurements:
        return "this release measured nothing: its mechanism draws a whole table"
    names = [measurements.domain.names[c] for c in term.columns]
    tables = _around(measurements, term)
    if not tables:
        if len(names) == 1:
            return f"{names[0]} was not measured at these categories"
        return f"{' and '.join(names)} were not measured together"
    return f"measured only: {' and '.join(_named(measurements, part) for part in tables[:MOST_TABLES])}"


def _around(measurements: Measurements, term: Term) -> list[Marginal]:
    """Return the distinct tables that have all columns of a term."""
    return [part for part in dict.fromkeys(measurements.marginals) if {*term.columns} <= {*part.columns}]


def widened(measurements: Measurements, term: Term) -> str | None:
    """Return a term with its condition widened to measured groups; None: there is no such question."""
    offers = (_offer(measurements, term, part) for part in _around(measurements, term))
    return next(filter(None, offers), None)


def otherwise(measurements: Measurements, columns: Sequence[int]) -> str:
    """Say what would answer a question of another kind about some columns, if anything does."""
    names = {measurements.domain.names[c] for c in columns}
    apart = [
        pair.columns
        for pair in measurements.pairs()
        if pair.known == NOT_MEASURED and names.issuperset(pair.columns)
    ]
    if apart:
        together = " and ".join(apart[0])
        return f"{together} were not measured together, so this release does not answer it"
    return (
        "several tables give an interval for any other quantity: smalldb tables draws them from the public "
        "files, at no cost of privacy"
    )


def _named(measurements: Measurements, part: MeasuredPart) -> str:
    """Name a table with the groups of its columns, or a contrast."""
    domain, names = measurements.domain, measurements.domain.names
    if isinstance(part, Offsets):
        return f"means in the bins of {names[part.columns[0]]}"
    if not isinstance(part, Marginal):
        kind = "parity"
        if isinstance(part, Dependence):
            kind = "distance from the start" if part.of_start else "dependence"
        return f"{kind} of {', '.join(names[c] for c in part.columns)}" if part.columns else "number of rows"
    texts = []
    for c, groups in zip(part.columns, part.groups, strict=True):
        if max(groups) + 1 == len(groups):
            texts.append(names[c])
        elif max(groups) == 0:
            texts.append(f"{names[c]} (all in one group)")
        else:
            texts.append(f"{names[c]} ({' / '.join(_groups(domain.columns[c], groups))})")
    return " x ".join(texts)


def _groups(column: Column, groups: Sequence[int]) -> list[str]:
    """Tell the groups of a column, each by the ends of a run in order, or by its categories."""
    texts, rest = [], []
    for group in dict.fromkeys(groups):  # by their first category
        codes = [code for code, of_code in enumerate(groups) if of_code == group]
        if len(codes) > 3 and 2 * len(codes) > len(groups):
            rest.append("all others")
        elif column.ordered and len(codes) > 2 and codes == list(range(codes[0], codes[-1] + 1)):
            texts.append(f"{column.labels[codes[0]]} ... {column.labels[codes[-1]]}")
        else:
            texts.append(" or ".join(column.labels[code] for code in codes))
    texts += rest
    more = len(texts) - MOST_GROUPS
    return texts if more <= 0 else [*texts[:MOST_GROUPS], f"{more} more"]


def _offer(measurements: Measurements, term: Term, part: Marginal) -> str | None:
    """Return the term with its condition widened to measured groups; None: there is no such question."""
    if term.condition is None or len(term.columns) != 2:
        return None
    domain = measurements.domain
    quantity = term.text[: term.text.rindex(term.condition)].rstrip()
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
        return f"{quantity} {_condition(domain.columns[c], wide)}"
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


def queries_of(question: Question, workload: Workload) -> int | None:
    """Count the queries whose sum a question is, up to sign and constant; None: it is no such sum."""
    term, domain = question.terms[0], workload.domain
    allowed = domain.allowed(term.columns)
    wanted = term.numerator[allowed]
    if len(question.terms) > 1 or term.counted:
        return None
    if not term.rows[allowed].all() or not np.isin(wanted, (0.0, 1.0)).all():
        return None
    for query in workload.listed:
        if query.columns(domain) == term.columns:
            weights = query.over_columns(domain)[allowed] / query.denominator
            if min(np.ptp(weights - wanted), np.ptp(weights + wanted)) == 0:
                return 1
    held, blocks = int(wanted.sum()), {block.columns for block in workload.cells}
    return min(held, wanted.size - held) if term.columns in blocks else None
