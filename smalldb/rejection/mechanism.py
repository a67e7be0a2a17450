"""SmallDB by rejection: the law of the census, drawn from what can be counted where no census fits."""

import warnings
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from queries import Rows
from smalldb.counting.scores import Candidates, base_measure
from smalldb.counting.small import SmallDatabases, best_rows, largest_told, least_expected
from smalldb.exact.bits import BitSource
from smalldb.mechanisms import UNPLANNED, Drawn, Facts, Guarantee, Request
from smalldb.rejection import capability, head_and_tail
from smalldb.rejection.clock import clock

WAIT = "this may take from less than a second to days, depending on the data; you can interrupt it"


@dataclass(frozen=True, slots=True)
class ByRejection:
    """SmallDB, drawn by rejection; a `mechanisms.Mechanism`."""

    name: ClassVar[str] = "rejection"
    takes_candidates: ClassVar[bool] = True
    takes_delta: ClassVar[bool] = False
    takes_target: ClassVar[bool] = False

    small: SmallDatabases  # the candidates

    @classmethod
    def planned(cls, request: Request) -> Self | str:
        """Return the draw of the rows asked for, or of those with the least provable error; or why not."""
        base, rows = _base(request), request.rows
        if rows is None:
            if request.n is None:
                return UNPLANNED
            rows = best_rows(request, base, _possible(request))
        small = SmallDatabases(request, rows, base)
        refused = small.too_large or capability.impossible(
            request.workload,
            n=request.rows_hint,
            rows=rows,
            epsilon=request.epsilon,
            candidates=base,
        )
        made = cls(small)
        if refused is None and not request.named:
            refused = made.slow(most=False)
            refused = refused and f"{refused}; by name it is taken"
        return refused or made

    @classmethod
    def least_error(cls, request: Request) -> float:
        """Return what the expected error is at least, whatever the rows."""
        return least_expected(request, _base(request))

    @classmethod
    def remedy(cls, request: Request) -> str:
        """Name the most rows that are drawn by rejection."""
        return largest_told(_possible(request), cls.name)

    def slow(self, most: bool) -> str | None:
        """Return why it may take long, on some table or on `most`, in public words; None: it will not."""
        request = self.small.request
        return capability.slow(
            request.workload,
            n=request.largest_n if request.rows_hint is None else request.rows_hint,
            rows=self.rows,
            epsilon=request.epsilon,
            candidates=self.candidates,
            guessed=request.n is None,
            most=most,
        )

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

    @property
    def cost(self) -> None:
        """It depends on the data."""
        return None

    @property
    def facts(self) -> Facts:
        """What it will do, for people."""
        slow = self.slow(most=True)
        cost = "depends on the data; on tables of many kinds it was seconds, seldom minutes"
        return Facts(
            "SmallDB by rejection",
            self.small.known,
            "SmallDB: one of all small tables, drawn by the exponential mechanism by rejection",
            cost if slow is None else f"{slow}, so {WAIT}",
        )

    def draw(self, table: Rows, source: BitSource, progress: bool) -> Drawn:
        """Propose candidates until one is kept, as `Mechanism.draw` says; a slow draw is warned of."""
        workload, epsilon = self.small.request.workload, self.small.request.epsilon
        if slow := self.slow(most=True):
            warnings.warn(f"{slow}; so {WAIT}", stacklevel=2)
        answers, n_max = workload.answers(table), self.small.request.n_max
        if self.candidates == "multisets":
            make = head_and_tail.multiset_sampler
            head = make(workload, answers, table.n, self.rows, epsilon, n_max=n_max, progress=progress)
            counts, _ = head.draw(source)
            return Drawn(workload.domain.table()[np.repeat(np.arange(len(counts)), counts)])
        from smalldb.rejection.sampler import tuple_sampler

        with clock(progress) as tick:
            sampler = tuple_sampler(workload, answers, table.n, self.rows, epsilon, tick, n_max)
            bits, _ = sampler.draw(source)
        return Drawn(bits, confidential={"trials": sampler.trials})


def _base(request: Request) -> Candidates:
    return base_measure(request.candidates or "tuples")


def _possible(request: Request) -> list[int]:
    """Return the rows that are drawn by rejection, and soon for most tables at least, ascending."""
    each = (ByRejection.planned(replace(request, rows=rows)) for rows in range(1, capability.MOST_ROWS + 1))
    return [made.rows for made in each if not isinstance(made, str) and made.slow(most=True) is None]
