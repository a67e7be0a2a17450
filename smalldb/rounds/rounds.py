"""Release in rounds: measure every column, then select, measure and fit; rows and a certificate."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.rounds.cells import read_cells
from smalldb.rounds.counting import PrivateRows
from smalldb.rounds.junction import Scope
from smalldb.rounds.measuring import Measured, choose, measure
from smalldb.rounds.modelling import Model
from smalldb.rounds.plan import RoundsPlan
from smalldb.rounds.reader import Reader
from smalldb.rounds.rows import uniform_order

ITERATIONS = 15  # of a fit between rounds, from the coefficients of the one before
LAST_ITERATIONS = 60
PENALTY = 1.0  # of the noise that a table would get, what its score is reduced by

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
        How many rows are wanted; None: as many as there are, or are read from what was released.
    progress
        Called after each round with how many are done, and how many there are at most.
    """
    found = (_in_cells if plan.cells else _in_rounds)(plan, rows, source, progress)
    wanted = found.total if count is None else count
    made = found.rows(wanted, source.bits(64))
    steps = found.history
    selected = len(steps.tables) + len(steps.beside) if plan.rounds else 0
    measured = (*steps.columns, *steps.tables, *steps.beside)
    paid = sum((part.cost for part in measured), Fraction(0)) + selected * plan.selecting
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
    total = plan.rows if plan.law.replaced else max(1, int(measured.counts.sum()))
    model = read_cells(plan.universe, measured, float(plan.law.spread(plan.cells)), total)
    if progress is not None:
        progress(1, 1)
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
    names = reader.candidates.scopes()
    model = reader.fit(tables, (), ITERATIONS)
    predicted = reader.predicted(model, 0)
    for number in range(plan.rounds):
        expected = [np.rint(table).astype(np.int64) for table in reader.moved(predicted, beside)]
        scores = reader.candidates.scores(counted, expected, PENALTY * plan.law.size(plan.measuring))
        room = Room(reader, tables)
        chosen = _selected(plan, room, names, scores, source)
        if chosen is None:
            break
        where = reader.candidates.tables.index(tuple(c for c, _ in chosen))
        there = reader.candidates.coarse(counted[where], chosen)
        released = measure(there, chosen, plan.law, plan.measuring, source)
        if room.lacking(chosen) is None:
            tables.append(released)
            model = reader.fit(tables, model.coefficients, ITERATIONS)
            predicted = reader.predicted(model, number + 1)
        else:
            beside.append(released)
        if progress is not None:
            progress(number + 1, plan.rounds)
    model = reader.fit(tables, model.coefficients, LAST_ITERATIONS)

    def draw(count: int, seed: int) -> Integers:
        return reader.rows(model, beside, count, seed)

    return Found(History(columns, tuple(tables), tuple(beside)), reader.total, model, draw)


class Room:
    """
    For which candidates the model has room, in one round.

    There is room for a table where the model, with it or with any coarser candidate of its columns, stays
    within its memory. That follows from released numbers alone, whichever candidates are looked at.
    """

    def __init__(self, reader: Reader, tables: list[Measured]) -> None:
        self._reader, self._tables = reader, tables
        self._known: dict[Scope, bool] = {}

    @property
    def weights(self) -> tuple[int, ...]:
        """The weights of the candidate tables."""
        return self._reader.candidates.weights

    def lacking(self, name: Scope) -> Scope | None:
        """Return the first table, from the coarsest to the given one, that has no room; None: all have."""
        for levels in product(*[range(1, level + 1) for _, level in name]):
            coarser = tuple((c, level) for (c, _), level in zip(name, levels, strict=True))
            if coarser not in self._known:
                self._known[coarser] = self._reader.fits(self._tables, coarser)
            if not self._known[coarser]:
                return coarser
        return None


def _selected(
    plan: RoundsPlan, room: Room, names: list[Scope], scores: Integers, source: BitSource
) -> Scope | None:
    """
    Select a candidate by an exponential mechanism, over those of two columns, and those for which is room.

    Whether there is room is looked at once a candidate was drawn, and all is drawn again if it is needed and
    there is none: the outcome has the law of a draw among the candidates that may be selected. What is finer
    than one without room has none either, and is left out before the next draw.
    """
    left = np.ones(len(names), dtype=bool)
    most = max(room.weights)
    while left.any():
        places = np.nonzero(left)[0]
        chosen = names[int(places[choose(scores[places], plan.law, plan.selecting, most, source)])]
        refused = None if len(chosen) == 2 else room.lacking(chosen)
        if refused is None:
            return chosen
        left &= np.array([not _as_fine(name, refused) for name in names])
    return None


def _as_fine(name: Scope, other: Scope) -> bool:
    """Tell whether a table is of the same columns as another, and at least as fine in each."""
    return len(name) == len(other) and all(
        a == b and m >= k for (a, m), (b, k) in zip(name, other, strict=True)
    )
