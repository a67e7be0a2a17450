"""What of a table a schema does not cover, which rules its rows break, and where; for the curator."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, final

import numpy as np

from queries.arrays import Integers
from queries.rule_tables import rule_texts
from smalldb.schema.derived import Derived
from smalldb.schema.fields import Fields, Piece
from smalldb.schema.kinds import Binned, Comparable, Cuts
from smalldb.schema.mapping import Schema
from smalldb.schema.schema_columns import UNKNOWN, Column

SHOWN = 5  # rows that are named


@final
@dataclass(frozen=True, slots=True, repr=False)
class Check:
    """What of a table fits a schema. Confidential: it is computed from the data."""

    schema: Schema
    rows: int  # how many rows there are
    # by column, what there is of "gaps", fields that are "not_covered", values "below_range" and
    # "above_range", "before_cuts" (the first one) and "behind_cuts" (from the last one on), and "fractions"
    # that are read as whole numbers: those that its kind has
    counts: Mapping[str, Mapping[str, int]]
    ruled_out: int  # rows that `valid` rules out, of those whose fields it all covers
    refused: int  # those of them that are refused: `breaks` does not say what becomes of them
    # by the number of a rule, from 1: how many of these break it; only of rules that some row breaks
    broken: Mapping[int, int]
    # the first rows with something to mend, from 1 below the names, blank lines not counted; by column for a
    # field that is refused, and by the number of a rule
    first: Mapping[str | int, Sequence[int]]
    # those of the schema, and behind them those that a release computes: for these no row is refused. The
    # rows in which one is another are among the `broken`, with numbers behind those of rules.
    columns: tuple[Column, ...]

    def __repr__(self) -> str:
        return "<Check: computed from the data>"

    @property
    def fits(self) -> bool:
        """Whether the table would be taken."""
        unfit = [self.counts[column.name]["not_covered"] for column in self.schema.columns]
        unfit += [self.counts[column.name]["gaps"] for column in self.schema.columns if not column.missing]
        return not self.refused and not any(unfit)


def check_table(schema: Schema, pieces: Iterable[Piece], derived: Sequence[Derived] = ()) -> Check:
    """Count what a schema does not cover, of a table that comes in pieces of `schema.with_derived`."""
    rows, ruled_out, refused_rows = 0, 0, 0
    computed = tuple(each.column.name for each in derived)
    whole, nothing = schema.with_derived(computed), np.zeros(0, dtype=np.int64)
    counts = {c.name: Counter(_counted(c, nothing, nothing, c.name in computed)) for c in whole.columns}
    many: Counter[int] = Counter()
    first: dict[str | int, list[int]] = {}
    known = dict(zip(whole.names, whole.columns, strict=True))
    first_computed = len(rule_texts(schema.domain.valid)) + 1  # behind the numbers of rules

    def note(key: str | int, where: Integers) -> None:
        noted = first.setdefault(key, [])
        noted += (rows + 1 + where[: SHOWN - len(noted)]).tolist()

    for fields, _ in pieces:
        codes = np.stack([column.encode(fields[c]) for c, column in enumerate(whole.columns)], axis=1)
        for c, column in enumerate(whole.columns):
            counts[column.name].update(_counted(column, fields[c], codes[:, c], column.name in computed))
        refused = whole.refused(codes)
        for c in np.flatnonzero(refused.any(axis=0)).tolist():
            note(whole.names[c], np.flatnonzero(refused[:, c]))
        codes = codes[:, : len(schema.columns)]
        broken = schema.broken(fields, codes)
        for number, each in enumerate(derived, first_computed):
            others = np.flatnonzero(each.broken(dict(zip(whole.names, fields, strict=False)), known))
            if len(others):
                many[number] += len(others)
                note(number, others)
        ruled_out += len(reduce(np.union1d, broken.values(), nothing))
        mended, left = schema.mended_codes(fields, codes)
        left_over = schema.broken(fields, mended) if schema.breaking else broken
        still = reduce(np.union1d, left_over.values(), nothing).astype(np.int64)
        refused_rows += int((~left[still]).sum())
        for number, those in broken.items():
            many[number] += len(those)
            note(number, those)
        rows += len(codes)
    return Check(schema, rows, counts, ruled_out, refused_rows, many, first, whole.columns)


def _counted(column: Column, fields: Fields, codes: Integers, computed: bool) -> dict[str, int]:
    """Count what `Check.counts` has of a column; nobody stated a range or cuts of one that is computed."""
    kind, last = column.kind, column.kind.size
    numbers: dict[str, Any] = {"gaps": (codes == last).sum(), "not_covered": (codes == UNKNOWN).sum()}
    if isinstance(kind, Comparable) and not computed:
        sides = column.numbered(fields, kind.side)
        numbers |= {"below_range": (sides < 0).sum(), "above_range": (sides > 0).sum()}
    if isinstance(kind, Binned) and not computed:
        numbers |= {"before_cuts": (codes == 0).sum(), "behind_cuts": (codes == last - 1).sum()}
    if isinstance(kind, Cuts) and not kind.decimals:
        numbers["fractions"] = column.numbered(fields, kind.splits).sum()
    return {name: int(count) for name, count in numbers.items()}
