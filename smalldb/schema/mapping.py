"""A schema: the public columns of a table, the universe that they make, and the way there and back."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
import pandas as pd

from queries import Domain, Rows, spec
from queries.domain import MAX_TABLE_ATTRIBUTES, Bits
from queries.expressions import parse, suggestion
from queries.frames import as_frame
from smalldb.schema.columns import Column
from smalldb.schema.pieces import CHUNK, Fields, Piece, distinct, read_counts, tally


@final
@dataclass(frozen=True, slots=True)
class Schema:
    """What the columns of a table can hold: public choices, made without a look at the data.

    Parameters
    ----------
    columns
        In the order in which a decoded table has them.
    valid
        Predicate over the attributes: which rows can exist, beside what the codings rule out by themselves.
    queries
        What a release shall answer well if nobody says otherwise, as `queries.spec` reads it.
    ignored
        Columns of the data that are left out; "*": all that the schema does not have.

    Attributes
    ----------
    domain
        The universe: the attributes of each column in turn.

    Raises
    ------
    ValueError
        No columns, a name twice, queries that cannot be read, more than 20 attributes where some settings of
        them cannot exist.
    """

    columns: tuple[Column, ...]
    valid: str | None = None
    queries: str | None = None
    ignored: tuple[str, ...] = ()
    domain: Domain = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "ignored", tuple(self.ignored))
        if not self.columns:
            raise ValueError("a schema needs at least one column")
        for name, times in Counter(self.names).items():
            if times > 1:
                raise ValueError(f"column {name!r} stands more than once")
            if name in self.ignored:
                raise ValueError(f"column {name!r} is described and ignored")
        if self.queries is not None:
            spec.parse(self.queries)
        object.__setattr__(self, "domain", self._domain())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def chosen(self, given: Sequence[str], counts: str | None = None) -> list[int]:
        """Tell where the schema's columns (then the one of counts) stand among the columns of a table.

        Raises
        ------
        ValueError
            The table lacks a column, or has one that is neither in the schema nor ignored.
        """
        stripped = [str(name).strip() for name in given]
        wanted = [*self.names, *([] if counts is None else [counts])]
        places, times = {name: i for i, name in enumerate(stripped)}, Counter(stripped)
        if counts in self.names:
            raise ValueError(f"column {counts!r} cannot hold counts: it is in the schema")
        for name in wanted:
            if name not in places:
                raise ValueError(f"the table has no column {name!r}{suggestion(name, stripped)}")
            if times[name] > 1:
                raise ValueError(f"the table has two columns {name!r}")
        if "*" not in self.ignored:
            known = {*wanted, *self.ignored}
            for name in stripped:
                if name not in known:
                    raise ValueError(
                        f"the schema has no column {name!r}{suggestion(name, self.names)}: "
                        "describe it, or list it under ignore"
                    )
        return [places[name] for name in wanted]

    def encode(self, frame: pd.DataFrame, counts: str | None = None) -> Rows:
        """Count the rows of a table.

        Parameters
        ----------
        frame
            Of pandas, or of a library whose tables have ``to_pandas()``.
        counts
            Column that says how often each row occurs; None: once.

        Raises
        ------
        ValueError, TypeError
            Other columns than the schema's (seen without looking at a value).
        DataError
            A field that its column gives no place, a row that `valid` rules out, a count that is none.
        """
        table = as_frame(frame)
        places = self.chosen(list(table.columns), counts)
        chunks = (table.iloc[i : i + CHUNK] for i in range(0, len(table), CHUNK))
        return self.count((([chunk.iloc[:, j] for j in places], None) for chunk in chunks), counts)

    def count(self, pieces: Iterable[Piece], counts: str | None = None) -> Rows:
        """Count the rows of a table that comes in pieces; memory grows with the distinct rows only.

        Parameters
        ----------
        pieces
            Each the schema's columns in their order, and how often each of their rows occurs.
        counts
            Name of one more column behind them, whose counts multiply these; None: there is none.

        Raises
        ------
        DataError
            As `encode`.
        """
        return tally(self.domain, (self._counted(fields, times, counts) for fields, times in pieces))

    def decode(self, bits: Bits) -> pd.DataFrame:
        """Write rows of attributes, shape (r, d), as a table: the schema's columns with their dtypes.

        A field is the middle of its bin, or its category; see the kinds of columns.

        Raises
        ------
        ValueError
            A row of attributes that cannot exist.
        """
        ends = np.cumsum([len(column.code.names) for column in self.columns])
        parts = np.split(bits, ends[:-1], axis=1)
        return pd.DataFrame(
            {column.name: column.decode(part) for column, part in zip(self.columns, parts, strict=True)}
        )

    def _counted(
        self, fields: Sequence[Fields], times: Sequence[int] | None, counts: str | None
    ) -> tuple[Bits, Sequence[int]]:
        chosen = [column.bits(part) for column, part in zip(self.columns, fields, strict=False)]
        bits = np.hstack(chosen)
        if counts is not None:
            stated = read_counts(fields[-1], counts)
            return bits, stated if times is None else [a * b for a, b in zip(stated, times, strict=True)]
        return distinct(bits) if times is None else (bits, times)

    def _domain(self) -> Domain:
        names = [name for column in self.columns for name in column.code.names]
        rules = [column.code.rule for column in self.columns if column.code.rule is not None]
        if self.valid is not None:
            parse(self.valid)
            rules.append(f"({self.valid})")
        if rules and len(names) > MAX_TABLE_ATTRIBUTES:
            raise ValueError(
                f"columns make {len(names)} attributes: at most {MAX_TABLE_ATTRIBUTES} where not every row "
                'can exist; use fewer cuts and categories, or coding = "bits" with 2, 4, 8, ... places'
            )
        return Domain(names, " & ".join(rules) or None)
