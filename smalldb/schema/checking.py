"""What of a table a schema does not cover, which rules its rows break, and where; for the curator."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np

from queries.arrays import Integers
from queries.rule_tables import rule_texts
from smalldb.schema.derived import Derived
from smalldb.schema.fields import Fields, Piece
from smalldb.schema.kinds import Binned, Cuts, Ranged
from smalldb.schema.mapping import Schema
from smalldb.schema.schema_columns import UNKNOWN

SHOWN = 5  # rows that are named


@final
@dataclass(frozen=True, slots=True, repr=False)
class Check:
    """What of a table fits a schema. Confidential: it is computed from the data."""

    schema: Schema
    rows: int  # how many rows there are
    # by column: fields that are gaps, and those that it does not cover; counts
    gaps: tuple[int, ...]
    unknown: tuple[int, ...]
    # by column: values below and above its range, counts; None: nobody stated a range
    beyond: tuple[tuple[int, int] | None, ...]
    # by column: values before the first cut, and from the last one on, counts; None: nobody stated cuts
    outer: tuple[tuple[int, int] | None, ...]
    # by column: fractions that are read as whole numbers, counts; None: its numbers are not read so
    fractions: tuple[int | None, ...]
    ruled_out: int  # rows that `valid` rules out, of those whose fields it all covers
    refused: int  # those of them that are refused: `breaks` does not say what becomes of them
    # by the number of a rule, from 1: how many of these break it; only of rules that some row breaks
    broken: Mapping[int, int]
    # the first rows with something to mend, from 1 below the names, blank lines not counted; by column for a
    # field that is refused, and by the number of a rule
    first: Mapping[str | int, Sequence[int]]
    # columns that a release computes: for them no row is refused. The rows in which one is another are among
    # the `broken`, with numbers behind those of rules.
    computed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "<Check: computed from the data>"

    @property
    def fits(self) -> bool:
        """Whether the table would be taken."""
        columns = zip(self.schema.columns, self.gaps, self.unknown, strict=True)
        read = [each for each in columns if each[0].name not in self.computed]
        return not (self.refused or any(unknown or (gaps and not c.missing) for c, gaps, unknown in read))


def check_table(schema: Schema, pieces: Iterable[Piece], derived: Sequence[Derived] = ()) -> Check:
    """Count what a schema does not cover, of a table that comes in pieces (see `Schema.count`)."""
    width, rows, ruled_out, refused_rows = len(schema.columns), 0, 0, 0
    gaps, unknown = np.zeros((2, width), dtype=np.int64)
    beyond, outer = np.zeros((2, width, 2), dtype=np.int64)
    fractions = np.zeros(width, dtype=np.int64)
    many: Counter[int] = Counter()
    first: dict[str | int, list[int]] = {}
    lost = np.array([[column.kind.size for column in schema.columns]])
    absent = np.array([[not column.missing for column in schema.columns]])
    computed = tuple(each.column.name for each in derived)

    def note(key: str | int, where: Integers) -> None:
        known = first.setdefault(key, [])
        known += (rows + 1 + where[: SHOWN - len(known)]).tolist()

    for fields, _ in pieces:
        codes = np.stack([column.found(fields[c]) for c, column in enumerate(schema.columns)], axis=1)
        gaps += (codes == lost).sum(axis=0)
        unknown += (codes == UNKNOWN).sum(axis=0)
        beyond += [column.beyond(fields[c]) or (0, 0) for c, column in enumerate(schema.columns)]
        fractions += [column.fractions(fields[c]) or 0 for c, column in enumerate(schema.columns)]
        outer += np.stack([(codes == 0).sum(axis=0), (codes == lost - 1).sum(axis=0)], axis=1)
        refused = (codes == UNKNOWN) | ((codes == lost) & absent)
        for c in np.flatnonzero(refused.any(axis=0)).tolist():
            note(schema.names[c], np.flatnonzero(refused[:, c]))
        broken = schema.broken(fields, codes)
        for number, others in _miscomputed(schema, derived, fields).items():
            many[number] += len(others)
            note(number, others)
        none = np.zeros(0, dtype=np.int64)
        ruled_out += len(reduce(np.union1d, broken.values(), none))
        mended, left = schema.mended_codes(fields, codes)
        left_over = schema.broken(fields, mended) if schema.breaking else broken
        still = reduce(np.union1d, left_over.values(), none).astype(np.int64)
        refused_rows += int((~left[still]).sum())
        for number, those in broken.items():
            many[number] += len(those)
            note(number, those)
        rows += len(codes)
    return Check(
        schema,
        rows,
        tuple(gaps.tolist()),
        tuple(unknown.tolist()),
        _of(Ranged, schema, beyond, computed),
        _of(Binned, schema, outer, computed),
        tuple(
            count if isinstance(column.kind, Cuts) and not column.kind.decimals else None
            for column, count in zip(schema.columns, fractions.tolist(), strict=True)
        ),
        ruled_out,
        refused_rows,
        many,
        first,
        computed,
    )


def _of(
    kind: type[Ranged] | type[Binned], schema: Schema, counts: Integers, computed: Sequence[str]
) -> tuple[tuple[int, int] | None, ...]:
    """Return the pairs of counts of measured columns of a kind, shape (columns, 2), and None of others."""
    return tuple(
        (int(low), int(high)) if isinstance(column.kind, kind) and column.name not in computed else None
        for column, (low, high) in zip(schema.columns, counts.tolist(), strict=True)
    )


def _miscomputed(schema: Schema, derived: Sequence[Derived], fields: Sequence[Fields]) -> dict[int, Integers]:
    """Return the rows in which computed columns are others, by numbers behind those of rules."""
    named = dict(zip(schema.names, fields, strict=False))
    known = dict(zip(schema.names, schema.columns, strict=True))
    first = len(rule_texts(schema.domain.valid)) + 1
    rows = {first + i: np.flatnonzero(each.broken(named, known)) for i, each in enumerate(derived)}
    return {number: which for number, which in rows.items() if len(which)}
