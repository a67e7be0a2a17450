"""Release in rounds: measure every column, then select, measure and fit; rows and a certificate."""

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from math import prod
from typing import NamedTuple

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_permutation
from smalldb.marginals.adaptive.association_weights import reaching_weights
from smalldb.marginals.adaptive.candidates import Candidates
from smalldb.marginals.adaptive.dependence_test import ask, mostly
from smalldb.marginals.adaptive.model_capacity import Room, selected
from smalldb.marginals.adaptive.packed_pairs import Strips
from smalldb.marginals.adaptive.stopping_rule import LEAST, Heard, tells
from smalldb.marginals.adaptive.target_marginals import aimed
from smalldb.marginals.estimate.cell_estimates import read_cells
from smalldb.marginals.estimate.column_estimates import bounded_total, whole
from smalldb.marginals.estimate.estimation import Reader
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.estimate.modelling import Model
from smalldb.marginals.estimate.refitting import at_first
from smalldb.marginals.measuring import Measured, measure
from smalldb.marginals.pairs_at_once import (
    counts_of,
    dependence,
    measure_at_once,
    read_columns,
    read_pairs,
    tables_at_once,
    variances,
)
from smalldb.marginals.plan_of_tables import MANY_COLUMNS, RoundsPlan
from smalldb.marginals.private_rows import PrivateRows, counted
from smalldb.mechanisms import Journal

PENALTY = 0.8  # of the noise that a table would get, what its score is reduced by

PROGRESS = 1000

REFUSALS = 32  # tables one after another that have no room in the model, when it is taken to be full

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
        The tables that the model has, those of a target first, and then one a round; or the table of all
        cells; or those of pairs that were measured at once.
    beside
        The tables that it has no room for: rows are moved to them.
    again
        Every column once more, where rounds ended early; else empty.
    dependence
        The number that told whether most pairs of columns depend; None: it was not asked.
    at_once
        All tables of one and two columns that were measured at once, by their columns; else empty.
    """

    columns: tuple[Measured, ...]
    tables: tuple[Measured, ...]
    beside: tuple[Measured, ...] = ()
    again: tuple[Measured, ...] = ()
    dependence: int | None = None
    at_once: Mapping[tuple[int, ...], Integers] = field(default_factory=dict)


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
        The cost of what was drawn: an epsilon, or a rho; at most that of the plan. With a rho, the question
        is not in it.
    plan
        The plan that was followed: of two, the one that the released number decided.
    """

    history: History
    total: int
    model: Model
    places: Integers
    spent: Fraction
    plan: RoundsPlan


