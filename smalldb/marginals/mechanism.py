"""Tables measured in rounds, a model fitted to them, and rows drawn from it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any, ClassVar, Self

import numpy as np

from queries import Rows, Workload
from queries.domain import MAX_TABLE_ATTRIBUTES
from queries.rows import MAX_TOTAL
from smalldb.exact.bits import BitSource
from smalldb.exact.numbers import as_text, float_above
from smalldb.exact.rounded_text import promised
from smalldb.marginals.adaptive.target_marginals import tables_of
from smalldb.marginals.certificate import beyond, certified
from smalldb.marginals.estimate.modelling import cells_of_rules
from smalldb.marginals.noise_bound import MOST_CELLS as MOST_MARGINS
from smalldb.marginals.noise_bound import (
    bound,
    loudest,
    margins,
    measured_at_once,
    sums_at_once,
    sums_of_cells,
)
from smalldb.marginals.pairs_at_once import noise_at_once
from smalldb.marginals.plan_of_tables import CERTIFICATE, DROWNED, MAX_ENTRIES, RoundsPlan, plan_rounds
from smalldb.marginals.private_rows import MOST, checked
from smalldb.marginals.releasing_tables import Outcome, Progress, release_rounds
from smalldb.marginals.universe import Universe
from smalldb.marginals.wide_parities import Parities, plan_parities, release_parities
from smalldb.mechanisms import Drawn, Guarantee, Journal, Neighbours, Request, Running
from smalldb.noise.geometric import Geometric

MOST_CELLS = 1 << 21  # of the tables in which rules meet


@dataclass(frozen=True, slots=True)
class ByRounds:
    """Select tables, measure them, fit a model, draw rows, and certify; for columns of any number of places.

    Of more than 20 yes/no columns all parities are measured at once, if they can be: tables of four cells are
    so small that rounds err several times as much. A `mechanisms.Mechanism`, and its own `Promise`.

    Attributes
    ----------
    request
        What is asked for.
    steps
        What each step costs.
    """

    name: ClassVar[str] = "rounds"
    takes_candidates: ClassVar[bool] = False
    takes_delta: ClassVar[bool] = True
    takes_target: ClassVar[bool] = True

    request: Request
    steps: RoundsPlan | Parities

    # Proof: docs/proofs/certificate.md, "All cells"; docs/proofs/rounds.md, lemma 8.
    @classmethod
    def planned(cls, request: Request) -> Self | str:
        """Return what each step costs, or why the release cannot be made."""
        workload, n = request.workload, request.rows_hint
        domain, replaced = workload.domain, request.neighbours is Neighbours.REPLACE_ONE
        narrow = domain.binary and len(domain.attributes) <= MAX_TABLE_ATTRIBUTES
        if narrow and not workload.cells and not request.named:
            return "rounds are for columns of several places: answers do up to 20 yes/no columns"
        if isinstance(domain.valid, tuple) and domain.valid and isinstance(domain.valid[0], int):
            return "rounds need valid as rules, not as a list of cells"
        if not workload.size:
            return "rounds need at least one query"
        if n is None:
            return "rounds under add-remove need n_max, a public guess of the rows"
        most = max(1, MAX_ENTRIES // len(domain.sizes))
        if (request.rows or n) > most:
            give = "give rows" if request.rows is None else "give fewer"
            return f"at most {most} rows of {len(domain.sizes)} columns are made in rounds: {give}"
        if request.largest_n >= MOST:
            return "rounds are for less than 2^53 rows"
        if request.largest_n * workload.denominator >= MAX_TOTAL // 4:
            return f"rounds would reach 2^60: {request.cap} x the common denominator of the queries"
        if (request.rows or 0) * workload.denominator >= MAX_TOTAL:
            return "rounds would reach 2^62: rows x the common denominator of the queries"
        tables = workload.tables
        universe = Universe(
            domain.sizes,
            tuple(column.ordered for column in domain.columns),
            tables,
            (1,) * len(tables),
            tuple((rule.columns, rule.allowed) for rule in domain.rules),
            request.target,
        )
        if universe.rules and (joint := cells_of_rules(universe)) > MOST_CELLS:
            return f"the rules of valid meet in tables of {joint} cells, more than 2^21: use fewer that meet"
        certificate = CERTIFICATE if request.certificate is None else request.certificate
        try:
            steps = plan_rounds(
                universe, request.epsilon, request.delta, replaced, n, certificate=certificate
            )
        except ValueError as error:
            return str(error)
        if steps.law.drowns(min(steps.columns, default=steps.cells or steps.pairs)):
            return DROWNED
        parities = plan_parities(
            workload,
            n=n,
            epsilon=request.epsilon,
            delta=request.delta,
            neighbours=request.neighbours.value,
            certificate=certificate,
        )
        if parities is None:
            steps = _saved(request, steps)
            if steps.at_once is not None:
                steps = replace(steps, at_once=_saved(request, steps.at_once))
        taken = steps if parities is None else parities
        if taken.certifying > 0 and taken.law.drowns(taken.certifying / 2):
            return "the certificate would add noise of more than 2^40: give it a larger share, or 0"
        return cls(request, taken)

    @classmethod
    def remedy(cls, request: Request) -> str:
        """Its reasons say what could be done."""
        return ""

    @property
    def rows(self) -> int | None:
        """m: as asked for, or n; None where n is private: as many as are read from what was released."""
        return self.request.n if self.request.rows is None else self.request.rows

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
        """The privacy of the release: the costs of all steps add up to no more."""
        return Guarantee(self.request.epsilon, self.steps.delta)

    @property
    def promise(self) -> Self:
        """What is known of the error."""
        return self

    @property
    def bound(self) -> None:
        """It is known once the certificate is released."""
        return None

    @property
    def expected_error(self) -> float:
        """About the mean total variation distance of the tables, which no query of a table exceeds."""
        return min(1.0, self.steps.expected)

    @property
    def proved(self) -> bool:
        """It is an estimate."""
        return False

    @property
    def theorems(self) -> dict[str, float]:
        """None speaks of it."""
        return {}

    def recorded(self, drawn: Drawn | None) -> dict[str, Any]:
        """Return what a record states of the error: the certified bound, once it is released."""
        covers = list(self._covers(self.steps)) if drawn is None else list(drawn.covers)
        return {
            "beta": as_text(self.request.beta),
            "released": None if drawn is None else drawn.bound,
            "covers": covers,
        }

    def told(self, stated: Mapping[str, Any]) -> list[str]:
        """Tell what a record states of the error."""
        if not stated["covers"]:
            return ["no bound for what was not measured: the certificate is switched off"]
        if stated["released"] is None:
            return ["the release certifies a bound, and its record states it"]
        return [
            f"at most {promised(stated['released'])} on {stated['covers'][0]}, "
            f"with probability 1 - {stated['beta']}"
        ]

    @property
    def cost(self) -> None:
        """It is not estimated."""
        return None

    @property
    def summary(self) -> str:
        """What it does, in some words."""
        return self._measured + (", and rows near to them" if self._at_once else ", and a model of them")

    @property
    def explanation(self) -> str:
        """What it does, for readers who do not know its name."""
        if self._at_once:
            return f"{self._measured}; rows that were moved towards what was released"
        return f"{self._measured}; a model that was fitted to them, and rows drawn from it"

    @property
    def foretold(self) -> list[str]:
        """Its cost and the error to expect."""
        return [
            "cost:      seconds, up to minutes for some 100 columns",
            f"           tables will be off by about {self.expected_error:.2g} on average "
            "(total variation distance; an estimate, no bound)",
        ]

    def draw(self, table: Rows, source: BitSource, progress: bool) -> Drawn:
        """Measure in rounds or at once, make rows, and bound or certify how far they are off."""
        return self.draw_lasting(table, Journal(source), Running(progress))

    @property
    def public(self) -> Sequence[object]:
        """What decides its steps, and the rows that are asked for."""
        request = self.request
        return (request.n, request.n_max, request.rows, request.certificate, *self.steps.public)

    def draw_lasting(self, table: Rows, journal: Journal, running: Running) -> Drawn:
        """Draw a release, or go on with one: what was drawn before is read."""
        steps, beta = self.steps, self.request.beta
        if isinstance(steps, Parities):
            most = max(1, MAX_ENTRIES // len(table.domain.sizes))
            found = release_parities(steps, table, journal, most=most, count=self.request.rows)
            places, total = found.places, found.total
            bound = found.bound(steps, beta) if steps.measures_all else None
        else:
            private = checked(table.places().astype(np.int64), table.counts, table.domain.sizes)
            wanted, executor = self.request.rows, running.executor
            with _bar(running.progress) as tick:
                made = release_rounds(steps, private, journal, count=wanted, progress=tick, executor=executor)
            places, total, steps = made.places, made.total, made.plan
            bound = self._direct_bound(made)
        if steps.certifying:
            finished = Rows.from_places(table.domain, places)
            certificate = certified(
                self.request.workload, table, finished, total, steps.law, steps.certifying, journal
            )
            bound = float_above(certificate.share(beta))
        return Drawn(places, bound=bound, covers=self._covers(steps))

    def _covers(self, steps: RoundsPlan | Parities) -> tuple[str, ...]:
        """Say which queries the bound is about, by the plan that was followed."""
        workload = self.request.workload
        if steps.certifying:
            return (f"every query of {workload.text}, measured or not",)
        measured = steps.measures_all if isinstance(steps, Parities) else _measures_all(workload, steps)
        return (f"every query of {workload.text}",) if measured else ()

    def _direct_bound(self, made: Outcome) -> float | None:
        """Return the bound that follows from the noise alone, where every query was measured."""
        request, steps = self.request, made.plan
        if steps.certifying or not _measures_all(request.workload, steps):
            return None
        workload, given = request.workload, (request.n, request.beta)
        if steps.cells:
            noise = Geometric(steps.law.rate(steps.cells))
            sums = sums_of_cells(workload, made.history.tables[0].counts, noise, *given)
        else:
            at_once = noise_at_once(steps.universe, steps.pairs, steps.law.replaced)
            sums = sums_at_once(workload, made.history.at_once, at_once, *given)
        return bound(workload, Rows.from_places(workload.domain, made.places), sums)

    @property
    def _at_once(self) -> bool:
        return isinstance(self.steps, Parities)

    @property
    def _measured(self) -> str:
        if isinstance(self.steps, Parities):
            return self.steps.told
        noise = "geometric noise" if self.steps.delta is None else "Gaussian noise"
        if self.steps.cells:
            return f"the counts of all cells with {noise}"
        if self.steps.at_once is not None:
            return (
                f"{self._selected(self.steps)}, or all pairs of columns at once, "
                f"as a released number decides, with {noise.removesuffix(' noise')} or cone noise"
            )
        if self.steps.pairs:
            return "all tables of one and two columns at once, with cone noise"
        if not self.steps.rounds:
            return f"columns with {noise}"
        return f"{self._selected(self.steps)}, with {noise}"

    def _selected(self, steps: RoundsPlan) -> str:
        tables, target = "tables", self.request.target
        if target is not None and tables_of(steps.universe):
            name = self.request.workload.domain.names[target]
            tables = f"tables of {name} measured first as far as noise lets them tell, others"
        return f"{tables} selected and measured in up to {steps.rounds} rounds"


def _measures_all(workload: Workload, steps: RoundsPlan) -> bool:
    """Whether every query is measured, so that a bound follows from the noise alone."""
    if steps.pairs:
        return measured_at_once(workload)
    return bool(steps.cells) and steps.universe.cells <= MOST_MARGINS


# Proof: docs/proofs/certificate.md, "All cells"; docs/proofs/pairs.md, lemma 8.
def _saved(request: Request, steps: RoundsPlan) -> RoundsPlan:
    """Return the plan without a certificate, where the noise alone leaves less open than one would add."""
    workload, beta = request.workload, request.beta
    if not steps.certifying or not _measures_all(workload, steps):
        return steps
    least = inf
    if not steps.law.drowns(steps.certifying / 2):
        least = beyond(workload, steps.law, steps.certifying / 2, beta) / workload.denominator
    if steps.cells:
        saved = replace(steps, cells=steps.cells + steps.certifying, certifying=Fraction(0))
        most = max(margins(workload, Geometric(saved.law.rate(saved.cells)), beta))
    else:
        saved = replace(steps, pairs=steps.pairs + steps.certifying, certifying=Fraction(0))
        noise = noise_at_once(saved.universe, saved.pairs, saved.law.replaced)
        most = loudest(workload, noise, beta)
    return saved if most <= least else steps


@contextmanager
def _bar(shown: bool) -> Iterator[Progress]:
    """Show how many rounds are done, of how many there are at most."""
    from tqdm import tqdm

    with tqdm(unit=" rounds", disable=not shown) as bar:

        def tick(done: int, most: int) -> None:
            bar.total = most
            bar.update(done - bar.n)

        yield tick
