"""The tables of one release: draws of the confidential table, written as the synthetic one is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from queries import Domain
from queries.frames import as_frame, as_given
from queries.mixing import splitmix64
from smalldb.exact.bits import BitSource, bit_source
from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.parity_refits import LOUD, ParityRefits
from smalldb.marginals.refits import EMPTY, Refits
from smalldb.mechanisms import Marginal, Measurement, Measurements, Offsets, Parity
from smalldb.mechanisms.known_pairs import NOT_MEASURED, KnownPair
from smalldb.planning import Plan
from smalldb.schema import Schema

INSTEAD = "ask for shares and means instead (smalldb ask, release.ask)"
UNMEASURED = "this release has no measurements to draw tables from: release with mechanism='marginals'"


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
            return as_given(self.domain.decode(codes, like=like), self.like)
        middle = seed is None
        frame = self.schema.decode(codes, middle=middle, rng=None if middle else bit_source(seed))
        return as_given(frame[[*map(str, like.columns)]], self.like)


@dataclass(frozen=True, slots=True, eq=False)
class Refitted:
    """What several tables follow from: a model that was fitted anew for each."""

    model_tables: int  # of several columns that the model has
    model_contrasts: int
    left_out: tuple[
        tuple[str, str], ...
    ]  # pairs of tables that it has no room for: as if not measured together
    rare: dict[str, tuple[str, ...]]  # categories hardly more than noise, whose intervals are too narrow

    @classmethod
    def of(cls, refits: Refits | ParityRefits, domain: Domain) -> "Refitted":
        """Tell it by the names of columns and categories."""
        names = domain.names
        rare = {
            column.name: tuple(column.labels[code] for code in codes)
            for column, codes in zip(domain.columns, refits.rare(), strict=True)
            if codes
        }
        if isinstance(refits, ParityRefits):
            return cls(0, len(refits.spectrum.sets), (), rare)
        return cls(len(refits.inside), 0, tuple((names[a], names[b]) for a, b in refits.left_out), rare)


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

    __slots__ = ("_drawn", "_seeds", "_spelling", "grouped", "made_by", "unmeasured")

    def __init__(
        self,
        spelling: Spelling,
        drawn: Sequence[npt.NDArray[np.integer]],
        seeds: Sequence[int],
        made_by: Refitted,
        unmeasured: Sequence[tuple[str, str]],
        grouped: Sequence[KnownPair],
    ) -> None:
        self._spelling, self._drawn, self._seeds = spelling, drawn, seeds
        # the pairs that were measured in groups of their categories alone: within these independent likewise
        # the pairs of columns that were never measured together: independent in the tables, given others
        # the `Refitted` that tells what they follow from
        self.made_by, self.unmeasured, self.grouped = made_by, tuple(unmeasured), tuple(grouped)

    def __repr__(self) -> str:
        pairs = comb(len(self._spelling.domain.sizes), 2)
        apart = f"{len(self.unmeasured)} of {pairs} pairs of columns not measured together"
        return f"<Tables: {len(self)}; {told_how(self.made_by)}; {apart}>"

    def __len__(self) -> int:
        return len(self._drawn)

    def codes(self, number: int) -> npt.NDArray[np.integer]:
        """Return a table as codes of the universe's columns, shape (rows, C)."""
        return self._drawn[number]

    @overload
    def __getitem__(self, key: int) -> Any: ...

    @overload
    def __getitem__(self, key: slice) -> "Tables": ...

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            own = self._drawn[key], self._seeds[key]
            return Tables(self._spelling, *own, self.made_by, self.unmeasured, self.grouped)
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


class Stream(NamedTuple):
    """Draws of a confidential table, one at a time."""

    made_by: Refitted
    draws: Iterator[
        tuple[npt.NDArray[np.integer], int]
    ]  # categories, shape (rows, C), and a seed for writing them


