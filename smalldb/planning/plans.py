"""What a release will do and promise, as far as public numbers tell."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from queries import Workload
from smalldb import bounds
from smalldb.answers import AnswersPlan
from smalldb.counting.cost import Work
from smalldb.counting.scores import Candidates, count
from smalldb.planning.reading import Neighbours

Mechanism = Literal["census", "rejection", "answers"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a release will do and promise; a function of public numbers alone.

    Attributes
    ----------
    workload
        The reduced queries over the universe.
    n
        Rows of the data; None under add-remove, where it is private.
    epsilon, beta
        The privacy parameter, and the failure probability of the bounds; exact.
    neighbours
        The neighbouring relation.
    rows
        m, the rows of the synthetic table.
    mechanism
        "census": exact counts of all candidates by score. "rejection": the same law, drawn from what can be
        counted. "answers": the exponential mechanism over answers, or Gaussian noise, then the nearest table.
    candidates
        The base measure: "multisets" (Algorithm 4), or "tuples" (ordered rows). Answers have none.
    work
        The engine of the census and what it will take; None for the others.
    answers
        What is measured; None but for answers.
    runner_up
        The best plan with another mechanism, where the rows were left open.
    refused
        Why what would have been taken before could not be done.
    """

    workload: Workload
    n: int | None
    epsilon: Fraction
    beta: Fraction
    neighbours: Neighbours
    rows: int
    mechanism: Mechanism
    candidates: Candidates | None
    work: Work | None = None
    answers: AnswersPlan | None = None
    runner_up: "Plan | None" = field(default=None, repr=False)
    refused: tuple[str, ...] = ()

    @property
    def why(self) -> str | None:
        """Why this mechanism and no other, in one line; None where there was no choice."""
        if self.runner_up is not None:
            ours, theirs = (_figure(plan) for plan in (self, self.runner_up))
            return f"expected error {ours}, against {theirs} by {self.runner_up.mechanism}"
        return "; ".join(self.refused) or None

    @property
    def candidate_count(self) -> int | None:
        """|R|, the number of candidates; None for answers."""
        return None if self.candidates is None else count(self._cells, self.rows, self.candidates)

    @property
    def delta(self) -> Fraction | None:
        """The delta of the guarantee; None: it is pure, also where a delta was allowed."""
        return None if self.answers is None else self.answers.delta

    @property
    def privacy(self) -> Fraction:
        """The exact epsilon of the guarantee: that asked for, or a little less under add-remove.

        Adding or removing a row changes max_f |f(x) - f(y)| n by at most 1 upwards but only by
        1 - 1/(m D) downwards, so the range of the exponent is epsilon (1 - 1/(2 m D)).
        """
        if self.neighbours is Neighbours.REPLACE_ONE or self.candidates is None:
            return self.epsilon
        return self.epsilon * (1 - Fraction(1, 2 * self.rows * self.workload.denominator))

    @property
    def bounded_range(self) -> Fraction | None:
        """The same as a bound on the range of the privacy loss, which composes better; answers have none."""
        return None if self.candidates is None else self.privacy

    @property
    def rate(self) -> Fraction:
        """A candidate of score s has probability proportional to ``exp(-rate s)``: epsilon / (2 m D)."""
        return self.epsilon / (2 * self.rows * self.workload.denominator)

    @property
    def bound(self) -> float | None:
        """The provable error: not exceeded with probability 1 - beta.

        None where n is private, and for answers, whose bound is known once they are released.
        """
        return self._promise(bounds.sharp, rows=self.rows, beta=self.beta, candidates=self.candidates)

    @property
    def expected_error(self) -> float | None:
        """A bound on the mean error, for answers an estimate of it; None where n is private.

        The estimate is that of the answers, and half a row more: so much rounding alone takes.
        """
        if self.answers is not None:
            return None if self.n is None else min(1.0, self.answers.expected_error + 0.5 / self.rows)
        return self._promise(bounds.expected, rows=self.rows, candidates=self.candidates)

    @property
    def proposition_4_4(self) -> float | None:
        """The error of Proposition 4.4 at these rows; None where n is private."""
        return self._promise(
            bounds.proposition_4_4_rows, rows=self.rows, beta=self.beta, candidates=self.candidates
        )

    @property
    def theorem_4_5(self) -> float | None:
        """The error that Theorem 4.5 states (for its own number of rows); None where n is private."""
        # false as printed for one query: then as for two
        return self._promise(bounds.theorem_4_5, queries=max(2, self.workload.size), beta=self.beta)

    @property
    def alternatives(self) -> dict[str, float] | None:
        """Mean largest errors of plain Laplace noise, by what it is added to; None where n is private.

        "answers": to each of the |Q| answers, about |Q| ln |Q| / (epsilon n). "histogram": to each cell,
        answers added up; a bound.
        """
        if self.n is None:
            return None
        n, queries = self.n, self.workload.size
        # f and 1 - f err alike, so the lighter of the two is added up
        support = self.workload.mean_squares * self.workload.domain.product or None
        return {
            "answers": bounds.laplace_answers(n=n, queries=queries, epsilon=self.epsilon),
            "histogram": bounds.laplace_histogram(
                n=n, cells=self._cells, queries=queries, epsilon=self.epsilon, support=support
            ),
        }

    def _promise(self, formula: Callable[..., float], **numbers: object) -> float | None:
        if self.n is None or self.candidates is None:
            return None
        sizes = {"cells": self._cells, "queries": self.workload.size, "n": self.n, "epsilon": self.epsilon}
        return formula(**{**sizes, **numbers})

    @property
    def _cells(self) -> int:
        return self.workload.domain.size


def _figure(plan: Plan) -> str:
    """Write the public expected error of a plan, in few digits."""
    expected = plan.expected_error
    assert expected is not None
    kind = "" if plan.candidates is None else "provably at most "
    return f"{kind}{expected:.2g} of {plan.rows} rows"
