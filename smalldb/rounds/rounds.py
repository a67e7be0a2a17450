"""Release in rounds: measure every column, then select, measure and fit; rows and a certificate."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.rounds.cells import read_cells
from smalldb.rounds.counting import PrivateRows
from smalldb.rounds.grouping import Floats, Grouping, halved
from smalldb.rounds.junction import Scope, cells, junction_tree
from smalldb.rounds.measuring import Measured, choose, measure
from smalldb.rounds.modelling import Fixed, Model, fitted, scopes_of, zeros_of
from smalldb.rounds.plan import RoundsPlan
from smalldb.rounds.reading import pooled_total, read_column, reconciled
from smalldb.rounds.rows import uniform_order
from smalldb.rounds.selecting import Candidates, candidates, predictions

PREDICTING = 1 << 15  # rows of the model from which predictions are made; their seeds are public numbers
ITERATIONS = 15  # of a fit between rounds, from the coefficients of the one before
LAST_ITERATIONS = 60

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
        The selected tables, one a round; or the table of all cells.
    """

    columns: tuple[Measured, ...]
    tables: tuple[Measured, ...]


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
    history, total, model = (_in_cells if plan.cells else _in_rounds)(plan, rows, source, progress)
    wanted = total if count is None else count
    found = model.rows(wanted, source.bits(64))
    paid = sum((part.cost for part in (*history.columns, *history.tables)), Fraction(0))
    paid += plan.selecting * len(history.tables) if plan.rounds else 0
    places = found[:, uniform_order(wanted, source)].T
    return Outcome(history, total, model, places, paid)


def _in_cells(
    plan: RoundsPlan, rows: PrivateRows, source: BitSource, progress: Progress | None
) -> tuple[History, int, Model]:
    """Measure all cells at once; they are read by empirical Bayes."""
    everything = tuple(range(len(plan.universe.sizes)))
    scope = tuple((c, 0) for c in everything)
    counts = rows.table(everything, plan.universe.sizes)
    measured = measure(counts, scope, plan.law, plan.cells, source)
    total = plan.rows if plan.law.replaced else max(1, int(measured.counts.sum()))
    model = read_cells(plan.universe, measured, float(plan.law.spread(plan.cells)), total)
    if progress is not None:
        progress(1, 1)
    return History((), (measured,)), total, model


def _in_rounds(
    plan: RoundsPlan, rows: PrivateRows, source: BitSource, progress: Progress | None
) -> tuple[History, int, Model]:
    """Measure every column; then select a table and measure it, round by round."""
    columns = tuple(
        measure(rows.table((c,), (size,)), ((c, 0),), plan.law, cost, source)
        for c, (size, cost) in enumerate(zip(plan.universe.sizes, plan.columns, strict=True))
    )
    reader = Reader.of(plan, columns)
    counted = reader.candidates.count(rows)
    names = reader.candidates.scopes()
    tables: list[Measured] = []
    model = reader.fit(tables, (), ITERATIONS)
    for number in range(plan.rounds):
        expected = predictions(reader.candidates, model.rows(PREDICTING, number << 32), reader.total)
        scores = reader.candidates.scores(counted, expected, plan.law.size(plan.measuring))
        chosen = _selected(plan, reader, scores, names, tables, source)
        if chosen is None:
            break
        where = reader.candidates.tables.index(tuple(c for c, _ in chosen))
        there = reader.candidates.coarse(counted[where], chosen)
        tables.append(measure(there, chosen, plan.law, plan.measuring, source))
        last = number == plan.rounds - 1
        model = reader.fit(tables, model.coefficients, LAST_ITERATIONS if last else ITERATIONS)
        if progress is not None:
            progress(number + 1, plan.rounds)
    return History(columns, tuple(tables)), reader.total, model


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """What follows from the released columns: the total, the groupings and the candidates."""

    plan: RoundsPlan
    columns: tuple[Measured, ...]
    total: int
    read: tuple[Floats, ...]
    groupings: tuple[Grouping, ...]
    fixed: tuple[Fixed, ...]
    candidates: Candidates

    @staticmethod
    def of(plan: RoundsPlan, columns: tuple[Measured, ...]) -> "Reader":
        """Read the released columns."""
        total = plan.rows if plan.law.replaced else pooled_total(columns)
        read = tuple(
            read_column(part.counts, part.variance, total, ordered)
            for part, ordered in zip(columns, plan.universe.ordered, strict=True)
        )
        groupings = tuple(
            halved(np.maximum(mass, 1e-6 * total), ordered)
            for mass, ordered in zip(read, plan.universe.ordered, strict=True)
        )
        fixed, chosen = zeros_of(plan.universe, groupings), candidates(plan.universe, groupings)
        return Reader(plan, columns, total, read, groupings, fixed, chosen)

    def fit(self, tables: list[Measured], start: tuple[Floats, ...], iterations: int) -> Model:
        """Fit the model to all that was released."""
        masses = reconciled(self.read, self.columns, self.groupings, tables, self.total)
        return fitted(self.groupings, masses, tables, self.fixed, self.total, start, iterations)

    def fits(self, tables: list[Measured], scope: Scope) -> bool:
        """Whether the model stays within its memory with one more table."""
        scopes = scopes_of(self.groupings, [*(t.scope for t in tables), scope], self.fixed)
        tree = junction_tree(scopes, self.groupings)
        return sum(cells(bucket.scope, self.groupings) for bucket in tree) <= self.plan.memory


def _selected(
    plan: RoundsPlan,
    reader: Reader,
    scores: Integers,
    names: list[Scope],
    tables: list[Measured],
    source: BitSource,
) -> Scope | None:
    """
    Select a candidate that the model has room for, by an exponential mechanism over all with room.

    There is room for a table where the model, with it or with any coarser candidate of its columns in its
    place, stays within its memory. That depends on released numbers alone, and not on what is drawn. It is
    looked at once a candidate was drawn, and all is drawn again if there is none: the outcome has the law of
    a draw among the candidates with room. What is finer than one without room has none either, and is left
    out before the next draw.
    """
    known: dict[Scope, bool] = {}

    def fits(name: Scope) -> bool:
        if name not in known:
            known[name] = reader.fits(tables, name)
        return known[name]

    left = np.ones(len(names), dtype=bool)
    while left.any():
        places = np.nonzero(left)[0]
        most = max(reader.candidates.weights)
        chosen = names[int(places[choose(scores[places], plan.law, plan.selecting, most, source)])]
        refused = next((name for name in _coarser(chosen) if not fits(name)), None)
        if refused is None:
            return chosen
        left &= np.array([not _as_fine(name, refused) for name in names])
    return None


def _coarser(name: Scope) -> Iterator[Scope]:
    """Yield a table at all levels up to its own, the coarsest first."""
    for levels in product(*[range(1, level + 1) for _, level in name]):
        yield tuple((c, level) for (c, _), level in zip(name, levels, strict=True))


def _as_fine(name: Scope, other: Scope) -> bool:
    """Tell whether a table is of the same columns as another, and at least as fine in each."""
    return len(name) == len(other) and all(
        a == b and m >= k for (a, m), (b, k) in zip(name, other, strict=True)
    )
