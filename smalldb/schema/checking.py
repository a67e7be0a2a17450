"""How many fields of a table have no place in a schema; for the curator."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from smalldb.schema.columns import UNKNOWN
from smalldb.schema.mapping import Schema
from smalldb.schema.pieces import Piece


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
    ruled_out
        Rows that `valid` rules out, of those whose fields all have places.
    """

    schema: Schema
    rows: int
    gaps: tuple[int, ...]
    unknown: tuple[int, ...]
    ruled_out: int

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
    for fields, _ in pieces:
        found = np.stack([column.found(fields[c]) for c, column in enumerate(schema.columns)], axis=1)
        rows += len(found)
        lost = np.array([[column.kind.size for column in schema.columns]])
        absent = np.array([[not column.missing for column in schema.columns]])
        gaps += (found == lost).sum(axis=0)
        unknown += (found == UNKNOWN).sum(axis=0)
        placed = found[~((found == UNKNOWN) | ((found == lost) & absent)).any(axis=1)]
        ruled_out += int((~schema.domain.contains(placed)).sum())
    return Check(schema, rows, tuple(gaps.tolist()), tuple(unknown.tolist()), ruled_out)
