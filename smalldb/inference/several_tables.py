"""Several tables of one release, as analysts have them: in memory, or read from the files of a folder."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from queries import Domain
from queries.arrays import pd, splitmix64
from queries.frames import as_frame, in_library_of, rows_of
from smalldb.exact.bits import bit_source
from smalldb.inference.assumptions import APART, named
from smalldb.mechanisms.known_pairs import NOT_MEASURED, KnownPair
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.schema import Schema
from smalldb.schema.reading import read_schema

READ = {".csv": lambda path: pd.read_csv(path), ".parquet": lambda path: pd.read_parquet(path)}
HOW, PUBLIC, SCHEMA = "tables.json", "measurements.json", "schema.toml"  # beside the tables of a folder


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """How rows of categories are written: as the synthetic table, from the schema or the universe."""

    domain: Domain  # the universe whose codes the rows are
    schema: Schema | None  # decodes them into the columns of the table; None: the universe does
    # a table of pandas or its kin: the columns, their order and dtypes, and the library of what is written
    like: Any

    def table(self, codes: npt.NDArray[np.integer], seed: int | None) -> Any:
        """Write rows; values inside bins are drawn by the seed, or are their middles."""
        like = as_frame(self.like)
        if self.schema is None:
            return in_library_of(self.domain.decode(codes, like=like), self.like)
        middle = seed is None
        frame = self.schema.decode(codes, middle=middle, rng=None if middle else bit_source(seed))
        return in_library_of(frame[[*map(str, like.columns)]], self.like)


@dataclass(frozen=True, slots=True, eq=False)
class Refitted:
    """What several tables follow from: a model that was fitted anew for each."""

    model_tables: int  # of several columns that the model has
    model_contrasts: int
    # pairs of tables that it has no room for: as if not measured together
    left_out: tuple[tuple[str, str], ...]
    rare: dict[str, tuple[str, ...]]  # categories hardly more than noise, whose intervals are too narrow


class Tables(Sequence[Any]):
    """
    Several tables from one payment; each is like the synthetic table, and has as many rows as the data.

    Kept as categories, and written when they are asked for, so many of them take little room. They are an
    `Assuming` of `inference`, too.

    Parameters
    ----------
    spelling
        How a table is written.
    drawn
        Of each table, its categories, shape (rows, C).
    seeds
        Of each table, what values inside bins are drawn by.
    made_by, unmeasured, grouped
        As below.
    """

    __slots__ = ("_drawn", "_files", "_seeds", "_spelling", "grouped", "made_by", "unmeasured")

    def __init__(
        self,
        spelling: Spelling,
        drawn: Sequence[npt.NDArray[np.integer]],
        seeds: Sequence[int],
        made_by: Refitted,
        unmeasured: Sequence[tuple[str, str]],
        grouped: Sequence[KnownPair],
        files: Sequence[Any] = (),
    ) -> None:
        self._files = files  # the tables as they were read; empty: they are written from their categories
        self._spelling, self._drawn, self._seeds = spelling, drawn, seeds
        # the pairs that were measured in groups of their categories alone: within these independent likewise
        # the pairs of columns that were never measured together: independent in the tables, given others
        # the `Refitted` that tells what they follow from
        self.made_by, self.unmeasured, self.grouped = made_by, tuple(unmeasured), tuple(grouped)

    def __repr__(self) -> str:
        pairs = comb(len(self._spelling.domain.sizes), 2)
        apart = f"{len(self.unmeasured)} of {pairs} pairs of columns not measured together"
        return f"<Tables: {len(self)}; {_origin(self.made_by)}; {apart}>"

    def __len__(self) -> int:
        return len(self._drawn)

    @classmethod
    def read(cls, folder: str | os.PathLike[str], schema: Schema | None = None) -> "Tables":
        """
        Read the tables of a folder that ``smalldb tables`` or ``generate --tables`` wrote: CSV or Parquet.

        Parameters
        ----------
        folder
            With the tables, ``tables.json`` and ``measurements.json``.
        schema
            What the columns hold, where the folder has no ``schema.toml``; None: yes/no columns.

        Raises
        ------
        OSError, ValueError
            It is no such folder; or the tables do not fit the schema, or are not those of the measurements.
        """
        place = Path(folder)
        how = json.loads((place / HOW).read_text(encoding="utf-8"))
        measurements = Measurements.read(os.fspath(place / PUBLIC))
        if schema is None and (place / SCHEMA).exists():
            schema = read_schema(place / SCHEMA)
        paths = sorted(path for path in place.glob("table-*") if path.suffix in READ)
        if not paths:
            raise ValueError(f"{os.fspath(folder)!r} has no tables of CSV or Parquet")
        files = [READ[path.suffix](path) for path in paths]
        domain = measurements.domain
        rows = rows_of(files[0], domain) if schema is None else schema.encode(files[0])
        if rows.domain.names != domain.names or rows.domain.sizes != domain.sizes:
            raise ValueError(f"{os.fspath(folder)!r}: the tables are not those of {PUBLIC}")
        first = np.repeat(rows.codes(), rows.counts, axis=0)
        left_out = tuple((a, b) for a, b in how["left_out"])
        rare = {name: tuple(labels) for name, labels in how["rare"].items()}
        made_by = Refitted(how["model_tables"], how["model_contrasts"], left_out, rare)
        spelling, pairs = Spelling(domain, schema, files[0]), assumed(measurements, left_out)
        return cls(spelling, [first] * len(files), range(len(files)), made_by, *pairs, files)

    def codes(self, number: int) -> npt.NDArray[np.integer]:
        """Return a table as codes of the universe's columns, shape (rows, C)."""
        return self._drawn[number]

    @overload
    def __getitem__(self, key: int) -> Any: ...

    @overload
    def __getitem__(self, key: slice) -> "Tables": ...

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            drawn, seeds, files = self._drawn[key], self._seeds[key], self._files[key]
            known = self.made_by, self.unmeasured, self.grouped
            return Tables(self._spelling, drawn, seeds, *known, files)
        if self._files:
            return self._files[key]
        return self._spelling.table(self._drawn[key], self._seeds[key])

    def redrawn(self) -> Any:
        """Write the first table with other values inside bins."""
        return self._spelling.table(self._drawn[0], self._seeds[0] ^ 1)

    def shuffled(self, name: str | None = None, groups: Sequence[int] = (), seed: int = 0) -> Any:
        """Write the first table with a column's rows moved, as `Assuming.shuffled` of `inference` says."""
        codes = self._drawn[0].copy()
        if name is not None:
            column = codes[:, self._spelling.domain.names.index(name)]
            column[:] = column[_shuffled_within(np.array(groups)[column], seed)]
        return self._spelling.table(codes, None)


