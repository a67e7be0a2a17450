"""The census: how many small databases stand at each score level, and the law of the error, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import accumulate
from operator import itemgetter, mul
from typing import Any, Protocol

import numpy as np

from queries import Domain, QueryClass, Rows, Workload
from queries.arrays import Floats, Integers, pd
from smalldb import bounds
from smalldb.counting import multisets
from smalldb.counting.calibration import calibrating
from smalldb.counting.cost import work
from smalldb.counting.dynamic_engine import count_scores
from smalldb.counting.enumeration_engine import enumerate_scores
from smalldb.counting.scores import MAX_SCORE, Candidates, Scores, base_measure, rate_of, too_large
from smalldb.exact.bits import BitSource, bit_source
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level, draw_loudest, exp_enclosure
from smalldb.exact.numbers import Number, as_fraction, positive, whole
from smalldb.files.checkpoints import Folder, check_running
from smalldb.mechanisms import Neighbours, workload_of
from smalldb.schema.reading import SchemaLike, check_alone, counted, read_schema
from smalldb.showing import drawn, in_notebook

_FIRST_PRECISION = 192
_LARGE = 1 << 1000  # a float still holds it; only a first, rough enclosure passes it

DRAWS = {"exponential": draw_level, "permute-and-flip": draw_loudest}
KEPT = 16  # shards of a dynamic program with a checkpoint: little can be lost, and little is counted twice


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Law:
    """The distribution of the error of a release; confidential, because it is computed from the data.

    Level s has probability ``N_s exp(-rate s) / sum_t N_t exp(-rate t)``. Every float is the nearest one
    to the true number: integer enclosures are refined until they leave no doubt.

    Attributes
    ----------
    levels
        Ascending int64: the scores that occur.
    counts
        How many candidates stand at each; Python ints.
    rate
        epsilon / (2 m D), exact.
    unit
        n m D: the error of a level is ``level / unit``.
    """

    levels: Integers
    counts: tuple[int, ...]
    rate: Fraction
    unit: int
    _enclosed: dict[int, tuple[list[int], list[int], int, int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Law of the error over {sum(self.counts)} candidates: confidential>"

    @property
    def errors(self) -> Floats:
        """The error of each level, max_f |f(x) - f(y)|: float64, ascending."""
        return np.array([float(Fraction(int(s), self.unit)) for s in self.levels])

    @property
    def probabilities(self) -> Floats:
        """The probability of each level: float64."""
        return np.array([self._nearest(itemgetter(i)) for i in range(len(self.levels))])

    def enclosures(self, precision: int = _FIRST_PRECISION) -> list[tuple[Fraction, Fraction]]:
        """Return fractions below and above the probability of each level, some 2^-precision apart."""
        low, high, total_low, total_high = self._weights(precision)
        return [
            (Fraction(lo, total_high - hi + lo), Fraction(hi, total_low - lo + hi))
            for lo, hi in zip(low, high, strict=True)
        ]

    def mean(self) -> float:
        """Return the expected error."""
        return self._nearest(
            lambda w: sum(int(s) * v for s, v in zip(self.levels, w, strict=True)), self.unit
        )

    def variance(self) -> float:
        """Return the variance of the error."""
        if len(self.levels) == 1:
            return 0.0
        gaps = [int(s - self.levels[0]) for s in self.levels]
        squares, precision = [gap * gap for gap in gaps], _FIRST_PRECISION

        def mean(of: list[int], weights: list[int], total: int) -> Fraction:
            return Fraction(sum(map(mul, of, weights)), total * self.unit)

        while True:
            low, high, total_low, total_high = self._weights(precision)
            least = mean(squares, low, total_high) / self.unit - mean(gaps, high, total_low) ** 2
            most = mean(squares, high, total_low) / self.unit - mean(gaps, low, total_high) ** 2
            if least >= 0 and float(least) == float(min(most, Fraction(_LARGE))):
                return float(least)
            precision *= 2

    def exceedance(self, error: Number) -> float:
        """Return P(err > error): strictly above, the comparison exact."""
        above = as_fraction(error, "error") * self.unit
        start = next((i for i, s in enumerate(self.levels) if int(s) > above), len(self.levels))
        return self._nearest(lambda w: sum(w[start:]))

    def quantile(self, probability: Number) -> float:
        """Return the least error e with P(err <= e) >= probability, which lies in (0, 1]."""
        wanted = as_fraction(probability, "probability")
        if not 0 < wanted <= 1:
            raise ValueError("probability must lie in (0, 1]")
        return float(Fraction(int(self.levels[self._position(wanted)]), self.unit))

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each level, confidential as the law is.

        Columns: level; error; candidates (Python ints); probability; cdf, which is P(err <= error).
        """
        columns = {
            "level": self.levels,
            "error": self.errors,
            "candidates": np.array(self.counts, dtype=object),
            "probability": self.probabilities,
            "cdf": self._distribution(),
        }
        return pd.DataFrame(columns)

    def _distribution(self) -> Floats:
        """Return the probability of each level and all below it: float64, the nearest."""
        low, high, total_low, total_high = self._weights(_FIRST_PRECISION)
        cdf = []
        for end, (least, most) in enumerate(zip(accumulate(low), accumulate(high), strict=True), 1):
            ends = least / total_high, most / total_low  # quotients of integers are rounded to nearest
            doubt = ends[0] != ends[1]
            cdf.append(self._nearest(partial(_sum_to, end)) if doubt else ends[0])
        return np.array(cdf)

    def _position(self, wanted: Fraction) -> int:
        """Return the first position at which the distribution function is at least `wanted`."""
        # below the last level the function is irrational, so some precision decides; but none is
        # needed where all of the probability is wanted
        last, precision = len(self.levels) - 1, _FIRST_PRECISION
        if wanted == 1:
            return last
        while True:
            low, high, _, _ = self._weights(precision)
            below = list(accumulate(low))
            above = list(accumulate(high))
            sure = next(
                (i for i in range(last) if below[i] >= wanted * (below[i] + above[-1] - above[i])), last
            )
            may = next(
                (i for i in range(last) if above[i] >= wanted * (above[i] + below[-1] - below[i])), last
            )
            if sure == may:
                return sure
            precision *= 2

    def _weights(self, precision: int) -> tuple[list[int], list[int], int, int]:
        """Enclose ``N_s exp(-rate (s - least level))`` in units of 2^-precision; and their sums."""
        if precision not in self._enclosed:
            exponents = [self.rate * int(s - self.levels[0]) for s in self.levels]
            # exp(-r) < 2^-precision where r > precision
            pairs = [(0, 1) if r > precision else exp_enclosure(r, precision) for r in exponents]
            low = [count * lo for count, (lo, _) in zip(self.counts, pairs, strict=True)]
            high = [count * hi for count, (_, hi) in zip(self.counts, pairs, strict=True)]
            self._enclosed[precision] = low, high, sum(low), sum(high)
        return self._enclosed[precision]

    def _nearest(self, part: Callable[[list[int]], int], unit: int = 1) -> float:
        """Return the float nearest to ``part(weights) / sum(weights) / unit``."""
        precision = _FIRST_PRECISION
        while True:
            low, high, total_low, total_high = self._weights(precision)
            least = float(Fraction(part(low), unit * total_high))
            most = float(min(Fraction(part(high), unit * total_low), Fraction(_LARGE)))
            if least == most:
                return least
            precision *= 2


