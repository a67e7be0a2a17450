"""The public plan of a release in rounds: what each step costs, and how many there are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

from smalldb.accounting.concentrated import rho_of
from smalldb.marginals.adaptive.dependence_test import answerable
from smalldb.marginals.estimate.cell_estimates import MOST_CELLS
from smalldb.marginals.expected_error import all_cells, all_pairs, columns_alone, in_rounds
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.pairs_at_once import measurable, pairs_of, variances
from smalldb.marginals.universe import Universe

MEMORY = 1 << 16  # cells of all tables of the model, beyond those of columns and rules
CERTIFICATE = Fraction(1, 20)
SELECTING = Fraction(3, 20)  # of a round
LARGE = 1 << 10  # cells of a table: larger ones are measured by groups
SURE = 0.8  # of the error of rounds, below which all pairs at once are taken: rounds may find few that depend
NEAR = 0.01  # an error above which it is asked first: columns that hardly depend may be near to independent
ASKING = Fraction(1, 64)  # of all but the certificate, for asking whether most pairs depend
MOST_ROUNDS = 75  # of up to `MANY_COLUMNS`; more of more
EVER_ROUNDS = 200
MANY_PAIRS = 91  # of 14 columns: fewer need fewer rounds
MANY_COLUMNS = 28  # more need more rounds, so that each is in a table, and tables that reach far
DEAF = 0.3  # of a measured table, off by noise alone: with many columns more than that finds nothing
MAX_ENTRIES = 10**9  # of the synthetic table, rows x columns
_ROWS = 10**6  # that are made whatever the public guess was
READING = 1 << 26  # cells / rate that are read at once: each cell takes some 1 / rate steps
_FINE = 1 << 10  # to which shares are rounded
DROWNED = "rounds would add noise of more than 2^40 to every count: epsilon is too small"


@dataclass(frozen=True, slots=True)
class RoundsPlan:
    """
    What is done, and what each step costs: all of it from public numbers.

    Attributes
    ----------
    universe
        The columns, the rules and the workload.
    epsilon, delta
        The guarantee; delta is None for a pure one, and also where a delta would not be of use.
    law
        How costs are counted and noise is drawn. Costs are epsilons, or parts of a rho.
    rows
        The public n under replace-one; under add-remove a public guess, which steers choices only.
    columns
        The cost of each column.
    cells
        The cost of all cells of the universe at once; above 0, there are neither columns nor rounds.
    pairs
        The cost of all tables of one and two columns at once; above 0, there are neither columns nor rounds.
    rounds
        How many tables of 64 cells can be selected and measured; fewer large ones, more small ones.
    selecting, measuring
        What each round costs in its two parts, for a table of 64 cells.
    certifying
        What the certificate costs: half for its selection, half for its size; 0 for none.
    memory
        How many cells the tables of the model may have beyond those of columns and rules.
    expected
        About what the total variation distance of the workload's tables will be in the mean; where it is
        asked, if most pairs depend.
    asking
        The cost of a number that tells first whether most pairs of columns depend: an epsilon, with a delta,
        too; 0: it is not asked.
    at_once
        The plan with all tables of two columns at once that is followed where they do; None: it is not asked.
    """

    universe: Universe
    epsilon: Fraction
    delta: Fraction | None
    law: PrivacyMeasure
    rows: int
    columns: tuple[Fraction, ...]
    cells: Fraction
    pairs: Fraction
    rounds: int
    selecting: Fraction
    measuring: Fraction
    certifying: Fraction
    memory: int
    expected: float
    asking: Fraction = Fraction(0)
    at_once: "RoundsPlan | None" = None

    def cost_of(self, cells: int) -> Fraction:
        """
        Return what a table of so many cells costs: `measuring` at 64 cells, and more for larger ones.

        Proportional to the square root of cells, from a quarter to four times as much: the sum over tables of
        cells / cost, the noise of all of them, is then least for a given sum of costs.
        """
        return self.measuring * min(Fraction(4), max(Fraction(1, 4), Fraction(isqrt(cells << 8), 128)))

    def raised(self, times: Fraction) -> "RoundsPlan":
        """Return the plan of rounds that cost so many times as much."""
        return replace(self, selecting=self.selecting * times, measuring=self.measuring * times)

    def after(self, asking: Fraction) -> "RoundsPlan":
        """Return the pure plan that pays for the question first, and has less for all but the certificate."""
        kept = 1 - asking / (self.budget - self.certifying)
        columns = tuple(kept * cost for cost in self.columns)
        return replace(self.raised(kept), columns=columns, pairs=kept * self.pairs, asking=asking)

    @property
    def public(self) -> tuple[object, ...]:
        """What decides what is done: numbers, texts and arrays."""
        where = self.universe
        rules = [part for columns, allowed in where.rules for part in (columns, allowed)]
        fields = (where.sizes, where.ordered, where.tables, where.weights, where.target, *rules)
        costs = (self.columns, self.cells, self.pairs, self.rounds, self.selecting, self.measuring)
        spent = (self.epsilon, self.delta, self.law, *costs, self.certifying)
        others = (self.asking, *(() if self.at_once is None else self.at_once.public))
        return (*fields, *spent, self.rows, self.memory, *others)

    @property
    def for_rounds(self) -> Fraction:
        """What all rounds cost together."""
        return self.rounds * (self.selecting + self.measuring)

    # Proof: docs/proofs/rounds.md, lemma 6.
    @property
    def budget(self) -> Fraction:
        """What all costs must not exceed: epsilon, or the rho that proves (epsilon less `asking`, delta)."""
        return self.epsilon if self.delta is None else rho_of(self.epsilon - self.asking, self.delta)

    @property
    def most_rows(self) -> int:
        """How many rows are made at most where their number is read from what was released."""
        return max(1, min(MAX_ENTRIES // len(self.universe.sizes), max(_ROWS, 100 * self.rows)))

    # Proof: docs/proofs/rounds.md, lemma 6.
    @property
    def cost(self) -> Fraction:
        """What all steps cost together, exactly: never more than the budget."""
        at_once = self.asked + self.certifying + self.cells + self.pairs
        own = sum(self.columns, at_once) + self.for_rounds
        return own if self.at_once is None or self.delta is not None else max(own, self.at_once.cost)

    # Proof: docs/proofs/rounds.md, lemma 13.
    @property
    def asked(self) -> Fraction:
        """What `asking` counts in the budget: nothing with a delta, whose budget is what it leaves."""
        return self.asking if self.delta is None else Fraction(0)


# Proof: docs/proofs/rounds.md, lemma 8.
def plan_rounds(
    universe: Universe,
    epsilon: Fraction,
    delta: Fraction | None,
    replaced: bool,
    rows: int,
    *,
    memory: int = MEMORY,
    certificate: Fraction = CERTIFICATE,
) -> RoundsPlan:
    """
    Share a budget among columns, rounds and the certificate, from public numbers alone.

    Columns are shared so that the sum of their errors (as total variation distance) is least: costs
    proportional to k^(1/2) pure, k^(2/3) under rho. What they get in all grows with the error that they would
    have if they got everything; rounds get fewer as that grows. Of more than 28 columns there are none where
    noise alone would put what they measure off by more than `DEAF`.

    Parameters
    ----------
    rows
        The public n under replace-one, else a public guess of it.
    certificate
        The share of the budget for the certificate, 0 for none.

    Raises
    ------
    ValueError
        Noise would be above 2^40 in the mean on every count, if there were no delta.
    """
    if not 0 <= certificate < 1:
        raise ValueError("certificate must be a share of at least 0 and below 1")
    if rows < 1:
        raise ValueError("rows must be at least 1")
    pure = PrivacyMeasure(concentrated=False, replaced=replaced)
    left = epsilon * (1 - certificate)
    if pure.drowns(left):
        raise ValueError(DROWNED)
    plans = [_in_rounds(universe, pure, epsilon, None, epsilon, rows, memory, certificate)]
    if delta is not None:
        law, rho = PrivacyMeasure(concentrated=True, replaced=replaced), rho_of(epsilon, delta)
        plans.append(_in_rounds(universe, law, epsilon, delta, rho, rows, memory, certificate))
    plan = min(plans, key=lambda one: one.expected)
    if universe.cells <= MOST_CELLS and universe.cells <= READING * pure.rate(left):
        # one noise for all cells is geometric, with a delta, too: its tail is lighter
        error = all_cells(universe, pure, left, rows)
        if error <= plan.expected:  # both are 0 where epsilon is huge: cells are then exact, a model is not
            plan = _alone(universe, pure, epsilon, rows, memory, certificate, error, cells=left)
    if not measurable(universe):
        return plan
    at_once = _pairs_at_once(universe, pure, epsilon, rows, memory, certificate)
    if at_once.expected < SURE * plan.expected and (plan.cells or at_once.expected < NEAR):
        return at_once
    asking = left * ASKING
    asked = at_once.after(asking)
    if plan.cells or at_once.expected >= plan.expected or not _answerable(asked):
        return plan
    if plan.delta is None:
        plan = plan.after(asking)
    else:
        rho = rho_of(epsilon - asking, plan.delta)
        plan = _in_rounds(universe, plan.law, epsilon, plan.delta, rho, rows, memory, certificate)
    return replace(plan, asking=asking, at_once=asked, expected=asked.expected)


def _alone(
    universe: Universe,
    law: PrivacyMeasure,
    epsilon: Fraction,
    rows: int,
    memory: int,
    certificate: Fraction,
    expected: float,
    cells: Fraction = Fraction(0),
    pairs: Fraction = Fraction(0),
) -> RoundsPlan:
    """Return the plan that measures all cells, or all pairs, and nothing else."""
    return RoundsPlan(
        universe=universe,
        epsilon=epsilon,
        delta=None,
        law=law,
        rows=rows,
        columns=(),
        cells=cells,
        pairs=pairs,
        rounds=0,
        selecting=Fraction(0),
        measuring=Fraction(0),
        certifying=epsilon * certificate,
        memory=memory,
        expected=expected,
    )


def _in_rounds(
    universe: Universe,
    law: PrivacyMeasure,
    epsilon: Fraction,
    delta: Fraction | None,
    budget: Fraction,
    rows: int,
    memory: int,
    certificate: Fraction,
) -> RoundsPlan:
    """Return the plan that measures columns, then tables in rounds, under a law."""
    left = budget * (1 - certificate)
    parts = [round(k ** (2 / 3 if law.concentrated else 1 / 2) * _FINE) for k in universe.sizes]
    blur = columns_alone(universe, law, [left * part / sum(parts) for part in parts], rows)
    among = pairs_of(universe)
    pairs = len(among)
    share = Fraction(round(_FINE * _column_share(blur, law.concentrated)), _FINE) if pairs else Fraction(1)
    rounds = _rounds(blur, pairs, len(universe.sizes), law.concentrated)
    each = left * (1 - share) / max(1, rounds)
    plan = RoundsPlan(
        universe=universe,
        epsilon=epsilon,
        delta=delta,
        law=law,
        rows=rows,
        columns=tuple(left * share * part / sum(parts) for part in parts),
        cells=Fraction(0),
        pairs=Fraction(0),
        rounds=rounds,
        selecting=each * SELECTING,
        measuring=each * (1 - SELECTING),
        certifying=budget * certificate,
        memory=memory,
        expected=blur,
    )
    if not pairs:
        return plan
    cells = [min(universe.sizes[a] * universe.sizes[b], LARGE) for a, b in among]
    noise = _pair_by_pair(plan, cells)
    if len(universe.sizes) > MANY_COLUMNS and sum(put_off(plan, cells, Fraction(1))) > DEAF * pairs:
        # rounds would find next to nothing, and the columns, which make up most of the error, pay for them
        alone = tuple(left * part / sum(parts) for part in parts)
        plan = replace(plan, columns=alone, rounds=0, selecting=Fraction(0), measuring=Fraction(0))
        noise, rounds = [1.0], 0
    return replace(plan, expected=in_rounds(universe, blur, law.concentrated, rounds / pairs, noise))


def _pair_by_pair(plan: RoundsPlan, sizes: Sequence[int]) -> list[float]:
    """Return by how much noise puts each table of such sizes off, were all selected and measured alike."""
    shared = sum(
        (many * (plan.cost_of(size) + plan.selecting) for size, many in Counter(sizes).items()), Fraction(0)
    )
    return put_off(plan, sizes, plan.for_rounds / shared)


def put_off(plan: RoundsPlan, sizes: Sequence[int], times: Fraction) -> list[float]:
    """Return by how much noise puts each table of such sizes off, at so many times what a round costs."""
    off = {  # of 10^5 tables few differ
        size: plan.law.noise(times * plan.cost_of(size)).mean_size * size / (2 * plan.rows)
        for size in set(sizes)
    }
    return [off[size] for size in sizes]


def _pairs_at_once(
    universe: Universe, law: PrivacyMeasure, epsilon: Fraction, rows: int, memory: int, certificate: Fraction
) -> RoundsPlan:
    """Return the plan that measures all tables of one and two columns at once."""
    left = epsilon * (1 - certificate)
    columns, noise = variances(universe, left, law.replaced)
    expected = all_pairs(universe, columns, noise, rows)
    return _alone(universe, law, epsilon, rows, memory, certificate, expected, pairs=left)


# Proof: docs/proofs/rounds.md, lemma 13.
def _answerable(at_once: RoundsPlan) -> bool:
    """Whether there is an answer to hear, if it is asked whether most pairs depend."""
    _, noise = variances(at_once.universe, at_once.pairs, at_once.law.replaced)
    return answerable(at_once.universe, noise, at_once.law, at_once.asking)


def _column_share(blur: float, concentrated: bool) -> float:
    """Return the share of columns; fitted to tables of 8 to 14 columns."""
    middle = 0.3 if concentrated else 0.4
    return float(min(0.75, max(0.1, middle * (max(blur, 1e-12) / 0.0043) ** 0.3)))


def _rounds(blur: float, pairs: int, columns: int, concentrated: bool) -> int:
    """Return how many rounds are worth their noise."""
    if not pairs:
        return 0
    times = min(1.0, pairs / MANY_PAIRS) * max(1.0, columns / MANY_COLUMNS)
    wanted: float = (38 if concentrated else 27) * (max(blur, 1e-12) / 0.0043) ** -0.6 * times
    most = min(EVER_ROUNDS, round(MOST_ROUNDS * max(1.0, columns / MANY_COLUMNS)))
    return min(most, pairs + pairs // 2, max(3, round(wanted)))