def summary(made_by: Refitted, *measured: Measurements) -> tuple[dict[str, Any], str]:
    """Tell how tables were drawn, and what they assume: for `tables.json`, and in two lines."""
    unmeasured, known = list[tuple[str, str]](), set[str]()
    for each in measured:
        pairs, _ = assumed(each, made_by.left_out)
        unmeasured += [pair for pair in pairs if not {*pair} <= known]
        known = {*each.domain.names}
    rare = sum(map(len, made_by.rare.values()))
    text = _origin(made_by) + (f"; {rare} rare categories, see {HOW}" if rare else "")
    if unmeasured:
        text += f"\nassumed:   {len(unmeasured)} pairs of {APART.format(named(unmeasured))}; see {HOW}"
    return {**asdict(made_by), "unmeasured": unmeasured}, text


def _origin(made_by: Refitted) -> str:
    """Tell in some words how tables were drawn."""
    of = (
        f"{made_by.model_contrasts} contrasts"
        if made_by.model_contrasts
        else f"{made_by.model_tables} measured tables"
    )
    return f"from a model of {of}, fitted anew for each"


def assumed(
    measurements: Measurements, left_out: Sequence[tuple[str, str]]
) -> tuple[list[tuple[str, str]], list[KnownPair]]:
    """Return the pairs of columns that tables take as independent, and those known at groups alone."""
    pairs = measurements.pairs()
    unmeasured = [pair.columns for pair in pairs if pair.known == NOT_MEASURED or pair.columns in left_out]
    sizes = dict(zip(measurements.domain.names, measurements.domain.sizes, strict=True))
    grouped = [
        pair
        for pair in pairs
        if pair.columns not in unmeasured
        and all(
            any(len({*of_column}) < sizes[c] for c, of_column in zip(pair.columns, groups, strict=True))
            for groups in pair.groups
        )
    ]
    return unmeasured, grouped


def _shuffled_within(groups: npt.NDArray[np.integer], seed: int) -> npt.NDArray[np.integer]:
    """Return an order of rows that moves each only among those of its group, shape (rows,)."""
    order = np.empty(len(groups), dtype=np.int64)
    order[np.argsort(groups, kind="stable")] = np.lexsort((splitmix64(len(groups), seed), groups))
    return order