def streamed(
    measurements: Measurements,
    n: int | None,
    *,
    count: int,
    rows: int | None = None,
    rng: int | BitSource | None = None,
) -> Stream:
    """Draw tables of n rows, or of fewer of these: see `Release.tables`."""
    for name, value in (("the number of tables", count), ("rows", 1 if rows is None else rows)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1")
    if not len(measurements):
        raise ValueError(UNMEASURED)
    total = released_total(measurements) if n is None else n
    if total < 1:
        raise ValueError("no row was released, so no table can be drawn: release with a larger epsilon")
    if rows is not None and rows > total:
        raise ValueError(f"each table has at most {total} rows, as the data have: give fewer rows, or none")
    seed, domain = bit_source(rng).bits(64), measurements.domain
    counts = [each for each in measurements if not isinstance(each.of[0], Offsets)]
    refits = Refits.of(domain, counts, total) or ParityRefits.of(domain, counts, total)
    if refits is None:
        raise ValueError(
            "several tables are drawn from counts of cells in nested groups, or from contrasts alone, and "
            f"something else was measured; {INSTEAD}"
        )
    if not refits.suitable:
        why = EMPTY if isinstance(refits, Refits) else LOUD
        raise ValueError(f"{why}: intervals from several tables would be too narrow; {INSTEAD}")
    seeds = splitmix64(count, seed ^ 1).tolist()
    draws = ((_some(table, rows, own), own) for own, table in zip(seeds, refits.draws(seed), strict=False))
    return Stream(Refitted.of(refits, domain), draws)


def released_total(measurements: Sequence[Measurement]) -> int:
    """Return about how many rows the data have: the mean of what was released of it, by inverse variances."""
    weight = total = 0.0
    for each in measurements:
        for part, values in each.tables():
            count = isinstance(part, Parity) and part.signed and not part.columns
            if isinstance(part, Marginal) or count:
                own = 1 / max(each.noise.variance() * part.size, 1e-9)
                weight, total = weight + own, total + own * float(values.sum())
    return round(total / weight) if weight else 0


def told_how(made_by: Refitted) -> str:
    """Tell in some words how tables were drawn."""
    of = (
        f"{made_by.model_contrasts} contrasts"
        if made_by.model_contrasts
        else f"{made_by.model_tables} measured tables"
    )
    return f"from a model of {of}, fitted anew for each"


def imputed(spelling: Spelling, stream: Stream, measurements: Measurements) -> Tables:
    """Collect draws that follow from measurements."""
    kind = np.min_scalar_type(max(measurements.domain.sizes))
    drawn, seeds = list[npt.NDArray[np.integer]](), list[int]()
    for table, seed in stream.draws:
        drawn.append(table.astype(kind))
        seeds.append(seed)
    left_out = stream.made_by.left_out
    pairs = measurements.pairs()
    unmeasured = [pair.columns for pair in pairs if pair.known == NOT_MEASURED or pair.columns in left_out]
    sizes = dict(zip(measurements.domain.names, measurements.domain.sizes, strict=True))
    grouped = [
        pair
        for pair in pairs
        if pair.columns not in unmeasured
        and all(
            any(len({*own}) < sizes[name] for name, own in zip(pair.columns, groups, strict=True))
            for groups in pair.groups
        )
    ]
    return Tables(spelling, drawn, seeds, stream.made_by, unmeasured, grouped)


def _some(table: npt.NDArray[np.integer], rows: int | None, seed: int) -> npt.NDArray[np.integer]:
    """Return a random sample of so many rows, without replacement; None: all of them."""
    if rows is None:
        return table
    return table[np.argsort(splitmix64(len(table), seed ^ 1), kind="stable")[:rows]]


def _shuffled_within(groups: npt.NDArray[np.integer], seed: int) -> npt.NDArray[np.integer]:
    """Return an order of rows that moves each only among those of its group, shape (rows,)."""
    order = np.empty(len(groups), dtype=np.int64)
    order[np.argsort(groups, kind="stable")] = np.lexsort((splitmix64(len(groups), seed), groups))
    return order


def check_drawable(plan: Plan) -> None:
    """Refuse a plan of which it is public that several tables cannot be drawn: before anything is paid."""
    if not isinstance(plan.chosen, ByMarginals):
        raise ValueError(
            f"--tables is for marginals: {plan.mechanism} draws a table and measures nothing; leave it out, "
            "or add --mechanism marginals"
        )
    if why := plan.chosen.strategy.undrawable(plan.n):
        raise ValueError(f"--tables: {why}")
