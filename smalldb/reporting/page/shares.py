"""How often each category of each column stands in a table, and which of these shares a bound covers."""

import re
from dataclasses import dataclass

import numpy as np

from queries import Column, Rows, Workload
from queries.arrays import Codes, Floats, Integers
from queries.rows import tabulated
from smalldb.marginals.estimate.packed_pairs import cramers_v

SHORT = 18  # characters of a label that stands beside its share


@dataclass(frozen=True, slots=True)
class Marginal:
    """A column, the labels of its categories, and the share of rows in each."""

    column: str  # its name, or "Attributes" where yes/no columns stand together
    labels: tuple[str, ...]  # of its categories, or the yes/no columns
    # from 0 to 1, one for each label; those of yes/no columns together do not add up to 1
    shares: tuple[float, ...]


def marginals(rows: Rows, together: bool = False) -> list[Marginal]:
    """Return the marginals of the columns."""
    domain, (codes, n) = rows.domain, _unpacked(rows)
    counts = [tabulated(domain, codes, rows.counts, (c,)) for c in range(len(domain.sizes))]
    if together and domain.binary:
        return [Marginal("Attributes", domain.attributes, tuple(int(yes) / n for _, yes in counts))]
    return [
        Marginal(column.name, labels_of(column), tuple((found / n).tolist()))
        for column, found in zip(domain.columns, counts, strict=True)
    ]


def labels_of(column: Column) -> tuple[str, ...]:
    """Return the labels of a column's categories; of bins, where they are long, without the column's name.

    >>> from smalldb.schema import Column, Cuts
    >>> labels_of(Column("income of the household", Cuts([100, 200], 0, 999)).universe)
    ('...<100', '100<=...<200', '...>=200')
    """
    if not column.cuts or max(map(len, column.labels)) <= SHORT:
        return column.labels
    named = re.compile(f"(^|<=){re.escape(column.name)}(?=<|>=)")
    return tuple(named.sub(r"\1...", label) for label in column.labels)


def association(rows: Rows, columns: int) -> Floats:
    """Return Cramer's V of each two of the first columns, shape (columns, columns); see `cramers_v`."""
    domain, (codes, n) = rows.domain, _unpacked(rows)
    found = np.eye(columns)
    for a in range(columns):
        for b in range(a):
            shape = domain.sizes[a], domain.sizes[b]
            table = tabulated(domain, codes, rows.counts, (a, b)).reshape(shape)
            found[a, b] = found[b, a] = cramers_v(table / n)
    return found


def uncovered(workload: Workload) -> list[tuple[int, ...]]:
    """Return the categories of columns whose share the workload does not ask for, up to sign and constant.

    What bounds the error of every query of the workload bounds that of the other shares, and of no more.
    """
    domain = workload.domain
    whole = {block.columns for block in workload.cells}
    asked: list[set[int]] = [set() for _ in domain.sizes]
    for query in workload.listed:
        columns = query.columns(domain)
        if len(columns) == 1:
            asked[columns[0]].update(_asked(query.over_columns(domain), query.denominator))
    left = [{*range(k)} - asked[c] for c, k in enumerate(domain.sizes)]
    return [() if (c,) in whole else tuple(sorted(codes)) for c, codes in enumerate(left)]


def pairs_covered(workload: Workload) -> bool:
    """Tell whether a workload of yes/no columns asks of each two of them for the rows with both."""
    domain = workload.domain
    both = {
        query.attributes
        for query in workload.listed
        if query.denominator == 1 and query.weights == (0, 0, 0, 1)
    }
    both |= {block.columns for block in workload.cells if len(block.columns) == 2}
    return len(both) == len(domain.sizes) * (len(domain.sizes) - 1) // 2


def _asked(values: Integers, denominator: int) -> list[int]:
    """Return the categories that stand out: a query is one number elsewhere, and all of 1 apart there."""
    found = []
    for code, value in enumerate(values.tolist()):
        others = {*np.delete(values, code).tolist()}
        if len(others) == 1 and abs(value - others.pop()) == denominator:
            found.append(code)
    return found


def _unpacked(rows: Rows) -> tuple[Codes, int]:
    return np.asfortranarray(rows.codes()), rows.n
