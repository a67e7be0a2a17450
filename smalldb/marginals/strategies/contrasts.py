"""Contrasts: parities of all columns at once, with the one noise that does least harm; and rows near to them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise
from math import ceil, inf, log, pi, sqrt
from typing import Any, ClassVar

import numpy as np

from queries import Domain, Rows, Workload
from queries.arrays import Floats
from queries.domain import MAX_TABLE_ATTRIBUTES, Bits, Integers
from smalldb.accounting.concentrated import rho_of
from smalldb.exact.integers import uniform_permutation
from smalldb.marginals.contrasts.coding import Coding, coding
from smalldb.marginals.contrasts.parity_fit import Estimates, fit, guarded_fit, masks, prior
from smalldb.marginals.contrasts.parity_rows import flipped_towards, rounded, rows_with_means
from smalldb.marginals.contrasts.shrinkage import believed
from smalldb.marginals.contrasts.spectrum import Positions, Spectrum, odd_counts
from smalldb.marginals.counted_rows import checked
from smalldb.marginals.curator import Curator, Steps
from smalldb.marginals.estimate.column_estimates import bounded_total, pooled
from smalldb.marginals.measuring import LIMIT, PrivacyMeasure
from smalldb.marginals.noise_bound import Sums, bound
from smalldb.marginals.strategies.budgets import MAX_ENTRIES
from smalldb.mechanisms import Journal, Measurement, Parity, Running
from smalldb.noise.distributions import Geometric, Noise, WishartDifference
from smalldb.noise.privacy_loss import Loss
from smalldb.selection import select

MAX_SEARCHED = 10**8  # entries of a table that is made from a table of all cells: about 2 GB at work
DEPENDENT = 0.15  # about how large parities of order 2 are, beside those of independent columns
GUARD = Fraction(1, 10)  # of epsilon, for the parity of three columns that was predicted worst
_UNIT = 2.0**-52
_QUIETLY = Running()


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Parities that are measured once, and perhaps one more; a function of public numbers alone."""

    name: ClassVar[str] = "contrasts"
    method: ClassVar[str] = "marginals of contrasts"

    workload: Workload
    spectrum: Spectrum
    n: int
    epsilon: Fraction
    delta: Fraction | None
    replaced: bool
    sets: tuple[Positions, ...]
    noises: tuple[tuple[Noise, int], ...]  # each, and of how many of the sets, in order
    deviations: Mapping[int, float]  # of the sum of signs over the rows, by order
    guarded: bool = False
    certifying: Fraction = Fraction(0)

    @property
    def coding(self) -> Coding:
        """How columns are coded as yes/no attributes, whose parities are measured."""
        return coding(self.workload.domain)

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.coding.domain

    @property
    def tabled(self) -> bool:
        """Whether there is a table of all cells."""
        return len(self.domain.attributes) <= MAX_TABLE_ATTRIBUTES

    @property
    def law(self) -> PrivacyMeasure:
        """Of the certificate and the guard: pure, so that their epsilon is added to that of the parities."""
        return PrivacyMeasure(concentrated=False, replaced=self.replaced)

    @property
    def guarding(self) -> Fraction:
        """The rate of the choice of a guard, and of the noise on its count."""
        return self.epsilon * GUARD / 2 if self.guarded else Fraction(0)

    @property
    def measuring(self) -> Fraction:
        """The epsilon of the parities."""
        return self.epsilon - 2 * self.guarding

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def loss(self) -> Loss:
        """That of the parities, of the guard, and of the certificate."""
        rho = None if self.delta is None else rho_of(self.epsilon, self.delta)
        found = Loss.pure(self.measuring) if rho is None else Loss.concentrated(rho)
        if self.guarded:
            found = found.together(Loss.ranged(self.guarding)).together(Loss.geometric(self.guarding, 1))
        return found.together(self.law.loss_of_certificate(self.certifying))

    @property
    def public(self) -> tuple[object, ...]:
        """What decides what is done: numbers, texts and arrays."""
        series = self.spectrum
        decided = (
            self.n,
            self.epsilon,
            self.replaced,
            self.delta,
            self.certifying,
            self.guarded,
            self.noises,
        )
        numbers = (series.constants, series.starts, series.members, series.coefficients)
        return (*decided, self.sets, series.sets, *numbers)

    def measures_all(self, workload: Workload) -> bool:
        """Whether every query is a sum of what is measured, so that a bound follows from the noise alone."""
        return {*self.sets}.issuperset(self.spectrum.sets)

    most_tables: ClassVar[int] = 0

    @property
    def most_pairs(self) -> int:
        """How many pairs of columns a parity is about."""
        columns = self.coding.columns
        sets = [*self.sets, *(self.triples if self.guarded else ())]
        return len({pair for some in sets for pair in combinations([columns[a] for a in some], 2)})

    @property
    def triples(self) -> tuple[Positions, ...]:
        """The parities of three attributes, one of which a guard chooses."""
        return sets_of(self.spectrum, 3, 3)

    def _left(self, sizes: Floats, orders: Integers) -> Floats:
        """Return the variance that noise leaves of the means of parities with priors of such sizes."""
        known = np.array([self.deviations.get(o, inf) / self.n for o in range(int(orders.max()) + 1)])
        return np.asarray(1 / (np.maximum(known, 1e-100)[orders] ** -2.0 + sizes**-2))

    @property
    def worst_expected(self) -> float:
        """A public estimate of the mean of max_f |f(x) - f(y)|: the largest of 2 J normal numbers."""
        orders = np.arange(1, self.spectrum.orders[-1] + 1)
        worst = self.spectrum.kinds.worst(np.concatenate([[0.0], self._left(prior(orders), orders)]))
        return min(1.0, sqrt(2 * log(2 * self.workload.size) * worst))

    @property
    def expected(self) -> float:
        """About the mean distance of the tables of two columns that the queries are cells of."""
        series = self.spectrum
        sizes = np.where(series.orders == 2, DEPENDENT, prior(series.orders))
        left = self._left(sizes, series.orders)
        deviations = np.sqrt(series.over_queries(series.coefficients**2 * left[series.members]))
        if self.coding.plain:  # of wider tables than two columns, by their own cells
            widths = np.array([len(query.attributes) for query in self.workload.queries])
            widest = int(widths.max())
            halves = (
                2.0 * deviations.mean()
                if widest < 3
                else 2.0 ** (widest - 1) * deviations[widths == widest].mean()
            )
        else:
            each = np.array([block.size for block in self.workload.cells])
            means = np.add.reduceat(deviations, np.cumsum(each) - each) / each
            halves = float((means * np.array([block.cells for block in self.workload.cells])).mean()) / 2
        return min(1.0, sqrt(2 / pi) * float(halves))

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        said = "parities of one and two columns with Wishart noise"
        said = said if self.delta is None else "parities with Gaussian noise"
        return f"{said}{', the parity of three columns that was predicted worst' * self.guarded}, all at once"

    # Proof: docs/proofs/rounds.md, lemma 10.
    def steps(self) -> Steps:
        """Ask for all parities at once, then perhaps for the one of three columns that was predicted worst."""
        values = yield Parities(self.coding, self.sets, self.noises, self.measuring)
        released = Released(self, values)
        if self.guarded:
            chi = fit(self, released.estimates()).chi[masks(self, self.triples)]
            told = np.rint(released.total * ((1 - chi) / 2 if self.replaced else chi)).astype(np.int64)
            rank = yield WorstParity(self.coding, self.triples, told, self.guarding)
            noise = ((Geometric(self.guarding), 1),)
            (value,) = yield Parities(self.coding, (self.triples[rank],), noise, self.guarding)
            released = replace(released, guard=(self.triples[rank], int(value)))
        return released

    def release(
        self, rows: Rows, journal: Journal, count: int | None, running: Running = _QUIETLY
    ) -> "Outcome":
        """Measure the parities, and make rows that are near to them; all but the measuring is post-processing."""
        private = checked(rows.codes(), rows.counts, rows.domain.sizes)
        found = Curator(private, self.law, journal, running.executor).follow(self.steps())
        total = self.n if self.replaced else bounded_total(found.total)
        most = MAX_SEARCHED if self.tabled else MAX_ENTRIES
        wanted = min(total, max(1, most // len(rows.domain.sizes))) if count is None else count
        made = found.rows(wanted, None if self.tabled else journal.step(lambda coins: coins.bits(64)))
        order = uniform_permutation(wanted, journal.postprocessing_bits())
        return Outcome(self, found, total, self.coding.codes(made[order]))


@dataclass(frozen=True, slots=True, eq=False)
class Parities:
    """Ask: how many rows are odd on each of some sets, or sums of signs under add-remove; the empty set: rows."""

    coding: Coding
    sets: tuple[Positions, ...]
    noises: tuple[tuple[Noise, int], ...]
    cost: Fraction

    def counts(self, curator: Curator) -> Integers:
        """Return them without noise: private."""
        codes, counts = curator.rows.codes, curator.rows.counts
        bits = (codes[:, list(self.coding.columns)] == np.array(self.coding.categories)).astype(np.uint8)
        odd = odd_counts(Rows.from_codes(self.coding.domain, bits, counts), self.sets)
        return odd if curator.law.replaced else int(counts.sum()) - 2 * odd

    def answer(self, curator: Curator) -> Integers:
        """Release them."""

        def draw(coins: Any) -> Integers:
            noise = np.concatenate([noise.draw(many, coins) for noise, many in self.noises])
            return np.clip(self.counts(curator) + noise, -LIMIT, LIMIT)

        return curator.journal.step(draw, lambda found: found.tolist(), lambda kept: np.array(kept, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class WorstParity:
    """Ask: the set whose count is furthest from what was foretold: the exact exponential mechanism."""

    coding: Coding
    sets: tuple[Positions, ...]
    foretold: Integers
    cost: Fraction

    # Proof: docs/proofs/safeguard.md, lemmas 2, 3 and 4.
    def answer(self, curator: Curator) -> int:
        """Release which it is."""
        exact = Parities(self.coding, self.sets, (), self.cost)
        return curator.journal.step(
            lambda coins: (
                select(
                    np.abs(exact.counts(curator) - self.foretold), epsilon=self.cost, sensitivity=1, rng=coins
                ).index
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """What was released of parities, and what follows from it."""

    plan: Contrasts
    values: Integers
    guard: tuple[Positions, int] | None = None

    @property
    def total(self) -> int:
        """The number of rows."""
        return self.plan.n if self.plan.replaced else int(self.values[0])

    def sums(self) -> tuple[tuple[Positions, ...], Integers]:
        """Return the measured sets and their sums of signs over the rows."""
        plan = self.plan
        first = int(not plan.sets[0])
        return plan.sets[first:], plan.n - 2 * self.values if plan.replaced else self.values[first:]

    def guards(self) -> tuple[tuple[Positions, ...], Integers]:
        """Return the same of the guard."""
        if self.guard is None:
            return (), np.zeros(0, dtype=np.int64)
        positions, value = self.guard
        return (positions,), np.array([self.plan.n - 2 * value if self.plan.replaced else value])

    def estimates(self, of: str = "all") -> Estimates:
        """Return the means of the parities of the spectrum as they were released; infinitely uncertain: not."""
        plan, total, unit = self.plan, float(max(1, self.total)), 2 if self.plan.replaced else 1
        at = {chosen: position for position, chosen in enumerate(plan.spectrum.sets)}
        of_guard = {3: unit * sqrt(Geometric(plan.guarding).variance())} if self.guard else {}
        some = [Estimates(np.zeros(len(at)), np.full(len(at), inf))]
        for name, (sets, sums), deviations in (
            ("parities", self.sums(), plan.deviations),
            ("guard", self.guards(), of_guard),
        ):
            if of in ("all", name) and sets:
                members, one = (
                    [at[chosen] for chosen in sets],
                    Estimates(some[0].chi.copy(), some[0].deviations.copy()),
                )
                one.chi[members] = np.clip(sums / total, -1.0, 1.0)
                one.deviations[members] = [deviations[len(chosen)] / total for chosen in sets]
                some.append(one)
        chi, variances = pooled([one.chi for one in some], [one.deviations**2 for one in some])
        return Estimates(chi, np.sqrt(variances))

    def rows(self, count: int, seed: int | None) -> Bits:
        """Return rows near to the parities: of a distribution of all cells, or of independent columns, turned."""
        plan, found = self.plan, self.estimates()
        if seed is None:
            fitted = guarded_fit(plan, self.estimates("parities"), self.estimates("guard"), found)
            start, near = (
                1 - 2 * rounded(plan.domain, fitted.q, count).astype(np.int8),
                fitted.chi[masks(plan)],
            )
        else:
            means, near = believed(plan, found)
            start = rows_with_means(means, count, seed, plan.coding.starts)
        made: Bits = (flipped_towards(plan, found, near, start) < 0).astype(np.uint8)
        return made

    # Proof: docs/proofs/answers.md, lemma 7.
    def sums_within(self, failure: Fraction) -> Sums:
        """Return between which numbers the sum of each query lies, with probability 1 - failure over the noise."""
        plan, series = self.plan, self.plan.spectrum
        each, unit = failure / (1 + plan.guarded), 2 if plan.replaced else 1
        margins = dict[int, float]()
        for noise, own in zip([one for one, _ in plan.noises], _by_noise(plan), strict=True):
            for order in {len(chosen) for chosen in own}:
                margins[order] = _entry_quantile(noise, order, each / len(plan.sets))
        reach = ceil(margins.get(0, 0))
        n = (plan.n, plan.n) if plan.replaced else (self.total - reach, self.total + reach)
        at = {chosen: position for position, chosen in enumerate(series.sets)}
        below, above = (np.full(len(at), side * n[1]) for side in (-1.0, 1.0))
        of_guard = {3: Geometric(plan.guarding).quantile(None, each)} if self.guard else {}
        for (sets, sums), own in ((self.sums(), margins), (self.guards(), of_guard)):
            members, margin = [at[some] for some in sets], unit * np.array([own[len(some)] for some in sets])
            below[members] = np.maximum(below[members], sums - margin)
            above[members] = np.minimum(above[members], sums + margin)
        ends = series.coefficients * below[series.members], series.coefficients * above[series.members]
        low = series.over_queries(np.minimum(*ends)) + np.minimum(*(series.constants * end for end in n))
        high = series.over_queries(np.maximum(*ends)) + np.maximum(*(series.constants * end for end in n))
        size = series.over_queries(np.maximum(*np.abs(ends))) + np.abs(series.constants) * n[1]
        return Sums(low, high, n, (np.diff(series.starts) + 16) * _UNIT * (size + n[1]))


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What was released of the parities, and the synthetic rows in uniformly random order, shape (rows, C)."""

    strategy: Contrasts
    released: Released
    total: int
    codes: Integers

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """What was released, as it is published."""
        plan, coded, found = self.strategy, self.strategy.coding, list[Measurement]()

        def parity(positions: Positions) -> Parity:
            categories = None if coded.plain else tuple(coded.categories[a] for a in positions)
            return Parity(tuple(coded.columns[a] for a in positions), not plan.replaced, categories)

        cost = plan.measuring if plan.delta is None else rho_of(plan.epsilon, plan.delta)
        ends = np.cumsum([many for _, many in plan.noises])[:-1]
        for (noise, _), own, values in zip(
            plan.noises, _by_noise(plan), np.split(self.released.values, ends), strict=True
        ):
            found.append(Measurement(tuple(map(parity, own)), values, noise, cost, plan.delta is not None))
            cost = Fraction(0)
        if self.released.guard is not None:
            positions, value = self.released.guard
            one, noise = (parity(positions),), Geometric(plan.guarding)
            found.append(Measurement(one, np.array([value]), noise, plan.guarding, selecting=plan.guarding))
        return tuple(found)

    def bound(self, workload: Workload, n: int | None, finished: Rows, beta: Fraction) -> float:
        """Return the bound on every query that follows from the noise alone, where all were measured."""
        return bound(workload, finished, self.released.sums_within(beta))


def sets_of(series: Spectrum, lowest: int, highest: int) -> tuple[Positions, ...]:
    """Return the parities of some orders."""
    start, end = np.searchsorted(series.orders, [lowest, highest + 1]).tolist()
    return series.sets[start:end]


def _by_noise(plan: Contrasts) -> list[tuple[Positions, ...]]:
    """Return the sets of each noise."""
    ends = np.cumsum([0, *(many for _, many in plan.noises)]).tolist()
    return [plan.sets[start:end] for start, end in pairwise(ends)]


def _entry_quantile(noise: Noise, order: int, failure: Fraction) -> float:
    """Return what the noise of a parity of that order exceeds with probability at most `failure`."""
    if isinstance(noise, WishartDifference):
        return noise.entry_quantile(order, failure)
    return noise.quantile(None, failure)
