"""SmallDB by a census: exact counts of all candidates by score, and one of them drawn."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from queries import Rows
from queries.arrays import Integers
from queries.domain import MAX_TABLE_ATTRIBUTES
from queries.workload import MAX_MATRIX
from smalldb.counting.calibration import calibrating
from smalldb.counting.cost import MEMORY, OPERATIONS, VISITS, Work, work
from smalldb.counting.level_counts import count_candidates
from smalldb.counting.scores import MAX_RANKS, Candidates, base_measure, rank_count
from smalldb.counting.small import OfSmall, SmallDatabases, best_rows, largest_possible, least_expected
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level
from smalldb.exact.numbers import brief
from smalldb.mechanisms import UNPLANNED, Drawn, Facts, Request


@dataclass(frozen=True, slots=True)
class ByCensus(OfSmall):
    """SmallDB, drawn from exact counts of all candidates by score; a `mechanisms.Mechanism`."""

    name: ClassVar[str] = "census"

    small: SmallDatabases  # the candidates
    work: Work  # the engine of the census and what it will take

    @classmethod
    def planned(cls, request: Request) -> Self | str:
        """Return the census of the rows asked for, or of those with the least provable error; or why not."""
        base, rows = _base(request), request.rows
        if rows is None:
            if request.calibrated:
                return "a calibrated census needs its size: give rows or alpha"
            if request.n is None:
                return UNPLANNED
            rows = best_rows(request, base, _possible(request))
        census = cls._of(SmallDatabases(request, rows, base))
        return census if isinstance(census, str) or not request.calibrated else census._calibrated()

    @classmethod
    def _of(cls, small: SmallDatabases) -> Self | str:
        """Return the census of these candidates, or why it cannot be done."""
        workload, rows = small.request.workload, small.rows
        domain, d, queries = workload.domain, len(workload.domain.attributes), workload.size
        if not domain.listable:
            if not domain.binary:
                return "a census needs at most 2^20 cells: use fewer columns"
            return (
                f"a census needs a table of all cells, so at most {MAX_TABLE_ATTRIBUTES} attributes, not {d}"
            )
        cells = domain.size
        if queries * cells > MAX_MATRIX:
            return (
                f"{queries} queries on {cells} cells are too many for a census: use fewer attributes or "
                "queries"
            )
        if small.too_large:
            return small.too_large
        if rank_count(workload, rows) > MAX_RANKS:
            return f"score tables of {queries} queries x {rows} rows x their common denominator are too large"
        needed = work(workload, rows, small.base)
        if needed is None:
            return (
                f"a census of {rows} rows over {cells} cells with {queries} queries is beyond the budget of "
                f"{VISITS:.0e} candidates x queries by enumeration, or {OPERATIONS:.0e} operations and "
                f"{MEMORY >> 30} GiB by dynamic programming"
            )
        return cls(small, needed)

    def _calibrated(self) -> Self | str:
        """Return the census at its internal epsilon, or why that is not known."""
        request = self.small.request
        sizes = self.rows, self.candidates, request.n, request.neighbours
        try:
            calibrated = calibrating(request.workload, *sizes)(request.epsilon)
        except ValueError as refused:
            return str(refused)
        return replace(self, small=replace(self.small, calibrated=calibrated))

    @classmethod
    def least_error(cls, request: Request) -> float:
        """Return what the expected error is at least, whatever the rows."""
        return least_expected(request, _base(request))

    @classmethod
    def remedy(cls, request: Request) -> str:
        """Name the most rows that a census can be made for; calibrated, what it says of n is all."""
        if request.calibrated:
            return ""
        return largest_possible(_possible(request), cls.name)

    @property
    def cost(self) -> dict[str, Any]:
        """What the census will take."""
        return {name: getattr(self.work, name) for name in ("engine", "operations", "memory", "seconds")}

    @property
    def facts(self) -> Facts:
        """What it will do, for people."""
        seconds = "less than 0.1" if self.work.seconds < 0.1 else f"about {self.work.seconds:.2g}"
        memory = max(1, self.work.memory >> 20)
        if calibrated := self.small.calibrated:
            internal = f", calibrated to an internal epsilon of {brief(calibrated.internal)}"
        else:
            internal = ""
        return Facts(
            f"SmallDB by a census{internal}",
            self.small.known,
            "SmallDB: one of all small tables, drawn by the exponential mechanism from exact counts",
            f"{seconds} s on this machine after compilation, at most {memory:,} MiB, by {self.work.engine}",
        )

    # Proof: docs/proofs/census.md, lemma 8.
    def draw(self, table: Rows, source: BitSource, progress: bool) -> Drawn:
        """Count the candidates at each score, draw a score, and a candidate of it."""
        workload = self.small.request.workload
        census = count_candidates(
            workload, table, self.rows, self.candidates, self.work.engine, keep_layers=True, progress=progress
        )
        counts = dict(zip(census.levels.tolist(), census.counts, strict=True))
        level = draw_level(counts, self.small.rate, source)
        drawn = census.candidate(level, uniform_below(counts[level], source))
        cells = np.repeat(np.arange(len(drawn)), drawn)
        if self.candidates == "tuples":
            cells = arranged(cells, source)
        return Drawn(workload.domain.table()[cells], confidential={"census": census})


def arranged(cells: Integers, source: BitSource) -> Integers:
    """Put rows in a uniformly drawn order, exactly (Fisher and Yates)."""
    order = cells.copy()
    for last in range(len(order) - 1, 0, -1):
        other = uniform_below(last + 1, source)
        order[last], order[other] = order[other], order[last]
    return order


def _base(request: Request) -> Candidates:
    return base_measure(request.candidates or "multisets")


def _possible(request: Request) -> range:
    """Return the rows that a census can be made for, from 1 on."""

    def refused(rows: int) -> bool:
        return isinstance(ByCensus.planned(replace(request, rows=rows)), str)

    above = 1
    while not refused(above):
        above *= 2
    return range(1, bisect_left(range(above // 2 + 1, above), True, key=refused) + above // 2 + 1)
