"""Yes/no columns, all at once: the parities that queries are made of, and rows that are near to them."""

from dataclasses import dataclass
from fractions import Fraction
from math import pi, sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from queries import Rows, Workload
from queries.arrays import Floats
from queries.domain import MAX_TABLE_ATTRIBUTES, Bits, Integers
from queries.mixing import STEP, splitmix64
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_permutation
from smalldb.marginals.contrasts import AnswersPlan, Measured, measure, parity_sums
from smalldb.marginals.contrasts.maximum_entropy import sizes_of
from smalldb.marginals.contrasts.parity_means import Estimates, estimates, released_total
from smalldb.marginals.contrasts.parity_plan import alternatives
from smalldb.marginals.contrasts.priors import prior
from smalldb.marginals.contrasts.shrinkage import frequencies, shrunk
from smalldb.marginals.estimate.column_estimates import bounded_total
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.noise_bound import bound
from smalldb.marginals.rows.query_search import search
from smalldb.mechanisms import Journal

Signs: TypeAlias = npt.NDArray[np.int8]

THRESHOLDS = (0.5, 0.25, 0.12, 0.06, 0.03, 0.0, 0.0, 0.0)  # of a sweep: see `kernels.turning`
_CERTAIN = 1e-9  # a deviation below which noise does not count


@dataclass(frozen=True, slots=True, eq=False)
class Parities:
    """
    Parities that are measured once, with one of the laws of answers; a function of public numbers alone.

    Attributes
    ----------
    answers
        What is measured.
    certifying
        The epsilon of the certificate, above 0 only where something was not measured.
    """

    answers: AnswersPlan
    certifying: Fraction

    @property
    def delta(self) -> Fraction | None:
        """Of the guarantee; None: it is pure."""
        return self.answers.delta

    @property
    def law(self) -> PrivacyMeasure:
        """Of the certificate: pure, so that its epsilon is added to that of the answers."""
        return PrivacyMeasure(concentrated=False, replaced=self.answers.replaced)

    @property
    def public(self) -> tuple[object, ...]:
        """What decides what is done: numbers, texts and arrays."""
        answers, series = self.answers, self.answers.spectrum
        decided = (answers.n, answers.epsilon, answers.neighbours, answers.delta, self.certifying)
        numbers = (series.constants, series.starts, series.members, series.coefficients)
        return (*decided, answers.parts, series.sets, *numbers)

    @property
    def measures_all(self) -> bool:
        """Whether every query is a sum of what is measured, so that a bound follows from the noise alone."""
        measured = {places for part in self.answers.unguarded for places in part.sets}
        return measured.issuperset(self.answers.spectrum.sets)

    @property
    def expected(self) -> float:
        """About the mean distance of the tables of two columns that the queries are cells of.

        That is half of four cells, each off as much as a normal number is, of the variance that noise leaves
        where parities have a prior.
        """
        series = self.answers.spectrum
        left = 1 / (self.answers.deviations**-2 + prior(series.orders) ** -2)
        variances = series.over_queries(series.coefficients**2 * left[series.members])
        return min(1.0, 2 * sqrt(2 / pi) * float(np.sqrt(variances).mean()))

    @property
    def told(self) -> str:
        """What is measured, in some words."""
        noise = "the exponential mechanism" if self.delta is None else "Gaussian noise"
        return f"the parities of all queries at once with {noise}"


# Proof: docs/proofs/rounds.md, lemma 10.
def plan_parities(
    workload: Workload,
    *,
    n: int,
    epsilon: Fraction,
    delta: Fraction | None,
    neighbours: str,
    certificate: Fraction,
) -> Parities | None:
    """
    Return the parities with the least expected error, or None if they cannot all be measured at once.

    They are for more yes/no columns than a table of all cells can have. Where all parities of the workload
    are measured there is a bound without a certificate, and nothing is spent on one: which is public.

    Parameters
    ----------
    n
        The public n under replace-one, else a public guess of it.
    certificate
        The share of epsilon for the certificate, if one is needed.
    """
    domain = workload.domain
    if not domain.binary or len(domain.attributes) <= MAX_TABLE_ATTRIBUTES:
        return None
    plans, series = list[Parities](), None
    for certifying in sorted({Fraction(0), epsilon * certificate}):
        left = epsilon - certifying
        try:
            found = alternatives(
                workload, n=n, epsilon=left, neighbours=neighbours, delta=delta, series=series
            )
        except ValueError:
            return None
        series = found[0].spectrum
        made = [Parities(answers, certifying) for answers in found]
        plans += [plan for plan in made if not certificate or plan.measures_all != bool(certifying)]
    return min(plans, key=lambda plan: plan.expected)


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """
    What was released of the parities, and rows that are near to it.

    Attributes
    ----------
    measured
        The released integers.
    total
        The number of rows that was read from them; n itself under replace-one.
    places
        The synthetic rows in uniformly random order, shape (rows, C).
    """

    measured: Measured
    total: int
    places: Integers

    def bound(self, plan: Parities, beta: Fraction) -> float:
        """Return an error of every query that is exceeded with probability at most beta."""
        workload = plan.answers.workload
        finished = Rows.from_bits(workload.domain, self.places.astype(np.uint8))
        return bound(workload, finished, parity_sums(plan.answers, self.measured, beta))


