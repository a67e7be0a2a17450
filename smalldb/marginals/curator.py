"""The curator: the one place that sees the data. A strategy asks; what it is told has noise, is paid, and is kept.

A strategy is a generator. It yields what it wants to know, gets what was released, and returns an estimate. It
never holds the data, so whatever it does with what it was told is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np

from queries.domain import Integers
from smalldb.marginals.counted_rows import CountedRows, counted
from smalldb.marginals.measuring import LIMIT, PrivacyMeasure, choose
from smalldb.mechanisms import Journal
from smalldb.noise.distributions import Noise


class Ask(Protocol):
    """What a strategy wants to know."""

    @property
    def cost(self) -> Fraction:
        """An epsilon, or a rho."""

    def answer(self, curator: Curator) -> Any:
        """Return what is released: exact noise on counts, or an exact selection."""


Steps: TypeAlias = Generator[Ask, Any, Any]


@dataclass
class Curator:
    """The data, and how what is told of them is drawn and kept."""

    rows: CountedRows
    law: PrivacyMeasure
    journal: Journal
    executor: Executor | None = None
    budget: Fraction | None = None
    spent: Fraction = Fraction(0)

    def follow(self, steps: Steps) -> Any:
        """Tell a strategy what it asks, step by step, and return what it makes of that."""
        told = None
        while True:
            try:
                ask = steps.send(told)
            except StopIteration as end:
                return end.value
            if self.budget is not None and self.spent + ask.cost > self.budget:
                raise RuntimeError(
                    f"a strategy asks for more than it has: {float(self.spent)} + {float(ask.cost)} > {float(self.budget)} {type(ask).__name__}"
                )
            told = ask.answer(self)
            self.spent += ask.cost

    def noisy(self, count: Callable[[], Integers], noise: Noise) -> Integers:
        """Release counts with noise, unless they were released before: then nothing is counted."""

        def draw(coins: Any) -> Integers:
            counts = count().ravel()
            return np.clip(counts + noise.draw(counts.size, coins), -LIMIT, LIMIT)

        return self.journal.step(draw, lambda found: found.tolist(), lambda kept: np.array(kept, np.int64))


@dataclass(frozen=True, eq=False)
class Table:
    """A table of columns, at all categories or at groups of them, with one noise."""

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    cost: Fraction
    groups: tuple[Integers, ...] | None = None

    def answer(self, curator: Curator) -> Integers:
        """Return its counts, shaped."""
        rows, columns = curator.rows, self.columns

        def count() -> Integers:
            if self.groups is None:
                return rows.table(columns, self.sizes)
            return rows.table_of_groups(columns, self.groups)

        return curator.noisy(count, curator.law.noise(self.cost)).reshape(self.sizes)


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns at once, of a pure cost."""

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    cost: Fraction

    def answer(self, curator: Curator) -> list[Integers]:
        """Return the counts of each."""
        count = lambda: np.concatenate(  # noqa: E731
            [curator.rows.table((c,), (k,)) for c, k in zip(self.columns, self.sizes, strict=True)]
        )
        flat = curator.noisy(count, curator.law.noise_of_columns(self.sizes, self.cost))
        return np.split(flat, np.cumsum(self.sizes)[:-1])


@dataclass(frozen=True, eq=False)
class Together:
    """Several tables at once, with a noise of their own."""

    tables: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    noise: Noise
    cost: Fraction

    def answer(self, curator: Curator) -> Integers:
        """Return all counts, one table after another."""
        rows, sizes = curator.rows, self.sizes
        count = lambda: np.concatenate(  # noqa: E731
            [rows.table(t, [sizes[c] for c in t]).ravel() for t in self.tables]
        )
        return curator.noisy(count, self.noise)


@dataclass(frozen=True, eq=False)
class Best:
    """The candidate whose table is furthest from what was expected: an exact exponential mechanism.

    `count` counts all candidates of some rows; `scores` makes scores of these counts; of those that `allowed`
    refuses, another is drawn, as if they had never been there.
    """

    names: Sequence[Any]
    count: Callable[[CountedRows], list[Integers]]
    scores: Callable[[list[Integers]], Integers]
    weight: int
    payable: Any
    refused: Callable[[Any], Callable[[Any], bool] | None]
    cost: Fraction

    def answer(self, curator: Curator) -> Any:
        """Return the name of one; None: there is none that may be selected."""

        def draw(coins: Any) -> Any:
            scores, left = self.scores(curator_counts(curator, self.count)), self.payable.copy()
            while left.any():
                at = np.nonzero(left)[0]
                name = self.names[int(at[choose(scores[at], curator.law, self.cost, self.weight, coins)])]
                if (others := self.refused(name)) is None:
                    return name
                left &= np.array([not others(name) for name in self.names])
            return None

        pack = lambda found: None if found is None else [list(part) for part in found]  # noqa: E731
        unpack = lambda kept: None if kept is None else tuple((c, k) for c, k in kept)  # noqa: E731
        return curator.journal.step(draw, pack, unpack)


def curator_counts(curator: Curator, count: Callable[[CountedRows], list[Integers]]) -> list[Integers]:
    """Count candidates once a release: they are counted at their finest."""
    kept = curator.__dict__.setdefault("_counts", {})
    if count not in kept:
        kept[count] = counted(curator.rows, count, curator.executor)
    return kept[count]
