"""Mechanisms that choose a small database by its score: the exponential one, its kin, or any law."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import factorial, prod
from typing import Any, TypeAlias

import numpy as np

from queries import Domain, QueryClass, Workload
from queries.arrays import Integers
from smalldb.counting import multisets
from smalldb.counting.databases import Histogram
from smalldb.counting.scores import rate_of
from smalldb.exact.levels import exp_enclosure
from smalldb.exact.numbers import Number, positive, whole
from smalldb.planning import workload_of
from smalldb.selection import selection_law

LawOfScores: TypeAlias = Callable[[Sequence[int], Fraction], Sequence[Any]]
"""
The scores of all candidates, and the rate at which the exponential mechanism weighs them, exp(-rate score),
to the probability of each candidate, as `smalldb.audit` takes them.
"""

METHODS = ("exponential", "permute-and-flip", "noisy-max")
MOST_CANDIDATES = 20_000
PRECISION = 256  # bits of a weight


@dataclass(frozen=True)
class ByScore:
    """
    A mechanism as a value: a function of a database, as counts, to the probability of each small database.

    `smalldb.audit` and `smalldb.auditing.accuracy` take it; it can be pickled if its law can.

    Attributes
    ----------
    workload, rows, epsilon
        The queries, the rows of a small database, and the epsilon that it is run with.
    law
        "exponential", "permute-and-flip", "noisy-max", or a function of scores (`LawOfScores`).
    prior
        How much a row in each cell weighs: the candidates are ordered rows, drawn independently by it. None:
        multisets, which weigh alike.
    """

    workload: Workload
    rows: int
    epsilon: Fraction
    law: str | LawOfScores
    prior: tuple[int, ...] | None

    @cached_property
    def candidates(self) -> tuple[Histogram, ...]:
        """The small databases of a weight above 0, as counts over the cells."""
        every = multisets.iterate(self.workload.domain.size, self.rows)
        return tuple(y for y in every if self.prior is None or self._weight(y))

    @cached_property
    def _answers(self) -> Integers:
        return self.workload.matrix() @ np.array(self.candidates, dtype=np.int64).T

    def _weight(self, y: Histogram) -> int:
        if self.prior is None:
            return 1
        orders = factorial(self.rows) // prod(map(factorial, y))
        return int(orders * prod(weight**count for weight, count in zip(self.prior, y, strict=True)))

    def scores(self, database: Histogram) -> list[int]:
        """Return the score of each candidate, max_j |m b_j - n (A y)_j|."""
        sums = self.workload.matrix() @ np.array(database, dtype=np.int64)
        gaps = np.abs(self.rows * sums[:, None] - sum(database) * self._answers)
        largest: list[int] = gaps.max(axis=0, initial=0).tolist()
        return largest

    def __call__(self, database: Histogram) -> Mapping[Histogram, Any]:
        """Return the law: candidate -> probability, or enclosures of it."""
        scores, rate = self.scores(database), rate_of(self.epsilon, self.rows, self.workload.denominator)
        if callable(self.law):
            return dict(zip(self.candidates, self.law(scores, rate), strict=True))
        if self.law == "exponential":
            return dict(zip(self.candidates, self._exponential(scores, rate), strict=True))
        half = self.rows * self.workload.denominator  # what a neighbour moves a score by, at most
        law = selection_law(
            [-score for score in scores], epsilon=self.epsilon, sensitivity=half, method=self.law
        )
        return {y: law[position,] for position, y in enumerate(self.candidates)}

    def _exponential(self, scores: list[int], rate: Fraction) -> list[tuple[Fraction, Fraction]]:
        best = min(scores)
        precision = PRECISION + int(3 * rate * (max(scores) - best) / 2)  # e^-x is more than 2^(-3 x / 2)
        gaps = {score: exp_enclosure(rate * (score - best), precision) for score in set(scores)}
        weights = [self._weight(y) for y in self.candidates]
        low, high = (
            [weight * gaps[score][end] for weight, score in zip(weights, scores, strict=True)]
            for end in (0, 1)
        )
        least, most = sum(low), sum(high)
        return [
            (Fraction(lo, most - hi + lo), Fraction(hi, least - lo + hi))
            for lo, hi in zip(low, high, strict=True)
        ]


def by_score(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    rows: int,
    epsilon: Number,
    law: str | LawOfScores = "exponential",
    prior: Sequence[int] | str | None = None,
) -> ByScore:
    """
    Return a mechanism that releases a small database, chosen by its score: for `audit` and `accuracy`.

    Parameters
    ----------
    domain, queries, rows, epsilon
        As for `smalldb.audit`.
    law
        "exponential" is SmallDB. "permute-and-flip" (McKenna and Sheldon 2020) and "noisy-max", with Laplace
        noise of scale 2 sensitivity / epsilon, are epsilon-DP, too; for up to 64 candidates. Or a function
        of the scores of all candidates, and of the rate of the exponential mechanism, that returns the
        probability of each.
    prior
        The base measure of the exponential law. None: every multiset weighs alike. "tuples": ordered rows do.
        Or whole numbers, one for each cell: public beliefs of how often it occurs, such that ordered rows
        weigh as if drawn by them, independently; a cell of weight 0 does not occur.

    Examples
    --------
    >>> import smalldb
    >>> domain = Domain(["a"])
    >>> flip = by_score(domain, "conjunctions:1", rows=6, epsilon=1, law="permute-and-flip")
    >>> round(smalldb.audit(domain, n=6, mechanism=flip).worst_loss, 6)
    0.926881
    """
    workload, m = workload_of(queries, domain), whole(rows, "rows")
    cells = workload.domain.size
    if not callable(law) and law not in METHODS:
        raise ValueError(f"law must be one of {', '.join(METHODS)}, or a function of scores, not {law!r}")
    if prior == "tuples":
        prior = [1] * cells
    if prior is not None:
        if isinstance(prior, str) or len(prior) != cells:
            raise ValueError(f"prior must be 'tuples' or a whole number for each of the {cells} cells")
        if law != "exponential":
            raise ValueError("prior is the base measure of the exponential law: leave it out")
        prior = tuple(whole(weight, "prior", least=0) for weight in prior)
        if not any(prior):
            raise ValueError("prior: some cell must weigh more than 0")
    if min(m, cells - 1) > 64 or multisets.count(cells, m) > MOST_CANDIDATES:
        raise ValueError(f"a law over small databases is for up to {MOST_CANDIDATES} of them: use fewer rows")
    return ByScore(workload, m, positive(epsilon, "epsilon"), law, None if prior is None else tuple(prior))
