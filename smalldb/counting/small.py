"""The candidates of SmallDB, and what the exponential mechanism over them guarantees and promises."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from smalldb import bounds
from smalldb.bounds.calculators import valley
from smalldb.counting.calibration import Calibration
from smalldb.counting.scores import Candidates, count, rate_of, too_large
from smalldb.exact.numbers import as_text, sized
from smalldb.mechanisms import Drawn, Guarantee, Mechanism, Neighbours, Request
from smalldb.noise.privacy_loss import Loss


@dataclass(frozen=True, slots=True)
class SmallDatabases:
    """All databases of so many rows, one of which SmallDB draws; a `mechanisms.Promise`."""

    request: Request  # what is asked for
    rows: int  # m, the rows of a small database
    base: Candidates  # the base measure: "multisets" (Algorithm 4), or "tuples" (ordered rows)
    # the internal epsilon that it is drawn with; None: the epsilon that is asked for
    calibrated: Calibration | None = None

    @property
    def count(self) -> int:
        """|R|, how many there are."""
        return count(self.request.workload.domain.size, self.rows, self.base)

    @property
    def rate(self) -> Fraction:
        """A candidate of score s has probability proportional to ``exp(-rate s)``."""
        return rate_of(self.internal, self.rows, self.request.workload.denominator)

    @property
    def internal(self) -> Fraction:
        """The epsilon of the exponential mechanism: what is proved of its error is proved for this one."""
        return self.request.epsilon if self.calibrated is None else self.calibrated.internal

    # Proof: docs/proofs/census.md, lemmas 4, 5, 9 and 10.
    @property
    def guarantee(self) -> Guarantee:
        """The exact epsilon, which bounds the range of the loss too: a little less under add-remove."""
        # Adding or removing a row changes max_f |f(x) - f(y)| n by at most 1 upwards but only by
        # 1 - 1/(m D) downwards, so the range of the exponent is epsilon (1 - 1/(2 m D))
        # (`docs/proofs/census.md`, lemmas 3 and 4). Calibrated, it is the epsilon that is asked
        # for, and the range, by which a rho is known, is larger.
        epsilon, calibrated = self.request.epsilon, self.calibrated
        if calibrated is not None:
            loss = Loss(epsilon, Loss.ranged(calibrated.range).rho)
            return Guarantee(epsilon, loss=loss, internal=calibrated.internal)
        if self.request.neighbours is Neighbours.ADD_REMOVE:
            epsilon *= 1 - Fraction(1, 2 * self.rows * self.request.workload.denominator)
        return Guarantee(epsilon, loss=Loss.ranged(epsilon))

    @property
    def bound(self) -> float | None:
        """The provable error: not exceeded with probability 1 - beta; None where n is private."""
        beta = self.request.beta
        return self._about_n(bounds.sharp, rows=self.rows, beta=beta, candidates=self.base)

    @property
    def expected_error(self) -> float | None:
        """A bound on the mean error; None where n is private."""
        return self._about_n(bounds.expected, rows=self.rows, candidates=self.base)

    @property
    def proved(self) -> bool:
        """The mean error is provably not larger."""
        return True

    @property
    def proposition_4_4(self) -> float | None:
        """The error of Proposition 4.4 at these rows; None where n is private."""
        beta = self.request.beta
        return self._about_n(bounds.proposition_4_4_rows, rows=self.rows, beta=beta, candidates=self.base)

    @property
    def theorem_4_5(self) -> float | None:
        """The error that Theorem 4.5 states (for its own number of rows); None where n is private."""
        # false as printed for one query: then as for two
        queries = max(2, self.request.workload.size)
        return self._about_n(bounds.theorem_4_5, queries=queries, beta=self.request.beta)

    @property
    def theorems(self) -> dict[str, float]:
        """What the lecture's theorems state; nothing where n is private."""
        errors = {"proposition_4_4": self.proposition_4_4, "theorem_4_5": self.theorem_4_5}
        return {name: error for name, error in errors.items() if error is not None}

    def recorded(self, drawn: Drawn | None) -> dict[str, Any] | None:
        """Return what a record states of the error; nothing where that would depend on a private n."""
        if self.request.n is None:
            return None
        return {"beta": as_text(self.request.beta), "sharp": self.bound, **self.theorems}

    @property
    def known(self) -> str:
        """What is drawn, and from how many."""
        return f"one table, drawn exactly from all {sized(self.count)} {self.base} of {self.rows} rows"

    @property
    def too_large(self) -> str | None:
        """Why its scores cannot be computed, whatever the data; None: they can."""
        request, rows = self.request, self.rows
        if not too_large(request.largest_n, rows, request.workload.denominator):
            return None
        return f"scores would reach 2^62: {request.cap} x {rows} rows x the common denominator of the queries"

    def _about_n(self, formula: Callable[..., float], **numbers: object) -> float | None:
        if self.request.n is None:
            return None
        workload, n = self.request.workload, self.request.n
        sizes = {"cells": workload.domain.size, "queries": workload.size, "n": n, "epsilon": self.internal}
        return formula(**{**sizes, **numbers})


class OfSmall(Mechanism):
    """What a census and rejection have in common: their candidates, and what is proved of these."""

    takes_candidates: ClassVar[bool] = True

    small: SmallDatabases

    @property
    def rows(self) -> int:
        """m, the rows of the synthetic table."""
        return self.small.rows

    @property
    def candidates(self) -> Candidates:
        """The base measure."""
        return self.small.base

    @property
    def candidate_count(self) -> int:
        """|R|, the number of candidates."""
        return self.small.count

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of the release."""
        return self.small.guarantee

    @property
    def promise(self) -> SmallDatabases:
        """What is proved of the error."""
        return self.small


def least_expected(request: Request, base: Candidates) -> float:
    """Return the bound on the mean error at the best number of rows, whether these can be drawn or not."""
    if request.n is None:
        return 0.0

    def error(rows: int) -> float:
        return SmallDatabases(request, rows, base).expected_error or 0.0

    return error(valley(error, 1, None))


def best_rows(request: Request, base: Candidates, possible: range | list[int]) -> int:
    """Return the rows of least provable error among those that can be drawn, ascending; 1 where none can."""
    if not possible or request.n is None:
        return 1
    chosen = bounds.best_rows(
        n=request.n,
        cells=request.workload.domain.size,
        queries=request.workload.size,
        epsilon=request.epsilon,
        beta=request.beta,
        candidates=base,
        max_rows=possible[-1],
    )
    return max(chosen, possible[0])


def largest_possible(possible: range | list[int], name: str) -> str:
    """Tell the most rows that can be drawn, behind the reason why those asked for cannot."""
    if not possible:
        return f"; no number of rows can be done by {name}"
    return f"; the largest that can be done by {name} is {possible[-1]} rows"
