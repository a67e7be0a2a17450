"""Release in rounds: measure every column, then select, measure and fit; rows and a certificate."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.rounds.cells import read_cells
from smalldb.rounds.counting import PrivateRows
from smalldb.rounds.grouping import Floats
from smalldb.rounds.junction import cells
from smalldb.rounds.measuring import Measured, measure
from smalldb.rounds.modelling import Model
from smalldb.rounds.plan import RoundsPlan
from smalldb.rounds.reader import Reader
from smalldb.rounds.reading import bounded_total
from smalldb.rounds.room import Room, selected
from smalldb.rounds.rows import uniform_order

PENALTY = 0.8  # of the noise that a table would get, what its score is reduced by

PROGRESS = 1000

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """
    The released integers, in the order of release; all that later steps know of the data.

    Attributes
    ----------
    columns
        Every column at all its places.
    tables
        The selected tables that the model has, one a round; or the table of all cells.
    beside
        The selected tables that it has no room for: rows are moved to them.
    """

    columns: tuple[Measured, ...]
    tables: tuple[Measured, ...]
    beside: tuple[Measured, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """
    What a release in rounds gives.

    Attributes
    ----------
    history
        The released integers.
    total
        The number of rows that was read from them; n itself under replace-one.
    model
        The distribution that was fitted to them.
    places
        The synthetic rows in uniformly random order, shape (rows, C).
    spent
        The cost of what was drawn: an epsilon, or a rho; at most that of the plan.
    """

    history: History
    total: int
    model: Model
    places: Integers
    spent: Fraction


def release_rounds(
    plan: RoundsPlan,
    rows: PrivateRows,
    source: BitSource,
    *,
    count: int | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """
    Release a synthetic table under the guarantee of a plan.

    Every step is a function of the data, given what was released before, of the cost that the plan states:
    costs add up (docs/proofs/rounds.md).

    Parameters
    ----------
    rows
        The private rows; under replace-one as many as the plan says.
    count
        How many rows are wanted; None: as many as there are, or are read from what was released (then up to
        `RoundsPlan.most_rows`).
    progress
        Called after each round with how much of the rounds' budget is spent, and how much there is.
    """
    found = (_in_cells if plan.cells else _in_rounds)(plan, rows, source, progress)
    wanted = min(found.total, plan.most_rows) if count is None else count
    made = found.rows(wanted, source.bits(64))
    steps = found.history
    selections = 0 if plan.cells else len(steps.tables) + len(steps.beside)
    measured = (*steps.columns, *steps.tables, *steps.beside)
    paid = sum((part.cost for part in measured), Fraction(0)) + selections * plan.selecting
    places = made[:, uniform_order(wanted, source)].T
    return Outcome(steps, found.total, found.model, places, paid)


class Found(NamedTuple):
    """What was released before the certificate, and what follows from it."""

    history: History
    total: int
    model: Model
    rows: Callable[[int, int], Integers]


def _in_cells(plan: RoundsPlan, rows: PrivateRows, source: BitSource, progress: Progress | None) -> Found:
    """Measure all cells at once; they are read by empirical Bayes."""
    everything = tuple(range(len(plan.universe.sizes)))
    scope = tuple((c, 0) for c in everything)
    counts = rows.table(everything, plan.universe.sizes)
    measured = measure(counts, scope, plan.law, plan.cells, source)
    total = plan.rows if plan.law.replaced else bounded_total(measured.counts.sum(dtype=float))
    model = read_cells(plan.universe, measured, float(plan.law.spread(plan.cells)), total)
    if progress is not None:
        progress(PROGRESS, PROGRESS)
    return Found(History((), (measured,)), total, model, model.rows)


def _in_rounds(plan: RoundsPlan, rows: PrivateRows, source: BitSource, progress: Progress | None) -> Found:
    """Measure every column; then select a table and measure it, round by round."""
    columns = tuple(
        measure(rows.table((c,), (size,)), ((c, 0),), plan.law, cost, source)
        for c, (size, cost) in enumerate(zip(plan.universe.sizes, plan.columns, strict=True))
    )
    reader = Reader.of(plan, columns)
    counted = reader.candidates.count(rows)
    tables: list[Measured] = []
    beside: list[Measured] = []
    names, weight = reader.candidates.scopes(), max(reader.candidates.weights, default=1)
    model = reader.fit(tables, ())
    predicted = reader.predicted(model, 0)
    budget = left = plan.rounds * (plan.selecting + plan.measuring)
    sizes = [cells(name, reader.groupings) for name in names]
    costs = {size: plan.cost_of(size) for size in set(sizes)}
    noise = {size: PENALTY * plan.law.size(cost) for size, cost in costs.items() if cost}
    while plan.rounds:
        payable = np.array([costs[size] + plan.selecting <= left for size in sizes])
        expected = [whole(table, reader.total) for table in reader.moved(predicted, beside)]
        scores = reader.candidates.scores(counted, expected, noise.__getitem__)
        room = Room(reader, tables)
        chosen = selected(plan, room, names, weight, scores, payable, source)
        if chosen is None:
            break
        where = reader.candidates.tables.index(tuple(c for c, _ in chosen))
        there = reader.candidates.coarse(counted[where], chosen)
        cost = costs[there.size]
        released = measure(there, chosen, plan.law, cost, source)
        left -= plan.selecting + cost
        if room.lacking(chosen) is None:
            tables.append(released)
            model = reader.fit(tables, model.coefficients)
            predicted = reader.predicted(model, len(tables))
        else:
            beside.append(released)
        if progress is not None:
            progress(int((1 - left / budget) * PROGRESS), PROGRESS)
    model = reader.fit(tables, model.coefficients, last=True)

    def draw(count: int, seed: int) -> Integers:
        return reader.rows(model, beside, count, seed)

    return Found(History(columns, tuple(tables), tuple(beside)), reader.total, model, draw)


def whole(predicted: Floats, total: int) -> Integers:
    """Return predictions as integers from 0 to the total: no score overflows, whatever is predicted."""
    return np.rint(np.clip(np.nan_to_num(predicted, nan=0.0), 0.0, total)).astype(np.int64)
