"""Contrasts of columns, all at once: the parities that queries are made of, and rows near to them."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, groupby
from math import comb, pi, sqrt
from typing import ClassVar

import numpy as np

from queries import Rows, Workload
from queries.domain import Bits, Integers
from smalldb.accounting.concentrated import rho_of
from smalldb.exact.integers import uniform_permutation
from smalldb.marginals.contrasts.maximum_entropy import guarded_fit
from smalldb.marginals.contrasts.parity_bound import parity_sums
from smalldb.marginals.contrasts.parity_means import NoisyParities, estimates, masks, pieces, released_total
from smalldb.marginals.contrasts.parity_measurement import measure
from smalldb.marginals.contrasts.parity_plan import ParityPlan, alternatives
from smalldb.marginals.contrasts.priors import prior
from smalldb.marginals.contrasts.shrinkage import believed
from smalldb.marginals.estimate.column_estimates import bounded_total
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.noise_bound import bound
from smalldb.marginals.rows.nearest_rows import synthesise
from smalldb.marginals.rows.query_search import search
from smalldb.marginals.rows.rounding import rounded
from smalldb.marginals.strategies.budgets import MAX_ENTRIES
from smalldb.marginals.wide_parities import flipped_towards, rows_with_means
from smalldb.mechanisms import Journal, Marginal, Measurement, Parity, Running
from smalldb.noise.distributions import Noise
from smalldb.noise.privacy_loss import Loss

MAX_SEARCHED = 10**8  # entries of a table that is made from a table of all cells: about 2 GB at work
DEPENDENT = 0.15  # about how large parities of order 2 are, beside those of independent columns
_QUIETLY = Running()


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """
    Parities that are measured once; a function of public numbers alone.

    Attributes
    ----------
    parities
        What is measured, and with which noise.
    certifying
        The epsilon of the certificate, above 0 only where something was not measured.
    """

    name: ClassVar[str] = "contrasts"
    method: ClassVar[str] = "marginals of contrasts"

    parities: ParityPlan
    certifying: Fraction

    @property
    def delta(self) -> Fraction | None:
        """Of the guarantee; None: it is pure."""
        return self.parities.delta

    # Proof: docs/proofs/losses.md, lemma 8.
    @property
    def loss(self) -> Loss:
        """That of all parts, and of the certificate."""
        setting, found = self.parities.setting, self.law.loss_of_certificate(self.certifying)
        for part in self.parities.parts:
            found = found.together(part.total_loss(setting))
        return found

    @property
    def law(self) -> PrivacyMeasure:
        """Of the certificate: pure, so that its epsilon is added to that of the parities."""
        return PrivacyMeasure(concentrated=False, replaced=self.parities.replaced)

    @property
    def public(self) -> tuple[object, ...]:
        """What decides what is done: numbers, texts and arrays."""
        plan, series = self.parities, self.parities.spectrum
        decided = (plan.n, plan.epsilon, plan.neighbours, plan.delta, self.certifying)
        numbers = (series.constants, series.starts, series.members, series.coefficients)
        return (*decided, plan.parts, series.sets, *numbers)

    def measures_all(self, workload: Workload) -> bool:
        """Whether every query is a sum of what is measured, so that a bound follows from the noise alone."""
        return self.complete

    @property
    def most_tables(self) -> int:
        """How many tables of counts are measured: that of all cells, or none."""
        return 0 if self.parities.cells is None else 1

    @property
    def most_pairs(self) -> int:
        """How many pairs of columns a parity is about, or all."""
        if self.parities.cells is not None:
            return comb(len(self.parities.workload.domain.sizes), 2)
        columns = self.parities.coding.columns
        sets = ([columns[a] for a in some] for part in self.parities.parts for some in part.sets)
        return len({pair for some in sets for pair in combinations(some, 2)})

    @property
    def complete(self) -> bool:
        """Whether all parities of the queries are measured."""
        if self.parities.cells is not None:
            return True
        measured = {positions for part in self.parities.unguarded for positions in part.sets}
        return measured.issuperset(self.parities.spectrum.sets)

    @property
    def expected(self) -> float:
        """About the mean distance of the tables of two columns that the queries are cells of.

        That is half of its cells, each off as much as a normal number is, of the variance that noise leaves
        where parities have a prior.
        """
        series, workload = self.parities.spectrum, self.parities.workload
        sizes = np.where(series.orders == 2, DEPENDENT, prior(series.orders))
        left = 1 / (self.parities.precision(series.orders, read=True) + sizes**-2)
        deviations = np.sqrt(series.over_queries(series.coefficients**2 * left[series.members]))
        if self.parities.coding.plain:
            halves = 2.0 * deviations.mean()
        else:
            each = np.array([block.size for block in workload.cells])
            means = np.add.reduceat(deviations, np.cumsum(each) - each) / each
            sizes = np.array([block.cells for block in workload.cells])
            halves = float((means * sizes).mean()) / 2
        return min(1.0, sqrt(2 / pi) * float(halves))

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        return f"{self.parities.described}, all at once"

    # Proof: docs/proofs/rounds.md, lemma 10.
    def release(
        self, rows: Rows, journal: Journal, count: int | None, running: Running = _QUIETLY
    ) -> "Parities":
        """
        Measure the parities, and make rows that are near to them; all but the measuring is post-processing.

        Parameters
        ----------
        rows
            The data, over the domain of the plan.
        journal
            Has the source of random bits, and what was released before.
        count
            How many rows are wanted; None: as many as there are, or are read from what was released (then up
            to 10^9 entries).
        running
            Whether progress is shown.
        """
        plan = self.parities
        measured = journal.step(
            lambda coins: measure(plan, rows, coins),
            lambda released: released.values.tolist(),
            lambda flat: NoisyParities(np.array(flat, dtype=np.int64)),
        )
        read = released_total(plan, measured)
        total = read if plan.replaced else bounded_total(read)
        most = MAX_SEARCHED if plan.setting.tabled else MAX_ENTRIES
        wanted = min(total, max(1, most // len(rows.domain.sizes))) if count is None else count
        if not plan.setting.tabled:
            made = self._near(measured, wanted, journal.step(lambda coins: coins.bits(64)))
        elif plan.coding.plain:
            made = synthesise(plan, measured, wanted, progress=running.progress)
        else:
            made = self._turned(measured, wanted)
        order = uniform_permutation(wanted, journal.postprocessing_bits())
        return Parities(self, measured, total, plan.coding.codes(made[order]))

    def _near(self, measured: NoisyParities, count: int, seed: int) -> Bits:
        """Return rows near to parities of more columns than a table of all cells can have."""
        plan = self.parities
        found = estimates(plan, measured)
        means, near = believed(plan, found)
        start = rows_with_means(means, count, seed, plan.coding.starts)
        made: Bits = (flipped_towards(plan, found, near, start) < 0).astype(np.uint8)
        if plan.spectrum.orders[-1] > 2:
            made = search(plan.workload, made, plan.spectrum.answers(near))
        return made

    def _turned(self, measured: NoisyParities, count: int) -> Bits:
        """Return rows of a distribution of all cells that attributes have, near to its parities."""
        plan = self.parities
        fitted = guarded_fit(plan, measured)
        start = 1 - 2 * rounded(plan.domain, fitted.q, count).astype(np.int8)
        made = flipped_towards(plan, estimates(plan, measured), fitted.chi[masks(plan)], start)
        signs: Bits = (made < 0).astype(np.uint8)
        return signs


@dataclass(frozen=True, slots=True, eq=False)
class Parities:
    """
    What was released of the parities, and rows that are near to it.

    Attributes
    ----------
    strategy
        That was followed.
    measured
        The released integers.
    total
        The number of rows that was read from them; n itself under replace-one.
    codes
        The synthetic rows in uniformly random order, shape (rows, C).
    """

    strategy: Contrasts
    measured: NoisyParities
    total: int
    codes: Integers

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """What was released, as it is published."""
        plan, found = self.strategy.parities, list[Measurement]()
        coded = plan.coding

        def parity(positions: tuple[int, ...]) -> Parity:
            categories = None if coded.plain else tuple(coded.categories[a] for a in positions)
            return Parity(tuple(coded.columns[a] for a in positions), not plan.replaced, categories)

        for part, values in zip(plan.parts, pieces(plan, self.measured.values), strict=True):
            noises, cost = part.noise(plan.setting), plan.epsilon * part.share
            if part is plan.cells:
                found.append(_whole(plan, values, noises[0], cost))
            elif part is plan.safeguard:
                chosen, value = values.tolist()
                one = (parity(part.sets[chosen]),)
                found.append(Measurement(one, np.array([value]), noises[0], cost / 2, selecting=cost / 2))
            else:
                if not part.pure and plan.delta is not None:
                    cost = rho_of(plan.epsilon, plan.delta)
                # a noise for all of them, or one for those of each order, which stand together
                groups = (
                    [list(some) for _, some in groupby(part.sets, len)] if len(noises) > 1 else [[*part.sets]]
                )
                ends = np.cumsum([len(some) for some in groups])[:-1]
                for some, own, noise in zip(groups, np.split(values, ends), noises, strict=True):
                    of = tuple(map(parity, some))
                    found.append(Measurement(of, own, noise, cost, not part.pure))
                    cost = Fraction(0)
        return tuple(found)

    def bound(self, workload: Workload, n: int | None, finished: Rows, beta: Fraction) -> float:
        """Return the bound on every query that follows from the noise alone, where all were measured.

        Parameters
        ----------
        workload, n, finished, beta
            As for `TableStrategy.bound`; n is not looked at, as the plan has it.
        """
        return bound(workload, finished, parity_sums(self.strategy.parities, self.measured, beta))


def _whole(plan: ParityPlan, values: Integers, noise: Noise, cost: Fraction) -> Measurement:
    """Return what was released of all cells: of those that cannot exist nothing was, and they are 0."""
    domain = plan.workload.domain
    counts = np.zeros(1 << len(domain.sizes), dtype=np.int64)
    counts[domain.cells()] = values
    columns = tuple(range(len(domain.sizes)))
    return Measurement((Marginal(columns, ((0, 1),) * len(columns)),), counts, noise, cost)


# Proof: docs/proofs/rounds.md, lemma 10.
def plan_contrasts(
    workload: Workload,
    *,
    n: int,
    epsilon: Fraction,
    delta: Fraction | None,
    neighbours: str,
    certificate: Fraction,
) -> Contrasts:
    """
    Return the parities with the least expected error.

    Where all parities of the workload are measured there is a bound without a certificate, and nothing is
    spent on one: which is public.

    Parameters
    ----------
    workload
        The queries.
    n
        The public n under replace-one, else a public guess of it.
    epsilon, delta
        Of the whole guarantee, exactly; delta None: it must be pure.
    neighbours
        "replace-one" or "add-remove".
    certificate
        The share of epsilon for the certificate, if one is needed.

    Raises
    ------
    ValueError
        They cannot all be measured at once; says why.
    """
    plans, series = list[Contrasts](), None
    for certifying in sorted({Fraction(0), epsilon * certificate}):
        found = alternatives(
            workload, n=n, epsilon=epsilon - certifying, neighbours=neighbours, delta=delta, series=series
        )
        series = found[0].spectrum
        made = [Contrasts(parities, certifying) for parities in found]
        plans += [plan for plan in made if not certificate or plan.complete != bool(certifying)]
    tabled = series is not None and plans[0].parities.setting.tabled
    return min(plans, key=lambda plan: plan.parities.expected_error if tabled else plan.expected)
