"""The data of a release before they are read: known by their columns alone, and read once or twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, final

import numpy as np

from queries import Domain, Rows
from queries.arrays import Integers, pd
from queries.frames import as_frame, in_library_of, rows_of, universe_of, without_index
from smalldb.exact.bits import BitSource
from smalldb.files.inputs import rereadable
from smalldb.mechanisms import Measurement, Offsets
from smalldb.schema import Schema
from smalldb.schema.bin_shapes import BinMeans
from smalldb.schema.counting_sql import counting_inside
from smalldb.schema.fields import Piece
from smalldb.schema.file_format import USUAL, FileFormat, agreed
from smalldb.schema.linked_rows import Linked, check_tables, columns_of, read_linked
from smalldb.schema.readers.registry import has_lines, reader_of
from smalldb.schema.reading import OF_RELATED, OpenSchema
from smalldb.schema.related_schema import RelatedSchema
from smalldb.schema.table_readers import check_fits, chosen, read_columns, read_csv, read_domain, read_table


@final
@dataclass(frozen=True, slots=True, repr=False)
class Source:
    """A table of yes/no columns, or of any columns that a schema describes."""

    table: str | pd.DataFrame | Rows  # the path of a file, a table of pandas, or counted rows
    domain: Domain  # the universe of its rows
    schema: Schema | None = None  # what its columns hold; None: codes of the domain
    # the released columns in the order of the table; of JSON lines in the schema's
    names: tuple[str, ...] = ()
    # what is to be learned from the data; `schema` and `domain` hold stand-ins until then
    learns: OpenSchema | None = None
    original: Any = None  # the table of any library that was given: the synthetic one is of the same library
    counts: str | None = None  # of a file: the column that says how often each row occurs; None: once
    file: FileFormat = USUAL  # how a file is written
    inside: bool = False  # a database counts by bins: where numbers lie in them is not read

    @property
    def has_values(self) -> bool:
        """Whether the values themselves are read, of which a schema knows the bins."""
        return self.schema is not None and not self.inside and not isinstance(self.table, Rows)

    @property
    def n(self) -> int | None:
        """The number of rows, where it is known before they are read."""
        if isinstance(self.table, str):
            return None
        return self.table.n if isinstance(self.table, Rows) else len(self.table)

    @property
    def origin(self) -> Any:
        """The table that was given: a start must be another one."""
        return self.table if self.original is None else self.original

    @property
    def queries(self) -> str | None:
        """The queries that the schema states, if it does."""
        return None if self.schema is None else self.schema.queries

    @property
    def measure_first(self) -> tuple[str, ...]:
        """The tables that the schema wants to be measured first."""
        return () if self.schema is None else self.schema.measure_first

    @property
    def described(self) -> Schema | Domain:
        """What says how rows are: the schema, if there is one."""
        return self.domain if self.schema is None else self.schema

    def with_finer(self, released: Mapping[str, Sequence[int]], variances: Mapping[str, float]) -> Source:
        """Return the source whose schema has the released counts of finer bins, by column."""
        if self.schema is None:
            return self
        columns = tuple(
            replace(column, finer=column.finer.released(released[column.name], variances[column.name]))
            if column.finer and column.name in released
            else column
            for column in self.schema.columns
        )
        return replace(self, schema=replace(self.schema, columns=columns))

    def read(
        self, progress: bool = False, watch: Callable[[Iterator[Piece]], Iterator[Piece]] = iter
    ) -> Rows:
        """Count its rows; with a schema, `watch` is given the pieces on their way, and hands them on."""
        if isinstance(self.table, str):
            if self.schema is None:
                return read_csv(self.table, self.domain, self.file)
            return read_table(self.table, self.schema, self.counts, progress, self.file, watch)
        if self.schema is None or isinstance(self.table, Rows):
            return rows_of(self.table, self.domain)
        return self.schema.count(watch(self.schema.mended(self.schema.pieces(self.table))))


@final
@dataclass(frozen=True, slots=True, repr=False)
class LinkedSource:
    """Two related tables by their names, or a long one, of any library or of files: as `Source`."""

    original: Any
    schema: RelatedSchema
    learns: ClassVar[None] = None
    queries: ClassVar[None] = None
    measure_first: ClassVar[tuple[str, ...]] = ()
    n: ClassVar[None] = None  # known when the tables are read
    has_values: ClassVar[bool] = False  # no means of bins, and no finer ones
    file: ClassVar[FileFormat] = USUAL

    @property
    def described(self) -> RelatedSchema:
        """What says how rows are."""
        return self.schema

    @property
    def origin(self) -> Any:
        """The tables that were given."""
        return self.original

    def read(self, progress: bool = False, watch: object = None) -> Linked:
        """Read the tables, each child with its parent; errors as `read_linked`."""
        return read_linked(self.original, self.schema)

    def written(
        self, parents: Integers, children: Integers, of: Integers, middle: bool, bits: BitSource
    ) -> Any:
        """Write released codes as tables like those given; keys are 1, 2, ..., rows in random order."""
        schema, whole, original = self.schema, self.schema.whole, self.original
        if whole is not None:
            codes = np.empty((len(of), len(whole.columns)), dtype=np.int64)
            for part, values in ((schema.parents, parents[of]), (schema.children, children)):
                codes[:, [whole.names.index(name) for name in part.names]] = values
            tables = {"": whole.decode(codes, middle=middle, rng=bits)}
            ids, columns, original = whole.ids, {"": whole}, {"": original}
        else:
            both = zip(schema.tables.items(), (parents, children), strict=True)
            tables = {name: part.decode(values, middle=middle, rng=bits) for (name, part), values in both}
            ids, columns = schema.children.ids, schema.tables
        (link,) = (column for column in ids if column.name == schema.link)
        [*tables.values()][-1][schema.link] = link.holding(np.minimum(of, 1), (of + 1).tolist())
        outputs = {}
        for name, table in tables.items():
            order = columns_of(original[name], columns[name])
            kept = [*table.columns] if order is None else _sorted([*table.columns], order)
            outputs[name] = in_library_of(table[kept], original[name])
        return outputs if whole is None else outputs[""]


def table_source(
    data: object, domain: Domain | None = None, schema: Schema | OpenSchema | RelatedSchema | None = None
) -> Source | LinkedSource:
    """Find out what a table of any library holds, or counted rows; with a schema also files, from names."""
    several = isinstance(data, Mapping)
    if isinstance(schema, RelatedSchema):
        if several and schema.whole is not None:
            raise ValueError("person in a schema is for one table: give it alone")
        if not several and schema.whole is None:
            raise ValueError(OF_RELATED)
        check_tables(data, schema)
        return LinkedSource(data, schema)
    if several:
        raise ValueError("several tables need a schema with unit and [tables.NAME]: docs/related-tables.md")
    if isinstance(data, str | os.PathLike) and schema is not None:
        return file_source(os.fspath(data), schema)
    table = data if isinstance(data, Rows) else as_frame(data)
    if schema is None:
        if not isinstance(table, Rows):
            table = without_index(table, domain)
        return Source(table, universe_of(table, domain), original=data)
    known, learns = _known(schema)
    if not isinstance(table, Rows):
        known.chosen([*table.columns])
        names = _in_order(known, [*table.columns])
        return Source(table, known.domain, known, names, learns, data)
    if any(column.finer for column in known.columns):
        raise TypeError("finer bins are counted from a table: give the table, not its counted rows")
    if learns is not None:
        raise TypeError("categories are learned from a table: give the table, not its counted rows")
    return Source(table, universe_of(table, known.domain), known, _in_order(known, []))


def file_source(
    path: str,
    schema: Schema | OpenSchema | None = None,
    *,
    columns: Sequence[str] | None = None,
    valid: str | None = None,
    counts: str | None = None,
    file: FileFormat = USUAL,
    inside: bool = False,
) -> Source:
    """Find out what a file holds, from the names of its columns alone; "-" is standard input."""
    check_fits(path, file)
    path = rereadable(path, has_lines(path))
    if schema is None:
        return Source(path, read_domain(path, columns, valid, file), file=file)
    known, learns = _known(schema)
    form = agreed(file, known.file)
    names = [*known.names, *([] if counts is None else [counts])]
    if not reader_of(path).headed:  # each row must have these names: nothing is looked at
        with open(path, "rb"):
            pass  # the usual error where it cannot be read
    else:
        names = list(read_columns(path, file=form, known=[*names, *known.unread]))
    chosen(path, names, known, counts)
    if inside:
        query, counts = counting_inside(path, known, form.query)
        form = replace(form, query=query)
    return Source(
        path, known.domain, known, _in_order(known, names), learns, counts=counts, file=form, inside=inside
    )


def with_measured_means(schema: Schema, measurements: Sequence[Measurement], total: float) -> Schema:
    """Return a schema whose columns have what was released of where numbers lie in their bins."""
    means = {
        part.columns[0]: BinMeans(tuple(values.tolist()), sqrt(each.noise.variance()), total)
        for each in measurements
        for part, values in each.tables()
        if isinstance(part, Offsets)
    }
    columns = tuple(replace(column, means=means.get(c)) for c, column in enumerate(schema.columns))
    return replace(schema, columns=columns) if means else schema


def _known(schema: Schema | OpenSchema) -> tuple[Schema, OpenSchema | None]:
    """Return what is known of a schema, and the schema itself where it is to learn the rest."""
    return (schema.outline, schema) if isinstance(schema, OpenSchema) else (schema, None)


def _in_order(schema: Schema, order: Sequence[object]) -> tuple[str, ...]:
    """Return the columns that are released, in the order of a table; those that it lacks are the last."""
    return tuple(_sorted([column.name for column in schema.released], order))


def _sorted(names: Sequence[str], order: Sequence[object]) -> list[str]:
    """Return names in the order of others; those that are not there are the last."""
    positions = {str(name).strip(): i for i, name in enumerate(order)}
    return sorted(names, key=lambda name: positions.get(name, len(positions)))