def _sum_to(end: int, weights: list[int]) -> int:
    return sum(weights[:end])


class Engine(Protocol):
    """What counts candidates by rank of their score, and finds the one at a position."""

    @property
    def counts(self) -> tuple[int, ...]:
        """How many candidates have each rank, zeros included."""

    def candidate(self, rank: int, index: int) -> Integers:
        """Return the candidate at a position among those of a rank, as counts over the domain's cells."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Census:
    """How many small databases of ``rows`` rows have each score, for one table and workload.

    Computed from the data: confidential as a whole.

    Attributes
    ----------
    workload
        The queries.
    rows, n
        Rows of a small database and of the data.
    candidates
        "multisets" or "tuples".
    levels
        Ascending int64: the scores ``s`` that occur; the error of a candidate is ``s / (n m D)``
        (`docs/architecture.md`, decision 2).
    counts
        How many candidates stand at each level; Python ints, exact.
    calibrated
        Whether what is said of an epsilon is of SmallDB that loses just that: run at a larger internal one.
    """

    workload: Workload
    rows: int
    n: int
    candidates: Candidates
    levels: Integers
    counts: tuple[int, ...]
    _ranks: Integers
    _engine: Engine
    calibrated: bool = False

    def __repr__(self) -> str:
        return f"<Census of {self.total} small databases of {self.rows} rows: confidential>"

    def _repr_html_(self) -> str:
        return in_notebook(self)

    def plot(self, epsilon: Number | Sequence[Number] = 1) -> Any:
        """Draw the law of the error for one epsilon or several, beside the bounds: confidential.

        The bounds are those of replace-one, at beta 0.05. Extra ``plot``.
        """
        return drawn(self, epsilon=epsilon)

    @property
    def total(self) -> int:
        """|R|, the number of candidates."""
        return sum(self.counts)

    def law(self, epsilon: Number) -> Law:
        """Return the exact law of the error under this epsilon (an exact number above 0).

        One census serves any number of epsilons and of draws.
        """
        denominator = self.workload.denominator
        rate = rate_of(self._internal(epsilon), self.rows, denominator)
        return Law(self.levels, self.counts, rate, max(1, self.n) * self.rows * denominator)

    def draw(
        self, epsilon: Number, *, law: str = "exponential", rng: int | BitSource | None = None
    ) -> Integers:
        """Draw a small database, exactly, as counts over the cells.

        Parameters
        ----------
        epsilon
            Privacy parameter of the release, above 0: an exact number.
        law
            "exponential": as a release does. "permute-and-flip" (McKenna and Sheldon 2020): never of larger
            mean error, and epsilon-DP, but not epsilon-bounded-range.
        rng
            None: the operating system's entropy. Or a `BitSource`. An int is a seed, for experiments.
        """
        if law not in DRAWS:
            raise ValueError(f"law must be one of {', '.join(map(repr, DRAWS))}, not {law!r}")
        source, rate = bit_source(rng), rate_of(self._internal(epsilon), self.rows, self.workload.denominator)
        if self.calibrated and law != "exponential":
            raise ValueError("calibrated is about the exponential law: leave it out for permute-and-flip")
        counts = dict(zip(self.levels.tolist(), self.counts, strict=True))
        level = DRAWS[law](counts, rate, source)
        return self.candidate(level, uniform_below(counts[level], source))

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each level, confidential as the census is.

        Columns: level; error; candidates (Python ints), how many stand there; share, of all candidates.
        """
        total = self.total
        columns = {
            "level": self.levels,
            "error": [float(self.error(level)) for level in self.levels],
            "candidates": np.array(self.counts, dtype=object),
            "share": [count / total for count in self.counts],
        }
        return pd.DataFrame(columns)

    def gibbs(self, epsilon: Number) -> float:
        """Bound the mean error by Gibbs, at the level where the bound is least; confidential.

        Equation (9) of `docs/theory.md`: error + ln(total / count of that error or less) / (epsilon n / 2).
        An empty table has no error: 0.
        """
        internal = self._internal(epsilon)
        return self._least(
            lambda error, near: bounds.gibbs(
                optimum=error, best=near, total=self.total, n=self.n, epsilon=internal
            )
        )

    def mcsherry_talwar(self, epsilon: Number) -> float:
        """Bound the mean error by the theorem of McSherry and Talwar, at its best t; confidential.

        Equation (12) of `docs/theory.md`: t and the share mu(S_t) of the candidates that err by at most
        optimum + t come from the census, and the bound is the least over all levels. Where it is below 1,
        that of `gibbs` is no larger. An empty table has no error: 0.
        """
        best, internal = self.error(int(self.levels[0])), self._internal(epsilon)
        return self._least(
            lambda error, near: bounds.mcsherry_talwar(
                optimum=best, within=error - best, near=near, total=self.total, n=self.n, epsilon=internal
            )
        )

    def _internal(self, epsilon: Number) -> Fraction:
        """Return the epsilon that the exponential mechanism is run with."""
        stated = positive(epsilon, "epsilon")
        if not self.calibrated:
            return stated
        sizes = self.rows, self.candidates, self.n, Neighbours.REPLACE_ONE
        return calibrating(self.workload, *sizes)(stated).internal

    def _least(self, bound: Callable[[Fraction, int], float]) -> float:
        """Return the least bound over the levels, given its error and how many err no more."""
        if not self.n:
            return 0.0
        counts = accumulate(self.counts)
        return min(
            bound(self.error(level), near) for level, near in zip(self.levels.tolist(), counts, strict=True)
        )

    def error(self, level: int) -> Fraction:
        """Return the error max_f |f(x) - f(y)| of the candidates at a level (0 where n = 0)."""
        return Fraction(int(level), max(1, self.n * self.rows * self.workload.denominator))

    def candidate(self, level: int, rank: int) -> Integers:
        """Return the small database at a position among those of a level, as counts over the cells.

        Multisets: a fixed bijection between ``0 .. count - 1`` and the candidates of that level. Tuples:
        each small database stands at as many positions as it has arrangements.
        Cost: a second pass over a part of the candidates, unless layers were kept.
        """
        position = int(np.searchsorted(self.levels, level))
        if position == len(self.levels) or self.levels[position] != level:
            raise IndexError("no candidate stands at this level")
        if not 0 <= rank < self.counts[position]:
            raise IndexError("rank must be at least 0 and below the count of its level")
        return self._engine.candidate(int(self._ranks[position]), rank)


