"""What of a table has no place in a schema, which rules its rows break, and where; for the curator."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from queries.arrays import Integers
from queries.broken import broken
from smalldb.schema.kinds import Binned, Ranged
from smalldb.schema.mapping import Schema
from smalldb.schema.pieces import Piece
from smalldb.schema.schema_columns import UNKNOWN

SHOWN = 5  # rows that are named


@final
@dataclass(frozen=True, slots=True, repr=False)
class Check:
    """What of a table fits a schema. Confidential: it is computed from the data.

    Attributes
    ----------
    schema
        The schema.
    rows
        How many rows there are.
    gaps, unknown
        By column: fields that are gaps, and those that have no place; counts.
    beyond
        By column: values below and above its range, counts; None: it has no range.
    outer
        By column: values before the first cut, and from the last one on, counts; None: it has no cuts.
    ruled_out
        Rows that `valid` rules out, of those whose fields all have places.
    broken
        By the number of a rule, from 1: how many of these break it; only of rules that some row breaks.
    first
        The first rows with something to mend, from 1 below the names, blank lines not counted; by column for
        a field that is refused, and by the number of a rule.
    """

    schema: Schema
    rows: int
    gaps: tuple[int, ...]
    unknown: tuple[int, ...]
    beyond: tuple[tuple[int, int] | None, ...]
    outer: tuple[tuple[int, int] | None, ...]
    ruled_out: int
    broken: Mapping[int, int]
    first: Mapping[str | int, Sequence[int]]

    def __repr__(self) -> str:
        return "<Check: computed from the data>"

    @property
    def fits(self) -> bool:
        """Whether the table would be taken."""
        refused = (gaps and not c.missing for gaps, c in zip(self.gaps, self.schema.columns, strict=True))
        return not (any(self.unknown) or self.ruled_out or any(refused))


def check_table(schema: Schema, pieces: Iterable[Piece]) -> Check:
    """Count what has no place in a schema, of a table that comes in pieces (see `Schema.count`).

    Raises
    ------
    DataError
        A field that is no single value: names its column.
    """
    width, rows, ruled_out = len(schema.columns), 0, 0
    gaps, unknown = np.zeros((2, width), dtype=np.int64)
    beyond, outer = np.zeros((2, width, 2), dtype=np.int64)
    many: Counter[int] = Counter()
    first: dict[str | int, list[int]] = {}
    lost = np.array([[column.kind.size for column in schema.columns]])
    absent = np.array([[not column.missing for column in schema.columns]])
    domain = schema.domain

    def note(key: str | int, found: Integers) -> None:
        known = first.setdefault(key, [])
        known += (rows + 1 + found[: SHOWN - len(known)]).tolist()

    for fields, _ in pieces:
        found = np.stack([column.found(fields[c]) for c, column in enumerate(schema.columns)], axis=1)
        gaps += (found == lost).sum(axis=0)
        unknown += (found == UNKNOWN).sum(axis=0)
        beyond += [column.beyond(fields[c]) or (0, 0) for c, column in enumerate(schema.columns)]
        outer += np.stack([(found == 0).sum(axis=0), (found == lost - 1).sum(axis=0)], axis=1)
        refused = (found == UNKNOWN) | ((found == lost) & absent)
        for c in np.flatnonzero(refused.any(axis=0)).tolist():
            note(schema.names[c], np.flatnonzero(refused[:, c]))
        placed = np.flatnonzero(~refused.any(axis=1))
        outside = placed[~domain.contains(found[placed])]
        ruled_out += len(outside)
        for number, which in broken(domain.valid, domain.find, domain.sizes, found[outside]).items():
            many[number] += int(which.sum())
            note(number, outside[which])
        rows += len(found)
    return Check(
        schema,
        rows,
        tuple(gaps.tolist()),
        tuple(unknown.tolist()),
        _of(Ranged, schema, beyond),
        _of(Binned, schema, outer),
        ruled_out,
        many,
        first,
    )


def _of(
    kind: type[Ranged] | type[Binned], schema: Schema, counts: Integers
) -> tuple[tuple[int, int] | None, ...]:
    """Return the pairs of counts of columns of a kind, shape (columns, 2), and None of others."""
    return tuple(
        (int(low), int(high)) if isinstance(column.kind, kind) else None
        for column, (low, high) in zip(schema.columns, counts.tolist(), strict=True)
    )
