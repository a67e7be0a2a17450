"""Tables or contrasts measured with exact noise, an estimate fitted to them, and rows that match it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from queries import Rows
from queries.domain import MAX_TABLE_ATTRIBUTES
from queries.rows import MAX_TOTAL
from smalldb.exact.numbers import as_text, float_above
from smalldb.marginals.certificate import certify
from smalldb.marginals.contrasts.coding import attributes_of, unlike_coded
from smalldb.marginals.counted_rows import MOST
from smalldb.marginals.curator import Steps
from smalldb.marginals.estimate.modelling import cells_of_rules
from smalldb.marginals.rehearsal import rehearse
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.choosing_parities import alternatives
from smalldb.marginals.strategies.choosing_tables import AT_ONCE, FIRST, plan_tables
from smalldb.marginals.strategies.contrasts import MAX_SEARCHED, Contrasts
from smalldb.marginals.strategies.dependence import DependenceTested
from smalldb.marginals.strategies.from_start import ASKING, FromStart, audible, start_pairs
from smalldb.marginals.strategies.strategy import CERTIFICATE, MAX_ENTRIES, Strategy
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Drawn, Facts, Guarantee, Mechanism, Neighbours, Promise, Request
from smalldb.mechanisms.start import Start

MOST_CELLS = 1 << 21  # of the tables in which rules meet

STRATEGIES = tuple(kind.name for kind in (*AT_ONCE, Contrasts, Adaptive))


@dataclass(frozen=True, slots=True)
class ByMarginals(Mechanism, Promise):
    """Measure with noise, estimate, make rows, and bound how far they are off; for any columns."""

    name: ClassVar[str] = "marginals"
    takes_delta: ClassVar[bool] = True
    takes_target: ClassVar[bool] = True
    takes_start: ClassVar[bool] = True

    request: Request  # what is asked for
    strategy: Strategy  # what is measured, with which noise and at which cost

    # Proof: docs/proofs/certificate.md, "All cells"; docs/proofs/rounds.md, lemma 8.
    @classmethod
    def planned(cls, request: Request) -> Self | str:
        """Return the strategy of least expected error, or why the release cannot be made."""
        workload, n = request.workload, request.rows_hint
        columns, count = len(workload.domain.sizes), request.rows or n
        if n is None or count is None:
            return "marginals under add-remove need n_max, a public guess of the rows"
        most = max(1, MAX_ENTRIES // columns)
        if request.n is not None and request.rows is None and n > most:
            # more rows than a table can hold would show the estimate no better
            count = max(1, MAX_SEARCHED // columns)
            request = replace(request, rows=count)
        if count > most:
            give = "give rows" if request.rows is None else "give fewer"
            return f"at most {most} rows of {columns} columns are made by marginals: {give}"
        if request.start is not None:
            return cls._from_start(request, request.start)
        if request.earlier is not None:
            if request.strategy not in (None, Adaptive.name):
                return "an earlier release is refined by the strategy adaptive"
            rounds = cls._tables(replace(request, strategy=Adaptive.name), n)
            if isinstance(rounds, Adaptive):
                rounds = rounds.refining(request.earlier.measurements)
            return rounds if isinstance(rounds, str) else cls(request, rounds)
        strategies, wanted = list[Strategy | str](), request.strategy
        if wanted == Contrasts.name and request.aimed:
            return FIRST.format(wanted)
        possible = unlike_coded(workload) is None and not (request.first or request.column_share)
        if wanted == Contrasts.name or (wanted is None and possible):
            strategies.append(cls._contrasts(request, n))
        if wanted != Contrasts.name:
            strategies.append(cls._tables(request, n))
        plans = [strategy for strategy in strategies if not isinstance(strategy, str)]
        if not plans:
            return "; ".join(dict.fromkeys(strategy for strategy in strategies if isinstance(strategy, str)))
        # what serves targets with tables of their own is to be beaten in these
        return cls(request, min(plans, key=lambda plan: plan.to_beat))

    # Proof: docs/proofs/start.md, theorem.
    @classmethod
    def _from_start(cls, request: Request, start: Start) -> Self | str:
        """Return what would be done without a start, for what a question about it leaves; or why not."""
        asking = request.epsilon * ASKING
        without = replace(request, epsilon=request.epsilon - asking, delta=None, start=None)
        other = cls.planned(without)
        rounds = cls._tables(replace(without, strategy=Adaptive.name), request.rows_hint or 1)
        if isinstance(other, str) or isinstance(rounds, str):
            return other if isinstance(other, str) else str(rounds)
        if not isinstance(rounds, Adaptive) or not start_pairs(rounds.universe):
            return "a start is for queries about pairs of columns"
        if isinstance(other.strategy, Adaptive):
            rounds = other.strategy  # columns alone, where rounds would be lost in noise
        elif not audible(rounds):  # nothing would be left to measure but columns once more
            rounds = Adaptive.shared(rounds, alone=True)
        # columns weigh a start before it is asked about; without it, rounds come after them
        without_start = rounds if isinstance(other.strategy, DependenceTested) else other.strategy
        expected = rehearse(without_start, rounds.universe, start, request.rows_hint or 1)
        strategy = FromStart.before(start, asking, rounds, without_start, expected)
        return cls(replace(request, rows=other.request.rows), strategy)

    @classmethod
    def _contrasts(cls, request: Request, n: int) -> Contrasts | str:
        """Return the contrasts of least expected error; or why there are none."""
        workload = request.workload
        d = attributes_of(workload.domain)
        most = max(1, MAX_SEARCHED // d)
        if d <= MAX_TABLE_ATTRIBUTES and (request.rows or n) > most:
            return f"at most {most} rows of {d} attributes are made from contrasts: give fewer"
        if max(request.rows or 0, request.largest_n) * workload.denominator >= MAX_TOTAL:
            return (
                f"contrasts would reach 2^62: {request.cap} or rows x the common denominator of the queries"
            )
        try:
            plans = alternatives(
                workload,
                n=n,
                epsilon=request.epsilon,
                delta=request.delta,
                neighbours=request.neighbours.value,
                certificate=_certificate(request),
            )
        except ValueError as error:
            return str(error)
        best = min(plans, key=lambda plan: plan.worst_expected if plan.tabled else plan.expected)
        return _drowned(best) or best

    @classmethod
    def _tables(cls, request: Request, n: int) -> Strategy | str:
        """Return the strategy of least expected error that measures tables; or why there is none."""
        workload = request.workload
        domain = workload.domain
        if not workload.size:
            return "marginals need at least one query"
        if request.largest_n >= MOST:
            return "tables are measured of less than 2^53 rows"
        if request.largest_n * workload.denominator >= MAX_TOTAL // 4:
            return f"tables would reach 2^60: {request.cap} x the common denominator of the queries"
        if (request.rows or 0) * workload.denominator >= MAX_TOTAL:
            return "tables would reach 2^62: rows x the common denominator of the queries"
        universe = Universe(
            domain.sizes,
            tuple(column.ordered for column in domain.columns),
            workload.tables,
            tuple((rule.columns, rule.allowed) for rule in domain.rules),
            request.targets,
            request.first,
        )
        if universe.rules and (joint := cells_of_rules(universe)) > MOST_CELLS:
            return f"the rules of valid meet in tables of {joint} cells, more than 2^21: use fewer that meet"
        try:
            strategy = plan_tables(
                universe,
                request.epsilon,
                request.delta,
                request.neighbours is Neighbours.REPLACE_ONE,
                n,
                certificate=_certificate(request),
                strategy=request.strategy,
                column_share=request.column_share,
            )
        except ValueError as error:
            return str(error)
        strategy = strategy.saved(workload, request.beta)
        return _drowned(strategy) or strategy

    @property
    def rows(self) -> int | None:
        """m: as asked for, or n; None where n is private: as many as are read from what was released."""
        return self.request.n if self.request.rows is None else self.request.rows

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of the release: the costs of all steps add up to no more."""
        strategy = self.strategy
        pure = Fraction(0) if strategy.law.concentrated else strategy.certifying
        return Guarantee(self.request.epsilon, strategy.delta, strategy.loss, pure=pure)

    @property
    def promise(self) -> Self:
        """What is known of the error."""
        return self

    @property
    def expected_error(self) -> float:
        """About the mean of the largest error of a query, which mechanisms are compared by."""
        return self.strategy.expected_error(self.rows or self.request.rows_hint or 1)

    @property
    def expected_range(self) -> tuple[float, float] | None:
        """Where the error of about nine data sets of ten lies; None: that was not looked at."""
        within, expected = self.strategy.within, self.expected_error
        if within is None:
            return None
        least, most = self.strategy.spread
        return min(least, expected / within), min(1.0, max(most, expected * within))

    def recorded(self, drawn: Drawn | None) -> dict[str, Any]:
        """Return what a record states of the error: the bound, once it is released."""
        covers = list(self._covers(self.strategy)) if drawn is None else list(drawn.covers)
        return {
            "beta": as_text(self.request.beta),
            "released": None if drawn is None else drawn.bound,
            "covers": covers,
        }

    @property
    def facts(self) -> Facts:
        """What it will do, for people."""
        measured = self.strategy.described
        if self.request.targets and not self.strategy.targeted:
            measured += ", those of the target as exactly as all others"
        return Facts(
            self.strategy.method,
            measured,
            f"{measured}; an estimate is fitted to them, and rows are chosen to match it",
            "seconds, up to minutes for some 100 columns",
        )

    @property
    def public(self) -> Sequence[object]:
        """What decides its steps, and the rows that are asked for."""
        request = self.request
        earlier = () if request.earlier is None else (request.earlier.digest,)
        return (request.n, request.n_max, request.rows, request.certificate, *earlier, *self.strategy.public)

    def steps(self) -> Steps:
        """Ask for measurements, make rows, and bound or certify how far they are off."""
        request, workload = self.request, self.request.workload
        estimate = yield from self.strategy.release(request.rows)
        finished, bound, followed = Rows.from_codes(workload.domain, estimate.codes), None, estimate.strategy
        if followed.certifying:
            certificate = yield from certify(
                workload, finished, estimate.total, followed.law, followed.certifying
            )
            bound = float_above(certificate.share(request.beta))
        elif followed.measures_all(workload):
            bound = estimate.bound(workload, request.n, finished, request.beta)
        started = None
        if request.start is not None:
            left_out = getattr(estimate, "left_out", None)
            names = {} if left_out is None else {"left_out": workload.domain.names[left_out]}
            started = {"believed": bool(getattr(estimate, "from_start", False)), **names}
        return Drawn(estimate.codes, bound=bound, covers=self._covers(followed), from_start=started)

    def _covers(self, strategy: Strategy) -> tuple[str, ...]:
        """Say which queries the bound is about, by the strategy that was followed."""
        text = self.request.workload.text
        if strategy.certifying:
            return (f"every query of {text}, measured or not",)
        return (f"every query of {text}",) if strategy.measures_all(self.request.workload) else ()


def _certificate(request: Request) -> Fraction:
    return CERTIFICATE if request.certificate is None else request.certificate


def _drowned(strategy: Strategy) -> str | None:
    """Say why a certificate cannot be given, where noise would be louder than any count."""
    if any(way.certifying and way.law.drowns(way.certifying / 2) for way in strategy.ways):
        return "the certificate would add noise of more than 2^40: give it a larger share, or 0"
    return None
