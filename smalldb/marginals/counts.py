"""Counting of confidential rows: one protocol, whatever holds them. No strategy and no estimate sees them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Protocol, TypeAlias, final

import numpy as np

from queries import Rows, Workload
from queries.domain import Integers
from smalldb.marginals.counted_rows import CountedRows, PackedTables, checked, count, counted
from smalldb.mechanisms import Marginal, Offsets, Parity
from smalldb.noise.noise_protocol import Moved

Texts: TypeAlias = Mapping[str, Counter[str]]


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The sums of all queries over the rows, in units of 1 / D of a row; the last one is D for each row."""

    workload: Workload
    size: ClassVar[int] = 1  # of what is released: one of them

    # Proof: docs/proofs/certificate.md, lemma 1.
    def moved(self, replaced: bool) -> Moved:
        """Return how far neighbours move one of the sums."""
        far = self.workload.denominator
        return Moved(far, far**2)


@dataclass(frozen=True, slots=True)
class FinerBins:
    """The counts of a column's finer bins, as the table was read: a row stands in one of them, or in none."""

    column: str
    size: int

    # Proof: docs/proofs/learned.md, lemma 7.
    def moved(self, replaced: bool) -> Moved:
        """Return how far neighbours move them."""
        return Moved(2, 2) if replaced else Moved(1, 1)


@dataclass(frozen=True, slots=True)
class SumsOfOffsets:
    """The sums of offsets of bins, as the table was read: a row moves one of each column, or none."""

    of: tuple[Offsets, ...]


Linear: TypeAlias = Sequence[Marginal] | Sequence[Parity] | PackedTables | Answers | FinerBins | SumsOfOffsets
"""What is counted: sums over the rows of what each row adds by itself. Public."""


class Counts(Protocol):
    """Confidential rows that can be counted: in memory, grouped by a database, or in pieces elsewhere.

    A row counts as often as it is there, or by its weight: see `walks`.
    """

    @property
    def unit(self) -> int:
        """What whatever is protected weighs at most: 1 for a row."""

    @property
    def table(self) -> Rows:
        """The rows themselves, for the scores of all small databases."""

    @property
    def texts(self) -> Texts:
        """By column that learns its categories, how often each text occurs, as the table was read."""

    def count(self, what: Linear, often: bool = False) -> list[Integers]:
        """Count; what is asked for often is counted once, and in pieces where these are elsewhere."""


@final
class InMemory:
    """Rows with their counts or weights; what is large is counted in pieces, by threads or by an executor."""

    def __init__(
        self,
        table: Rows | CountedRows,
        executor: Executor | None = None,
        *,
        unit: int = 1,
        finer: Mapping[str, Integers] | None = None,
        offsets: Mapping[int, Integers] | None = None,
        texts: Texts | None = None,
    ) -> None:
        self._table, self._executor, self.unit, self._finer = table, executor, unit, finer or {}
        self._offsets = offsets or {}  # by the number of a column, those of its bins
        self.texts: Texts = texts or {}
        self._cache: dict[int, tuple[Linear, list[Integers]]] = {}

    @property
    def table(self) -> Rows:
        """The rows: see `Counts`."""
        if isinstance(self._table, CountedRows):
            raise TypeError("weighed rows are counted: they do not make a table")
        return self._table

    @cached_property
    def _rows(self) -> CountedRows:
        table = self._table
        if isinstance(table, CountedRows):
            return table
        return checked(table.codes(), table.counts, table.domain.sizes)

    def count(self, what: Linear, often: bool = False) -> list[Integers]:
        """Count: see `Counts`."""
        if not often:
            return self._counted(what, None)
        if id(what) not in self._cache:
            self._cache[id(what)] = what, self._counted(what, self._executor)
        return self._cache[id(what)][1]

    def _counted(self, what: Linear, executor: Executor | None) -> list[Integers]:
        if isinstance(what, Answers):
            table, workload = self._table, what.workload
            if isinstance(table, CountedRows):
                table = Rows.from_codes(workload.domain, table.codes, table.counts)
            return [np.append(workload.answers(table), workload.denominator * table.n)]
        if isinstance(what, FinerBins):
            return [self._finer[what.column]]
        if isinstance(what, SumsOfOffsets):
            return [self._offsets[part.columns[0]] for part in what.of]
        return counted(self._rows, partial(count, what), executor)
