"""Sharing a privacy budget among measurements of tables, from public numbers alone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isqrt, sqrt
from typing import Self

from smalldb.marginals.expected_error import (
    USUAL,
    column_variances,
    columns_alone,
    columns_at_once,
    columns_only,
    in_rounds,
    of_groups,
)
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.first_tables import FirstTable, covers, first_tables, proportions
from smalldb.marginals.strategies.strategy import Setting, TableStrategy
from smalldb.marginals.universe import pairs_of
from smalldb.mechanisms import Measurement
from smalldb.noise.cone import width

MOST_CATEGORIES = 128  # categories of a column that is measured together with others
MOST_FREE = 1 << 10  # categories of all such columns, less one of each
MOST_WIDE = 256  # numbers in a row of a frame: the noise takes some 12 times their square of normal numbers
_FINE = 1 << 10  # to which shares are rounded
SELECTING = Fraction(3, 20)  # of a round
LARGE = 1 << 10  # cells of a table: larger ones are measured by groups
MOST_ROUNDS = 75  # of up to `MANY_COLUMNS`; more of more
EVER_ROUNDS = 200
MANY_PAIRS = 91  # of 14 columns: fewer need fewer rounds
MANY_COLUMNS = 28  # more need more rounds, so that each is in a table, and tables that reach far
CHEAPER = 2.5  # times the rounds, under rho
MOST_CHEAPER = 160  # of these, so that a release takes less than a minute
SMALL = 16  # cells of a table
MOST_NOISE = 0.12  # of such a table, off by noise alone: rounds are dropped beyond it, and all at twice it
# of the error that they have if all is measured alike, at which tables of targets pay: pure, rho
WORTH = {False: 0.6, True: 0.7}
LEAST_ROUNDS = 2  # of those that first tables leave
BESIDE = Fraction(1, 3)  # of what first tables leave, for columns that they cover: under rho


def column_groups(
    sizes: Sequence[int], among: Sequence[int], concentrated: bool
) -> tuple[tuple[int, ...], ...]:
    """Return groups of columns, neighbours in size, such that the sum of their expected errors is least."""
    # with costs proportional to the root of a group's error, the sum of all is the square of the sum of roots
    if concentrated:
        return tuple((c,) for c in among)
    pieces = _pieces(sizes, among)
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(pieces) + 1):
        cheapest = (inf, 0)
        for start in range(end):
            group = [c for piece in pieces[start:end] for c in piece]
            if start == end - 1 or _may(sizes, group):
                cheapest = min(cheapest, (best[start][0] + sqrt(_error(sizes, group)), start))
        best.append(cheapest)
    groups, end = list[tuple[int, ...]](), len(pieces)
    while end:
        start = best[end][1]
        groups.append(tuple(sorted(c for piece in pieces[start:end] for c in piece)))
        end = start
    return tuple(sorted(groups))


def shares_of_columns(
    sizes: Sequence[int], groups: Sequence[Sequence[int]], concentrated: bool
) -> list[Fraction]:
    """Return the shares of costs of all columns, each an equal part of its group's; 0: in no group."""
    parts = [Fraction(0)] * len(sizes)
    alone = proportions(sizes, concentrated)
    together = any(len(group) > 1 for group in groups)
    for group in groups:
        whole = round(sqrt(_error(sizes, group)) * _FINE) if together else alone[group[0]]
        for c in group:
            parts[c] = Fraction(whole, len(group))
    total = max(1, sum(parts))
    return [part / total for part in parts]


def _pieces(sizes: Sequence[int], among: Sequence[int]) -> list[list[int]]:
    """Return columns of one size together, as many as a group may have, from small to large."""
    pieces = list[list[int]]()
    for c in sorted(among, key=lambda c: (sizes[c], c)):
        if pieces and sizes[pieces[-1][0]] == sizes[c] and _may(sizes, [*pieces[-1], c]):
            pieces[-1].append(c)
        else:
            pieces.append([c])
    return pieces


def _may(sizes: Sequence[int], group: Sequence[int]) -> bool:
    """Tell whether columns may be measured at once."""
    categories = [sizes[c] for c in group]
    return (
        min(categories) >= 2
        and max(categories) <= MOST_CATEGORIES
        and sum(categories) - len(categories) <= MOST_FREE
    )


