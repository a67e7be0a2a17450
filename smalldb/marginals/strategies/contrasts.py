"""Contrasts: parities of all columns at once, with the noise that does least harm, and rows near to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, pairwise
from math import ceil, inf, log, pi, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from queries import Domain, Rows, Workload
from queries.arrays import Floats
from queries.domain import MAX_TABLE_ATTRIBUTES, Bits, Integers
from smalldb.accounting.concentrated import rho_of
from smalldb.marginals.asks import Coins, Noisy, Order, Worst, columns_at_once
from smalldb.marginals.contrasts.coding import Coding, coding
from smalldb.marginals.contrasts.parity_fit import (
    Means,
    fit,
    flipped_towards,
    guarded_fit,
    masks,
    prior,
    rounded,
    rows_with_means,
)
from smalldb.marginals.contrasts.shrinkage import believed
from smalldb.marginals.contrasts.spectrum import Positions, Spectrum
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.column_estimates import bounded_total, pooled
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.noise_bounds import Sums
from smalldb.marginals.parity_refits import LOUD, can_exist
from smalldb.marginals.strategies.strategy import MAX_ENTRIES, Strategy, whole_table
from smalldb.mechanisms import Parity
from smalldb.noise.geometric import Geometric
from smalldb.noise.noise_protocol import Noise
from smalldb.noise.privacy_loss import Loss

MAX_SEARCHED = 10**8  # entries of a table that is made from a table of all cells: about 2 GB at work
DEPENDENT = 0.15  # about how large parities of order 2 are, beside those of independent columns
GUARD = Fraction(1, 10)  # of epsilon, for the parity of three columns that was predicted worst
_UNIT = 2.0**-52


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts(Strategy):
    """Parities that are measured once, and perhaps one more; a function of public numbers alone."""

    name: ClassVar[str] = "contrasts"
    method: ClassVar[str] = "marginals of contrasts"
    within: ClassVar[float | None] = None

    workload: Workload
    spectrum: Spectrum
    n: int
    epsilon: Fraction  # of all but the certificate
    replaced: bool
    certifying: Fraction
    delta: Fraction | None = None
    sets: tuple[Positions, ...] = ()
    noises: tuple[tuple[Noise, int], ...] = ()  # each, and of how many of the sets, in order
    deviations: Mapping[int, float] = field(default_factory=dict)  # of sums of signs over the rows, by order
    guarded: bool = False
    columns: tuple[int, ...] = ()  # that are counted at once, if these alone are measured

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

    # Proof: docs/proofs/losses.md, lemma 8; docs/proofs/answers.md, lemma 2.
    @property
    def loss(self) -> Loss:
        """That of the parities, of the guard, and of the certificate."""
        rho = None if self.delta is None else rho_of(self.epsilon, self.delta)
        loss = Loss.pure(self.measuring) if rho is None else Loss.concentrated(rho)
        if self.guarded:
            loss = loss.together(Loss.ranged(self.guarding)).together(Loss.geometric(self.guarding, 1))
        return loss.together(self.law.loss_of_certificate(self.certifying))

    @property
    def public(self) -> tuple[object, ...]:
        """What decides what is done: numbers, texts and arrays."""
        series, budget = self.spectrum, (self.n, self.epsilon, self.replaced, self.delta, self.certifying)
        arrays = (series.constants, series.starts, series.members, series.coefficients)
        return (*budget, self.guarded, self.noises, self.columns, self.sets, series.sets, *arrays)

    def measures_all(self, workload: Workload) -> bool:
        """Whether every query is a sum of what is measured, so that a bound follows from the noise alone."""
        return {*self.sets}.issuperset(self.spectrum.sets)

    @property
    def column_variances(self) -> dict[int, float]:
        """The noise of parities of one attribute: a sum of signs is twice a count."""
        noise = self.deviations.get(1)
        return {} if noise is None else dict.fromkeys(range(len(self.workload.domain.sizes)), noise**2 / 4)

    @property
    def most_tables(self) -> int:
        """How many tables of counts are measured: columns, if these alone are."""
        return len(self.columns)

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

    def undrawable(self, n: int | None) -> str | None:
        """Say why several tables cannot be drawn: none has such contrasts (n is public)."""
        if n is None or can_exist(len(self.domain.attributes), self.deviations.get(2, 0.0) / n):
            return None
        return f"{LOUD}: take a larger epsilon, or leave out --tables"

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

    def expected_error(self, rows: int) -> float:
        """Return that of the worst query, where there is a table of all cells; and half a row."""
        return min(1.0, (self.worst_expected if self.tabled else self.expected) + 0.5 / rows)

    @property
    def expected(self) -> float:
        """About the mean distance of the tables of two columns that the queries are cells of."""
        series = self.spectrum
        sizes = np.where(series.orders == 2, DEPENDENT, prior(series.orders))
        left = self._left(sizes, series.orders)
        deviations = np.sqrt(series.over_queries(series.coefficients**2 * left[series.members]))
        if not self.coding.plain:
            each = np.array([block.size for block in self.workload.cells])
            means = np.add.reduceat(deviations, np.cumsum(each) - each) / each
            sums = (means * np.array([block.cells for block in self.workload.cells])).mean()
        else:
            widths = np.array([len(query.attributes) for query in self.workload.queries])
            widest = max(2, int(widths.max()))
            # a wider table has more cells, and parities of its own
            sums = 2.0**widest * (deviations[widths == widest] if widest > 2 else deviations).mean()
        return min(1.0, sqrt(2 / pi) * float(sums) / 2)

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        pairs = "parities" if self.delta is not None else "parities of one and two columns"
        what = "the counts of columns" if self.columns else pairs
        guard = ", the parity of three columns that was predicted worst" * self.guarded
        return f"{what} with {self.noises[0][0].word} noise{guard}, all at once"

    # Proof: docs/proofs/rounds.md, lemma 10; docs/proofs/answers.md, lemma 2;
    # docs/proofs/safeguard.md, lemmas 1 and 4.
    def steps(self) -> Steps:
        """Ask for all parities at once, then perhaps for that of three columns that was predicted worst."""
        if self.columns:
            sizes = [self.workload.domain.sizes[c] for c in self.columns]
            of = [whole_table((c,), (size,)) for c, size in zip(self.columns, sizes, strict=True)]
            counts = np.split((yield columns_at_once(of, self.law, self.measuring)), np.cumsum(sizes)[:-1])
            odd = np.concatenate([of_column[1:] for of_column in counts])
            total = int(counts[0].sum())  # one number: the noise of all columns has the same sum
            values = odd if self.replaced else np.concatenate([[total], total - 2 * odd])
            return Estimate(self, (Measured(self.sets, values, self.noises[0][0], self.deviations),))
        estimate = self.estimate((yield Noisy(self.parities(self.sets), self.noises)))
        if not self.guarded:
            return estimate
        predicted = estimate.predicted(self.triples)
        rank = yield self.worst(predicted)
        guard, noise = (self.triples[rank],), Geometric(self.guarding)
        values = yield Noisy(self.parities(guard), ((noise, 1),))
        deviations = {3: (2 if self.replaced else 1) * sqrt(noise.variance())}
        return replace(estimate, guard=(Measured(guard, values, noise, deviations),))

    def estimate(self, values: Integers) -> "Estimate":
        """Return what follows from the released numbers of all sets."""
        ends = np.cumsum([0, *(many for _, many in self.noises)]).tolist()
        parts = [
            Measured(self.sets[start:end], values[start:end], noise, self.deviations)
            for (noise, _), (start, end) in zip(self.noises, pairwise(ends), strict=True)
        ]
        return Estimate(self, tuple(parts))

    # Proof: docs/proofs/safeguard.md, lemmas 2, 3 and 4.
    def worst(self, predicted: Integers) -> Worst:
        """Ask for the rank of the set whose count is furthest from its prediction: a row moves it by 1."""
        return Worst(
            of=self.parities(self.triples),
            scores=lambda counts: np.abs(counts[0] - predicted),
            moved=1,
            law=self.law,
            cost=self.guarding,
        )

    def release(self, count: int | None) -> Steps:
        """Measure the parities, and make rows that are near to them, which is post-processing."""
        estimate: Estimate = yield from self.steps()
        most = MAX_SEARCHED if self.tabled else MAX_ENTRIES
        wanted = min(estimate.total, max(1, most // len(self.workload.domain.sizes)))
        wanted = wanted if count is None else count
        bits = estimate.rows(wanted, None if self.tabled else (yield Coins()))
        order = yield Order(wanted)
        return replace(estimate, codes=self.coding.codes(bits[order]))

    def parities(self, sets: Sequence[Positions]) -> tuple[Parity, ...]:
        """Return what is counted on some sets, as it is published: by columns and categories."""
        coded = self.coding
        return tuple(
            Parity(
                tuple(coded.columns[a] for a in positions),
                not self.replaced,
                None if coded.plain else tuple(coded.categories[a] for a in positions),
            )
            for positions in sets
        )


class Measured(NamedTuple):
    """Released numbers of parities: odd rows under replace-one, sums of signs under add-remove."""

    sets: tuple[Positions, ...]
    values: Integers
    noise: Noise
    deviations: Mapping[int, float]  # of sums of signs, by order

    def margins(self, failure: Fraction) -> dict[int, float]:
        """Return what the noise of a parity of each order exceeds with probability at most `failure`."""
        return {order: self.noise.entry_quantile(order, failure) for order in {*map(len, self.sets)}}


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What was released of parities, and what follows from it; the synthetic rows, shape (rows, C)."""

    strategy: Contrasts
    parities: tuple[Measured, ...]
    guard: tuple[Measured, ...] = ()  # one of these, or none
    codes: Integers = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    @property
    def total(self) -> int:
        """The number of rows: public, or read from what was released."""
        plan = self.strategy
        return plan.n if plan.replaced else bounded_total(int(self.parities[0].values[0]))

    def _sums(self, measured: Measured) -> tuple[tuple[Positions, ...], Integers]:
        """Return what was measured but the number of rows, and its sums of signs over the rows."""
        first, plan = int(not measured.sets[0]), self.strategy
        values = measured.values[first:]
        return measured.sets[first:], plan.n - 2 * values if plan.replaced else values

    def means(self, *some: Measured) -> Means:
        """Return means of the parities of the spectrum; what none measured is infinitely uncertain."""
        ranks, total = self.strategy.spectrum.ranks, self.total
        chi, deviations = [np.zeros(len(ranks))], [np.full(len(ranks), inf)]
        for measured in some:
            sets, sums = self._sums(measured)
            members = [ranks[one] for one in sets]
            chi.append(chi[0].copy())
            deviations.append(deviations[0].copy())
            chi[-1][members] = np.clip(sums / total, -1.0, 1.0)
            deviations[-1][members] = [measured.deviations[len(one)] / total for one in sets]
        means, variances = pooled(chi, np.square(deviations))
        return Means(means, np.sqrt(variances))

    def predicted(self, sets: tuple[Positions, ...]) -> Integers:
        """Return what a fit to the parities predicts of the numbers of other ones, rounded."""
        chi = fit(self.strategy, self.means(*self.parities)).chi[masks(self.strategy, sets)]
        predicted = np.rint(self.total * ((1 - chi) / 2 if self.strategy.replaced else chi))
        return np.asarray(predicted, dtype=np.int64)

    def rows(self, count: int, seed: int | None) -> Bits:
        """Return rows near to the parities, from all cells, or (a seed) from independent columns."""
        plan, means = self.strategy, self.means(*self.parities, *self.guard)
        if seed is None:
            fitted = guarded_fit(plan, self.means(*self.parities), self.means(*self.guard), means)
            start = 1 - 2 * rounded(plan.domain, fitted.q, count).astype(np.int8)
            near = fitted.chi[masks(plan)]
        else:
            columns, near = believed(plan, means)
            start = rows_with_means(columns, count, seed, plan.coding.starts)
        turned = flipped_towards(plan, means, near, start)
        bits: Bits = (turned < 0).astype(np.uint8)
        if plan.domain.valid is not None:  # a row that was turned into one that cannot exist is turned back
            gone = ~plan.domain.contains(bits)
            bits[gone] = start[gone] < 0
        return bits

    # Proof: docs/proofs/answers.md, lemma 5.
    def sums_within(self, failure: Fraction) -> Sums:
        """Return ends of the sum of each query: all hold with probability 1 - failure over the noise."""
        plan, series, ranks = self.strategy, self.strategy.spectrum, self.strategy.spectrum.ranks
        unit, share = 2 if plan.replaced else 1, failure / (1 + len(self.guard))
        margins = [measured.margins(share / len(plan.sets)) for measured in self.parities]
        margins += [measured.margins(share) for measured in self.guard]
        n = (plan.n, plan.n)
        if not plan.replaced:
            rows, reach = int(self.parities[0].values[0]), ceil(margins[0][0])
            n = rows - reach, rows + reach
        below, above = (np.full(len(ranks), side * n[1]) for side in (-1.0, 1.0))
        for measured, margin in zip((*self.parities, *self.guard), margins, strict=True):
            sets, sums = self._sums(measured)
            members = [ranks[one] for one in sets]
            reaches = unit * np.array([margin[len(one)] for one in sets])
            below[members] = np.maximum(below[members], sums - reaches)
            above[members] = np.minimum(above[members], sums + reaches)
        ends = series.coefficients * below[series.members], series.coefficients * above[series.members]
        low = series.over_queries(np.minimum(*ends)) + np.minimum(*(series.constants * end for end in n))
        high = series.over_queries(np.maximum(*ends)) + np.maximum(*(series.constants * end for end in n))
        size = series.over_queries(np.maximum(*np.abs(ends))) + np.abs(series.constants) * n[1]
        return Sums(low, high, n, (np.diff(series.starts) + 16) * _UNIT * (size + n[1]))

    def bound(self, workload: Workload, n: int | None, finished: Rows, beta: Fraction) -> float:
        """Return the bound on every query that follows from the noise alone, where all were measured."""
        return self.sums_within(beta).bound(workload, finished)


def sets_of(series: Spectrum, lowest: int, highest: int) -> tuple[Positions, ...]:
    """Return the parities of some orders."""
    start, end = np.searchsorted(series.orders, [lowest, highest + 1]).tolist()
    return series.sets[start:end]