# Proof: docs/proofs/rounds.md, lemma 10.
def release_parities(
    plan: Parities, rows: Rows, source: BitSource | Journal, *, most: int, count: int | None = None
) -> Released:
    """
    Measure the parities, and make rows that are near to them; all but the measuring is post-processing.

    Parameters
    ----------
    source
        Where random bits come from; or a journal that has a source, and what was released before.
    most
        How many rows are made at most where their number is read from what was released.
    count
        How many rows are wanted; None: as many as there are, or are read from what was released.
    """
    journal = source if isinstance(source, Journal) else Journal(source)
    measured = journal.step(
        lambda coins: measure(plan.answers, rows, coins),
        lambda released: released.values.tolist(),
        lambda flat: Measured(np.array(flat, dtype=np.int64)),
    )
    read = released_total(plan.answers, measured)
    total = read if plan.answers.replaced else bounded_total(read)
    wanted = min(total, most) if count is None else count
    found = estimates(plan.answers, measured)
    means = 1 - 2 * frequencies(plan.answers, found)
    near = shrunk(plan.answers, found, means)
    seed = journal.step(lambda coins: coins.bits(64))
    signs = turned(plan.answers, found, near, scattered(means, wanted, seed))
    made: Bits = (signs < 0).astype(np.uint8)
    if plan.answers.spectrum.orders[-1] > 2:
        made = search(plan.answers.workload, made, plan.answers.spectrum.answers(near))
    return Released(measured, total, made[uniform_permutation(wanted, journal.finishing())].astype(np.int64))


def scattered(means: Floats, rows: int, seed: int) -> Signs:
    """Return signs, shape (rows, d), of these means to within one row, and as good as independent columns."""
    signs = np.empty((rows, len(means)), dtype=np.int8)
    for column, mean in enumerate(means):
        ranks = np.argsort(np.argsort(splitmix64(rows, (seed + column * rows * STEP) % (1 << 64))))
        signs[:, column] = np.where(ranks + 0.5 < (1 - mean) / 2 * rows, -1, 1)
    return signs


def turned(plan: AnswersPlan, found: Estimates, near: Floats, start: Signs) -> Signs:
    """
    Return rows in which signs are turned until parities of order 1 and 2 are what they are believed to be.

    Each counts by the precision that its noise and its prior leave; pairs that no query needs count nothing.

    Parameters
    ----------
    near
        The parities as they are believed, shape (K,).
    start
        Signs, shape (rows, d).
    """
    from smalldb.kernels.turning import turn

    rows, d = start.shape
    targets, weights = np.zeros((d + 1, d + 1)), np.zeros((d + 1, d + 1))
    precisions = np.maximum(found.deviations, _CERTAIN) ** -2.0 + sizes_of(plan, found) ** -2
    for places, value, precision in zip(plan.spectrum.sets, near, precisions, strict=True):
        if len(places) <= 2:
            a, b = (0, places[0] + 1) if len(places) == 1 else (places[0] + 1, places[1] + 1)
            targets[a, b] = targets[b, a] = rows * value
            weights[a, b] = weights[b, a] = precision
    signs = np.ones((rows, d + 1), dtype=np.int8)
    signs[:, 1:] = start
    beyond = _products(signs) - targets
    np.fill_diagonal(beyond, 0.0)
    weights /= weights.max(initial=_CERTAIN)
    for sweep, threshold in enumerate(THRESHOLDS):
        made = turn(signs, beyond, weights, threshold, sweep * rows // len(THRESHOLDS))
        if not made and not threshold:
            break
    return signs[:, 1:]


def _products(signs: Signs) -> Floats:
    """Return the sums over the rows of products of two signs: exact, whatever their order."""
    found = np.zeros((signs.shape[1],) * 2)
    for start in range(0, len(signs), 1 << 16):
        some = signs[start : start + (1 << 16)].astype(np.float64)
        found += some.T @ some
    return found
