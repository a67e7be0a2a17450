"""How far two related tables of a release are from the data; for the curator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from queries import DataError, Domain, Rows
from queries.arrays import Integers
from queries.late import pd
from smalldb.marginals.families import Families
from smalldb.releasing.distances import Distances, distances
from smalldb.schema.linked_rows import Linked, check_tables, read_linked
from smalldb.schema.related_schema import RelatedSchema

GROUPS = ("parents", "number", "children", "joined")


@final
@dataclass(frozen=True, slots=True, repr=False)
class RelatedEvaluation:
    """Tables of one and two columns, real beside synthetic. Confidential: it is computed from the data."""

    # by group, the mean total variation distance of its tables, from 0 to 1: those of two columns of parents
    # and their number of children ("parents"); that number ("number"); two columns of children ("children");
    # a column of parents or the number with one of children, over children ("joined")
    tvd: Mapping[str, float]
    # the same of the baseline: the product of the real columns' own shares, to which no noise was added
    independent: Mapping[str, float]
    # 1 less the largest difference of the shares of parents with at most so many children, over all numbers
    # (Kolmogorov and Smirnov)
    number_similarity: float
    rows: Mapping[str, tuple[int, int]]  # of each table, in the data and in what was released

    def __repr__(self) -> str:
        return "<RelatedEvaluation: computed from the data>"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each group: its distance, and that of the baseline."""
        return pd.DataFrame(
            {
                "tables": GROUPS,
                "tvd": [self.tvd[group] for group in GROUPS],
                "independent": [self.independent[group] for group in GROUPS],
            }
        )


def evaluate_related(real: Any, synthetic: Any, schema: RelatedSchema) -> RelatedEvaluation:
    """Compare released tables with the data."""
    ours, theirs = (_read(tables, schema) for tables in (real, synthetic))
    measured = schema.domains
    first, second = (_parents(found, measured[schema.unit], schema.most) for found in (ours, theirs))
    parents, number = distances(first, second, 2), len(first.domain.sizes) - 1
    singles = distances(first, second, 1)
    here, there = (_walks(found, measured[schema.child], schema.most) for found in (ours, theirs))
    walks = distances(here, there, 2)
    inner = [columns[0] > number for columns in walks.tables]
    joined = [columns[0] <= number < columns[1] for columns in walks.tables]
    chosen: dict[str, tuple[Distances, Any]] = {
        "parents": (parents, slice(None)),
        "number": (singles, [number]),
        "children": (walks, inner) if any(inner) else (distances(here, there, 1), [-1]),
        "joined": (walks, joined),
    }
    counts = [np.cumsum(rows.table((number,))) / rows.n for rows in (first, second)]
    return RelatedEvaluation(
        {group: float(found.tvd[some].mean()) for group, (found, some) in chosen.items()},
        {group: float(found.independent[some].mean()) for group, (found, some) in chosen.items()},
        1 - float(np.abs(counts[0] - counts[1]).max()),
        {
            schema.unit: (len(ours.parents), len(theirs.parents)),
            schema.child: (len(ours.children), len(theirs.children)),
        },
    )


def _read(tables: Any, schema: RelatedSchema) -> Linked:
    if isinstance(tables, Linked):
        found = tables
    else:
        check_tables(tables, schema)
        found = read_linked(tables, schema)
    if not len(found.parents) or not len(found.children):
        raise DataError("a table has no rows")
    return found


def _numbered(found: Linked, most: int) -> Integers:
    """Return the codes of parents, and their number of children as one column more."""
    return Families(found.parents, found.children, found.of).with_counts(most)


def _parents(found: Linked, domain: Domain, most: int) -> Rows:
    return Rows.from_codes(domain, _numbered(found, most))


def _walks(found: Linked, domain: Domain, most: int) -> Rows:
    return Rows.from_codes(domain, np.column_stack([_numbered(found, most)[found.of], found.children]))
