"""Tables selected by what was released before, and measured, round by round."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import prod
from typing import ClassVar

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.marginals.adaptive.association_weights import reaching_weights
from smalldb.marginals.adaptive.candidate_tables import Candidates
from smalldb.marginals.adaptive.model_capacity import Room, selected
from smalldb.marginals.adaptive.packed_pairs import Strips
from smalldb.marginals.adaptive.stopping_rule import LEAST, Heard, tells
from smalldb.marginals.adaptive.target_marginals import aimed, tables_of
from smalldb.marginals.estimate.column_estimates import whole
from smalldb.marginals.estimate.estimation import Reader
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.estimate.refitting import at_first
from smalldb.marginals.measuring import Measured
from smalldb.marginals.private_rows import PrivateRows, counted
from smalldb.marginals.strategies.budgets import MANY_COLUMNS, RoundsBudget
from smalldb.marginals.strategies.outcome import (
    PROGRESS,
    Fitted,
    History,
    Progress,
    TableStrategy,
    published,
    released_table,
)
from smalldb.mechanisms import Journal

PENALTY = 0.8  # of the noise that a table would get, what its score is reduced by


@dataclass(frozen=True, slots=True)
class Adaptive(RoundsBudget, TableStrategy):
    """Every column first; then rounds, each of which selects a table, measures it, and fits a model."""

    name: ClassVar[str] = "adaptive"

    @property
    def method(self) -> str:
        """What it is called."""
        return f"adaptive marginals (at most {self.rounds} rounds)" if self.rounds else "marginals of columns"

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        noise = "geometric noise" if self.delta is None else "Gaussian noise"
        if not self.rounds:
            return f"columns, with {noise}"
        target = "tables of the target first, then " if tables_of(self.universe) else ""
        return f"columns, then {target}tables selected in up to {self.rounds} rounds, with {noise}"

    # Proof: docs/proofs/rounds.md, lemma 6.
    def fit(
        self, rows: PrivateRows, journal: Journal, progress: Progress | None, executor: Executor | None
    ) -> Fitted:
        """
        Select a table and measure it, round by round; those of a target come first, and are not selected.

        After a table that told nothing, rounds cost more (`stopping_rule`), while the budget pays for it.
        Where all of them tell nothing, rounds end, and the columns get what is left.
        """
        columns = _columns(self, rows, journal, Fraction(1))
        reader = Reader.of(self, columns)
        layout = reader.layout
        count = cache(lambda: counted(rows, layout.count, executor))  # not where all was released before
        learned, beside = at_first(reader), list[Measured]()
        measurements = [published(self.law, column, None) for column in columns]
        budget = left = self.for_rounds
        heard, again = Heard(), tuple[Measured, ...]()
        first = deque(aimed(self, reader.candidates))
        while self.rounds and not heard.enough:
            room = Room(reader, learned.tables)
            expected = reader.moved(learned.predicted(), beside)
            selecting = None
            if aiming := bool(first):
                chosen, cost = first.popleft()
            else:
                step = self.raised(
                    min(heard.times, max(Fraction(1), left / (self.selecting + self.measuring)))
                )
                select = partial(_selected, step, reader, room, expected, beside, left, count)
                drawn = journal.step(select, list_of, scope_of)
                if drawn is None:
                    break
                chosen, cost = drawn, step.cost_of(prod(reader.candidates.shape(drawn)))
                selecting = step.selecting
                left -= selecting
            shape = reader.candidates.shape(chosen)
            released = released_table(
                self.law, journal, chosen, shape, cost, partial(_counts, layout, chosen, count)
            )
            left -= cost
            measurements.append(published(self.law, released, reader.groupings, selecting))
            told = tells(released, layout.chosen(expected, chosen), self.law.concentrated)
            heard = heard.after(told) if told or not aiming else heard
            if room.lacking(chosen) is None:
                learned = learned.after(released)
            else:
                beside.append(released)
            if progress is not None:
                progress(int((1 - left / budget) * PROGRESS), PROGRESS)
        spent = sum(self.columns, budget - left)
        if heard.enough and left >= LEAST * sum(self.columns):
            again = _columns(self, rows, journal, left / sum(self.columns))
            reader = reader.again(again)
            measurements += [published(self.law, column, None) for column in again]
            spent += left
        model = learned.last(reader)
        history = History(columns, tuple(learned.tables), tuple(beside), again)
        made = partial(reader.rows, model, beside)
        return Fitted(self, history, reader.total, model, made, spent, tuple(measurements))


def _columns(
    plan: RoundsBudget, rows: PrivateRows, journal: Journal, share: Fraction
) -> tuple[Measured, ...]:
    """Measure every column, at a share of what the plan says."""
    return tuple(
        released_table(
            plan.law, journal, ((c, 0),), (size,), share * cost, partial(rows.table, (c,), (size,))
        )
        for c, (size, cost) in enumerate(zip(plan.universe.sizes, plan.columns, strict=True))
    )


def _selected(
    plan: RoundsBudget,
    reader: Reader,
    room: Room,
    expected: list[Floats],
    beside: list[Measured],
    left: Fraction,
    count: Callable[[], list[Integers]],
    coins: BitSource,
) -> Scope | None:
    """Select the next table; None: what is left of the budget pays for none."""
    candidates = reader.candidates
    sizes, which = np.unique(reader.sizes, return_inverse=True)
    costs = [plan.cost_of(size) for size in sizes.tolist()]
    noise = {
        size: PENALTY * plan.law.noise(cost).mean_size
        for size, cost in zip(sizes.tolist(), costs, strict=True)
        if cost
    }
    payable = np.array([cost + plan.selecting <= left for cost in costs], dtype=bool)[which]
    weights = candidates.weights
    if len(plan.universe.sizes) > MANY_COLUMNS:
        weights = reaching_weights(reader.layout, expected, [*room.tables, *beside])
    foretold = [whole(table, reader.total) for table in expected]
    scores = reader.layout.scores(count(), foretold, weights, noise.__getitem__)
    return selected(plan, room, reader.names, max(weights, default=1), scores, payable, coins)


def _counts(layout: Candidates | Strips, scope: Scope, count: Callable[[], list[Integers]]) -> Integers:
    """Return the counts of a table at its levels."""
    return layout.chosen(count(), scope)


def list_of(scope: Scope | None) -> list[list[int]] | None:
    """Return a selected table as JSON can hold it."""
    return None if scope is None else [list(part) for part in scope]


def scope_of(packed: list[list[int]] | None) -> Scope | None:
    """Return a selected table as it was before `list_of`."""
    return None if packed is None else tuple((column, level) for column, level in packed)
