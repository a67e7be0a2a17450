"""SmallDB by rejection: the law of the census, drawn from what can be counted where no census fits."""

import warnings
from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from queries import Rows, Workload
from smalldb.counting.scores import Candidates, base_measure
from smalldb.counting.small import OfSmall, SmallDatabases, best_rows, largest_possible, least_expected
from smalldb.exact.bits import BitSource
from smalldb.exact.numbers import as_text
from smalldb.mechanisms import UNPLANNED, Drawn, Facts, Request
from smalldb.rejection import head_and_tail
from smalldb.rejection.head_and_tail import clock

MOST_ROWS = 64  # bits of a word
MOST_ENTRIES = 2000  # of a candidate, rows x attributes: so far the counts stay within the doubles
MOST_COLUMNS = 50_000  # kinds of columns of a workload that factors: attributes x (rows + 1)
LARGEST_C = 10**6  # beyond, the layers below the least score are too many to be looked through
# attributes -> rows -> the largest c: where every kind of table that was tried was quick, and where most were
PAIRS = {
    6: {20: (150, 250), 40: (100, 250), 64: (50, 100)},
    8: {20: (100, 250), 40: (20, 100), 64: (8, 30)},
    10: {20: (20, 30), 40: (10, 20), 64: (5, 10)},
    14: {20: (12, 25), 40: (5, 15), 64: (3, 6)},
    24: {20: (5, 10), 40: (3, 6), 64: (2, 3)},
    48: {20: (5, 8), 40: (2, 4), 64: (2, 4)},
}
WIDER = Fraction(1, 4)  # of that where queries look at more than two attributes

WAIT = "this may take from less than a second to days, depending on the data; you can interrupt it"


def impossible(
    workload: Workload, *, n: int | None, rows: int, epsilon: Fraction, candidates: Candidates
) -> str | None:
    """Return why rejection cannot draw a small database of so many rows, however long it may take."""
    domain = workload.domain
    d = len(domain.attributes)
    if domain.unlike_binary is not None:
        return f"rejection needs {domain.unlike_binary}"
    if candidates == "multisets":
        if not head_and_tail.possible(workload, rows):
            return f"rejection has no room for multisets of {rows} rows over {d} attributes"
    elif domain.valid is not None:
        return "rejection knows no structural zeros: leave out valid"
    elif _factors(workload):
        return None if d * (rows + 1) <= MOST_COLUMNS else f"{d} attributes of {rows} rows are too many"
    elif rows > MOST_ROWS:
        return f"rejection draws at most {MOST_ROWS} rows, not {rows}"
    elif d * rows > MOST_ENTRIES:
        return f"rejection draws at most {MOST_ENTRIES} entries, not {d} attributes x {rows} rows"
    if n is None:
        return "rejection under add-remove needs n_max, a public guess of the rows"
    if candidates == "tuples" and epsilon * n > 2 * rows * LARGEST_C:
        most = _short(Fraction(2 * rows * LARGEST_C, n))
        return (
            f"rejection of {rows} rows draws up to epsilon n / (2 rows) = {LARGEST_C}: epsilon up to {most}"
        )
    return None


# Proof: docs/proofs/rejection.md, lemma 8.
def slow(
    workload: Workload,
    *,
    n: int,
    rows: int,
    epsilon: Fraction,
    candidates: Candidates,
    guessed: bool,
    most: bool = False,
) -> str | None:
    """Return why what is possible may take long on some table; None: it was quick on all that were tried."""
    d = len(workload.domain.attributes)
    if candidates == "multisets":
        if head_and_tail.capable(workload, n, rows, epsilon):
            return None
        return f"rejection is not known to be quick for multisets of {rows} rows over {d} attributes"
    if _factors(workload):
        return None
    if guessed and not most:
        if epsilon * n <= 2 * head_and_tail.SURE:
            return None
        return (
            "rejection under add-remove is sure to be quick on any table up to epsilon n_max = "
            f"{2 * head_and_tail.SURE}"
        )
    if d > max(PAIRS):
        return f"rejection is not known to be quick for {d} attributes"
    sure, usual = largest_c(workload, rows)
    if epsilon * n <= 2 * rows * (usual if most else sure):
        return None
    return (
        f"rejection of {rows} rows over {d} attributes was quick on all kinds of tables up to "
        f"epsilon n / (2 rows) = {_short(sure)}, on most up to {_short(usual)}"
    )


def largest_c(workload: Workload, rows: int) -> tuple[Fraction, Fraction]:
    """Return the largest c = epsilon n / (2 rows) that was quick on all tables, and on most."""
    d = len(workload.domain.attributes)
    table = next(table for attributes, table in PAIRS.items() if d <= attributes)
    sizes = list(table)
    above = min(bisect_left(sizes, rows), len(sizes) - 1)
    part = Fraction(0)
    if above and rows < sizes[above]:
        part = Fraction(sizes[above] - rows, sizes[above] - sizes[above - 1])
    sure, most = (
        (1 - part) * here + part * fewer
        for here, fewer in zip(table[sizes[above]], table[sizes[above - 1]], strict=True)
    )
    wide = any(len(query.attributes) > 2 for query in workload.queries)
    return (sure * WIDER, most * WIDER) if wide else (sure, most)


def _short(number: Fraction) -> str:
    """Write a number in few digits, rounded down."""
    digits = 10 ** max(0, 3 - len(str(int(number))))
    while number * digits < 10:
        digits *= 10
    return as_text(Fraction(int(number * digits), digits))


def _factors(workload: Workload) -> bool:
    """Tell whether each query looks at one attribute."""
    return all(len(query.attributes) < 2 for query in workload.queries)


@dataclass(frozen=True, slots=True)
class ByRejection(OfSmall):
    """SmallDB, drawn by rejection; a `mechanisms.Mechanism`."""

    name: ClassVar[str] = "rejection"

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
        refused = small.too_large or impossible(
            request.workload,
            n=request.rows_hint,
            rows=rows,
            epsilon=request.epsilon,
            candidates=base,
        )
        plan = cls(small)
        if refused is None and not request.named:
            refused = plan.slow(most=False)
            refused = refused and f"{refused}; by name it is taken"
        return refused or plan

    @classmethod
    def least_error(cls, request: Request) -> float:
        """Return what the expected error is at least, whatever the rows."""
        return least_expected(request, _base(request))

    @classmethod
    def remedy(cls, request: Request) -> str:
        """Name the most rows that are drawn by rejection."""
        return largest_possible(_possible(request), cls.name)

    def slow(self, most: bool) -> str | None:
        """Return why it may take long, on some table or on `most`, in public words; None: it will not."""
        request = self.small.request
        return slow(
            request.workload,
            n=request.largest_n if request.rows_hint is None else request.rows_hint,
            rows=self.rows,
            epsilon=request.epsilon,
            candidates=self.candidates,
            guessed=request.n is None,
            most=most,
        )

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
    plans = (ByRejection.planned(replace(request, rows=rows)) for rows in range(1, MOST_ROWS + 1))
    return [plan.rows for plan in plans if not isinstance(plan, str) and plan.slow(most=True) is None]
