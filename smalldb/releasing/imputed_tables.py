"""The tables of one release: draws of the confidential table, written as the synthetic one is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from queries import Domain
from queries.frames import as_frame, as_given
from queries.mixing import splitmix64
from smalldb.exact.bits import BitSource, bit_source
from smalldb.inference.imputation import Mixing, impute, released_total
from smalldb.mechanisms import Measurements
from smalldb.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """How rows of categories are written: as the synthetic table, from the schema or the universe."""

    domain: Domain
    schema: Schema | None
    like: Any

    def table(self, places: npt.NDArray[np.integer], seed: int) -> Any:
        """Write rows; values inside bins are drawn by the seed."""
        like = as_frame(self.like)
        if self.schema is None:
            return as_given(self.domain.decode(places, like=like), self.like)
        frame = self.schema.decode(places, rng=bit_source(seed))
        return as_given(frame[[*map(str, like.columns)]], self.like)


class Tables(Sequence[Any]):
    """
    Several tables from one payment; each is like the synthetic table, and has as many rows as the data.

    Kept as categories, and written when they are asked for, so many of them take little room.

    Attributes
    ----------
    mixing
        How well the chains had mixed that they were drawn by.
    """

    __slots__ = ("_drawn", "_seeds", "_spelling", "mixing")

    def __init__(
        self,
        spelling: Spelling,
        drawn: Sequence[npt.NDArray[np.integer]],
        seeds: Sequence[int],
        mixing: Mixing,
    ) -> None:
        self._spelling, self._drawn, self._seeds, self.mixing = spelling, drawn, seeds, mixing

    def __repr__(self) -> str:
        return f"<Tables: {len(self)}; R-hat {self.mixing.r_hat:.3f}>"

    def __len__(self) -> int:
        return len(self._drawn)

    @overload
    def __getitem__(self, place: int) -> Any: ...

    @overload
    def __getitem__(self, place: slice) -> "Tables": ...

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return Tables(self._spelling, self._drawn[place], self._seeds[place], self.mixing)
        return self._spelling.table(self._drawn[place], self._seeds[place])


def imputed(
    measurements: Measurements,
    n: int | None,
    near: npt.NDArray[np.integer],
    spelling: Spelling,
    *,
    count: int,
    rng: int | BitSource | None,
    pseudo_rows: float,
    progress: bool,
) -> Tables:
    """Draw so many tables of n rows: see `Release.tables`; `near` are the synthetic rows."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError("the number of tables must be a whole number of at least 1")
    if not isinstance(pseudo_rows, int | float) or not 0 < pseudo_rows < inf:
        raise ValueError("pseudo_rows must be a number above 0")
    if not len(measurements):
        raise ValueError(
            "this release has no measurements, which several tables are drawn from: marginals have them"
        )
    total = released_total(measurements) if n is None else n
    if total < 1 or not len(near):
        raise ValueError("no row was released, so no table can be drawn")
    seed = bit_source(rng).bits(64)
    mixing, tables = impute(
        spelling.domain, measurements, total, near, seed, pseudo_rows=pseudo_rows, progress=progress
    )
    kind = np.min_scalar_type(max(spelling.domain.sizes))
    drawn = [table.astype(kind) for table in islice(tables, count)]
    return Tables(spelling, drawn, splitmix64(count, seed ^ 1).tolist(), mixing)