def _error(sizes: Sequence[int], group: Sequence[int]) -> float:
    """Return the expected error of a group's columns together, at a cost of 1: by K-norm noise."""
    dimensions = sum(sizes[c] - 1 for c in group)
    return (dimensions + 1) * sum(1 - 1 / sizes[c] for c in group) or 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsBudget(TableStrategy):
    """What each column and each round of selecting and measuring a table costs."""

    first: tuple[FirstTable, ...]  # the tables that are measured before others are selected
    columns: tuple[Fraction, ...]  # the cost of each column; 0 where it is read from the first tables
    # the columns that cost something, in groups that are measured at once
    together: tuple[tuple[int, ...], ...]
    rounds: int  # how many tables of 64 cells can be selected and measured; fewer large ones, more small ones
    # what each round costs in its two parts, for a table of 64 cells
    selecting: Fraction
    measuring: Fraction
    # whether, in place of rounds that noise would drown, all pairs of columns in halves are measured at once
    halved: bool = False
    earlier: tuple[Measurement, ...] = ()  # what a release of the same data measured before; public

    def cost_of(self, cells: int) -> Fraction:
        """Return what a table of so many cells costs: `measuring` at 64 cells, and more for larger ones."""
        # by the root of cells the sum of cells / cost, the noise of all tables, is least
        return self.measuring * times_of(cells)

    def raised(self, times: Fraction) -> Self:
        """Return the plan of rounds that cost so many times as much."""
        return replace(self, selecting=self.selecting * times, measuring=self.measuring * times)

    @property
    def costs(self) -> tuple[object, ...]:
        """Of the first tables, the columns, and rounds."""
        first = [part for table in self.first for part in (table.columns, table.cost, table.whole)]
        rounds = self.rounds, self.selecting, self.measuring, self.halved
        return (*first, self.columns, *self.together, *rounds)

    @property
    def column_variances(self) -> dict[int, float]:
        """The noise of columns that are measured for themselves, or of all the cells of a first table."""
        universe = self.universe
        variances = column_variances(universe, self.law, self.together, self.columns)
        for table in (table for table in self.first if table.whole):
            cells = universe.size(table.columns) * self.law.noise(table.cost).variance()
            variances |= {c: min(variances.get(c, inf), cells / universe.sizes[c]) for c in table.columns}
        return variances

    @property
    def for_first(self) -> Fraction:
        """What all first tables cost together."""
        return sum((table.cost for table in self.first), Fraction(0))

    @property
    def costs_of_tables(self) -> list[Fraction]:
        """What first tables and columns cost, each; noise of a column is about as large as its part says."""
        return [cost for cost in (*(table.cost for table in self.first), *self.columns) if cost]

    @property
    def to_beat(self) -> float:
        """The error below which a strategy that measures everything alike serves targets better."""
        if not self.first:
            return self.expected
        sizes = [self.universe.size(table.columns) for table in self.first]
        noise = [self.law.noise(table.cost).mean_size for table in self.first]
        off = [of_groups(a * b / (2 * self.rows), ()) for a, b in zip(noise, sizes, strict=True)]
        return sum(off) / len(off) / WORTH[self.law.concentrated]

    @property
    def for_rounds(self) -> Fraction:
        """What all rounds cost together."""
        return self.rounds * (self.selecting + self.measuring)

    # Proof: docs/proofs/rounds.md, lemma 6.
    @property
    def cost(self) -> Fraction:
        """What all steps cost together, exactly: never more than the budget."""
        return sum(self.columns, self.certifying) + self.for_first + self.for_rounds

    @classmethod
    def shared(
        cls,
        setting: Setting,
        known: int = 0,
        *,
        dependence: float = USUAL,
        alone: bool = False,
        halves: bool = False,
    ) -> Self:
        """
        Share the budget among columns and rounds; the first `known` columns cost nothing: they were released.

        `dependence` is how far pairs are taken to be from independent columns; `alone`: there are no rounds.
        Columns are shared so that the sum of their errors (as total variation distance) is least: costs
        proportional to k^(1/2) pure, k^(2/3) under rho. What they get in all grows with the error that they
        would have if they got everything; rounds get fewer as that grows. First tables come before both, and
        columns that are read from them cost nothing. Under rho, and of more than 28 columns, rounds are
        dropped one by one as noise gets louder than `MOST_NOISE`, or than half of `dependence`, and the
        columns get what they would have cost. With `halves`, pure rounds of twice that noise are given up for
        all pairs of columns in halves, at once: they show the strongest pairs, at a larger error of all.
        """
        universe, law, rows = setting.universe, setting.law, setting.rows
        left = setting.budget - setting.certifying
        parts = [0] * known + proportions(universe.sizes[known:], law.concentrated)
        costs = [left * part / sum(parts) for part in parts]  # of columns, if they got everything
        columns_error = columns_alone(universe, law, costs, rows)
        among = pairs_of(universe)
        pairs = len(among)
        first = first_tables(universe, law, left, rows)
        rest = left - sum((table.cost for table in first), Fraction(0))
        read = {c for table in first if table.whole for c in table.columns}
        paid_parts = [0 if c in read else part for c, part in enumerate(parts)]
        alone |= setting.column_share == 1
        usual = rounds = 0 if alone else _rounds(columns_error, pairs, len(universe.sizes), law.concentrated)
        usual_share = _column_share(columns_error, law.concentrated)
        wanted_share = setting.column_share or usual_share
        share = wanted_share if rounds else Fraction(1)
        if law.concentrated and not read and covers(universe, [table.columns for table in first]):
            share = setting.column_share or BESIDE
        for_columns = rest * share * sum(paid_parts) / sum(parts)
        for_rounds = rest - for_columns
        if law.concentrated:
            rounds = max(usual, min(round(CHEAPER * usual), MOST_CHEAPER, pairs + pairs // 2))
        elif rounds and (left_share := for_rounds / (left * (1 - usual_share))) < 1:
            rounds = max(LEAST_ROUNDS, round(rounds * left_share))
        if rounds and (law.concentrated or len(universe.sizes) > MANY_COLUMNS):
            least = usual if len(universe.sizes) <= MANY_COLUMNS else 0
            above_noise = _share_above_noise(law, for_rounds / rounds, rows, dependence)
            audible = max(least, round(rounds * above_noise))
            if any(paid_parts):
                for_rounds *= Fraction(audible, rounds)
                for_columns = rest - for_rounds
            rounds = audible
        if not rounds and not any(paid_parts):
            first = tuple(replace(table, cost=table.cost * left / (left - rest)) for table in first)
        each = for_rounds / rounds if rounds else Fraction(0)
        paid = [c for c, part in enumerate(paid_parts) if part]
        groups = column_groups(universe.sizes, paid, law.concentrated)
        shares = shares_of_columns(universe.sizes, groups, law.concentrated)
        plan = cls.of(
            setting,
            expected=columns_error,
            first=first,
            columns=tuple(for_columns * part for part in shares),
            together=groups,
            rounds=rounds,
            selecting=each * SELECTING,
            measuring=each * (1 - SELECTING),
        )
        halves = halves and not (law.concentrated or first or known)
        if halves and rounds and width((2,) * len(parts)) <= MOST_WIDE:
            plan = replace(plan, halved=_share_above_noise(law, each, rows, dependence) <= 0)
        if not pairs or (not rounds and not first):
            measured = columns_at_once(universe, law, groups, plan.columns, rows)
            expected = columns_only(universe, measured, dependence) if pairs else measured
            return replace(plan, expected=expected)
        noise = [1.0]
        if rounds:
            sizes = [min(universe.sizes[a] * universe.sizes[b], LARGE) for a, b in among]
            counts = Counter(sizes).items()
            alike = sum((many * (plan.cost_of(size) + plan.selecting) for size, many in counts), Fraction(0))
            noise = put_off(plan, sizes, plan.for_rounds / alike)
            columns_error *= float((1 - usual_share) / (1 - wanted_share))
        tables = rounds + len(first)
        expected = in_rounds(universe, columns_error, law.concentrated, noise, dependence, tables)
        return replace(plan, expected=expected)


def put_off(plan: RoundsBudget, sizes: Sequence[int], times: Fraction) -> list[float]:
    """Return by how much noise puts each table of such sizes off, at so many times what a round costs."""
    noise = {size: plan.law.noise(times * plan.cost_of(size)) for size in set(sizes)}  # few of 10^5 differ
    off = {size: noise[size].mean_size * size / (2 * plan.rows) for size in noise}
    return [off[size] for size in sizes]


def _share_above_noise(law: PrivacyMeasure, cost: Fraction, rows: int, dependence: float) -> float:
    """Return the share of rounds of that cost that noise leaves: from 1 down to 0 as it gets louder."""
    noise = law.noise(cost * (1 - SELECTING) * times_of(SMALL)).mean_size
    return min(1.0, max(0.0, 2 - noise * SMALL / (2 * rows) / max(MOST_NOISE, dependence / 2)))


def _column_share(columns_error: float, concentrated: bool) -> Fraction:
    """Return the share of columns; fitted to tables of 8 to 14 columns."""
    share = (0.3 if concentrated else 0.4) * (max(columns_error, 1e-12) / 0.0043) ** 0.3
    return Fraction(round(_FINE * min(0.3 if concentrated else 0.75, max(0.1, share))), _FINE)


def times_of(cells: int) -> Fraction:
    """Return what a table of so many cells costs, where one of 64 costs 1: see `RoundsBudget.cost_of`."""
    return min(Fraction(4), max(Fraction(1, 4), Fraction(isqrt(cells << 8), 128)))


def _rounds(columns_error: float, pairs: int, columns: int, concentrated: bool) -> int:
    """Return how many rounds are worth their noise."""
    if not pairs:
        return 0
    times = min(1.0, pairs / MANY_PAIRS) * max(1.0, columns / MANY_COLUMNS)
    wanted: float = (38 if concentrated else 27) * (max(columns_error, 1e-12) / 0.0043) ** -0.6 * times
    most = min(EVER_ROUNDS, round(MOST_ROUNDS * max(1.0, columns / MANY_COLUMNS)))
    return min(most, pairs + pairs // 2, max(3, round(wanted)))