def census(
    data: pd.DataFrame | Rows,
    queries: QueryClass | Workload | str | None = None,
    *,
    rows: int,
    candidates: str = "multisets",
    engine: str = "auto",
    domain: Domain | None = None,
    schema: SchemaLike | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    shards: int | None = None,
    checkpoint: Folder | None = None,
    progress: bool = False,
    calibrated: bool = False,
) -> Census:
    """Count the small databases of `rows` rows by their score against the data.

    Parameters
    ----------
    data
        The table: bool or 0/1 integer columns, or what `domain` or `schema` say.
    queries
        The query class, its text such as "marginals:2", or a workload; by default the schema's, or all cells
        of 1- and 2-way tables.
    rows
        m, at least 1.
    candidates
        "multisets" (Algorithm 4), or "tuples": ordered rows, of which a small database counts as many as
        it has arrangements.
    engine
        "enumeration" looks at every multiset, "dynamic" counts those with the same future together; both
        give the same integers. "auto" takes the faster one, within a fixed budget; one that is named is run
        whatever it costs.
    domain
        The universe; by default all columns of the table, each 0 or 1.
    schema
        In place of `domain`: a `smalldb.schema.Schema`, the path of its file, or its text.
    threads
        Threads to count with; by default one a processor. The result is the same for any number.
    executor
        Counts the shards in place of threads: any `concurrent.futures.Executor`, of processes or of
        other machines too (`docs/scale.md`).
    shards
        At least how many shards: independent parts, whose results are added. More of them take less
        memory each. The counts are the same for any number.
    checkpoint
        A private folder of this census alone, in which finished shards are kept: killed and started again,
        with the same data and arguments, it does only what is left. The folder is the caller's to remove.
    progress
        Show a bar on stderr.
    calibrated
        Whether its laws and bounds are those of calibrated SmallDB, under replace-one: see `smalldb.plan`.

    Raises
    ------
    ValueError
        Beyond what the engine can do; n m D reaches 2^62. With "auto": beyond the budget. A checkpoint
        that is damaged, of another run, or open to others.

    Examples
    --------
    >>> from queries import Conjunctions
    >>> frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    >>> small = census(frame, Conjunctions(2), rows=2)
    >>> small.levels.tolist(), small.counts
    ([2, 4, 6], (2, 7, 1))
    """
    rows, base = whole(rows, "rows"), base_measure(candidates)
    threads = None if threads is None else whole(threads, "threads")
    shards = None if shards is None else whole(shards, "shards")
    check_running(executor, checkpoint)
    check_alone(schema, domain)
    known = None if schema is None else read_schema(schema)
    table = counted(data, domain, known)
    stated = None if known is None else known.queries
    workload = workload_of(stated if queries is None else queries, table.domain)
    if engine == "auto":
        chosen = work(workload, rows, base)
        if chosen is None:
            raise ValueError("this census is beyond the budget: use fewer rows, or name an engine to run it")
        engine = chosen.engine
    if engine not in ("enumeration", "dynamic"):
        raise ValueError(f"engine must be 'auto', 'enumeration' or 'dynamic', not {engine!r}")
    if calibrated:
        calibrating(workload, rows, base, table.n, Neighbours.REPLACE_ONE)  # or it is refused
    how: dict[str, Any] = {"threads": threads, "executor": executor, "progress": progress}
    how |= {"shards": shards, "checkpoint": checkpoint}
    return replace(count_candidates(workload, table, rows, base, engine, **how), calibrated=calibrated)