def release_rounds(
    plan: RoundsPlan,
    rows: PrivateRows,
    source: BitSource | Journal,
    *,
    count: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Outcome:
    """
    Release a synthetic table under the guarantee of a plan.

    Every step is a function of the data, given what was released before, of the cost that the plan states:
    costs add up (docs/proofs/rounds.md).

    Parameters
    ----------
    rows
        The private rows; under replace-one as many as the plan says.
    source
        Where random bits come from; or a journal that has a source, and what was released before.
    count
        How many rows are wanted; None: as many as there are, or are read from what was released (then up to
        `RoundsPlan.most_rows`).
    progress
        Called after each round with how much of the rounds' budget is spent, and how much there is.
    executor
        Counts the candidates in pieces of the rows; None: threads.
    """
    journal = source if isinstance(source, Journal) else Journal(source)
    if plan.cells:
        found = _in_cells(plan, rows, journal, progress)
    else:
        answer = None
        # of all columns and pairs; not where all was released before
        tables = cache(lambda: counted(rows, partial(counts_of, plan.universe), executor))
        if plan.at_once is not None:
            answer, plan = _settled(plan, plan.at_once, tables, journal)
        if plan.pairs:
            found = _in_pairs(plan, tables, journal, answer, progress)
        else:
            del tables
            found = _in_rounds(plan, rows, journal, answer, progress, executor)
    wanted = min(found.total, plan.most_rows) if count is None else count
    made = found.rows(wanted, journal.step(lambda coins: coins.bits(64)))
    places = made[:, uniform_permutation(wanted, journal.finishing())].T
    return Outcome(found.history, found.total, found.model, places, found.spent, plan)


class Found(NamedTuple):
    """What was released before the certificate, and what follows from it."""

    history: History
    total: int
    model: Model
    rows: Callable[[int, int], Integers]
    spent: Fraction


def _measured(
    plan: RoundsPlan,
    journal: Journal,
    scope: Scope,
    shape: tuple[int, ...],
    cost: Fraction,
    count: Callable[[], Integers],
) -> Measured:
    """Release a table, unless it was released before: then nothing is counted."""
    return journal.step(
        lambda coins: measure(count(), scope, plan.law, cost, coins),
        lambda table: table.counts.ravel().tolist(),
        lambda flat: Measured(
            scope, np.array(flat, dtype=np.int64).reshape(shape), cost, plan.law.variance(cost)
        ),
    )


# Proof: docs/proofs/rounds.md, lemma 8.
def _in_cells(plan: RoundsPlan, rows: PrivateRows, journal: Journal, progress: Progress | None) -> Found:
    """Measure all cells at once; they are read by empirical Bayes."""
    everything = tuple(range(len(plan.universe.sizes)))
    scope = tuple((c, 0) for c in everything)
    sizes = plan.universe.sizes
    measured = _measured(plan, journal, scope, sizes, plan.cells, lambda: rows.table(everything, sizes))
    seen = measured.counts[plan.universe.possible()]
    total = plan.rows if plan.law.replaced else bounded_total(seen.sum(dtype=float))
    model = read_cells(plan.universe, measured, float(plan.law.spread(plan.cells)), total, plan.law.replaced)
    if progress is not None:
        progress(PROGRESS, PROGRESS)
    return Found(History((), (measured,)), total, model, model.rows, plan.cells)


# Proof: docs/proofs/rounds.md, lemma 13.
def _settled(
    plan: RoundsPlan,
    at_once: RoundsPlan,
    count: Callable[[], list[Integers]],
    journal: Journal,
) -> tuple[int, RoundsPlan]:
    """Ask whether most pairs of columns depend; return the answer, and the plan that follows from it."""
    universe, law = plan.universe, at_once.law  # pure, with a delta, too
    _, noise = variances(universe, at_once.pairs, law.replaced)

    def draw(coins: BitSource) -> int:
        pairs = count()[len(universe.sizes) :]
        return ask(universe, pairs, noise, law, plan.asking, coins)

    answer = journal.step(draw)
    return answer, at_once if mostly(answer, universe, noise) else plan


# Proof: docs/proofs/rounds.md, lemma 12.
def _in_pairs(
    plan: RoundsPlan,
    count: Callable[[], list[Integers]],
    journal: Journal,
    answer: int | None,
    progress: Progress | None,
) -> Found:
    """Measure all tables of one and two columns at once; the most dependent ones make the model."""
    universe, replaced = plan.universe, plan.law.replaced

    def draw(coins: BitSource) -> Integers:
        return measure_at_once(universe, count(), replaced, plan.pairs, coins)

    values = journal.step(draw, lambda released: released.tolist(), partial(np.array, dtype=np.int64))
    at_once = tables_at_once(universe, values)
    reader = Reader.of(plan, read_columns(universe, at_once, replaced, plan.pairs))
    read = read_pairs(universe, at_once, replaced, plan.pairs, reader.read, reader.groupings, reader.total)
    tables, beside, refused = list[Measured](), list[Measured](), 0
    for table in sorted(read, key=dependence, reverse=True):
        fits = refused < REFUSALS and reader.fits(tables, table.scope)
        refused = 0 if fits else refused + 1
        (tables if fits else beside).append(table)
    model = reader.fit(tables, (), last=True)
    if progress is not None:
        progress(PROGRESS, PROGRESS)
    history = History(reader.columns, tuple(tables), tuple(beside), dependence=answer, at_once=at_once)
    return Found(history, reader.total, model, partial(reader.rows, model, beside), plan.asked + plan.pairs)


# Proof: docs/proofs/rounds.md, lemma 6.
def _in_rounds(
    plan: RoundsPlan,
    rows: PrivateRows,
    journal: Journal,
    answer: int | None,
    progress: Progress | None,
    executor: Executor | None,
) -> Found:
    """
    Select a table and measure it, round by round; the tables of a target come first, and are not selected.

    After a table that told nothing, rounds cost more (`stopping`), while the budget pays for it. Where all
    of them tell nothing, rounds end, and the columns get what is left.
    """
    columns = _columns(plan, rows, journal, Fraction(1))
    reader = Reader.of(plan, columns)
    layout = reader.layout
    count = cache(lambda: counted(rows, layout.count, executor))  # not where all was released before
    learned, beside = at_first(reader), list[Measured]()
    budget = left = plan.for_rounds
    heard, again = Heard(), tuple[Measured, ...]()
    first = deque(aimed(plan, reader.candidates))
    while plan.rounds and not heard.enough:
        room = Room(reader, learned.tables)
        expected = reader.moved(learned.predicted(), beside)
        if aiming := bool(first):
            chosen, cost = first.popleft()
        else:
            step = plan.raised(min(heard.times, max(Fraction(1), left / (plan.selecting + plan.measuring))))
            select = partial(_selected, step, reader, room, expected, beside, left, count)
            drawn = journal.step(select, list_of, scope_of)
            if drawn is None:
                break
            chosen, cost = drawn, step.cost_of(prod(reader.candidates.shape(drawn)))
            left -= step.selecting
        shape = reader.candidates.shape(chosen)
        released = _measured(plan, journal, chosen, shape, cost, partial(_counts, layout, chosen, count))
        left -= cost
        told = tells(released, layout.chosen(expected, chosen), plan.law.concentrated)
        heard = heard.after(told) if told or not aiming else heard
        if room.lacking(chosen) is None:
            learned = learned.after(released)
        else:
            beside.append(released)
        if progress is not None:
            progress(int((1 - left / budget) * PROGRESS), PROGRESS)
    spent = sum(plan.columns, plan.asked + budget - left)
    if heard.enough and left >= LEAST * sum(plan.columns):
        again = _columns(plan, rows, journal, left / sum(plan.columns))
        reader = reader.again(again)
        spent += left
    model = learned.last(reader)
    history = History(columns, tuple(learned.tables), tuple(beside), again, answer)
    return Found(history, reader.total, model, partial(reader.rows, model, beside), spent)


def _columns(plan: RoundsPlan, rows: PrivateRows, journal: Journal, share: Fraction) -> tuple[Measured, ...]:
    """Measure every column, at a share of what the plan says."""
    return tuple(
        _measured(plan, journal, ((c, 0),), (size,), share * cost, partial(rows.table, (c,), (size,)))
        for c, (size, cost) in enumerate(zip(plan.universe.sizes, plan.columns, strict=True))
    )


def _selected(
    plan: RoundsPlan,
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
    noise = {s: PENALTY * plan.law.size(cost) for s, cost in zip(sizes.tolist(), costs, strict=True) if cost}
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
