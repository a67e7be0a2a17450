"""Columns whose categories a release shall learn from the data, for a stated share of its privacy."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import final

from smalldb.schema.asked import ColumnToLearn, filled
from smalldb.schema.determined import Book, with_book
from smalldb.schema.drafting import schema_text
from smalldb.schema.kinds import Categories, Cuts
from smalldb.schema.mapping import Schema
from smalldb.schema.parsing import parsed

Values = Mapping[str, Sequence[str]]
"""By column, the values or the cuts that were learned, as texts."""


@final
@dataclass(frozen=True, slots=True)
class Learned:
    """What the categories of a column cost, and how many there are; public."""

    column: str  # its name
    what: str  # "values" or "cuts"
    # of learning them; exact. The delta of cuts is None: they are pure.
    epsilon: Fraction
    delta: Fraction | None = None


@final
@dataclass(frozen=True, slots=True)
class OpenSchema:
    """A schema some of whose columns are to learn their categories: ``values = "learn"``, ``cuts = "learn"``.

    Parameters
    ----------
    text
        Of the TOML file.
    folder
        Where files that it names are looked for; they are read once, here.

    Raises
    ------
    ValueError
        As `smalldb.schema.parse_schema`; shares that leave nothing to the release; a rule about a column that
        learns.
    """

    text: str
    folder: str = ""
    asked: tuple[ColumnToLearn, ...] = field(init=False)
    # the schema with a stand-in for what is learned: its names, gaps and what it ignores are true
    outline: Schema = field(init=False, repr=False)

    def __post_init__(self) -> None:
        outline, asked = parsed(self.text, folder=self.folder)
        spent = sum((each.share for each in asked), Fraction(0))
        if spent >= 1:
            raise ValueError("share: the shares of all columns that learn must add up to less than 1")
        ruled = {outline.names[c] for rule in outline.domain.rules for c in rule.columns}
        for each in asked:  # a row that keeps the rule now must keep it with the categories learned
            if each.column in ruled:
                raise ValueError(
                    f"valid: no rule can speak of column {each.column!r}, whose categories are learned"
                )
        object.__setattr__(self, "outline", outline)
        object.__setattr__(self, "asked", asked)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.outline.names

    @property
    def _books(self) -> dict[str, Book]:
        return {column.name: column.determines for column in self.outline.columns if column.determines}

    def learned(self, categories: Values) -> Schema:
        """Return the schema with the learned categories; errors as `smalldb.schema.parse_schema`."""
        return parsed(self.text, categories, books=self._books)[0]

    def written(self, found: Schema) -> str:
        """Write the TOML text with the categories that a schema has `learned`; as public as they are."""
        given = tomllib.loads(self.text, parse_float=Decimal)
        for name, book in self._books.items():
            given["columns"][name] = with_book(given["columns"][name], book)
        for asked in self.asked:
            kind = found.columns[found.names.index(asked.column)].kind
            categories = kind.listed if isinstance(kind, Categories) else map(Decimal, kind.cuts_told)
            given["columns"][asked.column] = filled(given["columns"][asked.column], asked.what, [*categories])
        return schema_text(given)


def bins_of(asked: ColumnToLearn, outline: Schema) -> Cuts:
    """Return the kind of a column that learns cuts: its range and the digits of its numbers."""
    kind = outline.columns[outline.names.index(asked.column)].kind
    if not isinstance(kind, Cuts):
        raise TypeError(f"column {asked.column!r} has no cuts")
    return kind