def count_candidates(
    workload: Workload,
    table: Rows,
    rows: int,
    candidates: Candidates,
    engine: str,
    *,
    keep_layers: bool = False,
    shards: int | None = None,
    checkpoint: Folder | None = None,
    **how: Any,
) -> Census:
    """Do the census of checked arguments; `how` is what both engines take."""
    if too_large(table.n, rows, workload.denominator):
        raise ValueError("rows of the data x rows x common denominator of the queries reach 2^62")
    if engine == "enumeration":
        if candidates != "multisets":
            raise ValueError("the enumeration counts multisets only: tuples need engine 'dynamic'")
        if multisets.count(workload.domain.size, rows) >= MAX_SCORE:
            raise ValueError("the enumeration counts up to 2^62 candidates")
    scores = Scores.build(workload.matrix(), workload.answers(table), table.n, rows)
    counted: Engine
    if engine == "enumeration":
        counted = enumerate_scores(scores, shards=shards or 1, checkpoint=checkpoint, **how)
    else:
        shards = shards or (1 if checkpoint is None else KEPT)
        how |= {"candidates": candidates, "keep_layers": keep_layers}
        counted = count_scores(scores, shards=shards, checkpoint=checkpoint, **how)
    ranks = np.flatnonzero(np.array(counted.counts, dtype=object))
    counts = tuple(counted.counts[rank] for rank in ranks)
    return Census(workload, rows, table.n, candidates, scores.levels[ranks], counts, ranks, counted)
