"""Noisy answers, and the table that is nearest to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from queries import Rows
from queries.domain import MAX_TABLE_ATTRIBUTES
from smalldb.counting.scores import too_large
from smalldb.exact.bits import BitSource
from smalldb.exact.numbers import as_text
from smalldb.exact.rounded_text import promised
from smalldb.marginals.contrasts.parity_bound import parity_sums
from smalldb.marginals.contrasts.parity_measurement import measure
from smalldb.marginals.contrasts.parity_plan import AnswersPlan, plan_answers
from smalldb.marginals.noise_bound import bound
from smalldb.marginals.rows.nearest_rows import synthesise
from smalldb.mechanisms import UNPLANNED, Drawn, Guarantee, Request

MAX_ENTRIES = 10**8  # of a table made from answers, rows x attributes: about 2 GB at work


@dataclass(frozen=True, slots=True)
class ByAnswers:
    """The exponential mechanism over answers, or Gaussian noise, then the nearest table.

    A `mechanisms.Mechanism`, and its own `Promise`.

    Attributes
    ----------
    request
        What is asked for.
    rows
        m, the rows of the synthetic table.
    answers
        What is measured.
    """

    name: ClassVar[str] = "answers"
    takes_candidates: ClassVar[bool] = False
    takes_delta: ClassVar[bool] = True
    takes_target: ClassVar[bool] = False

    request: Request
    rows: int
    answers: AnswersPlan

    @classmethod
    def planned(cls, request: Request) -> Self | str:
        """Return what is measured for the rows asked for, or for as many as the data have; or why not."""
        workload, n, rows = request.workload, request.rows_hint, request.rows
        d = len(workload.domain.attributes)
        if d > MAX_TABLE_ATTRIBUTES and workload.domain.unlike_binary is None:
            return f"answers need a table of all cells, so at most 20 attributes, not {d}: name rounds"
        most = max(1, MAX_ENTRIES // d)
        if rows is None:
            if request.n is None:
                return UNPLANNED
            rows = min(request.n, most)
        if rows > most:
            return f"at most {most} rows of {d} attributes are made from answers, not {rows}"
        if n is None:
            return "answers under add-remove need n_max, a public guess of the rows"
        if too_large(max(rows, request.largest_n), 1, workload.denominator):
            return f"answers would reach 2^62: {request.cap} or rows x the common denominator of the queries"
        try:
            answers = plan_answers(
                workload,
                n=n,
                epsilon=request.epsilon,
                neighbours=request.neighbours.value,
                delta=request.delta,
            )
        except ValueError as error:
            return str(error)
        return cls(request, rows, answers)

    @classmethod
    def remedy(cls, request: Request) -> str:
        """Its reasons say what could be done."""
        return ""

    @property
    def candidates(self) -> None:
        """There are none."""
        return None

    @property
    def candidate_count(self) -> None:
        """There are none."""
        return None

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of the release: no range is known that is better than epsilon."""
        return Guarantee(self.request.epsilon, self.answers.delta)

    @property
    def promise(self) -> Self:
        """What is known of the error."""
        return self

    @property
    def bound(self) -> None:
        """It is known once answers are released."""
        return None

    @property
    def expected_error(self) -> float | None:
        """An estimate of the mean error; None where n is private.

        That of the answers, and half a row more: so much rounding alone takes.
        """
        return None if self.request.n is None else min(1.0, self.answers.expected_error + 0.5 / self.rows)

    @property
    def proved(self) -> bool:
        """It is an estimate."""
        return False

    @property
    def theorems(self) -> dict[str, float]:
        """None speaks of it."""
        return {}

    def recorded(self, drawn: Drawn | None) -> dict[str, Any]:
        """Return what a record states of the error: the bound, once answers are released."""
        return {"beta": as_text(self.request.beta), "released": None if drawn is None else drawn.bound}

    def told(self, stated: Mapping[str, Any]) -> list[str]:
        """Tell what a record states of the error."""
        if stated["released"] is None:
            return ["the release computes a bound from its noisy answers, and its record states it"]
        return [
            f"at most {promised(stated['released'])} on every query, with probability 1 - {stated['beta']}"
        ]

    @property
    def cost(self) -> None:
        """It is not estimated."""
        return None

    @property
    def summary(self) -> str:
        """What it does, in some words."""
        return f"{self._noise}, and the nearest table"

    @property
    def explanation(self) -> str:
        """What it does, for readers who do not know its name."""
        return f"{self._noise}, then the nearest table to them"

    @property
    def foretold(self) -> list[str]:
        """Its cost and the error to expect."""
        lines = ["cost:      seconds"]
        if self.expected_error is not None:
            lines.append(
                f"           the mean error will be about {self.expected_error:.2g} (an estimate, no bound)"
            )
        return lines

    def draw(self, table: Rows, source: BitSource, progress: bool) -> Drawn:
        """Measure, and find the rows that are nearest to what was released."""
        measured = measure(self.answers, table, source)
        bits = synthesise(self.answers, measured, self.rows, progress=progress)
        sums = parity_sums(self.answers, measured, self.request.beta)
        finished = Rows.from_bits(table.domain, bits)
        return Drawn(bits, bound=bound(self.answers.workload, finished, sums))

    @property
    def _noise(self) -> str:
        if self.answers.delta is None:
            return "the exponential mechanism over answers"
        return "Gaussian noise on answers"
